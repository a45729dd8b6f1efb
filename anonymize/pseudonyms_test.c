/* SPDX-License-Identifier: BSD-3-Clause */
/* Pseudonyms, against published vectors and against what they should preserve. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "packet/test_random.h"
#include "pseudonyms.h"

static const uint8_t key[PSEUDONYM_KEY] = {21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73,
	144, 125, 16, 216, 152, 143, 131, 121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2};

struct pair {
	const char *in, *out;
};

/* Pairs of the sample that comes with the authors' code, whose key this is. */
static const struct pair published_ipv4[] = {
	{"128.11.68.132", "135.242.180.132"},
	{"129.118.74.4", "134.136.186.123"},
	{"130.132.252.244", "133.68.164.234"},
	{"141.223.7.43", "141.167.8.160"},
};

/* Pairs of pycryptopan. */
static const struct pair published_ipv6[] = {
	{"::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"},
	{"::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"},
	{"::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"},
	{"2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"},
};

static void published(int family, unsigned bits, const struct pair *list, unsigned count)
{
	struct pseudonyms *p = pseudonyms_new(key);

	for (unsigned i = 0; i < count; i++) {
		uint8_t in[16], want[16];

		assert_int_equal(inet_pton(family, list[i].in, in), 1);
		assert_int_equal(inet_pton(family, list[i].out, want), 1);
		cryptopan(p, in, bits, 0, in);
		assert_memory_equal(in, want, bits / 8);
	}
	pseudonyms_free(p);
}

static void published_vectors(void **state)
{
	published(AF_INET, 32, published_ipv4, 4);
	published(AF_INET6, 128, published_ipv6, 4);
}

/* ---- addresses with a meaning ---- */

static const char *const stay_ipv4[] = {
	"0.0.0.0", "127.0.0.1", "127.9.8.7", "224.0.0.1", "224.0.0.251", "255.255.255.255"};
static const char *const stay_ipv6[] = {
	"::", "::1", "ff02::1", "ff02::2", "ff02::16", "ff05::2", "ff02::1:2", "ff0e::101"};
/* Their first bits stay. */
static const struct {
	const char *text;
	unsigned bits;
} begin[] = {{"169.254.7.8", 16}, {"239.1.2.3", 3}, {"250.1.1.1", 3}, {"fe80::1234:5678:9abc", 64},
	{"ff02::1:ff12:3456", 104}, {"ff3e:40:2001:db8::1", 16}, {"2001:db8::1", 3},
	{"fd00::5", 7}};

static unsigned common(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned n = 0;

	while (n < bits && !((a[n / 8] ^ b[n / 8]) >> (7 - n % 8) & 1))
		n++;
	return n;
}

static unsigned map(struct pseudonyms *p, const char *text, uint8_t in[16], uint8_t out[16])
{
	if (inet_pton(AF_INET, text, in) == 1) {
		pseudonym_ipv4(p, in, out);
		return 32;
	}
	assert_int_equal(inet_pton(AF_INET6, text, in), 1);
	pseudonym_ipv6(p, in, out);
	return 128;
}

static void addresses_with_a_meaning(void **state)
{
	struct pseudonyms *p = pseudonyms_new(key);
	uint8_t in[16], out[16];

	for (unsigned i = 0; i < sizeof(stay_ipv4) / sizeof(stay_ipv4[0]); i++)
		assert_int_equal(common(in, out, map(p, stay_ipv4[i], in, out)), 32);
	for (unsigned i = 0; i < sizeof(stay_ipv6) / sizeof(stay_ipv6[0]); i++)
		assert_int_equal(common(in, out, map(p, stay_ipv6[i], in, out)), 128);
	for (unsigned i = 0; i < sizeof(begin) / sizeof(begin[0]); i++) {
		unsigned bits = map(p, begin[i].text, in, out), n = common(in, out, bits);

		assert_true(n >= begin[i].bits);
		assert_int_not_equal(n, bits);
	}
	pseudonyms_free(p);
}

/* ---- prefixes ---- */

#define MANY 400

/* Random, but with many prefixes in common, and those with a meaning among them. */
static void make(uint8_t list[MANY][16], unsigned i, unsigned bits)
{
	static const uint8_t heads[][2] = {{0, 0}, {127, 0}, {169, 254}, {224, 0}, {255, 255},
		{0xfe, 0x80}, {0xff, 0x02}, {0xff, 0x05}};
	const unsigned from = i ? random_below(i) : 0, same = random_below(bits);

	for (unsigned k = 0; k < 16; k++)
		list[i][k] = random_below(3) ? 0 : (uint8_t)random_below(256);
	if (i % 3 == 0)
		memcpy(list[i], heads[random_below(8)], 2);
	else
		memcpy(list[i], list[from], same / 8);
	if (i % 7 == 0)
		memset(list[i] + 2, 0, 10);
}

static void prefixes_are_preserved(void **state)
{
	static uint8_t in[MANY][16], out[MANY][16];

	for (unsigned bits = 32; bits <= 128; bits += 96) {
		struct pseudonyms *p = pseudonyms_new(key);

		for (unsigned i = 0; i < MANY; i++) {
			make(in, i, bits);
			if (bits == 32)
				pseudonym_ipv4(p, in[i], out[i]);
			else
				pseudonym_ipv6(p, in[i], out[i]);
			for (unsigned k = 0; k < i; k++)
				assert_int_equal(
					common(in[i], in[k], bits), common(out[i], out[k], bits));
		}
		pseudonyms_free(p);
	}
}

/* ---- MAC addresses ---- */

static int by_mac(const void *a, const void *b)
{
	return memcmp(a, b, 6);
}

#define MACS 20000u

static void macs_are_permuted(void **state)
{
	static uint8_t out[MACS][6];
	struct pseudonyms *p = pseudonyms_new(key);

	for (unsigned i = 0; i < MACS; i++) {
		const uint8_t in[6] = {
			(uint8_t)(i % 5 * 2), 0x11, 0x22, 0, (uint8_t)(i >> 8), (uint8_t)i};

		pseudonym_mac(p, in, out[i]);
		assert_int_equal(out[i][0] & 3, in[0] & 3);
		assert_memory_not_equal(out[i] + 1, in + 1, 3);
	}
	qsort(out, MACS, 6, by_mac);
	for (unsigned i = 1; i < MACS; i++)
		assert_memory_not_equal(out[i - 1], out[i], 6);
	pseudonyms_free(p);
}

static void macs_of_groups(void **state)
{
	static const uint8_t stay[][6] = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0},
		{0x01, 0x80, 0xc2, 0, 0, 0x0e}, {0x01, 0, 0x5e, 0, 0, 5}, {0x33, 0x33, 0, 1, 0, 2},
		{0x01, 0, 0x0c, 0xcc, 0xcc, 0xcc}};
	static const uint8_t ipv4[6] = {0x01, 0, 0x5e, 0x7f, 1, 2},
			     ipv6[6] = {0x33, 0x33, 0x40, 1, 2, 3},
			     node[6] = {0x33, 0x33, 0xff, 0x12, 0x34, 0x56};
	struct pseudonyms *p = pseudonyms_new(key);
	uint8_t out[6], address[16];

	for (unsigned i = 0; i < sizeof(stay) / 6; i++) {
		pseudonym_mac(p, stay[i], out);
		assert_memory_equal(out, stay[i], 6);
	}
	pseudonym_mac(p, ipv4, out);
	assert_memory_equal(out, ipv4, 3);
	assert_true(out[3] < 0x80);
	assert_memory_not_equal(out + 3, ipv4 + 3, 3);
	pseudonym_mac(p, ipv6, out);
	assert_memory_equal(out, ipv6, 2);
	assert_memory_not_equal(out + 2, ipv6 + 2, 4);
	/* That of the group's address. */
	pseudonym_mac(p, node, out);
	inet_pton(AF_INET6, "ff02::1:ff12:3456", address);
	pseudonym_ipv6(p, address, address);
	assert_memory_equal(out + 2, address + 12, 4);
	assert_memory_not_equal(out + 3, node + 3, 3);
	pseudonyms_free(p);
}

static void other_keys(void **state)
{
	uint8_t other[PSEUDONYM_KEY], in[6] = {2, 3, 4, 5, 6, 7}, a[6], b[6];
	struct pseudonyms *p = pseudonyms_new(key), *q;

	for (unsigned i = 0; i < PSEUDONYM_KEY; i += 16) {
		memcpy(other, key, sizeof(other));
		other[i] ^= 1;
		q = pseudonyms_new(other);
		pseudonym_mac(p, in, a);
		pseudonym_mac(q, in, b);
		assert_memory_not_equal(a, b, 6);
		pseudonym_ipv4(p, in, a);
		pseudonym_ipv4(q, in, b);
		assert_memory_not_equal(a, b, 4);
		pseudonyms_free(q);
	}
	pseudonyms_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(addresses_with_a_meaning),
		cmocka_unit_test(prefixes_are_preserved),
		cmocka_unit_test(macs_are_permuted),
		cmocka_unit_test(macs_of_groups),
		cmocka_unit_test(other_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
