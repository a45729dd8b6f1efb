/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "common/now.h"
#include "past.h"

#define WITHIN_MS 100
#define SHOWN     64u /* counters of an interval, at most */

struct counted_reading {
	uint64_t ns; /* since the epoch */
	size_t count;
	uint64_t values[COUNTED_MAX];
};

void counted_past_begin(struct counted_past *p, const char *program, pid_t pid, pid_t own_pid)
{
	*p = (struct counted_past){0};
	if (counted_find(&p->c, program, pid, own_pid))
		counted_past_start(p);
}

void counted_past_start(struct counted_past *p)
{
	p->readings = calloc(COUNTED_PAST, sizeof(*p->readings));
	counted_past_read(p, true);
}

void counted_past_read(struct counted_past *p, bool at_once)
{
	const uint64_t now = rt_now_ns(CLOCK_MONOTONIC);
	struct counted_reading *r;

	if (!p->readings || p->c.slow || (!at_once && now < p->due_ns))
		return;
	p->due_ns = now + COUNTED_EVERY_NS;
	p->c.slow = counted_read_within(&p->c, WITHIN_MS) != 0;
	if (p->c.slow)
		return;
	r = &p->readings[p->count++ % COUNTED_PAST];
	r->ns = rt_now_ns(CLOCK_REALTIME);
	r->count = p->c.count;
	for (size_t i = 0; i < p->c.count; i++)
		r->values[i] = p->c.list[i].end;
}

void counted_past_free(struct counted_past *p)
{
	counted_free(&p->c);
	free(p->readings);
	p->readings = NULL;
}

static int by_packets(const void *a, const void *b)
{
	uint64_t x = counted_since(a), y = counted_since(b);

	return (x < y) - (x > y);
}

static void put_time(char out[COUNTED_TIME_LEN], uint64_t ns)
{
	json_t *j = json_time(ns);

	snprintf(out, COUNTED_TIME_LEN, "%s", json_string_value(j) ?: "");
	json_decref(j);
}

/* Counters appear with their first packet: until then they are 0. */
static void fill(struct counted *out, const struct counted *names,
	const struct counted_reading *from, const struct counted_reading *to)
{
	for (size_t i = 0; i < to->count; i++) {
		struct counted_value v = names->list[i];

		v.begin = i < from->count ? from->values[i] : 0;
		v.end = to->values[i];
		if (counted_since(&v))
			out->list[out->count++] = v;
	}
	qsort(out->list, out->count, sizeof(*out->list), by_packets);
	if (out->count > SHOWN)
		out->count = SHOWN;
}

bool counted_past_since(const struct counted_past *p, uint64_t from_ns, struct counted *out)
{
	const unsigned first = p->count > COUNTED_PAST ? p->count - COUNTED_PAST : 0;
	const struct counted_reading *from, *to;
	unsigned n = p->count;

	*out = (struct counted){.source = p->c.source};
	if (!p->c.source)
		return false;
	if (!p->count) {
		memcpy(out->why, p->c.why, sizeof(out->why));
		return true;
	}
	to = &p->readings[--n % COUNTED_PAST];
	while (n > first && p->readings[n % COUNTED_PAST].ns > from_ns)
		n--;
	from = &p->readings[n % COUNTED_PAST];
	out->list = calloc(COUNTED_MAX, sizeof(*out->list));
	if (!out->list)
		return true;
	out->begun = true;
	put_time(out->from, from->ns);
	put_time(out->to, to->ns);
	fill(out, &p->c, from, to);
	return true;
}

/* ---- documents */

static const char *string_of(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

static uint64_t count_of(const json_t *j, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(j, key));

	return n > 0 ? (uint64_t)n : 0;
}

static bool is_text(const char *s)
{
	while (s && *s >= ' ' && *s <= '~')
		s++;
	return s && !*s;
}

static void take(struct counted *c, const json_t *j)
{
	const char *name = string_of(j, "name"), *meaning = string_of(j, "meaning");
	struct counted_value *v;

	if (!name)
		return;
	c->begun = false;
	counted_put(c, name, strlen(name), is_text(meaning) ? meaning : NULL, count_of(j, "begin"));
	c->begun = true;
	for (v = c->list; v < c->list + c->count; v++)
		if (!strcmp(v->name, name))
			v->end = count_of(j, "end");
}

bool counted_from_json(struct counted *c, const json_t *j)
{
	const char *source = string_of(j, "source"), *error = string_of(j, "error");
	const json_t *counters = json_object_get(j, "counters"), *one;
	size_t i;

	*c = (struct counted){0};
	if (!source || !counted_find_named(c, source))
		return false;
	if (is_text(error))
		snprintf(c->why, sizeof(c->why), "%s", error);
	json_array_foreach((json_t *)(uintptr_t)counters, i, one) take(c, one);
	c->begun = !error;
	if (is_text(string_of(j, "from")) && is_text(string_of(j, "to"))) {
		snprintf(c->from, sizeof(c->from), "%s", string_of(j, "from"));
		snprintf(c->to, sizeof(c->to), "%s", string_of(j, "to"));
	}
	return true;
}
