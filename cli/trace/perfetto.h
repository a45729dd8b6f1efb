/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file in Perfetto's format: packets of perfetto/trace/trace_packet.proto, written as they come,
 * in constant memory. Each track is a sequence of packets of its own, whose times are differences
 * in nanoseconds, never negative, to the packet before.
 */
#ifndef RINGTAP_CLI_TRACE_PERFETTO_H
#define RINGTAP_CLI_TRACE_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PERFETTO_TRACKS 4096
#define PERFETTO_NAMES  256 /* slots of a track for names that are written once; a power of two */
#define PERFETTO_FLOWS  8
#define PERFETTO_TEXT   128 /* bytes of a name, with its end */

struct timeline_page;

struct perfetto {
	FILE *f;                    /* the caller's; NULL: none */
	struct timeline_page *page; /* the caller's, gets the same; NULL: none */
	uint64_t start_ns;          /* since the epoch: no event is earlier */
	uint64_t boot_ns; /* CLOCK_BOOTTIME then, to which other traces are aligned; 0: unknown */
	uint64_t bytes;   /* passed to f */
	int error;        /* 0, or the first -errno of f */
	uint32_t tracks;
	uint64_t beyond; /* tracks that were not made, as there were PERFETTO_TRACKS of them */
};

struct perfetto_track {
	uint32_t number;    /* from 1 on */
	uint32_t arguments; /* bits of those whose names are written */
	uint64_t last_ns;
	uint32_t names;
	uint64_t *keys; /* names, PERFETTO_NAMES slots; NULL: none; 0: an empty one */
	char **texts;   /* these names, for the page; NULL: none */
};

enum perfetto_kind { PERFETTO_PROCESS, PERFETTO_THREAD, PERFETTO_SLICES, PERFETTO_COUNTER };

struct perfetto_place {
	enum perfetto_kind kind;
	const char *name; /* less than PERFETTO_TEXT bytes */
	uint32_t pid, tid;
	const struct perfetto_track *parent; /* NULL: none */
	const char *group; /* a counter's: static, the title of its panel on the page */
};

/* Bars of the page. */
enum perfetto_look {
	PERFETTO_RECEIVED,
	PERFETTO_SENT,
	PERFETTO_WORK,
	PERFETTO_IDLE,
	PERFETTO_BUSY,
	PERFETTO_WAITS, /* from here on in the order of enum off_how */
	PERFETTO_SLEEPS,
	PERFETTO_BLOCKED,
	PERFETTO_STOPPED,
	PERFETTO_FAULTED,
	PERFETTO_TASK,
	PERFETTO_DROPPED,
	PERFETTO_UNKNOWN,
	PERFETTO_LOOKS
};

enum perfetto_argument {
	PERFETTO_PACKETS,
	PERFETTO_BYTES,
	PERFETTO_LOST_BEFORE,
	PERFETTO_TIMED,
	PERFETTO_MEAN_NS,
	PERFETTO_MAX_NS,
	PERFETTO_RECEIVED_NS,
	PERFETTO_TID,
	PERFETTO_LASTS,
	PERFETTO_ARGUMENTS
};

enum perfetto_type { PERFETTO_BEGIN = 1, PERFETTO_END, PERFETTO_INSTANT, PERFETTO_VALUE };

struct perfetto_event {
	enum perfetto_type type;
	uint64_t ns;      /* since the epoch; not before the track's last one: that one's else */
	uint64_t key;     /* its name's, not 0; ends and values have none */
	const char *name; /* NULL: perfetto_knows() the key */
	enum perfetto_look look;
	bool has[PERFETTO_ARGUMENTS];
	uint64_t args[PERFETTO_ARGUMENTS];
	const uint64_t *flows; /* numbers of arrows in this file that begin, go on or end here */
	unsigned flow_count;   /* at most PERFETTO_FLOWS */
	int64_t value;
};

/* NULL: no memory, or there are too many. The caller frees it by perfetto_track_free(). */
struct perfetto_track *perfetto_track_new(struct perfetto *p, const struct perfetto_place *at);
void perfetto_track_free(struct perfetto_track *t);
/* Whether the name of a key was written. */
bool perfetto_knows(const struct perfetto_track *t, uint64_t key);
/* t NULL: nothing. */
void perfetto_put(struct perfetto *p, struct perfetto_track *t, const struct perfetto_event *e);

static inline void perfetto_argument(
	struct perfetto_event *e, enum perfetto_argument which, uint64_t value)
{
	e->has[which] = true;
	e->args[which] = value;
}

#endif
