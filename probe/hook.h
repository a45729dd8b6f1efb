/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one ethdev callback per (port, queue, direction). Hooks are made by the control thread and
 * never freed, so a thread that is late in a callback list finds valid memory.
 */
#ifndef RINGTAP_PROBE_HOOK_H
#define RINGTAP_PROBE_HOOK_H

#include <stdint.h>

#include "common/clock.h"
#include "session.h"

#define RT_HOOK_TAPS 16 /* sessions on one port, queue and direction */

/* What a hook does; immutable once linked. */
struct rt_tapset {
	uint32_t count;
	uint32_t wait_from; /* the taps from here on may wait for their readers */
	struct rt_tap *tap[RT_HOOK_TAPS];
	struct rt_tapset *next_free; /* control thread: waiting for a grace period */
};

struct rt_hook {
	struct rt_tapset *taps;      /* NULL: nothing to do */
	struct rt_fig_site *figures; /* NULL: nothing to count */
	struct rt_fig_quick *column; /* of figures, if it has one */
	struct rt_thread_set seen;   /* thread slots that have called it */
	uint64_t orphaned; /* packets of threads without a slot, and of nested calls; atomic */
	uint32_t users;    /* sessions, and the figures, that want it in place */
	uint16_t port, queue;
	uint8_t direction;
	const void *callback; /* ethdev's handle; NULL: not installed */
} __attribute__((aligned(RT_CACHE_LINE)));

/* How long a removed callback is kept at least; a variable for the tests' sake. */
extern uint64_t rt_limbo_ms;

/* ringtap_probe_received_until() of this thread; 0: never called. */
extern __thread uint64_t rt_hook_until __attribute__((tls_model("initial-exec")));

/* All functions: control lock held. */

/* The hook of a port's queue, made on first use. NULL: out of memory. */
struct rt_hook *rt_hook_get(uint16_t port, uint16_t queue, enum rt_direction dir);

/* Puts it in place / takes it away after the last user. 0 or -errno. */
int rt_hook_use(struct rt_hook *h);
void rt_hook_unuse(struct rt_hook *h);

/* Links and unlinks a session's tap; what was linked before is freed after a grace period.
 * -ENOSPC: RT_HOOK_TAPS sessions are there already; -ENOMEM. Unlinking never fails. */
int rt_hook_link(struct rt_hook *h, struct rt_tap *tap);
void rt_hook_unlink(struct rt_hook *h, struct rt_tap *tap);

/* Frees what has outlived its grace period: old tap sets, removed callbacks. True: no tap set is
 * left. Callbacks may stay until their threads poll a hook again. */
bool rt_hook_reclaim(void);

/* Tries again where ethdev refused to remove a callback. */
void rt_hook_retry_removals(void);

/* Sets the line that hooks convert the TSC with. False: a hook may still use the line that
 * would be overwritten; the current one stays. */
bool rt_hook_set_clock(const struct rt_clock_line *line);

#endif
