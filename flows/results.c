/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest entries of a ledger, and numbers of an entry. */
#include <math.h>
#include <string.h>

#include "ledger.h"

double ledger_quantile(const struct ledger_flow *f, double share)
{
	const struct ledger_latency *l = ledger_latency(f);

	return l->count ? buckets_quantile(
				  l->bucket, LEDGER_BITS, share, (double)l->min, (double)l->max)
			: NAN;
}

struct estimate ledger_quantile_of(const struct ledger_flow *f, uint32_t every, double share)
{
	struct estimate e = {ledger_quantile(f, share), 0};
	double low, high;

	if (every == 1 || isnan(e.value))
		return e;
	estimate_quantile(every, ledger_latency(f)->count, share, &low, &high);
	e.bound = e.value - (low > 0 ? ledger_quantile(f, low) : 0);
	e.bound = high > 1 ? NAN : fmax(e.bound, ledger_quantile(f, high) - e.value);
	return e;
}

static double weight(
	const struct ledger *t, enum ledger_order order, bool all, const struct ledger_flow *f)
{
	double p99;

	if (order == LEDGER_BY_LATENCY) {
		p99 = t->ids ? ledger_quantile(f, 0.99) : NAN;
		return isnan(p99) ? 0 : p99 + 1;
	}
	if (!all && f->mark != t->mark)
		return 0;
	if (order == LEDGER_BY_BYTES)
		return (double)(all ? f->bytes : f->recent_bytes);
	return (double)(all ? f->packets : f->recent_packets);
}

unsigned ledger_top(const struct ledger *t, enum ledger_order order, bool all,
	const struct ledger_flow **out, unsigned max)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < t->table.count; i++) {
		const struct ledger_flow *f = flow_table_at(&t->table, i);
		double w = weight(t, order, all, f);
		unsigned at = n;

		if (!(w > 0) || (n == max && w <= weight(t, order, all, out[n - 1])))
			continue;
		n += n < max;
		for (at = n - 1; at && weight(t, order, all, out[at - 1]) < w; at--)
			out[at] = out[at - 1];
		out[at] = f;
	}
	return n;
}

uint64_t ledger_unanswered(const struct ledger *t, const struct ledger_flow *f)
{
	struct flow_key k = f->key;
	const struct ledger_flow *other;
	uint32_t index;

	if (t->view != LEDGER_5_TUPLE && t->view != LEDGER_INNER)
		return 0;
	memcpy(k.src, f->key.dst, sizeof(k.src));
	memcpy(k.dst, f->key.src, sizeof(k.dst));
	k.src_port = f->key.dst_port;
	k.dst_port = f->key.src_port;
	index = flow_table_find(&t->table, &k);
	other = index == FLOW_NONE ? NULL : flow_table_at(&t->table, index);
	if (other && other->syn_ack >= f->syn)
		return 0;
	return f->syn - (other ? other->syn_ack : 0);
}
