/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "common/array.h"
#include "curves.h"
#include "measure/watch.h"

static size_t find(const struct curves *c, unsigned view, const struct row *r)
{
	for (size_t n = 0; n < c->count; n++) {
		size_t i = (c->next + n) % c->count;
		const struct curve *k = &c->list[i];

		if (k->app == r->app && k->pid == r->app->info.pid && k->view == view &&
			k->index == r->index)
			return i;
	}
	return c->count;
}

void curves_put(struct curves *c, unsigned view, const struct row *r, double value,
	uint64_t from_ns, uint64_t to_ns)
{
	uint64_t step = to_ns / CURVE_STEP_NS,
		 oldest = step < METRIC_BARS ? 0 : step - METRIC_BARS + 1,
		 first = from_ns / CURVE_STEP_NS;
	size_t i = find(c, view, r);
	struct curve *k = i < c->count ? &c->list[i] : rt_array_add(c->list, c->count);

	c->step = step;
	if (!k)
		return;
	if (!k->app)
		*k = (struct curve){r->app, r->app->info.pid, r->index, view, 0, {0}};
	c->next = i + 1;
	for (uint64_t s = k->step ? k->step + 1 : oldest; s <= step; s++)
		k->value[s % METRIC_BARS] = NAN;
	k->step = step;
	for (uint64_t s = first < oldest ? oldest : first; s <= step; s++)
		k->value[s % METRIC_BARS] = fmaxf(k->value[s % METRIC_BARS], (float)value);
}

void curves_get(const struct curves *c, unsigned view, const struct row *r, bool share,
	struct metric_value *to)
{
	size_t i = find(c, view, r);
	float most = share;

	if (i == c->count)
		return;
	for (unsigned b = 0; b < METRIC_BARS && !share; b++)
		most = fmaxf(most, c->list[i].value[b]);
	for (unsigned b = 0; b < METRIC_BARS; b++) {
		uint64_t step = c->step + 1 + b;
		float v = step - METRIC_BARS > c->list[i].step
				  ? NAN
				  : c->list[i].value[step % METRIC_BARS];

		/* 0 has the lowest bar; what is unknown has none. */
		to->bar[b] = isnan(v) ? 0 : v > 0 ? v / most : 1e-9f;
	}
}

void curves_prune(struct curves *c)
{
	size_t left = 0;

	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].step + METRIC_BARS > c->step)
			c->list[left++] = c->list[i];
	c->count = left;
	c->next = 0;
}
