/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a process does not answer, as far as /proc shows it. */
#ifndef RINGTAP_READER_HALT_H
#define RINGTAP_READER_HALT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* True if the process is stopped by a signal or a debugger, or if its control group is frozen: err
 * then has a sentence that says so and how to continue it. False, err untouched: it runs, or /proc
 * does not show it (another PID namespace, hidepid). */
bool rt_halted(pid_t pid, char *err, size_t errlen);
/* The same for the process that listens at the other end of a connected Unix socket. */
bool rt_peer_halted(int fd, char *err, size_t errlen);
/* The same for the primary process of a DPDK runtime folder, which keeps a lock on a file there.
 * For sockets that take no more connections, and so have no peer. */
bool rt_folder_halted(int folder, char *err, size_t errlen);

#endif
