/* SPDX-License-Identifier: BSD-3-Clause */
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "frames.h"
#include "base/test_util.h"

#define FRAMES 12u
#define SIZE   (4u << 20) /* the largest frame, bytes */

/* Decompresses one frame; returns its length in data. */
static size_t decompress(
	enum compress kind, const uint8_t *data, size_t len, uint8_t *out, size_t *made)
{
	if (kind == COMPRESS_ZSTD) {
		size_t frame = ZSTD_findFrameCompressedSize(data, len);

		assert_false(ZSTD_isError(frame));
		*made = ZSTD_decompress(out, *made, data, frame);
		assert_false(ZSTD_isError(*made));
		return frame;
	}
	LZ4F_dctx *ctx;
	size_t from = 0, to = 0, more = 1;

	assert_false(LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION)));
	while (more) {
		size_t n = *made - to, m = len - from;

		more = LZ4F_decompress(ctx, out + to, &n, data + from, &m, NULL);
		assert_false(LZ4F_isError(more));
		assert_true(!more || n || m);
		to += n;
		from += m;
	}
	LZ4F_freeDecompressionContext(ctx);
	*made = to;
	return from;
}

/* Random bytes do not get shorter, which is the harder case for the buffer. */
static void fill(uint8_t *data, size_t len, bool random, uint32_t seed)
{
	uint32_t x = seed;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = random ? (uint8_t)(x >> 24) : (uint8_t)(i / 100 + seed);
	}
}

/* The next frame that is taken holds what fill() makes of its number. */
struct taker {
	struct frames *frames;
	enum compress kind;
	bool random;
	size_t len; /* length of each frame */
	uint32_t taken;
	uint8_t *expected, *out;
};

static bool take(struct taker *t, bool wait)
{
	struct iovec data;
	uint64_t packets;
	size_t made = SIZE;
	int ret = frames_take(t->frames, wait, &data, &packets);

	assert_in_range(ret, 0, 1);
	if (!ret)
		return false;
	assert_int_equal(packets, 100 * (t->taken + 1));
	fill(t->expected, t->len, t->random, t->taken++);
	assert_int_equal(
		decompress(t->kind, data.iov_base, data.iov_len, t->out, &made), data.iov_len);
	assert_int_equal(made, t->len);
	assert_memory_equal(t->out, t->expected, t->len);
	if (!t->random)
		assert_true(data.iov_len < t->len / 10);
	return true;
}

static void put(struct taker *t, uint32_t number)
{
	static const size_t pieces[] = {1, 61, 4096, 70000, 1 << 20, (1 << 20) - 1, 3};
	uint8_t *in = malloc(SIZE);

	t->len = 0;
	for (size_t p = 0; p < 7; p++)
		t->len += pieces[p];
	fill(in, t->len, t->random, number);
	assert_int_equal(frames_pending(t->frames), 0);
	for (size_t p = 0, at = 0; p < 7; p++) {
		assert_int_equal(frames_put(t->frames, in + at, pieces[p]), 0);
		at += pieces[p];
		assert_int_equal(frames_pending(t->frames), at);
	}
	free(in); /* it was copied */
	frames_end(t->frames, 100 * (number + 1));
}

static void check(enum compress kind, bool random, unsigned threads)
{
	struct taker t = {
		.kind = kind, .random = random, .expected = malloc(SIZE), .out = malloc(SIZE)};

	assert_int_equal(frames_new(&t.frames, kind, threads), 0);
	for (uint32_t i = 0; i < FRAMES; i++) {
		put(&t, i);
		if (threads > 1 && i < 2)
			assert_false(frames_full(t.frames));
		while (take(&t, frames_full(t.frames)))
			;
		assert_false(frames_full(t.frames));
	}
	while (take(&t, true))
		;
	assert_int_equal(t.taken, FRAMES);
	frames_free(t.frames);
	free(t.expected);
	free(t.out);
}

static void frames_come_back_in_order(void **state)
{
	for (int i = 0; i < 4; i++) {
		check(i % 2 ? COMPRESS_LZ4 : COMPRESS_ZSTD, i / 2, 1);
		check(i % 2 ? COMPRESS_LZ4 : COMPRESS_ZSTD, i / 2, 2);
		check(i % 2 ? COMPRESS_LZ4 : COMPRESS_ZSTD, i / 2, 5);
	}
}

/* Frames that are under way are finished, the others are not begun. */
static void frames_are_freed_at_any_time(void **state)
{
	for (unsigned ended = 0; ended <= 4; ended++) {
		struct taker t = {.kind = COMPRESS_ZSTD};

		assert_int_equal(frames_new(&t.frames, t.kind, 4), 0);
		for (uint32_t i = 0; i < ended; i++)
			put(&t, i);
		assert_int_equal(frames_put(t.frames, "half a frame", 12), 0);
		frames_free(t.frames);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_back_in_order),
		cmocka_unit_test(frames_are_freed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
