/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/json.h"
#include "maps.h"
#include "reports.h"
#include "trace.h"

static json_t *row_of(const struct trace *t, json_t *maps, const char *key, double ns_per_cycle)
{
	json_t *row = json_object(), *mean = maps_get(maps, "@mean", key);
	json_t *longest = maps_get(maps, "@longest", key);
	json_int_t packets = json_integer_value(maps_get(maps, "@packets", key));
	json_int_t cycles = json_integer_value(maps_get(maps, "@cycles", key));
	json_int_t max = json_integer_value(maps_get(maps, "@max", key));
	double average = packets > 0 ? (double)cycles / (double)packets : 0;
	uint64_t n[2];

	if (!maps_key(key, n, 2) || packets <= 0 || !trace_wants_port(t, n[0])) {
		json_decref(row);
		return NULL;
	}
	json_object_set_new(row, "port", trace_port_json(t, n[0]));
	json_object_set_new(row, "queue", json_count(n[1]));
	json_object_set_new(row, "packets", json_integer(packets));
	json_object_set_new(row, "cycles",
		json_pack("{s:f,s:I,s:I}", "mean", average, "max", max, "sum", cycles));
	json_object_set_new(row, "mean_ns", json_ns(average * ns_per_cycle));
	json_object_set_new(row, "max_ns", json_ns((double)max * ns_per_cycle));
	json_object_set_new(row, "burst_mean_cycles", maps_histogram(mean, 1));
	json_object_set_new(row, "burst_mean_ns", maps_histogram(mean, ns_per_cycle));
	json_object_set_new(row, "burst_longest_cycles", maps_histogram(longest, 1));
	json_object_set_new(row, "burst_longest_ns", maps_histogram(longest, ns_per_cycle));
	return row;
}

void latency_document(const struct trace *t, json_t *maps, json_t *doc)
{
	double hz = t->stats->tsc_hz ? (double)t->stats->tsc_hz : 1e9;
	json_t *rows = json_array(), *value;
	const char *key;

	json_object_foreach(json_object_get(maps, "@mean"), key, value)
	{
		json_t *row = row_of(t, maps, key, 1e9 / hz);

		if (row)
			json_array_append_new(rows, row);
	}
	json_object_set_new(doc, "tsc_hz", json_count((uint64_t)hz));
	json_object_set_new(doc, "queues", rows);
}

static void print_row(const json_t *row)
{
	char count[FORMAT_LEN], mean[FORMAT_LEN], max[FORMAT_LEN], name[MAPS_TEXT_LEN];

	putchar('\n');
	text_wrapf(stdout, 2, "sent by %s queue %lld: %s packets, mean %s, longest %s",
		maps_text(name, json_object_get(row, "port"), "name", "(unknown port)"),
		(long long)json_integer_value(json_object_get(row, "queue")),
		format_count(count, (uint64_t)json_integer_value(json_object_get(row, "packets"))),
		format_ns(mean, json_number_value(json_object_get(row, "mean_ns"))),
		format_ns(max, json_number_value(json_object_get(row, "max_ns"))));
	printf(" mean of bursts\n");
	maps_print_histogram(json_object_get(row, "burst_mean_ns"), true);
	printf(" longest of bursts\n");
	maps_print_histogram(json_object_get(row, "burst_longest_ns"), true);
}

void latency_bursts_print(const json_t *doc)
{
	json_t *rows = json_object_get(doc, "queues"), *row;
	size_t i;

	json_array_foreach(rows, i, row) print_row(row);
	if (!json_array_size(rows))
		printf("\nNo packet was received and sent again.\n");
}
