/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of an incident's page: packets in the file, and what the probe counted in each second. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "flight.h"
#include "history.h"
#include "view.h"

#define CURVES 7 /* colours that differ */

void view_packets(struct view *v, const struct incident *i)
{
	static const struct {
		const char *name;
		enum view_colour colour;
	} curves[INCIDENT_CURVES] = {
		{"received", VIEW_BLUE}, {"sent", VIEW_RED}, {"lost by the recorder", VIEW_PURPLE}};
	json_t *panel;

	if (!i->steps[0])
		return;
	panel = view_counts(
		v, "rates", "Packets in the file", "packets", i->from_ns, i->step_ns, i->to_ns + 1);
	for (int k = 0; k < INCIDENT_CURVES; k++)
		if (k < 2 || i->lost)
			view_append_counts(view_series(panel, curves[k].name, curves[k].colour),
				i->steps[k], i->step_count);
	view_panel_note(panel, "The lighter band: the least and the most of eighths of each step.");
	if (i->f->cfg && i->f->cfg->filter)
		view_panel_note(
			panel, "The recorder has a filter (-f): other packets are not counted.");
}

/* A panel of values that hold from one snapshot to the next, or from one reading of something to
 * the next: when() is its time in a snapshot. */
static json_t *seconds_panel(struct view *v, const struct incident *i, unsigned first,
	unsigned last, uint64_t (*when)(const struct ringtap_snapshot *s), const char *id,
	const char *title, const char *unit)
{
	json_t *panel = view_panel(v, "levels", id, title), *edges = json_array();
	uint64_t before = 0;

	for (unsigned n = first; n <= last; n++) {
		uint64_t ns = when(i->f->history[n]);

		before = ns > before ? ns : before;
		json_array_append_new(edges, view_at(v, before));
	}
	json_object_set_new(panel, "edges_ns", edges);
	json_object_set_new(panel, "unit", json_string(unit));
	return panel;
}

static uint64_t taken_ns(const struct ringtap_snapshot *s)
{
	return s->taken_ns;
}

/* When drivers were read, which may be half a second before the snapshot: drawn at the time of the
 * snapshot, losses would come after what caused them. */
static uint64_t drivers_read_ns(const struct ringtap_snapshot *s)
{
	uint64_t ns = 0;

	for (uint32_t k = 0; k < s->port_count; k++)
		ns = ringtap_snapshot_port(s, k)->read_ns > ns
			     ? ringtap_snapshot_port(s, k)->read_ns
			     : ns;
	return ns ? ns : s->taken_ns;
}

/* ---- losses */

struct losses {
	double missed, no_mbuf, refused, errors; /* packets/s; NAN: unknown */
};

static void add(double *to, double n)
{
	if (!isnan(n))
		*to = isnan(*to) ? n : *to + n;
}

static struct losses losses_of(const struct span *s)
{
	struct losses l = {NAN, NAN, NAN, NAN};

	for (uint32_t p = 0; p < s->to->port_count; p++) {
		struct driver_counts c;

		driver_counts(s, p, &c);
		add(&l.missed, c.imissed / c.seconds);
		add(&l.no_mbuf, c.rx_nombuf / c.seconds);
		add(&l.refused, c.unsent / c.seconds);
		add(&l.errors, c.errors / c.seconds);
	}
	return l;
}

void view_ports(struct view *v, const struct incident *i, unsigned first, unsigned last)
{
	json_t *panel = seconds_panel(v, i, first, last, drivers_read_ns, "losses",
		"Losses and refusals of all ports, packets/s", "/s");
	json_t *missed = view_series(panel, "missed", VIEW_RED);
	json_t *no_mbuf = view_series(panel, "no mbuf", VIEW_PURPLE);
	json_t *refused = view_series(panel, "refused", VIEW_ORANGE);
	json_t *errors = view_series(panel, "errors", VIEW_GREY);

	view_panel_note(panel,
		"Between two readings of the drivers. missed: the NIC had no free descriptor; no mbuf: the driver had none; refused: the driver did not take the packet.");
	for (unsigned n = first; n < last; n++) {
		const struct span s = history_span(i->f, n, n + 1);
		struct losses l = losses_of(&s);

		view_append(missed, l.missed);
		view_append(no_mbuf, l.no_mbuf);
		view_append(refused, l.refused);
		view_append(errors, l.errors);
	}
}

/* ---- latency */

static struct latency_rates slowest(const struct span *s)
{
	struct latency_rates worst = {.p50_ns = NAN, .p90_ns = NAN, .p99_ns = NAN}, r;

	for (uint32_t k = 0; k < s->to->pair_count; k++) {
		rates_latency_shown(s, k, &r);
		if (r.count && !(worst.p99_ns >= r.p99_ns))
			worst = r;
	}
	return worst;
}

void view_latency(struct view *v, const struct incident *i, unsigned first, unsigned last)
{
	enum trigger_kind kind = i->trigger->kind;
	json_t *panel, *p50, *p90, *p99;

	if (!(i->f->history[last]->collectors & RINGTAP_LATENCY))
		return;
	panel = seconds_panel(
		v, i, first, last, taken_ns, "latency", "Latency from receiving to sending", "ns");
	json_object_set_new(panel, "log", json_true());
	view_panel_note(panel, "Of each second, of the thread and ports that are the slowest.");
	p50 = view_series(panel, "50 %", VIEW_BLUE);
	p90 = view_series(panel, "90 %", VIEW_GREEN);
	p99 = view_series(panel, "99 %", VIEW_RED);
	for (unsigned n = first; n < last; n++) {
		const struct span s = history_span(i->f, n, n + 1);
		const struct latency_rates r = slowest(&s);

		view_append(p50, r.p50_ns);
		view_append(p90, r.p90_ns);
		view_append(p99, r.p99_ns);
	}
	if (kind >= TRIGGER_LATENCY && kind <= TRIGGER_P999)
		view_limit(panel, i->trigger->text, i->trigger->threshold);
}

/* ---- mempools */

/* The least of them, one per call: those of which the least buffers were free. */
static uint32_t next_pool(
	const struct incident *i, unsigned first, unsigned last, const bool *taken)
{
	const struct ringtap_snapshot *end = i->f->history[last];
	uint32_t found = RINGTAP_NO_INDEX;
	double least = INFINITY;

	for (uint32_t k = 0; k < end->pool_count && k < 1024; k++) {
		for (unsigned n = first; n <= last && !taken[k]; n++) {
			const struct ringtap_snapshot *s = i->f->history[n];
			const struct ringtap_pool_stats *p =
				k < s->pool_count ? ringtap_snapshot_pool(s, k) : NULL;

			if (!p || p->gone || !p->size || p->available == UINT32_MAX ||
				(double)p->available / p->size >= least)
				continue;
			least = (double)p->available / p->size;
			found = k;
		}
	}
	return found;
}

/* NAN: unknown. */
static double free_share(const struct ringtap_snapshot *s, uint32_t k)
{
	const struct ringtap_pool_stats *p = k < s->pool_count ? ringtap_snapshot_pool(s, k) : NULL;

	return p && p->size && !p->gone && p->available != UINT32_MAX
		       ? (double)p->available / p->size
		       : NAN;
}

/* The condition has read a pool between snapshot n and the next one. */
static bool event_follows(const struct incident *i, unsigned n, unsigned last)
{
	return i->trigger->kind == TRIGGER_POOL && i->event.to_ns > i->f->history[n]->taken_ns &&
	       (n == last || i->event.to_ns < i->f->history[n + 1]->taken_ns);
}

static json_t *pools_panel(struct view *v, const struct incident *i, unsigned first, unsigned last)
{
	json_t *panel = view_panel(v, "levels", "pools", "Mempools: free buffers");
	json_t *edges = json_array();
	uint64_t end = i->f->history[last]->taken_ns;

	for (unsigned n = first; n <= last; n++) {
		json_array_append_new(edges, view_at(v, i->f->history[n]->taken_ns));
		if (event_follows(i, n, last))
			json_array_append_new(edges, view_at(v, i->event.to_ns));
	}
	json_array_append_new(edges, view_at(v, end > i->to_ns ? end : i->to_ns));
	json_object_set_new(panel, "edges_ns", edges);
	json_object_set_new(panel, "unit", json_string("share"));
	view_panel_note(panel,
		"Each value is that of a reading, and drawn until the next one, a second later; of "
		"more than seven mempools those with the fewest free buffers.");
	return panel;
}

static void add_pool(json_t *panel, const struct incident *i, unsigned first, unsigned last,
	uint32_t k, unsigned colour)
{
	const struct ringtap_pool_stats *p = ringtap_snapshot_pool(i->f->history[last], k);
	char name[RINGTAP_NAME_LEN];
	json_t *values = view_series(panel, printable(name, sizeof(name), p->name), colour);
	double at_event = i->event.value / (i->trigger->percent ? 100 : p->size);

	for (unsigned n = first; n <= last; n++) {
		double share = free_share(i->f->history[n], k);

		view_append(values, share);
		if (event_follows(i, n, last))
			view_append(values, strcmp(name, i->event.where) ? share : at_event);
	}
}

void view_pools(struct view *v, const struct incident *i, unsigned first, unsigned last)
{
	bool taken[1024] = {false};
	json_t *panel = NULL;

	for (unsigned n = 0; n < CURVES; n++) {
		uint32_t k = next_pool(i, first, last, taken);

		if (k == RINGTAP_NO_INDEX)
			break;
		taken[k] = true;
		if (!panel)
			panel = pools_panel(v, i, first, last);
		add_pool(panel, i, first, last, k, n);
	}
	if (panel && i->trigger->kind == TRIGGER_POOL && i->trigger->percent)
		view_limit(panel, i->trigger->text, i->trigger->threshold / 100);
}

/* ---- rings */

/* The fullest sample between snapshots n and n + 1, as a share; NAN: unknown. */
static double ring_level(const struct incident *i, unsigned n, uint32_t k)
{
	const struct span s = history_span(i->f, n, n + 1);
	const struct ringtap_ring_stats *r =
		k < s.to->ring_count ? ringtap_snapshot_ring(s.to, k) : NULL;

	return r && r->capacity && !r->gone ? rates_ring_peak(&s, k) / r->capacity : NAN;
}

/* The fullest of those that are left, one per call; without those that stayed empty. */
static uint32_t next_ring(
	const struct incident *i, unsigned first, unsigned last, const bool *taken)
{
	uint32_t found = RINGTAP_NO_INDEX;
	double most = 0;

	for (uint32_t k = 0; k < i->f->history[last]->ring_count && k < 1024; k++) {
		for (unsigned n = first; n < last && !taken[k]; n++) {
			double level = ring_level(i, n, k);

			if (!(level > most))
				continue;
			most = level;
			found = k;
		}
	}
	return found;
}

void view_rings(struct view *v, const struct incident *i, unsigned first, unsigned last)
{
	bool taken[1024] = {false};
	json_t *panel = NULL;
	uint32_t k;

	for (unsigned c = 0;
		c < CURVES && (k = next_ring(i, first, last, taken)) != RINGTAP_NO_INDEX; c++) {
		char name[RINGTAP_NAME_LEN];
		json_t *values;

		taken[k] = true;
		if (!panel)
			panel = seconds_panel(v, i, first, last, taken_ns, "rings",
				"Rings: fullest sample of each second", "share");
		printable(name, sizeof(name), ringtap_snapshot_ring(i->f->history[last], k)->name);
		values = view_series(panel, name, c);
		for (unsigned n = first; n < last; n++)
			view_append(values, ring_level(i, n, k));
	}
	if (!panel)
		return;
	view_panel_note(panel,
		"Samples are about 50 ms apart. Rings that stayed empty are left out, and of more "
		"than seven those that were less full.");
	if (i->trigger->kind == TRIGGER_RING && i->trigger->percent)
		view_limit(panel, i->trigger->text, i->trigger->threshold / 100);
}

/* ---- the extended statistic of the condition, or that of a device */

/* Whether the condition covers statistic k, and where that is: its port, or its part of a device.
 */
static bool covers(const struct trigger *t, const struct ringtap_snapshot *end, uint32_t k,
	char place[TRIGGER_PLACE])
{
	const struct ringtap_xstat_stats *x;
	char name[TRIGGER_OBJECT];

	if (t->kind == TRIGGER_DEVICE) {
		const struct ringtap_device_stat *d = ringtap_snapshot_device_stat(end, k);

		trigger_place(d, place);
		return trigger_names(t, trigger_device(d, name));
	}
	x = ringtap_snapshot_xstat(end, k);
	if (x->port == RINGTAP_NO_INDEX || !trigger_names(t, x->name))
		return false;
	printable(place, TRIGGER_PLACE, ringtap_snapshot_port(end, x->port)->name);
	return true;
}

static double statistic_rate(const struct incident *i, unsigned n, uint32_t k)
{
	const struct span s = history_span(i->f, n, n + 1);
	double seconds, grown = NAN;

	if (i->trigger->kind == TRIGGER_DEVICE) {
		if (k < s.to->device_stat_count && !ringtap_snapshot_device_stat(s.to, k)->gone)
			grown = rates_device(&s, k, &seconds);
	} else if (k < s.to->xstat_count && !ringtap_snapshot_xstat(s.to, k)->gone) {
		grown = rates_xstat(&s, k, &seconds);
	}
	return isnan(grown) ? NAN : grown / seconds;
}

void view_statistic(struct view *v, const struct incident *i, unsigned first, unsigned last)
{
	const struct ringtap_snapshot *end = i->f->history[last];
	const struct trigger *t = i->trigger;
	const bool device = t->kind == TRIGGER_DEVICE;
	const uint32_t count = device ? end->device_stat_count : end->xstat_count;
	char title[TRIGGER_OBJECT + 16], place[TRIGGER_PLACE];
	json_t *panel = NULL;
	unsigned c = 0;

	snprintf(title, sizeof(title), "%s%s", t->object, device ? "" : ", by port");
	for (uint32_t k = 0; trigger_is_statistic(t) && k < count && c < CURVES; k++) {
		json_t *values;

		if (!covers(t, end, k, place))
			continue;
		if (!panel)
			panel = seconds_panel(v, i, first, last, drivers_read_ns,
				device ? "device" : "xstat", title, "/s");
		values = view_series(panel, place, c++);
		for (unsigned n = first; n < last; n++)
			view_append(values, statistic_rate(i, n, k));
	}
	if (!panel)
		return;
	view_panel_note(panel, "The growth between two readings of the drivers.");
	if (t->rate)
		view_limit(panel, t->text, t->threshold);
}
