/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

#include "compress.h"
#include "convert.h"
#include "base/test_util.h"

#define BLOCKS    5000u
#define BLOCK_LEN 96u /* of a packet of 61 bytes */

static struct ringtap_packets *it;

static int set_up(void **state)
{
	return ringtap_packets_create(&it);
}

static int tear_down(void **state)
{
	ringtap_packets_free(it);
	return 0;
}

static struct ringtap_run run_of(const uint8_t *epbs, uint64_t packets)
{
	return (struct ringtap_run){.size = sizeof(struct ringtap_run),
		.packets = packets,
		.bytes = packets * BLOCK_LEN,
		.records = epbs,
		.interface_count = 1};
}

static void libpcap_reads_converted_packets(void **state)
{
	uint8_t *epbs = malloc(BLOCKS * BLOCK_LEN), *out = malloc(BLOCKS * BLOCK_LEN + 24);
	struct ringtap_run run;
	struct test_pcap t;
	int64_t len;

	test_epbs(epbs, BLOCKS, 61, 7);
	pcap_file_header(out, 1234);
	run = run_of(epbs, BLOCKS);
	len = pcap_convert(out + PCAP_FILE_HEADER, it, &run);
	assert_int_equal(len, BLOCKS * (16 + 61));
	test_folder_enter();
	test_write("p", out, (size_t)len + PCAP_FILE_HEADER);
	t = test_pcap_read("p");
	test_folder_leave();
	assert_int_equal(t.packets, BLOCKS);
	assert_int_equal(t.first, 7);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(t.linktype, 1);
	assert_int_equal(t.snaplen, 1234);
	assert_int_equal(t.first_ns, (UINT64_C(400000000) << 32) + 7);
	free(epbs);
	free(out);
}

static void broken_blocks_are_refused(void **state)
{
	uint8_t epbs[3 * BLOCK_LEN], out[3 * BLOCK_LEN];
	const uint32_t captured = 62 + 3;
	struct ringtap_run run;

	test_epbs(epbs, 3, 61, 0);
	memcpy(epbs + 2 * BLOCK_LEN + 20, &captured, 4);
	run = run_of(epbs, 3);
	assert_int_equal(pcap_convert(out, it, &run), -EBADMSG);
	run = run_of(epbs, 2);
	run.bytes -= 4;
	assert_int_equal(pcap_convert(out, it, &run), -EBADMSG);
	run = run_of(epbs, 2);
	assert_int_equal(pcap_convert(out, it, &run), 2 * 77);
}

static void fit_counts_what_conversion_makes(void **state)
{
	uint8_t epbs[10 * BLOCK_LEN];
	struct ringtap_run run = run_of(epbs, 10);

	test_epbs(epbs, 10, 61, 0);
	for (uint64_t max = 0; max < 11 * 77; max++) {
		uint64_t n = max / 77 < 10 ? max / 77 : 10;

		assert_int_equal(pcap_fit(it, &run, max), n);
	}
}

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
static void fill(uint8_t *data, size_t len, bool random)
{
	uint32_t x = 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = random ? (uint8_t)(x >> 24) : (uint8_t)(i / 100);
	}
}

static void frames_come_back(void **state)
{
	static const size_t pieces[] = {1, 61, 4096, 70000, 1 << 20, (1 << 20) - 1, 3};
	const size_t size = 4 << 20;
	uint8_t *in = malloc(size), *out = malloc(size);

	for (int i = 0; i < 4; i++) {
		enum compress kind = i % 2 ? COMPRESS_LZ4 : COMPRESS_ZSTD;
		struct compressor *c;

		fill(in, size, i / 2);
		assert_int_equal(compressor_new(&c, kind), 0);
		for (int frame = 0; frame < 3; frame++) {
			size_t put = 0, len, made = size;
			void *data;

			assert_int_equal(compressor_pending(c), 0);
			for (size_t p = 0; p < 7; p++) {
				assert_int_equal(compressor_put(c, in + put, pieces[p]), 0);
				put += pieces[p];
				assert_int_equal(compressor_pending(c), put);
			}
			assert_int_equal(compressor_end(c, &data, &len), 0);
			assert_int_equal(decompress(kind, data, len, out, &made), len);
			assert_int_equal(made, put);
			assert_int_equal(memcmp(in, out, put), 0);
			if (i < 2)
				assert_true(len < put / 10);
		}
		compressor_free(c);
	}
	free(in);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libpcap_reads_converted_packets),
		cmocka_unit_test(broken_blocks_are_refused),
		cmocka_unit_test(fit_counts_what_conversion_makes),
		cmocka_unit_test(frames_come_back),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
