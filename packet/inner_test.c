/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters with tunnels, run by libpcap's interpreter: a packet matches if the plain filter matches
 * it, or a packet inside of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inner.h"
#include "test_random.h"

#define FRAMES    4000
#define FRAME_MAX 700u
#define LEVELS    4

/* A packet in tunnels: where each begins, the first at 0. */
struct frame {
	uint8_t bytes[FRAME_MAX];
	uint32_t at[LEVELS], len;
	bool ethernet[LEVELS];
	unsigned levels;
};

/* Headers of Ethernet with 0 to 2 tags, for a type. */
static uint32_t put_ether(struct frame *f, uint32_t at, uint32_t type)
{
	uint32_t tags = random_below(3);

	memset(f->bytes + at, 2, 12);
	for (; tags; tags--, at += 4)
		put16(f->bytes + at + 12, random_below(2) ? 0x8100 : 0x88a8);
	put16(f->bytes + at + 12, type);
	return at + 14;
}

/* A header of IP for a protocol, with options or extensions. */
static uint32_t put_iphdr(struct frame *f, uint32_t at, bool six, uint8_t protocol)
{
	uint8_t *p = f->bytes + at;
	uint32_t words = 5 + random_below(3);

	memset(p, 0, 64);
	if (!six) {
		p[0] = (uint8_t)(0x40 | words);
		p[9] = protocol;
		p[12] = (uint8_t)(10 + random_below(2));
		p[19] = (uint8_t)random_below(3);
		return at + 4 * words;
	}
	p[0] = 0x60;
	p[6] = words > 5 ? 60 : protocol;
	p[40] = protocol;
	p[41] = (uint8_t)(words - 6);
	return at + 40 + (words > 5 ? 8 * (words - 5) : 0);
}

/* The innermost headers. */
static uint32_t put_last(struct frame *f, uint32_t at)
{
	put16(f->bytes + at, 1000 + random_below(2));
	put16(f->bytes + at + 2, 80 + random_below(2));
	f->bytes[at + 12] = 0x50;
	return at + 20;
}

static bool begin_level(struct frame *f, uint32_t at, bool ethernet)
{
	f->at[f->levels] = at;
	f->ethernet[f->levels] = ethernet;
	return ++f->levels < 3 && random_below(4);
}

static void put_packet(struct frame *f, uint32_t at, bool ethernet);

static void put_in_udp(struct frame *f, uint32_t at)
{
	static const uint32_t ports[] = {4789, 6081, 2152};
	uint32_t kind = random_below(3), words = random_below(4);
	uint8_t *p = f->bytes + at + 8;

	put16(f->bytes + at, 5555);
	put16(f->bytes + at + 2, ports[kind]);
	memset(p, 0, 64);
	switch (kind) {
	case 0:
		p[0] = 8;
		put_packet(f, at + 16, true);
		break;
	case 1:
		p[0] = (uint8_t)words;
		put16(p + 2, words % 2 ? 0x6558 : 0x0800);
		put_packet(f, at + 16 + 4 * words, words % 2);
		break;
	default:
		p[0] = (uint8_t)(0x30 | (words ? 4 : random_below(4)));
		p[1] = 255;
		at += 16 + (p[0] & 7 ? 4 : 0);
		for (uint32_t i = 0; i < words; i++, at += 4 * i) {
			f->bytes[at - 1] = 0x85;
			f->bytes[at] = (uint8_t)(i + 1);
			f->bytes[at + 4 * (i + 1) - 1] = 0;
		}
		put_packet(f, at, false);
	}
}

static void put_in_gre(struct frame *f, uint32_t at)
{
	static const uint32_t bits[] = {0x8000, 0x2000, 0x1000};
	bool ethernet = random_below(2);
	uint32_t flags = 0, len = 4;

	for (unsigned i = 0; i < 3; i++) {
		if (!random_below(2))
			continue;
		flags |= bits[i];
		len += 4;
	}
	memset(f->bytes + at, 0, 16);
	put16(f->bytes + at, flags);
	put16(f->bytes + at + 2, ethernet ? 0x6558 : 0x0800);
	put_packet(f, at + len, ethernet);
}

static void put_labels(struct frame *f, uint32_t at)
{
	uint32_t labels = 1 + random_below(3);

	at = put_ether(f, at, 0x8847);
	for (; labels; labels--, at += 4) {
		memset(f->bytes + at, 0, 4);
		f->bytes[at + 2] = labels == 1;
	}
	put_packet(f, at, false);
}

static void put_packet(struct frame *f, uint32_t at, bool ethernet)
{
	bool more = begin_level(f, at, ethernet), six = random_below(2);
	uint32_t kind = random_below(4);

	if (more && ethernet && kind == 3) {
		put_labels(f, at);
		return;
	}
	/* GRE and Geneve say which version it is. */
	six = !ethernet && f->levels > 1 ? false : six;
	if (ethernet)
		at = put_ether(f, at, six ? 0x86dd : 0x0800);
	if (!more) {
		at = put_iphdr(f, at, six, random_below(2) ? 6 : 17);
		f->len = put_last(f, at);
	} else if (kind == 0) {
		put_in_udp(f, put_iphdr(f, at, six, 17));
	} else if (kind == 1) {
		put_in_gre(f, put_iphdr(f, at, six, 47));
	} else {
		put_packet(f, put_iphdr(f, at, six, 4), false);
	}
}

static bool matches(const struct filter *f, const uint8_t *p, uint32_t len)
{
	return f->len && bpf_filter((const struct bpf_insn *)f->insns, p, len, len);
}

static void check(const char *expression, bool ethernet)
{
	const uint16_t linktype = ethernet ? RINGTAP_LINKTYPE_ETHERNET : RINGTAP_LINKTYPE_RAW;
	struct filter f, plain, raw;
	unsigned found[LEVELS + 1] = {0};
	char err[256] = "";

	if (filter_compile(&plain, expression, RINGTAP_TAGS_ANY, 1, err, sizeof(err)) ||
		filter_compile_inner(
			&f, true, expression, RINGTAP_TAGS_ANY, linktype, err, sizeof(err)))
		fail_msg("%s: %s", expression, err);
	(void)filter_compile(&raw, expression, RINGTAP_TAGS_AS_IS, 101, err, sizeof(err));
	assert_int_equal(ringtap_filter_check(f.insns, f.len), 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		struct frame frame = {.levels = 0};
		unsigned first = LEVELS;

		put_packet(&frame, 0, ethernet);
		for (unsigned k = frame.levels; k-- > 0;)
			if (matches(frame.ethernet[k] ? &plain : &raw, frame.bytes + frame.at[k],
				    frame.len - frame.at[k]))
				first = k;
		found[first]++;
		if (matches(&f, frame.bytes, frame.len) != (first < LEVELS))
			fail_msg(
				"%s: frame %u, level %u of %u", expression, i, first, frame.levels);
	}
	/* At each level, and at none. */
	for (unsigned k = 0; k < 3; k++)
		assert_in_range(found[k], 1, FRAMES);
	assert_in_range(found[LEVELS], 1, FRAMES);
	filter_free(&f);
	filter_free(&plain);
	filter_free(&raw);
}

static void test_packets_match_at_each_level(void **unused)
{
	static const char *const expressions[] = {"tcp", "tcp port 80", "udp dst port 81",
		"src net 11.0.0.0/8 and tcp src port 1001", "ip6 and tcp",
		"tcp[12] & 0xf0 = 0x50 and port 80", "dst host 10.0.0.1 or tcp port 81",
		"len < 60 and tcp", "ip[0] & 0xf > 5 and ip[ip[0] & 1] = 0 and tcp"};

	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		check(expressions[i], true);
		check(expressions[i], false);
	}
}

/* Whatever the bytes are, as of an attacker: the program ends, and cut packets match nothing more.
 */
static void test_random_bytes(void **unused)
{
	struct filter f, plain;
	char err[256];

	filter_compile(&plain, "tcp port 80", RINGTAP_TAGS_ANY, 1, err, sizeof(err));
	assert_int_equal(filter_compile_inner(
				 &f, true, "tcp port 80", RINGTAP_TAGS_ANY, 1, err, sizeof(err)),
		0);
	for (unsigned i = 0; i < FRAMES; i++) {
		struct frame frame = {.levels = 0};
		uint32_t len;

		put_packet(&frame, 0, true);
		for (unsigned k = random_below(4); k; k--)
			frame.bytes[random_below(frame.len)] = (uint8_t)random_below(256);
		len = random_below(frame.len + 1);
		if (matches(&plain, frame.bytes, len))
			assert_true(matches(&f, frame.bytes, len));
		else if (matches(&f, frame.bytes, len))
			assert_true(matches(&f, frame.bytes, frame.len));
	}
	filter_free(&f);
	filter_free(&plain);
}

/* Expressions about Ethernet are for packets with Ethernet headers. */
static void test_expressions_about_ethernet(void **unused)
{
	static const uint8_t vxlan[] = {[12] = 8,
		[14] = 0x45,
		[23] = 17,
		[36] = 4789 >> 8,
		[37] = 4789 & 255,
		[42] = 8,
		[50] = 2,
		[62] = 8,
		[63] = 6,
		[120] = 0};
	struct filter f;
	char err[256];

	for (int inner = 0; inner < 2; inner++) {
		assert_int_equal(
			filter_compile_inner(&f, inner, "ether dst 02:00:00:00:00:00 and arp",
				RINGTAP_TAGS_ANY, 1, err, sizeof(err)),
			0);
		assert_int_equal(matches(&f, vxlan, sizeof(vxlan)), inner);
		filter_free(&f);
	}
}

static void test_what_is_too_long_is_refused(void **unused)
{
	char text[8192] = "port 1", err[256] = "";
	struct filter f;

	for (unsigned i = 2; i < 60; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " or port %u", i);
	assert_int_equal(
		filter_compile_inner(&f, false, text, RINGTAP_TAGS_ANY, 1, err, sizeof(err)), 0);
	filter_free(&f);
	assert_int_equal(
		filter_compile_inner(&f, true, text, RINGTAP_TAGS_ANY, 1, err, sizeof(err)),
		-EINVAL);
	assert_non_null(strstr(err, "longer than 4096"));
	assert_int_equal(f.len, 0);
	assert_int_equal(
		filter_compile_inner(&f, true, NULL, RINGTAP_TAGS_ANY, 1, err, sizeof(err)), 0);
	assert_int_equal(f.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_match_at_each_level),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_expressions_about_ethernet),
		cmocka_unit_test(test_what_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
