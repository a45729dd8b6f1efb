/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
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

static int order(const struct latency_pair *x, const struct latency_pair *y)
{
	const uint32_t keys[][2] = {{x->inferred, y->inferred}, {x->rx_port, y->rx_port},
		{x->tx_port, y->tx_port}, {x->thread, y->thread}, {x->tx_queue, y->tx_queue},
		{x->bytes_from, y->bytes_from}, {x->bytes_to, y->bytes_to}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return 0;
}

static struct latency_pair *find(const struct latency *l, const struct latency_pair *like)
{
	for (struct latency_pair *p = l->pairs; p < l->pairs + l->pair_count; p++)
		if (!order(p, like))
			return p;
	return NULL;
}

static struct latency_pair *pair_of(
	struct latency *l, const struct ringtap_snapshot *f, const struct ringtap_pair_stats *p)
{
	struct latency_pair *o,
		new = {.from = ringtap_snapshot_port(f, p->rx_port)->name,
			.to = ringtap_snapshot_port(f, p->tx_port)->name,
			.rx_port = p->rx_port,
			.tx_port = p->tx_port,
			.thread = l->by == BY_THREAD ? p->thread : RINGTAP_NO_INDEX,
			.tx_queue = l->by == BY_QUEUE ? p->tx_queue : RINGTAP_NO_INDEX,
			.bytes_from = l->by == BY_SIZE ? p->bytes_from : 0,
			.bytes_to = l->by == BY_SIZE ? p->bytes_to : UINT32_MAX,
			.inferred = p->inferred != 0,
			.min = UINT64_MAX,
			.exact = true};

	o = find(l, &new);
	if (o)
		return o;
	new.bucket = calloc(ringtap_latency_buckets(), sizeof(*new.bucket));
	if (!new.bucket)
		return NULL;
	o = &l->pairs[l->pair_count++];
	*o = new;
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

static int by_order(const void *a, const void *b)
{
	return order(a, b);
}

/* Middles of buckets, of which the first and last may lie beyond minimum and maximum. */
static void find_quantiles(struct latency_pair *p)
{
	for (int q = 0; q < LATENCY_QUANTILES; q++) {
		double v = ringtap_latency_quantile(p->bucket, latency_shares[q]);

		p->quantile[q] = fmax(fmin(v, (double)p->max), (double)p->min);
	}
}

int latency_sum(struct latency *l, enum latency_by by, const struct one_app *app,
	const struct ringtap_snapshot *first, const struct ringtap_snapshot *since)
{
	uint32_t n = since->pair_count;

	*l = (struct latency){.by = by,
		.f = since,
		.from_ns = since->taken_ns - since->interval_ns,
		.to_ns = since->taken_ns,
		.ns_per_cycle = 1e9 / (double)since->tsc_hz,
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
	qsort(l->pairs, l->pair_count, sizeof(*l->pairs), by_order);
	for (uint32_t i = 0; i < l->pair_count; i++)
		find_quantiles(&l->pairs[i]);
	return 0;
}

/* Their extremes are not known, but by the histogram. */
static void less(struct latency_pair *p, const struct latency_pair *before)
{
	p->count -= before->count;
	p->sum -= before->sum;
	for (uint32_t b = 0; b < ringtap_latency_buckets(); b++)
		p->bucket[b] -= before->bucket[b];
}

void latency_since(struct latency *l, const struct latency *before)
{
	uint32_t kept = 0;

	l->no_room -= before->no_room;
	l->timed -= before->timed;
	for (uint32_t i = 0; i < l->pair_count; i++) {
		struct latency_pair *p = &l->pairs[i], *old = find(before, p);

		if (old)
			less(p, old);
		if (!p->count) {
			free(p->bucket);
			continue;
		}
		p->min = UINT64_MAX;
		p->max = 0;
		add_extremes(p, &(struct ringtap_pair_stats){.bucket = p->bucket}, false);
		find_quantiles(p);
		l->pairs[kept++] = *p;
	}
	l->pair_count = kept;
	l->from_ns = before->to_ns;
	for (uint32_t i = 0; i < l->untimed_count; i++)
		for (uint32_t k = 0; k < before->untimed_count; k++)
			if (l->untimed[i].tx_port == before->untimed[k].tx_port) {
				l->untimed[i].unstamped -= before->untimed[k].unstamped;
				l->untimed[i].shared -= before->untimed[k].shared;
			}
}

bool latency_few(const struct latency_pair *p, int quantile)
{
	return (double)p->count * (1 - latency_shares[quantile]) < LATENCY_BEYOND - 1e-6;
}

char *latency_part(
	char buf[LATENCY_PART_LEN], const struct latency *l, const struct latency_pair *p)
{
	char thread[THREAD_NAME_LEN];

	*buf = 0;
	if (p->thread != RINGTAP_NO_INDEX)
		snprintf(buf, LATENCY_PART_LEN, ", %s",
			thread_name(thread, ringtap_snapshot_thread(l->f, p->thread)));
	else if (p->tx_queue != RINGTAP_NO_INDEX)
		snprintf(buf, LATENCY_PART_LEN, ", queue %" PRIu32, p->tx_queue);
	else if (p->bytes_from && p->bytes_to != UINT32_MAX)
		snprintf(buf, LATENCY_PART_LEN, ", %" PRIu32 " to %" PRIu32 " bytes", p->bytes_from,
			p->bytes_to);
	else if (p->bytes_from || p->bytes_to != UINT32_MAX)
		snprintf(buf, LATENCY_PART_LEN,
			p->bytes_from ? ", %" PRIu32 " bytes or more" : ", up to %" PRIu32 " bytes",
			p->bytes_from ? p->bytes_from : p->bytes_to);
	return buf;
}

void latency_free(struct latency *l)
{
	for (uint32_t i = 0; i < l->pair_count; i++)
		free(l->pairs[i].bucket);
	free(l->pairs);
	free(l->untimed);
}
