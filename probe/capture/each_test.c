/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that are copied one by one: with what their mbufs tell, or a length that the filter
 * computes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include <pcap/bpf.h>
#include <rte_ethdev.h>

#include "common/record.h"
#include "epb.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define PACKETS 300u

struct case_of_mbuf {
	enum rt_direction dir;
	uint64_t ol_flags;
	uint32_t packet_type, mark;
	uint32_t flags; /* expected, besides the direction */
	struct rt_verdict verdict;
};

#define NO_VERDICT           \
	{                    \
		.version = 0 \
	}

static const struct case_of_mbuf cases[] = {
	{RT_DIR_RX, 0, 0, 7, 0, NO_VERDICT},
	{RT_DIR_RX, RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_TCP, 7, RT_FLAGS_VALID,
		{.version = 1, .ip = 2, .l4 = 2, .packet_type = 0x111}},
	{RT_DIR_RX, RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_IP_CKSUM_BAD, 0, 7, 0,
		{.version = 1, .ip = 1, .l4 = 1}},
	{RT_DIR_RX, RTE_MBUF_F_RX_L4_CKSUM_NONE | RTE_MBUF_F_RX_LRO, 0, 7,
		RT_FLAGS_NOT_READY | RT_FLAGS_SEGMENTED, {.version = 1, .l4 = 3}},
	{RT_DIR_RX, RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD | RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD, 0, 7, 0,
		{.version = 1, .outer_ip = 1, .outer_l4 = 2}},
	{RT_DIR_RX, RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID, 0, 0x01020304, 0,
		{.version = 1, .has_mark = 1, .mark = 0x01020304}},
	{RT_DIR_RX, RTE_MBUF_F_RX_FDIR, 0, 7, 0, {.version = 1, .has_mark = 2}},
	{RT_DIR_TX, 0, RTE_PTYPE_L2_ETHER, 7, 0, NO_VERDICT},
	{RT_DIR_TX, RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_IPV4, 0, 7, RT_FLAGS_NOT_READY,
		NO_VERDICT},
	{RT_DIR_TX, RTE_MBUF_F_TX_UDP_CKSUM, 0, 7, RT_FLAGS_NOT_READY, NO_VERDICT},
	{RT_DIR_TX, RTE_MBUF_F_TX_TCP_SEG, 0, 7, RT_FLAGS_NOT_READY | RT_FLAGS_SEGMENTED,
		NO_VERDICT},
	{RT_DIR_TX, RTE_MBUF_F_TX_OUTER_UDP_CKSUM, 0, 7, RT_FLAGS_NOT_READY, NO_VERDICT},
};

static void check_case(struct test_ring *t, const struct case_of_mbuf *c, bool on)
{
	const uint32_t way = c->dir == RT_DIR_RX ? 1 : 2;
	struct rte_mbuf *m = test_frame(3, 70);
	struct test_record r;

	m->ol_flags |= c->ol_flags;
	m->packet_type = c->packet_type;
	m->hash.fdir.hi = c->mark;
	t->ring.counts[c->dir].seen++;
	assert_true(rt_epb_slow(&t->ring, &t->tap[c->dir], m, 5));
	rt_ring_publish(&t->ring);
	assert_true(test_ring_next(t, &r));
	assert_int_equal(r.flags, way | (on ? c->flags : 0));
	assert_int_equal(r.captured, 70);
	if (on && c->verdict.version)
		assert_memory_equal(r.verdict, &c->verdict, sizeof(c->verdict));
	else
		assert_null(r.verdict);
	test_drop(m);
}

static void test_records_have_what_mbufs_tell(void **state)
{
	struct test_ring t;

	test_ring_make(&t, TEST_RING);
	for (int on = 0; on < 2; on++) {
		for (unsigned dir = 0; dir < 2; dir++) {
			t.tap[dir].mbufs = on;
			rt_epb_prepare(&t.tap[dir]);
			assert_int_equal(t.tap[dir].each, on);
		}
		for (size_t i = 0; i < RTE_DIM(cases); i++)
			check_case(&t, &cases[i], on);
	}
	test_ring_free(&t);
}

/* All options at once have room. */
static void test_the_longest_options_fit(void **state)
{
	struct rte_mbuf *m = test_frame(1, 61);
	struct test_record r;
	struct test_ring t;

	test_ring_make(&t, TEST_RING);
	t.tap[RT_DIR_RX].mbufs = true;
	rt_epb_prepare(&t.tap[RT_DIR_RX]);
	m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
	m->hash.rss = 11;
	m->hash.fdir.hi = 12;
	t.pending[RT_DIR_RX] = 13;
	t.ring.gaps = 1;
	assert_true(rt_epb_slow(&t.ring, &t.tap[RT_DIR_RX], m, 5));
	rt_ring_publish(&t.ring);
	assert_true(test_ring_next(&t, &r));
	assert_true(r.has_hash && r.has_dropped && r.verdict);
	assert_int_equal(r.hash, 11);
	assert_int_equal(r.dropped, 13);
	/* An id, which needs a field of mbufs, takes 12 more. */
	assert_in_range(r.total + 12, 0, RT_EPB_AROUND + 64);
	test_drop(m);
	test_ring_free(&t);
}

/* ---- lengths, through the hooks ---- */

static uint16_t port;

static struct rt_session *open_session(uint32_t flags, const struct rt_insn *insns, uint32_t count)
{
	const struct rt_msg_target all = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX,
		.snaplen = 50,
		.insn_first = count ? 0 : RT_NO_FILTER,
		.insn_count = count};
	const struct rt_msg_open open = {.buffer_size = TEST_RING, .flags = flags};
	struct rt_session *s = test_session_open(&open, &all, insns);

	test_port_poll(port, 32); /* so that this thread has a ring */
	test_session_arm(s, test_clock());
	return s;
}

/* Frames made of seeds, all of 60 bytes, one after the other and in bursts. */
static void pass(void)
{
	struct rte_mbuf *m[32];

	for (unsigned i = 0, n; i < PACKETS; i += n) {
		n = i % 2 ? 1 : RTE_MIN(7u, PACKETS - i);
		for (unsigned k = 0; k < n; k++)
			m[k] = test_frame(i + k, 60);
		assert_int_equal(rte_eth_tx_burst(port, 0, m, (uint16_t)n), n);
		assert_int_equal(test_port_poll(port, 32), n);
	}
}

/* Checks the records against those of a reader that computes the lengths: of packet i length(i)
 * bytes are captured, 0: it is filtered out. */
static void check_records(struct rt_session *s, uint32_t (*length)(uint32_t seed))
{
	const uint8_t *p = s->shm.data;
	struct rt_seg_count c;
	unsigned captured = 0;

	test_session_end(s);
	for (unsigned i = 0; i < PACKETS; i++) {
		const struct rt_epb *e = (const void *)p;
		uint32_t n = RTE_MIN(length(i), 50u);

		if (!n)
			continue;
		captured++;
		assert_int_equal(e->type, RT_EPB_TYPE);
		assert_int_equal(e->cap_len, n);
		assert_int_equal(e->orig_len, 60);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(p[RT_EPB_HEADER + k], test_byte(i, k));
		p += e->total_len;
	}
	c = test_session_sum(s);
	assert_int_equal(c.seen, PACKETS);
	assert_int_equal(c.captured, captured);
	assert_int_equal(c.filtered, PACKETS - captured);
	rt_session_free(s);
}

/* Values from 0 to 63. */
static const struct rt_insn by_byte[] = {
	{.code = BPF_LD | BPF_B | BPF_ABS, .k = 33},
	{.code = BPF_ALU | BPF_AND | BPF_K, .k = 63},
	{.code = BPF_RET | BPF_A},
};

static uint32_t of_byte(uint32_t seed)
{
	return test_byte(seed, 33) & 63;
}

static uint32_t whole_or_none(uint32_t seed)
{
	return of_byte(seed) ? 60 : 0;
}

static uint32_t whole(uint32_t seed)
{
	return 60;
}

static void test_a_filter_computes_the_length_of_each_packet(void **state)
{
	struct rt_session *s = open_session(RT_OPEN_LENGTHS, by_byte, RTE_DIM(by_byte));

	pass();
	check_records(s, of_byte);
}

/* Different constants, and a computed value. */
static const struct rt_insn by_kind[] = {
	{.code = BPF_LD | BPF_B | BPF_ABS, .k = 33},
	{.code = BPF_JMP | BPF_JGT | BPF_K, .k = 200, .jt = 4},
	{.code = BPF_JMP | BPF_JGT | BPF_K, .k = 150, .jt = 4},
	{.code = BPF_JMP | BPF_JGT | BPF_K, .k = 100, .jt = 4},
	{.code = BPF_ALU | BPF_AND | BPF_K, .k = 15},
	{.code = BPF_RET | BPF_A},
	{.code = BPF_RET | BPF_K, .k = 20},
	{.code = BPF_RET | BPF_K, .k = 262144},
	{.code = BPF_RET | BPF_K},
};

static uint32_t of_kind(uint32_t seed)
{
	uint32_t v = test_byte(seed, 33);

	return v > 200 ? 20 : v > 150 ? 60 : v > 100 ? 0 : v & 15;
}

static void test_a_filter_returns_constants_and_values(void **state)
{
	struct rt_session *s = open_session(RT_OPEN_LENGTHS, by_kind, RTE_DIM(by_kind));

	pass();
	check_records(s, of_kind);
}

static void test_without_lengths_a_filter_refuses_only(void **state)
{
	struct rt_session *s = open_session(RT_OPEN_MBUFS, by_byte, RTE_DIM(by_byte));

	pass();
	check_records(s, whole_or_none);
	s = open_session(RT_OPEN_LENGTHS, NULL, 0);
	pass();
	check_records(s, whole);
}

/* The filter that a session gets later has lengths, too. */
static void test_a_later_filter_computes_lengths(void **state)
{
	static const struct rt_insn ten = {.code = BPF_RET | BPF_K, .k = 10};
	struct rt_session *s = open_session(RT_OPEN_LENGTHS, NULL, 0);
	char err[RT_TEXT_LEN];
	struct rt_epb *e;

	assert_int_equal(test_set_filter(s, &ten, err), 0);
	pass();
	test_session_end(s);
	e = (void *)s->shm.data;
	assert_int_equal(e->cap_len, 10);
	assert_int_equal(test_session_sum(s).captured, PACKETS);
	rt_session_free(s);
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

static int start(void **state)
{
	test_stats_start();
	return 0;
}

#define PORT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_have_what_mbufs_tell),
		cmocka_unit_test(test_the_longest_options_fit),
		PORT_TEST(test_a_filter_computes_the_length_of_each_packet),
		PORT_TEST(test_a_filter_returns_constants_and_values),
		PORT_TEST(test_without_lengths_a_filter_refuses_only),
		PORT_TEST(test_a_later_filter_computes_lengths),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
