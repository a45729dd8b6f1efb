/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap export: statistics for Prometheus.
 *
 *   watch (snapshots) -> export_metrics, export_histograms: families of samples
 *                    -> export_text: Prometheus' text format, or OpenMetrics -> export_http
 */
#ifndef RINGTAP_CLI_EXPORT_EXPORT_H
#define RINGTAP_CLI_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/monitor/rates.h"
#include "cli/monitor/watch.h"

/* ---- text.c */

struct export_text {
	char *data; /* malloc()ed; the caller frees */
	size_t len, size;
	bool openmetrics; /* version 1.0.0; else Prometheus' text format 0.0.4 */
	bool failed;      /* out of memory */
	const char *family, *type;
};

#define LABELS_LEN 512

void export_printf(struct export_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Begins a family; all its samples follow. name and type live as long. Counters' names are without
 * _total, infos' without _info: formats differ in where these belong. */
void export_family(struct export_text *t, const char *name, const char *type, const char *help);
/* A sample of the family; suffix is that of histograms, "" otherwise. */
void export_count(struct export_text *t, const char *suffix, const char *labels, uint64_t v);
void export_number(struct export_text *t, const char *suffix, const char *labels, double v);
/* Names and values in turn, NULL at the end: a="b",c="d". Values that do not fit are cut. */
char *export_labels(char buf[LABELS_LEN], ...) __attribute__((sentinel));
/* A bucket of a histogram: so many values were at most le. */
void export_bucket(struct export_text *t, const char *labels, double le, uint64_t v);
void export_end(struct export_text *t);

/* ---- metrics.c, histograms.c */

/* An application that shows statistics, and its label. */
struct exported {
	const struct watched *app;
	const struct ringtap_snapshot *f;
	char label[128];
};

/* Everything. */
void export_all(struct export_text *t, const struct watch *w);

/* What has the same labels is one: ports and mempools that come again have new entries, threads
 * that end leave theirs behind. Each returns false for all but the first of them. */
bool first_port(const struct ringtap_snapshot *f, uint32_t port);
bool same_port(const struct ringtap_snapshot *f, uint32_t a, uint32_t b);
bool first_thread(const struct ringtap_snapshot *f, uint32_t thread);
bool same_thread(const struct ringtap_snapshot *f, uint32_t a, uint32_t b);
/* Sums over threads what was counted at a queue; false if it is not the first of its labels. */
bool queue_sum(const struct ringtap_snapshot *f, uint32_t i, struct tally *t);
char *queue_labels(char buf[LABELS_LEN], const struct exported *x, uint32_t i);
char *thread_labels(char buf[LABELS_LEN], const struct exported *x, uint32_t i);

void export_histograms(struct export_text *t, const struct exported *x, size_t count);

/* ---- http.c */

struct export_server;

/* Serves w at an address ("[HOST]:PORT", port 0: any). Says what is wrong and returns -errno. url
 * becomes where it can be had. */
int export_serve(struct export_server **out, struct watch *w, const char *listen, char *url,
	size_t url_size);
void export_stop(struct export_server *s);

#endif
