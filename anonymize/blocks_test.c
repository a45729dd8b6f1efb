/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks with all that they may have, in both byte orders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "blocks.h"
#include "common/pcapng.h"
#include "common/record.h"

#define SECRET "SECRET-of-a-host"

struct file {
	bool swap;
	size_t len, begin; /* begin: of the block */
	uint8_t at[4096];
};

static void put16(struct file *f, uint16_t v)
{
	v = f->swap ? __builtin_bswap16(v) : v;
	memcpy(f->at + f->len, &v, 2);
	f->len += 2;
}

static void put32(struct file *f, uint32_t v)
{
	v = f->swap ? __builtin_bswap32(v) : v;
	memcpy(f->at + f->len, &v, 4);
	f->len += 4;
}

static void put64(struct file *f, uint64_t v)
{
	v = f->swap ? __builtin_bswap64(v) : v;
	memcpy(f->at + f->len, &v, 8);
	f->len += 8;
}

static void put_bytes(struct file *f, const void *p, size_t len)
{
	memcpy(f->at + f->len, p, len);
	f->len = (f->len + len + 3) & ~(size_t)3;
}

static void put_option(struct file *f, uint16_t code, const void *p, size_t len)
{
	put16(f, code);
	put16(f, (uint16_t)len);
	put_bytes(f, p, len);
}

static void put_text(struct file *f, uint16_t code)
{
	put_option(f, code, SECRET, strlen(SECRET));
}

static void begin(struct file *f, uint32_t type)
{
	f->begin = f->len;
	put32(f, type);
	put32(f, 0);
}

static void end(struct file *f)
{
	const size_t len = f->len;
	uint32_t total = (uint32_t)(len - f->begin + 4);

	put32(f, total);
	f->len = f->begin + 4;
	put32(f, total);
	f->len = len + 4;
}

static void put_numbers(struct file *f, uint16_t from, uint16_t to)
{
	for (uint16_t code = from; code <= to; code++) {
		put16(f, code);
		put16(f, 8);
		put64(f, 1000u + code);
	}
}

/* IPv4 and UDP without a checksum, to SECRET. */
static const uint8_t packet[28 + 16] = "\x45\0\0\x2c\0\0\0\0\x40\x11\0\0\x0a\1\2\3\x0a\1\2\4"
				       "\0\1\0\2\0\x18\0\0" SECRET;

static void put_packet(struct file *f, uint32_t type)
{
	static const struct rt_verdict verdict = {.version = 1, .l4 = 2};

	begin(f, type);
	if (type != RT_PCAPNG_SIMPLE_PACKET) {
		put32(f, 0);
		put32(f, 1);
		put32(f, 2);
		put32(f, sizeof(packet));
	}
	put32(f, sizeof(packet));
	put_bytes(f, packet, sizeof(packet));
	if (type != RT_PCAPNG_SIMPLE_PACKET) {
		put_text(f, 1);
		put16(f, RT_OPTION_FLAGS);
		put16(f, 4);
		put32(f, 2 | 4 << 5 | RT_FLAGS_VALID);
		put_option(f, RT_OPTION_HASH, "\2\x12\x34\x56\x78", 5);
		put_option(f, RT_OPTION_VERDICT, &verdict, sizeof(verdict));
		put_text(f, RT_OPTION_VERDICT);
		put_text(f, 2988);
		put_numbers(f, RT_OPTION_DROPCOUNT, RT_OPTION_PACKETID);
		put32(f, 0);
	}
	end(f);
}

static void put_reason(struct file *f)
{
	static const struct rt_fates_reason reason = {8, 3, SECRET};

	begin(f, RT_PCAPNG_FATES);
	put16(f, RT_FATES_REASONS);
	put16(f, sizeof(reason));
	put32(f, 1);
	put64(f, 5);
	put_bytes(f, &reason, sizeof(reason));
	end(f);
}

static void make(struct file *f, bool swap)
{
	/* Names, secrets of TLS, custom, the journal, unknown. */
	static const uint32_t others[] = {4, 10, 0xbad, 0x40000bad, 9, 0x80525449, 0x777};

	*f = (struct file){.swap = swap};
	begin(f, RT_PCAPNG_SHB);
	put32(f, RT_PCAPNG_MAGIC);
	put16(f, 1);
	put16(f, 0);
	put64(f, UINT64_MAX);
	for (uint16_t code = 1; code <= 4; code++)
		put_text(f, code);
	end(f);
	begin(f, RT_PCAPNG_IDB);
	put16(f, 101);
	put16(f, 0);
	put32(f, 4096);
	for (uint16_t code = 1; code <= 20; code++)
		put_text(f, code);
	put_option(f, 6, "\2SECRE", 6);
	put_option(f, 9, "\x09", 1);
	put_option(f, 13, "\x04", 1);
	put_numbers(f, 8, 8);
	end(f);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		begin(f, others[i]);
		put_text(f, 1);
		end(f);
	}
	put_packet(f, RT_PCAPNG_EPB);
	put_packet(f, RT_PCAPNG_OBSOLETE_PACKET);
	put_packet(f, RT_PCAPNG_SIMPLE_PACKET);
	put_reason(f);
	begin(f, RT_PCAPNG_ISB);
	put32(f, 0);
	put64(f, 0);
	put_text(f, 1);
	put_numbers(f, 2, 8);
	end(f);
}

static bool has(const uint8_t *p, size_t len, const char *text)
{
	return memmem(p, len, text, strlen(text));
}

/* Codes of the options, in the order in which they come. */
static void check_options(struct rt_pcapng_options o, bool swap, const char *want)
{
	char codes[64] = "";

	while (rt_pcapng_option_next(&o, swap))
		snprintf(codes + strlen(codes), 8, "%u ", o.code);
	assert_string_equal(codes, want);
}

static void check_packet(const struct anonymizer *a, const struct block *b)
{
	const bool simple = rt_pcapng_get32(b->bytes, a->blocks.swapped) == RT_PCAPNG_SIMPLE_PACKET;
	const bool enhanced = rt_pcapng_get32(b->bytes, a->blocks.swapped) == RT_PCAPNG_EPB;
	struct rt_pcapng_options o = {
		.p = b->data + ((b->captured + 3) & ~3u), .end = b->bytes + b->len - 4};

	assert_int_equal(b->length, sizeof(packet));
	assert_int_equal(b->captured, simple ? sizeof(packet) : 28);
	assert_int_equal(b->linktype, 101);
	if (simple)
		return;
	assert_int_equal(b->ns, 1ll << 32 | 2);
	assert_int_equal(b->direction, DIRECTION_TX);
	assert_int_equal(b->dropcount, enhanced ? 1004 : 0);
	assert_int_equal(b->id, enhanced ? 1005 : 0);
	check_options(o, a->blocks.swapped, enhanced ? "2 7 4 5 " : "2 ");
	rt_pcapng_option_next(&o, a->blocks.swapped);
	assert_int_equal(rt_pcapng_get32(o.value, a->blocks.swapped), 2 | RT_FLAGS_VALID);
}

static void check_block(struct anonymizer *a, int kind, const struct block *b)
{
	const bool swap = a->blocks.swapped;
	struct rt_pcapng_options o;

	switch (kind) {
	case BLOCK_SECTION: check_options(block_options(b, kind), swap, "1 "); break;
	case BLOCK_INTERFACE:
		check_options(block_options(b, kind), swap, "2 6 9 8 ");
		o = block_options(b, kind);
		rt_pcapng_option_next(&o, swap);
		assert_memory_equal(o.value, "interface0", 10);
		break;
	case BLOCK_PACKET: check_packet(a, b); break;
	case BLOCK_STATISTICS:
		check_options(block_options(b, kind), swap, "2 3 4 5 6 7 8 ");
		assert_int_equal(a->blocks.statistics.delivered, 1008);
		break;
	case BLOCK_FATES:
		assert_int_equal(a->blocks.fates.kind, RT_FATES_REASONS);
		assert_string_equal(
			((const struct rt_fates_reason *)(const void *)a->blocks.fates.entries)
				->text,
			"reason 3");
		break;
	default: fail();
	}
}

static void only_what_is_listed(void **state)
{
	struct anonymizer a = {.names = pseudonyms_new((const uint8_t[32]){5}), .blocks.w.fd = -1};

	for (unsigned swap = 0; swap < 2; swap++) {
		struct anonymizer again = {.blocks.w.fd = -1};
		unsigned kinds = 0;
		uint8_t out[8192];
		struct block b;
		struct file f;
		ssize_t n;
		int kind;

		make(&f, swap);
		assert_true(has(f.at, f.len, SECRET));
		n = anonymize_blocks(&a, f.at, f.len, out, sizeof(out));
		assert_true(n > 0);
		assert_false(has(out, (size_t)n, "SECRE"));
		assert_false(has(out, (size_t)n, "\x0a\1\2"));
		window_memory(&again.blocks.w, out, (size_t)n);
		while ((kind = blocks_next(&again.blocks, &b)) > 0) {
			check_block(&again, kind, &b);
			kinds++;
		}
		assert_int_equal(kind, BLOCK_END);
		assert_string_equal(again.blocks.torn, "");
		assert_int_equal(kinds, 7);
		anonymizer_free(&again);
	}
	anonymizer_free(&a);
	pseudonyms_free(a.names);
}

static void torn(void **state)
{
	struct anonymizer a = {.names = pseudonyms_new((const uint8_t[32]){5}), .blocks.w.fd = -1};
	uint8_t out[8192];
	struct file f;

	make(&f, false);
	assert_int_equal(anonymize_blocks(&a, f.at, f.len - 4, out, sizeof(out)), -EBADMSG);
	anonymizer_free(&a);
	pseudonyms_free(a.names);
}

/* Blocks without the end of their options grow, and sections do: the application writes them. */
static void no_more_than_there_is_room_for(void **state)
{
	struct anonymizer a = {.names = pseudonyms_new((const uint8_t[32]){5}), .blocks.w.fd = -1};
	uint32_t section[7] = {0x0a0d0d0a, 28, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX, 28};
	uint8_t in[100 * sizeof(section)], *out;

	for (size_t i = 0; i < 100; i++)
		memcpy(in + i * sizeof(section), section, sizeof(section));
	for (size_t room = 0; room < sizeof(in) + 2 * ANONYMIZE_MORE; room += 100) {
		out = malloc(room); /* which tools watch */
		assert_int_equal(anonymize_blocks(&a, in, sizeof(in), out, room), -EBADMSG);
		free(out);
	}
	anonymizer_free(&a);
	pseudonyms_free(a.names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_listed),
		cmocka_unit_test(torn),
		cmocka_unit_test(no_more_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
