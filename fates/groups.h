/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets by what they are: protocol, flow and size, in bounded memory. */
#ifndef RINGTAP_FATES_GROUPS_H
#define RINGTAP_FATES_GROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "packet/headers.h"
#include "packet/keyed.h"
#include "packet/sizes.h"
#include "packet/flows.h"
#include "ringtap/fates.h"

#define SAMPLE_BYTES 256

#define REASONS (RINGTAP_REASON_OTHERS + 1)

/* An open packet, or one with a known fate. */
struct sample {
	const uint8_t *data; /* caplen bytes */
	uint32_t caplen, length;
	uint32_t interface, queue;
	uint8_t reason; /* number: ringtap_capture_reason() */
	bool has_history;
	uint64_t mbuf, history; /* as in struct ringtap_open_packet; mbuf 0: not known */
	uint64_t ns;            /* reception, since the epoch */
	uint64_t age_ns;        /* from then until its fate was noticed, or until now */
};

/* A protocol. */
struct packet_group {
	char name[PROTOCOL_TEXT];
	uint64_t packets, bytes;
	uint64_t marked;       /* packets at the last mark */
	uint64_t oldest_ns;    /* the greatest age */
	struct sample example; /* the first one since the mark; its data are copied */
	uint8_t data[SAMPLE_BYTES];
	bool fresh; /* the example is of this interval */
};

struct packet_groups {
	struct keyed protocols; /* struct packet_group */
	struct flows *flows;
	uint64_t packets, bytes;
	uint64_t marked;  /* packets at the last mark */
	uint64_t no_room; /* packets of protocols beyond those that fit */
	uint64_t sizes[SIZES];
	uint64_t reasons[REASONS]; /* packets by number; 0: without one */
};

/* The caller frees with groups_free(), in any case. 0 or -ENOMEM. */
int groups_init(struct packet_groups *g);
void groups_free(struct packet_groups *g);
void groups_add(struct packet_groups *g, const struct sample *p);
/* An interval begins: rates are those since the mark. */
void groups_mark(struct packet_groups *g);
/* Rates are those since the beginning. */
void groups_unmark(struct packet_groups *g);
/* The protocols with most packets first, at most max of them, into out. Returns how many. */
unsigned groups_top(const struct packet_groups *g, const struct packet_group **out, unsigned max);
/* Forgets all packets. 0 or -ENOMEM. */
int groups_clear(struct packet_groups *g);

/* An open packet, at a time (ns since the epoch); its data are those of p. */
struct sample sample_of_open(const struct ringtap_open_packet *p, uint64_t now_ns);

/* A packet in one line: "10.0.0.1:53 > 10.0.0.2:4711 UDP, 98 bytes, TTL 64, VLAN 5". buf is
 * returned. */
#define SAMPLE_TEXT 256
char *sample_text(const struct sample *p, char buf[SAMPLE_TEXT]);

#endif
