/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that are made to harm who counts them: memory stays bounded, and each packet counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view.h"

static struct ledger ledger;
static uint64_t state;

static uint32_t next_random(void)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 32);
}

static void start(enum ledger_view view, uint32_t most)
{
	assert_int_equal(ledger_init(&ledger, view, most, true), 0);
}

static int set_up(void **unused)
{
	state = 1;
	return 0;
}

static int tear_down(void **unused)
{
	ledger_free(&ledger);
	return 0;
}

static void add(const uint8_t *bytes, uint32_t caplen, uint8_t direction, uint64_t id)
{
	const struct ringtap_packet p = {.data = bytes,
		.caplen = caplen,
		.length = caplen,
		.direction = direction,
		.id = id,
		.ns = id};

	ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
}

static const uint8_t udp[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0,
	0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1, 4, 0, 0, 53};

/* A packet of a flow of its own. */
static void add_any(uint64_t id)
{
	uint8_t frame[sizeof(udp)];
	uint32_t from = next_random(), ports = next_random();

	memcpy(frame, udp, sizeof(frame));
	memcpy(frame + 26, &from, 4);
	memcpy(frame + 34, &ports, 4);
	add(frame, sizeof(frame), RINGTAP_RX, id);
}

/* A twentieth of the packets is of one flow, which stays in the table. */
static void random_flows_do_not_hide_a_large_one(void **unused)
{
	enum { PACKETS = 400000, MOST = 2000, LARGE = 20 };
	const struct ledger_flow *top;

	start(LEDGER_5_TUPLE, MOST);
	for (uint64_t i = 1; i <= PACKETS; i++) {
		if (i % LARGE)
			add_any(i);
		else
			add(udp, sizeof(udp), RINGTAP_RX, i);
		assert_true(ledger.table.count <= MOST);
	}
	assert_int_equal(ledger.all.packets, PACKETS);
	assert_true(ledger.evicted >= PACKETS - PACKETS / LARGE - MOST);
	assert_int_equal(ledger_top(&ledger, LEDGER_BY_PACKETS, true, &top, 1), 1);
	assert_memory_equal(top->key.src, udp + 26, 4);
	assert_true(top->packets <= PACKETS / LARGE);
	assert_true(top->packets + ledger.error >= PACKETS / LARGE);
	assert_true(ledger.error < PACKETS / LARGE);
}

/* The k-th of 100,000 flows with a share of about 1/k, in batches: packets, bytes and times of each
 * are those of a count beside it. */
static void each_of_many_flows_is_exact(void **unused)
{
	enum { FLOWS = 100000, PACKETS = 30000 * LEDGER_BATCH };
	static struct {
		uint64_t packets, bytes, first, last;
	} truth[FLOWS];
	static uint8_t frames[LEDGER_BATCH][sizeof(udp)];
	struct ringtap_packet p[LEDGER_BATCH];
	uint16_t types[LEDGER_BATCH];
	bool counted[LEDGER_BATCH];

	start(LEDGER_5_TUPLE, 1u << 20);
	for (uint64_t ns = 1; ns <= PACKETS; ns++) {
		const unsigned i = (ns - 1) % LEDGER_BATCH;
		/* First each of them once, then at random. */
		const uint32_t k =
			ns <= FLOWS ? (uint32_t)ns - 1
				    : (uint32_t)(exp(log(FLOWS) * next_random() / UINT32_MAX) - 1) %
					      FLOWS;
		const uint32_t length = 60 + k % 1400;

		memcpy(frames[i], udp, sizeof(udp));
		memcpy(frames[i] + 27, &k, 3);
		p[i] = (struct ringtap_packet){.data = frames[i],
			.caplen = sizeof(udp),
			.length = length,
			.direction = RINGTAP_RX,
			.ns = ns};
		types[i] = LINKTYPE_ETHERNET;
		truth[k].packets++;
		truth[k].bytes += length;
		truth[k].first = truth[k].first ? truth[k].first : ns;
		truth[k].last = ns;
		if (i == LEDGER_BATCH - 1)
			ledger_add_batch(&ledger, p, types, LEDGER_BATCH, counted);
	}
	assert_int_equal(ledger.table.count, FLOWS);
	assert_int_equal(ledger.evicted, 0);
	for (uint32_t at = 0; at < FLOWS; at++) {
		const struct ledger_flow *f = flow_table_at(&ledger.table, at);
		uint32_t k = 0;

		memcpy(&k, f->key.src + 1, 3);
		assert_int_equal(f->packets, truth[k].packets);
		assert_int_equal(f->bytes, truth[k].bytes);
		assert_int_equal(f->first_ns, truth[k].first);
		assert_int_equal(f->last_ns, truth[k].last);
	}
}

/* Frames with bits that were changed at random, and cut at random, in each view: in memory of their
 * own, so that a sanitizer finds reads behind them. */
static void crafted_headers_count_once(void **unused)
{
	/* IPv4 with VXLAN in it, and IPv6 in that. */
	static const uint8_t tunnel[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0,
		0x45, 0, 0, 130, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x80, 0, 0x12,
		0xb5, 0, 110, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0, 2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4,
		0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 43, 64, 0x20, 1, 0xd, 0xb8, [107] = 1, 0x20, 1,
		0xd, 0xb8, [123] = 2, 6, 0, 0, 0, 0, 0, 0, 0, 0, 80, 1, 187, 0, 0, 0, 1, 0, 0, 0, 0,
		0x50, 2};
	char text[LEDGER_TEXT];

	for (enum ledger_view view = LEDGER_5_TUPLE; view <= LEDGER_THREAD; view++) {
		const struct ledger_flow *top[16];
		uint64_t sum = 0;
		unsigned n;

		start(view, 64);
		assert_int_equal(ledger_follow(&ledger), 0);
		for (uint64_t i = 1; i <= 20000; i++) {
			const uint32_t len = next_random() % (sizeof(tunnel) + 1);
			uint8_t *frame = malloc(len + !len);

			memcpy(frame, tunnel, len);
			for (unsigned bits = next_random() % 8; len && bits; bits--)
				frame[next_random() % len] ^= (uint8_t)(1 << next_random() % 8);
			add(frame, len, i % 3 ? RINGTAP_RX : RINGTAP_TX, i / 2);
			free(frame);
		}
		assert_true(ledger.table.count <= 64);
		assert_int_equal(ledger.all.packets + ledger.all.sent, 20000);
		n = ledger_top(&ledger, LEDGER_BY_PACKETS, true, top, 16);
		for (unsigned i = 0; i < n; i++) {
			free(ledger_expression(&ledger, &top[i]->key));
			/* Their names need a session. */
			if (view != LEDGER_QUEUE && view != LEDGER_THREAD)
				assert_true(*ledger_text(&ledger, &top[i]->key, NULL, text));
			sum += top[i]->packets;
		}
		assert_true(sum > 0 && sum <= 2 * ledger.all.packets);
		ledger_free(&ledger);
	}
	start(LEDGER_5_TUPLE, 16); /* for tear_down() */
}

/* Ports are those of the first fragment: later ones have bytes there that anyone may choose. */
static void fragments_choose_no_ports(void **unused)
{
	const struct ledger_flow *top[2];
	uint8_t frame[sizeof(udp)];
	char text[LEDGER_TEXT];

	start(LEDGER_5_TUPLE, 100);
	memcpy(frame, udp, sizeof(frame));
	frame[20] = 0x20; /* more fragments */
	add(frame, sizeof(frame), RINGTAP_RX, 0);
	add(frame, sizeof(frame), RINGTAP_RX, 0);
	for (unsigned i = 1; i <= 1000; i++) {
		frame[20] = (uint8_t)(0x20 | i >> 8); /* also such that overlap */
		frame[21] = (uint8_t)i;
		frame[34] = (uint8_t)i;
		frame[37] = (uint8_t)(i >> 4);
		add(frame, sizeof(frame), RINGTAP_RX, 0);
	}
	assert_int_equal(ledger.table.count, 2);
	assert_int_equal(ledger_top(&ledger, LEDGER_BY_PACKETS, true, top, 2), 2);
	assert_int_equal(top[0]->packets, 1000);
	assert_string_equal(
		ledger_text(&ledger, &top[0]->key, NULL, text), "10.0.0.1 > 192.0.2.1 UDP");
	assert_string_equal(
		ledger_text(&ledger, &top[1]->key, NULL, text), "10.0.0.1:1024 > 192.0.2.1:53 UDP");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(random_flows_do_not_hide_a_large_one),
		TEST(each_of_many_flows_is_exact),
		TEST(crafted_headers_count_once),
		TEST(fragments_choose_no_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
