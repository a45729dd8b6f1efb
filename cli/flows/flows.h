/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap flows: what packets the ports of an application receive and send, by flow.
 *
 *   capture (headers, one of N) -> ledger -> report (text), json
 */
#ifndef RINGTAP_CLI_FLOWS_FLOWS_H
#define RINGTAP_CLI_FLOWS_FLOWS_H

#include "fates/view.h"
#include "flows/capture.h"
#include "flows/detail.h"
#include "flows/dropped.h"
#include "flows/estimate.h"
#include "flows/export.h"
#include "flows/ledger.h"

#define FLOWS_ROWS_MAX 1000u

struct flows_command {
	struct fates_view view; /* first, for the rows of fates/view.h */
	struct flows_request request;
	struct export_request export;
	struct exports exports;
	struct ledger ledger;
	struct dropped dropped;
	bool fates;          /* --fates */
	bool inner;          /* the filter also applies below tunnels */
	enum ledger_view by; /* --view */
	enum ledger_order order;
	uint32_t most, rows;
	/* Packets that wait to be counted. */
	struct ringtap_packet batch[LEDGER_BATCH];
	uint16_t batch_types[LEDGER_BATCH];
	unsigned waiting;
	uint16_t *linktypes; /* by interface; 0: not known yet */
	uint32_t linktype_count;
	bool final;
	struct flow_key shown[FLOWS_ROWS_MAX]; /* on the screen */
	unsigned shown_count;
	struct flows_detail detail;
};

/* Numbers of an entry: of the interval, at the end of the whole time. */
struct flows_row {
	struct estimate packets, bytes;         /* since the beginning */
	struct estimate packet_rate, byte_rate; /* a second */
	struct estimate share;                  /* part of all packets, 0 … 1 */
	struct estimate mean;                   /* bytes of a packet */
};
struct flows_row flows_row(const struct flows_command *c, const struct ledger_flow *f);
/* SYN without an answer; 0 in a sample, which has one of them without the other. */
uint64_t flows_unanswered(const struct flows_command *c, const struct ledger_flow *f);
/* Counters of the capture. */
struct ringtap_counts flows_counts(const struct flows_command *c);

/* ---- report.c, json.c: as struct fates_view has them */

int flows_text(void *ctx, FILE *f);
json_t *flows_json(void *ctx);

#endif
