/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap trace timeline: what all polling threads do, on tracks of Perfetto.
 *
 *   timeline.c -+- timeline_bursts.c: packets of a capture -> bursts, their latencies
 *               +- timeline_states.c: statistics, intervals, perf's records of the scheduler
 *                      -> timeline_tracks.c -> perfetto.c -> the file
 */
#ifndef RINGTAP_CLI_TRACE_TIMELINE_H
#define RINGTAP_CLI_TRACE_TIMELINE_H

#include "ringtap/fates.h"
#include "ringtap/monitor.h"
#include "measure/off_cpu.h"
#include "perfetto.h"

struct trace;

/* A call of rte_eth_rx_burst() or rte_eth_tx_burst() with packets: those of one thread, queue,
 * direction and time. */
struct timeline_burst {
	uint64_t ns;
	uint32_t interface, queue;
	uint8_t direction; /* RINGTAP_RX, RINGTAP_TX */
	uint64_t packets, bytes;
	uint64_t lost;                  /* packets of this queue, lost before it */
	uint64_t timed, sum_ns, max_ns; /* packets whose reception is known, and their latencies */
	uint64_t flows[PERFETTO_FLOWS];
	unsigned flow_count;
};

struct timeline_thread {
	uint32_t tid;  /* in the application's PID namespace; 0: unknown */
	uint32_t ring; /* an unknown thread's */
	struct perfetto_track *track, *gaps, *busy, *off;
	struct timeline_burst burst; /* packets 0: none yet */
	bool open;                   /* a received burst is */
	uint64_t end_ns;             /* when it ends so far */
};

/* Received packets by id: PASSAGE_SETS sets of PASSAGE_WAYS, of which the oldest gives way. */
#define PASSAGE_SETS (1u << 16)
#define PASSAGE_WAYS 8
struct timeline_passage {
	uint64_t id; /* 0: none */
	uint64_t ns, burst;
};

/* Packets that got a fate at one time, of one received burst. All bytes are compared. */
struct timeline_fate {
	uint64_t ns;
	uint32_t interface, queue;
	uint64_t fate;               /* enum ringtap_fate */
	uint64_t burst, received_ns; /* 0: not known */
	uint64_t packets;            /* 0: none yet */
};

/* Fates become known by another capture than the packet, which may not have been read yet. */
#define FATES_WAIT (1u << 16)
struct timeline_event {
	uint64_t ns, id;
	uint32_t interface, queue;
	uint8_t fate;
};

/* The last values of a counter. */
struct timeline_counter {
	struct perfetto_track *track; /* NULL: it has not changed yet */
	uint64_t base, last, last_ns;
	bool known, refused; /* refused: there are too many tracks */
};

enum timeline_kind { TIMELINE_RX, TIMELINE_TX };
enum timeline_counted { TIMELINE_PORTS, TIMELINE_RINGS, TIMELINE_POOLS, TIMELINE_COUNTERS };

struct timeline {
	struct perfetto out;
	uint32_t pid; /* the process, in our PID namespace */
	const char *name;
	const struct trace *trace; /* for numbers of threads in our PID namespace; NULL: ours */
	const struct ringtap_capture *cap, *fates_cap; /* names of ports; NULL: without fates */
	struct perfetto_track *process;

	struct timeline_thread *threads;
	uint32_t thread_count;
	uint32_t last_thread; /* that was looked for */

	struct timeline_passage *passages; /* NULL: packets have no ids */
	uint64_t burst_count;              /* received ones, so far */

	const struct ringtap_snapshot *stats;                 /* for intervals */
	struct timeline_counter *counters[TIMELINE_COUNTERS]; /* by enum timeline_counted */
	size_t counter_count[TIMELINE_COUNTERS];
	struct perfetto_track *fates;
	struct timeline_fate fate;
	struct timeline_event *events; /* FATES_WAIT; NULL: without fates */
	uint64_t event_count, events_done;

	struct off_cpus off;
	uint64_t off_taken, tasks_taken, off_since_ns;
	uint64_t off_read_ns; /* when they were taken last */
	struct timeline_cpu {
		uint32_t number;
		struct perfetto_track *track;
		bool open;
	} * cpus;
	size_t cpu_count;

	/* In the file. */
	uint64_t bursts[2], packets[2]; /* by enum timeline_kind */
	uint64_t timed, gaps, busy, not_offered, unknown, switches;
	uint64_t untracked; /* packets of threads without a track, not in the file */
	uint64_t intervals_lost, switches_lost; /* times when some were */
};

/* The caller has set the file, its times, pid, name and cap. 0 or -ENOMEM. */
int timeline_begin(struct timeline *l, bool ids, bool fates);
/* Ends bursts and slices that are open. */
void timeline_end(struct timeline *l, uint64_t ns);
void timeline_end_tasks(struct timeline *l, uint64_t ns);
void timeline_free(struct timeline *l);

/* The thread of a number, a new one if there is none; NULL: there are too many. */
struct timeline_thread *timeline_thread(
	struct timeline *l, uint32_t tid, uint32_t ring, uint32_t lcore, const char *name);

/* Whether there is one of a number, other than 0. */
bool timeline_has_thread(struct timeline *l, uint32_t tid);

/* ---- timeline_bursts.c */

void timeline_packet(struct timeline *l, struct timeline_thread *t, const struct ringtap_packet *p);
/* The last burst of a thread has all of its packets. */
void timeline_flush(struct timeline *l, struct timeline_thread *t);
/* Nothing more belongs to its last received burst. */
void timeline_end_burst(struct timeline *l, struct timeline_thread *t);
/* A packet of a capture with events of fates. */
void timeline_fate(struct timeline *l, const struct ringtap_packet *p);
/* Puts those up to a time, at which all packets that were received earlier were taken. */
void timeline_fates_until(struct timeline *l, uint64_t ns);
void timeline_flush_fates(struct timeline *l);

/* ---- timeline_states.c */

void timeline_interval(void *timeline, const struct ringtap_interval *v);
/* Counters of drivers, fill levels of rings and mempools. */
void timeline_counters(struct timeline *l, const struct ringtap_snapshot *s);
/* Gaps that last at the end. */
void timeline_open_gaps(struct timeline *l, const struct ringtap_snapshot *s);
/* Puts those that l->off has taken since the last call; ends slices once they are refused. */
void timeline_switches(struct timeline *l, const struct ringtap_snapshot *s);

#endif
