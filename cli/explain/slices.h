/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts over time. The length of a recording is not known before its end: slices begin
 * short, and double each time that there is no room for another. */
#ifndef RINGTAP_CLI_EXPLAIN_SLICES_H
#define RINGTAP_CLI_EXPLAIN_SLICES_H

#include <stdint.h>

#include "packet/spread.h"

#ifndef SLICES /* fuzzers have fewer */
#define SLICES 512u
#endif
#define SLICE_BITS    4 /* resolution of its histogram: percentiles are within 3 % */
#define SLICE_BUCKETS RT_LOG_BUCKETS(SLICE_BITS, LATENCY_MAX_BITS)

/* By the time of reception. */
struct slice {
	uint64_t received, not_sent, copies, reordered, max_ns;
	uint32_t bucket[SLICE_BUCKETS]; /* latencies of first sendings */
};

struct slices {
	uint64_t start_ns; /* 0: nothing yet */
	unsigned shift;    /* a slice is 1 << shift ns long */
	uint32_t count;    /* those in use */
	struct slice *at;  /* SLICES of them */
};

/* 0 or -ENOMEM. Free with slices_free() in any case. */
int slices_init(struct slices *s);
void slices_free(struct slices *s);
/* The slice of a time; the first one for times before it. */
struct slice *slices_get(struct slices *s, uint64_t ns);
void slice_latency(struct slice *s, uint64_t ns);

#endif
