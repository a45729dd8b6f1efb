/* SPDX-License-Identifier: BSD-3-Clause */
/* What a capture that keeps its packets knows of its chunks. */
#ifndef RINGTAP_READER_CAPTURE_RETAIN_H
#define RINGTAP_READER_CAPTURE_RETAIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture.h"

/* A ring. Chunks have the numbers of docs/format.md. */
struct rt_kept_ring {
	uint64_t *first_ns; /* time of the first record of chunk n, at n modulo order_count */
	uint64_t known;     /* chunks before it have one */
	uint64_t oldest;    /* the first chunk that is kept: where the tail is */
	uint64_t last;      /* the chunk that is being written */
	uint64_t seen;      /* oldest, as any change of chunks since the last look has met it */
	uint64_t floor;     /* the ring has no chunk before it */
	uint64_t window;    /* chunks that a ring kept at least, at the last look */
	uint64_t still_ns;  /* CLOCK_MONOTONIC: no chunk begun since, with still as oldest */
	uint64_t still;
	bool writes; /* began a chunk since the last look */
};

struct rt_retention {
	pthread_mutex_t lock;       /* of all of this, and of the capture's interfaces */
	struct rt_kept_ring *rings; /* by index in ringtap_capture.ins */
	struct rt_window *windows;
	uint32_t over; /* bit by source: no producer writes any more; atomic */
};

/* Part of a capture's packets, which another thread may read. */
struct rt_window {
	struct ringtap_capture *of;
	uint64_t from_ns, to_ns;
	uint64_t since_ns; /* as in struct ringtap_kept */
	/* Position by ring: what is before it may be given back. Release; pairs with the acquire in
	 * pinned(). */
	uint64_t *pins;
	struct rt_window *next;
};

/* Time since which all is kept; 0: since the beginning. Under the lock. */
uint64_t rt_retain_since(const struct ringtap_capture *cap);

#endif
