/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a capture: sources (applications), their rings, and the merge. */
#ifndef RINGTAP_READER_CAPTURE_CAPTURE_H
#define RINGTAP_READER_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/now.h"
#include "common/segment.h"
#include "reader/conn/conn.h"
#include "reader/memory/memory.h"
#include "ringtap/reader.h"
#include "reader/memory/segment.h"

#define RT_MAX_SOURCES 16
#define RT_FOREVER     UINT64_MAX

/* A ring in the merge. Positions are those of docs/format.md. */
struct rt_in {
	const uint8_t *data;   /* of all chunks */
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

struct rt_growth; /* grow.c */

struct rt_source {
	struct ringtap_conn *conn;
	dev_t dev; /* of its runtime folder */
	ino_t ino; /* 0: unknown */
	pid_t secondary;
	unsigned instance; /* in the folder */
	uint32_t number;   /* of ids: that of the first source of the same application */
	struct rt_memory memory;
	struct rt_segment seg;
	struct rt_growth *growth; /* NULL: none was needed */
	uint64_t there;           /* bytes of the buffer that the probe can use */
	char growth_error[RT_TEXT_LEN];
	struct rt_clock_line line;
	uint64_t rings[RT_MAX_RINGS / 64]; /* bit by ring: it is in ins; atomic */
	uint32_t *if_ids;                  /* file-wide id by local id; RT_MAX_IFS */
	uint32_t if_known;
	uint32_t target_count;
	bool started;
	bool dead;      /* the connection has ended by itself */
	bool stopped;   /* no producer will write again */
	bool filtering; /* another filter was requested, and the answer is late */
};

struct rt_if_ref {
	uint32_t source, local;
	char name[RT_NAME_LEN]; /* name in Open vSwitch; empty: that of ethdev */
};

struct rt_retention; /* retain.c */
struct rt_window;    /* window.c */

struct ringtap_capture {
	struct rt_source *sources;
	uint32_t source_count;
	/* Rings that threads use, or have used, of all sources. Others can read up to in_count,
	 * which only grows; there is room for all that there can be. */
	struct rt_in *ins;
	uint32_t in_count, in_room; /* in_count: release */
	uint64_t batch_bytes;       /* handed out per call, at most */
	uint64_t nap_max_ns;
	struct rt_if_ref *ifs; /* by file-wide id */
	uint32_t if_count;
	uint64_t emitted_ns; /* time of the last record handed out */
	uint64_t delivered, reordered;
	uint64_t most_used, most_used_of; /* bytes, and the size of that buffer */
	uint64_t looked_ns;               /* CLOCK_MONOTONIC, of the last look at the rings */
	uint64_t longest_pause_ns;
	uint64_t lag_bytes;  /* distance to the producer before more is taken */
	uint64_t dry_ns;     /* CLOCK_MONOTONIC, when all rings were empty */
	bool dry;            /* all rings were read to their end */
	uint64_t checked_ns; /* when the connections were last checked */
	uint64_t nap_ns;
	uint64_t stop_until_ns; /* CLOCK_MONOTONIC, end of the wait for the probes; 0: not requested
				 */
	int stop_error;
	int wake_fd;
	struct rt_waker *waker;         /* NULL: no descriptor was requested */
	uint32_t broken;                /* ringtap_capture_break() was called */
	bool detached;                  /* ringtap_capture_detach() was called */
	int corrupt;                    /* -errno: a ring has an invalid record */
	uint64_t keep_ns;               /* ringtap_capture_keep_for(); atomic */
	struct rt_retention *retention; /* ringtap_capture_keep() was called */
	struct rt_window *window;       /* of another capture, whose connections these are */
	char error[RT_TEXT_LEN + RT_NAME_LEN];
};

/* Maps the memory of a source, also what is to come. */
int rt_source_map(struct ringtap_capture *cap, struct rt_source *s);
/* The rest of a source's buffer: begins to populate it; takes note of what the probe has taken
 * since; wants no more; ends, also if it was not begun. */
void rt_growth_begin(struct rt_source *s);
void rt_growth_look(struct ringtap_capture *cap, struct rt_source *s);
void rt_growth_quit(struct rt_source *s);
bool rt_growth_runs(const struct rt_source *s);
void rt_growth_end(struct rt_source *s);
/* Packets that the full buffer of a source has lost before all of it was there. */
uint64_t rt_growth_lost(const struct rt_source *s);

/* Waits until the buffers are whole, some seconds at most. The probes' answers about them must not
 * wake a program that waits for packets. */
void rt_capture_await_growth(struct ringtap_capture *cap);

/* How often space is given back, and how long a sleep is: for the smallest buffer. */
void rt_capture_pace(struct ringtap_capture *cap);

/* The ring of this index, before anything was read. */
void rt_in_init(struct rt_in *in, const struct rt_segment *seg, uint32_t source, uint32_t index);

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

/* The keeping of packets. lock and unlock: nothing where the capture does not keep any. */
int rt_retain_begin(struct ringtap_capture *cap);
void rt_retain_end(struct ringtap_capture *cap);
/* Also keeps the packets of ring i, which is new. False: no memory. */
bool rt_retain_ring(struct ringtap_capture *cap, uint32_t i);
void rt_retain_lock(struct ringtap_capture *cap);
void rt_retain_unlock(struct ringtap_capture *cap);
/* Takes over what the rings have got, and gives back what has to go. Under the lock. */
void rt_retain(struct ringtap_capture *cap);

/* Windows: instead of what other captures do. */
void rt_window_sync(struct ringtap_capture *cap);
void rt_window_follow(struct ringtap_capture *cap);
unsigned rt_window_next(
	struct ringtap_capture *cap, uint64_t watermark, struct ringtap_run *runs, unsigned max);
void rt_window_release(struct ringtap_capture *cap);
bool rt_window_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local);
void rt_window_close(struct ringtap_capture *cap);

#define RT_NAP_MIN_NS 20000ull

static inline uint64_t rt_mono_ns(void)
{
	return rt_now_ns(CLOCK_MONOTONIC);
}

/* Stores text as the capture's error; returns code. */
int rt_capture_fail(struct ringtap_capture *cap, int code, const char *text);

/* Whether all applications have been started. */
bool rt_capture_started(const struct ringtap_capture *cap);

/* How many are attached. */
uint32_t rt_capture_applications(const struct ringtap_capture *cap);

/* Adds all interfaces that the probe has announced. */
void rt_capture_learn_all_ifs(struct ringtap_capture *cap, uint32_t source);

/* Adds the interface and those before it. False: the probe has not announced it. */
bool rt_capture_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local);

/* Ends the thread and closes the descriptor of ringtap_capture_fd(). NULL: nothing. */
void rt_waker_free(struct rt_waker *w);

/* Marks a ring as corrupt at its pos: nothing after it is read. Records of other rings are still
 * returned. */
void rt_capture_corrupt(struct ringtap_capture *cap, const struct rt_in *in, const char *why);

#endif
