/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of the last minutes, and the triggers that are checked with them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "flight.h"
#include "history.h"

#define DOCTOR_SPAN 5  /* seconds that it judges */
#define GROWTH_SPAN 60 /* and of the use of pools, which grows slowly */

static struct ringtap_snapshot *newest(const struct flight *f)
{
	return f->history_count ? f->history[f->history_count - 1] : NULL;
}

static void push(struct flight *f, struct ringtap_snapshot *now)
{
	if (f->history_count == FLIGHT_HISTORY) {
		ringtap_snapshot_free(f->history[0]);
		f->history_count--;
		memmove(f->history, f->history + 1, f->history_count * sizeof(f->history[0]));
	}
	f->history[f->history_count++] = now;
}

static struct span span_between(
	const struct flight *f, const struct ringtap_snapshot *a, const struct ringtap_snapshot *b)
{
	return (struct span){.from = a,
		.to = b,
		.seconds = (double)(b->taken_mono_ns - a->taken_mono_ns) / NS_PER_S,
		.tsc_hz = f->tsc_hz};
}

struct span history_span(const struct flight *f, unsigned first, unsigned last)
{
	return span_between(f, f->history[first], f->history[last]);
}

struct diagnosis *history_judge(
	struct flight *f, unsigned first, unsigned last, struct examination *e)
{
	struct diagnosis *d = calloc(1, sizeof(*d));
	struct watched *app = &f->app;
	struct readings readings = {0};

	for (unsigned i = last > GROWTH_SPAN ? last - GROWTH_SPAN : 0; i <= first; i++)
		readings_add_use(&readings, f->history[i]);
	app->mark = f->history[first];
	app->tsc_hz = f->tsc_hz;
	for (unsigned i = first + 1; i <= last; i++) {
		app->now = f->history[i];
		readings_add(&readings, app);
	}
	if (!d || !examination_make(e, app, &readings)) {
		readings_free(&readings);
		free(d);
		return NULL;
	}
	if (last == f->history_count - 1)
		examination_read_kernel(e);
	diagnose(e, d);
	free(e->kernel);
	readings_free(&readings);
	e->kernel = NULL;
	e->kernel_count = 0;
	e->pools = NULL;
	e->pool_count = 0;
	return d;
}

void flight_fire(struct flight *f, const struct trigger *t, const struct event *e)
{
	struct trigger_state *s = flight_state(f, t);
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (f->stopping)
		return;
	if (now < s->quiet_ns) {
		s->suppressed++;
		return;
	}
	s->quiet_ns = now + t->cooldown_ns;
	incident_begin(f, t, e);
}

/* One that is met within the cooldown has its incident after it, if it is still met then. */
static void check_level(struct flight *f, const struct trigger *t, bool met, const struct event *e)
{
	struct trigger_state *s = flight_state(f, t);
	bool early = met && !s->holds && now_ns(CLOCK_MONOTONIC) < s->quiet_ns;

	s->suppressed += !met && s->waits;
	s->waits = early;
	if (met && !s->holds && !early)
		flight_fire(f, t, e);
	s->holds = met && !early;
}

static void check(struct flight *f, const struct trigger *t, bool met, const struct event *e)
{
	if (trigger_is_level(t))
		check_level(f, t, met, e);
	else if (met)
		flight_fire(f, t, e);
}

static void check_doctor(struct flight *f)
{
	unsigned last = f->history_count - 1, first = last > DOCTOR_SPAN ? last - DOCTOR_SPAN : 0;
	struct diagnosis *d = NULL;
	struct examination x;

	for (unsigned i = 0; i < f->cfg->trigger_count; i++) {
		const struct trigger *t = &f->cfg->triggers[i];
		struct event e = {.from_ns = f->history[last - 1]->taken_ns,
			.to_ns = f->history[last]->taken_ns};

		if (t->kind != TRIGGER_DOCTOR)
			continue;
		if (!d)
			d = history_judge(f, first, last, &x);
		if (d)
			check(f, t, trigger_check_doctor(t, d, &e), &e);
	}
	free(d);
}

bool history_last(const struct flight *f, uint64_t ns, struct span *s)
{
	for (unsigned i = f->history_count; i-- > 0;) {
		/* Snapshots are some milliseconds off the second. */
		if (newest(f)->taken_mono_ns - f->history[i]->taken_mono_ns < ns - ns / 50)
			continue;
		*s = history_span(f, i, f->history_count - 1);
		return true;
	}
	return false;
}

/* Those that are compared over an interval, once a second. */
static void check_intervals(struct flight *f)
{
	for (unsigned i = 0; i < f->cfg->trigger_count; i++) {
		const struct trigger *t = &f->cfg->triggers[i];
		struct event e;
		struct span s;

		if (t->over_ns && history_last(f, t->over_ns, &s) && trigger_known(t, &s))
			check(f, t, trigger_check(t, &s, &e), &e);
	}
}

int history_step(struct flight *f)
{
	struct ringtap_snapshot *now, *before = f->last;
	bool kept = before == newest(f), second;
	int ret = ringtap_monitor_read(f->mon, &now) == -EPIPE ? -EPIPE : 0;

	if (!now)
		return ret;
	if (!f->tsc_hz)
		f->tsc_hz = (double)now->tsc_hz;
	if (before && now->taken_mono_ns > before->taken_mono_ns) {
		const struct span s = span_between(f, before, now);

		for (unsigned i = 0; i < f->cfg->trigger_count; i++) {
			const struct trigger *t = &f->cfg->triggers[i];
			struct event e;

			if (t->kind < TRIGGER_DOCTOR && !t->over_ns)
				check(f, t, trigger_check(t, &s, &e), &e);
		}
	}
	second = !newest(f) || now->taken_mono_ns - f->second_ns >= NS_PER_S;
	if (before && !kept)
		ringtap_snapshot_free(before);
	f->last = now;
	if (!second)
		return ret;
	push(f, now);
	f->second_ns = now->taken_mono_ns;
	if (f->history_count > 1) {
		check_intervals(f);
		check_doctor(f);
	}
	return ret;
}

void history_reach(struct flight *f, uint64_t ns)
{
	if (newest(f) && newest(f)->taken_ns >= ns)
		return;
	history_step(f);
	if (!f->last || f->last == newest(f) ||
		(newest(f) && f->last->taken_mono_ns <= newest(f)->taken_mono_ns))
		return;
	/* Beside those of each second: intervals, which begin and end with these, leave out
	 * nothing. */
	push(f, f->last);
}

void history_free(struct flight *f)
{
	if (f->last && f->last != newest(f))
		ringtap_snapshot_free(f->last);
	for (unsigned i = 0; i < f->history_count; i++)
		ringtap_snapshot_free(f->history[i]);
	f->history_count = 0;
	f->last = NULL;
}

bool history_around(
	const struct flight *f, uint64_t from_ns, uint64_t to_ns, unsigned *first, unsigned *last)
{
	unsigned n = f->history_count;

	if (n < 2)
		return false;
	*last = n - 1;
	while (*last > 1 && f->history[*last - 1]->taken_ns >= to_ns)
		--*last;
	*first = *last - 1;
	while (*first > 0 && f->history[*first]->taken_ns > from_ns)
		--*first;
	return true;
}
