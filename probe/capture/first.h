/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first bytes or packets of each flow: a session with RT_OPEN_FIRST captures a packet if fewer
 * bytes or packets of its flow came before it than its limit; all others are cut. A flow has one
 * direction, one port and direction of the application, and one polling thread, which remembers it
 * in a table of constant size: in sets of RT_FIRST_WAYS, of which the one that was seen last the
 * longest ago is evicted for another one. Packets without IP have no flow and are captured.
 */
#ifndef RINGTAP_PROBE_CAPTURE_FIRST_H
#define RINGTAP_PROBE_CAPTURE_FIRST_H

#include <rte_mbuf.h>

#include "common/hash.h"
#include "common/proto.h"
#include "common/ring.h"
#include "probe/hook/tap.h"

#define RT_FIRST_WAYS  4u
#define RT_FIRST_BURST 64u  /* packets that rt_first_choose() takes */
#define RT_FIRST_HEAD  256u /* bytes of a packet in which its headers are read */

/* The table is in the reader's memory: it may change, but no bound or address depends on it. */
struct rt_first_flow {
	uint64_t key;  /* a keyed hash; 0: free */
	uint32_t used; /* bytes or packets of the limit */
	uint32_t seen; /* when it was seen last: packets of the thread */
};

/* A thread's part. */
struct rt_first_state {
	struct rt_first_flow *flows;
	uint32_t now; /* packets */
} __attribute__((aligned(64)));

struct rt_first {
	struct rt_msg_first m;
	uint32_t mask; /* sets - 1 */
	struct secret secret;
	struct rt_first_state state[RT_MAX_RINGS]; /* by slot of its thread */
};

/* -ENOMEM. The caller frees *out with free(), and sets the tables of the threads, zeroed. */
int rt_first_make(struct rt_first **out, const struct rt_msg_first *m);

static inline uint64_t rt_first_bytes(const struct rt_msg_first *m)
{
	return sizeof(struct rt_first_flow) << m->bits;
}

/* Hot path. Stores those of n packets (RT_FIRST_BURST at most) that are captured, and returns their
 * number; chosen may be pkts. Counts flows that are evicted. Packets that cannot be read are among
 * those captured: their copy counts them. */
unsigned rt_first_choose(struct rt_first *f, struct rt_ring *r, const struct rt_tap *tap,
	struct rte_mbuf **pkts, unsigned n, struct rte_mbuf **chosen);

#endif
