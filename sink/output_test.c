/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of which a frame is lost: the compressor here copies, and fails with frame B. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compress.h"
#include "output.h"
#include "base/test_util.h"

#define BLOCKS    100u
#define BLOCK_LEN 96u /* the block of a packet of 61 bytes */
#define BAD_FIRST 5000u
#define TRIES     20u

struct compressor {
	uint8_t data[2 * BLOCKS * BLOCK_LEN];
	size_t len;
	bool ended;
};

int compressor_new(struct compressor **out, enum compress kind)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void compressor_free(struct compressor *c)
{
	free(c);
}

int compressor_put(struct compressor *c, const void *data, size_t len)
{
	if (c->ended)
		c->len = 0;
	c->ended = false;
	assert_true(c->len + len <= sizeof(c->data));
	memcpy(c->data + c->len, data, len);
	c->len += len;
	return 0;
}

uint64_t compressor_pending(const struct compressor *c)
{
	return c->ended ? 0 : c->len;
}

int compressor_end(struct compressor *c, void **data, size_t *len)
{
	uint32_t first = 0;

	if (c->len > BLOCK_LEN)
		memcpy(&first, c->data + 16, sizeof(first)); /* time of its first packet */
	c->ended = true;
	*data = c->data;
	*len = c->len;
	return first == BAD_FIRST ? -EIO : 0;
}

static int put_frame(struct output *o, uint32_t first)
{
	uint8_t *epbs = malloc(BLOCKS * BLOCK_LEN);
	struct ringtap_run run = {.size = sizeof(run),
		.packets = BLOCKS,
		.bytes = BLOCKS * BLOCK_LEN,
		.records = epbs,
		.interface_count = 1};
	int ret;

	test_epbs(epbs, BLOCKS, 61, first);
	ret = output_run(o, &run);
	free(epbs);
	return ret ? ret : output_flush(o);
}

/* The recorder's calls for a file, ret being the first error. */
static int end_file(struct output *o, uint64_t *bytes, uint64_t *packets)
{
	static const uint32_t statistics[3] = {5, 12, 12};
	int ret = output_block(o, statistics, sizeof(statistics));
	int closed = output_close(o, bytes, packets);

	return closed ? closed : ret;
}

static void check(unsigned threads)
{
	const struct output_options options = {
		.compress = COMPRESS_ZSTD, .threads = threads, .no_direct = true};
	struct output o;
	uint64_t bytes, packets;
	int ret = 0;

	test_folder_enter();
	assert_int_equal(output_init(&o, &options, 0), 0);
	assert_int_equal(output_open(&o, &options, "f", NULL), 0);
	assert_int_equal(output_start(&o), 0);
	assert_int_equal(put_frame(&o, 0), 0);
	for (unsigned i = 0; i < TRIES && !ret; i++)
		ret = put_frame(&o, BAD_FIRST + i);
	assert_int_equal(ret, -EIO);
	assert_int_equal(put_frame(&o, 1), -EIO);
	assert_int_equal(end_file(&o, &bytes, &packets), -EIO);
	assert_int_equal(bytes, BLOCKS * BLOCK_LEN);
	assert_int_equal(packets, BLOCKS);

	/* The next file has nothing of it. */
	assert_int_equal(output_open(&o, &options, "g", NULL), 0);
	assert_int_equal(output_start(&o), 0);
	assert_int_equal(put_frame(&o, 2), 0);
	assert_int_equal(end_file(&o, &bytes, &packets), 0);
	assert_int_equal(bytes, BLOCKS * BLOCK_LEN + 12);
	assert_int_equal(packets, BLOCKS);
	output_free(&o);
	test_folder_leave();
}

static void nothing_follows_a_lost_frame(void **state)
{
	check(1);
	check(2);
	check(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_follows_a_lost_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
