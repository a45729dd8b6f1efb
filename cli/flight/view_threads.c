/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of an incident's page: polling gaps and busy periods of each thread, where they were.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "flight.h"
#include "folder.h"
#include "history.h"
#include "timeline.h"
#include "view.h"

/* Why a thread did not poll, as far as the kernel's counters of it tell. In the order of states. */
enum cause { WAITED, SLEPT, BLOCKED, INTERRUPTED, RAN, RAN_OR_INTERRUPTED, UNKNOWN, BUSY };

static const struct {
	const char *name, *meaning;
	enum view_colour colour;
} states[] = {
	[WAITED] = {"gap: waited for its CPU",
		"another task had it, or, as far as the kernel does not name one, the hypervisor",
		VIEW_RED},
	[SLEPT] = {"gap: slept",
		"by itself, or it was stopped, or, from the kernel's counters, the hypervisor had "
		"its CPU",
		VIEW_PURPLE},
	[BLOCKED] = {"gap: page fault or disk", "the kernel brought a page or data", VIEW_BLUE},
	[INTERRUPTED] = {"gap: interrupt", "interrupts had its CPU", VIEW_GREEN},
	[RAN] = {"gap: ran",
		"the application was busy, or an interrupt that the kernel does not report",
		VIEW_ORANGE},
	[RAN_OR_INTERRUPTED] = {"gap: ran or interrupt",
		"the kernel's counters do not tell them apart; perf does, as root", VIEW_ORANGE},
	[UNKNOWN] = {"gap", "of unknown cause", VIEW_GREY},
	[BUSY] = {"busy period", "received packets without an empty poll", VIEW_SKY},
};

struct lanes {
	struct view *v;
	const struct incident *i;
	unsigned first, last;
	json_t **intervals; /* by thread; NULL: it has none yet */
	uint32_t count;
	json_t *unknown;     /* unknown times in the lane that is made */
	struct off_cpu *off; /* NULL: not known */
	struct cpu_task *tasks;
	struct irq_time *irqs;
	size_t off_count, task_count, irq_count;
};

/* ---- the cause of a gap */

struct readings_around {
	double seconds, ran, waited, slept; /* ns, but for seconds */
};

/* The kernel's counters of a thread between the last reading before a gap and the first one after
 * it. */
static bool around(const struct flight *f, uint32_t thread, const struct ringtap_gap *g,
	struct readings_around *r)
{
	const struct ringtap_thread_stats *a = NULL, *b = NULL;

	for (unsigned n = 0; n < f->history_count && !b; n++) {
		const struct ringtap_snapshot *s = f->history[n];
		const struct ringtap_thread_stats *t =
			thread < s->thread_count ? ringtap_snapshot_thread(s, thread) : NULL;

		if (!t || !t->read_ns)
			continue;
		if (t->read_ns <= g->start_ns)
			a = t;
		else if (t->read_ns >= g->start_ns + g->ns)
			b = t;
	}
	if (!a || !b || a->generation != b->generation || b->read_ns <= a->read_ns)
		return false;
	r->ran = (double)grown(b->cpu_ns, a->cpu_ns);
	r->waited = (double)grown(b->wait_ns, a->wait_ns);
	r->slept = (double)(b->read_ns - a->read_ns) - r->ran - r->waited;
	r->seconds = (double)(b->read_ns - a->read_ns) / NS_PER_S;
	return true;
}

/* Gaps of a snapshot that are at least that long: what they took is not left for this one. */
static double longer_gaps(const struct ringtap_thread_stats *t, const struct ringtap_gap *g)
{
	double sum = 0;

	for (uint32_t k = 0; k < t->gap_count; k++) {
		const struct ringtap_gap *other = ringtap_thread_gap(t, k);

		if (other->ns >= g->ns && other->start_ns + NS_PER_S > g->start_ns &&
			other->start_ns < g->start_ns + g->ns + NS_PER_S)
			sum += (double)other->ns;
	}
	return sum;
}

/* "; 'hog' (4711) had its CPU for 20 ms, 'ninja' (99) for 4 ms" */
static void name_takers(const struct lanes *l, const struct off_cpu *wait, char *text, size_t size)
{
	struct taker takers[TAKERS_MAX];
	unsigned n = cpu_takers(l->tasks, l->task_count, wait, takers);
	FILE *out = fmemopen(text, size, "w");

	for (unsigned k = 0; out && k < n; k++) {
		char ns[FORMAT_LEN], name[64];

		fprintf(out, "%s '%s' (%u)%s for %s", k ? "," : ";",
			printable(name, sizeof(name), takers[k].task->name), takers[k].task->tid,
			k ? "" : " had its CPU", format_ns(ns, (double)takers[k].ns));
	}
	if (out)
		fclose(out);
}

/* State of the scheduler in the gap. Half of it decides: it begins and ends with a poll. */
static enum cause cause_seen(
	const struct lanes *l, const struct activity *a, char *text, size_t size)
{
	const struct ringtap_gap *g = a->gap;
	const struct off_cpu_sum s =
		off_cpu_between(l->off, l->off_count, a->thread, g->start_ns, g->start_ns + g->ns);
	uint32_t cpu = ringtap_snapshot_thread(a->snapshot, a->thread)->cpu;
	char ns[FORMAT_LEN], most[IRQ_NAME], name[64];
	uint64_t irqs;

	*text = '\0';
	if (s.ns[OFF_WAITED] >= g->ns / 2) {
		name_takers(l, &s.wait, text, size);
		return WAITED;
	}
	if (s.ns[OFF_STOPPED] >= g->ns / 2 || s.ns[OFF_SLEPT] >= g->ns / 2) {
		snprintf(text, size, "; it %s for %s",
			s.ns[OFF_STOPPED] >= g->ns / 2 ? "was stopped" : "slept",
			format_ns(ns, (double)(s.ns[OFF_STOPPED] + s.ns[OFF_SLEPT])));
		return SLEPT;
	}
	irqs = irq_ns_between(l->irqs, l->irq_count, cpu, g->start_ns, g->start_ns + g->ns, most);
	if (irqs >= g->ns / 2) {
		snprintf(text, size, "; interrupts of its CPU took %s, most of it '%s'",
			format_ns(ns, (double)irqs), printable(name, sizeof(name), most));
		return INTERRUPTED;
	}
	if (s.faults)
		snprintf(text, size, "; %" PRIu64 " page faults", s.faults);
	if (s.ns[OFF_BLOCKED] >= g->ns / 2 || s.faults)
		return BLOCKED;
	return RAN;
}

static enum cause cause_of(const struct lanes *l, const struct activity *a, char *text, size_t size)
{
	const struct ringtap_gap *g = a->gap;
	char ran[FORMAT_LEN], waited[FORMAT_LEN], slept[FORMAT_LEN];
	struct readings_around r;
	double needed;

	if (l->off && g->start_ns >= l->i->f->off_cpus.since_ns)
		return cause_seen(l, a, text, size);
	*text = '\0';
	if (!around(l->i->f, a->thread, g, &r))
		return UNKNOWN;
	if (g->ns < NS_PER_S / 1000) /* the page stays small */
		size = 1;
	format_ns(ran, r.ran);
	format_ns(waited, r.waited);
	format_ns(slept, r.slept > 0 ? r.slept : 0);
	snprintf(text, size,
		"; the kernel's counters of %.2f s around it: ran %s, waited %s, slept %s",
		r.seconds, ran, waited, slept);
	needed =
		longer_gaps(ringtap_snapshot_thread(a->snapshot, a->thread), g) - (double)g->ns / 2;
	if (r.waited >= needed)
		return WAITED;
	if (r.slept >= needed)
		return SLEPT;
	return r.waited < (double)g->ns / 2 && r.slept < (double)g->ns / 2 ? RAN_OR_INTERRUPTED
									   : UNKNOWN;
}

/* ---- bars */

static void add_interval(struct lanes *l, uint32_t thread, uint64_t start_ns, uint64_t ns,
	enum cause state, const char *text)
{
	if (thread >= l->count)
		return;
	if (!l->intervals[thread])
		l->intervals[thread] = json_array();
	json_array_append_new(
		l->intervals[thread], json_pack("[o, o, i, o]", view_at(l->v, start_ns),
					      json_count(ns), (int)state, json_text(text)));
}

static void add_gap(struct lanes *l, const struct activity *a)
{
	const struct ringtap_gap *g = a->gap;
	char text[384], where[128] = "", why[160], name[RINGTAP_NAME_LEN];
	enum cause cause = cause_of(l, a, why, sizeof(why));

	if (g->port < a->snapshot->port_count)
		snprintf(where, sizeof(where), " of %s, queue %u",
			printable(name, sizeof(name),
				ringtap_snapshot_port(a->snapshot, g->port)->name),
			g->queue);
	if (g->packets)
		snprintf(text, sizeof(text), "after a poll%s that brought %u packet%s%s%s", where,
			g->packets, g->packets == 1 ? "" : "s", g->open ? "; it lasts" : "", why);
	else
		snprintf(text, sizeof(text), "after a poll%s without packets%s%s", where,
			g->open ? "; it lasts" : "", why);
	add_interval(l, a->thread, g->start_ns, g->ns, cause, text);
}

static void add_activity(void *ctx, const struct activity *a)
{
	struct lanes *l = ctx;
	char text[64];

	if (a->gap) {
		add_gap(l, a);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64 " packets", a->burst->packets);
	add_interval(l, a->thread, a->burst->start_ns, a->burst->ns, BUSY, text);
}

/* ---- lanes */

static json_t *add_states(json_t *panel)
{
	json_t *list = json_array();

	for (size_t k = 0; k < sizeof(states) / sizeof(*states); k++) {
		json_t *s = json_pack("{s:s, s:s, s:i}", "name", states[k].name, "meaning",
			states[k].meaning, "colour", (int)states[k].colour);

		if (k == BUSY)
			json_object_set_new(s, "low", json_true());
		json_array_append_new(list, s);
	}
	json_object_set_new(panel, "states", list);
	return list;
}

static void add_missing(void *ctx, const struct interval_loss *loss)
{
	const struct lanes *l = ctx;

	json_array_append_new(l->unknown,
		json_pack("[o, o]", view_at(l->v, loss->from_ns), view_at(l->v, loss->to_ns)));
}

/* Time of the window that no snapshot covers. */
static json_t *unknown_of(struct lanes *l)
{
	uint64_t from = l->i->f->history[l->first]->taken_ns,
		 to = l->i->f->history[l->last]->taken_ns;
	json_t *list = json_array();

	if (from > l->i->from_ns && l->first == 0 && l->i->f->history[0]->taken_ns > l->i->from_ns)
		json_array_append_new(list,
			json_pack("[o, o]", view_at(l->v, l->i->from_ns), view_at(l->v, from)));
	if (to < l->i->to_ns)
		json_array_append_new(
			list, json_pack("[o, o]", view_at(l->v, to), view_at(l->v, l->i->to_ns)));
	l->unknown = list;
	intervals_missing(l->i, add_missing, l);
	return list;
}

static void add_lane(struct lanes *l, json_t *list, uint32_t k)
{
	const struct ringtap_snapshot *s = l->i->f->history[l->last];
	const struct ringtap_thread_stats *t = ringtap_snapshot_thread(s, k);
	char name[THREAD_NAME_LEN], text[2 * THREAD_NAME_LEN];
	const struct span span = history_span(l->i->f, l->first, l->last);
	struct tally calls;

	tally_sum(&calls, &span, RINGTAP_NO_INDEX, k, 0);
	if (!l->intervals[k] && !calls.calls)
		return;
	thread_name(name, t);
	snprintf(text, sizeof(text), "%s%s", name, t->alive ? "" : ", has ended");
	json_array_append_new(
		list, json_pack("{s:o, s:o, s:o}", "name", json_text(text), "intervals",
			      l->intervals[k] ? l->intervals[k] : json_array(), "unknown",
			      unknown_of(l)));
	l->intervals[k] = NULL;
}

/* EAL threads first, by lcore. */
static int compare(const void *a, const void *b, void *snapshot)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint32_t x = ringtap_snapshot_thread(snapshot, i)->lcore,
		 y = ringtap_snapshot_thread(snapshot, k)->lcore;

	return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

static void add_lanes(struct lanes *l, json_t *panel)
{
	uint32_t *order = calloc(l->count + 1, sizeof(*order));
	json_t *list = json_array();

	for (uint32_t k = 0; order && k < l->count; k++)
		order[k] = k;
	if (order)
		qsort_r(order, l->count, sizeof(*order), compare, l->i->f->history[l->last]);
	for (uint32_t k = 0; order && k < l->count; k++)
		add_lane(l, list, order[k]);
	free(order);
	json_object_set_new(panel, "lanes", list);
}

/* Notes about what the lanes do not show. */
static void add_limits(json_t *panel, const struct incident *i, unsigned first)
{
	struct interval_choice c = intervals_choose(i);
	char text[256], size[FORMAT_LEN];

	if (!intervals_on(i->f->history[first])) {
		view_panel_note(panel,
			"The probe keeps the eight longest gaps and the eight largest busy periods "
			"of a second: there may be shorter ones where nothing is drawn.");
		return;
	}
	view_panel_note(panel,
		"Each gap and each busy period of 10 us and more; times in which some "
		"were lost are hatched.");
	if (c.shown == c.all)
		return;
	snprintf(text, sizeof(text),
		"Of %" PRIu64 ", the %" PRIu64 " of %s and more are drawn; " FLIGHT_PACKETS
		" has all of them.",
		c.all, c.shown, format_ns(size, (double)c.least_ns));
	view_panel_note(panel, text);
}

void view_threads(struct view *v, const struct incident *i, unsigned first, unsigned last,
	struct lane_bars *bars)
{
	const struct ringtap_snapshot *s = i->f->history[last];
	struct lanes l = {.v = v, .i = i, .first = first, .last = last, .count = s->thread_count};
	json_t *panel;

	if (!(s->collectors & (RINGTAP_GAPS | RINGTAP_BUSY)))
		return;
	l.intervals = calloc(l.count + 1, sizeof(*l.intervals));
	if (!l.intervals)
		return;
	if (i->f->off_cpus.since_ns) {
		l.off = off_cpu_sorted(&i->f->off_cpus, &l.off_count);
		l.tasks = cpu_tasks_sorted(&i->f->off_cpus, &l.task_count);
		l.irqs = irq_times_sorted(&i->f->off_cpus, &l.irq_count);
	}
	timeline_walk(i, first, last, add_activity, &l);
	panel = view_panel(v, "lanes", "threads", "Polling threads");
	add_limits(panel, i, first);
	if (!(s->collectors & RINGTAP_GAPS))
		view_panel_note(panel, "Gaps were not recorded: their collector is off.");
	bars->states = add_states(panel);
	bars->by_thread = calloc(l.count + 1, sizeof(*bars->by_thread));
	bars->count = bars->by_thread ? l.count : 0;
	if (bars->by_thread)
		memcpy(bars->by_thread, l.intervals, l.count * sizeof(*bars->by_thread));
	add_lanes(&l, panel);
	free(l.intervals);
	free(l.off);
	free(l.tasks);
	free(l.irqs);
}
