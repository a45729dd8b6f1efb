/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a session, as the application maps it. The reader creates it and is charged for it;
 * docs/memory-model.md describes the sequence. Only tails are read back from it: every offset and
 * count that the probe uses is a private copy.
 */
#ifndef RINGTAP_PROBE_MEMORY_SHM_H
#define RINGTAP_PROBE_MEMORY_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/segment.h"

struct rt_shm {
	struct rt_seg_header *header;
	struct rt_seg_clock *clock;
	struct rt_seg_if *ifs;
	struct rt_seg_tap *taps;
	struct rt_seg_ring *rings;
	struct rt_seg_count *counts; /* ring_count * tap_capacity, of which rows are populated */
	struct rt_seg_tail *tails;
	uint32_t *orders; /* ring_count * order_count, for the reader */
	uint8_t *fates;   /* table of fates; NULL: none */
	struct rt_seg_fate_pool *fate_pools;
	char (*fate_reasons)[RT_NAME_LEN]; /* RT_FATE_REASONS */
	uint8_t *data;                     /* chunk_count * chunk_size */
	struct rt_seg_header h;            /* as laid out; private */
	uint64_t bytes[RT_FD_COUNT];       /* exact size of each memory; of data: of the first */
	uint64_t there;                    /* bytes of data that are mapped */
	uint64_t chunk_size;
	uint32_t chunk_count, order_count;
	uint32_t ring_count, share_count, tap_capacity;
	struct rt_seg_count *orphans; /* tap_capacity */
	uint64_t filled;              /* bytes of the segment that are populated */
	/* Reservations that hold data and segment, aligned. */
	void *data_base, *segment_base;
	uint64_t data_span, segment_span;
};

/* Seals: no process can shrink, grow or punch holes into it, or map it writable again. 0 or
 * -errno. */
int rt_shm_seal(int fd);

struct rt_shm_numbers {
	uint32_t rings, taps;
	uint32_t rows;   /* rows of counters that the reader populates: for these rings */
	uint32_t shares; /* shares of the buffer: one for each thread that probably polls, and some
			  */
	uint32_t least;  /* rings that must have their chunks, besides these */
	uint64_t buffer_size;
	uint64_t first; /* bytes of it that are there first, and more if rings need it; 0: all */
};

/* Fills in sizes and offsets; nothing is allocated. The buffer is rounded up to whole chunks, and
 * to RT_CHUNKS_OF_RING for each share, or for each of the least rings. */
void rt_shm_lay_out(struct rt_shm *m, const struct rt_shm_numbers *n);

/* Adds a table of fates to what has been laid out: 2^bits entries, with snap bytes of each packet
 * (a multiple of 64, RT_FATE_SNAP_MAX at most). history: the last RT_FATE_HISTORY of them are for
 * the mbuf's. */
void rt_shm_add_fates(struct rt_shm *m, uint32_t bits, uint32_t snap, bool history);

/* Bytes of the tables of fates and of their pools; 0: none. */
uint64_t rt_shm_fate_bytes(const struct rt_seg_header *h);

/* Maps, seals and checks the reader's memory, makes all of it present in the page tables, and fills
 * in header and tables; clock and counters are left as they are. fds stay the caller's and are not
 * needed any more. Takes milliseconds for each GiB and touches nothing but *m. 0 or -errno: a
 * sentence is in err (RT_TEXT_LEN bytes), nothing stays mapped. Undo with rt_shm_destroy(). */
int rt_shm_attach(struct rt_shm *m, const int fds[RT_FD_COUNT], char *err);
void rt_shm_destroy(struct rt_shm *m);

/* Maps one more memory of the reader behind m->there, with the same checks, while threads use the
 * rest. fd stays the caller's. 0 or -errno, with a sentence in err: m is as before. */
int rt_shm_grow(struct rt_shm *m, int fd, char *err);

/* Rows of counters that are populated. */
uint32_t rt_shm_rows(const struct rt_shm *m);
/* Populates rows up to this number, of memory that is charged to the application. */
void rt_shm_fill_rows(struct rt_shm *m, uint32_t rows);

#endif
