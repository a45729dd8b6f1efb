/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of any bytes, as an archive's decoder reads it: rows and flows agree, and all memory is
 * given back. Few flows fit into memory, so that the temporary file is used as well. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archive/decoder/archive.h"
#include "archive/decoder/row.h"

#define FLOWS_IN_MEMORY 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_valid(const struct ArrowArray *c, int64_t row)
{
	const uint8_t *bits = c->buffers[0];

	return !bits || bits[row / 8] >> row % 8 & 1;
}

/* Counts are those of the bitmaps, indexes are in their dictionaries. */
static void check_column(const struct ArrowArray *c, int64_t length)
{
	int64_t nulls = 0;

	if (c->length != length || c->n_buffers != 2 || c->null_count < 0)
		abort();
	for (int64_t i = 0; i < length; i++) {
		nulls += !is_valid(c, i);
		if (c->dictionary && is_valid(c, i) &&
			((const int8_t *)c->buffers[1])[i] >= c->dictionary->length)
			abort();
	}
	if (nulls != c->null_count)
		abort();
}

static void check_batch(const struct ArrowArray *b)
{
	for (int64_t i = 0; i < b->n_children; i++)
		check_column(b->children[i], b->length);
}

/* Rows with a flow; the other columns of the flow's packets are there as well. */
static uint64_t count_flow_rows(const struct ArrowArray *b, uint64_t size)
{
	const struct ArrowArray *id = b->children[COL_FLOW_ID];
	const int64_t *offset = b->children[COL_FILE_OFFSET]->buffers[1];
	uint64_t n = 0;

	for (int64_t i = 0; i < b->length; i++) {
		n += is_valid(id, i);
		if (is_valid(id, i) && (!is_valid(b->children[COL_SRC], i) ||
					       !is_valid(b->children[COL_PROTOCOL], i)))
			abort();
		if (offset[i] < 0 || (uint64_t)offset[i] >= 2 * size)
			abort();
	}
	return n;
}

static uint64_t read_packets(struct rt_archive *a, uint64_t size)
{
	struct ArrowArrayStream s;
	struct ArrowSchema schema;
	struct ArrowArray b;
	uint64_t n = 0;

	if (rt_archive_part_packets(a, &s) || s.get_schema(&s, &schema))
		abort();
	if (schema.n_children != COLUMNS)
		abort();
	schema.release(&schema);
	for (;;) {
		if (s.get_next(&s, &b))
			abort();
		if (!b.release)
			break;
		check_batch(&b);
		n += count_flow_rows(&b, size);
		b.release(&b);
	}
	s.release(&s);
	return n;
}

/* Flows are in order, and have each packet once. */
static uint64_t read_flows(struct rt_archive *a)
{
	struct ArrowArrayStream s;
	struct ArrowArray b;
	uint64_t n = 0;
	int64_t last = INT64_MIN;

	if (rt_archive_part_flows(a, &s))
		abort();
	for (;;) {
		if (s.get_next(&s, &b))
			abort();
		if (!b.release)
			break;
		check_batch(&b);
		for (int64_t i = 0; i < b.length; i++) {
			int64_t id = ((const int64_t *)b.children[0]->buffers[1])[i];

			if (id < last)
				abort();
			last = id;
			n += ((const uint64_t *)b.children[8]->buffers[1])[i] +
			     ((const uint64_t *)b.children[9]->buffers[1])[i];
		}
		b.release(&b);
	}
	s.release(&s);
	return n;
}

static void check_part(const struct rt_archive *a, uint64_t size, uint64_t *at)
{
	char *info = rt_archive_part_info(a);
	uint64_t begin, end;
	const uint64_t *cuts;
	size_t count;

	rt_archive_part_range(a, &begin, &end);
	cuts = rt_archive_part_cuts(a, &count);
	if (!info || begin != *at || end < begin || end > size)
		abort();
	for (size_t i = 0; i < count; i++)
		if (cuts[i] <= begin || cuts[i] >= end)
			abort();
	*at = end;
	rt_archive_free(info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_archive *a;
	uint64_t at = 0;
	int ret = rt_archive_memory(&a, data, size,
		(size & 1 ? RT_ARCHIVE_LEAN : 0) | (size & 2 ? RT_ARCHIVE_BY_FLOW : 0));

	if (ret && !rt_archive_torn(a))
		abort();
	if (!ret)
		a->flows->max = FLOWS_IN_MEMORY;
	while (!ret && (ret = rt_archive_part_next(a)) == 1) {
		uint64_t packets = read_packets(a, size);

		if (rt_archive_part_later(a, -1) < 0)
			abort();
		if (read_flows(a) != packets)
			abort();
		check_part(a, size, &at);
		ret = 0;
	}
	rt_archive_close(a);
	return 0;
}
