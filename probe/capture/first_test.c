/* SPDX-License-Identifier: BSD-3-Clause */
/* The first bytes or packets of each flow, compared with a table without bounds; and a session's
 * counters. Frames are built from flows, so a test has its expected result without a parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "epb.h"
#include "first.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define ROOM  600u
#define BURST RT_FIRST_BURST

/* ---- frames of flows ---- */

enum { NONE = 0, TUNNELS = 4 };
#define FLOWS 5000u /* bound of their numbers */

struct frame {
	uint8_t bytes[ROOM];
	uint32_t len;
	unsigned flow; /* number; NONE: it has none */
};

static void put(struct frame *f, const void *bytes, uint32_t n)
{
	memcpy(f->bytes + f->len, bytes, n);
	f->len += n;
}

static void put_two(struct frame *f, unsigned v)
{
	put(f, (const uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_ethernet(struct frame *f, unsigned type, bool labels)
{
	put(f, "\2\2\2\2\2\2\3\3\3\3\3\3", 12);
	for (unsigned tags = test_random() % 3; tags; tags--) {
		put_two(f, tags > 1 ? 0x88a8 : 0x8100);
		put_two(f, test_random() & 0xffff);
	}
	put_two(f, labels ? 0x8847 : type);
	if (labels && test_random() % 2)
		put(f, "\0\1\0\7", 4);
	if (labels)
		put(f, "\0\2\1\7", 4); /* the last */
}

/* Addresses by number, for a payload of len bytes. */
static void put_ip(struct frame *f, bool six, unsigned protocol, unsigned pair, unsigned fragment,
	uint32_t len)
{
	uint8_t a[16] = {0xfd, [14] = 1, [15] = (uint8_t)pair}, b[16] = {0xfd, [15] = 9};
	uint8_t head[20] = {[6] = (uint8_t)(fragment >> 8),
		(uint8_t)fragment,
		64,
		(uint8_t)protocol,
		[12] = 10,
		0,
		0,
		(uint8_t)pair,
		10,
		0,
		9,
		9};
	unsigned options = six ? 0 : 4 * (test_random() % 4);
	unsigned extension = six && test_random() % 2 ? 16 : 0;

	if (!six) {
		head[0] = (uint8_t)(0x45 + options / 4);
		head[2] = (uint8_t)((20 + options + len) >> 8);
		head[3] = (uint8_t)(20 + options + len);
		put(f, head, 20);
		put(f, "\1\1\1\1\1\1\1\1\1\1\1\1", options);
		return;
	}
	len += extension + (fragment ? 8 : 0);
	put(f, "\x60\0\0\0", 4);
	put_two(f, len);
	put(f, (const uint8_t[]){(uint8_t)(extension ? 60 : fragment ? 44 : protocol), 64}, 2);
	put(f, a, 16);
	put(f, b, 16);
	if (extension) {
		put(f, (const uint8_t[]){(uint8_t)(fragment ? 44 : protocol), 1}, 2);
		put(f, b, 14);
	}
	if (!fragment)
		return;
	put(f, (const uint8_t[]){(uint8_t)protocol, 0}, 2);
	put_two(f, (fragment & 0x1fff) << 3 | (fragment & 0x2000 ? 1 : 0));
	put(f, "\0\0\0\7", 4);
}

static const uint8_t protocols[] = {6, 17, 132, 1};

/* A packet of IP, or of a part of one, and its number. */
static unsigned put_packet(struct frame *f, bool six, uint32_t len, unsigned pairs)
{
	const unsigned kind = test_random() % 4, pair = test_random() % pairs;
	const unsigned fragment = test_random() % 6   ? 0
				  : test_random() % 2 ? 0x2000
						      : 1 + test_random() % 0x3fff;
	unsigned ports = test_random() % 4;
	/* One is a port of tunnels; there is not a tunnel behind it. */
	const unsigned dst = ports == 3 ? 4789 : 1000 + ports;

	put_ip(f, six, protocols[kind], pair, fragment, len);
	memset(f->bytes + f->len, 0, len);
	f->len += 2;
	put_two(f, dst);
	f->len += len - 4;
	if (kind == 3 || fragment)
		ports = 4;
	return 1 + (((pair * 2 + six) * 4 + kind) * 5 + ports);
}

static const uint8_t outer[TUNNELS] = {17, 47, 17, 4};

/* A tunnel of IPv4 between two hosts, whose packet inside follows. Whether Ethernet begins there.
 */
static bool put_tunnel(struct frame *f, unsigned tunnel, bool six, uint32_t len)
{
	static const uint8_t vxlan[16] = {0x11, 0x22, 4789 >> 8, 4789 & 255, [8] = 8};
	static const uint8_t gtp[16] = {
		0x11, 0x22, 2152 >> 8, 2152 & 255, [8] = 0x34, 255, 0, 16, 0, 0, 0, 5};
	static const uint8_t extended[12] = {0, 0, 0, 0x85, 1, 0, 0, 0x85, 1, 9, 9, 0};
	static const unsigned lens[TUNNELS] = {16, 8, 28, 0};

	put_ip(f, false, outer[tunnel], 77, 0, lens[tunnel] + len);
	switch (tunnel) {
	case 0: put(f, vxlan, 16); return true;
	case 1:
		put(f, six ? "\x20\0\x86\xdd\0\0\0\5" : "\x20\0\x08\0\0\0\0\5",
			8); /* GRE, with a key */
		return false;
	case 2:
		put(f, gtp, 16);
		put(f, extended, 12);
		return false;
	default: return false;
	}
}

/* Numbers of flows of tunnels themselves are above those of all others. */
static void make_frame(struct frame *f, bool ethernet, bool inner, unsigned pairs)
{
	const unsigned tunnel = test_random() % (3 * TUNNELS);
	const uint32_t len = 8 + test_random() % 200;
	bool six = test_random() % 2;

	f->len = f->flow = 0;
	if (ethernet && test_random() % 16 == 0) {
		put_ethernet(f, 0x0806, false);
		memset(f->bytes + f->len, 1, 46);
		f->len += 46;
		return;
	}
	if (tunnel < TUNNELS) {
		struct frame in = {.len = 0};
		unsigned flow;

		six = six && tunnel != 3;
		if (tunnel == 0)
			put_ethernet(&in, six ? 0x86dd : 0x0800, false);
		flow = put_packet(&in, six, len, pairs);
		if (ethernet)
			put_ethernet(f, 0x0800, test_random() % 4 == 0);
		put_tunnel(f, tunnel, six, in.len);
		put(f, in.bytes, in.len);
		f->flow = inner ? flow : FLOWS - 1 - tunnel;
		return;
	}
	if (ethernet)
		put_ethernet(f, six ? 0x86dd : 0x0800, test_random() % 4 == 0);
	f->flow = put_packet(f, six, len, pairs);
}

/* ---- packets of frames ---- */

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM];
};

static struct packet *packets; /* three segments for each */

static void fill(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len, uint32_t all)
{
	memset(m, 0, sizeof(*m));
	m->buf_addr = m + 1;
	m->buf_len = ROOM;
	m->nb_segs = m->refcnt = 1;
	m->data_len = (uint16_t)len;
	m->pkt_len = all;
	memcpy(m->buf_addr, bytes, len);
}

/* In one to three segments. */
static struct rte_mbuf *make_packet(unsigned i, const struct frame *f, bool cut)
{
	struct rte_mbuf *m = &packets[3 * i].mbuf, *last = m;
	uint32_t at = cut ? test_random() % f->len : f->len;

	fill(m, f->bytes, at, f->len);
	for (unsigned k = 1; k < 3 && at < f->len; k++, m->nb_segs++) {
		uint32_t n = k == 2 ? f->len - at : test_random() % (f->len - at + 1);

		last->next = &packets[3 * i + k].mbuf;
		last = last->next;
		fill(last, f->bytes + at, n, n);
		at += n;
	}
	return m;
}

/* ---- the chooser ---- */

struct bench {
	struct rt_first *first;
	struct rt_seg_count counts[4];
	struct rt_ring ring;
	struct rt_tap tap;
	uint64_t used[FLOWS]; /* the truth: of all packets */
	uint64_t captured[FLOWS], exact[FLOWS], cut;
};

static struct bench *make(const struct rt_msg_first *m, bool raw)
{
	struct bench *b = aligned_alloc(128, (sizeof(*b) + 127) / 128 * 128);

	memset(b, 0, sizeof(*b));
	assert_int_equal(rt_first_make(&b->first, m), 0);
	b->first->secret =
		(struct secret){{UINT64_C(0x123456789abcdef), UINT64_C(0xfedcba987654321)}};
	for (unsigned i = 0; i < 2; i++) {
		b->first->state[i].flows = aligned_alloc(128, rt_first_bytes(m));
		memset(b->first->state[i].flows, 0, rt_first_bytes(m));
	}
	b->ring.counts = b->counts;
	b->tap = (struct rt_tap){.raw = raw, .if_index = 3};
	return b;
}

static void drop(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++)
		free(b->first->state[i].flows);
	free(b->first);
	free(b);
}

/* The exact rule. Whether a packet is captured. */
static bool is_first(struct bench *b, const struct frame *f)
{
	const struct rt_msg_first *m = &b->first->m;

	if (!f->flow)
		return true;
	if (b->used[f->flow] >= m->limit)
		return false;
	b->used[f->flow] += m->packets ? 1 : f->len;
	return true;
}

static void run(struct bench *b, unsigned bursts, unsigned pairs, bool exact)
{
	struct rte_mbuf *pkts[BURST], *chosen[BURST];

	for (unsigned i = 0; i < bursts; i++) {
		static struct frame frames[BURST];
		unsigned n = 1 + test_random() % BURST, at = 0, k;

		for (unsigned p = 0; p < n; p++) {
			make_frame(&frames[p], !b->tap.raw, b->first->m.inner, pairs);
			pkts[p] = make_packet(p, &frames[p], test_random() % 2);
		}
		k = rt_first_choose(b->first, &b->ring, &b->tap, pkts, n, chosen);
		for (unsigned p = 0; p < n; p++) {
			bool first = is_first(b, &frames[p]);
			bool captured = at < k && chosen[at] == pkts[p];

			at += captured;
			b->exact[frames[p].flow] += first;
			b->captured[frames[p].flow] += captured;
			b->cut += !captured;
			if (exact && captured != first)
				fail_msg("packet %u of burst %u, flow %u", p, i, frames[p].flow);
		}
		assert_int_equal(at, k);
	}
}

static void test_as_a_table_without_bounds(void **state)
{
	for (unsigned i = 0; i < 16; i++) {
		const struct rt_msg_first m = {.limit = i & 1 ? 5 : 1500,
			.packets = i & 1,
			.inner = i >> 1 & 1,
			.bits = 16};
		struct bench *b = make(&m, i >> 2 & 1);
		unsigned flows = 0;

		run(b, 2000, i >> 3 ? 10 : 100, true);
		for (unsigned k = 1; k < FLOWS; k++)
			flows += b->used[k] >= m.limit;
		assert_in_range(flows, 100, FLOWS);
		assert_in_range(b->cut, 100, 2000 * BURST);
		assert_int_equal(b->counts[0].evicted, 0);
		drop(b);
	}
}

/* Flows that are evicted begin again: of none is less than by the exact rule. */
static void test_a_small_table_captures_more_and_counts(void **state)
{
	const struct rt_msg_first m = {.limit = 3, .packets = 1, .bits = RT_FIRST_BITS_MIN};
	struct bench *b = make(&m, false);
	uint64_t more = 0;

	run(b, 4000, 100, false);
	for (unsigned k = 0; k < FLOWS; k++) {
		assert_in_range(b->captured[k], b->exact[k], UINT64_MAX);
		more += b->captured[k] - b->exact[k];
	}
	assert_in_range(more, 1000, UINT64_MAX);
	assert_true(b->cut > 1000);
	/* An evicted flow captures at most its limit again. */
	assert_in_range(b->counts[0].evicted, more / m.limit, UINT64_MAX);
	drop(b);
}

/* A flow that is seen again and again stays, whatever passes in between. */
static void test_the_flow_seen_last_is_evicted_last(void **state)
{
	const struct rt_msg_first m = {.limit = 1, .packets = 1, .bits = RT_FIRST_BITS_MIN};
	struct bench *b = make(&m, false);
	struct rte_mbuf *p, *chosen;
	struct frame f;

	for (unsigned i = 0; i < 20000; i++) {
		f = (struct frame){.len = 0};
		put(&f, "\2\2\2\2\2\2\3\3\3\3\3\3\x08\0", 14);
		put_ip(&f, false, 17, 200, 0, 40);
		put(&f,
			i % 2 ? (const uint8_t *)"\0\1"
			      : (const uint8_t[]){(uint8_t)(i >> 8), (uint8_t)i},
			2);
		put(&f, i % 2 ? "\0\1" : "\0\2", 2);
		f.len += 36;
		p = make_packet(0, &f, false);
		assert_int_equal(rt_first_choose(b->first, &b->ring, &b->tap, &p, 1, &chosen),
			i % 2 == 0 || i == 1);
	}
	assert_int_equal(b->counts[0].evicted, 10001 - 256);
	drop(b);
}

/* The same packets: own limits of interfaces, directions and threads. */
static void test_limits_are_of_a_thread_an_interface_and_a_direction(void **state)
{
	const struct rt_msg_first m = {.limit = 4, .packets = 1, .bits = 10};
	struct bench *b = make(&m, false);
	struct rte_mbuf *pkts[10], *chosen[10];
	struct frame f;

	do
		make_frame(&f, true, false, 3);
	while (!f.flow);
	for (unsigned i = 0; i < 10; i++)
		pkts[i] = make_packet(i, &f, false);
	for (unsigned i = 0; i < 8; i++) {
		b->tap.if_index = i & 1;
		b->tap.direction = i >> 1 & 1;
		b->ring.index = (uint8_t)(i >> 2);
		assert_int_equal(rt_first_choose(b->first, &b->ring, &b->tap, pkts, 10, chosen), 4);
		assert_int_equal(rt_first_choose(b->first, &b->ring, &b->tap, pkts, 10, chosen), 0);
	}
	drop(b);
}

/* Bytes are those on the wire: with tags that are stripped, or of a frame that is cut. */
static void test_bytes_are_those_on_the_wire(void **state)
{
	const struct rt_msg_first m = {.limit = 1000, .bits = 10};
	struct bench *b = make(&m, false);
	struct rte_mbuf *p, *chosen;
	struct frame f = {.len = 0};
	unsigned n = 0;

	put(&f, "\2\2\2\2\2\2\3\3\3\3\3\3\x08\0", 14);
	put_ip(&f, false, 17, 1, 0, 60);
	f.len += 60;
	p = make_packet(0, &f, false);
	p->pkt_len = p->data_len = 99;
	p->ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_VLAN;
	while (rt_first_choose(b->first, &b->ring, &b->tap, &p, 1, &chosen))
		n++;
	assert_int_equal(n, (1000 + 102) / 103);
	drop(b);
}

/* Whatever the bytes are: nothing is read behind them (by AddressSanitizer), and parts of headers
 * are no flow of their own. */
static void test_random_bytes(void **state)
{
	const struct rt_msg_first m = {.limit = 1, .packets = 1, .inner = 1, .bits = 8};
	struct bench *b = make(&m, false);

	for (unsigned i = 0; i < 200000; i++) {
		struct rte_mbuf *p, *chosen;
		struct frame f;

		make_frame(&f, true, true, 3);
		for (unsigned k = test_random() % 4; k; k--)
			f.bytes[test_random() % f.len] = (uint8_t)test_random();
		f.len = 1 + test_random() % f.len;
		p = make_packet(0, &f, test_random() % 2);
		rt_first_choose(b->first, &b->ring, &b->tap, &p, 1, &chosen);
	}
	drop(b);
}

/* ---- sessions ---- */

static uint16_t port;

static struct rt_session *open_session(
	uint32_t flags, uint32_t every, const struct rt_insn *insns, uint32_t count)
{
	const struct rt_msg_target all = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = count ? 0 : RT_NO_FILTER,
		.insn_count = count};
	const struct rt_msg_open open = {.buffer_size = 64 * TEST_RING,
		.flags = (uint16_t)(flags | RT_OPEN_FIRST | (every > 1 ? RT_OPEN_SAMPLE : 0))};
	struct rt_session *s;

	test_sample.every = every;
	test_first = (struct rt_msg_first){.limit = 3, .packets = 1, .bits = 12};
	s = test_session_open(&open, &all, insns);
	s->first->secret =
		(struct secret){{UINT64_C(0x123456789abcdef), UINT64_C(0xfedcba987654321)}};
	test_port_poll(port, 32); /* so that this thread has a ring */
	test_session_arm(s, test_clock());
	return s;
}

#define SENT 4000u

/* Frames of 20 flows, in bursts, whose byte 17 is their number; each passes both taps. */
static void pass(void)
{
	struct rte_mbuf *m[32];

	for (unsigned i = 0, n; i < SENT; i += n) {
		n = RTE_MIN(1 + i % 32, SENT - i);
		for (unsigned k = 0; k < n; k++) {
			static const uint8_t head[] = {
				[12] = 8, [14] = 0x45, [17] = 46, [23] = 17, [26] = 10};
			uint8_t *p;

			m[k] = test_frame(i + k, 60);
			p = rte_pktmbuf_mtod(m[k], uint8_t *);
			memcpy(p, head, sizeof(head));
			memset(p + 27, 1, 33);
			p[35] = (uint8_t)((i + k) % 20);
		}
		assert_int_equal(rte_eth_tx_burst(port, 0, m, (uint16_t)n), n);
		assert_int_equal(test_port_poll(port, 32), n);
	}
}

static struct rt_seg_count end(struct rt_session *s)
{
	struct rt_seg_count c;
	uint64_t lost = 0;

	test_session_end(s);
	c = test_session_sum(s);
	for (unsigned i = 0; i < RT_LOSS_COUNT; i++)
		lost += c.lost[i];
	assert_int_equal(c.seen, 2 * SENT);
	assert_int_equal(c.seen, c.captured + c.filtered + c.not_sampled + c.cut + lost);
	assert_int_equal(lost, 0);
	rt_session_free(s);
	return c;
}

/* Half of the flows. */
static const struct rt_insn odd[] = {{.code = 0x30, .k = 35},
	{.code = 0x45, .jt = 0, .jf = 1, .k = 1}, {.code = 6, .k = 262144}, {.code = 6}};

static void test_sums_of_a_session(void **state)
{
	static const uint32_t flags[] = {0, RT_OPEN_MBUFS, RT_OPEN_LENGTHS};

	for (unsigned i = 0; i < RTE_DIM(flags); i++) {
		struct rt_session *s = open_session(flags[i], 1, NULL, 0);
		struct rt_seg_count c;

		pass();
		c = end(s);
		assert_int_equal(c.captured, 2 * 3 * 20);
		assert_int_equal(c.evicted, 0);
		s = open_session(flags[i], 1, odd, RTE_DIM(odd));
		pass();
		c = end(s);
		assert_int_equal(c.captured, 2 * 3 * 10);
		assert_int_equal(c.filtered, SENT);
		s = open_session(flags[i], 4, odd, RTE_DIM(odd));
		pass();
		c = end(s);
		assert_int_equal(c.captured, 2 * 3 * 10);
		assert_in_range(c.not_sampled, SENT, 2 * SENT);
		assert_in_range(c.filtered, SENT / 8, SENT / 2);
	}
}

static void test_a_burst_left_by_a_jump_is_mended(void **state)
{
	struct test_ring t;
	struct rt_seg_count *c;

	test_ring_make(&t, TEST_RING);
	c = &t.ring.counts[0];
	*c = (struct rt_seg_count){
		.seen = 20, .captured = 1, .filtered = 2, .not_sampled = 4, .cut = 8};
	t.ring.open = 1;
	rt_epb_mend(&t.ring, RT_OPEN_SAMPLE | RT_OPEN_FIRST);
	assert_int_equal(c->lost[RT_LOSS_NO_RING], 5);
	test_ring_free(&t);
}

/* The largest tables leave room for the counters of many taps. */
static void test_the_largest_tables_are_in_the_rows(void **state)
{
	struct rt_session *s;

	s = open_session(0, 1, NULL, 0);
	for (unsigned i = 0; i + 1 < s->rows; i++)
		assert_int_equal(s->first->state[i + 1].flows - s->first->state[i].flows,
			s->shm.tap_capacity * sizeof(struct rt_seg_count) /
				sizeof(struct rt_first_flow));
	for (unsigned i = 0; i < s->rows; i++)
		for (unsigned k = 0; k < 1u << 12; k++)
			s->first->state[i].flows[k] = (struct rt_first_flow){k, k, k};
	pass();
	assert_int_equal(end(s).evicted > 0, 1);
}

static int make_packets(void **state)
{
	packets = aligned_alloc(64, 3 * BURST * sizeof(*packets));
	test_stats_start();
	return packets ? 0 : -1;
}

static int set_up(void **state)
{
	port = test_port_make("net_ring_0");
	return 0;
}

static int tear_down(void **state)
{
	test_port_remove(port);
	return 0;
}

#define PORT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_a_table_without_bounds),
		cmocka_unit_test(test_a_small_table_captures_more_and_counts),
		cmocka_unit_test(test_the_flow_seen_last_is_evicted_last),
		cmocka_unit_test(test_limits_are_of_a_thread_an_interface_and_a_direction),
		cmocka_unit_test(test_bytes_are_those_on_the_wire),
		cmocka_unit_test(test_random_bytes),
		PORT_TEST(test_sums_of_a_session),
		PORT_TEST(test_the_largest_tables_are_in_the_rows),
		cmocka_unit_test(test_a_burst_left_by_a_jump_is_mended),
	};

	return cmocka_run_group_tests(tests, make_packets, NULL);
}
