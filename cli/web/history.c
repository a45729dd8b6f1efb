/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "history.h"

#define PAUSE_NS (3 * NS_PER_S)

void history_begin(struct history *h, uint64_t keep_ns)
{
	*h = (struct history){.keep = keep_ns ? keep_ns / NS_PER_S : HISTORY_STEPS,
		.origin_ns = now_ns(CLOCK_REALTIME),
		.mono_ns = now_ns(CLOCK_MONOTONIC)};
}

static void push(struct history *h, uint64_t end_ns)
{
	h->end_ns[h->steps++ % (HISTORY_STEPS + 1)] = end_ns;
}

void history_step(struct history *h)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC) - h->mono_ns;
	uint64_t last = h->steps ? history_to(h, h->steps - 1) : 0;

	if (now - last > PAUSE_NS)
		push(h, now - NS_PER_S);
	push(h, now);
}

uint64_t history_first(const struct history *h)
{
	return h->steps > h->keep ? h->steps - h->keep : 0;
}

uint64_t history_from(const struct history *h, uint64_t step)
{
	return step ? h->end_ns[(step - 1) % (HISTORY_STEPS + 1)] : 0;
}

uint64_t history_to(const struct history *h, uint64_t step)
{
	return h->end_ns[step % (HISTORY_STEPS + 1)];
}

/* ---- series */

static struct series *find(const struct series_list *l, enum series_group group, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->list[i]->group == group && !strcmp(l->list[i]->name, name))
			return l->list[i];
	return NULL;
}

static struct series *add(struct series_list *l, enum series_group group, const char *name)
{
	struct series **more, *s;

	if (l->count == HISTORY_SERIES)
		return NULL;
	more = reallocarray(l->list, l->count + 1, sizeof(struct series *));
	if (more)
		l->list = more;
	s = more ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	s->group = group;
	snprintf(s->name, sizeof(s->name), "%s", name);
	l->list[l->count++] = s;
	return s;
}

struct series *series_set(struct series_list *l, const struct history *h, enum series_group group,
	const char *name, double value)
{
	struct series *s = find(l, group, name);

	if (!s)
		s = add(l, group, name);
	if (!s || !h->steps)
		return s;
	/* Values between the last one and this one are unknown. */
	for (uint64_t i = s->last > history_first(h) ? s->last : history_first(h); i < h->steps;
		i++)
		s->values[i % HISTORY_STEPS] = NAN;
	s->values[(h->steps - 1) % HISTORY_STEPS] = (float)value;
	s->last = h->steps;
	return s;
}

double series_at(const struct series *s, const struct history *h, uint64_t step)
{
	return step < history_first(h) || step >= s->last ? NAN : s->values[step % HISTORY_STEPS];
}

void series_prune(struct series_list *l, const struct history *h)
{
	size_t left = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (l->list[i]->last > history_first(h))
			l->list[left++] = l->list[i];
		else
			free(l->list[i]);
	}
	l->count = left;
}

void series_free(struct series_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->list[i]);
	free(l->list);
	*l = (struct series_list){0};
}
