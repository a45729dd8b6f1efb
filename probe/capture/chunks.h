/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ring has which chunk of a session's buffer.
 *
 * A ring takes its first chunk for its first record. It writes its chunks one after the other.
 * Those before the reader's tail are free again; the one that was freed first is written next.
 * While the reader keeps up a ring has `window` chunks, more than the caches hold: lines that the
 * reader has read must have left its caches before they are written again, or each has to be taken
 * back. When it falls behind, the ring takes more from those that no ring has, and gives them back
 * later; the control thread takes them back from rings that stand still. So the depth of the whole
 * buffer serves whichever thread needs it. What rings keep follows the number of those that write:
 * rings that no thread uses cost nothing.
 */
#ifndef RINGTAP_PROBE_CAPTURE_CHUNKS_H
#define RINGTAP_PROBE_CAPTURE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ring.h"
#include "probe/capture/own_trial.h"
#include "probe/hook/thread_set.h"

/* By ring and by share of the buffer. */
struct rt_chunks_part {
	uint64_t ticked; /* twice the ring's chunk at the last rt_chunks_tick(); odd: the tick has
			  * counted it as busy. Atomic */
	uint32_t home;   /* the ring takes chunks from this one on; atomic */
	uint32_t first;  /* chunk of the share; atomic */
	int32_t node;    /* NUMA node of the share, or RT_NODE_UNKNOWN */
	uint32_t stole;  /* the ring has searched others for a chunk since the last tick; atomic */
	uint32_t still;  /* ticks since the ring began a chunk; control thread */
};

struct rt_chunks {
	uint8_t *data;
	uint64_t size;  /* bytes of a chunk */
	uint32_t shift; /* log2 of it */
	uint32_t count; /* chunks */
	uint32_t there; /* chunks that have memory: rings can have these; control thread */
	uint32_t begun; /* the first `there`; control thread */
	uint32_t fresh; /* free chunks that are left to rings with fewer than RT_CHUNKS_OF_RING;
			 * atomic */
	/* Follow the rings that write; atomic, rt_chunks_tick(). */
	uint32_t reserve; /* free chunks that are left to rings below their window, if several are
			     busy */
	uint32_t alone;   /* the same, if one is */
	uint32_t window;  /* chunks that a ring keeps while the reader keeps up */
	uint32_t busy;    /* rings that began a chunk since the tick before the last one, or have
			     filled their window; atomic, not exact during a tick */
	uint32_t shares;
	uint32_t order_count;
	uint32_t free_count; /* bits set in free; atomic, may be late */
	uint64_t *free;      /* bit by chunk: no ring has it; atomic */
	uint32_t *next;      /* by chunk: the one that its ring wrote after it; atomic */
	struct rt_ring *rings;
	struct rt_chunks_part *parts;
	struct rt_own_trial *trials; /* by ring */
	struct rt_thread_set used;   /* rings that a thread uses, or has used */
};

/* For count chunks of size bytes in data, as laid out by rt_shm_lay_out(), and RT_MAX_RINGS rings;
 * data and rings stay the caller's. The buffer is one share. 0 or -ENOMEM. */
int rt_chunks_init(struct rt_chunks *c, struct rt_ring *rings, uint8_t *data, uint64_t size,
	uint32_t count, uint32_t order_count);
void rt_chunks_free(struct rt_chunks *c);

/* Shares are parts of equal size, for as many threads as will probably poll, on the NUMA nodes
 * where these are. Before the first ring is used. */
void rt_chunks_share(struct rt_chunks *c, uint32_t shares, const int32_t *node);

/* Rings can have the first `there` chunks only, until the memory of more has come. After
 * rt_chunks_share(), before the first ring is used. */
void rt_chunks_withhold(struct rt_chunks *c, uint32_t there);
/* The memory of the chunks before this one is populated: rings can have them from here on. Of the
 * control thread, while others may be in all functions but those above. */
void rt_chunks_offer(struct rt_chunks *c, uint32_t there);

/* Makes r, one of the rings, a ring without chunks. r->index and r->pub_order, of order_count
 * entries, are set. */
void rt_chunks_empty(struct rt_chunks *c, struct rt_ring *r);

/* A thread on this NUMA node is about to use the ring. More than once changes nothing but its place
 * in the buffer. */
void rt_chunks_use(struct rt_chunks *c, const struct rt_ring *r, int32_t node);

/* Ends the ring's chunk and begins the next, or the first. r->tail has just been refreshed. False:
 * there is none. */
bool rt_chunks_next(struct rt_ring *r);

/* Takes back what rings do not need that have begun no chunk since the last call, counts those
 * that are busy, and sets what each may keep. Of the control thread, while others may be in all
 * other functions. */
void rt_chunks_tick(struct rt_chunks *c);

/* Sets what follows from head and the chunks that r has: also after a jump out of
 * rt_chunks_next(). */
void rt_chunks_mend(struct rt_ring *r);

/* The first chunk that the ring still has, and its number. False: it has none. */
bool rt_chunks_oldest(const struct rt_ring *r, uint64_t *number, uint32_t *id);

#endif
