/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The line that hooks convert time stamps with, copied out instead of pointed to: no reader holds
 * it, so replacing it needs no grace period, hence no membarrier in a capture that just runs.
 *
 * The version is published after the line of its parity, and the next line goes to the other one.
 * A reader that copies the line of version v meets a writer only when the writer has published
 * v + 1 and begins v + 2; then the version has changed, and the reader copies again. So it repeats
 * only when a whole line has been published meanwhile, which happens once per tick (50 ms).
 */
#ifndef RINGTAP_PROBE_DPDK_CLOCK_LATCH_H
#define RINGTAP_PROBE_DPDK_CLOCK_LATCH_H

#include "common/clock.h"

struct rt_clock_latch {
	uint64_t version;
	struct rt_clock_line line[2]; /* by the version's lowest bit */
} __attribute__((aligned(RT_CACHE_LINE)));

static_assert(sizeof(struct rt_clock_latch) == RT_CACHE_LINE, "one line for a hook to read");

/* The last line published; all zeros: none yet. Any thread. */
static inline struct rt_clock_line rt_latch_read(const struct rt_clock_latch *l)
{
	for (;;) {
		/* Pairs with the release of version in rt_latch_publish(): the line is complete. */
		uint64_t v = rt_load_acquire(&l->version);
		const struct rt_clock_line *from = &l->line[v & 1];
		/* Pair with the releases of the words in rt_latch_publish(): a reader that finds a
		 * word of v + 2 finds version v + 1 or later below. */
		struct rt_clock_line out = {
			.tsc_base = rt_load_acquire(&from->tsc_base),
			.ns_base = rt_load_acquire(&from->ns_base),
			.mult = rt_load_acquire(&from->mult),
		};

		if (rt_likely(rt_load(&l->version) == v))
			return out;
	}
}

/* Single writer. */
static inline void rt_latch_publish(struct rt_clock_latch *l, const struct rt_clock_line *line)
{
	uint64_t v = l->version + 1;
	struct rt_clock_line *to = &l->line[v & 1];

	rt_store_release(&to->tsc_base, line->tsc_base);
	rt_store_release(&to->ns_base, line->ns_base);
	rt_store_release(&to->mult, line->mult);
	rt_store_release(&l->version, v);
}

#endif
