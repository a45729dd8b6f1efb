/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process does not answer because it is stopped, by /proc. */
#ifndef RINGTAP_READER_FIND_HALT_H
#define RINGTAP_READER_FIND_HALT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rt_folder;

/* False: /proc shows another PID namespace than that of this process, with other numbers. */
bool rt_proc_is_ours(void);

/* True if a signal or a debugger has stopped the process, or if its control group is frozen: err
 * then states that and how to continue it. False, err unchanged: it runs, or /proc does not show it
 * (another PID namespace, hidepid). */
bool rt_halted(pid_t pid, char *err, size_t errlen);
/* The same for the listener at the other end of a connected Unix socket. */
bool rt_peer_halted(int fd, char *err, size_t errlen);
/* The same for the primary process of a DPDK runtime folder, which locks a file there. For sockets
 * with a full backlog, which accept no connection. */
bool rt_folder_halted(const struct rt_folder *f, char *err, size_t errlen);

#endif
