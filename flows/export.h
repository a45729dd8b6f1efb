/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends what passes the ports of an application to flow collectors: packets as sFlow, flows as
 * IPFIX. */
#ifndef RINGTAP_FLOWS_EXPORT_H
#define RINGTAP_FLOWS_EXPORT_H

#include "ipfix.h"
#include "sflow.h"

struct export_request {
	const char *sflow, *ipfix; /* addresses; NULL: none */
	uint64_t active_ns, idle_ns;
	uint32_t pen; /* 0: standard elements only */
};

struct exports {
	const char *dir; /* runtime folder of the application */
	struct ledger *ledger;
	struct ringtap_capture *cap;
	struct export_port *ports; /* by interface */
	uint32_t port_count;
	uint64_t counts_ns, turn_ns; /* CLOCK_MONOTONIC: the last ones */
	struct sflow *sflow;
	struct ipfix *ipfix;
};

/* Opens the collectors of a request. 0, or -EINVAL or -errno after printing why. Close with
 * exports_close() in any case, once *e is zeros. */
int exports_open(struct exports *e, const char *command, const struct export_request *r);
void exports_close(struct exports *e);

/* The capture of an application begins. sample: it takes one of this many packets. 0 or -ENOMEM. */
int exports_begin(struct exports *e, struct ringtap_capture *cap, const char *dir,
	const char *application, uint32_t sample, struct ledger *t);
/* A packet that the ledger has counted. */
void exports_packet(struct exports *e, const struct ringtap_packet *p);
/* Often: sends what is due. final: all that is left. */
void exports_turn(struct exports *e, bool final);

#endif
