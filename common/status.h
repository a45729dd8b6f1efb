/* SPDX-License-Identifier: BSD-3-Clause */
/* Values in files of /proc and /sys that have a line for each. */
#ifndef RINGTAP_COMMON_STATUS_H
#define RINGTAP_COMMON_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The text behind key in the first line that begins with it. False: none; value stays. */
bool rt_file_value(const char *path, const char *key, char *value, size_t size);
/* The text of a key in the status of a process or thread; "": none. See proc(5). */
void rt_process_status(pid_t pid, const char *key, char *value, size_t size);
/* The number of a process or thread in its own PID namespace. 0: unknown. */
pid_t rt_own_pid(pid_t pid);

#endif
