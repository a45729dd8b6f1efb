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

#define COUNTERS 0 /* the "thread" of what belongs to all of the application */

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

static void add_gap(struct timeline *t, const struct ringtap_snapshot *s, uint32_t tid,
	const struct ringtap_gap *g)
{
	json_t *e = complete(t, g->packets ? "gap with work" : "idle gap", tid, g->start_ns, g->ns);
	json_t *args = json_pack("{s:I}", "packets", (json_int_t)g->packets);

	if (g->port < s->port_count) {
		json_object_set_new(
			args, "port", json_text(ringtap_snapshot_port(s, g->port)->name));
		json_object_set_new(args, "queue", json_count(g->queue));
	}
	json_object_set_new(e, "args", args);
	add(t, e);
}

/* Lists of a thread reach back some 16 seconds: of two snapshots in turn, the later one shows what
 * the earlier one had not yet. A start may move a little, with the clock line. */
static bool had_gap(const struct ringtap_thread_stats *before, uint64_t start_ns)
{
	for (uint32_t i = 0; before && i < before->gap_count; i++) {
		uint64_t had = ringtap_thread_gap(before, i)->start_ns;

		if (had < start_ns + 1000 && start_ns < had + 1000)
			return !ringtap_thread_gap(before, i)->open;
	}
	return false;
}

static bool had_burst(const struct ringtap_thread_stats *before, uint64_t start_ns)
{
	for (uint32_t i = 0; before && i < before->microburst_count; i++) {
		uint64_t had = ringtap_thread_microburst(before, i)->start_ns;

		if (had < start_ns + 1000 && start_ns < had + 1000)
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

/* earlier, before: the snapshot before s, and its thread; NULL: none. */
static void add_thread(struct timeline *t, const struct ringtap_snapshot *s,
	const struct ringtap_thread_stats *now, const struct ringtap_snapshot *earlier,
	const struct ringtap_thread_stats *before, bool last)
{
	for (uint32_t i = 0; i < now->gap_count; i++) {
		const struct ringtap_gap *g = ringtap_thread_gap(now, i);

		if ((!g->open || last) && overlaps(t->i, g->start_ns, g->ns) &&
			!had_gap(before, g->start_ns) && !came_back(earlier, g->start_ns + g->ns))
			add_gap(t, s, now->tid, g);
	}
	for (uint32_t i = 0; i < now->microburst_count; i++) {
		const struct ringtap_microburst *b = ringtap_thread_microburst(now, i);
		json_t *e;

		if (!overlaps(t->i, b->start_ns, b->ns) || had_burst(before, b->start_ns) ||
			came_back(earlier, b->start_ns + b->ns))
			continue;
		e = complete(t, "busy period", now->tid, b->start_ns, b->ns);
		json_object_set_new(
			e, "args", json_pack("{s:I}", "packets", (json_int_t)b->packets));
		add(t, e);
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
	double slice = (double)(i->to_ns - i->from_ns + 1) / INCIDENT_SLICES;

	for (unsigned k = 0; k < INCIDENT_SLICES; k++)
		add(t, json_pack("{s:s,s:s,s:i,s:f,s:{s:f,s:f}}", "name", "packets/s", "ph", "C",
			       "tid", COUNTERS, "ts", k * slice / 1e3, "args", "received",
			       (double)i->slices[0][k] / slice * 1e9, "sent",
			       (double)i->slices[1][k] / slice * 1e9));
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
	for (unsigned n = first; first < last && n <= last; n++) {
		const struct ringtap_snapshot *s = f->history[n],
					      *a = n > first ? f->history[n - 1] : NULL;

		for (uint32_t k = 0; k < s->thread_count; k++)
			add_thread(&t, s, ringtap_snapshot_thread(s, k), a,
				a && k < a->thread_count ? ringtap_snapshot_thread(a, k) : NULL,
				n == last);
	}
	if (first < last)
		name_threads(&t, f->history[last]);
	return json_pack("{s:o,s:s,s:{s:s,s:o}}", "traceEvents", t.events, "displayTimeUnit", "ns",
		"otherData", "incident", i->name, "from_ns", json_count(i->from_ns));
}
