/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/json.h"
#include "maps.h"
#include "reports.h"
#include "trace.h"

#define SIZES_SHOWN 33 /* one by one */

static json_t *number(const json_t *j, const char *key)
{
	return json_object_get(j, key);
}

/* Calls and packets by burst size. The last bucket has no upper bound: its packets are summed
 * separately. */
static void count(json_t *row, const json_t *buckets, json_int_t big_packets)
{
	json_t *sizes = json_object(), *b;
	json_int_t calls = 0, packets = 0, beyond = 0;
	char key[24];
	size_t i;

	json_array_foreach(buckets, i, b)
	{
		json_int_t size = json_integer_value(number(b, "min"));
		json_int_t n = json_integer_value(number(b, "count"));

		calls += n;
		if (!number(b, "max"))
			beyond = n;
		if (!n || !number(b, "max"))
			continue;
		packets += n * size;
		snprintf(key, sizeof(key), "%lld", (long long)size);
		json_object_set_new(sizes, key, json_integer(n));
	}
	json_object_set_new(row, "calls", json_integer(calls));
	json_object_set_new(row, "packets", json_integer(packets + big_packets));
	json_object_set_new(row, "calls_beyond_histogram", json_integer(beyond));
	json_object_set_new(row, "packets_beyond_histogram", json_integer(big_packets));
	json_object_set_new(row, "bursts", sizes);
}

static json_t *row_of(const struct trace *t, const uint64_t key[2], const char *direction)
{
	json_t *row = json_object();

	json_object_set_new(row, "port", trace_port_json(t, key[0]));
	json_object_set_new(row, "queue", json_count(key[1]));
	json_object_set_new(row, "direction", json_text(direction));
	return row;
}

static void add_direction(const struct trace *t, json_t *maps, bool tx, json_t *rows)
{
	json_t *table = json_object_get(maps, tx ? "@tx" : "@rx"), *buckets, *empty;
	const char *key;
	uint64_t n[2];

	json_object_foreach(table, key, buckets)
	{
		json_t *row;

		if (!maps_key(key, n, 2) || !trace_wants_port(t, n[0]))
			continue;
		row = row_of(t, n, tx ? "tx" : "rx");
		count(row, buckets,
			json_integer_value(maps_get(maps, tx ? "@tx_big" : "@rx_big", key)));
		empty = maps_get(maps, "@empty", key);
		json_object_set_new(row, "empty_calls",
			t->cfg->empty && !tx ? json_integer(json_integer_value(empty))
					     : json_null());
		json_array_append_new(rows, row);
	}
}

/* Queues that had only empty polls. */
static void add_idle(const struct trace *t, json_t *maps, json_t *rows)
{
	json_t *n_json;
	const char *key;
	uint64_t n[2];

	json_object_foreach(json_object_get(maps, "@empty"), key, n_json)
	{
		json_t *row;

		if (maps_get(maps, "@rx", key) || !maps_key(key, n, 2) ||
			!trace_wants_port(t, n[0]))
			continue;
		row = row_of(t, n, "rx");
		count(row, NULL, 0);
		json_object_set(row, "empty_calls", n_json);
		json_array_append_new(rows, row);
	}
}

void burst_document(const struct trace *t, json_t *maps, json_t *doc)
{
	json_t *rows = json_array();

	add_direction(t, maps, false, rows);
	if (t->cfg->empty)
		add_idle(t, maps, rows);
	add_direction(t, maps, true, rows);
	json_object_set_new(doc, "queues", rows);
}

/* Groups of sizes: single ones, or powers of two if there are many. */
static unsigned size_end(unsigned size, bool many)
{
	unsigned end = size + 1;

	if (many && size)
		while (end & (end - 1))
			end++;
	return end;
}

/* The histogram of burst sizes in the common form: [low, end, count]. */
static json_t *histogram(const json_t *row)
{
	json_t *out = json_array(), *bursts = json_object_get(row, "bursts");
	json_int_t beyond = json_integer_value(number(row, "calls_beyond_histogram"));
	bool many = json_object_size(bursts) > SIZES_SHOWN;
	unsigned end;

	for (unsigned size = 0; size <= RINGTAP_BURSTS; size = end) {
		json_int_t sum = 0;
		char key[24];

		end = size_end(size, many);
		for (unsigned i = size; i < end; i++) {
			snprintf(key, sizeof(key), "%u", i);
			sum += json_integer_value(json_object_get(bursts, key));
		}
		if (sum)
			json_array_append_new(out, json_pack("[i,i,I]", (int)size, (int)end, sum));
	}
	if (beyond)
		json_array_append_new(out, json_pack("[i,n,I]", RINGTAP_BURSTS + 1, beyond));
	return out;
}

static void print_row(const json_t *row)
{
	char calls[FORMAT_LEN], packets[FORMAT_LEN], empty[FORMAT_LEN];
	char name[MAPS_TEXT_LEN], mean[48] = "";
	json_int_t n = json_integer_value(number(row, "calls"));
	json_int_t p = json_integer_value(number(row, "packets"));
	json_t *bars = histogram(row);

	if (n)
		snprintf(mean, sizeof(mean), ", %.1f packets a burst", (double)p / (double)n);
	putchar('\n');
	text_wrapf(stdout, 2, "%s queue %lld %s: %s bursts, %s packets%s",
		maps_text(name, json_object_get(row, "port"), "name", "(unknown port)"),
		(long long)json_integer_value(number(row, "queue")),
		json_string_value(number(row, "direction")), format_count(calls, (uint64_t)n),
		format_count(packets, (uint64_t)p), mean);
	if (json_is_integer(number(row, "empty_calls")))
		printf("  %s empty polls\n",
			format_count(
				empty, (uint64_t)json_integer_value(number(row, "empty_calls"))));
	maps_print_histogram(bars, false);
	json_decref(bars);
}

void burst_print(const json_t *doc)
{
	json_t *rows = json_object_get(doc, "queues"), *row;
	size_t i;

	json_array_foreach(rows, i, row) print_row(row);
	if (!json_array_size(rows))
		printf("\nNo bursts.\n");
}
