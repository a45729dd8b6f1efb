/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of the last minutes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "flight.h"
#include "history.h"

#define GROWTH_SPAN 60 /* seconds of the use of pools, which grows slowly */

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

struct span history_between(
	const struct flight *f, const struct ringtap_snapshot *a, const struct ringtap_snapshot *b)
{
	return (struct span){.from = a,
		.to = b,
		.seconds = (double)(b->taken_mono_ns - a->taken_mono_ns) / NS_PER_S,
		.tsc_hz = f->tsc_hz};
}

struct span history_span(const struct flight *f, unsigned first, unsigned last)
{
	return history_between(f, f->history[first], f->history[last]);
}

/* The application has ended: in its last snapshot all ports and mempools are gone. */
static bool ended(const struct ringtap_snapshot *s)
{
	for (uint32_t k = 0; k < s->port_count; k++)
		if (!ringtap_snapshot_port(s, k)->gone)
			return false;
	return s->port_count > 0;
}

struct diagnosis *history_judge(
	struct flight *f, unsigned first, unsigned last, struct examination *e)
{
	struct diagnosis *d = calloc(1, sizeof(*d));
	struct watched *app = &f->app;
	struct readings readings = {0};

	/* Nothing can be found at what is gone: judge the time until then. */
	if (last > 1 && ended(f->history[last])) {
		last--;
		first = first < last ? first : last - 1;
	}
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
	e->rings = NULL;
	e->ring_count = 0;
	return d;
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

bool history_read(struct flight *f, struct ringtap_snapshot **before, int *error)
{
	struct ringtap_snapshot *now;

	*error = ringtap_monitor_read(f->mon, &now) == -EPIPE ? -EPIPE : 0;
	if (!now)
		return false;
	if (!f->tsc_hz)
		f->tsc_hz = (double)now->tsc_hz;
	/* The last one in which it ran. */
	if (*error)
		history_keep_last(f);
	*before = f->last;
	f->last = now;
	return true;
}

bool history_keep(struct flight *f, struct ringtap_snapshot *before)
{
	if (before && before != newest(f))
		ringtap_snapshot_free(before);
	if (newest(f) && f->last->taken_mono_ns - f->second_ns < NS_PER_S)
		return false;
	push(f, f->last);
	f->second_ns = f->last->taken_mono_ns;
	return true;
}

bool history_reaches(const struct flight *f, uint64_t ns)
{
	return newest(f) && newest(f)->taken_ns >= ns;
}

void history_keep_last(struct flight *f)
{
	if (f->last && f->last != newest(f) &&
		(!newest(f) || f->last->taken_mono_ns > newest(f)->taken_mono_ns))
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
	intervals_free(f);
	off_cpu_free(&f->off_cpus);
	counted_past_free(&f->counted);
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
