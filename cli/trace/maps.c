/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "measure/rates.h"
#include "show/sheet.h"
#include "maps.h"

#define BYTE "\\uffffff" /* bpftrace 0.17 writes a byte above ASCII so, with two more digits */

/* A line of JSON. Names that are not UTF-8 get '?' for each byte above ASCII. */
static json_t *read_line(const char *line, size_t len, bool utf8)
{
	char *text = malloc(len ? len : 1);
	size_t n = 0;
	json_t *j;

	for (size_t i = 0; text && i < len; i++) {
		unsigned byte;

		if (len - i > 9 && !memcmp(line + i, BYTE, 8) &&
			sscanf(line + i + 8, "%2x", &byte) == 1) {
			text[n++] = utf8 ? (char)byte : '?';
			i += 9;
			continue;
		}
		text[n++] = line[i];
		if (line[i] == '\\' && i + 1 < len)
			text[n++] = line[++i];
	}
	j = text ? json_loadb(text, n, 0, NULL) : NULL;
	free(text);
	return j || !utf8 ? j : read_line(line, len, false);
}

json_t *maps_read(const char *lines)
{
	json_t *maps = json_object();

	while (*lines) {
		size_t len = strcspn(lines, "\n");
		json_t *line = len ? read_line(lines, len, true) : NULL;
		json_t *data = json_object_get(line, "data");
		const char *type = json_string_value(json_object_get(line, "type"));

		if (type && json_is_object(data) &&
			(!strcmp(type, "map") || !strcmp(type, "hist") || !strcmp(type, "stats")))
			json_object_update(maps, data);
		json_decref(line);
		lines += len + (lines[len] == '\n');
	}
	return maps;
}

size_t maps_size(const json_t *map)
{
	size_t size = 0, i;
	const char *key;
	json_t *value, *b;

	json_object_foreach((json_t *)map, key, value)
	{
		size += !json_is_array(value);
		json_array_foreach(value, i, b) size +=
			json_integer_value(json_object_get(b, "count")) > 0;
	}
	return size;
}

const char *maps_key(const char *key, uint64_t *n, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char *end;

		if (!isdigit((unsigned char)*key))
			return NULL;
		errno = 0;
		n[i] = strtoull(key, &end, 10);
		if (errno || (*end && *end != ','))
			return NULL;
		key = end + (*end == ',');
	}
	return key;
}

json_t *maps_get(json_t *maps, const char *map, const char *key)
{
	return json_object_get(json_object_get(maps, map), key);
}

/* A bucket has inclusive bounds; the last of a linear histogram has no upper one. */
json_t *maps_histogram(const json_t *buckets, double scale)
{
	json_t *out = json_array(), *b;
	size_t i;

	json_array_foreach(buckets, i, b)
	{
		json_t *min = json_object_get(b, "min"), *max = json_object_get(b, "max");
		json_int_t count = json_integer_value(json_object_get(b, "count"));

		if (!count)
			continue;
		json_array_append_new(
			out, json_pack("[f,o,I]", scale * (double)json_integer_value(min),
				     max ? json_real(scale * ((double)json_integer_value(max) + 1))
					 : json_null(),
				     count));
	}
	return out;
}

const char *maps_text(
	char buf[MAPS_TEXT_LEN], const json_t *row, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? printable(buf, MAPS_TEXT_LEN, text) : otherwise;
}

/* Whole numbers print as an inclusive range; a single one alone. */
static void add_bucket(
	struct sheet *t, const json_t *bucket, bool ns, json_int_t sum, json_int_t most)
{
	char low[FORMAT_LEN + 1], end[FORMAT_LEN];
	double from = json_number_value(json_array_get(bucket, 0));
	double to = json_number_value(json_array_get(bucket, 1));
	uint64_t n = (uint64_t)json_integer_value(json_array_get(bucket, 2));
	bool range = ns || to - from > 1;

	if (ns) {
		format_ns(low, from);
		format_ns(end, to);
	} else {
		format_count(low, (uint64_t)from);
		format_count(end, (uint64_t)to - range);
	}
	if (!range && !(to > 0))
		strcat(low, "+");
	sheet_add_bar(t, low, range ? end : NULL, n, (uint64_t)sum, (uint64_t)most, 1);
}

void maps_print_histogram(const json_t *histogram, bool ns)
{
	struct sheet t = sheet_histogram("");
	json_int_t most = 1, sum = 0;
	json_t *b;
	size_t i;

	t.heads[2] = "";
	json_array_foreach(histogram, i, b)
	{
		json_int_t n = json_integer_value(json_array_get(b, 2));

		most = n > most ? n : most;
		sum += n;
	}
	json_array_foreach(histogram, i, b) add_bucket(&t, b, ns, sum, most);
	sheet_end(&t, 0, stdout);
}

static const char *sort_key;

static int compare(const void *a, const void *b)
{
	double x = json_number_value(json_object_get(*(json_t *const *)a, sort_key));
	double y = json_number_value(json_object_get(*(json_t *const *)b, sort_key));

	return (x < y) - (x > y);
}

void maps_sort(json_t *array, const char *key)
{
	size_t n = json_array_size(array);
	json_t **list = calloc(n ? n : 1, sizeof(*list));

	if (!list)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = json_incref(json_array_get(array, i));
	sort_key = key;
	qsort(list, n, sizeof(json_t *), compare);
	json_array_clear(array);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, list[i]);
	free(list);
}
