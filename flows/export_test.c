/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that collectors receive, read back by hand, with a clock that is set. Programs of others
 * read it in e2e/flows/test_collectors.py. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/numbers.h"
#include "common/now.h"
#include "common/test_now.h"
#include "export.h"

static int listener = -1, peer = -1;
static struct collector *to; /* closed at the end of a test */
static char text[64];

/* A socket of loopback; text becomes its address. */
static void listen_at(int type)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	listener = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	snprintf(text, sizeof(text), "%s127.0.0.1:%u", type == SOCK_STREAM ? "tcp:" : "",
		ntohs(a.sin_port));
}

static int open_at(struct collector *c, const char *address)
{
	to = c;
	return collector_open(c, "flows", "ipfix", address, "4739", true);
}

static int tear_down(void **state)
{
	if (to)
		collector_close(to);
	to = NULL;
	if (listener >= 0)
		close(listener);
	if (peer >= 0)
		close(peer);
	listener = peer = -1;
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	return 0;
}

static uint64_t number(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

/* The next datagram; 0: there is none. */
static size_t receive(uint8_t p[2048])
{
	ssize_t n = recv(listener, p, 2048, MSG_DONTWAIT);

	return n < 0 ? 0 : (size_t)n;
}

/* ---- collectors ---- */

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		int ret;
		unsigned port;
	} cases[] = {
		{"no-such-host.invalid", -EHOSTUNREACH, 0},
		{"127.0.0.1", 0, 4739},
		{"127.0.0.1:99", 0, 99},
		{"[::1]", 0, 4739},
		{"[::1]:99", 0, 99},
		{"::1", 0, 4739},
		{"", -EINVAL, 0},
		{":99", -EINVAL, 0},
		{"127.0.0.1:", -EINVAL, 0},
		{"127.0.0.1:0", -EINVAL, 0},
		{"127.0.0.1:65536", -EINVAL, 0},
		{"127.0.0.1:9x", -EINVAL, 0},
		{"[::1", -EINVAL, 0},
		{"[::1]99", -EINVAL, 0},
		{"[]:99", -EINVAL, 0},
	};
	struct collector c;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(open_at(&c, cases[i].text), cases[i].ret);
		if (!cases[i].ret) /* at the same place in both families */
			assert_int_equal(
				ntohs(((struct sockaddr_in *)&c.address)->sin_port), cases[i].port);
		collector_close(&c);
	}
}

static void test_datagrams_without_a_listener_are_counted(void **state)
{
	struct wire m = {.len = 100};
	struct collector c;

	listen_at(SOCK_DGRAM);
	assert_int_equal(open_at(&c, text), 0);
	close(listener);
	listener = -1;
	for (int i = 0; i < 4; i++)
		collector_send(&c, &m);
	/* The answer to one comes with the next; the last one is not known to be lost. */
	assert_int_equal(c.sent, 1);
	assert_int_equal(c.not_sent, 3);
}

/* A peer that does not read: messages are sent whole or not at all, and the sender never waits. */
static void test_a_slow_peer_of_tcp_gets_whole_messages(void **state)
{
	struct wire m = {.len = WIRE_BYTES};
	uint8_t byte[WIRE_BYTES];
	struct collector c;
	uint64_t sent;
	int small = 4096;

	listen_at(SOCK_STREAM);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(open_at(&c, text), 0);
	setsockopt(c.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	peer = accept(listener, NULL, NULL);
	for (int i = 0; i < 1000; i++) {
		memset(m.p, i, sizeof(m.p));
		collector_send(&c, &m);
	}
	assert_true(c.not_sent > 0);
	assert_int_equal(c.sent + c.not_sent + (c.rest_len > 0), 1000);
	sent = c.sent + (c.rest_len > 0);
	for (uint64_t n = 0; n < sent; n++) {
		size_t len = 0;

		while (len < WIRE_BYTES) {
			ssize_t got = recv(peer, byte + len, WIRE_BYTES - len, MSG_DONTWAIT);

			if (got > 0)
				len += (size_t)got;
			else
				collector_drain(&c, 1);
		}
		for (size_t i = 1; i < WIRE_BYTES; i++)
			assert_int_equal(byte[i], byte[0]);
	}
	assert_int_equal(c.sent, sent);
}

static void test_tcp_connects_again(void **state)
{
	struct wire m = {.len = 100};
	struct collector c;

	listen_at(SOCK_STREAM);
	assert_int_equal(open_at(&c, text), 0);
	peer = accept(listener, NULL, NULL);
	close(peer);
	for (int i = 0; i < 1000 && c.fd >= 0; i++)
		collector_send(&c, &m);
	assert_int_equal(c.fd, -1);
	collector_send(&c, &m);
	assert_int_equal(c.connections, 1);
	test_now_pass(10 * NS_PER_S);
	while (!collector_ready(&c))
		;
	assert_int_equal(c.connections, 2);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
}

static void test_tcp_is_refused(void **state)
{
	struct collector c;

	listen_at(SOCK_STREAM);
	close(listener);
	listener = -1;
	assert_int_equal(open_at(&c, text), -ECONNREFUSED);
}

/* ---- sFlow ---- */

static struct export_port port(void)
{
	return (struct export_port){
		.index = 3, .seen = 1000, .lost = 2, .info = {.name = "p0", .link_mbps = 10000}};
}

/* Packets and counters of the datagrams that have come. */
static void read_sflow(unsigned *packets, unsigned *counters, uint64_t *scaled)
{
	uint8_t p[2048];
	size_t len;

	*packets = *counters = 0;
	*scaled = 0;
	while ((len = receive(p))) {
		size_t at = 28;

		assert_true(len <= WIRE_BYTES);
		assert_int_equal(number(p, 4), 5);
		for (uint64_t left = number(p + 24, 4); left; left--) {
			if (number(p + at, 4) == 1) {
				*scaled += number(p + at + 16, 4);
				assert_int_equal(number(p + at + 8, 4), *packets + 1);
				++*packets;
			} else {
				++*counters;
			}
			at += 8 + number(p + at + 4, 4);
		}
		assert_int_equal(at, len);
	}
}

static void test_sflow_sends_what_a_collector_can_take(void **state)
{
	const uint8_t data[200] = {0};
	const struct ringtap_packet p = {
		.data = data, .caplen = 127, .length = 1500, .direction = RINGTAP_RX};
	struct export_port one = port();
	struct sflow s = {.start_ns = 0};
	unsigned packets, counters;
	uint64_t scaled;

	listen_at(SOCK_DGRAM);
	assert_int_equal(open_at(&s.to, text), 0);
	sflow_begin(&s, 7, 4);
	for (unsigned i = 0; i < 100; i++)
		sflow_packet(&s, &one, &p);
	sflow_flush(&s);
	read_sflow(&packets, &counters, &scaled);
	assert_int_equal(packets, 100);
	assert_int_equal(scaled, 400);
	assert_int_equal(s.to.sent, 15); /* 7 samples of 192 bytes in each */
	/* A burst: fewer and fewer are sent, and each counts for more. */
	for (unsigned i = 0; i < 100000; i++) {
		sflow_packet(&s, &one, &p);
		if (s.packets > 1000)
			break;
	}
	assert_true(s.thin >= 64);
	/* The quiet after it. */
	for (unsigned i = 0; i < 40; i++) {
		test_now_pass(NS_PER_S / 10);
		sflow_pace(&s);
	}
	assert_int_equal(s.thin, 1);
}

static void test_sflow_counters(void **state)
{
	const struct export_counters c = {.in_packets = 5000000000,
		.in_bytes = 6000000000000,
		.in_discards = 7,
		.out_bytes = EXPORT_UNKNOWN,
		.out_errors = 9};
	struct export_port one = port();
	struct sflow s = {.start_ns = 0};
	uint8_t p[2048];

	listen_at(SOCK_DGRAM);
	assert_int_equal(open_at(&s.to, text), 0);
	sflow_begin(&s, 7, 4);
	assert_true(sflow_counters_due(&s));
	assert_false(sflow_counters_due(&s));
	test_now_pass(SFLOW_COUNTERS_NS);
	assert_true(sflow_counters_due(&s));
	sflow_counters(&s, &one, &c);
	sflow_flush(&s);
	assert_int_equal(receive(p), 28 + 8 + 12 + 8 + 88);
	assert_int_equal(number(p + 8, 4), INADDR_LOOPBACK);
	assert_int_equal(number(p + 12, 4), 7);
	assert_int_equal(number(p + 56, 4), 3);             /* ifIndex */
	assert_int_equal(number(p + 64, 8), 10000000000);   /* bit/s */
	assert_int_equal(number(p + 80, 8), 6000000000000); /* octets */
	assert_int_equal(number(p + 88, 4), 5000000000 % (1ull << 32));
	assert_int_equal(number(p + 92, 4), UINT32_MAX); /* multicasts: unknown */
	assert_int_equal(number(p + 100, 4), 7);
	assert_true(number(p + 112, 8) == UINT64_MAX);
}

/* ---- IPFIX ---- */

static struct ledger ledger;
static struct ipfix ipfix;

static void begin_ipfix(uint32_t most)
{
	memset(&ipfix, 0, sizeof(ipfix));
	listen_at(SOCK_DGRAM);
	assert_int_equal(open_at(&ipfix.to, text), 0);
	assert_int_equal(ledger_init(&ledger, LEDGER_5_TUPLE, most, false), 0);
	assert_int_equal(ledger_report(&ledger), 0);
	ipfix.active_ns = 60 * NS_PER_S;
	ipfix.idle_ns = 15 * NS_PER_S;
	ipfix_begin(&ipfix, 7, 1);
}

static int end_ipfix(void **state)
{
	ledger_free(&ledger);
	return tear_down(state);
}

/* A TCP packet of that flow, now; padded to 60 bytes, of which IP has 41. */
static void add(uint8_t flow, uint8_t tcp_flags)
{
	uint8_t frame[60] = {[12] = 8, [14] = 0x45, [17] = 41, [23] = 6, [29] = flow, [46] = 0x50};
	const struct ringtap_packet p = {.data = frame,
		.caplen = 60,
		.length = 60,
		.direction = RINGTAP_RX,
		.ns = rt_now_ns(CLOCK_REALTIME)};

	frame[47] = tcp_flags;
	assert_true(ledger_add(&ledger, &p, LINKTYPE_ETHERNET));
}

/* Idle ones, of a packet each. */
static void add_flows(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint8_t frame[60] = {[12] = 8, [14] = 0x45, [17] = 41, [23] = 17};
		const struct ringtap_packet p = {
			.data = frame, .caplen = 60, .length = 60, .ns = 1};

		frame[28] = (uint8_t)(i >> 8);
		frame[29] = (uint8_t)i;
		ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
	}
}

static void turn(bool final)
{
	struct export_port one = port();

	ipfix_turn(&ipfix, &ledger, &one, 1, rt_now_ns(CLOCK_REALTIME), final);
}

#define RECORD 67 /* bytes of a flow of IPv4 */
struct record {
	uint64_t packets, octets;
	uint8_t reason, flow;
};

/* The records of IPv4 of messages that have come; checks sequence numbers. */
static unsigned read_ipfix(struct record *r, unsigned max)
{
	unsigned n = 0;
	uint8_t p[2048];
	size_t len;

	while ((len = receive(p))) {
		assert_int_equal(number(p, 2), 10);
		assert_int_equal(number(p + 2, 2), len);
		assert_int_equal(number(p + 12, 4), 7);
		for (size_t at = 16; at < len; at += number(p + at + 2, 2)) {
			const uint8_t *one = p + at + 4, *end = p + at + number(p + at + 2, 2);

			for (; number(p + at, 2) == 256 && one + RECORD <= end; one += RECORD) {
				assert_true(n < max);
				r[n++] = (struct record){.octets = number(one + 15, 8),
					.packets = number(one + 33, 8),
					.reason = one[65],
					.flow = one[3]};
			}
		}
	}
	return n;
}

static void test_timeouts_and_ends(void **state)
{
	struct record r[4];

	begin_ipfix(100);
	add(1, 0);
	add(2, 0);
	turn(false);
	assert_int_equal(read_ipfix(r, 4), 0); /* only templates */
	for (int s = 0; s < 59; s++) {
		test_now_pass(NS_PER_S);
		add(1, 16);
		turn(false);
		if (s == 14) { /* the second one is idle */
			assert_int_equal(read_ipfix(r, 4), 1);
			assert_int_equal(r[0].reason, 1);
			assert_int_equal(r[0].flow, 2);
			assert_int_equal(r[0].packets, 1);
			assert_int_equal(r[0].octets, 41); /* without padding */
		} else {
			assert_int_equal(read_ipfix(r, 4), 0);
		}
	}
	test_now_pass(NS_PER_S);
	turn(false);
	assert_int_equal(read_ipfix(r, 4), 1);
	assert_int_equal(r[0].reason, 2);
	assert_int_equal(r[0].packets, 60);
	/* Reported packets are not reported again; FIN ends a flow. */
	add(1, 17);
	test_now_pass(NS_PER_S);
	turn(false);
	assert_int_equal(read_ipfix(r, 4), 1);
	assert_int_equal(r[0].reason, 3);
	assert_int_equal(r[0].packets, 1);
	add(2, 0);
	turn(true);
	assert_int_equal(read_ipfix(r, 4), 1);
	assert_int_equal(r[0].reason, 4);
	turn(true);
	assert_int_equal(read_ipfix(r, 4), 0);
}

static void begin_slow_tcp(void)
{
	int small = 4096;

	close(listener);
	collector_close(&ipfix.to);
	listen_at(SOCK_STREAM);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(open_at(&ipfix.to, text), 0);
	setsockopt(ipfix.to.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	peer = accept(listener, NULL, NULL);
}

/* Flows of IPv4 in the next message of TCP, while time passes. */
static uint64_t read_slowly(void)
{
	static uint8_t p[65536];
	size_t len = 0, want = 4;
	uint64_t flows = 0;

	while (len < want) {
		ssize_t n = recv(peer, p + len, want - len, MSG_DONTWAIT);

		len += n > 0 ? (size_t)n : 0;
		if (len == 4)
			want = number(p + 2, 2);
		test_now_pass(NS_PER_S / 50);
		turn(false);
	}
	for (size_t at = 16; at < want; at += number(p + at + 2, 2))
		if (number(p + at, 2) == 256)
			flows += (number(p + at + 2, 2) - 4) / RECORD;
	return flows;
}

/* A collector of TCP that does not read: flows stay in the ledger, and none is lost. */
static void test_flows_wait_for_a_slow_collector(void **state)
{
	uint64_t flows = 0;

	begin_ipfix(1u << 17);
	begin_slow_tcp();
	add_flows(5000);
	for (unsigned i = 0; i < 200; i++) {
		test_now_pass(NS_PER_S / 50);
		turn(false);
	}
	assert_true(ipfix.to.rest_len && ipfix.records < 5000);
	assert_int_equal(ipfix.to.not_sent, 0);
	while (flows < 5000)
		flows += read_slowly();
	assert_int_equal(flows, 5000);
	assert_int_equal(ipfix.to.not_sent, 0);
}

/* At the end it waits for a moment, not for each flow. */
static void test_the_end_waits_for_a_moment(void **state)
{
	uint64_t begin;

	begin_ipfix(1u << 17);
	begin_slow_tcp();
	add_flows(5000);
	begin = rt_now_ns(CLOCK_MONOTONIC);
	turn(true);
	assert_true(rt_now_ns(CLOCK_MONOTONIC) - begin < 10 * NS_PER_S);
	assert_int_equal(ipfix.records, 5000);
	assert_true(ipfix.to.not_sent > 0);
}

static void forgotten(void *ctx, const struct ledger_flow *f)
{
	ipfix_forgotten(&ipfix, &ledger, NULL, 0, f);
}

static void test_forgotten_flows_are_reported(void **state)
{
	struct record r[256];
	uint64_t packets = 0;
	bool no_room = false;

	begin_ipfix(16);
	ledger.forgotten = forgotten;
	turn(false);
	for (unsigned i = 0; i < 200; i++)
		add((uint8_t)i, 0);
	turn(true);
	for (unsigned i = 0, n = read_ipfix(r, 256); i < n; i++) {
		packets += r[i].packets;
		no_room |= r[i].reason == 5;
	}
	assert_int_equal(packets, 200);
	assert_true(no_room && ledger.evicted > 0);
}

/* Templates come first, and again; sequence numbers count the records before. */
static void test_templates_come_again(void **state)
{
	uint8_t p[2048];
	uint64_t sequence;

	begin_ipfix(100);
	add(1, 0);
	turn(false);
	assert_true(receive(p) > 0);
	assert_int_equal(number(p + 16, 2), 2); /* a set of templates */
	assert_int_equal(number(p + 8, 4), 0);
	test_now_pass(NS_PER_S);
	turn(false);
	assert_int_equal(receive(p), 0);
	test_now_pass(IPFIX_TEMPLATES_NS);
	turn(false);
	assert_true(receive(p) > 0);
	assert_int_equal(number(p + 16, 2), 2);
	sequence = number(p + 8, 4);
	assert_int_equal(sequence, 3); /* sampling in two forms, and a port */
	assert_true(receive(p) > 0);   /* the flow, idle */
	assert_int_equal(number(p + 8, 4), 2 * sequence);
}

static void test_a_second_has_a_bound(void **state)
{
	begin_ipfix(1u << 17);
	turn(false);
	add_flows(5000);
	test_now_pass(NS_PER_S);
	turn(false);
	assert_int_equal(ipfix.records, IPFIX_PER_SECOND / 50);
	turn(false);
	assert_int_equal(ipfix.records, IPFIX_PER_SECOND / 50);
	test_now_pass(NS_PER_S / 50);
	turn(false);
	assert_int_equal(ipfix.records, 2 * IPFIX_PER_SECOND / 50);
	turn(true);
	assert_int_equal(ipfix.records, 5000);
}

int main(void)
{
#define TEST(f)       cmocka_unit_test_teardown(f, tear_down)
#define IPFIX_TEST(f) cmocka_unit_test_teardown(f, end_ipfix)
	const struct CMUnitTest tests[] = {
		TEST(test_addresses),
		TEST(test_datagrams_without_a_listener_are_counted),
		TEST(test_a_slow_peer_of_tcp_gets_whole_messages),
		TEST(test_tcp_connects_again),
		TEST(test_tcp_is_refused),
		TEST(test_sflow_sends_what_a_collector_can_take),
		TEST(test_sflow_counters),
		IPFIX_TEST(test_timeouts_and_ends),
		IPFIX_TEST(test_flows_wait_for_a_slow_collector),
		IPFIX_TEST(test_the_end_waits_for_a_moment),
		IPFIX_TEST(test_forgotten_flows_are_reported),
		IPFIX_TEST(test_templates_come_again),
		IPFIX_TEST(test_a_second_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
