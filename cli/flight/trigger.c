/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "measure/metrics.h"
#include "trigger.h"

#define LATENCY_SHOWN (60.0 * NS_PER_S) /* a longer one does not lengthen the event */

unsigned trigger_collectors(const struct trigger *t)
{
	switch (t->kind) {
	case TRIGGER_REFUSED: return RINGTAP_POLLS;
	case TRIGGER_LATENCY: return RINGTAP_LATENCY | RINGTAP_GAPS; /* see check_held() */
	case TRIGGER_P50:
	case TRIGGER_P90:
	case TRIGGER_P99:
	case TRIGGER_P999: return RINGTAP_LATENCY;
	case TRIGGER_GAP:
	case TRIGGER_IDLE_GAP: return RINGTAP_GAPS;
	case TRIGGER_BURST: return RINGTAP_BUSY;
	case TRIGGER_POOL:
	case TRIGGER_RING: return RINGTAP_POOLS;
	case TRIGGER_XSTAT: return RINGTAP_XSTATS;
	case TRIGGER_DEVICE: return RINGTAP_DEVICES;
	case TRIGGER_DOCTOR: return JUDGE_COLLECTORS;
	default: return 0;
	}
}

bool trigger_is_level(const struct trigger *t)
{
	/* Intervals of --over overlap: the same packets would be an event again and again. */
	return t->kind == TRIGGER_POOL || t->kind == TRIGGER_RING || t->kind == TRIGGER_DOCTOR ||
	       t->over_ns;
}

static const char *unit_of(const struct trigger *t)
{
	if (t->percent)
		return " %";
	if (trigger_is_statistic(t))
		return t->rate ? "/s" : "";
	if (t->kind == TRIGGER_POOL || t->kind == TRIGGER_RING)
		return " objects";
	return t->rate ? " packets/s" : " packets";
}

void trigger_value(const struct trigger *t, double value, char *out, size_t size)
{
	char text[64];

	if (t->kind >= TRIGGER_DOCTOR) {
		snprintf(out, size, "%s", "");
	} else if (trigger_is_time(t->kind)) {
		format_ns(text, value);
		snprintf(out, size, "%s", text);
	} else {
		snprintf(out, size, "%.0f%s", value, unit_of(t));
	}
}

/* ---- conditions */

/* An event of the whole interval, at a place. */
static void whole(struct event *e, const struct span *s, double value, const char *where)
{
	*e = (struct event){.from_ns = s->from->taken_ns, .to_ns = s->to->taken_ns, .value = value};
	printable(e->where, sizeof(e->where), where);
}

static double counted(const struct trigger *t, const struct driver_counts *d)
{
	double n = t->kind == TRIGGER_MISSED    ? d->imissed
		   : t->kind == TRIGGER_NO_MBUF ? d->rx_nombuf
		   : t->kind == TRIGGER_REFUSED ? d->unsent
						: d->errors;

	return t->rate ? n / d->seconds : n;
}

bool trigger_names(const struct trigger *t, const char *name)
{
	return !*t->object || !strcmp(t->object, name);
}

/* NAN: unknown, or another xstat. */
static double xstat_grown(const struct trigger *t, const struct span *s, uint32_t i)
{
	double seconds, n = rates_xstat(s, i, &seconds);
	const struct ringtap_xstat_stats *x = ringtap_snapshot_xstat(s->to, i);

	if (x->gone || x->port == RINGTAP_NO_INDEX || !trigger_names(t, x->name))
		return NAN;
	return t->rate ? n / seconds : n;
}

char *trigger_device(const struct ringtap_device_stat *d, char buf[TRIGGER_OBJECT])
{
	snprintf(buf, TRIGGER_OBJECT, "%s %s", d->device, d->name);
	return buf;
}

char *trigger_place(const struct ringtap_device_stat *d, char buf[TRIGGER_PLACE])
{
	char device[RINGTAP_NAME_LEN], part[PART_NAME_LEN];

	device_part(part, d);
	snprintf(buf, TRIGGER_PLACE, "%s%s%s", printable(device, sizeof(device), d->device),
		*part ? ", " : "", part);
	return buf;
}

/* NAN: unknown, or another statistic. */
static double device_grown(const struct trigger *t, const struct span *s, uint32_t i)
{
	double seconds, n = rates_device(s, i, &seconds);
	const struct ringtap_device_stat *d = ringtap_snapshot_device_stat(s->to, i);
	char name[TRIGGER_OBJECT];

	if (d->gone || !trigger_names(t, trigger_device(d, name)))
		return NAN;
	return t->rate ? n / seconds : n;
}

static bool statistic_known(const struct trigger *t, const struct span *s)
{
	const bool device = t->kind == TRIGGER_DEVICE;
	const uint32_t count = device ? s->to->device_stat_count : s->to->xstat_count;

	for (uint32_t i = 0; i < count; i++)
		if (!isnan(device ? device_grown(t, s, i) : xstat_grown(t, s, i)))
			return true;
	return false;
}

bool trigger_known(const struct trigger *t, const struct span *s)
{
	if (t->kind > TRIGGER_ERRORS)
		return !trigger_is_statistic(t) || statistic_known(t, s);
	for (uint32_t i = 0; i < s->to->port_count && i < s->from->port_count; i++) {
		struct driver_counts d;

		driver_counts(s, i, &d);
		if (!isnan(d.seconds))
			return true;
	}
	return false;
}

static bool check_counters(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(s->to, i);
		struct driver_counts d;
		double n;

		/* A port that has just appeared counts from its own beginning. */
		if (i >= s->from->port_count)
			continue;
		driver_counts(s, i, &d);
		n = counted(t, &d);
		if (!(n > t->threshold) || (met && n <= e->value))
			continue;
		met = true;
		whole(e, s, n, p->name);
		e->from_ns = ringtap_snapshot_port(s->from, i)->read_ns;
		e->to_ns = p->read_ns;
	}
	return met;
}

/* Packets of a pair that took longer than ns, and the longest time: the lower bound of its bucket,
 * within 1.6 %. */
static bool slow_packets(const struct span *s, uint32_t pair, double ns, double *longest)
{
	const struct ringtap_pair_stats *b = ringtap_snapshot_pair(s->to, pair), *a = NULL;
	uint32_t n = ringtap_latency_buckets();
	uint64_t width;

	if (pair < s->from->pair_count)
		a = ringtap_snapshot_pair(s->from, pair);
	while (n-- > 0) {
		double low = (double)ringtap_latency_low(n, &width) * 1e9 / s->tsc_hz;

		if (low <= ns)
			return false;
		*longest = low;
		if (b->bucket[n] > (a ? a->bucket[n] : 0))
			return true;
	}
	return false;
}

static bool check_pair(const struct trigger *t, const struct span *s, uint32_t pair, double *value)
{
	struct latency_rates l;

	if (t->kind == TRIGGER_LATENCY)
		return slow_packets(s, pair, t->threshold, value);
	rates_latency(s, pair, &l);
	*value = t->kind == TRIGGER_P50   ? l.p50_ns
		 : t->kind == TRIGGER_P90 ? l.p90_ns
		 : t->kind == TRIGGER_P99 ? l.p99_ns
					  : l.p999_ns;
	return *value > t->threshold;
}

static void at_thread(struct event *e, const struct ringtap_thread_stats *t, uint64_t start_ns,
	uint64_t end_ns, double value)
{
	*e = (struct event){.from_ns = start_ns, .to_ns = end_ns, .value = value};
	thread_name(e->where, t);
}

/* Whether the thread sends packets that it has received. */
static bool forwards(const struct ringtap_snapshot *f, uint32_t thread)
{
	for (uint32_t i = 0; i < f->pair_count; i++) {
		const struct ringtap_pair_stats *p = ringtap_snapshot_pair(f, i);

		if (p->thread == thread && p->count)
			return true;
	}
	return false;
}

static double held_ns(const struct ringtap_thread_stats *t)
{
	return t->last_poll_holds ? (double)t->quiet_ns : 0;
}

/* Times come from a clock line that is replaced: the start of an event of ns may move by a part of
 * its duration, and a little. */
static bool same_start(uint64_t a, uint64_t b, uint64_t ns)
{
	uint64_t slack = 1000 + ns / 256;

	return a + slack > b && a < b + slack;
}

static bool was_held(const struct span *s, uint32_t thread, const struct ringtap_thread_stats *now,
	double threshold)
{
	const struct ringtap_thread_stats *t;

	if (thread >= s->from->thread_count)
		return false;
	t = ringtap_snapshot_thread(s->from, thread);
	return held_ns(t) > threshold &&
	       same_start(t->last_poll_ns, now->last_poll_ns, t->quiet_ns);
}

/* Packets that a thread has in hand and does not send, because it hangs: they are timed when they
 * are sent, which may be never. */
static bool check_held(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->thread_count; i++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s->to, i);
		double ns = held_ns(th);

		if (!(ns > t->threshold) || (met && ns <= e->value) || !forwards(s->to, i) ||
			was_held(s, i, th, t->threshold))
			continue;
		met = true;
		at_thread(e, th, th->last_poll_ns, th->last_poll_ns + th->quiet_ns, ns);
	}
	return met;
}

static bool check_latency(const struct trigger *t, const struct span *s, struct event *e)
{
	/* This is of one snapshot. */
	bool met = t->kind == TRIGGER_LATENCY && check_held(t, s, e);

	if (s->from->switched != s->to->switched)
		return met; /* the histograms begin again */
	for (uint32_t i = 0; i < s->to->pair_count; i++) {
		const struct ringtap_pair_stats *p = ringtap_snapshot_pair(s->to, i);
		double value;

		if (!check_pair(t, s, i, &value) || (met && value <= e->value))
			continue;
		met = true;
		whole(e, s, value, ringtap_snapshot_port(s->to, p->tx_port)->name);
		/* From the reception of the packet on, of which the file needs the record; the
		 * value is within 1.6 %. An application may claim any. */
		if (t->kind == TRIGGER_LATENCY && value < LATENCY_SHOWN)
			e->from_ns -= (uint64_t)(value * 1.02);
	}
	return met;
}

/* Lists hold the worst: one that an earlier snapshot lacks is new, unless it only came back when
 * worse ones had become too old. One that lasted then may have been too short. */
static bool is_new_gap(
	const struct span *s, uint32_t thread, const struct ringtap_gap *g, double threshold)
{
	const struct ringtap_thread_stats *t;

	if (g->start_ns + g->ns + NS_PER_S < s->from->taken_ns)
		return false;
	if (thread >= s->from->thread_count)
		return true;
	t = ringtap_snapshot_thread(s->from, thread);
	for (uint32_t i = 0; i < t->gap_count; i++) {
		const struct ringtap_gap *had = ringtap_thread_gap(t, i);

		if (same_start(had->start_ns, g->start_ns, had->ns) && (double)had->ns > threshold)
			return false;
	}
	return true;
}

static bool is_new_burst(const struct span *s, uint32_t thread, const struct ringtap_microburst *b)
{
	const struct ringtap_thread_stats *t;

	if (b->start_ns + b->ns + NS_PER_S < s->from->taken_ns)
		return false;
	if (thread >= s->from->thread_count)
		return true;
	t = ringtap_snapshot_thread(s->from, thread);
	for (uint32_t i = 0; i < t->microburst_count; i++)
		if (same_start(ringtap_thread_microburst(t, i)->start_ns, b->start_ns, 0))
			return false;
	return true;
}

static bool check_gaps(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->thread_count; i++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s->to, i);

		for (uint32_t k = 0; k < th->gap_count; k++) {
			const struct ringtap_gap *g = ringtap_thread_gap(th, k);

			if (!g->packets != (t->kind == TRIGGER_IDLE_GAP) ||
				!((double)g->ns > t->threshold) ||
				(met && (double)g->ns <= e->value) ||
				!is_new_gap(s, i, g, t->threshold))
				continue;
			met = true;
			at_thread(e, th, g->start_ns, g->start_ns + g->ns, (double)g->ns);
		}
	}
	return met;
}

static bool check_bursts(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->thread_count; i++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s->to, i);

		for (uint32_t k = 0; k < th->microburst_count; k++) {
			const struct ringtap_microburst *b = ringtap_thread_microburst(th, k);
			double n = (double)b->packets;

			if (!(n > t->threshold) || (met && n <= e->value) || !is_new_burst(s, i, b))
				continue;
			met = true;
			at_thread(e, th, b->start_ns, b->start_ns + b->ns, n);
		}
	}
	return met;
}

static bool check_pools(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s->to, i);
		double level = p->available;

		if (t->percent && p->size)
			level = 100 * level / p->size;
		if (p->gone || !p->size || !(level < t->threshold) || (met && level >= e->value))
			continue;
		met = true;
		whole(e, s, level, p->name);
	}
	return met;
}

bool trigger_blind(const struct trigger *t, const struct ringtap_snapshot *s)
{
	bool known = t->kind != TRIGGER_POOL;

	for (uint32_t i = 0; i < s->pool_count && !known; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s, i);

		known = !p->gone && p->size && p->available != UINT32_MAX;
	}
	return !known;
}

static bool check_rings(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->ring_count; i++) {
		const struct ringtap_ring_stats *r = ringtap_snapshot_ring(s->to, i);
		double level = rates_ring_peak(s, i);

		if (t->percent)
			level = 100 * level / r->capacity;
		if (r->gone || !r->capacity || !trigger_names(t, r->name) ||
			!(level > t->threshold) || (met && level <= e->value))
			continue;
		met = true;
		whole(e, s, level, r->name);
	}
	return met;
}

static bool check_xstats(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->xstat_count; i++) {
		const struct ringtap_xstat_stats *x = ringtap_snapshot_xstat(s->to, i);
		double n = xstat_grown(t, s, i);

		if (!(n > t->threshold) || (met && n <= e->value))
			continue;
		met = true;
		whole(e, s, n, ringtap_snapshot_port(s->to, x->port)->name);
		e->from_ns = ringtap_snapshot_xstat(s->from, i)->read_ns;
		e->to_ns = x->read_ns;
	}
	return met;
}

static bool check_devices(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->device_stat_count; i++) {
		const struct ringtap_device_stat *d = ringtap_snapshot_device_stat(s->to, i);
		double n = device_grown(t, s, i);
		char place[TRIGGER_PLACE];

		if (!(n > t->threshold) || (met && n <= e->value))
			continue;
		met = true;
		whole(e, s, n, trigger_place(d, place));
		e->from_ns = ringtap_snapshot_device_stat(s->from, i)->read_ns;
		e->to_ns = d->read_ns;
	}
	return met;
}

bool trigger_check(const struct trigger *t, const struct span *s, struct event *e)
{
	switch (t->kind) {
	case TRIGGER_MISSED:
	case TRIGGER_NO_MBUF:
	case TRIGGER_REFUSED:
	case TRIGGER_ERRORS: return check_counters(t, s, e);
	case TRIGGER_LATENCY:
	case TRIGGER_P50:
	case TRIGGER_P90:
	case TRIGGER_P99:
	case TRIGGER_P999: return check_latency(t, s, e);
	case TRIGGER_GAP:
	case TRIGGER_IDLE_GAP: return check_gaps(t, s, e);
	case TRIGGER_BURST: return check_bursts(t, s, e);
	case TRIGGER_POOL: return check_pools(t, s, e);
	case TRIGGER_RING: return check_rings(t, s, e);
	case TRIGGER_XSTAT: return check_xstats(t, s, e);
	case TRIGGER_DEVICE: return check_devices(t, s, e);
	default: return false;
	}
}

bool trigger_check_doctor(const struct trigger *t, const struct diagnosis *d, struct event *e)
{
	for (unsigned i = 0; i < d->count; i++) {
		const struct verdict *v = &d->verdict[i];

		if (t->verdict < 0 ? v->grade != GRADE_FAULT : (int)v->id != t->verdict)
			continue;
		snprintf(e->where, sizeof(e->where), "%s%s%s", verdict_names[v->id],
			*v->where ? ": " : "", v->where);
		return true;
	}
	return false;
}
