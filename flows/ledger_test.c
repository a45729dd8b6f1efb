/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets by flow and otherwise: keys, tunnels, memory and ways. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "view.h"

static struct ledger ledger;

static void start(enum ledger_view view, uint32_t most, bool ids)
{
	ledger_free(&ledger);
	assert_int_equal(ledger_init(&ledger, view, most, ids), 0);
}

static int tear_down(void **state)
{
	ledger_free(&ledger);
	memset(&ledger, 0, sizeof(ledger));
	return 0;
}

/* ---- packets ---- */

struct frame {
	uint8_t p[512];
	uint32_t len;
};

static void put(struct frame *f, const void *bytes, uint32_t n)
{
	memcpy(f->p + f->len, bytes, n);
	f->len += n;
}

static void put_ether(struct frame *f, uint16_t type)
{
	const uint8_t head[] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, (uint8_t)(type >> 8), (uint8_t)type};

	put(f, head, sizeof(head));
}

/* Total length 0: that of the frame. */
static void put_ipv4(struct frame *f, uint8_t protocol, uint8_t from, uint8_t to)
{
	const uint8_t head[] = {
		0x45, 46 << 2, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to};

	put(f, head, sizeof(head));
}

static void put_ports(struct frame *f, uint16_t from, uint16_t to)
{
	const uint8_t head[] = {
		(uint8_t)(from >> 8), (uint8_t)from, (uint8_t)(to >> 8), (uint8_t)to, 0, 0, 0, 0};

	put(f, head, sizeof(head));
}

static struct frame udp(uint8_t from, uint8_t to)
{
	struct frame f = {.len = 0};

	put_ether(&f, 0x0800);
	put_ipv4(&f, 17, from, to);
	put_ports(&f, 4242, 53);
	return f;
}

static struct frame tcp(uint8_t from, uint8_t to, uint8_t flags)
{
	const uint8_t rest[] = {0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0};
	struct frame f = {.len = 0};

	put_ether(&f, 0x0800);
	put_ipv4(&f, 6, from, to);
	put_ports(&f, from, to);
	put(&f, rest, sizeof(rest));
	return f;
}

static void add(const struct frame *f, uint32_t length, uint8_t direction, uint64_t id, uint64_t ns)
{
	const struct ringtap_packet p = {.data = f->p,
		.caplen = f->len,
		.length = length,
		.direction = direction,
		.interface = direction == RINGTAP_TX,
		.queue = 3,
		.id = id,
		.ns = ns};

	ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
}

static const struct ledger_flow *first(void)
{
	const struct ledger_flow *top;

	assert_int_equal(ledger_top(&ledger, LEDGER_BY_PACKETS, true, &top, 1), 1);
	return top;
}

static const char *name(void)
{
	static char text[LEDGER_TEXT];

	return ledger_text(&ledger, &first()->key, NULL, text);
}

/* ---- views ---- */

static void entries_are_what_packets_have_in_common(void **state)
{
	static const struct {
		enum ledger_view view;
		const char *name;
		uint64_t packets; /* three are sent, and one comes back */
	} cases[] = {
		{LEDGER_5_TUPLE, "10.0.0.1:4242 > 10.0.0.2:53 UDP", 3},
		{LEDGER_PAIR, "10.0.0.1 <> 10.0.0.2", 4},
		{LEDGER_PORT, "UDP 53", 4},
		{LEDGER_PROTOCOL, "IPv4 UDP", 4},
		{LEDGER_VLAN, "no VLAN", 4},
		{LEDGER_DSCP, "DSCP 46", 4},
		{LEDGER_VNI, "no tunnel", 4},
		{LEDGER_INNER, "10.0.0.1:4242 > 10.0.0.2:53 UDP", 3},
		{LEDGER_MAC, "02:00:00:00:00:02 > 02:00:00:00:00:01", 4},
	};
	const struct frame there = udp(1, 2), back = udp(2, 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(cases[i].view, 100, false);
		add(&there, 100, RINGTAP_RX, 0, 5);
		add(&there, 200, RINGTAP_RX, 0, 6);
		add(&there, 300, RINGTAP_RX, 0, 9);
		add(&back, 60, RINGTAP_RX, 0, 7);
		assert_string_equal(name(), cases[i].name);
		assert_int_equal(first()->packets, cases[i].packets);
		assert_int_equal(first()->bytes, cases[i].packets == 3 ? 600 : 660);
		assert_int_equal(first()->first_ns, 5);
		assert_int_equal(first()->last_ns, 9);
		assert_int_equal(ledger.all.packets, 4);
	}
}

static void a_packet_is_of_two_hosts(void **state)
{
	const struct frame f = udp(1, 2), g = udp(1, 3);

	start(LEDGER_HOST, 100, false);
	add(&f, 100, RINGTAP_RX, 0, 1);
	add(&g, 100, RINGTAP_RX, 0, 1);
	assert_int_equal(ledger.table.count, 3);
	assert_string_equal(name(), "10.0.0.1");
	assert_int_equal(first()->packets, 2);
	assert_int_equal(ledger.all.packets, 2);
}

/* Also one that has no addresses. */
static void a_packet_of_a_host_to_itself_counts_once(void **state)
{
	const struct frame f = udp(1, 1);
	const struct frame cut = {.len = 10};

	start(LEDGER_HOST, 100, false);
	for (int i = 0; i < 3; i++)
		add(&f, 100, RINGTAP_RX, 0, 1);
	assert_int_equal(first()->packets, 3);
	start(LEDGER_HOST, 100, false);
	add(&cut, 100, RINGTAP_RX, 0, 1);
	assert_int_equal(first()->packets, 1);
	assert_int_equal(ledger.all.packets, 1);
}

/* ---- tunnels ---- */

static void put_vxlan(struct frame *f, uint32_t vni)
{
	const uint8_t head[] = {
		8, 0, 0, 0, (uint8_t)(vni >> 16), (uint8_t)(vni >> 8), (uint8_t)vni, 0};

	put_ports(f, 999, 4789);
	put(f, head, sizeof(head));
}

static void tunnels_have_numbers_and_inner_flows(void **state)
{
	static const uint8_t geneve[] = {1, 0, 0x65, 0x58, 0, 1, 2, 0, 9, 9, 9, 9},
			     gre[] = {0x20, 0, 0x08, 0, 0, 0, 0, 77};
	const struct frame inner = udp(1, 2);
	struct {
		struct frame f;
		const char *vni, *inner;
	} cases[3] = {
		{{.len = 0}, "VNI 5000", "10.0.0.1:4242 > 10.0.0.2:53 UDP, VNI 5000"},
		{{.len = 0}, "VNI 258", "10.0.0.1:4242 > 10.0.0.2:53 UDP, VNI 258"},
		{{.len = 0}, "VNI 77", "10.0.0.1:4242 > 10.0.0.2:53 UDP, VNI 77"},
	};

	for (int i = 0; i < 3; i++) {
		put_ether(&cases[i].f, 0x0800);
		put_ipv4(&cases[i].f, i == 2 ? 47 : 17, 8, 9);
	}
	put_vxlan(&cases[0].f, 5000);
	put(&cases[0].f, inner.p, inner.len);
	put_ports(&cases[1].f, 999, 6081);
	put(&cases[1].f, geneve, sizeof(geneve));
	put(&cases[1].f, inner.p, inner.len);
	put(&cases[2].f, gre, sizeof(gre));
	put(&cases[2].f, inner.p + 14, inner.len - 14);
	for (int i = 0; i < 3; i++) {
		start(LEDGER_VNI, 100, false);
		add(&cases[i].f, 200, RINGTAP_RX, 0, 1);
		assert_string_equal(name(), cases[i].vni);
		start(LEDGER_INNER, 100, false);
		add(&cases[i].f, 200, RINGTAP_RX, 0, 1);
		assert_string_equal(name(), cases[i].inner);
		start(LEDGER_5_TUPLE, 100, false);
		add(&cases[i].f, 200, RINGTAP_RX, 0, 1);
		assert_non_null(strstr(name(), "10.0.0.8"));
	}
}

static void tunnels_in_tunnels_have_a_bound(void **state)
{
	struct frame f = {.len = 0};
	const struct frame inner = udp(1, 2);
	uint32_t vni;
	struct headers h;

	for (uint32_t i = 1; i <= 6; i++) {
		put_ether(&f, 0x0800);
		put_ipv4(&f, 17, (uint8_t)(10 + i), 9);
		put_vxlan(&f, i);
	}
	put(&f, inner.p, inner.len);
	assert_int_equal(headers_inner(&h, &vni, LINKTYPE_ETHERNET, f.p, f.len), TUNNELS_MAX);
	assert_int_equal(vni, TUNNELS_MAX);
	assert_int_equal(h.src[3], 10 + TUNNELS_MAX + 1);
}

/* Each prefix in memory of its own, so that a sanitizer finds reads behind it. */
static void packets_may_be_cut_anywhere(void **state)
{
	struct frame f = {.len = 0};
	const struct frame inner = tcp(1, 2, 2);

	put_ether(&f, 0x0800);
	put_ipv4(&f, 17, 8, 9);
	put_vxlan(&f, 3);
	put(&f, inner.p, inner.len);
	for (enum ledger_view view = LEDGER_5_TUPLE; view <= LEDGER_MAC; view++) {
		start(view, 1000, false);
		for (uint32_t len = 0; len <= f.len; len++) {
			uint8_t *copy = malloc(len ? len : 1);
			const struct ringtap_packet p = {.data = memcpy(copy, f.p, len),
				.caplen = len,
				.length = 1000,
				.direction = RINGTAP_RX};
			char text[LEDGER_TEXT];

			ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
			assert_true(strlen(ledger_text(&ledger, &first()->key, NULL, text)) > 3);
			free(copy);
		}
		assert_int_equal(ledger.all.packets, f.len + 1);
	}
}

/* ---- ways ---- */

static void a_forwarded_packet_counts_once(void **state)
{
	const struct frame in = udp(1, 2), out = udp(7, 8); /* translated on its way */
	const struct ledger_flow *f;
	char text[LEDGER_TEXT];

	start(LEDGER_5_TUPLE, 100, true);
	for (uint64_t i = 1; i <= 100; i++) {
		add(&in, 100, RINGTAP_RX, i, 1000 * i);
		add(&out, 100, RINGTAP_TX, i, 1000 * i + 10 * i);
	}
	add(&out, 100, RINGTAP_TX, 0, 1000000);  /* made by the application */
	add(&out, 100, RINGTAP_TX, 99999, 1000); /* its reception is not known */
	assert_int_equal(ledger.table.count, 2);
	f = first();
	assert_int_equal(f->key.src[3], 1);
	assert_int_equal(f->packets, 100);
	assert_int_equal(f->sent, 100);
	assert_int_equal(f->own, 0);
	assert_int_equal(f->in.interface, 1);
	assert_int_equal(f->out.interface, 2);
	assert_int_equal(f->out.queue, 3);
	assert_true(fabs(ledger_quantile(f, 0.5) - 500) < 100);
	assert_true(fabs(ledger_quantile(f, 0.99) - 990) < 120);
	assert_int_equal(ledger_latency(f)->max, 1000);
	assert_true(ledger_became(&ledger, f, text));
	assert_string_equal(text, "10.0.0.7:4242 > 10.0.0.8:53 UDP");
}

/* Receptions do not take each other's places before they are sent. */
static void bursts_are_joined(void **state)
{
	const struct frame f = udp(1, 2);

	start(LEDGER_5_TUPLE, 100, true);
	for (uint64_t i = 0; i < 200000; i++) {
		const uint64_t n = 1 + i / 128 * 64 + i % 64;

		add(&f, 100, i / 64 % 2 ? RINGTAP_TX : RINGTAP_RX,
			n * n * UINT64_C(0x9e3779b97f4a7c15), i);
	}
	assert_int_equal(first()->packets, 100032);
	assert_int_equal(first()->own, 0);
}

/* Two ports forward to each other: no packet is sent by the port that has received it. */
static void a_way_is_of_one_packet(void **state)
{
	const struct frame frame = udp(1, 2);
	struct ringtap_packet p = {.data = frame.p, .caplen = frame.len, .length = 60};

	start(LEDGER_5_TUPLE, 100, true);
	for (uint64_t i = 1; i <= 4; i++) {
		p.id = i;
		p.ns = 10 * i;
		p.interface = p.queue = i % 2;
		p.direction = RINGTAP_RX;
		ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
		if (i == 4) /* not sent yet */
			break;
		p.interface = p.queue = !p.interface;
		p.direction = RINGTAP_TX;
		ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
	}
	assert_int_equal(first()->in.interface, 2);
	assert_int_equal(first()->in.queue, 1);
	assert_int_equal(first()->out.interface, 1);
	assert_int_equal(first()->out.queue, 0);
}

static void syns_are_answered_by_the_other_side(void **state)
{
	const struct frame syn = tcp(1, 2, 2), answer = tcp(2, 1, 18), rst = tcp(2, 1, 4);

	start(LEDGER_5_TUPLE, 100, false);
	for (int i = 0; i < 5; i++)
		add(&syn, 60, RINGTAP_RX, 0, 1);
	assert_int_equal(ledger_unanswered(&ledger, first()), 5);
	add(&answer, 60, RINGTAP_RX, 0, 1);
	add(&answer, 60, RINGTAP_RX, 0, 1);
	assert_int_equal(ledger_unanswered(&ledger, first()), 3);
	for (int i = 0; i < 9; i++)
		add(&rst, 60, RINGTAP_RX, 0, 1);
	assert_int_equal(first()->rst, 9);
	assert_int_equal(ledger_unanswered(&ledger, first()), 0);
}

/* A segment of TCP with these numbers. */
static void add_segment(uint8_t flags, uint32_t seq, uint32_t payload)
{
	struct frame f = tcp(1, 2, flags);
	const uint32_t length = 40 + payload;

	f.p[16] = (uint8_t)(length >> 8);
	f.p[17] = (uint8_t)length;
	for (int i = 0; i < 4; i++)
		f.p[38 + i] = (uint8_t)(seq >> (24 - 8 * i));
	add(&f, 14 + length, RINGTAP_RX, 0, 1);
}

static void assert_segments(uint64_t again, uint64_t late)
{
	assert_int_equal(ledger_segments_of(&ledger, first())->again, again);
	assert_int_equal(ledger_segments_of(&ledger, first())->late, late);
}

static void segments_come_again_or_late(void **state)
{
	const uint32_t start_seq = UINT32_MAX - 500; /* numbers wrap */

	start(LEDGER_5_TUPLE, 100, false);
	assert_int_equal(ledger_follow(&ledger), 0);
	add_segment(2, start_seq - 1, 0);
	add_segment(2, start_seq - 1, 0); /* the SYN again */
	assert_segments(1, 0);
	for (uint32_t i = 0; i < 4; i++)
		add_segment(16, start_seq + 100 * i, 100);
	add_segment(16, start_seq + 400, 0); /* ACK alone */
	assert_segments(1, 0);
	add_segment(16, start_seq + 200, 100);
	assert_segments(2, 0);
	add_segment(16, start_seq + 700, 100); /* 400 … 700 are missing */
	add_segment(16, start_seq + 500, 100);
	add_segment(16, start_seq + 400, 100);
	assert_segments(2, 2);
	add_segment(16, start_seq + 400, 100);
	add_segment(16, start_seq + 700, 200); /* a part of it is new */
	assert_segments(4, 2);
	add_segment(17, start_seq + 900, 0);
	add_segment(17, start_seq + 900, 0); /* the FIN again */
	assert_segments(5, 2);
	add_segment(2, 77, 0); /* another connection */
	add_segment(16, 78, 100);
	assert_segments(5, 2);
}

static void rates_are_those_of_an_interval(void **state)
{
	const struct frame f = udp(1, 2), g = udp(3, 2);
	const struct ledger_flow *top[2];

	start(LEDGER_5_TUPLE, 100, false);
	for (int i = 0; i < 9; i++)
		add(&f, 100, RINGTAP_RX, 0, 1);
	ledger_mark(&ledger);
	add(&g, 100, RINGTAP_RX, 0, 1);
	assert_int_equal(ledger.fresh, 1);
	assert_int_equal(ledger_top(&ledger, LEDGER_BY_PACKETS, false, top, 2), 1);
	assert_int_equal(top[0]->key.src[3], 3);
	assert_int_equal(ledger_recent(&ledger, top[0]), 1);
	assert_int_equal(ledger_top(&ledger, LEDGER_BY_PACKETS, true, top, 2), 2);
	assert_int_equal(top[0]->packets, 9);
	assert_int_equal(ledger_recent(&ledger, top[0]), 0);
}

/* ---- memory ---- */

static void memory_has_a_bound_and_a_guarantee(void **state)
{
	const struct frame large = udp(1, 2);
	const struct ledger_flow *top[64];
	struct frame f = udp(1, 2);
	unsigned n;

	start(LEDGER_5_TUPLE, 64, false);
	for (uint32_t i = 0; i < 20000; i++) {
		memcpy(f.p + 14 + 12, &i, 4);
		f.p[14 + 12] |= 128;
		add(&f, 60, RINGTAP_RX, 0, 1);
		if (i % 4 == 0)
			add(&large, 60, RINGTAP_RX, 0, 1);
	}
	assert_true(ledger.table.count <= 64);
	assert_true(ledger.evicted > 10000);
	assert_string_equal(name(), "10.0.0.1:4242 > 10.0.0.2:53 UDP");
	assert_true(first()->packets <= 5000);
	assert_true(first()->packets + ledger.error >= 5000);
	n = ledger_top(&ledger, LEDGER_BY_PACKETS, true, top, 64);
	for (unsigned i = 1; i < n; i++)
		assert_true(top[i]->packets <= top[i - 1]->packets);
}

/* An entry that comes back lacks no more than the error. */
static void what_was_forgotten_has_a_bound(void **state)
{
	const struct frame rare = udp(1, 2);
	const struct ledger_flow *top[64];
	struct frame f = udp(1, 2);
	unsigned n, i = 0;

	start(LEDGER_5_TUPLE, 64, false);
	for (; i < 3; i++)
		add(&rare, 60, RINGTAP_RX, 0, 1);
	for (i = 0; i < 1000; i++) {
		f.p[14 + 13] = (uint8_t)(1 + i / 10);
		add(&f, 60, RINGTAP_RX, 0, 1);
	}
	add(&rare, 60, RINGTAP_RX, 0, 1);
	n = ledger_top(&ledger, LEDGER_BY_PACKETS, true, top, 64);
	for (i = 0; i < n && memcmp(top[i]->key.src, rare.p + 14 + 12, 4); i++)
		;
	assert_in_range(i, 0, n - 1);
	assert_int_equal(top[i]->packets, 1); /* it was forgotten */
	assert_true(top[i]->packets + ledger.error >= 4);
}

/* The same where all of them are large. */
static void what_was_forgotten_of_large_entries_has_a_bound(void **state)
{
	struct frame f = udp(1, 2);

	start(LEDGER_5_TUPLE, 16, false);
	for (unsigned i = 0; i < 16 * 20000; i++) {
		f.p[14 + 13] = (uint8_t)(i % 16);
		add(&f, 60, RINGTAP_RX, 0, 1);
	}
	f.p[14 + 13] = 16;
	for (unsigned i = 0; i < 2; i++)
		add(&f, 60, RINGTAP_RX, 0, 1);
	assert_int_equal(ledger.evicted, 16);
	assert_in_range(ledger.error, 20000, 20200);
}

/* A join of ids after indices have changed would name another flow, or nothing. */
static void ways_survive_forgetting(void **state)
{
	struct frame f = udp(1, 2);

	start(LEDGER_5_TUPLE, 16, true);
	for (uint64_t i = 1; i < 5000; i++) {
		uint32_t from = (uint32_t)i;

		memcpy(f.p + 14 + 12, &from, 4);
		add(&f, 60, RINGTAP_RX, i, i);
		add(&f, 60, RINGTAP_TX, i / 3 + 1, i);
	}
	assert_true(ledger.table.count <= 16);
}

static void n_goes_by_the_rate(void **state)
{
	assert_int_equal(flows_sample_of(0), 1);
	assert_int_equal(flows_sample_of(500e3), 1);
	assert_int_equal(flows_sample_of(501e3), 2);
	assert_int_equal(flows_sample_of(15e6), 32);
	assert_int_equal(flows_sample_of(1e300), 16777216);
}

static void an_n_that_the_rate_has_outgrown_is_found(void **state)
{
	struct flows_request r = {.sample = 4, .by_rate = true};

	assert_int_equal(flows_sample_now(&r, 500000, 1), 0);
	assert_int_equal(flows_sample_now(&r, 1000000, 1), 0); /* 8 */
	assert_int_equal(flows_sample_now(&r, 1500000, 1), 16);
	assert_int_equal(flows_sample_now(&r, 0, 1), 0); /* 1 */
	r.sample = 8;
	assert_int_equal(flows_sample_now(&r, 60000, 1), 1);
	r.by_rate = false; /* --sample 8 */
	assert_int_equal(flows_sample_now(&r, 60000, 1), 0);
	assert_int_equal(flows_sample_now(&r, 9000000, 1), 0);
}

#define TEST(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entries_are_what_packets_have_in_common),
		TEST(a_packet_is_of_two_hosts),
		TEST(a_packet_of_a_host_to_itself_counts_once),
		TEST(tunnels_have_numbers_and_inner_flows),
		TEST(tunnels_in_tunnels_have_a_bound),
		TEST(packets_may_be_cut_anywhere),
		TEST(a_forwarded_packet_counts_once),
		TEST(bursts_are_joined),
		TEST(a_way_is_of_one_packet),
		TEST(syns_are_answered_by_the_other_side),
		TEST(segments_come_again_or_late),
		TEST(rates_are_those_of_an_interval),
		TEST(memory_has_a_bound_and_a_guarantee),
		TEST(what_was_forgotten_has_a_bound),
		TEST(what_was_forgotten_of_large_entries_has_a_bound),
		TEST(ways_survive_forgetting),
		TEST(n_goes_by_the_rate),
		TEST(an_n_that_the_rate_has_outgrown_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
