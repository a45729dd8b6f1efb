/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies over time: sums of snapshots, subtracted from each other. */
#include <errno.h>
#include <stdlib.h>

#include "latency.h"

#define MOMENTS_MAX 240

/* Returns the counts since the last interval, and begins the next one. */
static int cut(struct latency_clock *c, struct latency *out, struct latency *since_base)
{
	latency_since(out, &c->before);
	latency_free(&c->before);
	c->before = *since_base;
	while (c->next_ns <= c->before.to_ns)
		c->next_ns += c->interval_ns;
	return 1;
}

/* Two sums of one snapshot: one remains. */
static int sum_twice(struct latency l[2], enum latency_by by, const struct one_app *app,
	const struct ringtap_snapshot *f, const struct latency *base)
{
	for (int i = 0; i < 2; i++) {
		int ret = latency_sum(&l[i], by, app, f, f);

		if (ret) {
			for (; i >= 0; i--)
				latency_free(&l[i]);
			return ret;
		}
		if (base)
			latency_since(&l[i], base);
	}
	return 0;
}

int latency_clock_next(struct latency_clock *c, struct latency *out, enum latency_by by,
	const struct one_app *app, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now)
{
	struct latency sums[2];
	int ret;

	if (!c->next_ns) {
		ret = latency_sum(&c->base, by, app, first, first);
		if (ret)
			return ret;
		c->before.to_ns = first->taken_ns;
		c->next_ns = first->taken_ns + c->interval_ns;
	}
	if (now->taken_ns < c->next_ns)
		return 0;
	ret = sum_twice(sums, by, app, now, &c->base);
	if (ret)
		return ret;
	*out = sums[0];
	return cut(c, out, &sums[1]);
}

int latency_clock_end(
	struct latency_clock *c, struct latency *out, enum latency_by by, const struct measure *m)
{
	struct latency sums[2];
	int ret;

	if (c->next_ns && m->last->taken_ns <= c->before.to_ns)
		return 0;
	if (!c->next_ns)
		c->before.to_ns = m->last->taken_ns - m->last->interval_ns;
	ret = sum_twice(sums, by, &m->app, m->last, NULL);
	if (ret)
		return ret;
	c->next_ns = m->last->taken_ns;
	*out = sums[0];
	return cut(c, out, &sums[1]);
}

void latency_clock_free(struct latency_clock *c)
{
	latency_free(&c->base);
	latency_free(&c->before);
}

/* Each two become one. */
static void halve(struct latency_moments *t)
{
	for (uint32_t i = 0; i < t->count / 2; i++) {
		struct latency_moment a = t->list[2 * i], b = t->list[2 * i + 1];

		for (uint32_t k = 0; k < ringtap_latency_buckets(); k++)
			a.bucket[k] += b.bucket[k];
		free(b.bucket);
		a.to_ns = b.to_ns;
		t->list[i] = a;
	}
	t->count /= 2;
	t->clock.interval_ns *= 2;
}

int latency_moments_add(struct latency_moments *t, const struct latency *l)
{
	struct latency_moment *m;

	if (!t->list)
		t->list = calloc(MOMENTS_MAX, sizeof(*t->list));
	if (!t->list)
		return -ENOMEM;
	if (t->count == MOMENTS_MAX)
		halve(t);
	m = &t->list[t->count];
	*m = (struct latency_moment){.from_ns = l->from_ns,
		.to_ns = l->to_ns,
		.bucket = calloc(ringtap_latency_buckets(), sizeof(*m->bucket))};
	if (!m->bucket)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->pair_count; i++)
		for (uint32_t b = 0; b < ringtap_latency_buckets(); b++)
			m->bucket[b] += l->pairs[i].bucket[b];
	t->count++;
	return 0;
}

void latency_moments_free(struct latency_moments *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		free(t->list[i].bucket);
	free(t->list);
	latency_clock_free(&t->clock);
}
