/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/util.h"
#include "flight.h"
#include "intervals.h"

/* ---- keeping */

static void keep(void *ctx, const struct ringtap_interval *v)
{
	struct intervals *s = ctx;

	s->kept[s->count++ % INTERVALS_KEPT] = *v;
}

void intervals_read(struct flight *f)
{
	struct intervals *s = &f->intervals;
	uint64_t lost = 0;

	if (!intervals_on(f->last))
		return;
	if (!s->kept)
		s->kept = calloc(INTERVALS_KEPT, sizeof(*s->kept));
	if (!s->kept || ringtap_monitor_intervals(f->mon, keep, s, &lost))
		lost = 1;
	if (lost)
		s->losses[s->loss_count++ % INTERVALS_LOSSES] = (struct interval_loss){
			.from_ns = s->read_ns, .to_ns = f->last->taken_ns, .count = lost};
	s->read_ns = f->last->taken_ns;
}

void intervals_free(struct flight *f)
{
	free(f->intervals.kept);
	f->intervals = (struct intervals){0};
}

/* ---- those of a window */

static uint64_t oldest(uint64_t count, uint64_t room)
{
	return count > room ? count - room : 0;
}

void intervals_walk(const struct incident *i, uint64_t least_ns,
	void (*fn)(void *ctx, const struct ringtap_interval *v), void *ctx)
{
	const struct intervals *s = &i->f->intervals;

	for (uint64_t n = oldest(s->count, INTERVALS_KEPT); n < s->count; n++) {
		const struct ringtap_interval *v = &s->kept[n % INTERVALS_KEPT];

		if (v->ns >= least_ns && v->start_ns <= i->to_ns &&
			v->start_ns + v->ns >= i->from_ns)
			fn(ctx, v);
	}
}

void intervals_missing(const struct incident *i,
	void (*fn)(void *ctx, const struct interval_loss *loss), void *ctx)
{
	const struct intervals *s = &i->f->intervals;

	/* Notes the overwritten intervals, with the first one that is still there. */
	if (s->count > INTERVALS_KEPT) {
		uint64_t ns = s->kept[s->count % INTERVALS_KEPT].start_ns;

		if (ns > i->from_ns)
			fn(ctx, &(struct interval_loss){.from_ns = i->from_ns,
					.to_ns = ns < i->to_ns ? ns : i->to_ns,
					.count = s->count - INTERVALS_KEPT});
	}
	for (uint64_t n = oldest(s->loss_count, INTERVALS_LOSSES); n < s->loss_count; n++) {
		struct interval_loss loss = s->losses[n % INTERVALS_LOSSES];

		if (loss.from_ns > i->to_ns || loss.to_ns < i->from_ns)
			continue;
		loss.from_ns = loss.from_ns < i->from_ns ? i->from_ns : loss.from_ns;
		loss.to_ns = loss.to_ns > i->to_ns ? i->to_ns : loss.to_ns;
		fn(ctx, &loss);
	}
}

/* ---- the longest of them */

struct lengths {
	uint64_t *ns, count;
};

static void add_length(void *ctx, const struct ringtap_interval *v)
{
	struct lengths *l = ctx;

	if (l->ns)
		l->ns[l->count] = v->ns;
	l->count++;
}

static int longer_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

struct interval_choice intervals_choose(const struct incident *i)
{
	struct interval_choice c = {0};
	struct lengths l = {0};

	intervals_walk(i, 0, add_length, &l);
	c.all = c.shown = l.count;
	if (c.all <= INTERVALS_SHOWN)
		return c;
	c.least_ns = UINT64_MAX;
	c.shown = 0;
	l = (struct lengths){.ns = calloc(c.all, sizeof(*l.ns))};
	if (!l.ns)
		return c;
	intervals_walk(i, 0, add_length, &l);
	qsort(l.ns, l.count, sizeof(*l.ns), longer_first);
	/* Equal ones are all shown or all left out. */
	c.least_ns = l.ns[INTERVALS_SHOWN] + 1;
	while (l.ns[c.shown] >= c.least_ns)
		c.shown++;
	free(l.ns);
	return c;
}
