/* SPDX-License-Identifier: BSD-3-Clause */
/* IPFIX (RFC 7011, information elements of IANA's registry): the flows of a ledger of 5-tuples, in
 * messages over UDP or TCP. */
#ifndef RINGTAP_FLOWS_IPFIX_H
#define RINGTAP_FLOWS_IPFIX_H

#include "collector.h"
#include "export_port.h"
#include "ledger.h"

#define IPFIX_PORT "4739"
/* Records, at most: collectors on ordinary hosts take more, but not all at once. */
#define IPFIX_PER_SECOND   50000u
#define IPFIX_TEMPLATES_NS (30 * UINT64_C(1000000000))

struct ipfix {
	struct collector to;
	struct wire w;       /* the message that is being made; empty: none */
	size_t set_at;       /* where its last set begins */
	uint16_t set;        /* that set's id; 0: none */
	uint32_t in_message; /* data records */
	uint32_t sequence;   /* data records in the messages before */
	uint32_t pen;        /* private enterprise number of elements of ours; 0: none of these */
	uint32_t domain;     /* one for each application of a host */
	uint32_t sample;     /* the capture takes one of this many packets */
	uint32_t described_ports;
	uint32_t described; /* connection that knows the templates */
	bool stuck;         /* at the end the collector takes no more */
	uint64_t active_ns, idle_ns;
	uint64_t templates_ns, pass_ns, pace_ns; /* CLOCK_MONOTONIC */
	uint32_t next;                           /* entry of the ledger */
	uint32_t paced;                          /* records since pace_ns */
	uint64_t records;                        /* flows */
};

void ipfix_begin(struct ipfix *x, uint32_t domain, uint32_t sample);
/* Reports the flows that ended, were idle for idle_ns or go on for active_ns, a part of the ledger
 * each time. time_ns: since the epoch, as that of packets. final: all of them. */
void ipfix_turn(struct ipfix *x, const struct ledger *t, const struct export_port *ports,
	uint32_t port_count, uint64_t time_ns, bool final);
/* An entry that the ledger forgets. */
void ipfix_forgotten(struct ipfix *x, const struct ledger *t, const struct export_port *ports,
	uint32_t port_count, const struct ledger_flow *f);

#endif
