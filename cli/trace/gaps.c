/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "common/status.h"
#include "show/sheet.h"
#include "maps.h"
#include "reports.h"
#include "trace.h"

#define TAKERS_SHOWN 12

static json_int_t whole(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static json_t *histogram_count(const json_t *histogram)
{
	json_int_t sum = 0;
	json_t *b;
	size_t i;

	json_array_foreach(histogram, i, b) sum += json_integer_value(json_array_get(b, 2));
	return json_integer(sum);
}

/* The process of a thread. @process has those that left the CPU; one that still has it is in /proc.
 * 0: the kernel's idle task. -1: unknown, it has ended. */
static json_int_t process_of(json_t *maps, uint64_t tid)
{
	char key[24], pid[24];
	json_t *known;

	snprintf(key, sizeof(key), "%" PRIu64, tid);
	known = maps_get(maps, "@process", key);
	if (known || !tid)
		return json_integer_value(known);
	rt_process_status((pid_t)tid, "Tgid", pid, sizeof(pid));
	return *pid ? atoll(pid) : -1;
}

static json_t *taker_row(
	json_t *maps, const char *key, json_t *stats, const uint64_t tids[2], const char *name)
{
	json_t *row = json_object(), *off = maps_get(maps, "@off", key);
	json_int_t pid = *name ? process_of(maps, tids[1]) : -1;
	json_t *none = tids[1] == tids[0] ? json_string("(stopped or asleep)") : json_null();

	json_object_set_new(row, "by", *name ? json_text(name) : json_incref(none));
	json_decref(none);
	json_object_set_new(row, "pid", pid < 0 ? json_null() : json_integer(pid));
	json_object_set_new(row, "tid", *name ? json_count(tids[1]) : json_null());
	json_object_set(row, "count", json_object_get(stats, "count"));
	json_object_set(row, "total_ns", json_object_get(stats, "total"));
	json_object_set(row, "max_ns", maps_get(maps, "@worst", key));
	json_object_set_new(row, "off_cpu_ns", off ? json_incref(off) : json_null());
	return row;
}

/* The threads that had the CPU instead of this one, and for how long. The map's keys are two
 * threads and the second one's name: the same twice, without a name, for one that was stopped or
 * asleep. */
static json_t *takers(json_t *maps, const char *map, uint64_t tid)
{
	json_t *rows = json_array(), *stats;
	const char *key;

	json_object_foreach(json_object_get(maps, map), key, stats)
	{
		uint64_t n[2];
		const char *name = maps_key(key, n, 2);

		if (name && n[0] == tid)
			json_array_append_new(rows, taker_row(maps, key, stats, n, name));
	}
	maps_sort(rows, "total_ns");
	return rows;
}

void gaps_document(const struct trace *t, json_t *maps, json_t *doc)
{
	json_t *rows = json_array(), *buckets;
	const char *key;

	json_object_foreach(json_object_get(maps, "@gap"), key, buckets)
	{
		json_t *row, *histogram;
		uint64_t tid;
		const char *name = maps_key(key, &tid, 1);

		if (!name || !trace_wants_thread(t, tid))
			continue;
		row = json_object();
		histogram = maps_histogram(buckets, 1);
		json_object_set_new(row, "thread", trace_thread_json(t, tid, name));
		json_object_set_new(row, "gaps", histogram_count(histogram));
		json_object_set(row, "max_ns", maps_get(maps, "@max", key));
		json_object_set_new(row, "histogram_ns", histogram);
		json_object_set_new(row, "long", takers(maps, "@long", tid));
		json_array_append_new(rows, row);
	}
	json_object_set_new(doc, "long_ns", json_count(t->cfg->long_ns));
	json_object_set_new(doc, "threads", rows);
}

static json_t *thread_row(json_t *maps, uint64_t tid, const struct ringtap_thread_stats *f)
{
	json_t *row = json_object(), *histogram;
	char key[24];

	snprintf(key, sizeof(key), "%" PRIu64, tid);
	histogram = maps_histogram(maps_get(maps, "@away", key), 1);
	json_object_set_new(row, "thread", json_thread(f->lcore, f->name, (uint32_t)tid));
	json_object_set_new(row, "taken", takers(maps, "@taken", tid));
	json_object_set_new(row, "times", histogram_count(histogram));
	json_object_set_new(row, "histogram_ns", histogram);
	json_object_set_new(
		row, "slept_times", json_integer(whole(maps_get(maps, "@slept", key), "count")));
	json_object_set_new(
		row, "slept_ns", json_integer(whole(maps_get(maps, "@slept", key), "total")));
	return row;
}

/* Polling threads only: the others sleep as a rule. */
void off_cpu_document(const struct trace *t, json_t *maps, json_t *doc)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < t->stats->thread_count; i++) {
		const struct ringtap_thread_stats *f = ringtap_snapshot_thread(t->stats, i);
		uint64_t tid = f->tid ? trace_our_tid(t, f->tid) : 0;

		if (tid && trace_wants_thread(t, tid))
			json_array_append_new(rows, thread_row(maps, tid, f));
	}
	json_object_set_new(doc, "threads", rows);
}

static const char *number_text(char buf[FORMAT_LEN], const json_t *row, const char *key)
{
	json_t *n = json_object_get(row, key);

	if (!json_integer_value(n))
		return "-";
	snprintf(buf, FORMAT_LEN, "%lld", (long long)json_integer_value(n));
	return buf;
}

static void print_takers(const json_t *rows)
{
	struct sheet t = {.heads = {"CPU taken by", "pid", "thread", "times", "total", "longest"},
		.columns = 6};
	char total[FORMAT_LEN], max[FORMAT_LEN], count[FORMAT_LEN], pid[FORMAT_LEN],
		tid[FORMAT_LEN], by[MAPS_TEXT_LEN];
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (i == TAKERS_SHOWN) {
			t.more = json_array_size(rows) - i;
			break;
		}
		sheet_add(&t, maps_text(by, row, "by", "(no other)"), number_text(pid, row, "pid"),
			number_text(tid, row, "tid"),
			format_count(count, (uint64_t)whole(row, "count")),
			format_ns(total, (double)whole(row, "total_ns")),
			format_ns(max, (double)whole(row, "max_ns")), NULL);
	}
	sheet_end(&t, 0, stdout);
}

void gaps_print(const json_t *doc)
{
	json_t *rows = json_object_get(doc, "threads"), *row;
	char count[FORMAT_LEN], max[FORMAT_LEN], name[THREAD_NAME_LEN];
	size_t i;

	json_array_foreach(rows, i, row)
	{
		json_t *takers_of = json_object_get(row, "long");

		printf("\n%s: %s gaps between polls, longest %s\n",
			trace_thread_text(name, json_object_get(row, "thread")),
			format_count(count, (uint64_t)whole(row, "gaps")),
			format_ns(max, (double)whole(row, "max_ns")));
		maps_print_histogram(json_object_get(row, "histogram_ns"), true);
		if (json_array_size(takers_of))
			printf("  gaps of %s and more\n",
				format_ns(max, (double)whole(doc, "long_ns")));
		print_takers(takers_of);
	}
	if (!json_array_size(rows))
		printf("\nNo thread polled.\n");
}

void off_cpu_print(const json_t *doc)
{
	json_t *rows = json_object_get(doc, "threads"), *row;
	char count[FORMAT_LEN], slept[FORMAT_LEN], name[THREAD_NAME_LEN];
	size_t i;

	json_array_foreach(rows, i, row)
	{
		printf("\n%s: preempted %s times, asleep for %s\n",
			trace_thread_text(name, json_object_get(row, "thread")),
			format_count(count, (uint64_t)whole(row, "times")),
			format_ns(slept, (double)whole(row, "slept_ns")));
		maps_print_histogram(json_object_get(row, "histogram_ns"), true);
		print_takers(json_object_get(row, "taken"));
	}
	if (!json_array_size(rows))
		printf("\nNo thread polled.\n");
}
