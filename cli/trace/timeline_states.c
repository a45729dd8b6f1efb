/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of the probe, and the kernel's records of its threads. */
#include <string.h>

#include "common/array.h"
#include "common/hash.h"
#include "measure/rates.h"
#include "timeline.h"

static void put_slice(
	struct timeline *l, struct perfetto_track *t, struct perfetto_event *begin, uint64_t to_ns)
{
	begin->type = PERFETTO_BEGIN;
	perfetto_put(&l->out, t, begin);
	perfetto_put(&l->out, t, &(struct perfetto_event){.type = PERFETTO_END, .ns = to_ns});
}

static struct timeline_thread *thread_of(
	struct timeline *l, const struct ringtap_snapshot *s, uint32_t thread)
{
	const struct ringtap_thread_stats *t;

	if (thread >= s->thread_count)
		return NULL;
	t = ringtap_snapshot_thread(s, thread);
	return t->tid ? timeline_thread(l, t->tid, RINGTAP_NO_INDEX, t->lcore, t->name) : NULL;
}

/* ---- intervals */

static void put_gap(struct timeline *l, struct timeline_thread *t, const struct ringtap_snapshot *s,
	const struct ringtap_gap *g)
{
	struct perfetto_event e = {.ns = g->start_ns,
		.key = (uint64_t)g->port << 32 | (uint64_t)g->queue << 2 | !!g->packets << 1 | 1,
		.look = g->packets ? PERFETTO_WORK : PERFETTO_IDLE};
	char text[PERFETTO_TEXT], port[RINGTAP_NAME_LEN] = "";

	if (t->gaps && !perfetto_knows(t->gaps, e.key)) {
		if (g->port < s->port_count)
			printable(port, sizeof(port), ringtap_snapshot_port(s, g->port)->name);
		snprintf(text, sizeof(text), *port ? "%s after %s:%u" : "%s",
			g->packets ? "gap with work" : "idle gap", port, g->queue);
		e.name = text;
	}
	perfetto_argument(&e, PERFETTO_PACKETS, g->packets);
	if (g->open)
		perfetto_argument(&e, PERFETTO_LASTS, 1);
	put_slice(l, t->gaps, &e, g->start_ns + g->ns);
	l->gaps++;
}

void timeline_interval(void *timeline, const struct ringtap_interval *v)
{
	struct timeline *l = timeline;
	struct timeline_thread *t = thread_of(l, l->stats, v->thread);
	const struct ringtap_gap gap = {.start_ns = v->start_ns,
		.ns = v->ns,
		.packets = v->packets,
		.port = v->port,
		.queue = v->queue};
	struct perfetto_event e = {
		.ns = v->start_ns, .key = 1, .name = "busy period", .look = PERFETTO_BUSY};

	if (!t)
		return;
	if (v->kind == RINGTAP_INTERVAL_GAP) {
		put_gap(l, t, l->stats, &gap);
		return;
	}
	perfetto_argument(&e, PERFETTO_PACKETS, v->packets);
	put_slice(l, t->busy, &e, v->start_ns + v->ns);
	l->busy++;
}

void timeline_open_gaps(struct timeline *l, const struct ringtap_snapshot *s)
{
	for (uint32_t i = 0; i < s->thread_count; i++) {
		const struct ringtap_thread_stats *f = ringtap_snapshot_thread(s, i);
		struct timeline_thread *t = f->alive ? thread_of(l, s, i) : NULL;

		for (uint32_t k = 0; t && k < f->gap_count; k++)
			if (ringtap_thread_gap(f, k)->open)
				put_gap(l, t, s, ringtap_thread_gap(f, k));
	}
}

/* ---- counters */

static void put_value(struct timeline *l, struct timeline_counter *c, uint64_t ns, uint64_t value)
{
	perfetto_put(&l->out, c->track,
		&(struct perfetto_event){
			.type = PERFETTO_VALUE, .ns = ns, .value = (int64_t)(value - c->base)});
	c->last = value;
}

/* growth: one that only grows is shown from its first change on, less its first value. */
static void count(struct timeline *l, struct timeline_counter *c, uint64_t ns, uint64_t value,
	bool growth, const char *group, const char *name)
{
	const struct perfetto_place at = {
		.kind = PERFETTO_COUNTER, .name = name, .parent = l->process, .group = group};
	const bool first = !c->known;

	if (first)
		*c = (struct timeline_counter){
			.known = true, .base = growth ? value : 0, .last = value, .last_ns = ns};
	if (!c->track && !c->refused && (value != c->last || !growth)) {
		c->track = perfetto_track_new(&l->out, &at);
		c->refused = !c->track;
		put_value(l, c, c->last_ns, c->last);
	}
	if (value != c->last)
		put_value(l, c, ns, value);
	c->last_ns = ns;
}

static struct timeline_counter *counters_of(
	struct timeline *l, enum timeline_counted kind, size_t need)
{
	if (rt_array_extend(l->counters[kind], l->counter_count[kind], need))
		return NULL;
	return l->counters[kind];
}

#define PORT_COUNTERS 4

/* Panels of the page. */
static const char drivers[] = "Drivers' counters", used[] = "Objects in rings",
		  available[] = "Available objects of mempools";

static void count_ports(struct timeline *l, const struct ringtap_snapshot *s)
{
	static const char *const names[PORT_COUNTERS] = {
		"missed", "rx errors", "no mbuf", "tx errors"};
	struct timeline_counter *c =
		counters_of(l, TIMELINE_PORTS, (size_t)s->port_count * PORT_COUNTERS);
	char port[RINGTAP_NAME_LEN], text[PERFETTO_TEXT];

	for (uint32_t i = 0; c && i < s->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(s, i);
		const uint64_t values[PORT_COUNTERS] = {
			p->imissed, p->ierrors, p->rx_nombuf, p->oerrors};

		printable(port, sizeof(port), p->name);
		for (int k = 0; k < PORT_COUNTERS && p->read_ns; k++) {
			snprintf(text, sizeof(text), "%s %s", port, names[k]);
			count(l, &c[i * PORT_COUNTERS + k], p->read_ns, values[k], true, drivers,
				text);
		}
	}
}

static void count_levels(struct timeline *l, const struct ringtap_snapshot *s)
{
	struct timeline_counter *rings = counters_of(l, TIMELINE_RINGS, s->ring_count);
	struct timeline_counter *pools = counters_of(l, TIMELINE_POOLS, s->pool_count);
	char name[RINGTAP_NAME_LEN], text[PERFETTO_TEXT];

	for (uint32_t i = 0; rings && i < s->ring_count; i++) {
		const struct ringtap_ring_stats *r = ringtap_snapshot_ring(s, i);

		snprintf(text, sizeof(text), "ring %s: used",
			printable(name, sizeof(name), r->name));
		if (r->samples && !r->gone)
			count(l, &rings[i], s->taken_ns, r->used, false, used, text);
	}
	for (uint32_t i = 0; pools && i < s->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s, i);

		snprintf(text, sizeof(text), "mempool %s: available",
			printable(name, sizeof(name), p->name));
		if (p->available != UINT32_MAX && !p->gone)
			count(l, &pools[i], s->taken_ns, p->available, false, available, text);
	}
}

void timeline_counters(struct timeline *l, const struct ringtap_snapshot *s)
{
	count_ports(l, s);
	count_levels(l, s);
}

/* ---- the scheduler */

static void put_off(struct timeline *l, const struct ringtap_snapshot *s, const struct off_cpu *v)
{
	static const char *const names[OFF_HOWS] = {
		"waits for a CPU", "sleeps", "blocked", "stopped", "page fault"};
	struct timeline_thread *t = thread_of(l, s, v->thread);
	struct perfetto_event e = {.type = PERFETTO_INSTANT,
		.ns = v->from_ns,
		.key = v->how + 1u,
		.name = names[v->how],
		.look = PERFETTO_WAITS + v->how};

	if (!t)
		return;
	if (v->how == OFF_FAULTED)
		perfetto_put(&l->out, t->off, &e);
	else
		put_slice(l, t->off, &e, v->to_ns);
}

static struct timeline_cpu *cpu_of(struct timeline *l, uint32_t number)
{
	struct timeline_cpu *c;
	char text[PERFETTO_TEXT];

	for (size_t i = 0; i < l->cpu_count; i++)
		if (l->cpus[i].number == number)
			return &l->cpus[i];
	c = rt_array_add(l->cpus, l->cpu_count);
	if (!c)
		return NULL;
	snprintf(text, sizeof(text), "CPU %u", number);
	c->number = number;
	c->track = perfetto_track_new(
		&l->out, &(struct perfetto_place){
				 .kind = PERFETTO_SLICES, .name = text, .parent = l->process});
	return c;
}

static void put_task(struct timeline *l, const struct cpu_task *v)
{
	static const struct secret fixed = {{1, UINT64_C(0xd1b54a32d192ed03)}};
	struct timeline_cpu *c = cpu_of(l, v->cpu);
	struct perfetto_event e = {.type = PERFETTO_END, .ns = v->from_ns, .look = PERFETTO_TASK};
	char name[sizeof(v->name)];

	if (!c || !c->track)
		return;
	l->switches++;
	if (c->open)
		perfetto_put(&l->out, c->track, &e);
	c->open = v->tid != 0;
	if (!c->open)
		return;
	memset(name, 0, sizeof(name));
	e.type = PERFETTO_BEGIN;
	e.name = printable(name, sizeof(name), v->name);
	e.key = hash_words(&fixed, name, sizeof(name) / 8) | 1;
	perfetto_argument(&e, PERFETTO_TID, v->tid);
	perfetto_put(&l->out, c->track, &e);
}

/* The number of the oldest one that is still there, of those from *taken on; counts the others. */
static uint64_t next_of(struct timeline *l, uint64_t taken, uint64_t count, uint64_t room)
{
	if (count - taken <= room)
		return taken;
	l->switches_lost++;
	return count - room;
}

void timeline_switches(struct timeline *l, const struct ringtap_snapshot *s)
{
	struct off_cpus *o = &l->off;

	if (o->refused) {
		timeline_end_tasks(l, l->off_read_ns);
		return;
	}
	/* perf has lost some, or a thread is new. */
	l->switches_lost += l->off_since_ns && o->since_ns != l->off_since_ns;
	l->off_since_ns = o->since_ns;
	for (uint64_t n = next_of(l, l->off_taken, o->count, OFF_CPU_KEPT); n < o->count; n++)
		put_off(l, s, &o->kept[n % OFF_CPU_KEPT]);
	for (uint64_t n = next_of(l, l->tasks_taken, o->task_count, CPU_TASKS_KEPT);
		n < o->task_count; n++)
		put_task(l, &o->tasks[n % CPU_TASKS_KEPT]);
	l->off_taken = o->count;
	l->tasks_taken = o->task_count;
	l->off_read_ns = s->taken_ns;
}
