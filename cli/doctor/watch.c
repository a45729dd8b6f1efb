/* SPDX-License-Identifier: BSD-3-Clause */
/* Watching in two parts: first at the least cost, then buffer addresses, which cost more. */
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "base/util.h"
#include "counted/interfaces.h"
#include "target/hidden_vhost.h"
#include "packets.h"
#include "watch.h"

#define SAMPLE_NS NS_PER_S
#define READ_NS   (NS_PER_S / 4) /* probes read mempools and drivers twice a second */
#define LATE_NS   (3 * NS_PER_S) /* or later, on a busy machine */

/* An application, in the place that it has in the watch's list: nothing is added to that. */
struct examined {
	struct readings readings;
	struct doctor_packets *packets; /* NULL: not followed */
	struct counted_interfaces *own; /* NULL: it is not VPP */
	struct machine_counts before, after;
};

static void step(struct watch *w, struct examined *list)
{
	watch_step(w);
	for (size_t i = 0; i < w->count; i++)
		if (w->list[i]->now)
			readings_add(&list[i].readings, w->list[i]);
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

/* Losses of drivers are known from one of their readings to the next. */
static bool drivers_read(const struct watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		if (!drivers_read_of(w->list[i]))
			return false;
	}
	return true;
}

static enum doctor_end watch_polling(struct watch *w, struct examined *list, uint64_t duration_ns)
{
	uint64_t begin, age = 0;
	bool stopped;

	watch_settle(w);
	watch_mark(w);
	begin = now_ns(CLOCK_MONOTONIC);
	stopped = stop_wait(0);
	while ((age < duration_ns || (age < duration_ns + LATE_NS && !drivers_read(w))) &&
		!stopped && watch_attached(w)) {
		stopped = stop_wait(READ_NS);
		step(w, list);
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
	watch_switch(w, JUDGE_COLLECTORS | RINGTAP_ADDRESSES, 1);
	while (now_ns(CLOCK_MONOTONIC) < end && watch_attached(w))
		if (stop_wait(READ_NS))
			return DOCTOR_CUT;
	return DOCTOR_WHOLE;
}

/* Where a pool's use grows. The interval that is judged is over: following packets costs the
 * application time. */
static bool begin_packets(const struct watched *a, struct examined *p)
{
	char pool[RINGTAP_NAME_LEN];
	struct examination e;
	uint32_t i;

	if (a->ended || !examination_make(&e, a, &p->readings))
		return false;
	i = examination_growing(&e);
	if (i == RINGTAP_NO_INDEX)
		return false;
	memcpy(pool, ringtap_snapshot_pool(e.span.to, i)->name, sizeof(pool));
	p->packets = doctor_packets_begin(a->name, pool);
	return p->packets;
}

static void step_packets(const struct watched *a, struct examined *p)
{
	struct ringtap_snapshot *f = NULL;

	if (!p->packets)
		return;
	doctor_packets_step(p->packets);
	if (!ringtap_monitor_read(a->mon, &f))
		readings_add_use(&p->readings, f);
	ringtap_snapshot_free(f);
}

/* The use of pools is read on meanwhile: what no longer grows then is not a fault. */
static enum doctor_end watch_packets(struct watch *w, struct examined *list)
{
	bool any = false;
	uint64_t end;

	for (size_t i = 0; i < w->count; i++)
		any |= begin_packets(w->list[i], &list[i]);
	end = now_ns(CLOCK_MONOTONIC) + DOCTOR_PACKETS_NS;
	while (any && now_ns(CLOCK_MONOTONIC) < end) {
		if (stop_wait(READ_NS))
			return DOCTOR_CUT;
		for (size_t i = 0; i < w->count; i++)
			step_packets(w->list[i], &list[i]);
	}
	for (size_t i = 0; i < w->count; i++)
		if (list[i].packets)
			doctor_packets_end(list[i].packets);
	return DOCTOR_WHOLE;
}

/* By the program, what of its traffic no verdict is about. */
static void add_outside(const struct examination *e, const struct examined *p, struct diagnosis *d)
{
	struct counted_interfaces *own = p->own;
	char text[160], rx[FORMAT_LEN], tx[FORMAT_LEN];
	struct verdict *v;

	for (uint32_t i = 0; own && i < e->span.to->port_count; i++) {
		const struct ringtap_port_stats *port = ringtap_snapshot_port(e->span.to, i);

		if (!port->gone)
			counted_interfaces_match(own, port->port_id, port->device);
	}
	if (!own || *own->counted.why || !counted_interfaces_outside(own, text))
		return;
	v = verdict_add(
		d, VERDICT_OUTSIDE, GRADE_NOTE, 0, "'vppctl show interface' has their counters");
	if (!v)
		return;
	verdict_add_evidence(v, "%s", text);
	for (size_t i = 0; i < own->count; i++) {
		const struct counted_interface *one = &own->list[i];

		if (one->port == COUNTED_NO_PORT)
			verdict_add_evidence(v, "%s (%s): received %s, sent %s packets a second",
				one->name, one->kind ? one->kind : "unknown driver",
				format_si(rx, one->rx_pps), format_si(tx, one->tx_pps));
	}
}

static void add_hidden(const struct examination *e, struct diagnosis *d)
{
	const char *why = e->app->secondary ? NULL : hidden_vhost(e->app->info.host_pid, NULL);

	for (uint32_t i = 0; i < e->span.to->port_count; i++)
		if (hidden_vhost_is_port(ringtap_snapshot_port(e->span.to, i)->driver))
			why = NULL;
	if (why)
		verdict_add_evidence(
			verdict_add(d, VERDICT_OUTSIDE, GRADE_NOTE, 0,
				"Link it with DPDK's shared libraries, or use ports of net_vhost"),
			"%s", why);
}

static void judge(const struct watched *a, const struct examined *p,
	void (*take)(void *ctx, const struct examination *e, const struct diagnosis *d), void *ctx)
{
	struct ringtap_snapshot *samples = NULL;
	struct examination e;
	struct diagnosis *d;

	if (!examination_make(&e, a, &p->readings))
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		return;
	if (!a->ended && ringtap_monitor_read(a->mon, &samples) && !samples)
		samples = NULL;
	e.samples = samples;
	if (p->packets) {
		e.packets = doctor_packets_evidence;
		e.packets_ctx = p->packets;
	}
	e.before = &p->before;
	e.after = &p->after;
	examination_read_kernel(&e);
	diagnose(&e, d);
	add_outside(&e, p, d);
	if (!a->ended)
		add_hidden(&e, d);
	take(ctx, &e, d);
	free(e.kernel);
	ringtap_snapshot_free(samples);
	free(d);
}

/* Before and after the interval. */
static void count_machine(const struct watch *w, struct examined *list, bool after)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->list[i]->mon)
			machine_count(after ? &list[i].after : &list[i].before,
				(pid_t)w->list[i]->info.host_pid);
}

enum doctor_end doctor_watch(struct watch *w, uint64_t duration_ns, bool packets,
	void (*take)(void *ctx, const struct examination *e, const struct diagnosis *d), void *ctx)
{
	struct examined *list = calloc(w->count + 1, sizeof(*list));
	uint64_t begin_ns = COUNTED_INTERFACES_NS, end_ns = COUNTED_INTERFACES_NS;
	enum doctor_end end;

	if (!list)
		return DOCTOR_FAILED;
	for (size_t i = 0; i < w->count; i++)
		if (w->list[i]->mon && !w->list[i]->secondary)
			list[i].own = counted_interfaces_begin(w->list[i]->info.program,
				(pid_t)w->list[i]->info.host_pid, (pid_t)w->list[i]->info.pid,
				&begin_ns);
	count_machine(w, list, false);
	end = watch_polling(w, list, duration_ns);
	count_machine(w, list, true);
	for (size_t i = 0; i < w->count; i++)
		if (list[i].own)
			counted_interfaces_end(list[i].own, &end_ns);
	if (end == DOCTOR_WHOLE && packets)
		end = watch_packets(w, list);
	if (end == DOCTOR_WHOLE)
		end = watch_addresses(w);
	for (size_t i = 0; end != DOCTOR_TOO_SHORT && i < w->count; i++)
		judge(w->list[i], &list[i], take, ctx);
	for (size_t i = 0; i < w->count; i++) {
		doctor_packets_free(list[i].packets);
		readings_free(&list[i].readings);
		counted_interfaces_free(list[i].own);
		machine_counts_free(&list[i].before);
		machine_counts_free(&list[i].after);
	}
	free(list);
	return end;
}
