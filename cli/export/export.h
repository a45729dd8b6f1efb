/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap export: statistics for Prometheus.
 *
 *   watch (snapshots) -> metrics (labels, histograms): families of samples
 *                    -> text: Prometheus' text format, or OpenMetrics -> http
 */
#ifndef RINGTAP_CLI_EXPORT_EXPORT_H
#define RINGTAP_CLI_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/monitor/metrics.h"
#include "cli/monitor/watch.h"

/* ---- text.c */

struct export_text {
	char *data; /* malloc()ed; the caller frees */
	size_t len, size;
	bool openmetrics; /* version 1.0.0; else Prometheus' text format 0.0.4 */
	bool failed;      /* out of memory */
	const struct rt_metric *family;
};

#define LABELS_LEN 512

void export_printf(struct export_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Begins the family of a metric; its samples follow. */
void export_family(struct export_text *t, const struct rt_metric *m);
/* A sample of the family; suffix is that of histograms, "" otherwise. */
void export_number(struct export_text *t, const char *suffix, const char *labels, double v);
/* Names and values in turn, NULL at the end: a="b",c="d". Values that do not fit are cut. */
char *export_labels(char buf[LABELS_LEN], ...) __attribute__((sentinel));
/* A bucket of a histogram: so many values were at most le. */
void export_bucket(struct export_text *t, const char *labels, double le, uint64_t v);
void export_end(struct export_text *t);

/* ---- labels.c: entries of one name are one series: ports and mempools that come back have new
 * entries, threads that have ended leave theirs */

/* An application that shows statistics, and its label. */
struct exported {
	const struct watched *app;
	struct span span; /* since the beginning; to is NULL if it shows none */
	char label[128];
	json_t *recorders; /* answers of its flight recorders */
};

/* Whether two entries have the same labels. */
bool labels_same(
	const struct ringtap_snapshot *f, enum rt_metric_object object, uint32_t a, uint32_t b);
/* Whether entry i is the first one of its labels, and there is something to show of it. */
bool labels_first(const struct ringtap_snapshot *f, enum rt_metric_object object, uint32_t i);
char *labels_of(
	char buf[LABELS_LEN], const struct exported *x, enum rt_metric_object object, uint32_t i);

/* ---- histograms.c */

void export_histogram(struct export_text *t, enum rt_metric_id id, const struct exported *x);

/* ---- flight.c */

/* Asks the flight recorders of an application. The caller decrefs. */
json_t *export_ask(const struct exported *x);
/* The series of a metric of theirs. */
void export_recorders(struct export_text *t, enum rt_metric_id id, const struct exported *x);

/* ---- metrics.c */

/* All families. */
void export_all(struct export_text *t, const struct watch *w);

/* ---- trigger.c: requests to ringtap flight */

#define EXPORT_TRIGGERS_MAX 64

struct export_triggers {
	const char *folders[EXPORT_TRIGGERS_MAX];
	uint64_t sent_ns[EXPORT_TRIGGERS_MAX]; /* CLOCK_MONOTONIC, of the last accepted POST */
	unsigned count;
	bool from_any; /* not only clients of this host */
};

/* -EINVAL after a message. The text lives as long as t. */
int export_trigger_add(struct export_triggers *t, const char *folder);

struct MHD_Connection;
/* Of a POST; of one thread. Returns the status of the answer; *text is static. */
unsigned export_trigger(
	struct export_triggers *t, struct MHD_Connection *c, const char *url, const char **text);

/* ---- http.c */

struct export_server;

/* Serves w at an address ("[HOST]:PORT", port 0: any). 0, or -errno after printing why. url
 * becomes where it can be had. triggers lives as long as the server. */
int export_serve(struct export_server **out, struct watch *w, struct export_triggers *triggers,
	const char *listen, char *url, size_t url_size);
void export_stop(struct export_server *s);

#endif
