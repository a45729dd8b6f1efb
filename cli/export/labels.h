/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of one name are one series: ports and mempools that come back have new entries, threads
 * that have ended leave theirs. */
#ifndef RINGTAP_CLI_EXPORT_LABELS_H
#define RINGTAP_CLI_EXPORT_LABELS_H

#include <jansson.h>

#include "measure/metrics.h"
#include "text.h"

struct series {
	uint32_t count;
	uint32_t *first; /* entry of each series */
	uint32_t *next;  /* entry after each entry, in the same series; RINGTAP_NO_INDEX: none */
};

#define LABEL_CLASSES (RT_OBJECT_PAIR + 1)

/* An application that shows statistics, and its label. */
struct exported {
	const struct watched *app;
	struct span span; /* since the beginning; to is NULL if it shows none */
	char label[128];
	json_t *recorders; /* answers of its flight recorders */
	struct series series[LABEL_CLASSES];
	struct export_room room;
};

/* Sorts the entries of span.to into series. 0 or -ENOMEM; labels_free() in any case. */
int labels_find(struct exported *x);
void labels_free(struct exported *x);
const struct series *labels_series(const struct exported *x, enum rt_metric_object object);
char *labels_of(
	char buf[LABELS_LEN], const struct exported *x, enum rt_metric_object object, uint32_t i);

/* The series of a histogram, of histograms.c. */
void export_histogram(struct export_text *t, enum rt_metric_id id, const struct exported *x);

#endif
