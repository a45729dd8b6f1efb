/* SPDX-License-Identifier: BSD-3-Clause */
/* The three memfds of a session, made and faulted in by the control thread. */
#ifndef RINGTAP_PROBE_SHM_H
#define RINGTAP_PROBE_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/segment.h"

struct rt_shm {
	int fd[RT_FD_COUNT]; /* -1: none */
	struct rt_seg_header *header;
	struct rt_seg_clock *clock;
	struct rt_seg_if *ifs;
	struct rt_seg_tap *taps;
	struct rt_seg_ring *rings;
	struct rt_seg_count *counts;
	struct rt_seg_tail *tails;
	uint8_t **data; /* ring_count areas, each mapped twice back to back */
	uint64_t segment_size, ring_size, tails_size;
	uint32_t ring_count, tap_capacity;
	void *data_base; /* reservation that holds all data areas */
	uint64_t data_span;
};

/* Makes one memfd, maps it and faults it in. NULL: no memory; *fd is then -1. */
void *rt_shm_make(int *fd, const char *name, uint64_t size);
/* Nobody can shrink or grow it any more; nobody new can write it unless peer_writes. */
int rt_shm_seal(int fd, bool peer_writes);

/* Rounds a wish to what a ring can be: a power of two, at least RT_RING_SIZE_MIN and a page. */
uint64_t rt_shm_ring_size(uint64_t wish);

/* Makes, seals, maps and faults in everything; header and offsets are filled in, clock and
 * tables are zero. 0 or -errno (-ENOMEM: not enough memory). Undo with rt_shm_destroy(). */
int rt_shm_create(struct rt_shm *m, uint32_t rings, uint64_t ring_size, uint32_t taps);
void rt_shm_destroy(struct rt_shm *m);

#endif
