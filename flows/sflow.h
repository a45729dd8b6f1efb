/* SPDX-License-Identifier: BSD-3-Clause */
/* sFlow version 5 (sflow.org, "sFlow Version 5", July 2004): headers of sampled packets, and
 * counters of ports, in datagrams over UDP. */
#ifndef RINGTAP_FLOWS_SFLOW_H
#define RINGTAP_FLOWS_SFLOW_H

#include "collector.h"
#include "export_port.h"

#define SFLOW_PORT "6343"
/* Packets in a tenth of a second, at most about: collectors read them from a buffer of ordinary
 * size. */
#define SFLOW_PER_WINDOW  200u
#define SFLOW_COUNTERS_NS (20 * UINT64_C(1000000000))

struct sflow {
	struct collector to;
	struct wire w;        /* the datagram that is being made; empty: none */
	uint32_t in_datagram; /* samples */
	uint32_t datagrams;   /* sequence number */
	uint32_t sub_agent;   /* one for each application of a host */
	uint32_t sample;      /* the capture takes one of this many packets */
	uint32_t thin;        /* one in this many of these is sent; a power of two */
	uint32_t taken;       /* packets since window_ns */
	uint64_t random;
	uint64_t start_ns, window_ns, counters_ns; /* CLOCK_MONOTONIC */
	uint64_t packets, counters;                /* samples */
};

void sflow_begin(struct sflow *s, uint32_t sub_agent, uint32_t sample);
/* A packet of the capture: it is sent, or left out by thin. */
void sflow_packet(struct sflow *s, struct export_port *port, const struct ringtap_packet *p);
/* Are counters due? The next ones are 20 s later. */
bool sflow_counters_due(struct sflow *s);
void sflow_counters(struct sflow *s, struct export_port *port, const struct export_counters *c);
/* Ten times a second or more often: sends more packets of a port that has fewer. */
void sflow_pace(struct sflow *s);
/* Sends the datagram that is being made. */
void sflow_flush(struct sflow *s);

#endif
