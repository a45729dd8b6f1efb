/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows of received packets: by receiving port, outermost VLAN, addresses, protocol and ports; by
 * MAC addresses and type where a packet is not IP. And whether an application keeps their order.
 */
#ifndef RINGTAP_PACKET_FLOWS_H
#define RINGTAP_PACKET_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "headers.h"
#include "spread.h"

#define FLOW_NONE    UINT32_MAX
#define FLOW_BITS    3 /* of its histogram: percentiles are within 6 % */
#define FLOW_BUCKETS RT_LOG_BUCKETS(FLOW_BITS, LATENCY_MAX_BITS)

struct flow_key {
	uint8_t src[16], dst[16]; /* or MAC addresses */
	uint16_t src_port, dst_port, type, vlan;
	uint16_t port; /* index of the receiving one */
	uint8_t protocol, version, flags;
	uint8_t zero[3]; /* to a multiple of 8 */
};

/* When and where a packet was received and sent. */
struct passage {
	uint64_t rx_ns, tx_ns;
	uint16_t rx_queue, tx_port, tx_queue;
};

struct flow {
	struct flow_key key;
	uint32_t hash;
	uint32_t received; /* also the sequence number of the next packet; modulo 2^32 */
	uint64_t sent, not_sent, copies, reordered;
	uint64_t not_offered;   /* of recordings with fates */
	uint64_t sum, min, max; /* latency in ns */
	uint64_t first_number;  /* frame of the first packet */
	/* Order of the first sending of each packet. */
	uint32_t highest;       /* sequence number; valid if sent > 0 */
	struct passage passage; /* of that packet */
	uint32_t most_behind;   /* packets that were received later and sent earlier */
	uint64_t most_late_ns;  /* since the sending of the one that was received last of those */
	uint64_t reordered_number; /* frame, as received, of the first reordered packet */
	uint32_t *bucket;          /* FLOW_BUCKETS of them; NULL: none was sent */
};

struct flows {
	struct flow **chunks;
	uint32_t count, max;
	struct slot32 {
		uint32_t hash, index;
	} * slots;
	uint32_t slot_count; /* a power of two */
	struct secret secret;
	uint64_t no_room; /* packets of flows that it has no memory for */
};

/* memory: bytes, at most. 0 or -ENOMEM. Free with flow_table_free() in any case. */
int flow_table_init(struct flows *f, uint64_t memory);
void flow_table_free(struct flows *f);
struct flow *flow_table_at(const struct flows *f, uint32_t index);
/* The flow of a packet that was received at a port. FLOW_NONE: there is no memory. */
uint32_t flow_table_get(struct flows *f, uint16_t port, const struct headers *h);
/* Counts the first sending of a packet with this sequence number. True: packets that the flow
 * received later have been sent already. */
bool flow_sent(struct flow *f, uint32_t sequence, const struct passage *p);
void flow_latency(struct flow *f, uint64_t ns);
/* "192.0.2.1:53 > 198.51.100.7:4242 UDP, VLAN 5". Returns buf. */
char *flow_table_text(const struct flow *f, char buf[HEADERS_TEXT]);

#endif
