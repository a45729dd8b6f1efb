/* SPDX-License-Identifier: BSD-3-Clause */
/* Readings of one application, and the diagnosis that follows from them. */
#ifndef RINGTAP_JUDGE_EXAMINATION_H
#define RINGTAP_JUDGE_EXAMINATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "measure/kernel.h"
#include "measure/machine.h"
#include "measure/rates.h"
#include "readings.h"
#include "verdict.h"
#include "web/view.h"

#define JUDGE_COLLECTORS (RINGTAP_POLLS | RINGTAP_BUSY | RINGTAP_GAPS | RINGTAP_POOLS)

struct examination {
	const struct watched *app;
	struct span span;
	const struct pool_readings *pools; /* by pool of span.to */
	uint32_t pool_count;
	const struct ring_readings *rings; /* by ring of span.to */
	uint32_t ring_count;
	const struct ringtap_snapshot *samples; /* with runs of addresses; NULL: none */
	/* Adds evidence of received packets about a pool with a growing use, in mbufs a second.
	 * NULL: packets were not followed. */
	void (*packets)(const void *ctx, struct verdict *v, const char *pool, double growth);
	const void *packets_ctx;
	/* From examination_read_kernel(); NULL: not needed, or unknown. The caller frees it. */
	struct kernel_thread *kernel;
	unsigned kernel_count;
	/* At the beginning and the end of the interval. NULL: unknown, as in an incident. */
	const struct machine_counts *before, *after;
	char halted[EVIDENCE_LEN]; /* why the process as a whole is stopped; "": it is not */
};

/* Examines the interval that has been watched. False: there is none yet. */
bool examination_make(struct examination *e, const struct watched *a, const struct readings *r);
/* Reads the states of threads where one of them, or all, do not poll. */
void examination_read_kernel(struct examination *e);
/* The pool with the largest growth of those that grow beyond pool_needed(), all the time;
 * RINGTAP_NO_INDEX: there is none. */
uint32_t examination_growing(const struct examination *e);

/* At least one verdict, in a diagnosis that is zeroed. */
void diagnose(const struct examination *e, struct diagnosis *d);
void diagnosis_print(FILE *f, const struct examination *e, const struct diagnosis *d);
/* Adds its verdicts to a page; app: named where there may be several, else NULL. */
void diagnosis_view(struct view *v, const struct diagnosis *d, const char *app);
json_t *diagnosis_json(const struct examination *e, const struct diagnosis *d);

#endif
