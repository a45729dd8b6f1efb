/* SPDX-License-Identifier: BSD-3-Clause */
/* Prometheus' text format, or OpenMetrics */
#ifndef RINGTAP_CLI_EXPORT_TEXT_H
#define RINGTAP_CLI_EXPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/metrics.h"

/* The samples that an application may have. */
struct export_room {
	unsigned most, used, left_out;
};

struct export_text {
	char *data; /* malloc()ed; the caller frees */
	size_t len, size;
	bool openmetrics; /* version 1.0.0; else Prometheus' text format 0.0.4 */
	bool failed;      /* out of memory */
	const struct rt_metric *family;
	struct export_room *room; /* the current application's */
};

#define LABELS_LEN 512

void export_printf(struct export_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Begins the family of a metric; its samples follow. */
void export_family(struct export_text *t, const struct rt_metric *m);
/* Whether there is room for n more samples; counts them. */
bool export_takes(struct export_text *t, unsigned samples);
/* A sample of the family; suffix is that of histograms, "" otherwise. */
void export_number(struct export_text *t, const char *suffix, const char *labels, double v);
/* Names and values in turn, NULL at the end: a="b",c="d". Values that do not fit are cut. */
char *export_labels(char buf[LABELS_LEN], ...) __attribute__((sentinel));
/* A bucket of a histogram: the count of values up to le. */
void export_bucket(struct export_text *t, const char *labels, double le, uint64_t v);
void export_end(struct export_text *t);

#endif
