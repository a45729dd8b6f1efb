/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What became of received packets: offered to a port, not offered, unknown, or still open; see
 * docs/fate.md. A table beside the mbufs has the packet that each was last received with. Called
 * from hooks, with the ids of ids.h in the mbufs; nothing calls it yet.
 */
#ifndef RINGTAP_PROBE_CAPTURE_FATE_H
#define RINGTAP_PROBE_CAPTURE_FATE_H

#include <rte_mbuf.h>

#include "common/segment.h"

/* Of a site (receiving port and queue), in the row of one thread: only that writes it.
 * seen - offered - not_offered - unknown, over all rows, are open. */
struct rt_fate_count {
	uint64_t seen, offered, not_offered, unknown;
	uint64_t inferred; /* of the unknown ones: likely offered, without the flag of their id */
};

struct rt_fate_entry {
	uint64_t mbuf; /* its address; claimed once, by a compare-and-swap */
	uint64_t id;
	uint64_t tsc; /* of the reception */
	uint32_t site;
	uint32_t state; /* enum rt_fate_state */
};
static_assert(sizeof(struct rt_fate_entry) == 32, "two in a line");

struct rt_fates {
	struct rt_fate_entry *entries;
	uint32_t shift; /* of the hash: 64 - log2 of their number */
};

/* A table for so many mbufs, populated. 0 or -ENOMEM. */
int rt_fates_make(struct rt_fates *f, uint32_t mbufs);
void rt_fates_free(struct rt_fates *f);

/* In an RX hook, after rt_ids_stamp(). row: of this thread, by site. */
void rt_fate_received(struct rt_fates *f, struct rt_fate_count *row, uint32_t site,
	struct rte_mbuf **pkts, unsigned n, uint64_t tsc);

/* In a TX hook, before rt_ids_use(). */
void rt_fate_offered(
	struct rt_fates *f, struct rt_fate_count *row, struct rte_mbuf **pkts, unsigned n);

#endif
