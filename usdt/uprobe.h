/* SPDX-License-Identifier: BSD-3-Clause */
/* Breakpoints of perf at the places of USDT events. */
#ifndef RINGTAP_USDT_UPROBE_H
#define RINGTAP_USDT_UPROBE_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include "events.h"

#define USDT_PLACES_MAX 64 /* places of an event in one process */

/* Opens an event of perf at a place in a file, in one thread (or the process with this id), and
 * raises the semaphore of the place until it is closed. attr has what is sampled. A descriptor;
 * -ENOTSUP: the kernel has no uprobes; -errno. */
int uprobe_open(
	struct perf_event_attr attr, const char *path, const struct usdt_place *place, pid_t tid);

#endif
