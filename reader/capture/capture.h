/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture and its sources (applications). */
#ifndef RINGTAP_READER_CAPTURE_CAPTURE_H
#define RINGTAP_READER_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/now.h"
#include "common/segment.h"
#include "reader/conn/conn.h"
#include "reader/memory/memory.h"
#include "ringtap/reader.h"
#include "rings.h"
#include "reader/memory/segment.h"

#define RT_MAX_SOURCES 16
#define RT_FOREVER     UINT64_MAX

struct rt_growth; /* grow.h */

struct rt_source {
	struct ringtap_conn *conn;
	dev_t dev; /* device of its runtime folder */
	ino_t ino; /* 0: unknown */
	pid_t secondary;
	unsigned instance;  /* in the folder */
	uint32_t number;    /* number in ids: that of the first source of the same application */
	uint32_t sample;    /* takes one of N packets; 1: all */
	uint32_t first;     /* limit of each flow; 0: none */
	uint32_t flows;     /* that have a place in a thread's table of it */
	bool first_packets; /* it is in packets */
	bool inner;         /* flows are those inside of tunnels */
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

struct rt_retention; /* retain.h */
struct rt_window;    /* window.h */

struct ringtap_capture {
	struct rt_source *sources;
	uint32_t source_count;
	struct secret secret; /* chooses samples */
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
	struct rt_window *window;       /* window on another capture, whose connections these are */
	char error[RT_TEXT_LEN + RT_NAME_LEN];
};

/* Waits until the buffers are whole, some seconds at most. The probes' answers about them must not
 * wake a program that waits for packets. */
void rt_capture_await_growth(struct ringtap_capture *cap);

/* How often space is given back, and how long a sleep is: for the smallest buffer. */
void rt_capture_pace(struct ringtap_capture *cap);

#define RT_NAP_MIN_NS 20000ull

static inline uint64_t rt_mono_ns(void)
{
	return rt_now_ns(CLOCK_MONOTONIC);
}

/* Stores text as the capture's error; returns code. */
int rt_capture_fail(struct ringtap_capture *cap, int code, const char *text);

/* Sends the request for a source's session. most: bytes that its memory may take, if the options do
 * not say it; grows: RT_OPEN_GROWS. 0, or -errno with the capture's error. */
int rt_capture_request(struct ringtap_capture *cap, const struct rt_source *s,
	const struct ringtap_target *targets, size_t count, const struct ringtap_capture_options *o,
	uint64_t most, bool grows);

/* Whether all applications have been started. */
bool rt_capture_started(const struct ringtap_capture *cap);

/* How many are attached. */
uint32_t rt_capture_applications(const struct ringtap_capture *cap);
/* Writes "first: bytes=N flows=M" of interface i, with packets=N and " inner" where it is so.
 * False, and "": it has all of each flow. */
bool rt_capture_first(const struct ringtap_capture *cap, unsigned i, char *text, size_t size);

/* Adds all interfaces that the probe has announced. */
void rt_capture_learn_all_ifs(struct ringtap_capture *cap, uint32_t source);

/* Adds the interface and those before it. False: the probe has not announced it. */
bool rt_capture_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local);

/* Ends the thread and closes the descriptor of ringtap_capture_fd(). NULL: nothing. */
/* The answer to RT_MSG_STOP is awaited. w may be NULL. */
void rt_waker_await_stop(struct rt_waker *w);
void rt_waker_free(struct rt_waker *w);

/* Marks a ring as corrupt at its pos: nothing after it is read. Records of other rings are still
 * returned. */
void rt_capture_corrupt(struct ringtap_capture *cap, const struct rt_in *in, const char *why);

#endif
