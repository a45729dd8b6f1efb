/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.json: what threads did in the window, in the Trace Event Format that Perfetto and
 * chrome://tracing read. Polling gaps and busy periods with their own times, packets a second from
 * the file, and the event. Times are microseconds since the beginning of the window.
 */
#include <stdbool.h>

#include "base/json.h"
#include "base/util.h"
#include "flight.h"
#include "history.h"
#include "timeline.h"

#define RATES    400 /* in a window, about */
#define COUNTERS 0   /* the "thread" of what belongs to all of the application */

struct timeline {
	const struct incident *i;
	json_t *events;
	json_int_t pid;
};

static double microseconds(const struct incident *i, uint64_t ns)
{
	return ((double)ns - (double)i->from_ns) / 1e3;
}

static bool overlaps(const struct incident *i, uint64_t start_ns, uint64_t ns)
{
	return start_ns <= i->to_ns && start_ns + ns >= i->from_ns;
}

static void add(struct timeline *t, json_t *event)
{
	json_object_set_new(event, "pid", json_integer(t->pid));
	json_array_append_new(t->events, event);
}

static json_t *complete(
	const struct timeline *t, const char *name, uint32_t tid, uint64_t start_ns, uint64_t ns)
{
	return json_pack("{s:s,s:s,s:I,s:f,s:f}", "name", name, "ph", "X", "tid", (json_int_t)tid,
		"ts", microseconds(t->i, start_ns), "dur", (double)ns / 1e3);
}

static uint32_t tid_of(const struct activity *a)
{
	return ringtap_snapshot_thread(a->snapshot, a->thread)->tid;
}

static void add_gap(struct timeline *t, const struct activity *a)
{
	const struct ringtap_gap *g = a->gap;
	json_t *e = complete(
		t, g->packets ? "gap with work" : "idle gap", tid_of(a), g->start_ns, g->ns);
	json_t *args = json_pack("{s:I}", "packets", (json_int_t)g->packets);

	if (g->port < a->snapshot->port_count) {
		json_object_set_new(
			args, "port", json_text(ringtap_snapshot_port(a->snapshot, g->port)->name));
		json_object_set_new(args, "queue", json_count(g->queue));
	}
	json_object_set_new(e, "args", args);
	add(t, e);
}

static void add_activity(void *ctx, const struct activity *a)
{
	struct timeline *t = ctx;
	json_t *e;

	if (a->gap) {
		add_gap(t, a);
		return;
	}
	e = complete(t, "busy period", tid_of(a), a->burst->start_ns, a->burst->ns);
	json_object_set_new(
		e, "args", json_pack("{s:I}", "packets", (json_int_t)a->burst->packets));
	add(t, e);
}

/* A start may move a little, with the clock line. */
static bool is_near(uint64_t a, uint64_t b)
{
	return a < b + 1000 && b < a + 1000;
}

/* Lists of a thread reach back some 16 seconds: of two snapshots in turn, the later one shows what
 * the earlier one had not yet. */
static bool had_gap(const struct ringtap_thread_stats *before, uint64_t start_ns)
{
	for (uint32_t i = 0; before && i < before->gap_count; i++) {
		uint64_t had = ringtap_thread_gap(before, i)->start_ns;

		if (is_near(had, start_ns))
			return !ringtap_thread_gap(before, i)->open;
	}
	return false;
}

static bool had_burst(const struct ringtap_thread_stats *before, uint64_t start_ns)
{
	for (uint32_t i = 0; before && i < before->microburst_count; i++) {
		uint64_t had = ringtap_thread_microburst(before, i)->start_ns;

		if (is_near(had, start_ns))
			return true;
	}
	return false;
}

/* Lists have the worst only: what ended before the earlier snapshot, and is in the later one only,
 * had given way to worse ones that have become too old, and has been shown before that. */
static bool came_back(const struct ringtap_snapshot *earlier, uint64_t end_ns)
{
	return earlier && end_ns + NS_PER_S < earlier->taken_ns;
}

struct walk {
	const struct incident *i;
	void (*fn)(void *ctx, const struct activity *a);
	void *ctx;
};

/* earlier, before: the snapshot before a's, and its thread; NULL: none. */
static void walk_thread(const struct walk *w, struct activity *a,
	const struct ringtap_snapshot *earlier, const struct ringtap_thread_stats *before,
	bool last)
{
	const struct ringtap_thread_stats *now = ringtap_snapshot_thread(a->snapshot, a->thread);

	for (uint32_t k = 0; k < now->gap_count; k++) {
		const struct ringtap_gap *g = a->gap = ringtap_thread_gap(now, k);

		if ((!g->open || last) && overlaps(w->i, g->start_ns, g->ns) &&
			!had_gap(before, g->start_ns) && !came_back(earlier, g->start_ns + g->ns))
			w->fn(w->ctx, a);
	}
	a->gap = NULL;
	for (uint32_t k = 0; k < now->microburst_count; k++) {
		const struct ringtap_microburst *b = a->burst = ringtap_thread_microburst(now, k);

		if (overlaps(w->i, b->start_ns, b->ns) && !had_burst(before, b->start_ns) &&
			!came_back(earlier, b->start_ns + b->ns))
			w->fn(w->ctx, a);
	}
}

/* ---- where each of them was logged */

struct logged {
	const struct walk *w;
	struct activity a;
};

static void walk_interval(void *ctx, const struct ringtap_interval *v)
{
	struct logged *l = ctx;
	const struct ringtap_gap g = {.start_ns = v->start_ns,
		.ns = v->ns,
		.packets = v->packets,
		.port = v->port,
		.queue = v->queue};
	const struct ringtap_microburst b = {
		.start_ns = v->start_ns, .ns = v->ns, .packets = v->packets};

	if (v->thread >= l->a.snapshot->thread_count)
		return;
	l->a.thread = v->thread;
	l->a.gap = v->kind == RINGTAP_INTERVAL_GAP ? &g : NULL;
	l->a.burst = l->a.gap ? NULL : &b;
	l->w->fn(l->w->ctx, &l->a);
}

struct search {
	uint32_t thread;
	uint64_t start_ns;
	bool found;
};

static void compare_start(void *ctx, const struct ringtap_interval *v)
{
	struct search *s = ctx;

	if (v->kind == RINGTAP_INTERVAL_GAP && v->thread == s->thread &&
		is_near(v->start_ns, s->start_ns))
		s->found = true;
}

/* The log is read after the snapshot: what lasted there may have ended meanwhile. */
static bool has_ended(const struct incident *i, uint32_t thread, uint64_t start_ns)
{
	struct search s = {.thread = thread, .start_ns = start_ns};

	intervals_walk(i, 0, compare_start, &s);
	return s.found;
}

/* A gap that lasts is in the last snapshot only. */
static void walk_logged(const struct walk *w, const struct ringtap_snapshot *s)
{
	struct logged l = {.w = w, .a = {.snapshot = s}};

	intervals_walk(w->i, intervals_choose(w->i).least_ns, walk_interval, &l);
	for (uint32_t k = 0; k < s->thread_count; k++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(s, k);
		struct activity a = {.snapshot = s, .thread = k};

		for (uint32_t n = 0; n < t->gap_count; n++) {
			const struct ringtap_gap *g = a.gap = ringtap_thread_gap(t, n);

			if (g->open && overlaps(w->i, g->start_ns, g->ns) &&
				!has_ended(w->i, k, g->start_ns))
				w->fn(w->ctx, &a);
		}
	}
}

void timeline_walk(const struct incident *i, unsigned first, unsigned last,
	void (*fn)(void *ctx, const struct activity *a), void *ctx)
{
	const struct walk w = {.i = i, .fn = fn, .ctx = ctx};

	if (first < last && intervals_on(i->f->history[first])) {
		walk_logged(&w, i->f->history[last]);
		return;
	}

	for (unsigned n = first; first < last && n <= last; n++) {
		const struct ringtap_snapshot *s = i->f->history[n],
					      *e = n > first ? i->f->history[n - 1] : NULL;

		for (uint32_t k = 0; k < s->thread_count; k++) {
			struct activity a = {.snapshot = s, .thread = k};

			walk_thread(&w, &a, e,
				e && k < e->thread_count ? ringtap_snapshot_thread(e, k) : NULL,
				n == last);
		}
	}
}

static void name_threads(struct timeline *t, const struct ringtap_snapshot *s)
{
	char name[THREAD_NAME_LEN];

	for (uint32_t k = 0; k < s->thread_count; k++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s, k);

		add(t, json_pack("{s:s,s:s,s:I,s:{s:o}}", "name", "thread_name", "ph", "M", "tid",
			       (json_int_t)th->tid, "args", "name",
			       json_text(thread_name(name, th))));
	}
}

static void add_rates(struct timeline *t)
{
	const struct incident *i = t->i;
	uint32_t group = i->step_count / RATES + 1;

	for (uint32_t k = 0; i->steps[0] && k < i->step_count; k += group) {
		uint64_t from = k * i->step_ns, to = from + group * i->step_ns, n[2] = {0, 0};

		if (to > i->to_ns - i->from_ns + 1)
			to = i->to_ns - i->from_ns + 1;
		for (uint32_t m = k; m < k + group && m < i->step_count; m++)
			for (int d = 0; d < 2; d++)
				n[d] += i->steps[d][m];
		add(t, json_pack("{s:s,s:s,s:i,s:f,s:{s:f,s:f}}", "name", "packets/s", "ph", "C",
			       "tid", COUNTERS, "ts", (double)from / 1e3, "args", "received",
			       (double)n[0] / (double)(to - from) * 1e9, "sent",
			       (double)n[1] / (double)(to - from) * 1e9));
	}
}

static void add_event(struct timeline *t)
{
	const struct event *e = &t->i->event;
	json_t *j = complete(t, t->i->trigger->text, COUNTERS, e->from_ns, e->to_ns - e->from_ns);

	json_object_set_new(j, "args", json_pack("{s:o}", "where", json_text(e->where)));
	add(t, j);
}

json_t *timeline_json(const struct incident *i, unsigned first, unsigned last)
{
	struct timeline t = {.i = i, .events = json_array(), .pid = (json_int_t)i->f->app.info.pid};
	const struct flight *f = i->f;

	add(&t, json_pack("{s:s,s:s,s:{s:o}}", "name", "process_name", "ph", "M", "args", "name",
			json_text(f->app.name)));
	add_event(&t);
	add_rates(&t);
	timeline_walk(i, first, last, add_activity, &t);
	if (first < last)
		name_threads(&t, f->history[last]);
	return json_pack("{s:o,s:s,s:{s:s,s:o}}", "traceEvents", t.events, "displayTimeUnit", "ns",
		"otherData", "incident", i->name, "from", json_time(i->from_ns));
}
