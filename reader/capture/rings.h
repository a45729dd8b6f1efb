/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of a capture, and their merge by time. */
#ifndef RINGTAP_READER_CAPTURE_RINGS_H
#define RINGTAP_READER_CAPTURE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/memory/segment.h"
#include "ringtap/reader.h"

struct ringtap_capture;
struct rt_source;

/* A ring in the merge. Positions are those of docs/format.md. */
struct rt_in {
	const uint8_t *data;   /* all chunks */
	const uint32_t *order; /* shared: believe nothing */
	uint64_t size;         /* bytes of all chunks */
	uint64_t mask;         /* bytes of a chunk - 1 */
	uint32_t shift;        /* log2 of a chunk's bytes */
	uint32_t chunk_count, order_mask;
	const uint8_t *chunk; /* that holds pos, once it has been looked for */
	uint64_t end;         /* position of its end; 0: none yet */
	uint64_t tail;        /* released */
	uint64_t pos;         /* handed out up to here */
	uint64_t head;        /* published, when it was last read */
	uint64_t fetched;     /* lines before it have been prefetched */
	uint64_t stale;       /* records before it may have passed another filter */
	uint64_t key;         /* time of the record at pos, valid if pos < head; never goes back */
	uint64_t now_ns;      /* when head was last read */
	uint64_t busy_head, busy_last_ns;
	uint64_t busy_since_ns;             /* CLOCK_MONOTONIC; see rt_in_refresh() */
	uint64_t pause_written, pause_lost; /* as in struct ringtap_ring */
	uint64_t looked;                    /* head at the last look */
	uint64_t lost, look_lost; /* by the full buffer, when they were last counted, and since */
	uint32_t source, index;
	bool keyed;         /* key is that of the record at pos */
	struct rt_in *next; /* list of the rings that have records */
};

/* Takes over the rings that threads have begun to use. Those of which it does not know yet will
 * have records of later times only than the clock had before the call. */
void rt_rings_follow(struct ringtap_capture *cap);
/* Whether there are any. */
bool rt_rings_due(const struct ringtap_capture *cap);

/* The watermark of the rings of a source that no thread uses yet; now_ns as below, taken before
 * rt_rings_follow(). */
uint64_t rt_source_mark(const struct rt_source *s, uint64_t now_ns);
/* Looks at a ring's producer: takes over head, and returns the watermark: every record that is
 * published later will bear a time not before it. now_ns must have been taken before; mono_ns, of
 * CLOCK_MONOTONIC, tells how long a producer stands still: now_ns may jump. -EBADMSG via
 * cap->corrupt.
 */
uint64_t rt_in_refresh(
	struct ringtap_capture *cap, struct rt_in *in, uint64_t now_ns, uint64_t mono_ns);

/* Goes on to the first record whose time is not before from_ns, or to the end of what is there. */
void rt_in_skip(struct ringtap_capture *cap, struct rt_in *in, uint64_t from_ns);

/* Merges the records up to the watermark into runs. Returns their number. */
unsigned rt_merge(
	struct ringtap_capture *cap, uint64_t watermark, struct ringtap_run *runs, unsigned max);

#endif
