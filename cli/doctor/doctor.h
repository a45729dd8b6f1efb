/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap doctor: watches for some seconds, then judges.
 *
 *   doctor_watch: snapshots -> struct examination (one an application)
 *   packets: where a mempool's use grows, which received packets the application holds
 *   doctor_rules, doctor_memory: examination -> verdicts, by thresholds in one table
 *   doctor_report: text, JSON
 */
#ifndef RINGTAP_CLI_DOCTOR_DOCTOR_H
#define RINGTAP_CLI_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "measure/kernel.h"
#include "measure/rates.h"
#include "measure/watch.h"

/* How a pool's use changed: readings in order, as many in each part as it takes for all to fit. */
#define USE_PARTS 64
struct pool_use {
	struct {
		uint32_t least, most; /* objects in use */
	} part[USE_PARTS];
	uint32_t parts, each; /* readings in each part; in the last one: */
	uint32_t in_last;
	uint32_t first, last;       /* readings */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC */
};

/* What was found out about one application; made by doctor_watch() or by tests. */
struct pool_look {
	/* Snapshots; those in which there was less than a burst; and those in which there was more,
	 * but none that a receiving thread could get. */
	uint32_t looks, empty, beyond;
	uint32_t least; /* available, smallest of the snapshots */
	/* A receiving thread takes from it, as objects in its cache show, or nothing could. */
	bool receives;
	struct pool_use use;
};

/* Received packets that the application holds, of the pool with the largest growth. */
struct doctor_packets;

#define EVIDENCE_LEN 240

struct examination {
	const struct watched *app;
	struct span span;
	struct pool_look *pools; /* by pool of span.to */
	uint32_t pool_count;
	const struct ringtap_snapshot *samples; /* with runs of addresses; NULL: none */
	const struct doctor_packets *packets;   /* NULL: they were not followed */
	/* From doctor_look_at_kernel(); NULL: not needed, or unknown. The caller frees it. */
	struct kernel_thread *kernel;
	unsigned kernel_count;
	char halted[EVIDENCE_LEN]; /* why the process as a whole is stopped; "": it is not */
};

enum verdict_id {
	VERDICT_TOO_SLOW,
	VERDICT_POOL_EXHAUSTED,
	VERDICT_POOL_GROWS,
	VERDICT_TX_REFUSED,
	VERDICT_PORT_STOPPED,
	VERDICT_PREEMPTED,
	VERDICT_SMALL_BURSTS,
	VERDICT_UNEVEN_QUEUES,
	VERDICT_SCATTERED,
	VERDICT_OVERFLOW,
	VERDICT_UNPOLLED_QUEUES,
	VERDICT_SATURATED,
	VERDICT_HUNG,
	VERDICT_NOT_POLLING,
	VERDICT_IDLE,
	VERDICT_HEALTHY,
	VERDICT_COUNT
};

enum grade {
	GRADE_FAULT, /* costs packets or most of a thread's time */
	GRADE_OK,
	GRADE_NOTE, /* worth knowing */
};

#define EVIDENCE_MAX 8
struct verdict {
	enum verdict_id id;
	enum grade grade;
	double gravity;                            /* orders those of one grade; larger is worse */
	char where[96];                            /* port, queue, thread, pool; "": all of it */
	char evidence[EVIDENCE_MAX][EVIDENCE_LEN]; /* sentences without a full stop */
	unsigned evidence_count;
	const char *advice; /* what to try next */
};

#define VERDICTS_MAX 64
struct diagnosis {
	struct verdict verdict[VERDICTS_MAX]; /* the worst first */
	unsigned count;
};

/* Names as in JSON, and titles for people. */
extern const char *const verdict_names[VERDICT_COUNT];
extern const char *const verdict_titles[VERDICT_COUNT];
extern const char *const grade_names[];

/* ---- rules.c */

/* At least one verdict. */
void doctor_judge(const struct examination *e, struct diagnosis *d);

/* For rules elsewhere: a new verdict, NULL if there are too many; a line of evidence. */
struct verdict *verdict_add(struct diagnosis *d, enum verdict_id id, enum grade grade,
	double gravity, const char *advice);
void verdict_add_evidence(struct verdict *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- loss.c, growth.c, hang.c, time.c, memory.c: rules by what they read */

void rule_pools(const struct examination *e, struct diagnosis *d);
/* What descriptors, caches and bursts of one application take of a pool at most. */
uint64_t doctor_needed(const struct examination *e, const struct ringtap_pool_stats *p);
void rule_stopped(const struct examination *e, struct diagnosis *d);
void rule_missed(const struct examination *e, struct diagnosis *d);
void rule_hung(const struct examination *e, struct diagnosis *d);
void rule_growth(const struct examination *e, struct diagnosis *d);
void rule_unsent(const struct examination *e, struct diagnosis *d);
void rule_preempted(const struct examination *e, struct diagnosis *d);
void rule_small_bursts(const struct examination *e, struct diagnosis *d);
void rule_uneven_queues(const struct examination *e, struct diagnosis *d);
void rule_saturated(const struct examination *e, struct diagnosis *d);
void rule_scattered(const struct examination *e, struct diagnosis *d);

/* ---- hang.c */

/* Reads the states of threads where one of them, or all, do not poll. */
void doctor_look_at_kernel(struct examination *e);
/* Evidence of threads that may poll, of which nothing else is known. True: one of them seems to
 * hang. */
bool doctor_unpolled(const struct examination *e, struct verdict *v);

/* ---- growth.c */

/* Adds a reading: objects in use at ns, CLOCK_MONOTONIC. */
void pool_use_add(struct pool_use *u, uint64_t ns, uint32_t in_use);
/* The pool with the largest growth of those that grow beyond doctor_needed(), all the time;
 * RINGTAP_NO_INDEX: there is none. */
uint32_t doctor_growing(const struct examination *e);

/* ---- packets.c */

/* Follows what the application receives from now on, to find out what it holds of a pool. NULL
 * after printing why. The caller frees it. */
struct doctor_packets *doctor_packets_begin(const char *app, const char *pool);
void doctor_packets_free(struct doctor_packets *p);
/* To be called a few times a second. */
void doctor_packets_step(struct doctor_packets *p);
/* Ends it, and reads what is held. */
void doctor_packets_end(struct doctor_packets *p);
/* Lines of evidence, if it is about that pool and has ended. growth: of the pool's use, mbufs a
 * second. */
void doctor_packets_evidence(
	const struct doctor_packets *p, struct verdict *v, const char *pool, double growth);

/* ---- watch.c */

#define DOCTOR_COLLECTORS (RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_GAPS | RINGTAP_POOLS)

/* The largest burst that threads requested since the mark; LIMIT_BURST if none polled. Larger ones
 * of before, as those by which testpmd empties its queues, do not count. */
unsigned doctor_burst(const struct watched *a);
/* What was seen of one application; zeroed at first, pools are freed by the caller. In the list of
 * doctor_watch() it has the place that the application has in the watch's: nothing is added. */
struct look {
	struct pool_look *pools;
	uint32_t pool_count;
	struct doctor_packets *packets;
};
/* Adds the use of pools: also of snapshots before those that are judged otherwise. */
void doctor_look_at_use(struct look *l, const struct ringtap_snapshot *f);
/* Adds the last snapshot of an application, and its use of pools. */
void doctor_look(struct look *l, const struct watched *a);
/* Snapshots in which a thread that needed a burst of objects could not get it. */
uint32_t doctor_starved(const struct pool_look *p);
#define DOCTOR_MIN_NS NS_PER_S /* to watch: drivers and the kernel are read twice a second */
enum doctor_end {
	DOCTOR_WHOLE,
	DOCTOR_CUT,       /* by a signal: on the time until then, without buffer addresses */
	DOCTOR_TOO_SHORT, /* by a signal, before DOCTOR_MIN_NS; take was not called */
	DOCTOR_FAILED,    /* out of memory */
};
/* Watches for duration_ns, or until a signal comes, then calls take for each application. packets:
 * where a pool's use grows, received packets are followed for DOCTOR_PACKETS_NS more. */
#define DOCTOR_PACKETS_NS (5 * NS_PER_S)
enum doctor_end doctor_watch(struct watch *w, uint64_t duration_ns, bool packets,
	void (*take)(void *ctx, const struct examination *e, const struct diagnosis *d), void *ctx);

/* ---- report.c */

void doctor_print(FILE *f, const struct examination *e, const struct diagnosis *d);
json_t *doctor_json(const struct examination *e, const struct diagnosis *d);

#endif
