/* SPDX-License-Identifier: BSD-3-Clause */
/* What is printed of a join. */
#ifndef RINGTAP_CLI_EXPLAIN_REPORT_H
#define RINGTAP_CLI_EXPLAIN_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "join.h"
#include "show/sheet.h"

enum flow_rank { BY_PACKETS, BY_NOT_SENT, BY_REORDERED, BY_P99, BY_NOT_OFFERED };

struct report {
	const struct join *j;
	const struct records *records;
	const char *const *files;
	unsigned file_count;
	const char *damage; /* what is wrong with a file; NULL: nothing */
	uint64_t flows;     /* to be listed at most */
	enum flow_rank order;
};

/* sheets.c: the tables, in order of the report. 0 or -ENOMEM. Free with sheets_free() in any
 * case. */
#define FATE_SHEETS 5
#define SHEETS      (8 + FATE_SHEETS)
int sheets_make(struct sheet sheets[SHEETS], const struct report *r);
void sheets_free(struct sheet sheets[SHEETS]);
/* Indexes of the flows to be listed, those with the most of something first: count of them, in a
 * new array, which the caller frees. NULL: no memory. */
uint32_t *flows_ranked(const struct join *j, enum flow_rank order, uint64_t max, uint32_t *count);
double flow_quantile(const struct joined_flow *f, double share);
const char *port_name(const struct report *r, uint32_t port);

#define LATENCY_HEADS "packets", "min", "p50", "p90", "p99", "p99.9", "max"
void sheet_put_spread(struct sheet *s, unsigned column, const struct spread *d);

#define ROWS_MAX 20 /* of queues and of kinds */
/* Rows of "port: protocol", "packets", "frame", "the first of them"; k: of struct protocol. */
int sheet_put_protocols(struct sheet *s, const struct report *r, const struct keyed *k);
/* {index, name} */
json_t *port_json(const struct report *r, uint32_t port);
json_t *protocols_json(const struct report *r, const struct keyed *k);

/* fate_sheets.c: empty without fates. */
int fate_sheets_make(struct sheet sheets[FATE_SHEETS], const struct report *r);
json_t *explain_fates_json(const struct report *r); /* null without fates */

/* facts.c */
struct fact {
	const char *name;
	uint64_t count;
	double share; /* of the received packets; NAN: none */
	char meaning[80];
};
#define FACTS_MAX 8
unsigned facts_make(struct fact facts[FACTS_MAX], const struct report *r);
/* Calls say() for each sentence on what the file does not show, and what to do. */
void notes_make(const struct report *r, void (*say)(void *ctx, const char *text), void *ctx);
/* "trace.pcapng, 2.0 s": buf takes 256 bytes and is returned. */
char *report_title(const struct report *r, char *buf);
double report_seconds(const struct report *r);

/* 0 or -errno. */
int report_text(const struct report *r, FILE *f);
int explain_json(const struct report *r, FILE *f);
json_t *spread_json(const struct spread *s);

/* view.c: for web_page_write(). */
json_t *report_view(const struct report *r);

/* csv.c: a line for each outcome. */
struct csv {
	FILE *f;
	const struct records *records;
	const struct flow_table *flows;
};
void csv_begin(struct csv *c);
void csv_line(void *csv, const struct outcome *o);

#endif
