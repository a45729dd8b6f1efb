/* SPDX-License-Identifier: BSD-3-Clause */
/* A probe in a process whose file has been deleted: bpftrace cannot reach it by its name. */
#ifndef RINGTAP_USDT_DELETED_PROBE_H
#define RINGTAP_USDT_DELETED_PROBE_H

#include <sys/types.h>

#define DELETED_PROBE_EVENTS 16

struct deleted_probe {
	pid_t pid;
	char path[64]; /* by which it is reached; "": the file is there */
	int fd[DELETED_PROBE_EVENTS];
	unsigned fd_count;
};

void deleted_probe_find(struct deleted_probe *d, pid_t pid);
/* Puts its path where the program has usdt:*:ringtap:. The caller frees. NULL: no memory. */
char *deleted_probe_names(const struct deleted_probe *d, const char *program);
/* Raises the semaphores of the program's events, until deleted_probe_close(). 0 or -errno. */
int deleted_probe_raise(struct deleted_probe *d, const char *program);
void deleted_probe_close(struct deleted_probe *d);

#endif
