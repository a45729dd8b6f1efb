/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows of packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow_table.h"
#include "flows.h"

#define ETHERNET 14

/* Ethernet and tags; returns where the next header begins. */
static uint32_t ethernet(uint8_t *p, uint16_t type, const uint16_t *tags, unsigned count)
{
	uint32_t at = 12;

	memset(p, 0, 256);
	p[5] = 1;
	p[11] = 2;
	for (unsigned i = 0; i < count; i++) {
		const uint8_t tag[] = {i + 1 < count ? 0x88 : 0x81, i + 1 < count ? 0xa8 : 0x00,
			(uint8_t)(0xe0 | tags[i] >> 8), (uint8_t)tags[i]};

		memcpy(p + at, tag, 4);
		at += 4;
	}
	p[at] = (uint8_t)(type >> 8);
	p[at + 1] = (uint8_t)type;
	return at + 2;
}

static uint32_t ipv4(uint8_t *p, uint32_t at, uint8_t protocol, uint16_t fragment, uint8_t last)
{
	const uint8_t header[20] = {[0] = 0x45,
		[6] = (uint8_t)(fragment >> 8),
		[7] = (uint8_t)fragment,
		[9] = protocol,
		[12] = 10,
		[15] = last,
		[16] = 10,
		[19] = 2};
	const uint8_t ports[4] = {0x12, 0x67, 0, 53};

	memcpy(p + at, header, 20);
	memcpy(p + at + 20, ports, 4);
	return at + 24;
}

static const char *text_of(const uint8_t *p, uint32_t len)
{
	static char text[FLOW_TEXT];
	struct headers h;
	struct flow_key k;

	headers_read(&h, LINKTYPE_ETHERNET, p, len);
	flow_key_of(&k, 0, &h);
	return flow_text(&k, text);
}

static void keys_of_ipv4(void **state)
{
	const uint16_t tags[] = {100, 7};
	uint8_t p[256];
	uint32_t len = ipv4(p, ethernet(p, 0x0800, tags, 0), 17, 0, 1);

	assert_string_equal(text_of(p, len), "10.0.0.1:4711 > 10.0.0.2:53 UDP");
	/* A packet that is cut within the ports, and one within the addresses. */
	assert_string_equal(text_of(p, len - 1), "10.0.0.1 > 10.0.0.2 UDP");
	assert_string_equal(text_of(p, 30), "00:00:00:00:00:02 > 00:00:00:00:00:01 IPv4");
	len = ipv4(p, ethernet(p, 0x0800, tags, 2), 6, 0, 1);
	assert_string_equal(text_of(p, len), "10.0.0.1:4711 > 10.0.0.2:53 TCP, VLAN 100");
	/* The first fragment has ports, later ones have data there. */
	len = ipv4(p, ethernet(p, 0x0800, tags, 0), 17, 0x2000, 1);
	assert_string_equal(text_of(p, len), "10.0.0.1:4711 > 10.0.0.2:53 UDP");
	len = ipv4(p, ethernet(p, 0x0800, tags, 0), 17, 0x2001, 1);
	assert_string_equal(text_of(p, len), "10.0.0.1 > 10.0.0.2 UDP");
}

static void keys_of_ipv6_and_others(void **state)
{
	uint8_t p[256];
	uint32_t at = ethernet(p, 0x86dd, NULL, 0);

	p[at] = 0x60;
	p[at + 6] = 0; /* hop-by-hop options, then UDP */
	p[at + 8] = p[at + 24] = 0xfe;
	p[at + 23] = 1;
	p[at + 39] = 2;
	p[at + 40] = 17;
	p[at + 48 + 1] = 1;
	p[at + 48 + 3] = 2;
	assert_string_equal(text_of(p, at + 56), "[fe00::1]:1 > [fe00::2]:2 UDP");
	/* Every cut is in bounds: valgrind and the sanitizer check it. */
	for (uint32_t len = 0; len < at + 56; len++) {
		uint8_t *cut = malloc(len + 1);

		memcpy(cut, p, len);
		assert_non_null(text_of(cut, len));
		free(cut);
	}
	p[at + 41] = 255; /* the options are longer than the packet */
	assert_string_equal(text_of(p, at + 56), "fe00::1 > fe00::2 UDP");
	at = ethernet(p, 0x0806, NULL, 0);
	assert_string_equal(text_of(p, 60), "00:00:00:00:00:02 > 00:00:00:00:00:01 ARP");
}

static void add(struct flows *f, uint8_t last, uint32_t length, unsigned times)
{
	uint8_t p[256];
	uint32_t len = ipv4(p, ethernet(p, 0x0800, NULL, 0), 17, 0, last);
	struct headers h;

	headers_read(&h, LINKTYPE_ETHERNET, p, len);
	for (unsigned i = 0; i < times; i++)
		flows_add(f, &h, length, i % 2);
}

static void largest_flows(void **state)
{
	struct flows *f = flows_new(16);
	const struct flow *top[2];

	add(f, 1, 60, 10);
	add(f, 2, 1500, 4);
	add(f, 3, 60, 1);
	assert_int_equal(flows_count(f), 3);
	assert_int_equal(flows_error(f), 0);
	assert_int_equal(flows_top(f, FLOWS_BY_PACKETS, top, 2), 2);
	assert_int_equal(top[0]->key.src[3], 1);
	assert_int_equal(top[0]->packets[0], 5);
	assert_int_equal(top[0]->packets[1], 5);
	assert_int_equal(flows_top(f, FLOWS_BY_BYTES, top, 2), 2);
	assert_int_equal(top[0]->key.src[3], 2);
	assert_int_equal(top[0]->bytes, 6000);
	flows_free(f);
}

static void memory_is_bounded(void **state)
{
	struct flows *f = flows_new(16);
	const struct flow *top[1];
	uint64_t missing;

	/* A large flow among more small ones than there is room for. */
	for (unsigned i = 2; i < 250; i++) {
		add(f, (uint8_t)i, 60, 1);
		add(f, 1, 60, 2);
	}
	assert_true(flows_count(f) <= 16);
	assert_true(flows_error(f) > 0);
	assert_int_equal(flows_top(f, FLOWS_BY_PACKETS, top, 1), 1);
	assert_int_equal(top[0]->key.src[3], 1);
	missing = 2 * 248 - top[0]->packets[0] - top[0]->packets[1];
	assert_true(missing <= flows_error(f));
	flows_free(f);
}

/* Hints and hashes of a table are only where a search begins. */
static void a_wrong_hint_finds_the_right_item(void **state)
{
	struct flow_key a = {.src = {1}}, b = {.src = {2}};
	struct flow_table t;
	uint32_t of_a, of_b;

	assert_int_equal(flow_table_init(&t, sizeof(a), 10), 0);
	of_a = flow_table_get(&t, &a);
	of_b = flow_table_get(&t, &b);
	assert_int_not_equal(of_a, of_b);
	assert_int_equal(flow_table_get_hashed(&t, &b, flow_table_hash(&t, &b), of_a), of_b);
	assert_int_equal(flow_table_get_hashed(&t, &b, flow_table_hash(&t, &b), 9), of_b);
	assert_int_equal(flow_table_prefetch_item(&t, flow_table_hash(&t, &b)), of_b);
	flow_table_clear(&t);
	assert_int_equal(flow_table_prefetch_item(&t, flow_table_hash(&t, &b)), FLOW_NONE);
	assert_int_equal(flow_table_get_hashed(&t, &b, flow_table_hash(&t, &b), of_b), 0);
	flow_table_free(&t);
}

/* Each part of a key counts, also where the other parts mirror each other. */
static void hashes_of_mirrored_keys_differ(void **state)
{
	uint32_t seen[4096];
	struct flow_table t;
	unsigned n = 0, same = 0;

	assert_int_equal(flow_table_init(&t, sizeof(struct flow_key), 10), 0);
	for (unsigned i = 0; i < 1024; i++) {
		struct flow_key k = {.protocol = (uint8_t)(i & 1)};

		for (unsigned b = 0; b < 8; b++) {
			k.src[b] = k.dst[b + 8] = (uint8_t)(i >> b % 4);
			k.src[b + 8] = k.dst[b] = (uint8_t)(i >> b % 8);
		}
		seen[n++] = flow_table_hash(&t, &k);
		k.src_port = (uint16_t)i + 1;
		seen[n++] = flow_table_hash(&t, &k);
		k.dst_port = (uint16_t)i + 1;
		seen[n++] = flow_table_hash(&t, &k);
		k.zero[2] = 1;
		seen[n++] = flow_table_hash(&t, &k);
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			same += seen[i] == seen[j];
	assert_true(same < 4); /* by chance 0.002 */
	flow_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_ipv4),
		cmocka_unit_test(keys_of_ipv6_and_others),
		cmocka_unit_test(largest_flows),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_wrong_hint_finds_the_right_item),
		cmocka_unit_test(hashes_of_mirrored_keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
