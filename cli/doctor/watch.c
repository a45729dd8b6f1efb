/* SPDX-License-Identifier: BSD-3-Clause */
/* Watching in two parts: first at the least cost, then buffer addresses, which cost more. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "judge/limits.h"
#include "base/signals.h"
#include "base/util.h"

#define SAMPLE_NS NS_PER_S
#define LOOK_NS   (NS_PER_S / 4) /* probes read mempools and drivers twice a second */
#define LATE_NS   (3 * NS_PER_S) /* or later, on a busy machine */

/* What the receiving threads have in their caches of a pool, that with the most of it. */
struct receivers {
	uint32_t own;
	bool found;
	bool uncached; /* one has no cache that is known */
};

static struct receivers receivers(const struct watched *a, const struct ringtap_pool_stats *p)
{
	struct receivers r = {0};
	struct span s;

	if (!span_of(a, &s))
		return r;
	for (uint32_t i = 0; i < s.to->thread_count; i++) {
		uint32_t lcore = ringtap_snapshot_thread(s.to, i)->lcore;
		struct tally polls;

		tally_sum(&polls, &s, RINGTAP_NO_INDEX, i, RINGTAP_RX);
		if (!polls.calls)
			continue;
		r.found = true;
		r.uncached |= lcore >= p->cache_count;
		if (lcore < p->cache_count && p->cache[lcore] > r.own)
			r.own = p->cache[lcore];
	}
	return r;
}

/* All the free objects of a pool that only sends may lie in the cache of the sending thread, which
 * is not a fault: whether receiving threads lack them is known once one has some. */
static void look_at(struct pool_look *l, const struct watched *a,
	const struct ringtap_pool_stats *p, unsigned burst)
{
	uint32_t common = p->available > p->in_caches ? p->available - p->in_caches : 0;
	const struct receivers r = receivers(a, p);

	if (!l->looks++ || p->available < l->least)
		l->least = p->available;
	l->receives |= r.own || r.uncached;
	if (p->available < burst)
		l->empty++;
	else if (r.found && common + r.own < burst)
		l->beyond++;
}

uint32_t doctor_starved(const struct pool_look *p)
{
	return p->empty + (p->receives ? p->beyond : 0);
}

static bool make_room(struct look *l, uint32_t pools)
{
	struct pool_look *more;

	if (pools <= l->pool_count)
		return true;
	more = realloc(l->pools, pools * sizeof(*more));
	if (!more)
		return false;
	memset(more + l->pool_count, 0, (pools - l->pool_count) * sizeof(*more));
	l->pools = more;
	l->pool_count = pools;
	return true;
}

void doctor_look_at_use(struct look *l, const struct ringtap_snapshot *f)
{
	if (!make_room(l, f->pool_count))
		return;
	for (uint32_t i = 0; i < f->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(f, i);

		pool_use_add(&l->pools[i].use, f->taken_mono_ns,
			p->size > p->available ? p->size - p->available : 0);
	}
}

void doctor_look(struct look *l, const struct watched *a)
{
	const struct ringtap_snapshot *f = a->now;
	unsigned burst = doctor_burst(a);

	if (!make_room(l, f->pool_count))
		return;
	for (uint32_t i = 0; i < f->pool_count; i++)
		look_at(&l->pools[i], a, ringtap_snapshot_pool(f, i), burst);
	doctor_look_at_use(l, f);
}

unsigned doctor_burst(const struct watched *a)
{
	struct tally t;
	struct span s;

	if (!span_of(a, &s))
		return LIMIT_BURST;
	tally_sum(&t, &s, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, RINGTAP_RX);
	return t.max_burst ? t.max_burst : LIMIT_BURST;
}

static void look(struct watch *w, struct look *looks)
{
	watch_step(w);
	for (size_t i = 0; i < w->count; i++)
		if (w->list[i]->now)
			doctor_look(&looks[i], w->list[i]);
}

static bool drivers_read_of(const struct watched *a)
{
	bool none = true;
	struct span s;

	if (a->ended || !span_of(a, &s))
		return true;
	for (uint32_t i = 0; i < s.from->port_count && i < s.to->port_count; i++) {
		uint64_t before = ringtap_snapshot_port(s.from, i)->read_ns;

		if (ringtap_snapshot_port(s.to, i)->read_ns != before)
			return true;
		none = none && !before;
	}
	return none;
}

/* What drivers lost is known from one of their readings to the next. */
static bool drivers_read(const struct watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		if (!drivers_read_of(w->list[i]))
			return false;
	}
	return true;
}

static enum doctor_end watch_polling(struct watch *w, struct look *looks, uint64_t duration_ns)
{
	uint64_t begin, age = 0;
	bool stopped;

	watch_settle(w);
	watch_mark(w);
	begin = now_ns(CLOCK_MONOTONIC);
	stopped = stop_wait(0);
	while ((age < duration_ns || (age < duration_ns + LATE_NS && !drivers_read(w))) &&
		!stopped && watch_attached(w)) {
		stopped = stop_wait(LOOK_NS);
		look(w, looks);
		age = now_ns(CLOCK_MONOTONIC) - begin;
	}
	if (!stopped)
		return DOCTOR_WHOLE;
	return age < DOCTOR_MIN_NS ? DOCTOR_TOO_SHORT : DOCTOR_CUT;
}

/* Stopped processes do not answer: each request of theirs waits for seconds. */
static bool any_runs(const struct watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct watched *a = w->list[i];

		if (!a->ended && !ringtap_process_halted(a->info.host_pid, NULL, 0))
			return true;
	}
	return false;
}

/* Goes on until every sampled thread had time for a run. Its drivers' readings are not of
 * interest any more. */
static enum doctor_end watch_addresses(struct watch *w)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + SAMPLE_NS;

	if (!any_runs(w))
		return DOCTOR_WHOLE;
	watch_switch(w, DOCTOR_COLLECTORS | RINGTAP_ADDRESSES, 1);
	while (now_ns(CLOCK_MONOTONIC) < end && watch_attached(w))
		if (stop_wait(LOOK_NS))
			return DOCTOR_CUT;
	return DOCTOR_WHOLE;
}

static bool examine(const struct watched *a, const struct look *l, struct examination *e)
{
	*e = (struct examination){
		.app = a, .pools = l->pools, .pool_count = l->pool_count, .packets = l->packets};
	if (!span_of(a, &e->span))
		return false;
	if (e->pool_count > e->span.to->pool_count)
		e->pool_count = e->span.to->pool_count;
	return true;
}

/* Where a pool's use grows. The interval that is judged is over: following packets costs the
 * application time. */
static bool begin_packets(const struct watched *a, struct look *l)
{
	char pool[RINGTAP_NAME_LEN];
	struct examination e;
	uint32_t i;

	if (a->ended || !examine(a, l, &e))
		return false;
	i = doctor_growing(&e);
	if (i == RINGTAP_NO_INDEX)
		return false;
	memcpy(pool, ringtap_snapshot_pool(e.span.to, i)->name, sizeof(pool));
	l->packets = doctor_packets_begin(a->name, pool);
	return l->packets;
}

static void step_packets(const struct watched *a, struct look *l)
{
	struct ringtap_snapshot *f = NULL;

	if (!l->packets)
		return;
	doctor_packets_step(l->packets);
	if (!ringtap_monitor_read(a->mon, &f))
		doctor_look_at_use(l, f);
	ringtap_snapshot_free(f);
}

/* The use of pools is read on meanwhile: what no longer grows then is not a fault. */
static enum doctor_end watch_packets(struct watch *w, struct look *looks)
{
	bool any = false;
	uint64_t end;

	for (size_t i = 0; i < w->count; i++)
		any |= begin_packets(w->list[i], &looks[i]);
	end = now_ns(CLOCK_MONOTONIC) + DOCTOR_PACKETS_NS;
	while (any && now_ns(CLOCK_MONOTONIC) < end) {
		if (stop_wait(LOOK_NS))
			return DOCTOR_CUT;
		for (size_t i = 0; i < w->count; i++)
			step_packets(w->list[i], &looks[i]);
	}
	for (size_t i = 0; i < w->count; i++)
		if (looks[i].packets)
			doctor_packets_end(looks[i].packets);
	return DOCTOR_WHOLE;
}

static void judge(const struct watched *a, const struct look *l,
	void (*take)(void *ctx, const struct examination *e, const struct diagnosis *d), void *ctx)
{
	struct ringtap_snapshot *samples = NULL;
	struct examination e;
	struct diagnosis *d;

	if (!examine(a, l, &e))
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		return;
	if (!a->ended && ringtap_monitor_read(a->mon, &samples) && !samples)
		samples = NULL;
	e.samples = samples;
	doctor_look_at_kernel(&e);
	doctor_judge(&e, d);
	take(ctx, &e, d);
	free(e.kernel);
	ringtap_snapshot_free(samples);
	free(d);
}

enum doctor_end doctor_watch(struct watch *w, uint64_t duration_ns, bool packets,
	void (*take)(void *ctx, const struct examination *e, const struct diagnosis *d), void *ctx)
{
	struct look *looks = calloc(w->count + 1, sizeof(*looks));
	enum doctor_end end;

	if (!looks)
		return DOCTOR_FAILED;
	end = watch_polling(w, looks, duration_ns);
	if (end == DOCTOR_WHOLE && packets)
		end = watch_packets(w, looks);
	if (end == DOCTOR_WHOLE)
		end = watch_addresses(w);
	for (size_t i = 0; end != DOCTOR_TOO_SHORT && i < w->count; i++)
		judge(w->list[i], &looks[i], take, ctx);
	for (size_t i = 0; i < w->count; i++) {
		doctor_packets_free(looks[i].packets);
		free(looks[i].pools);
	}
	free(looks);
	return end;
}
