/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ring has which chunk of a session's buffer.
 *
 * A ring writes its chunks one after the other. Those before the reader's tail are free again; the
 * one that was freed first is written next. While the reader keeps up a ring has `window` chunks,
 * more than the caches hold: lines that the reader has read must have left its caches before they
 * are written again, or each has to be taken back. When it falls behind, the ring takes more from
 * those that no ring has, and gives them back later; the control thread takes them back from rings
 * that stand still. So the depth of the whole buffer serves whichever thread needs it.
 */
#ifndef RINGTAP_PROBE_CAPTURE_CHUNKS_H
#define RINGTAP_PROBE_CAPTURE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ring.h"

struct rt_chunks {
	uint8_t *data;
	uint64_t size;    /* bytes of a chunk */
	uint32_t shift;   /* log2 of it */
	uint32_t count;   /* chunks */
	uint32_t reserve; /* free chunks that are left to rings below their window, if several are
			     busy */
	uint32_t alone;   /* the same, if one is */
	uint32_t busy;    /* rings that began a chunk since the tick before the last one, or have
			     filled their window; atomic, not exact during a tick */
	uint32_t window;  /* chunks that a ring keeps while the reader keeps up */
	uint32_t rings;
	uint32_t order_count;
	uint32_t free_count; /* bits set in free; atomic, may be late */
	uint64_t *free;      /* bit by chunk: no ring has it; atomic */
	/* By ring: twice its chunk's number at the last rt_chunks_tick(); odd: the tick has counted
	 * it as busy. Atomic. */
	uint64_t *ticked;
};

/* For count chunks of size bytes in data, as laid out by rt_shm_lay_out(); data stays the
 * caller's. 0 or -ENOMEM. */
int rt_chunks_init(struct rt_chunks *c, uint8_t *data, uint64_t size, uint32_t count,
	uint32_t rings, uint32_t order_count);
void rt_chunks_free(struct rt_chunks *c);

/* Gives ring r->index its own chunks. r->order and r->pub_order have order_count zeroed entries. */
void rt_chunks_begin(struct rt_chunks *c, struct rt_ring *r);

/* Ends the ring's chunk and begins the next. r->tail has just been refreshed. False: there is
 * none. */
bool rt_chunks_next(struct rt_ring *r);

/* Takes back what rings do not need that have begun no chunk since the last call, and counts those
 * that are busy. Of the control thread, while others may be in all other functions. */
void rt_chunks_tick(struct rt_chunks *c, struct rt_ring *rings);

/* Sets what follows from head and r->order: also after a jump out of rt_chunks_next(). */
void rt_chunks_mend(struct rt_ring *r);

#endif
