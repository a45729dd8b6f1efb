/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one ethdev callback per (port, queue, direction). The control thread makes hooks and never
 * frees them, so a thread that is late in a callback list still finds valid memory.
 */
#ifndef RINGTAP_PROBE_HOOK_HOOK_H
#define RINGTAP_PROBE_HOOK_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/segment.h"
#include "probe/dpdk/clock_latch.h"
#include "probe/dpdk/ports.h"
#include "tap.h"
#include "thread_set.h"

#define RT_HOOK_TAPS    16 /* sessions on one port, queue and direction */
#define RT_HOOK_WAITING 16 /* most removed callbacks of a hook that wait to be freed */

/* Work of a hook; immutable once linked. */
struct rt_tapset {
	uint32_t count;
	uint32_t wait_from; /* the taps from here on may wait for their readers */
	bool gives_ids;     /* to received packets */
	bool uses_ids;      /* sent packets keep their ids; see rt_ids_use() */
	bool fates;         /* some taps are of sessions with fates */
	uint8_t only_fates; /* index + 1 of the only tap of those; 0: none, or several */
	bool pair;    /* two taps: that one, and one that could be that of only, but for ids */
	bool sampled; /* some taps are of sessions that take one of N packets */
	uint16_t port;
	/* Session of its only tap, if that takes its times from the TSC, without ids; else NULL. */
	struct rt_session *only;
	struct rt_tap *tap[RT_HOOK_TAPS];
	struct rt_session *only_sampled; /* as only, if it takes one of N packets */
	struct rt_tapset *next_free;     /* control thread: waiting for a grace period */
};

struct rt_stat_quick;
struct rt_stat_site;
struct rt_deferred;

struct rt_hook {
	struct rt_tapset *taps;       /* NULL: nothing to do */
	struct rt_stat_site *stats;   /* NULL: nothing to count */
	struct rt_stat_quick *column; /* column of statistics; NULL: none */
	struct rt_thread_set seen;    /* thread slots that have called it */
	uint64_t orphaned; /* packets of threads without a slot, and of nested calls; atomic */
	uint16_t port, queue;
	uint8_t direction;
	/* Under the hooks' lock. */
	uint32_t users;             /* sessions and statistics that need it in place */
	uint32_t waiting;           /* removed callbacks that are not freed yet */
	uint64_t removed_ms;        /* when the last one was removed; 0: never */
	const void *callback;       /* ethdev's handle; NULL: not installed */
	struct rt_deferred *parted; /* the record of the callback's removal, allocated in advance so
				       that removal needs no memory */
} __attribute__((aligned(RT_CACHE_LINE)));

/* By port, direction and queue. */
extern struct rt_hook **rt_hooks[RT_MAX_PORTS][2];

/* For threads that call the hook themselves, without ethdev. NULL: nothing has needed it so far. */
static inline struct rt_hook *rt_hook_find(uint16_t port, uint16_t queue, enum rt_direction dir)
{
	/* Pair with the releases in rt_hook_get(). */
	struct rt_hook **table = rt_load_acquire(&rt_hooks[port][dir]);

	return table ? rt_load_acquire(&table[queue]) : NULL;
}

/* The argument of this thread's last ringtap_probe_received_until(); 0: never called. */
extern __thread uint64_t rt_hook_until __attribute__((tls_model("initial-exec")));

/* A lock of its own protects what hooks do and whether they are installed. It is held for
 * microseconds: nothing is allocated and no driver is called under it. */

/* In the application's thread that adds or removes a port, after its generation has changed:
 * unlinks everything from the port's hooks and removes them. When it returns, no packet of the
 * next port with this id can count for the last one; generations keep it so. Any thread. */
void rt_hook_cut(uint16_t port);

/* For all functions that follow the control lock is held. */

/* The hook of a port's queue, made on first use. NULL: out of memory. */
struct rt_hook *rt_hook_get(uint16_t port, uint16_t queue, enum rt_direction dir);

/* Installs it for the first user, removes it after the last; soon after an earlier removal it stays
 * in place for the next user. 0 or -errno. */
int rt_hook_use(struct rt_hook *h);
void rt_hook_unuse(struct rt_hook *h);

/* Links and unlinks a session's tap; the old set is freed after a grace period. generation: of
 * the port that the tap is for. -ENODEV: the port id now belongs to another port; -ENOSPC:
 * RT_HOOK_TAPS sessions are linked already; -ENOMEM. Unlinking never fails, and the tap may have
 * been cut off before. */
int rt_hook_link(struct rt_hook *h, struct rt_tap *tap, uint32_t generation);
void rt_hook_unlink(struct rt_hook *h, struct rt_tap *tap);

/* The same for the hook's place in the statistics; one at a time. False: the port id belongs to
 * another port. */
bool rt_hook_count(struct rt_hook *h, struct rt_stat_site *site, struct rt_stat_quick *column,
	uint32_t generation);
void rt_hook_uncount(struct rt_hook *h, const struct rt_stat_site *site);
/* The site has got its column while it may be counting. */
void rt_hook_give_column(
	struct rt_hook *h, const struct rt_stat_site *site, struct rt_stat_quick *column);

/* Frees tap sets and removed callbacks whose grace period is over. True: no tap set is left.
 * Callbacks may stay until their threads enter a hook again. */
bool rt_hook_reclaim(void);

/* Removes callbacks without users that were left in place, or that ethdev refused to remove.
 * at_once: also those of hooks that have removed another one just now. */
void rt_hook_remove_unused(bool at_once);

/* Sets the line by which hooks convert the TSC. */
extern struct rt_clock_latch rt_hook_clock;
void rt_hook_set_clock(const struct rt_clock_line *line);

#endif
