/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's end of a ring, private to the probe. Only the polling thread that owns it
 * writes it; the control thread sets it up before the session is armed.
 */
#ifndef RINGTAP_COMMON_RING_H
#define RINGTAP_COMMON_RING_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "atomics.h"
#include "segment.h"

struct rt_chunks;

struct rt_ring {
	uint8_t *chunk;    /* the one that holds head */
	uint64_t mask;     /* chunk_size - 1 */
	uint64_t head;     /* bytes written, also those not yet published */
	uint64_t limit;    /* head must not pass it: the end of the chunk, less the guard; atomic */
	uint64_t tail;     /* the last tail that was looked at */
	uint8_t own_ahead; /* ask for lines before they are written: RT_OWN_* of
			      probe/capture/own_trial.h; a buffer in the L2 cache is slowed by it */
	bool held;         /* its thread receives packets that are stamped before: it stays busy */
	bool used;         /* announced to the reader: rt_session_begin_ring() */
	uint8_t index;     /* index of its thread's slot */
	uint16_t open;     /* index of the tap whose burst is being written, + 1; 0: none */
	uint8_t bad_tail;  /* the reader lied: the control thread ends the session; atomic */
	bool gave_up;      /* on-full=wait timed out, and no room since */
	uint64_t last_ns;
	struct rt_seg_ring *pub;
	const struct rt_seg_tail *peer; /* written by the reader: believe nothing */
	struct rt_seg_count *counts;    /* row of this ring, by tap index */
	uint64_t *pending;              /* losses not yet reported in epb_dropcount, by tap index */
	uint32_t gaps;                  /* taps with such losses */
	uint32_t reused;                /* chunk that its thread was about to write again */
	struct rt_chunks *chunks;       /* the session's chunks; see probe/capture/chunks.h */
	uint32_t id[2]; /* the chunk of head, and the last or next one: by number, modulo 2 */
	uint32_t *
		pub_order; /* chunk by its number in the ring, modulo order_count; for the reader */
	uint64_t oldest;   /* the first chunk that the ring still has; see chunks.c. Atomic */
} __attribute__((aligned(128)));
static_assert(sizeof(struct rt_ring) == 128, "two lines: the prefetcher takes pairs");

/* Looks at the reader's tail. False: it is not between the last one and head. */
static inline bool rt_ring_refresh(struct rt_ring *r)
{
	/* Pairs with the release in the reader's ringtap_capture_release(): it has finished
	 * reading what we overwrite. */
	uint64_t tail = rt_load_acquire(&r->peer->tail);

	if (rt_unlikely(tail - r->tail > r->head - r->tail)) {
		rt_store(&r->bad_tail, 1);
		return false;
	}
	r->tail = tail;
	return true;
}

/* n packets of a tap are lost: its next record says so. */
static inline void rt_ring_miss(struct rt_ring *r, uint32_t tap, uint64_t n)
{
	r->gaps += n && !r->pending[tap];
	r->pending[tap] += n;
}

static inline void rt_ring_begin(struct rt_ring *r)
{
	/* Before the TSC is read; see reader/capture/merge.c for what the reader makes of it. */
	rt_store(&r->pub->busy, 1);
}

static inline void rt_ring_publish(struct rt_ring *r)
{
	/* Pairs with the acquire in rt_in_refresh(): with this time, all heads before it are read.
	 */
	rt_store_release(&r->pub->last_ns, r->last_ns);
	/* Pairs with the acquire of head in rt_in_refresh(). */
	rt_store_release(&r->pub->head, r->head);
}

static inline void rt_ring_end(struct rt_ring *r)
{
	/* Pairs with the acquire of busy in rt_in_refresh(): with 0, the head before it is read. */
	rt_store_release(&r->pub->busy, 0);
}

#endif
