/* SPDX-License-Identifier: BSD-3-Clause */
/* Verdicts: what is wrong, how bad it is, what shows it, and what to try next. */
#ifndef RINGTAP_JUDGE_VERDICT_H
#define RINGTAP_JUDGE_VERDICT_H

#include <stdint.h>

#define EVIDENCE_LEN 240

enum verdict_id {
	VERDICT_TOO_SLOW,
	VERDICT_POOL_EXHAUSTED,
	VERDICT_POOL_GROWS,
	VERDICT_TX_REFUSED,
	VERDICT_PORT_STOPPED,
	VERDICT_PREEMPTED,
	VERDICT_STALLED,
	VERDICT_SMALL_BURSTS,
	VERDICT_UNEVEN_QUEUES,
	VERDICT_SCATTERED,
	VERDICT_RING_FULL,
	VERDICT_OVERFLOW,
	VERDICT_UNPOLLED_QUEUES,
	VERDICT_SATURATED,
	VERDICT_HUNG,
	VERDICT_NOT_POLLING,
	VERDICT_NOT_COUNTED,
	VERDICT_OUTSIDE,
	VERDICT_FAR_NODE,
	VERDICT_FAR_PAGES,
	VERDICT_NOT_ISOLATED,
	VERDICT_INTERRUPTS,
	VERDICT_STOLEN,
	VERDICT_SHARED_CORE,
	VERDICT_GOVERNOR,
	VERDICT_PAGE_FAULTS,
	VERDICT_THROTTLED,
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

/* A new verdict, NULL if there are too many; a line of evidence, none of verdict NULL. */
struct verdict *verdict_add(struct diagnosis *d, enum verdict_id id, enum grade grade,
	double gravity, const char *advice);
void verdict_add_evidence(struct verdict *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
