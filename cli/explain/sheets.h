/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of a report. */
#ifndef RINGTAP_CLI_EXPLAIN_SHEETS_H
#define RINGTAP_CLI_EXPLAIN_SHEETS_H

#include <jansson.h>

#include "report.h"
#include "show/sheet.h"

/* The tables, in order of the report. 0 or -ENOMEM. Free with sheets_free() in any case. */
#define FATE_SHEETS 6
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

#define ROWS_MAX 20 /* rows of queues and of kinds */
/* Rows of "port: protocol", "packets", "frame", "the first of them"; k: of struct protocol. */
int sheet_put_protocols(struct sheet *s, const struct report *r, const struct keyed *k);
/* {index, name} */
json_t *port_json(const struct report *r, uint32_t port);
json_t *protocols_json(const struct report *r, const struct keyed *k);

/* Empty without fates. */
int fate_sheets_make(struct sheet sheets[FATE_SHEETS], const struct report *r);
json_t *explain_fates_json(const struct report *r); /* null without fates */

#endif
