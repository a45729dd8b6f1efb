/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's run-time folder, which EAL itself leaves behind. Another process of the same name may
 * use it, too. */
#ifndef RINGTAP_FWD_RUN_DIR_H
#define RINGTAP_FWD_RUN_DIR_H

#include <limits.h>
#include <stdbool.h>

/* Where EAL will make the folder of the name. As in lib/eal/unix, eal_create_runtime_dir(). */
void run_dir_path(char out[PATH_MAX], const char *name);
bool run_dir_exists(const char *dir);
/* Whether another process holds the lock of the folder's config or answers at one of its sockets.
 */
bool run_dir_used(const char *dir);
/* Removes what EAL, its telemetry and the probe put there, then the folder if nothing else is left;
 * nothing while another process uses it. */
void run_dir_remove(const char *dir);
/* Removes the folders that processes of ours left behind: those called prefix and the number of a
 * process that is gone. */
void run_dir_sweep(const char *prefix);

#endif
