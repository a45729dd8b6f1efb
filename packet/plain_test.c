/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way of reading a packet makes what the long one makes, or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow_table.h"
#include "plain.h"
#include "test_random.h"

#define FRAME_MAX 80

/* TCP or UDP with random addresses and ports, with a tag or without one. Returns its bytes. */
static size_t make(uint8_t *p)
{
	static const uint8_t tag[] = {0x81, 0, 0xe1, 0x23};
	const size_t ip = random_below(2) ? 18 : 14;

	for (size_t i = 0; i < FRAME_MAX; i++)
		p[i] = (uint8_t)random_below(256);
	if (ip == 18)
		memcpy(p + 12, tag, sizeof(tag));
	memcpy(p + ip - 2, (uint8_t[]){8, 0, 0x45}, 3);
	memcpy(p + ip + 2, (uint8_t[]){0, (uint8_t)(20 + random_below(60)), 0, 0, 0, 0}, 6);
	p[ip + 9] = random_below(2) ? IPPROTO_TCP : IPPROTO_UDP;
	return ip + 14 + random_below((uint32_t)(FRAME_MAX - ip - 13));
}

/* In the headers, where it matters. */
static void change(uint8_t *p)
{
	static const uint8_t at[] = {12, 13, 14, 16, 17, 18, 20, 21, 23, 24, 25, 27, 46, 50};
	static const uint8_t values[] = {
		0, 1, 2, 6, 8, 17, 0x20, 0x40, 0x44, 0x46, 0x81, 0x88, 0x91, 0xa8, 132, 255};

	p[at[random_below(sizeof(at))]] = values[random_below(sizeof(values))];
}

static void assert_same_headers(const struct headers *a, const struct headers *b)
{
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->vlans, b->vlans);
	assert_int_equal(a->tos, b->tos);
	assert_int_equal(a->protocol, b->protocol);
	assert_int_equal(a->ip_bytes, b->ip_bytes);
	assert_int_equal(a->tcp_flags, b->tcp_flags);
	assert_int_equal(a->tcp_seq, b->tcp_seq);
	assert_int_equal(a->tcp_payload, b->tcp_payload);
}

/* A copy of exact size: AddressSanitizer finds a read behind its end. */
static bool check(const struct flow_table *t, const uint8_t *frame, size_t len)
{
	uint8_t *p = malloc(len + !len);
	struct headers h, plain;
	struct flow_key k, key;
	struct flow_words w;
	bool found;

	assert_non_null(p);
	memcpy(p, frame, len);
	memset(&key, 0xff, sizeof(key));
	found = plain_read(&plain, &key, &w, p, len);
	if (found) {
		headers_read(&h, LINKTYPE_ETHERNET, p, len);
		flow_key_of(&k, 0, &h);
		assert_memory_equal(&key, &k, sizeof(k));
		assert_same_headers(&plain, &h);
		assert_int_equal(flow_words_hash(&t->secret, w), flow_table_hash(t, &k));
	}
	free(p);
	return found;
}

static void both_ways_read_the_same(void **unused)
{
	enum { FRAMES = 200000 };
	unsigned plain = 0, changed = 0;
	uint8_t frame[FRAME_MAX];
	struct flow_table t;

	assert_int_equal(flow_table_init(&t, sizeof(struct flow_key), 10), 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		const size_t len = make(frame);

		plain += check(&t, frame, len);
		change(frame);
		changed += check(&t, frame, len);
	}
	flow_table_free(&t);
	/* Cut ones and changed ones are among them. */
	assert_in_range(plain, FRAMES / 2, FRAMES - FRAMES / 10);
	assert_in_range(changed, FRAMES / 8, plain - FRAMES / 10);
}

/* Packets that are most of the traffic take the short way. */
static void most_packets_are_plain(void **unused)
{
	uint8_t udp[60] = {[12] = 8, 0, 0x45, 0, 0, 28, [20] = 0x40, [23] = IPPROTO_UDP};
	uint8_t tcp[64] = {
		[12] = 0x81, 0, 0, 5, 8, 0, 0x45, 0, 0, 40, [27] = IPPROTO_TCP, [50] = 0x50};
	struct flow_table t;

	assert_int_equal(flow_table_init(&t, sizeof(struct flow_key), 10), 0);
	assert_true(check(&t, udp, sizeof(udp)));
	assert_true(check(&t, tcp, sizeof(tcp)));
	udp[14] = 0x46; /* options */
	assert_false(check(&t, udp, sizeof(udp)));
	udp[14] = 0x45;
	udp[20] = 0x20; /* a first fragment */
	assert_false(check(&t, udp, sizeof(udp)));
	for (size_t len = 0; len < 42; len++)
		assert_false(check(&t, udp, len));
	flow_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_read_the_same),
		cmocka_unit_test(most_packets_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
