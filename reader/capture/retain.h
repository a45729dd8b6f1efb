/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures that keep their packets: what they know of their chunks. */
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
	pthread_mutex_t lock;       /* protects all of this, and the capture's interfaces */
	struct rt_kept_ring *rings; /* by index in ringtap_capture.ins */
	struct rt_window *windows;
	uint32_t over; /* bit by source: no producer writes any more; atomic */
};

/* The keeping of packets. lock and unlock: nothing where the capture does not keep any. */
int rt_retain_begin(struct ringtap_capture *cap);
void rt_retain_end(struct ringtap_capture *cap);
/* Also keeps the packets of ring i, which is new. False: no memory. */
bool rt_retain_ring(struct ringtap_capture *cap, uint32_t i);
void rt_retain_lock(struct ringtap_capture *cap);
void rt_retain_unlock(struct ringtap_capture *cap);
/* Takes over what the rings have got, and gives back what has to go. Under the lock. */
void rt_retain(struct ringtap_capture *cap);

/* Time since which all is kept; 0: since the beginning. Under the lock. */
uint64_t rt_retain_since(const struct ringtap_capture *cap);

#endif
