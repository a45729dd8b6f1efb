/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a process with mapped code. */
#ifndef RINGTAP_USDT_PROCESS_FILES_H
#define RINGTAP_USDT_PROCESS_FILES_H

#include <sys/types.h>

/* A file with mapped code, by a path that leads to it from here; file is the name that its process
 * has for it. 0, or a value that ends the search. */
typedef int (*process_file_fn)(void *ctx, const char *path, const char *file);

/* Calls take for each, until it returns another value than 0, which is returned. -errno: the
 * process's map cannot be read. */
int process_files_each(pid_t pid, process_file_fn take, void *ctx);

#endif
