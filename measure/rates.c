/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rates.h"
#include "target/which_app.h"
#include "base/util.h"

bool span_of(const struct watched *a, struct span *s)
{
	if (!a->now || !a->mark || a->now == a->mark ||
		a->now->taken_mono_ns <= a->mark->taken_mono_ns)
		return false;
	*s = (struct span){.from = a->mark,
		.to = a->now,
		.seconds = (double)(a->now->taken_mono_ns - a->mark->taken_mono_ns) / NS_PER_S,
		.tsc_hz = a->tsc_hz,
		.app = a};
	return true;
}

struct span span_total(const struct watched *a)
{
	static const struct ringtap_snapshot nothing;

	return (struct span){
		.from = &nothing, .to = a->now, .seconds = 1, .tsc_hz = a->tsc_hz, .app = a};
}

bool span_has_port(const struct span *s, uint32_t port)
{
	const struct ringtap_port_stats *p;

	if (!s->app || !s->app->port_count)
		return true;
	if (port == RINGTAP_NO_INDEX)
		return false;
	p = ringtap_snapshot_port(s->to, port);
	for (size_t i = 0; i < s->app->port_count; i++)
		if (target_port_matches(p->name, p->device, p->port_id, s->app->ports[i]))
			return true;
	return false;
}

bool span_has_thread(const struct span *s, uint32_t thread)
{
	bool all = !s->app || !s->app->port_count;

	for (uint32_t i = 0; i < s->to->queue_count && !all; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s->to, i);

		all = q->thread == thread && span_has_port(s, q->port);
	}
	return all;
}

uint64_t grown(uint64_t later, uint64_t earlier)
{
	return later >= earlier ? later - earlier : later;
}

void tally_add(struct tally *t, const struct span *s, uint32_t i)
{
	static const struct ringtap_queue_stats zero;
	const struct ringtap_queue_stats *b = ringtap_snapshot_queue(s->to, i);
	const struct ringtap_queue_stats *a =
		i < s->from->queue_count ? ringtap_snapshot_queue(s->from, i) : &zero;

	uint64_t calls = grown(b->polls, a->polls);

	if (!calls)
		return;
	t->calls += calls;
	t->empty += grown(b->empty_polls, a->empty_polls);
	t->packets += grown(b->packets, a->packets);
	t->bytes += grown(b->bytes, a->bytes);
	t->byte_packets += grown(b->byte_packets, a->byte_packets);
	t->big_calls += grown(b->big_polls, a->big_polls);
	t->big_packets += grown(b->big_packets, a->big_packets);
	if (b->max_burst > t->max_burst)
		t->max_burst = b->max_burst;
	if (b->max_burst > RINGTAP_BURSTS)
		t->full += grown(b->big_polls, a->big_polls);
	else if (b->max_burst)
		t->full += grown(b->burst[b->max_burst], a->burst[b->max_burst]);
	for (unsigned n = 0; n <= RINGTAP_BURSTS; n++)
		t->burst[n] += grown(b->burst[n], a->burst[n]);
}

void tally_sum(
	struct tally *t, const struct span *s, uint32_t port, uint32_t thread, unsigned direction)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < s->to->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s->to, i);

		if ((port == RINGTAP_NO_INDEX || q->port == port) &&
			(thread == RINGTAP_NO_INDEX || q->thread == thread) &&
			(!direction || q->direction == direction))
			tally_add(t, s, i);
	}
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

double tally_mean(const struct tally *t)
{
	return ratio((double)t->packets, (double)t->calls);
}

double tally_mean_busy(const struct tally *t)
{
	return ratio((double)t->packets, (double)(t->calls - t->empty));
}

unsigned tally_quantile(const struct tally *t, double share)
{
	uint64_t total = t->big_calls, sum = 0;

	for (unsigned n = 1; n <= RINGTAP_BURSTS; n++)
		total += t->burst[n];
	for (unsigned n = 1; n <= RINGTAP_BURSTS && total; n++) {
		sum += t->burst[n];
		if ((double)sum >= share * (double)total)
			return n;
	}
	return total ? RINGTAP_BURSTS + 1 : 0;
}

double tally_full(const struct tally *t)
{
	return ratio((double)t->full, (double)t->calls);
}

void tally_fullest(struct tally *t, const struct span *s, uint32_t port, uint32_t thread)
{
	uint64_t calls = 0, entries = 0;

	memset(t, 0, sizeof(*t));
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < s->to->queue_count; i++) {
			const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s->to, i);
			struct tally one = {0};

			if (q->direction != RINGTAP_RX ||
				(port != RINGTAP_NO_INDEX && q->port != port) ||
				(thread != RINGTAP_NO_INDEX && q->thread != thread))
				continue;
			tally_add(&one, s, i);
			if (!pass) {
				calls += one.calls;
				entries += one.calls > 0;
			} else if (one.calls && one.calls >= calls / entries / 10 &&
				   (!t->calls || tally_full(&one) > tally_full(t))) {
				*t = one;
			}
		}
	}
}

double tally_bytes(const struct tally *t)
{
	if (!t->packets)
		return t->calls ? 0 : NAN;
	/* Packets of before the collector was switched on count with the same mean. */
	return ratio((double)t->bytes * (double)t->packets, (double)t->byte_packets);
}

void tally_classes(const struct tally *t, uint64_t classes[BURST_CLASSES])
{
	memset(classes, 0, BURST_CLASSES * sizeof(classes[0]));
	classes[0] = t->burst[0];
	for (unsigned n = 1; n <= RINGTAP_BURSTS; n++)
		classes[32 - __builtin_clz(n)] += t->burst[n];
	classes[BURST_CLASSES - 1] += t->big_calls;
}

/* One that ended while a snapshot was taken may be in it, and counts in the next interval. */
static bool ended_in(const struct span *s, uint64_t start_ns, uint64_t ns)
{
	return start_ns + ns > s->from->taken_ns && start_ns + ns <= s->to->taken_ns;
}

bool rates_has_gap(const struct span *s, const struct ringtap_gap *g)
{
	return g->open || ended_in(s, g->start_ns, g->ns);
}

bool rates_has_microburst(const struct span *s, const struct ringtap_microburst *m)
{
	return ended_in(s, m->start_ns, m->ns);
}

static void worst(
	const struct ringtap_thread_stats *t, const struct span *s, struct thread_rates *out)
{
	for (uint32_t i = 0; i < t->gap_count; i++) {
		const struct ringtap_gap *g = ringtap_thread_gap(t, i);

		if (!rates_has_gap(s, g))
			continue;
		out->worst_gap_ns = fmax(out->worst_gap_ns, (double)g->ns);
		if (!g->packets)
			out->worst_idle_gap_ns = fmax(out->worst_idle_gap_ns, (double)g->ns);
	}
	for (uint32_t i = 0; i < t->microburst_count; i++) {
		const struct ringtap_microburst *m = ringtap_thread_microburst(t, i);

		if (rates_has_microburst(s, m) && m->packets > out->largest_microburst)
			out->largest_microburst = m->packets;
	}
}

/* Readings take a moment, and the kernel counts a wait when it ends, also one that began before. */
static double share(double part)
{
	return part > 1 ? 1 : part;
}

void rates_thread(const struct span *s, uint32_t i, struct thread_rates *out)
{
	static const struct ringtap_thread_stats zero;
	const struct ringtap_thread_stats *b = ringtap_snapshot_thread(s->to, i);
	const struct ringtap_thread_stats *e =
		i < s->from->thread_count ? ringtap_snapshot_thread(s->from, i) : &zero;
	double busy = (double)grown(b->busy_cycles, e->busy_cycles);
	double idle = (double)grown(b->idle_cycles, e->idle_cycles);
	/* The kernel's counters have readings of their own; the first ones are totals. */
	double kernel_ns = e->read_ns && b->read_ns > e->read_ns && b->generation == e->generation
				   ? (double)(b->read_ns - e->read_ns)
				   : NAN;
	struct tally t;

	tally_sum(&t, s, RINGTAP_NO_INDEX, i, RINGTAP_RX);
	*out = (struct thread_rates){
		.busy = ratio(busy, busy + idle),
		.seen = share(ratio(busy + idle, s->seconds * s->tsc_hz)),
		.cycles_per_packet = t.packets && busy > 0 ? busy / (double)t.packets : NAN,
		.packets = (double)t.packets / s->seconds,
		.polls = (double)t.calls / s->seconds,
		.cpu = share((double)grown(b->cpu_ns, e->cpu_ns) / kernel_ns),
		.wait = share((double)grown(b->wait_ns, e->wait_ns) / kernel_ns),
		.preempted = (double)grown(b->preempted, e->preempted) / kernel_ns * 1e9,
	};
	worst(b, s, out);
}

void rates_latency(const struct span *s, uint32_t pair, struct latency_rates *out)
{
	const struct ringtap_pair_stats *b = ringtap_snapshot_pair(s->to, pair);
	const struct ringtap_pair_stats *e =
		pair < s->from->pair_count ? ringtap_snapshot_pair(s->from, pair) : NULL;
	uint32_t buckets = ringtap_latency_buckets();
	uint64_t *counts = calloc(buckets, sizeof(*counts));
	double ns = 1e9 / s->tsc_hz;

	*out = (struct latency_rates){0, NAN, NAN, NAN, NAN, NAN, NAN};
	if (!counts)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		counts[i] = grown(b->bucket[i], e ? e->bucket[i] : 0);
	out->count = grown(b->count, e ? e->count : 0);
	if (out->count) {
		out->mean_ns = (double)grown(b->sum, e ? e->sum : 0) / (double)out->count * ns;
		out->p50_ns = ringtap_latency_quantile(counts, 0.5) * ns;
		out->p90_ns = ringtap_latency_quantile(counts, 0.9) * ns;
		out->p99_ns = ringtap_latency_quantile(counts, 0.99) * ns;
		out->p999_ns = ringtap_latency_quantile(counts, 0.999) * ns;
		out->max_ns = (double)b->max * ns;
	}
	free(counts);
}

void rates_latency_shown(const struct span *s, uint32_t pair, struct latency_rates *out)
{
	rates_latency(s, pair, out);
	out->p50_ns = fmin(out->p50_ns, out->max_ns);
	out->p90_ns = fmin(out->p90_ns, out->max_ns);
	out->p99_ns = fmin(out->p99_ns, out->max_ns);
	out->p999_ns = fmin(out->p999_ns, out->max_ns);
}

/* A hook counts a burst before the driver gets it, and a thread may lose its CPU in between: one
 * burst a queue is on its way at any time. */
static double in_flight(const struct ringtap_snapshot *f, uint32_t port)
{
	double sum = 0;

	for (uint32_t i = 0; i < f->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(f, i);
		unsigned largest = RINGTAP_BURSTS; /* larger ones are counted together */

		if (q->port != port || q->direction != RINGTAP_TX)
			continue;
		while (!q->big_polls && largest && !q->burst[largest])
			largest--;
		sum += largest;
	}
	return sum;
}

static void count_unsent(const struct span *s, uint32_t port, const struct ringtap_port_stats *b,
	const struct ringtap_port_stats *e, struct driver_counts *out)
{
	double least = (double)b->tx_before - (double)e->tx_after;
	double most = (double)b->tx_after - (double)e->tx_before;
	double sent = (double)grown(b->opackets, e->opackets);
	double epochs = 1.0 + (b->epoch - e->epoch);

	out->offered = (least + most) / 2;
	out->tx_unknown = (double)grown(b->tx_unknown, e->tx_unknown);
	sent += out->tx_unknown;
	out->unsent = least - epochs * in_flight(s->to, port) > sent ? out->offered - sent : 0;
}

/* The least that was counted, if it is certain to be more than nothing. */
static void doubt(double *count)
{
	if (*count == 0)
		*count = NAN;
}

void driver_counts(const struct span *s, uint32_t port, struct driver_counts *out)
{
	static const struct ringtap_port_stats zero;
	const struct ringtap_port_stats *b = ringtap_snapshot_port(s->to, port);
	const struct ringtap_port_stats *e = &zero;

	*out = (struct driver_counts){
		NAN, false, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (port < s->from->port_count)
		e = ringtap_snapshot_port(s->from, port);
	/* A total has no first reading. */
	if (b->read_ns <= e->read_ns || (!e->read_ns && s->from->taken_ns))
		return;
#define GROWN(field) (double)grown(b->field, e->field)
	*out = (struct driver_counts){
		.seconds = e->read_ns ? (double)(b->read_ns - e->read_ns) / NS_PER_S : 1,
		.partial = e->read_ns && b->epoch != e->epoch,
		.ipackets = GROWN(ipackets),
		.opackets = GROWN(opackets),
		.ibytes = GROWN(ibytes),
		.obytes = GROWN(obytes),
		.imissed = GROWN(imissed),
		.ierrors = GROWN(ierrors),
		.rx_nombuf = GROWN(rx_nombuf),
		.oerrors = GROWN(oerrors),
		.errors = GROWN(ierrors) + GROWN(oerrors),
		.offered = NAN,
		.unsent = NAN,
		.tx_unknown = NAN};
#undef GROWN
	if (s->to->collectors & RINGTAP_POLLS)
		count_unsent(s, port, b, e, out);
	if (!out->partial)
		return;
	out->ipackets = out->opackets = out->ibytes = out->obytes = NAN;
	doubt(&out->imissed);
	doubt(&out->ierrors);
	doubt(&out->rx_nombuf);
	doubt(&out->oerrors);
	doubt(&out->errors);
}

char *printable(char *dst, size_t size, const char *text)
{
	size_t n = 0;

	for (; text[n] && n + 1 < size; n++)
		dst[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	dst[n] = '\0';
	return dst;
}

char *thread_text(char buf[THREAD_NAME_LEN], uint32_t lcore, const char *name, uint32_t tid)
{
	char shown[16], number[16] = "";
	int n;

	printable(shown, sizeof(shown), name);
	if (tid)
		snprintf(number, sizeof(number), "%u", tid);
	if (lcore == UINT32_MAX) {
		n = snprintf(buf, THREAD_NAME_LEN, "thread %s", *shown ? shown : number);
		if (*shown && tid)
			snprintf(buf + n, THREAD_NAME_LEN - (size_t)n, " (%s)", number);
		return buf;
	}
	n = snprintf(buf, THREAD_NAME_LEN, "lcore %u", lcore);
	if (*shown || tid)
		snprintf(buf + n, THREAD_NAME_LEN - (size_t)n, " (%s%s%s)", shown,
			*shown && tid ? ", " : "", number);
	return buf;
}

char *thread_name(char buf[THREAD_NAME_LEN], const struct ringtap_thread_stats *t)
{
	return thread_text(buf, t->lcore, t->name, t->tid);
}

char *thread_label(char buf[THREAD_NAME_LEN], const struct ringtap_thread_stats *t)
{
	if (t->lcore != UINT32_MAX)
		snprintf(buf, THREAD_NAME_LEN, "lcore %u", t->lcore);
	else if (t->name[0])
		printable(buf,
			THREAD_NAME_LEN < sizeof(t->name) ? THREAD_NAME_LEN : sizeof(t->name),
			t->name);
	else
		snprintf(buf, THREAD_NAME_LEN, "thread %u", t->tid);
	return buf;
}

double rates_ring_peak(const struct span *s, uint32_t ring)
{
	const struct ringtap_ring_stats *r = ringtap_snapshot_ring(s->to, ring);
	uint64_t before =
		ring < s->from->ring_count ? ringtap_snapshot_ring(s->from, ring)->samples : 0;
	uint64_t n = grown(r->samples, before);
	double most = r->samples ? r->used : NAN;

	for (uint64_t i = 0; i < n && i < RINGTAP_RING_RECENT; i++)
		most = fmax(most, r->recent[i]);
	return most;
}

/* Growth between two readings, and the seconds between them; both are NAN if there are not two, or
 * the value has fallen. */
static double grown_between(
	uint64_t from_ns, uint64_t to_ns, uint64_t from, uint64_t to, double *seconds)
{
	bool known = from_ns && to_ns > from_ns && to >= from;

	*seconds = known ? (double)(to_ns - from_ns) / NS_PER_S : NAN;
	return known ? (double)(to - from) : NAN;
}

double rates_xstat(const struct span *s, uint32_t xstat, double *seconds)
{
	static const struct ringtap_xstat_stats none;
	const struct ringtap_xstat_stats *b = ringtap_snapshot_xstat(s->to, xstat), *a = &none;

	if (xstat < s->from->xstat_count)
		a = ringtap_snapshot_xstat(s->from, xstat);
	return grown_between(a->read_ns, b->read_ns, a->value, b->value, seconds);
}

double rates_device(const struct span *s, uint32_t stat, double *seconds)
{
	static const struct ringtap_device_stat none;
	const struct ringtap_device_stat *b = ringtap_snapshot_device_stat(s->to, stat), *a = &none;

	if (stat < s->from->device_stat_count)
		a = ringtap_snapshot_device_stat(s->from, stat);
	return grown_between(a->read_ns, b->read_ns, a->value, b->value, seconds);
}

double rates_lcore(const struct span *s, uint32_t lcore)
{
	const struct ringtap_lcore_stats *a, *b;
	double total, busy, seconds;

	if (lcore >= s->from->lcore_count || lcore >= s->to->lcore_count)
		return NAN;
	a = ringtap_snapshot_lcore(s->from, lcore);
	b = ringtap_snapshot_lcore(s->to, lcore);
	total = grown_between(a->read_ns, b->read_ns, a->total_cycles, b->total_cycles, &seconds);
	busy = grown_between(a->read_ns, b->read_ns, a->busy_cycles, b->busy_cycles, &seconds);
	return total > 0 ? fmin(busy / total, 1) : NAN;
}
