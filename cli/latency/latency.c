/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "latency.h"

const double latency_shares[LATENCY_QUANTILES] = {0.5, 0.9, 0.99, 0.999};
const char *const latency_names[LATENCY_QUANTILES] = {"p50", "p90", "p99", "p999"};
const char *const latency_labels[LATENCY_QUANTILES] = {"p50", "p90", "p99", "p99.9"};

static bool wanted(const struct one_app *app, const struct ringtap_snapshot *f,
	const struct ringtap_pair_stats *p)
{
	return one_app_includes(app, f, p->tx_port) ||
	       (p->rx_port != RINGTAP_NO_INDEX && one_app_includes(app, f, p->rx_port));
}

uint64_t latency_timed(const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < now->pair_count; i++) {
		if (wanted(app, now, ringtap_snapshot_pair(now, i)))
			n += ringtap_snapshot_pair(now, i)->count -
			     (i < first->pair_count ? ringtap_snapshot_pair(first, i)->count : 0);
	}
	return n;
}

static void add_untimed(
	struct latency *l, const struct ringtap_snapshot *f, const struct ringtap_pair_stats *p)
{
	struct latency_untimed *u = l->untimed;

	while (u < l->untimed + l->untimed_count && u->tx_port != p->tx_port)
		u++;
	if (u == l->untimed + l->untimed_count) {
		*u = (struct latency_untimed){
			.port = ringtap_snapshot_port(f, p->tx_port)->name, .tx_port = p->tx_port};
		l->untimed_count++;
	}
	u->unstamped += p->unstamped;
	u->shared += p->shared;
}

static struct latency_pair *pair_of(
	struct latency *l, const struct ringtap_snapshot *f, const struct ringtap_pair_stats *p)
{
	struct latency_pair *o = l->pairs;

	for (; o < l->pairs + l->pair_count; o++) {
		if (o->rx_port == p->rx_port && o->tx_port == p->tx_port &&
			o->inferred == (p->inferred != 0))
			return o;
	}
	*o = (struct latency_pair){.from = ringtap_snapshot_port(f, p->rx_port)->name,
		.to = ringtap_snapshot_port(f, p->tx_port)->name,
		.rx_port = p->rx_port,
		.tx_port = p->tx_port,
		.inferred = p->inferred != 0,
		.min = UINT64_MAX,
		.exact = true,
		.bucket = calloc(ringtap_latency_buckets(), sizeof(*o->bucket))};
	if (!o->bucket)
		return NULL;
	l->pair_count++;
	return o;
}

/* The probe's minimum and maximum are those since the collector was switched on: if that was before
 * the measurement, use the ends of the histogram. */
static void add_extremes(struct latency_pair *o, const struct ringtap_pair_stats *p, bool since_on)
{
	double low = ringtap_latency_quantile(p->bucket, 0);
	double high = ringtap_latency_quantile(p->bucket, 1);
	uint64_t min = since_on ? p->min : (uint64_t)low;
	uint64_t max = since_on ? p->max : (uint64_t)high;

	o->exact = o->exact && since_on;
	if (min < o->min)
		o->min = min;
	if (max > o->max)
		o->max = max;
}

static int by_ports(const void *a, const void *b)
{
	const struct latency_pair *x = a, *y = b;

	if (x->inferred != y->inferred)
		return x->inferred ? 1 : -1;
	if (x->rx_port != y->rx_port)
		return x->rx_port < y->rx_port ? -1 : 1;
	return (x->tx_port > y->tx_port) - (x->tx_port < y->tx_port);
}

/* Middles of buckets, of which the first and last may lie beyond minimum and maximum. */
static void find_quantiles(struct latency_pair *p)
{
	for (int q = 0; q < LATENCY_QUANTILES; q++) {
		double v = ringtap_latency_quantile(p->bucket, latency_shares[q]);

		p->quantile[q] = fmax(fmin(v, (double)p->max), (double)p->min);
	}
}

int latency_sum(struct latency *l, const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *since)
{
	uint32_t n = since->pair_count;

	*l = (struct latency){.ns_per_cycle = 1e9 / (double)since->tsc_hz,
		.no_room = since->no_pair_packets,
		.every = since->latency_every ? since->latency_every : 1,
		.pairs = calloc(n + 1, sizeof(*l->pairs)),
		.untimed = calloc(n + 1, sizeof(*l->untimed))};
	if (!l->pairs || !l->untimed)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct ringtap_pair_stats *p = ringtap_snapshot_pair(since, i);
		struct latency_pair *o;

		if (!wanted(app, since, p))
			continue;
		if (p->unstamped || p->shared)
			add_untimed(l, since, p);
		if (!p->count || p->rx_port == RINGTAP_NO_INDEX)
			continue;
		o = pair_of(l, since, p);
		if (!o)
			return -ENOMEM;
		o->count += p->count;
		o->sum += p->sum;
		l->timed += p->count;
		add_extremes(
			o, p, i >= first->pair_count || !ringtap_snapshot_pair(first, i)->count);
		for (uint32_t b = 0; b < ringtap_latency_buckets(); b++)
			o->bucket[b] += p->bucket[b];
	}
	qsort(l->pairs, l->pair_count, sizeof(*l->pairs), by_ports);
	for (uint32_t i = 0; i < l->pair_count; i++)
		find_quantiles(&l->pairs[i]);
	return 0;
}

void latency_free(struct latency *l)
{
	for (uint32_t i = 0; i < l->pair_count; i++)
		free(l->pairs[i].bucket);
	free(l->pairs);
	free(l->untimed);
}
