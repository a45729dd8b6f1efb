/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's runtime folder, which EAL does not remove. Another process with the same --file-prefix may
 * use it. */
#ifndef RINGTAP_FWD_RUN_DIR_H
#define RINGTAP_FWD_RUN_DIR_H

#include <limits.h>
#include <stdbool.h>

/* The path of the folder for a --file-prefix, as in eal_create_runtime_dir() of lib/eal. */
void run_dir_path(char out[PATH_MAX], const char *name);
bool run_dir_exists(const char *dir);
/* Whether another process holds the lock of the config or accepts connections on a socket there. */
bool run_dir_used(const char *dir);
/* Removes the files of EAL, telemetry and the probe, then the folder if it is empty. Removes
 * nothing while another process uses the folder. */
void run_dir_remove(const char *dir);
/* Removes the folders named prefix and PID of ringtap-fwd processes that no longer exist. */
void run_dir_sweep(const char *prefix);

#endif
