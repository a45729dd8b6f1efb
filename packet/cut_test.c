/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of cuts, run by libpcap's interpreter on frames whose headers are known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cut.h"
#include "test_random.h"

#define FRAMES    20000
#define FRAME_MAX 600u

struct frame {
	uint8_t bytes[FRAME_MAX];
	uint32_t headers; /* bytes; 0: it has no IP that the program finds */
	uint32_t ip;      /* its first header of IP; 0: none */
	uint8_t protocol;
};

static uint32_t put_transport(struct frame *f, uint32_t at)
{
	uint32_t words = 5 + random_below(11);

	switch (f->protocol) {
	case 6: f->bytes[at + 12] = (uint8_t)(words << 4 | random_below(16)); return 4 * words;
	case 17:
	case 136:
	case 1:
	case 58: return 8;
	case 132: return 12;
	default: return 0;
	}
}

static uint32_t put_ipv4(struct frame *f, uint32_t at)
{
	uint32_t words = random_below(2) ? 5 : 5 + random_below(11);

	f->bytes[at] = (uint8_t)(0x40 | words);
	put16(&f->bytes[at + 6], random_below(2) ? 0x4000 : 0x2000);
	f->bytes[at + 9] = f->protocol;
	if (!random_below(4)) {
		put16(&f->bytes[at + 6], 0x2000 | (1 + random_below(0x1fff)));
		return at + 4 * words;
	}
	return at + 4 * words + put_transport(f, at + 4 * words);
}

static uint32_t put_ipv6(struct frame *f, uint32_t at)
{
	static const uint8_t kinds[] = {0, 43, 60, 51, 44};
	uint8_t *next = &f->bytes[at + 6];
	uint32_t left = random_below(7);

	f->bytes[at] = 0x60;
	at += 40;
	for (; left; left--) {
		uint8_t kind = kinds[random_below(sizeof(kinds))], len = (uint8_t)random_below(5);

		*next = kind;
		next = &f->bytes[at];
		f->bytes[at + 1] = len;
		if (kind == 44) {
			put16(&f->bytes[at + 2], random_below(2)); /* perhaps with more fragments */
			at += 8;
			if (random_below(8))
				continue;
			put16(&f->bytes[at - 6], 8 * (1 + random_below(100)));
			*next = f->protocol;
			return at;
		}
		at += kind == 51 ? (len + 2u) * 4 : (len + 1u) * 8;
	}
	*next = f->protocol;
	return at + put_transport(f, at);
}

static uint32_t put_ip(struct frame *f, uint32_t at, bool six)
{
	f->ip = at;
	return six ? put_ipv6(f, at) : put_ipv4(f, at);
}

static struct frame make_frame(bool ethernet)
{
	static const uint16_t tpids[] = {0x8100, 0x88a8, 0x9100};
	static const uint8_t protocols[] = {6, 17, 136, 132, 1, 58, 47, 50, 0xfd};
	struct frame f;
	bool six = random_below(2);
	uint32_t at = 0, labels;

	for (uint32_t i = 0; i < FRAME_MAX; i++)
		f.bytes[i] = (uint8_t)random_below(256);
	f.headers = f.ip = 0;
	f.protocol = protocols[random_below(sizeof(protocols))];
	if (!ethernet) {
		f.headers = put_ip(&f, 0, six);
		return f;
	}
	for (uint32_t tags = random_below(4); tags; tags--, at += 4)
		put16(&f.bytes[at + 12], tpids[random_below(3)]);
	at += 14;
	switch (random_below(8)) {
	case 0: put16(&f.bytes[at - 2], 0x0806); return f;
	case 1:
		put16(&f.bytes[at - 2], 0x8847 + random_below(2));
		labels = 1 + random_below(8);
		for (; labels; labels--, at += 4)
			f.bytes[at + 2] = (uint8_t)((f.bytes[at + 2] & 0xfe) | (labels == 1));
		break;
	default: put16(&f.bytes[at - 2], six ? 0x86dd : 0x0800);
	}
	f.headers = put_ip(&f, at, six);
	return f;
}

static uint32_t value(const struct filter *f, const uint8_t *p, uint32_t len)
{
	return bpf_filter((const struct bpf_insn *)f->insns, p, len, len);
}

static struct filter compile(const char *expression, const char *const *texts, uint16_t linktype)
{
	struct cut cuts[CUT_MAX];
	unsigned n = 0;
	struct filter f;
	char err[256];

	for (; texts[n]; n++)
		assert_int_equal(cut_parse(&cuts[n], texts[n]), 0);
	assert_int_equal(filter_compile(&f, expression, RINGTAP_TAGS_ANY, linktype, err, 256), 0);
	assert_int_equal(cut_apply(&f, cuts, n, false, RINGTAP_TAGS_ANY, linktype, err, 256), 0);
	assert_int_equal(ringtap_filter_check(f.insns, f.len), 0);
	return f;
}

static void check_headers(const char *text, uint32_t beyond, uint16_t linktype)
{
	struct filter p = compile(NULL, (const char *const[]){text, NULL}, linktype);

	for (unsigned i = 0; i < FRAMES; i++) {
		struct frame f = make_frame(linktype == RINGTAP_LINKTYPE_ETHERNET);
		uint32_t expected = f.headers ? f.headers + beyond : RINGTAP_SNAPLEN_MAX;

		assert_in_range(f.headers, 0, FRAME_MAX);
		assert_int_equal(value(&p, f.bytes, FRAME_MAX), expected);
	}
	filter_free(&p);
}

static void test_the_headers_of_all_packets_are_found(void **unused)
{
	check_headers("headers", 0, RINGTAP_LINKTYPE_ETHERNET);
	check_headers("l4+0", 0, RINGTAP_LINKTYPE_ETHERNET);
	check_headers("l4+77", 77, RINGTAP_LINKTYPE_ETHERNET);
	check_headers("l4+100000", 100000, RINGTAP_LINKTYPE_ETHERNET);
	check_headers("headers", 0, RINGTAP_LINKTYPE_RAW);
	check_headers("l4+5", 5, RINGTAP_LINKTYPE_RAW);
}

/* Frames that end anywhere pass, and have all bytes that they have of their headers. */
static void test_no_packet_is_refused_by_a_cut(void **unused)
{
	static const uint16_t types[] = {RINGTAP_LINKTYPE_ETHERNET, RINGTAP_LINKTYPE_RAW};

	for (unsigned i = 0; i < 2 * FRAMES; i++) {
		const bool ethernet = i < FRAMES;
		struct filter p =
			compile(NULL, (const char *const[]){"headers", NULL}, types[!ethernet]);
		struct frame f = make_frame(ethernet);
		uint32_t len = random_below(f.headers + 40), n;

		if (random_below(2)) /* a header may lie about its length */
			f.bytes[14 * ethernet + random_below(ethernet ? 60 : 10)] =
				(uint8_t)random_below(256);
		n = value(&p, f.bytes, len);
		assert_in_range(n, 1, RINGTAP_SNAPLEN_MAX);
		filter_free(&p);
	}
}

static void test_short_headers_of_ipv4_are_none(void **unused)
{
	struct filter p =
		compile(NULL, (const char *const[]){"headers", NULL}, RINGTAP_LINKTYPE_RAW);
	uint8_t bytes[64] = {0x40, [9] = 47};

	for (unsigned ihl = 0; ihl < 5; ihl++, bytes[0]++)
		assert_int_equal(value(&p, bytes, sizeof(bytes)), RINGTAP_SNAPLEN_MAX);
	assert_int_equal(value(&p, bytes, sizeof(bytes)), 20);
	filter_free(&p);
}

/* The first cut that matches decides; tags do not matter; what the filter refuses stays so. */
static void test_cuts_have_filters(void **unused)
{
	static const char *const texts[] = {
		"9:ip[9] == 17", "l4+3:ip6[6] == 132", "20:ip", "headers:ip6", NULL};
	struct filter p = compile("ip or ip6 or arp", texts, 1), none = compile("tcp", texts, 1);
	char err[256];
	struct filter tcp;
	unsigned found[5] = {0};

	filter_compile(&tcp, "tcp", RINGTAP_TAGS_ANY, 1, err, sizeof(err));
	for (unsigned i = 0; i < FRAMES; i++) {
		struct frame f = make_frame(true);
		const uint32_t tags =
			f.bytes[12] == 0x81 || f.bytes[12] == 0x88 || f.bytes[12] == 0x91;
		uint32_t expected = RINGTAP_SNAPLEN_MAX, kind = 4;

		/* With three tags and labels the filters find nothing. */
		if (f.ip != 14 || tags)
			continue;
		if (f.bytes[14] >> 4 == 4)
			kind = f.protocol == 17 ? 0 : 2;
		else
			kind = f.bytes[20] == 132 ? 1 : 3;
		expected = kind == 0 ? 9 : kind == 1 ? f.headers + 3 : kind == 2 ? 20 : f.headers;
		found[kind]++;
		assert_int_equal(value(&p, f.bytes, FRAME_MAX), expected);
		assert_int_equal(value(&none, f.bytes, FRAME_MAX),
			value(&tcp, f.bytes, FRAME_MAX) ? expected : 0);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(found[i], 10, FRAMES);
	filter_free(&p);
	filter_free(&none);
	filter_free(&tcp);
}

static void test_a_filter_behind_tags_applies(void **unused)
{
	static const uint8_t tagged[60] = {[12] = 0x81, [16] = 8, [18] = 0x45, [27] = 17};
	uint8_t arp[60] = {[12] = 8, [13] = 6};
	struct filter p =
		compile("udp or arp", (const char *const[]){"l4+1:udp", "30:arp", NULL}, 1);

	assert_int_equal(value(&p, tagged, sizeof(tagged)), 18 + 20 + 8 + 1);
	assert_int_equal(value(&p, arp, sizeof(arp)), 30);
	arp[13] = 7;
	assert_int_equal(value(&p, arp, sizeof(arp)), 0);
	filter_free(&p);
}

/* The filter of a cut matches inside of IP in IP; the headers are those outside. */
static void test_a_filter_below_tunnels_applies(void **unused)
{
	static const uint8_t udp[90] = {[12] = 8, [14] = 0x45, [23] = 4, [34] = 0x45, [43] = 17};
	struct cut c = {.headers = true, .bytes = 5, .filter = "udp"};
	char err[256];

	for (int inner = 0; inner < 2; inner++) {
		struct filter f = {.len = 0};

		assert_int_equal(
			cut_apply(&f, &c, 1, inner, RINGTAP_TAGS_ANY, 1, err, sizeof(err)), 0);
		assert_int_equal(
			value(&f, udp, sizeof(udp)), inner ? 14 + 20 + 5 : RINGTAP_SNAPLEN_MAX);
		filter_free(&f);
	}
}

static void test_what_is_no_length_is_refused(void **unused)
{
	static const char *const bad[] = {"", "0", "header", "headers+3", "l4", "l4+", "l4+x",
		"l4-3", "262145", "l4+262145", "64:", "headers:", ":udp", "-1", "1k", "l4+ 3",
		"00000000000000000000000000000000000000001"};
	struct cut c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(cut_parse(&c, bad[i]), -EINVAL);
	assert_int_equal(cut_parse(&c, "l4+262144:ip6 host ::1"), 0);
	assert_true(c.headers);
	assert_int_equal(c.bytes, 262144);
	assert_string_equal(c.filter, "ip6 host ::1");
	assert_int_equal(cut_parse(&c, "262144"), 0);
	assert_false(c.headers);
	assert_null(c.filter);
}

static void test_errors_leave_the_filter(void **unused)
{
	struct cut c = {.headers = true, .filter = "no such"}, many[CUT_MAX];
	char err[256] = "", text[CUT_MAX][256];
	struct filter f;
	uint32_t len;

	assert_int_equal(filter_compile(&f, "udp", RINGTAP_TAGS_ANY, 1, err, sizeof(err)), 0);
	len = f.len;
	assert_int_equal(
		cut_apply(&f, &c, 1, false, RINGTAP_TAGS_ANY, 1, err, sizeof(err)), -EINVAL);
	assert_true(*err);
	assert_int_equal(f.len, len);
	for (unsigned i = 0; i < CUT_MAX; i++) {
		snprintf(text[i], sizeof(text[i]), "port %u", i + 1);
		many[i] = (struct cut){.headers = true, .bytes = i, .filter = text[i]};
	}
	assert_int_equal(cut_apply(&f, many, CUT_MAX, false, RINGTAP_TAGS_ANY, 1, err, sizeof(err)),
		-EINVAL);
	assert_non_null(strstr(err, "longer than 4096"));
	assert_int_equal(f.len, len);
	assert_int_equal(cut_apply(&f, NULL, 0, false, RINGTAP_TAGS_ANY, 1, err, sizeof(err)), 0);
	assert_int_equal(f.len, len);
	filter_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_headers_of_all_packets_are_found),
		cmocka_unit_test(test_no_packet_is_refused_by_a_cut),
		cmocka_unit_test(test_short_headers_of_ipv4_are_none),
		cmocka_unit_test(test_cuts_have_filters),
		cmocka_unit_test(test_a_filter_behind_tags_applies),
		cmocka_unit_test(test_a_filter_below_tunnels_applies),
		cmocka_unit_test(test_what_is_no_length_is_refused),
		cmocka_unit_test(test_errors_leave_the_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
