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

#include "measure/metrics.h"
#include "measure/watch.h"

/* ---- text.c */

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
	struct export_room *room; /* of the current application */
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

/* ---- labels.c: entries of one name are one series: ports and mempools that come back have new
 * entries, threads that have ended leave theirs */

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

/* ---- histograms.c */

void export_histogram(struct export_text *t, enum rt_metric_id id, const struct exported *x);

/* ---- flight.c */

/* A thread that asks the flight recorders of the applications. 0 or -errno. */
struct export_recorders;
int export_recorders_start(struct export_recorders **out, struct watch *w);
void export_recorders_stop(struct export_recorders *r);
/* The last answers of an application's; NULL: none yet. The caller decrefs. */
json_t *export_recorders_of(struct export_recorders *r, const struct exported *x);
/* The series of a metric of theirs. */
void export_recorders(struct export_text *t, enum rt_metric_id id, const struct exported *x);

/* ---- metrics.c */

struct export_limits {
	unsigned of_app, in_all; /* samples */
};

/* All families. */
void export_all(struct export_text *t, const struct watch *w, const struct export_limits *l,
	struct export_recorders *r);

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
/* Answers a POST; one thread calls it. Returns the status of the answer; *text is static. */
unsigned export_trigger(
	struct export_triggers *t, struct MHD_Connection *c, const char *url, const char **text);

/* ---- http.c */

struct export_server;

#define EXPORT_HOSTS_MAX 16

struct export_config {
	const char *listen; /* "[HOST]:PORT", port 0: any */
	struct export_triggers triggers;
	struct export_limits limits;
	const char *hosts[EXPORT_HOSTS_MAX + 1]; /* names of this host, and that of listen */
	unsigned host_count;
};

/* Serves w. 0, or -errno after printing why. url becomes where it can be had. config lives as long
 * as the server. */
int export_serve(struct export_server **out, struct watch *w, struct export_config *config,
	char *url, size_t url_size);
/* Ends clients that are too slow. Call it again and again. */
void export_expire(struct export_server *s);
void export_stop(struct export_server *s);

#endif
