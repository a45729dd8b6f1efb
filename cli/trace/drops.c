/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "show/sheet.h"
#include "maps.h"
#include "reports.h"
#include "trace.h"

#define NO_QUEUE   65535
#define KEYS_MAX   4
#define PORT_WIDTH 18

/* Numbers are those of docs/tracing.md. */
static const struct {
	unsigned reason;
	const char *name, *meaning;
} reasons[] = {
	{0, "ring_full", "lost to a recording: its ring is full"},
	{1, "no_ring", "lost to a recording: no ring for this thread"},
	{2, "wait", "lost to a recording: ring still full after --on-full wait"},
	{3, "bad_mbuf", "lost to a recording: broken packet"},
	{4, "unreadable", "lost to a recording: in memory that the CPU cannot read"},
	{16, "missed", "the NIC had no free descriptor: not polled often enough"},
	{17, "rx_errors", "received with errors"},
	{18, "no_mbuf", "the mempool was empty"},
	{32, "tx_full", "freed, as the port was full"},
	{33, "tx_error", "freed, as the kernel refused them for good"},
	{34, "tx_unsent", "freed, as they were unsent at the end"},
};
#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

struct source {
	const char *map, *list;
	const char *third; /* name of the third key; NULL: none */
};

static const struct source sources[] = {
	{"@drop", "drops", "reason"},
	{"@refused", "refused", NULL},
	{"@ring_full", "ring_full", "session"},
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

static const char *reason_name(uint64_t reason, bool meaning)
{
	for (size_t i = 0; i < REASONS; i++)
		if (reasons[i].reason == reason)
			return meaning ? reasons[i].meaning : reasons[i].name;
	return NULL;
}

static json_t *row_of(
	const struct trace *t, const struct source *s, const char *key, const json_t *stats)
{
	unsigned count = s->third ? 4 : 3;
	uint64_t n[KEYS_MAX];
	const char *thread = maps_key(key, n, count);
	json_t *row;

	if (!thread || !trace_wants_port(t, n[0]))
		return NULL;
	row = json_object();
	json_object_set_new(row, "port", trace_port_json(t, n[0]));
	json_object_set_new(row, "queue", n[1] == NO_QUEUE ? json_null() : json_count(n[1]));
	if (s->third)
		json_object_set_new(row, s->third, json_count(n[2]));
	if (s->third && !strcmp(s->third, "reason"))
		json_object_set_new(row, "why", json_text(reason_name(n[2], false)));
	json_object_set_new(row, "thread", trace_thread_json(t, n[count - 1], thread));
	json_object_set(row, "times", json_object_get(stats, "count"));
	json_object_set(row, "packets", json_object_get(stats, "total"));
	return row;
}

void drops_document(const struct trace *t, json_t *maps, json_t *doc)
{
	for (size_t i = 0; i < SOURCES; i++) {
		json_t *rows = json_array(), *stats, *row;
		const char *key;

		json_object_foreach(json_object_get(maps, sources[i].map), key, stats)
		{
			row = row_of(t, &sources[i], key, stats);
			if (row)
				json_array_append_new(rows, row);
		}
		maps_sort(rows, "packets");
		json_object_set_new(doc, sources[i].list, rows);
	}
}

/* The name of a row's reason, and in *meaning what it means. */
static const char *reason_of(const json_t *row, char buf[24], const char **meaning)
{
	const json_t *reason = json_object_get(row, "reason");
	uint64_t n = (uint64_t)json_integer_value(reason);
	const char *name = reason ? reason_name(n, false) : "refused";

	*meaning = reason ? reason_name(n, true) : "refused by the driver: TX is full";
	snprintf(buf, 24, "reason %u", (unsigned)n);
	return name ? name : buf;
}

static void add_row(struct sheet *t, const json_t *row)
{
	char packets[FORMAT_LEN], times[FORMAT_LEN], queue[16] = "-", reason[24];
	char name[MAPS_TEXT_LEN], thread[THREAD_NAME_LEN];
	const json_t *q = json_object_get(row, "queue");
	const char *meaning;

	if (json_is_integer(q))
		snprintf(queue, sizeof(queue), "%lld", (long long)json_integer_value(q));
	sheet_add(t,
		format_count(
			packets, (uint64_t)json_integer_value(json_object_get(row, "packets"))),
		format_count(times, (uint64_t)json_integer_value(json_object_get(row, "times"))),
		maps_text(name, json_object_get(row, "port"), "name", "?"), queue,
		trace_thread_text(thread, json_object_get(row, "thread")),
		reason_of(row, reason, &meaning), NULL);
}

/* Once for each reason that is in the table. */
static void print_meanings(const json_t *rows)
{
	const char *name, *meaning, *other;
	char reason[24], before[24];
	const json_t *row;
	size_t i, k;

	json_array_foreach((json_t *)rows, i, row)
	{
		name = reason_of(row, reason, &meaning);
		for (k = 0; k < i; k++)
			if (!strcmp(name, reason_of(json_array_get(rows, k), before, &other)))
				break;
		if (k == i && meaning)
			printf("  %s: %s\n", name, meaning);
	}
}

void drops_print(const json_t *doc)
{
	/* ring_full is not listed: its packets are among the drops. */
	struct sheet t = {.heads = {"PACKETS", "TIMES", "PORT", "QUEUE", "THREAD", "WHY"},
		.columns = 6,
		.numbers = true,
		.left = 1 << 2 | 1 << 4 | 1 << 5,
		.cut = 1 << 2};
	json_t *rows = json_array(), *row;
	size_t i;

	json_array_extend(rows, json_object_get(doc, "drops"));
	json_array_extend(rows, json_object_get(doc, "refused"));
	if (json_array_size(rows)) {
		putchar('\n');
		json_array_foreach(rows, i, row) add_row(&t, row);
		sheet_end(&t, 0, stdout);
		putchar('\n');
		print_meanings(rows);
	} else {
		printf("\nNothing was lost.\n");
	}
	json_decref(rows);
}
