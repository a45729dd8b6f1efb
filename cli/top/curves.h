/* SPDX-License-Identifier: BSD-3-Clause */
/* The last minute of a value of each row of each view. */
#ifndef RINGTAP_CLI_TOP_CURVES_H
#define RINGTAP_CLI_TOP_CURVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "show/table.h"

#define CURVE_STEP_NS (3 * NS_PER_S)

struct curve {
	const struct watched *app; /* compared only: it may be there no more */
	uint32_t pid, index;
	unsigned view;
	uint64_t step;            /* newest */
	float value[METRIC_BARS]; /* largest of step i, at i % METRIC_BARS; NAN: unknown */
};

struct curves {
	struct curve *list;
	size_t count;
	size_t next;   /* in which the next search begins: rows come in the same order */
	uint64_t step; /* current one */
};

/* A value of a row of a view, over the time from from_ns to to_ns, CLOCK_MONOTONIC. */
void curves_put(struct curves *c, unsigned view, const struct row *r, double value,
	uint64_t from_ns, uint64_t to_ns);
/* The bars of a row: as shares of its largest value or, if it is a share, of 1. */
void curves_get(const struct curves *c, unsigned view, const struct row *r, bool share,
	struct metric_value *to);
/* Forgets rows without a value in the last minute. */
void curves_prune(struct curves *c);

#endif
