/* SPDX-License-Identifier: BSD-3-Clause */
/* Fates of the packets of a flow: when they were sent, and whether in their order. */
#ifndef RINGTAP_CLI_EXPLAIN_JOINED_FLOW_H
#define RINGTAP_CLI_EXPLAIN_JOINED_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/flow_table.h"
#include "packet/spread.h"

#define FLOW_BITS    3 /* resolution of its histogram: percentiles are within 6 % */
#define FLOW_BUCKETS RT_LOG_BUCKETS(FLOW_BITS, LATENCY_MAX_BITS)

/* When and where a packet was received and sent. */
struct passage {
	uint64_t rx_ns, tx_ns;
	uint16_t rx_queue, tx_port, tx_queue;
};

struct joined_flow {
	struct flow_key key; /* first, for the table */
	uint32_t received;   /* also the sequence number of the next packet; modulo 2^32 */
	uint64_t sent, not_sent, copies, reordered;
	uint64_t not_offered;   /* 0 where the recording has no fates */
	uint64_t sum, min, max; /* latency in ns */
	uint64_t first_number;  /* frame of the first packet */
	/* Order of the first sending of each packet. */
	uint32_t highest;       /* sequence number; valid if sent > 0 */
	struct passage passage; /* how that packet passed */
	uint32_t most_behind;   /* packets that were received later and sent earlier */
	uint64_t most_late_ns;  /* since the sending of the one that was received last of those */
	uint64_t reordered_number; /* frame, as received, of the first reordered packet */
	uint32_t *bucket;          /* FLOW_BUCKETS of them; NULL: none was sent */
};

/* A table of them. memory: bytes, at most. 0 or -ENOMEM. Free with joined_flows_free() in any case.
 */
int joined_flows_init(struct flow_table *t, uint64_t memory);
void joined_flows_free(struct flow_table *t);
uint64_t joined_flows_bytes(const struct flow_table *t);

static inline struct joined_flow *joined_flow_at(const struct flow_table *t, uint32_t index)
{
	return flow_table_at(t, index);
}

/* Counts the first sending of a packet with this sequence number. True: packets that the flow
 * received later have been sent already. */
bool joined_flow_sent(struct joined_flow *f, uint32_t sequence, const struct passage *p);
void joined_flow_latency(struct joined_flow *f, uint64_t ns);
/* Loads what joined_flow_latency() will need, if it can. */
void joined_flow_prefetch(const struct joined_flow *f, uint64_t ns);

#endif
