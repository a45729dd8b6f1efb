/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's memory in the reader: no value in it is used before it is checked. */
#ifndef RINGTAP_READER_MEMORY_SEGMENT_H
#define RINGTAP_READER_MEMORY_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/segment.h"

struct rt_segment {
	const struct rt_seg_header *live; /* shared: only the fields that change are read from it */
	struct rt_seg_header h;           /* private copy, checked */
	const struct rt_seg_clock *clock;
	const struct rt_seg_if *ifs;
	const struct rt_seg_tap *taps;
	const struct rt_seg_ring *rings;
	const struct rt_seg_count *counts, *orphans;
	struct rt_seg_tail *tails;
	const uint32_t *orders; /* ring_count * order_count */
	const uint8_t *data;    /* chunk_count * chunk_size bytes */
	/* Reservations that hold data and segment, aligned. */
	void *data_base, *live_base;
	size_t data_span, live_span;
};

/* Maps the memory that the probe has initialized. more: bytes of the buffer that RT_FD_DATA does
 * not have; rt_segment_map_more() maps them. fds stay the caller's, and so does tails, the mapping
 * of the whole third memory, which is used until rt_segment_unmap(). -EPROTOTYPE: another version;
 * -EBADMSG: not a segment, or its parts are inconsistent or not sealed; -ENOMEM, -errno. err has a
 * sentence. Undo with rt_segment_unmap(). */
int rt_segment_map(struct rt_segment *s, const int fds[RT_FD_COUNT], struct rt_seg_tail *tails,
	uint64_t more, char *err, size_t errlen);
/* Maps a memory of `more`, which has a size that cannot change and may be sparse still, at this
 * byte of the buffer. 0 or -errno. */
int rt_segment_map_more(struct rt_segment *s, int fd, uint64_t at, uint64_t bytes);
/* No faults while reading it, once it is populated. It must not be swapped out under a polling
 * thread; RLIMIT_MEMLOCK may forbid that. */
void rt_segment_hold(const struct rt_segment *s, uint64_t at, uint64_t bytes);
void rt_segment_unmap(struct rt_segment *s);

#define RT_SEG_HEADER 256 /* bytes; of every kind of segment */

/* Can a session have such chunks? */
bool rt_chunks_valid(uint64_t size, uint64_t count, uint64_t order_count, uint64_t shares);

/* Can a session have such a table of fates? */
bool rt_fates_valid(uint32_t bits, uint32_t stride, uint32_t snap);

/* The size of a memfd of ordinary pages that cannot shrink under us (that would kill us with
 * SIGBUS) and has been filled, as reading a hole allocates memory; else -1. */
int64_t rt_sealed_size(int fd);
/* Whether a table is after the header, aligned, and within the segment. */
bool rt_table_fits(
	uint64_t segment_size, uint64_t offset, uint64_t count, uint64_t each, uint64_t align);

/* The first ring from this one on that a thread uses, or has used; ring_count: none. */
uint32_t rt_segment_ring_next(const struct rt_segment *s, uint32_t from);
/* Counters by tap of each ring that is used, and of threads without a ring. NULL ends. */
const struct rt_seg_count *rt_segment_row(const struct rt_segment *s, uint32_t *from);

/* The current counts, limited to the capacity. */
uint32_t rt_segment_if_count(const struct rt_segment *s);
uint32_t rt_segment_tap_count(const struct rt_segment *s);

#endif
