/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of many headers. Their builder marks what is secret: addresses, payload, and fields that
 * may hold some. */
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "packet.h"
#include "common/layers.h"
#include "packet/test_random.h"

static const uint8_t key[PSEUDONYM_KEY] = {7, 1, 8};

struct made {
	uint8_t at[600];
	bool secret[600];
	size_t len;
};

static void add(struct made *m, const void *bytes, size_t len)
{
	memcpy(m->at + m->len, bytes, len);
	m->len += len;
}

static void add_secret(struct made *m, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		m->secret[m->len] = true;
		m->at[m->len++] = (uint8_t)(0x21 + random_below(0x5e));
	}
}

#define ADD(m, ...) add(m, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* A header by its letter. What follows it is of the length in wire, which is only approximate. */
static void add_header(struct made *m, char what, char next)
{
	static const struct {
		char what;
		uint16_t type;
	} types[] = {{'4', 0x0800}, {'5', 0x0800}, {'Q', 0x8864}, {'6', 0x86dd}, {'a', 0x0806},
		{'L', 0x8847}, {'p', 0x8864}, {'?', 0x88b5}, {'E', 0x6558}};
	static const struct {
		char what;
		uint8_t protocol;
	} protocols[] = {{'t', 6}, {'u', 17}, {'v', 17}, {'n', 17}, {'G', 47}, {'4', 4}, {'6', 41},
		{'i', 1}, {'I', 58}, {'N', 58}, {'s', 132}, {'o', 89}, {'d', 33}, {'m', 2},
		{'l', 136}, {'r', 43}, {'F', 44}, {'H', 44}, {'-', 59}};
	uint16_t type = 0;
	uint8_t protocol = 0;

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		type = types[i].what == next ? types[i].type : type;
	for (unsigned i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		protocol = protocols[i].what == next ? protocols[i].protocol : protocol;
	switch (what) {
	case 'e':
	case 'E':
		ADD(m, 0x02);
		add_secret(m, 5);
		ADD(m, 0x02);
		add_secret(m, 5);
		ADD(m, 0x81, 0, 0, 7, (uint8_t)(type >> 8), (uint8_t)type);
		break;
	case '4':
		ADD(m, 0x46, 0, 1, 0x40, 1, 2, 0, 0, 64, protocol, 3, 4);
		add_secret(m, 8 + 4);
		break;
	case '5': /* a later fragment */
		ADD(m, 0x45, 0, 1, 0x40, 1, 2, 0, 5, 64, 17, 3, 4);
		add_secret(m, 8);
		break;
	case 'H': ADD(m, 17, 0, 0, 0x40, 0, 0, 0, 1); break;
	case '6':
		ADD(m, 0x60, 0, 0, 0, 1, 0x40, protocol, 64);
		add_secret(m, 32);
		break;
	case 'r': /* a route of one address */
		ADD(m, protocol, 2, 0, 1, 0, 0, 0, 0);
		add_secret(m, 16);
		break;
	case 'F': ADD(m, protocol, 0, 0, 1, 0, 0, 0, 1); break;
	case 't': /* MSS, an unknown option, NOPs */
		ADD(m, 0, 80, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x18, 1, 1);
		add_secret(m, 2);
		ADD(m, 0, 0, 2, 4, 5, 0xb4, 34, 8);
		add_secret(m, 6);
		break;
	case 'u': ADD(m, 0, 53, 0x12, 0x34, 0, 0, 9, 9); break;
	case 'v': ADD(m, 0x12, 0x34, 0x12, 0xb5, 0, 0, 9, 9, 8, 0, 0, 0, 0, 0, 42, 0); break;
	case 'n':
		ADD(m, 0x12, 0x34, 0x17, 0xc1, 0, 0, 9, 9, 2, 0, (uint8_t)(type >> 8),
			(uint8_t)type, 0, 0, 42, 0);
		add_secret(m, 8);
		break;
	case 'G':
		ADD(m, 0x30, 0, (uint8_t)(type >> 8), (uint8_t)type, 0, 0, 0, 5, 0, 0, 0, 1);
		break;
	case 'L': ADD(m, 0, 1, 0x10, 64, 0, 2, 0x11, 64); break;
	case 'p': ADD(m, 0x11, 0, 0, 1, 0, 60, 0, next == '4' ? 0x21 : 0x57); break;
	case 'i': ADD(m, 3, 4, 9, 9, 0, 0, 5, 0xdc); break;
	case 'I': ADD(m, 1, 4, 9, 9, 0, 0, 0, 0); break;
	case 'N': /* a neighbour's advertisement with its MAC, and a nonce */
		ADD(m, 136, 0, 9, 9, 0x60, 0, 0, 0);
		add_secret(m, 16);
		ADD(m, 2, 1, 0x02);
		add_secret(m, 5);
		ADD(m, 14, 1);
		add_secret(m, 6);
		break;
	case 's': ADD(m, 1, 2, 3, 4, 0, 0, 0, 7, 9, 9, 9, 9); break;
	case 'd': ADD(m, 1, 2, 3, 4, 4, 0, 9, 9, 5, 0, 0, 0, 0, 0, 0, 1); break;
	case 'l': ADD(m, 1, 2, 3, 4, 0, 8, 9, 9); break;
	case 'm':
		ADD(m, 0x16, 0, 9, 9, 0xe5);
		add_secret(m, 3);
		break;
	case 'a':
		ADD(m, 0, 1, 8, 0, 6, 4, 0, 1, 0x02);
		add_secret(m, 5 + 4);
		ADD(m, 0x02);
		add_secret(m, 5 + 4);
		break;
	}
}

#define PAYLOAD 100

static uint16_t sum_of(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Behind a label, a packet is IP only if its header is right. */
static void put_right(struct made *m, size_t begin)
{
	uint8_t *ip = m->at + begin;
	const size_t len = m->len - begin;

	if (ip[0] >> 4 == 6) {
		put16(ip + 4, (uint32_t)len - 40);
		return;
	}
	put16(ip + 2, (uint32_t)len);
	put16(ip + 10, 0);
	put16(ip + 10, (uint16_t)~sum_of(0, ip, (ip[0] & 15) * 4u));
}

static struct made make(const char *headers)
{
	struct made m = {.len = 0};
	size_t labelled = 0;

	for (const char *h = headers; *h; h++) {
		add_header(&m, *h, h[1]);
		if (*h == 'L' && (h[1] == '4' || h[1] == '6'))
			labelled = m.len;
	}
	add_secret(&m, PAYLOAD);
	if (labelled)
		put_right(&m, labelled);
	return m;
}

static const char *const stacks[] = {"e4t", "e6t", "e4u", "e6u", "e4s", "e6d", "e4l", "e4m", "ea",
	"e?", "e4o", "e6rt", "e6Fu", "e6ru", "eL4t", "eL6u", "ep4u", "ep6t", "e4i4t", "e4i4u",
	"e6I6t", "e6I6I6u", "e6N", "e4vE4t", "e6vE6u", "e4vEa", "e4nE4t", "e4n6t", "e4G4t",
	"e4GE6t", "e6G6u", "e44t", "e46t", "e66t", "e64vEL4G4i4t", "e4GL4u", "e6-", "e5", "e6H",
	"eQ", "e444444444444444t"};

#define STACKS (sizeof(stacks) / sizeof(stacks[0]))

/* Each length at which the packet may be cut, alone in memory of its size. */
static void nothing_secret_is_left(void **state)
{
	struct pseudonyms *names = pseudonyms_new(key);

	for (unsigned s = 0; s < STACKS; s++) {
		struct made m = make(stacks[s]);

		for (size_t len = 0; len <= m.len; len++) {
			uint8_t *in = malloc(len + !len), *out = malloc(len + !len);
			size_t n;

			memcpy(in, m.at, len);
			n = anonymize_packet(names, PAYLOAD_ZERO, 1, in, len, m.len, out);
			assert_int_equal(n, len);
			for (size_t i = 0; i + 3 <= len; i++) {
				if (m.secret[i] && m.secret[i + 1] && m.secret[i + 2] &&
					!memcmp(in + i, out + i, 3))
					fail_msg("%s of %zu bytes: byte %zu is left", stacks[s],
						len, i);
			}
			free(in);
			free(out);
		}
	}
	pseudonyms_free(names);
}

/* Neither does another payload change a byte. */
static void payload_does_not_matter(void **state)
{
	struct pseudonyms *names = pseudonyms_new(key);

	for (unsigned s = 0; s < STACKS; s++) {
		struct made m = make(stacks[s]);
		uint8_t a[600], b[600];
		size_t n, k;

		n = anonymize_packet(names, PAYLOAD_CUT, 1, m.at, m.len, m.len, a);
		assert_true(n <= m.len - PAYLOAD);
		/* All but what is not read is a header. */
		if (!strpbrk(stacks[s], "?o-Q") && s != STACKS - 1)
			assert_int_equal(n, m.len - PAYLOAD);
		for (size_t i = m.len - PAYLOAD; i < m.len; i++)
			m.at[i] ^= 0xff;
		k = anonymize_packet(names, PAYLOAD_CUT, 1, m.at, m.len, m.len, b);
		assert_int_equal(n, k);
		assert_memory_equal(a, b, n);
	}
	pseudonyms_free(names);
}

/* Frames on a CAN bus are of kind 12: that is not a length of 802.2. */
static void cooked_kinds_are_no_lengths(void **state)
{
	static const uint8_t can[24] = {0, 1, 1, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0x12,
		0x34, 0x56, 0x78, 8, 0, 0, 0};
	struct pseudonyms *names = pseudonyms_new(key);
	uint8_t out[64];
	size_t n = anonymize_packet(names, PAYLOAD_ZERO, 113, can, sizeof(can), sizeof(can), out);

	assert_memory_equal(out + 16, (uint8_t[8]){0}, n - 16);
	pseudonyms_free(names);
}

/* Its header claims nearly all bytes that there can be, which are zeros: no checksum takes long. */
static void a_long_packet_costs_nothing(void **state)
{
	uint8_t in[46] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64,
		132, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 0, 0, 0, 1, 2, 3, 4};
	struct pseudonyms *names = pseudonyms_new(key);
	uint8_t out[64];

	/* It was 200 s. */
	assert_true(
		anonymize_packet(names, PAYLOAD_CUT, 1, in, sizeof(in), UINT32_MAX, out) > 14 + 20);
	pseudonyms_free(names);
}

/* IPv4 and TCP behind the headers of other link types. */
static void other_links(void **state)
{
	static const struct {
		uint16_t linktype;
		uint8_t len, mac; /* bytes of the header, and where in it a MAC address stands */
		uint8_t header[24];
	} cases[] = {
		{101, 0, 0, {0}},
		{228, 0, 0, {0}},
		{0, 4, 0, {2, 0, 0, 0}},
		{108, 4, 0, {0, 0, 0, 2}},
		{113, 16, 6, {0, 4, 0, 1, 0, 6, 2, 0x51, 0x52, 0x53, 0x54, 0x55, 0, 0, 8, 0}},
		{276, 20, 12,
			{8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0x51, 0x52, 0x53, 0x54, 0x55}},
		{276, 24, 12,
			{0x81, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0x51, 0x52, 0x53, 0x54, 0x55, 0,
				0, 0, 7, 8, 0}},
	};
	struct pseudonyms *names = pseudonyms_new(key);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made m = {.len = 0};
		uint8_t out[600];

		add(&m, cases[i].header, cases[i].len);
		add_header(&m, '4', 't');
		add_header(&m, 't', 0);
		add_secret(&m, PAYLOAD);
		assert_true(anonymize_knows(cases[i].linktype));
		assert_int_equal(anonymize_packet(names, PAYLOAD_CUT, cases[i].linktype, m.at,
					 m.len, m.len, out),
			m.len - PAYLOAD);
		for (size_t k = 0; k + 3 <= m.len - PAYLOAD; k++)
			assert_false(m.secret[k] && m.secret[k + 1] && m.secret[k + 2] &&
				     !memcmp(m.at + k, out + k, 3));
		if (cases[i].mac)
			assert_memory_not_equal(out + cases[i].mac, m.at + cases[i].mac, 4);
	}
	pseudonyms_free(names);
}

/* Packets of other link types, and of random bytes. */
static void unknown_is_zeros(void **state)
{
	struct pseudonyms *names = pseudonyms_new(key);
	uint8_t in[200], out[200], zeros[200] = {0};

	for (unsigned linktype = 0; linktype < 300; linktype++) {
		for (unsigned i = 0; i < sizeof(in); i++)
			in[i] = (uint8_t)(0x80 + random_below(128));
		assert_true(anonymize_packet(names, PAYLOAD_ZERO, (uint16_t)linktype, in,
				    sizeof(in), sizeof(in), out) == sizeof(in));
		if (linktype != 1 && linktype != 113 && linktype != 276)
			assert_memory_equal(out, zeros, sizeof(out));
		else
			assert_memory_equal(out + 24, zeros, sizeof(out) - 24);
	}
	pseudonyms_free(names);
}

/* ---- checksums ---- */

/* Sums of an IPv4 packet with 20 bytes of header, and of its payload. */
static uint16_t header_sum(const uint8_t *ip)
{
	return sum_of(0, ip, 20);
}

static uint16_t transport_sum(const uint8_t *ip, size_t len, bool pseudo)
{
	uint32_t sum = pseudo ? sum_of((uint32_t)len - 20 + ip[9], ip + 12, 8) : 0;

	return sum_of(sum, ip + 20, len - 20);
}

static const struct {
	uint8_t protocol, at;
	bool pseudo;
} summed[] = {
	{6, 16, true}, {17, 6, true}, {136, 6, true}, {1, 2, false}, {2, 2, false}, {33, 6, true}};

static size_t make_summed(unsigned i, uint8_t ip[120])
{
	const size_t len = 120;
	uint16_t sum;

	memset(ip, 0, len);
	for (size_t k = 12; k < len; k++)
		ip[k] = (uint8_t)random_below(256);
	ip[0] = 0x45;
	put16(ip + 2, (uint32_t)len);
	ip[9] = summed[i].protocol;
	put16(ip + 10, 0);
	sum = (uint16_t)~header_sum(ip);
	put16(ip + 10, sum);
	ip[20] = 8; /* an echo; a port */
	if (summed[i].protocol == 6)
		ip[32] = 0x50;
	else if (summed[i].protocol == 17)
		put16(ip + 24, 100);
	else if (summed[i].protocol == 136)
		put16(ip + 24, 0);
	else if (summed[i].protocol == 33)
		memcpy(ip + 24, (const uint8_t[]){4, 0}, 2), ip[28] = 1;
	put16(ip + 20 + summed[i].at, 0);
	sum = (uint16_t)~transport_sum(ip, len, summed[i].pseudo);
	put16(ip + 20 + summed[i].at, sum);
	return len;
}

static void checksums(void **state)
{
	struct pseudonyms *names = pseudonyms_new(key);
	uint8_t ip[120], out[120];

	for (unsigned k = 0; k < 50 * sizeof(summed) / sizeof(summed[0]); k++) {
		const unsigned i = k / 50;
		const size_t len = make_summed(i, ip);
		uint8_t *at = ip + 20 + summed[i].at, *made = out + 20 + summed[i].at;

		anonymize_packet(names, PAYLOAD_ZERO, 101, ip, len, len, out);
		assert_int_equal(header_sum(out), 0xffff);
		assert_int_equal(transport_sum(out, len, summed[i].pseudo), 0xffff);
		/* Wrong: it is the same, however wrong it was. */
		put16(at, be16(at) ^ (k % 2 ? 0x1234 : 0x4321));
		put16(ip + 10, be16(ip + 10) ^ 0x0101);
		if (!be16(at) || !be16(ip + 10))
			continue;
		anonymize_packet(names, PAYLOAD_ZERO, 101, ip, len, len, out);
		assert_int_not_equal(header_sum(out), 0xffff);
		assert_int_not_equal(transport_sum(out, len, summed[i].pseudo), 0xffff);
		assert_true(be16(made));
		/* 0: not computed. */
		put16(at, 0);
		anonymize_packet(names, PAYLOAD_ZERO, 101, ip, len, len, out);
		assert_int_equal(be16(made), 0);
	}
	pseudonyms_free(names);
}

/* ---- TCP ---- */

static void options_of_tcp(void **state)
{
	static const uint8_t options[40] = {2, 4, 5, 0xb4, 1, 3, 3, 7, 8, 10, 1, 2, 3, 4, 5, 6, 7,
		8, 30, 6, 0x31, 0x32, 0x33, 0x34, 4, 2, 5, 2, 0, 0x41, 0x42},
			     want[40] = {2, 4, 5, 0xb4, 1, 3, 3, 7, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8,
				     1, 1, 1, 1, 1, 1, 4, 2, 1, 1, 0, 0, 0};
	struct pseudonyms *names = pseudonyms_new(key);
	uint8_t ip[80] = {0x45, 0, 0, 80, 0, 0, 0, 0, 64, 6}, out[80];

	ip[32] = 0xf0;
	memcpy(ip + 40, options, sizeof(options));
	assert_int_equal(anonymize_packet(names, PAYLOAD_CUT, 101, ip, 80, 80, out), 80);
	assert_memory_equal(out + 40, want, sizeof(want));
	pseudonyms_free(names);
}

/* ---- what is kept ---- */

/* Payload of the packet itself, not of one that an error quotes, of a later fragment, or behind. */
static void payload_that_is_kept(void **state)
{
	static const struct {
		const char *headers;
		bool kept;
	} cases[] = {{"e4t", true}, {"e6u", true}, {"e4vE4u", true}, {"e4s", true},
		{"e4i4u", false}, {"e4o", false}, {"e?", false}, {"ea", false}};
	struct pseudonyms *names = pseudonyms_new(key);
	uint8_t out[600];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made m = make(cases[i].headers);

		assert_int_equal(
			anonymize_packet(names, PAYLOAD_KEEP, 1, m.at, m.len, m.len, out), m.len);
		assert_int_equal(!memcmp(out + m.len - PAYLOAD, m.at + m.len - PAYLOAD, PAYLOAD),
			cases[i].kept);
	}
	pseudonyms_free(names);
}

/* Ethernet behind a label, whose address begins as IP. */
static void ethernet_behind_a_label(void **state)
{
	static const uint8_t first[] = {0x45, 0x46, 0x60, 0x6f};
	struct pseudonyms *names = pseudonyms_new(key);

	for (unsigned i = 0; i < sizeof(first); i++) {
		struct made m = make("eL");
		uint8_t out[600];

		m.at[m.len - PAYLOAD] = first[i];
		assert_int_equal(anonymize_packet(names, PAYLOAD_CUT, 1, m.at, m.len, m.len, out),
			m.len - PAYLOAD);
	}
	pseudonyms_free(names);
}

/* Traffic of another protocol on the port of a tunnel is payload. */
static void ports_of_tunnels(void **state)
{
	static const struct {
		uint16_t port;
		uint8_t begin[8];
		bool tunnel;
	} cases[] = {
		{4789, {0x08, 0, 0, 0, 0, 0, 5, 0}, true},
		{4789, {0x0c, 0, 0, 3, 0, 0, 5, 0}, true},
		{4789, {0x08, 0, 0, 1, 0, 0, 5, 0}, false},
		{4789, {0x08, 0, 0, 0, 0, 0, 5, 1}, false},
		{6081, {0, 0, 0x65, 0x58, 0, 0, 5, 0}, true},
		{6081, {0x40, 0, 0x65, 0x58, 0, 0, 5, 0}, false},
		{6081, {0, 0, 0, 0x58, 0, 0, 5, 0}, false},
		{2152, {0x30, 255, 0, PAYLOAD - 8, 0, 0, 0, 5}, true},
		{2152, {0x30, 255, 0, PAYLOAD - 7, 0, 0, 0, 5}, false},
		{2152, {0x50, 255, 0, PAYLOAD - 8, 0, 0, 0, 5}, false},
		{2152, {0x30, 254, 0, PAYLOAD - 8, 0, 0, 0, 5}, false},
		{53, {0x08, 0, 0, 0, 0, 0, 5, 0}, false},
	};
	struct pseudonyms *names = pseudonyms_new(key);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made m = make("e4u");
		uint8_t out[600];
		const size_t begin = m.len - PAYLOAD;
		size_t n;

		put16(m.at + begin - 6, cases[i].port);
		memcpy(m.at + begin, cases[i].begin, 8);
		n = anonymize_packet(names, PAYLOAD_CUT, 1, m.at, m.len, m.len, out);
		assert_int_equal(n > begin, cases[i].tunnel);
	}
	pseudonyms_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_secret_is_left),
		cmocka_unit_test(payload_does_not_matter),
		cmocka_unit_test(other_links),
		cmocka_unit_test(cooked_kinds_are_no_lengths),
		cmocka_unit_test(a_long_packet_costs_nothing),
		cmocka_unit_test(unknown_is_zeros),
		cmocka_unit_test(checksums),
		cmocka_unit_test(options_of_tcp),
		cmocka_unit_test(payload_that_is_kept),
		cmocka_unit_test(ports_of_tunnels),
		cmocka_unit_test(ethernet_behind_a_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
