/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/numbers.h"
#include "base/util.h"
#include "conditions.h"
#include "flight.h"
#include "history.h"

#define DOCTOR_SPAN 5 /* seconds that it judges */

void condition_met(struct flight *f, const struct trigger *t, const struct event *e)
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
		condition_met(f, t, e);
	s->holds = met && !early;
}

const char *conditions_summary(const struct flight *f, char text[FLIGHT_SUMMARY])
{
	char made[FORMAT_LEN], more[FORMAT_LEN];
	uint64_t suppressed = 0;

	for (unsigned i = 0; i < f->cfg->trigger_count; i++)
		suppressed += f->states[i].suppressed;
	format_count(made, f->made);
	if (suppressed)
		snprintf(text, FLIGHT_SUMMARY, "%s, %s more within --cooldown", made,
			format_count(more, suppressed));
	else
		snprintf(text, FLIGHT_SUMMARY, "%s", made);
	return text;
}

static void check(struct flight *f, const struct trigger *t, bool met, const struct event *e)
{
	if (trigger_is_level(t))
		check_level(f, t, met, e);
	else if (met)
		condition_met(f, t, e);
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

/* Conditions that are compared over an interval, once a second. */
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

static void check_last(struct flight *f, const struct ringtap_snapshot *before)
{
	struct span s;

	if (!before || f->last->taken_mono_ns <= before->taken_mono_ns)
		return;
	s = history_between(f, before, f->last);
	for (unsigned i = 0; i < f->cfg->trigger_count; i++) {
		const struct trigger *t = &f->cfg->triggers[i];
		struct event e;

		if (t->kind < TRIGGER_DOCTOR && !t->over_ns)
			check(f, t, trigger_check(t, &s, &e), &e);
	}
}

/* The name of thing i of those that the condition has names of. False: there are fewer; *gone: it
 * is not there any more. */
static bool name_of(const struct flight *f, const struct trigger *t, uint32_t i,
	char out[TRIGGER_OBJECT], bool *gone)
{
	const struct ringtap_snapshot *s = f->last;
	const bool ring = t->kind == TRIGGER_RING;

	if (t->kind == TRIGGER_DEVICE) {
		if (i >= s->device_stat_count)
			return false;
		*gone = ringtap_snapshot_device_stat(s, i)->gone;
		trigger_device(ringtap_snapshot_device_stat(s, i), out);
		return true;
	}
	if (i >= (ring ? s->ring_count : s->xstat_count))
		return false;
	*gone = ring ? ringtap_snapshot_ring(s, i)->gone : ringtap_snapshot_xstat(s, i)->gone;
	strcpy(out, ring ? ringtap_snapshot_ring(s, i)->name : ringtap_snapshot_xstat(s, i)->name);
	return true;
}

/* Offers the names of what is there. True: the condition covers one of them. */
static bool offer_names(const struct flight *f, const struct trigger *t, struct nearest *n)
{
	bool gone, found = false;
	char name[TRIGGER_OBJECT];

	for (uint32_t i = 0; name_of(f, t, i, name, &gone); i++) {
		found |= !gone && trigger_names(t, name);
		nearest_offer(n, name, strlen(name));
	}
	return found;
}

/* A name that is mistyped would never be there. */
static void warn_of_name(const struct flight *f, const struct trigger *t)
{
	const char *what = t->kind == TRIGGER_RING    ? "ring"
			   : t->kind == TRIGGER_XSTAT ? "xstat"
						      : "device";
	const char *name = t->kind == TRIGGER_DEVICE ? " with this statistic" : " of this name";
	char advice[128];
	struct nearest n;

	nearest_begin(&n, t->object, strlen(t->object));
	if (offer_names(f, t, &n))
		return;
	snprintf(advice, sizeof(advice), "'ringtap top %s --view %ss' lists them", f->app.name,
		what);
	message_print("flight: --on '%s': '%s' has no %s%s, so this waits for one; %s", t->text,
		f->app.name, what, *t->object ? name : "", nearest_advice(&n, advice));
}

void conditions_warn(const struct flight *f)
{
	for (unsigned i = 0; i < f->cfg->trigger_count && f->last; i++) {
		const struct trigger *t = &f->cfg->triggers[i];

		if (t->kind == TRIGGER_RING || trigger_is_statistic(t))
			warn_of_name(f, t);
		else if (trigger_blind(t, f->last))
			message_print(
				"flight: --on '%s': '%s' has no mempool whose level is known, so "
				"this waits for one; 'ringtap memory' lists them",
				t->text, f->app.name);
	}
}

int conditions_step(struct flight *f)
{
	struct ringtap_snapshot *before;
	int error;

	if (!history_read(f, &before, &error))
		return error;
	intervals_read(f);
	if (intervals_on(f->last))
		off_cpu_step(&f->off_cpus, f->last, f->app.info.host_pid);
	check_last(f, before);
	counted_past_read(&f->counted, false);
	if (history_keep(f, before) && f->history_count > 1) {
		check_intervals(f);
		check_doctor(f);
	}
	return error;
}

void conditions_reach(struct flight *f, uint64_t ns)
{
	if (history_reaches(f, ns))
		return;
	conditions_step(f);
	history_keep_last(f);
}
