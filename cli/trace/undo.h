/* SPDX-License-Identifier: BSD-3-Clause */
/* Undoes what was switched on in other processes, even if this one is killed */
#ifndef RINGTAP_CLI_TRACE_UNDO_H
#define RINGTAP_CLI_TRACE_UNDO_H

#include <stdint.h>
#include <sys/types.h>

struct trace_undo {
	pid_t pid;
	int fd;
};

/* Starts a process that calls undo(ctx) on trace_undo_now() or when this process ends. It has no
 * output. 0 or -errno, printed. */
int trace_undo_start(struct trace_undo *u, int (*undo)(void *ctx), void *ctx);
/* Starts undo() and waits for it. 0: it returned 0, or nothing was started; -EIO: it did not;
 * -ETIMEDOUT: it goes on in the background. */
int trace_undo_now(struct trace_undo *u, uint64_t patience_ns);

#endif
