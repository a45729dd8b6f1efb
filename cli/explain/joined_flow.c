/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "joined_flow.h"

#define FLOWS_MIN  1024u
#define BYTES_EACH (sizeof(struct joined_flow) + FLOW_BUCKETS * sizeof(uint32_t) + 16)

int joined_flows_init(struct flow_table *t, uint64_t memory)
{
	uint64_t max = memory / BYTES_EACH;

	if (max > UINT32_MAX / 4)
		max = UINT32_MAX / 4;
	return flow_table_init(
		t, sizeof(struct joined_flow), max < FLOWS_MIN ? FLOWS_MIN : (uint32_t)max);
}

void joined_flows_free(struct flow_table *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		free(joined_flow_at(t, i)->bucket);
	flow_table_free(t);
}

uint64_t joined_flows_bytes(const struct flow_table *t)
{
	return t->count * BYTES_EACH;
}

/* Which of two packets of the same time stamp came first is only known within a queue: bursts have
 * one time stamp. */
static bool order_known(const struct passage *a, const struct passage *b)
{
	bool rx = a->rx_ns != b->rx_ns || a->rx_queue == b->rx_queue;
	bool same_queue = a->tx_port == b->tx_port && a->tx_queue == b->tx_queue;

	return rx && (a->tx_ns != b->tx_ns || same_queue);
}

bool joined_flow_sent(struct joined_flow *f, uint32_t sequence, const struct passage *p)
{
	uint32_t behind = f->highest - sequence;

	if (!f->sent++ || behind > UINT32_MAX / 2) {
		f->highest = sequence;
		f->passage = *p;
		return false;
	}
	if (!order_known(p, &f->passage))
		return false;
	f->reordered++;
	if (behind > f->most_behind)
		f->most_behind = behind;
	if (p->tx_ns > f->passage.tx_ns && p->tx_ns - f->passage.tx_ns > f->most_late_ns)
		f->most_late_ns = p->tx_ns - f->passage.tx_ns;
	return true;
}

static uint32_t bucket_of(uint64_t ns)
{
	return rt_log_bucket(ns < LATENCY_MAX ? ns : LATENCY_MAX, FLOW_BITS);
}

void joined_flow_prefetch(const struct joined_flow *f, uint64_t ns)
{
	if (f->bucket)
		__builtin_prefetch(&f->bucket[bucket_of(ns)], 1);
}

void joined_flow_latency(struct joined_flow *f, uint64_t ns)
{
	if (!f->bucket) {
		f->bucket = calloc(FLOW_BUCKETS, sizeof(*f->bucket));
		f->min = ns;
	}
	if (ns < f->min)
		f->min = ns;
	if (ns > f->max)
		f->max = ns;
	f->sum += ns;
	if (f->bucket)
		f->bucket[bucket_of(ns)]++;
}
