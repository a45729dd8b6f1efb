/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of files, of both byte orders, whole and damaged. */
#include <endian.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "blocks.h"
#include "common/pcapng.h"

struct file {
	bool swap;
	size_t len;
	uint8_t at[1024];
};

static uint32_t in_order(const struct file *f, uint32_t v)
{
	return f->swap ? __builtin_bswap32(v) : v;
}

static void put(struct file *f, uint32_t type, const uint32_t *body, uint32_t words)
{
	uint32_t len = 12 + 4 * words, head[2] = {in_order(f, type), in_order(f, len)};

	memcpy(f->at + f->len, head, 8);
	for (uint32_t i = 0; i < words; i++) {
		uint32_t v = in_order(f, body[i]);

		memcpy(f->at + f->len + 8 + 4 * i, &v, 4);
	}
	memcpy(f->at + f->len + len - 4, &head[1], 4);
	f->len += len;
}

/* A section and an interface; version and linktype are halves of a word. */
static struct file begin(bool swap)
{
	struct file f = {.swap = swap};
	bool high = swap == (BYTE_ORDER == LITTLE_ENDIAN);

	put(&f, RT_PCAPNG_SHB,
		(const uint32_t[]){RT_PCAPNG_MAGIC, high ? 0x10000 : 1, UINT32_MAX, UINT32_MAX}, 4);
	put(&f, RT_PCAPNG_IDB, (const uint32_t[]){high ? 0x10000 : 1, 96}, 2);
	return f;
}

static void put_packet(struct file *f, uint32_t interface, uint32_t ns, uint32_t captured)
{
	put(f, RT_PCAPNG_EPB,
		(const uint32_t[]){interface, 0, ns, captured, 60, 0x01020304, 0x05060708}, 7);
}

static void open_file(struct blocks *b, const struct file *f)
{
	memset(b, 0, sizeof(*b));
	window_memory(&b->w, f->at, f->len);
}

static void assert_kinds(struct blocks *b, const enum block_kind *kinds, unsigned count)
{
	struct block block;

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(blocks_next(b, &block), kinds[i]);
}

static void packets_are_those_of_three_kinds_of_blocks(void **state)
{
	static const enum block_kind begins[] = {BLOCK_SECTION, BLOCK_INTERFACE};

	for (int swap = 0; swap < 2; swap++) {
		struct file f = begin(swap);
		struct block block;
		struct blocks b;

		put_packet(&f, 0, 7, 5);
		put(&f, RT_PCAPNG_SIMPLE_PACKET, (const uint32_t[]){6, 1, 2}, 3);
		put(&f, RT_PCAPNG_OBSOLETE_PACKET, (const uint32_t[]){0, 0, 9, 4, 60, 1}, 6);
		put(&f, 0x80000123, NULL, 0);
		open_file(&b, &f);
		assert_kinds(&b, begins, 2);
		assert_int_equal(b.swapped, swap);
		assert_int_equal(blocks_next(&b, &block), BLOCK_PACKET);
		assert_int_equal(
			block.ns, 7000); /* microseconds, unless an option says otherwise */
		assert_int_equal(block.captured, 5);
		assert_int_equal(block.length, 60);
		assert_ptr_equal(block.data, block.bytes + 28);
		assert_int_equal(blocks_next(&b, &block), BLOCK_PACKET);
		assert_int_equal(block.ns, 7000); /* that of the packet before */
		assert_int_equal(block.captured, 6);
		assert_int_equal(blocks_next(&b, &block), BLOCK_PACKET);
		assert_int_equal(block.ns, 9000);
		assert_int_equal(block.captured, 4);
		assert_int_equal(blocks_next(&b, &block), BLOCK_OTHER);
		assert_int_equal(blocks_next(&b, &block), BLOCK_END);
		assert_string_equal(b.torn, "");
		blocks_close(&b);
	}
}

static void damaged_blocks_are_the_end(void **state)
{
	static const struct {
		uint32_t at, value; /* where in the packet's block */
		const char *reason;
	} cases[] = {{4, 37, "byte 48: a block of 37 bytes"}, {4, 8, "byte 48: a block of 8 bytes"},
		{4, 0xfffffffc, "a block of 4294967292 bytes"},
		{4, 44, "the file ends in the middle of a block"},
		{36, 44, "a block with two different lengths"},
		{8, 1, "a packet of interface 1, which is not there"},
		{20, 9, "a packet of 9 bytes, more than its block has"},
		{20, UINT32_MAX, "a packet of 4294967295 bytes, more than its block has"},
		{0, RT_PCAPNG_SHB, "no byte order in the section header"}};

	for (int swap = 0; swap < 2; swap++)
		for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct file f = begin(swap);
			uint32_t value = in_order(&f, cases[i].value);
			struct block block;
			struct blocks b;
			size_t at = f.len;

			put_packet(&f, 0, 7, 5);
			memcpy(f.at + at + cases[i].at, &value, 4);
			open_file(&b, &f);
			assert_int_equal(blocks_next(&b, &block), BLOCK_SECTION);
			assert_int_equal(blocks_next(&b, &block), BLOCK_INTERFACE);
			assert_int_equal(blocks_next(&b, &block), BLOCK_END);
			assert_non_null(strstr(b.torn, cases[i].reason));
			assert_int_equal(b.next, at);
			assert_int_equal(blocks_next(&b, &block), BLOCK_END);
			blocks_close(&b);
		}
}

static void a_fork_reads_on_by_itself(void **state)
{
	struct file f = begin(true);
	struct blocks b, other;
	struct block block;

	put_packet(&f, 0, 7, 5);
	open_file(&b, &f);
	assert_int_equal(blocks_next(&b, &block), BLOCK_SECTION);
	assert_int_equal(blocks_next(&b, &block), BLOCK_INTERFACE);
	assert_int_equal(blocks_fork(&other, &b), 0);
	assert_int_equal(blocks_next(&other, &block), BLOCK_PACKET);
	assert_int_equal(other.count, 1);
	assert_int_equal(other.ifs[0].snaplen, 96);
	assert_int_equal(blocks_next(&other, &block), BLOCK_END);
	assert_int_equal(blocks_next(&b, &block), BLOCK_PACKET);
	blocks_close(&other);
	blocks_close(&b);
}

static void fates_are_those_with_complete_entries(void **state)
{
	enum { EACH = sizeof(struct rt_fates_packet) };
	static const struct {
		uint32_t kind, each, count;
		enum block_kind expected;
	} cases[] = {{RT_FATES_BEGIN, 0, 0, BLOCK_FATES}, {RT_FATES_PACKETS, EACH, 1, BLOCK_FATES},
		{RT_FATES_PACKETS, EACH, 2, BLOCK_OTHER},
		{RT_FATES_PACKETS, EACH + 8, 1, BLOCK_OTHER}, {RT_FATES_PACKETS, 0, 0, BLOCK_OTHER},
		{RT_FATES_END, EACH, 1, BLOCK_OTHER}, {77, EACH, 1, BLOCK_OTHER},
		{RT_FATES_REASONS, EACH, 1, BLOCK_OTHER},
		{RT_FATES_REASONS, sizeof(struct rt_fates_reason), 1, BLOCK_OTHER},
		{RT_FATES_REASONS, sizeof(struct rt_fates_reason), 0, BLOCK_FATES}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct file f = begin(false);
		uint32_t body[4 + EACH / 4] = {0, cases[i].count, 1, 2};
		const uint16_t halves[] = {(uint16_t)cases[i].kind, (uint16_t)cases[i].each};
		struct block block;
		struct blocks b;

		memcpy(body, halves, 4);
		put(&f, RT_PCAPNG_FATES, body, sizeof(body) / 4);
		open_file(&b, &f);
		assert_int_equal(blocks_next(&b, &block), BLOCK_SECTION);
		assert_int_equal(blocks_next(&b, &block), BLOCK_INTERFACE);
		assert_int_equal(blocks_next(&b, &block), cases[i].expected);
		if (cases[i].expected == BLOCK_FATES) {
			assert_int_equal(b.fates.kind, cases[i].kind);
			assert_int_equal(b.fates.count, cases[i].count);
			assert_true(b.fates.ns == (UINT64_C(1) << 32 | 2));
			assert_ptr_equal(b.fates.entries, block.bytes + 24);
		}
		blocks_close(&b);
	}
}

/* More than the window, with blocks across its end, and one that is longer. */
static void files_are_read_whole(void **state)
{
	static const uint32_t words[] = {1000, 300000, 1000};
	char path[] = "/tmp/blocks_test_XXXXXX";
	int fd = mkstemp(path);
	uint32_t *block = calloc(300003, 4), count = 0;
	struct file f = begin(false);
	struct blocks b = {0};
	struct block found;

	assert_true(fd >= 0 && block);
	unlink(path);
	assert_int_equal(write(fd, f.at, f.len), (ssize_t)f.len);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t n = words[i % 100 ? 0 : 1] + 3;

		block[0] = 0x80000000 + i;
		block[1] = block[n - 1] = 4 * n;
		assert_int_equal(write(fd, block, 4 * n), 4 * n);
		block[n - 1] = 0;
	}
	assert_int_equal(write(fd, block, 100), 100);
	assert_int_equal(window_open(&b.w, fd), 0);
	assert_int_equal(blocks_next(&b, &found), BLOCK_SECTION);
	assert_int_equal(blocks_next(&b, &found), BLOCK_INTERFACE);
	for (; blocks_next(&b, &found) == BLOCK_OTHER; count++)
		assert_int_equal(rt_pcapng_get32(found.bytes, false), 0x80000000 + count);
	assert_int_equal(count, 300);
	assert_non_null(strstr(b.torn, "the file ends in the middle of a block"));
	blocks_close(&b);
	close(fd);
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_those_of_three_kinds_of_blocks),
		cmocka_unit_test(damaged_blocks_are_the_end),
		cmocka_unit_test(a_fork_reads_on_by_itself),
		cmocka_unit_test(fates_are_those_with_complete_entries),
		cmocka_unit_test(files_are_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
