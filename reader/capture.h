/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a capture: sources (applications), their rings, and the merge. */
#ifndef RINGTAP_READER_CAPTURE_H
#define RINGTAP_READER_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/segment.h"
#include "conn.h"
#include "memory.h"
#include "ringtap/reader.h"
#include "segment.h"

#define RT_MAX_SOURCES 16
#define RT_FOREVER     UINT64_MAX

/* One ring as the merge sees it. Positions as in docs/format.md. */
struct rt_in {
	const uint8_t *data;
	uint64_t size;    /* power of two */
	uint64_t tail;    /* released */
	uint64_t pos;     /* handed out up to here */
	uint64_t head;    /* published, from the last look */
	uint64_t fetched; /* lines before it have been prefetched */
	uint64_t stale;   /* what lies before it may have passed another filter */
	uint64_t key;     /* time of the record at pos, valid if pos < head; never goes back */
	uint64_t now_ns;  /* of the last look */
	uint64_t busy_head, busy_last_ns;
	uint64_t busy_since_ns; /* CLOCK_MONOTONIC; see rt_in_look() */
	uint32_t source, index;
	bool keyed;         /* key is that of the record at pos */
	struct rt_in *next; /* in rt_merge(): of those that hold something */
};

struct rt_source {
	struct ringtap_conn *conn;
	struct rt_memory memory;
	struct rt_segment seg;
	struct rt_clock_line line;
	uint32_t *if_ids; /* file-wide id by local id; RT_MAX_IFS */
	uint32_t if_known;
	uint32_t target_count;
	bool started;
	bool dead;      /* the connection has ended by itself */
	bool stopped;   /* no producer will write again */
	bool filtering; /* was asked for another filter and has not answered in time */
};

struct rt_if_ref {
	uint32_t source, local;
	char name[RT_NAME_LEN]; /* Open vSwitch's; empty: ethdev's */
};

struct ringtap_capture {
	struct rt_source *sources;
	uint32_t source_count;
	struct rt_in *ins; /* all rings of all sources */
	uint32_t in_count;
	uint64_t batch_bytes; /* handed out per call, at most */
	uint64_t nap_max_ns;
	struct rt_if_ref *ifs; /* by file-wide id */
	uint32_t if_count;
	uint64_t emitted_ns; /* time of the last record handed out */
	uint64_t delivered, reordered;
	uint64_t lag_bytes;  /* to fall behind before taking more */
	uint64_t dry_ns;     /* CLOCK_MONOTONIC, when there was nothing left */
	bool dry;            /* it took all that there was */
	uint64_t checked_ns; /* when the connections were last looked at */
	uint64_t nap_ns;
	uint64_t stop_until_ns; /* CLOCK_MONOTONIC, wait so long for the end; 0: not asked for */
	int stop_error;
	int wake_fd;
	struct rt_waker *waker; /* NULL: nobody has asked for a descriptor */
	uint32_t broken;        /* ringtap_capture_break() was called */
	bool detached;          /* ringtap_capture_detach() was called */
	int corrupt;            /* -errno: a ring is unusable from some place on */
	char error[RT_TEXT_LEN + RT_NAME_LEN];
};

/* How long a thread that stands still inside of a hook holds up the merge; a variable for the
 * tests' sake. */
extern uint64_t rt_hold_ns;

/* Looks at a ring's producer: takes over head, and returns the watermark: every record that is
 * published later will bear a time not before it. now_ns must have been taken before; mono_ns, of
 * CLOCK_MONOTONIC, tells how long a producer stands still: now_ns may jump. -EBADMSG via
 * cap->corrupt.
 */
uint64_t rt_in_look(
	struct ringtap_capture *cap, struct rt_in *in, uint64_t now_ns, uint64_t mono_ns);

/* Merges what is published up to the watermark into runs. Returns their number. */
unsigned rt_merge(
	struct ringtap_capture *cap, uint64_t watermark, struct ringtap_run *runs, unsigned max);

#define RT_NAP_MIN_NS 20000ull

static inline uint64_t rt_mono_ns(void)
{
	return rt_time_ns(CLOCK_MONOTONIC);
}

/* Keeps text as the capture's error; returns code. */
int rt_capture_fail(struct ringtap_capture *cap, int code, const char *text);

/* Have all applications been told to let packets flow? */
bool rt_capture_started(const struct ringtap_capture *cap);

/* How many are attached. */
uint32_t rt_capture_applications(const struct ringtap_capture *cap);

/* Takes over all interfaces that the probe has announced. */
void rt_capture_learn_all_ifs(struct ringtap_capture *cap, uint32_t source);

/* Makes sure that the interface is known. False: the probe has not announced it. */
bool rt_capture_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local);

/* Ends the thread and closes the descriptor of ringtap_capture_fd(). NULL: nothing. */
void rt_waker_free(struct rt_waker *w);

/* Notes that a ring is corrupt at its pos: nothing is published any more as far as we are
 * concerned, but what other rings hold is good and still handed out. */
void rt_capture_corrupt(struct ringtap_capture *cap, const struct rt_in *in, const char *why);

#endif
