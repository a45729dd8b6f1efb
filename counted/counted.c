/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/now.h"
#include "common/status.h"
#include "counted.h"

#define WITHIN_MS  2000
#define LIVE_MS    100 /* while packets wait in the rings */
#define SUBSET_MAX 16  /* counters of which all sums are tried */

static const struct counted_source *const sources[] = {&counted_open_vswitch, &counted_vpp};

bool counted_is_name(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return len && len < COUNTED_NAME_LEN;
}

struct counted_value *counted_get(const struct counted *c, const char *name, size_t len)
{
	for (size_t i = 0; i < c->count; i++)
		if (strlen(c->list[i].name) == len && !memcmp(c->list[i].name, name, len))
			return &c->list[i];
	return NULL;
}

struct counted_value *counted_put(
	struct counted *c, const char *name, size_t len, const char *meaning, uint64_t value)
{
	struct counted_value *v = counted_get(c, name, len);

	if (!v && (!counted_is_name(name, len) || c->count == COUNTED_MAX))
		return NULL;
	if (!v) {
		v = &c->list[c->count++];
		*v = (struct counted_value){.meaning = meaning};
		memcpy(v->name, name, len);
	}
	v->end = value;
	if (!c->begun)
		v->begin = value;
	return v;
}

int counted_uid(const struct counted *c, uid_t *uid)
{
	char uids[64], *end;

	rt_process_status(c->pid, "Uid", uids, sizeof(uids));
	strtoul(uids, &end, 10);
	*uid = (uid_t)strtoul(end, NULL, 10); /* real, effective */
	return *uids ? 0 : -ESRCH;
}

int counted_failed(struct counted *c, const char *path, int error, int within_ms)
{
	if (error == -ETIMEDOUT)
		snprintf(c->why, sizeof(c->why), "%s: no answer within %d ms", path, within_ms);
	else
		snprintf(c->why, sizeof(c->why), "%s: %s", path,
			error == -EPERM             ? "belongs to another user"
			: error == -EPROTO          ? "its answer cannot be read"
			: error == -EPROTONOSUPPORT ? "its version is unknown"
						    : strerror(-error));
	return error;
}

int counted_read_within(struct counted *c, int within_ms)
{
	int ret = -ESRCH;

	c->why[0] = 0;
	if (!c->list)
		snprintf(c->why, sizeof(c->why), "there is no memory");
	else if (!c->pid)
		snprintf(c->why, sizeof(c->why), "its process is not visible from here");
	else
		ret = c->source->read(c, within_ms);
	c->begun = c->begun || !ret;
	return ret;
}

static bool make(struct counted *c)
{
	c->list = c->source ? calloc(COUNTED_MAX, sizeof(*c->list)) : NULL;
	return c->source;
}

bool counted_find(struct counted *c, const char *program, pid_t pid, pid_t own_pid)
{
	*c = (struct counted){.pid = pid, .own_pid = own_pid};
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strncmp(program, sources[i]->program, strlen(sources[i]->program)))
			c->source = sources[i];
	return make(c);
}

bool counted_find_named(struct counted *c, const char *source)
{
	*c = (struct counted){0};
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strcmp(source, sources[i]->name))
			c->source = sources[i];
	return make(c) && c->list;
}

void counted_begin(struct counted *c, const char *program, pid_t pid, pid_t own_pid)
{
	if (!counted_find(c, program, pid, own_pid))
		return;
	if (c->source->has_threads)
		c->threads = calloc(1, sizeof(*c->threads));
	(void)counted_read_within(c, WITHIN_MS);
}

void counted_read(struct counted *c)
{
	if (c->begun && !c->slow)
		c->slow = counted_read_within(c, LIVE_MS) != 0;
}

/* Without mixed ones and those apart. */
static uint64_t sum(const struct counted *c)
{
	uint64_t all = 0;

	for (size_t i = 0; i < c->count; i++)
		if (!c->list[i].mixed && !c->list[i].apart &&
			__builtin_add_overflow(all, counted_since(&c->list[i]), &all))
			return UINT64_MAX;
	return all;
}

void counted_end(struct counted *c, uint64_t packets)
{
	struct counted_threads *threads = c->threads;
	struct counted_value *first;
	size_t count;

	if (!c->begun || counted_read_within(c, WITHIN_MS) || !c->source->late_ns ||
		sum(c) >= packets)
		return;
	count = c->count;
	first = malloc(COUNTED_MAX * sizeof(*first));
	if (!first)
		return;
	memcpy(first, c->list, COUNTED_MAX * sizeof(*first));
	rt_sleep_ns(c->source->late_ns);
	c->threads = NULL; /* their counters were not late */
	if (counted_read_within(c, WITHIN_MS) || sum(c) > packets) {
		memcpy(c->list, first, COUNTED_MAX * sizeof(*first));
		c->count = count;
		c->why[0] = 0;
	}
	c->threads = threads;
	free(first);
}

void counted_free(struct counted *c)
{
	free(c->list);
	free(c->threads);
	*c = (struct counted){0};
}

uint64_t counted_since(const struct counted_value *v)
{
	return v->end > v->begin ? v->end - v->begin : 0;
}

uint64_t counted_thread_since(const struct counted_thread *t, enum counted_of_thread what)
{
	return t->end[what] > t->begin[what] ? t->end[what] - t->begin[what] : 0;
}

/* Bits of the only subset of counters with this sum; 0: none, or several. */
static uint32_t only_subset(const uint64_t *values, size_t count, uint64_t packets)
{
	uint32_t found = 0;

	for (uint32_t bits = 1; bits < 1u << count; bits++) {
		uint64_t total = 0;
		size_t i;

		for (i = 0; i < count && total <= packets; i++)
			if (bits >> i & 1 && __builtin_add_overflow(total, values[i], &total))
				total = UINT64_MAX;
		if (total != packets)
			continue;
		if (found)
			return 0;
		found = bits;
	}
	return found;
}

struct counted_match counted_match(const struct counted *c, uint64_t packets)
{
	struct counted_match m = {0};
	uint64_t values[COUNTED_MAX], all = sum(c);
	bool some = all && all <= packets && !c->source->has_others;
	size_t index[COUNTED_MAX], count = 0;
	uint32_t bits = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (c->list[i].apart || !counted_since(&c->list[i]))
			continue;
		values[count] = counted_since(&c->list[i]);
		index[count++] = i;
	}
	if (count && packets && count <= SUBSET_MAX && !(some && all == packets))
		bits = only_subset(values, count, packets);
	m.packets = bits ? packets : some ? all : 0;
	for (size_t i = 0; i < count; i++)
		m.used[index[i]] = bits ? bits >> i & 1 : some && !c->list[index[i]].mixed;
	return m;
}
