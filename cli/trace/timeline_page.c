/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "common/array.h"
#include "timeline_page.h"

#define STEPS      1000 /* in a rate, about */
#define CURVES     14   /* in a panel: more cannot be told apart */
#define TEXT_BYTES 320

struct bar {
	uint64_t ns, end_ns, packets;
	char *text; /* NULL: none */
	enum perfetto_look look;
};

struct value {
	uint64_t ns;
	int64_t value;
};

struct track {
	enum perfetto_kind kind;
	char *name;
	const char *group; /* NULL: it has no curve */
	struct bar *bars;
	struct value *values;
	size_t bar_count, value_count;
	size_t open; /* 1 + the index of the bar that has not ended; 0: none */
};

struct timeline_page {
	struct track *tracks;
	size_t track_count, taken;
	uint64_t full_ns;
};

static const struct {
	const char *name, *meaning;
	enum view_colour colour;
	bool low;
} looks[PERFETTO_LOOKS] = {
	[PERFETTO_RECEIVED] = {"received burst",
		"until the thread's last sending before its next received burst", VIEW_BLUE, false},
	[PERFETTO_SENT] = {"sent burst", "at this time", VIEW_GREEN, true},
	[PERFETTO_WORK] = {"gap with work", "no poll after one that had brought packets", VIEW_RED,
		false},
	[PERFETTO_IDLE] = {"idle gap", "no poll after one that had brought none", VIEW_GREY, false},
	[PERFETTO_BUSY] = {"busy period", "every poll brought packets", VIEW_ORANGE, true},
	[PERFETTO_WAITS] = {"waits for a CPU", "another task has it", VIEW_RED, false},
	[PERFETTO_SLEEPS] = {"sleeps", "by its own wish", VIEW_SKY, false},
	[PERFETTO_BLOCKED] = {"blocked", "in the kernel", VIEW_PURPLE, false},
	[PERFETTO_STOPPED] = {"stopped", "by a signal or a debugger", VIEW_GREY, false},
	[PERFETTO_FAULTED] = {"page fault", "at this time", VIEW_ORANGE, false},
	[PERFETTO_TASK] = {"task", "what ran on the CPU", VIEW_SKY, false},
	[PERFETTO_DROPPED] = {"not offered", "packets that were not offered to any port", VIEW_RED,
		false},
	[PERFETTO_UNKNOWN] = {"fate unknown", "packets whose fate is unknown", VIEW_GREY, false},
};

/* ---- keeping */

struct timeline_page *timeline_page_new(void)
{
	return calloc(1, sizeof(struct timeline_page));
}

void timeline_page_free(struct timeline_page *p)
{
	for (size_t i = 0; p && i < p->track_count; i++) {
		struct track *t = &p->tracks[i];

		for (size_t k = 0; k < t->bar_count; k++)
			free(t->bars[k].text);
		free(t->bars);
		free(t->values);
		free(t->name);
	}
	if (p)
		free(p->tracks);
	free(p);
}

uint64_t timeline_page_full_ns(const struct timeline_page *p)
{
	return p->full_ns;
}

static const struct track *track_of(const struct timeline_page *p, uint32_t number)
{
	return number && number <= p->track_count ? &p->tracks[number - 1] : NULL;
}

/* Tracks of a thread have its name before theirs. */
void timeline_page_track(struct timeline_page *p, uint32_t number, const struct perfetto_place *at)
{
	const struct track *parent;
	struct track *t = rt_array_add(p->tracks, p->track_count);
	char name[2 * PERFETTO_TEXT + 2];

	if (!t)
		return;
	parent = track_of(p, at->parent && at->kind == PERFETTO_SLICES ? at->parent->number : 0);
	if (parent && parent->name && parent->kind != PERFETTO_PROCESS)
		snprintf(name, sizeof(name), "%s, %s", parent->name, at->name);
	else
		snprintf(name, sizeof(name), "%s", at->name);
	t->kind = at->kind;
	t->group = at->group;
	t->name = strdup(name);
}

static size_t append(char text[TEXT_BYTES], size_t at, const char *format, uint64_t number)
{
	int n = snprintf(text + at, TEXT_BYTES - at, format, at ? ", " : "", number);

	return at + (size_t)n < TEXT_BYTES ? at + (size_t)n : TEXT_BYTES - 1;
}

static size_t append_time(char text[TEXT_BYTES], size_t at, const char *what, uint64_t ns)
{
	char time[FORMAT_LEN];
	int n = snprintf(text + at, TEXT_BYTES - at, ", %s %s", what, format_ns(time, (double)ns));

	return at + (size_t)n < TEXT_BYTES ? at + (size_t)n : TEXT_BYTES - 1;
}

/* NULL: its look says it all, or no memory. */
static char *text_of(const struct perfetto_event *e, const char *name)
{
	char text[TEXT_BYTES] = "";
	size_t at = 0;

	if (strcmp(name, looks[e->look].name))
		at = (size_t)snprintf(text, sizeof(text), "%s", name);
	if (e->has[PERFETTO_PACKETS])
		at = append(text, at, "%s%" PRIu64 " packets", e->args[PERFETTO_PACKETS]);
	if (e->has[PERFETTO_BYTES])
		at = append(text, at, "%s%" PRIu64 " bytes", e->args[PERFETTO_BYTES]);
	if (e->has[PERFETTO_LOST_BEFORE])
		at = append(text, at, "%s%" PRIu64 " lost before by the trace",
			e->args[PERFETTO_LOST_BEFORE]);
	if (e->has[PERFETTO_TIMED]) {
		at = append_time(text, at, "latency", e->args[PERFETTO_MEAN_NS]);
		at = append_time(text, at, "at most", e->args[PERFETTO_MAX_NS]);
	}
	if (e->has[PERFETTO_RECEIVED_NS] && e->ns > e->args[PERFETTO_RECEIVED_NS])
		at = append_time(text, at, "after", e->ns - e->args[PERFETTO_RECEIVED_NS]);
	if (e->has[PERFETTO_TID])
		at = append(text, at, "%sthread %" PRIu64, e->args[PERFETTO_TID]);
	if (e->has[PERFETTO_LASTS])
		at = append(text, at, "%sit lasts", 0);
	return at ? strdup(text) : NULL;
}

static bool add_bar(struct timeline_page *p, struct track *t, const struct perfetto_event *e,
	uint64_t ns, const char *name)
{
	struct bar *b = rt_array_add(t->bars, t->bar_count);

	if (!b)
		return false;
	*b = (struct bar){.ns = ns,
		.end_ns = ns,
		.packets = e->has[PERFETTO_PACKETS] ? e->args[PERFETTO_PACKETS] : 0,
		.text = text_of(e, name),
		.look = e->look};
	if (e->type == PERFETTO_BEGIN)
		t->open = t->bar_count;
	return true;
}

static bool add_value(struct track *t, uint64_t ns, int64_t value)
{
	struct value *v = rt_array_add(t->values, t->value_count);

	if (v)
		*v = (struct value){.ns = ns, .value = value};
	return v;
}

void timeline_page_put(struct timeline_page *p, uint32_t number, const struct perfetto_event *e,
	uint64_t ns, const char *name)
{
	struct track *t = number <= p->track_count ? &p->tracks[number - 1] : NULL;
	bool taken;

	if (!t)
		return;
	if (e->type == PERFETTO_END) {
		if (t->open)
			t->bars[t->open - 1].end_ns = ns;
		t->open = 0;
		return;
	}
	if (p->full_ns && (ns > p->full_ns || p->taken >= 2 * TIMELINE_BARS))
		return;
	taken = e->type == PERFETTO_VALUE ? add_value(t, ns, e->value) : add_bar(p, t, e, ns, name);
	p->taken += taken;
	if (!p->full_ns && (!taken || p->taken >= TIMELINE_BARS))
		p->full_ns = ns;
}

/* ---- rates */

static void count_bars(const struct track *t, uint64_t from_ns, uint64_t step_ns,
	uint32_t *received, uint32_t *sent)
{
	for (size_t k = 0; k < t->bar_count; k++) {
		const struct bar *b = &t->bars[k];
		uint64_t at = b->ns >= from_ns ? (b->ns - from_ns) / step_ns : UINT64_MAX;

		if (at > STEPS || b->look > PERFETTO_SENT)
			continue;
		(b->look == PERFETTO_SENT ? sent : received)[at] += (uint32_t)b->packets;
	}
}

static void add_rates(
	const struct timeline_page *p, struct view *v, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t step_ns = (to_ns - from_ns) / STEPS + 1;
	uint32_t steps = (uint32_t)((to_ns - from_ns) / step_ns) + 1;
	uint32_t *counts = calloc(2 * (STEPS + 1), sizeof(*counts)), *sent = counts + STEPS + 1;
	json_t *panel;

	if (!counts)
		return;
	for (size_t i = 0; i < p->track_count; i++)
		count_bars(&p->tracks[i], from_ns, step_ns, counts, sent);
	panel = view_counts(v, "rates", "Packets", "packets", from_ns, step_ns, to_ns + 1);
	view_append_counts(view_series(panel, "received", VIEW_BLUE), counts, steps);
	view_append_counts(view_series(panel, "sent", VIEW_GREEN), sent, steps);
	free(counts);
}

/* ---- lanes */

static json_t *states_json(void)
{
	json_t *list = json_array();

	for (int i = 0; i < PERFETTO_LOOKS; i++) {
		json_t *s = json_pack("{s:s, s:s, s:i}", "name", looks[i].name, "meaning",
			looks[i].meaning, "colour", (int)looks[i].colour);

		if (looks[i].low)
			json_object_set_new(s, "low", json_true());
		json_array_append_new(list, s);
	}
	return list;
}

static void add_lane(const struct track *t, json_t *lanes, const struct view *v, uint64_t to_ns)
{
	json_t *bars = json_array();

	for (size_t k = 0; k < t->bar_count; k++) {
		const struct bar *b = &t->bars[k];
		uint64_t end_ns = t->open == k + 1 ? to_ns : b->end_ns;
		json_t *bar = json_pack("[o, o, i]", view_at(v, b->ns),
			json_count(end_ns > b->ns ? end_ns - b->ns : 0), (int)b->look);

		json_array_append_new(bar, json_text(b->text ? b->text : ""));
		json_array_append_new(bars, bar);
	}
	json_array_append_new(
		lanes, json_pack("{s:o, s:o}", "name", json_text(t->name), "intervals", bars));
}

static void add_lanes(const struct timeline_page *p, struct view *v, uint64_t to_ns)
{
	json_t *panel = view_panel(v, "lanes", "threads", "Threads and CPUs"),
	       *lanes = json_array();

	for (size_t i = 0; i < p->track_count; i++)
		if (p->tracks[i].bar_count && p->tracks[i].name)
			add_lane(&p->tracks[i], lanes, v, to_ns);
	json_object_set_new(panel, "states", states_json());
	json_object_set_new(panel, "lanes", lanes);
}

/* ---- curves */

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Times at which one of a group changes, in order and once each, and the end. The caller frees
 * them; NULL: no memory. */
static uint64_t *edges_of(const struct timeline_page *p, const char *group, uint64_t from_ns,
	uint64_t to_ns, size_t *count)
{
	uint64_t *edges = calloc(p->taken + 1, sizeof(*edges));
	size_t n = 0, kept = 0;

	for (size_t i = 0; edges && i < p->track_count; i++) {
		const struct track *t = &p->tracks[i];

		for (size_t k = 0; t->group == group && k < t->value_count; k++)
			edges[n++] = t->values[k].ns > from_ns ? t->values[k].ns : from_ns;
	}
	if (!edges)
		return NULL;
	qsort(edges, n, sizeof(*edges), by_time);
	for (size_t k = 0; k < n; k++)
		if ((!kept || edges[k] != edges[kept - 1]) && edges[k] < to_ns)
			edges[kept++] = edges[k];
	edges[kept] = to_ns;
	*count = kept;
	return edges;
}

static void add_curve(json_t *panel, const struct track *t, const uint64_t *edges, size_t count,
	enum view_colour colour)
{
	json_t *values = view_series(panel, t->name, colour);
	size_t at = 0;

	for (size_t k = 0; k < count; k++) {
		while (at < t->value_count && t->values[at].ns <= edges[k])
			at++;
		if (at)
			view_append(values, (double)t->values[at - 1].value);
		else
			json_array_append_new(values, json_null());
	}
}

static void add_curves(const struct timeline_page *p, struct view *v, const char *group,
	uint64_t from_ns, uint64_t to_ns)
{
	size_t count = 0, curves = 0, omitted = 0;
	uint64_t *edges = edges_of(p, group, from_ns, to_ns, &count);
	json_t *panel, *list = json_array();
	char text[64];

	if (!edges || !count) {
		free(edges);
		json_decref(list);
		return;
	}
	panel = view_panel(v, "levels", NULL, group);
	json_object_set_new(panel, "unit", json_string("count"));
	for (size_t k = 0; k <= count; k++)
		json_array_append_new(list, view_at(v, edges[k]));
	json_object_set_new(panel, "edges_ns", list);
	for (size_t i = 0; i < p->track_count; i++) {
		const struct track *t = &p->tracks[i];

		if (t->group != group || !t->name || !t->value_count)
			continue;
		if (curves < CURVES)
			add_curve(panel, t, edges, count,
				(enum view_colour)(curves++ % (VIEW_GREY + 1)));
		else
			omitted++;
	}
	snprintf(text, sizeof(text), "%zu more are left out.", omitted);
	if (omitted)
		view_panel_note(panel, text);
	free(edges);
}

void timeline_page_view(
	const struct timeline_page *p, struct view *v, uint64_t from_ns, uint64_t to_ns)
{
	add_rates(p, v, from_ns, to_ns);
	add_lanes(p, v, to_ns);
	/* Each group once, at its first track. */
	for (size_t i = 0; i < p->track_count; i++) {
		size_t k = 0;

		while (k < i && p->tracks[k].group != p->tracks[i].group)
			k++;
		if (k == i && p->tracks[i].group)
			add_curves(p, v, p->tracks[i].group, from_ns, to_ns);
	}
}
