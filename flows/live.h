/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of each application of a watch, of the last interval, from a sample of received
 * packets: a thread captures it. */
#ifndef RINGTAP_FLOWS_LIVE_H
#define RINGTAP_FLOWS_LIVE_H

#include "estimate.h"
#include "measure/watch.h"
#include "view.h"

#define FLOWS_LIVE_MAX 1000u

struct flows_live_options {
	const char *command; /* for messages; NULL: prints none */
	struct watch *watch; /* outlives the thread */
	unsigned top;        /* flows of an application, at most FLOWS_LIVE_MAX */
	uint64_t interval_ns;
};

struct flow_row {
	struct flow_key key;
	char name[LEDGER_TEXT];
	char place[LEDGER_TEXT];       /* port and queue that received the last packet */
	struct estimate packets, bits; /* a second */
	struct estimate share;         /* part of the packets of the application, 0 … 1 */
	struct estimate mean;          /* bytes of a packet */
};

struct flow_rows {
	uint32_t sample; /* one of N packets was counted: this N; 0: there is no capture */
	uint64_t lost;   /* packets of the interval that are missing: the thread was too slow */
	char why[256];   /* there is no capture; "": there is one, or it begins */
	unsigned count;
	struct flow_row *list; /* by bytes, largest first */
	char *detail;          /* lines of the flow that is open; NULL: none, or not yet */
};

struct flows_live;

/* 0 or -errno. End it with flows_live_stop(). */
int flows_live_start(struct flows_live **out, const struct flows_live_options *o);
/* NULL: nothing to do. */
void flows_live_stop(struct flows_live *f);
/* Whether packets are captured; at first they are. The thread begins and ends captures: it takes
 * some time. */
void flows_live_want(struct flows_live *f, bool wanted);
/* The rows of the application with this folder; NULL: none yet. They stay until
 * flows_live_release(), which must follow in any case. */
const struct flow_rows *flows_live_rows(struct flows_live *f, const char *dir);
void flows_live_release(struct flows_live *f);
/* Opens the flow of this name, of the application with this folder: its rows then have its newest
 * packets and the command that records them. NULL: no flow, which closes the one that was open.
 * False: there is no such flow. */
bool flows_live_open(struct flows_live *f, const char *dir, const char *name);

/* Cost of the capture, behind "costs": docs/performance.md. */
#define FLOWS_LIVE_PRICE \
	"at most 2 %, and its hooks 12 % of an application that takes 5 ns a packet"

#endif
