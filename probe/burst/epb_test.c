/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of packets of all shapes. Every copy loop is tested with all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf_dyn.h>

#include "probe/capture/epb.h"
#include "probe/capture/ids.h"
#include "probe/dpdk/nic_time.h"
#include "probe/test_eal.h"

#define NS (0x12345678ull << 32 | 0x9abcdef0)

static struct test_ring t;
static struct test_record r;

static int set_up(void **state)
{
	test_ring_make(&t, 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	test_ring_free(&t);
	return 0;
}

/* Pushes one packet and reads it back; frees it. */
static void through(enum rt_direction dir, struct rte_mbuf *m)
{
	test_ring_push(&t, dir, &m, 1, NS);
	assert_true(test_ring_next(&t, &r));
	test_drop(m);
}

static void assert_bytes(uint32_t seed, uint32_t from, uint32_t at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(r.data[at + i], test_byte(seed, from + i));
}

static void check_length(uint32_t len)
{
	through(RT_DIR_RX, test_frame(len, len));
	assert_int_equal(r.captured, len);
	assert_int_equal(r.original, len);
	assert_int_equal(r.ns, NS);
	assert_int_equal(r.if_index, 5);
	assert_int_equal(r.flags, 1);
	assert_int_equal(r.queue, 77);
	assert_false(r.has_hash);
	assert_false(r.has_dropped);
	assert_bytes(len, 0, 0, len);
	test_ring_release(&t);
}

/* A hook with no packets passes on the time of its thread; there is no first packet to read. */
static void test_an_empty_burst(void **state)
{
	struct rte_mbuf *m = test_frame(1, 64); /* the first packet of a ring takes the slow path */

	test_ring_push(&t, RT_DIR_RX, &m, 1, 1);
	test_drop(m);
	assert_true(test_ring_next(&t, &r));
	rt_epb_push(&t.ring, &t.tap[RT_DIR_RX], NULL, 0, 1);
	assert_false(test_ring_next(&t, &r));
}

static void test_tiny_packets(void **state)
{
	for (uint32_t len = 0; len <= 60; len++)
		check_length(len);
	assert_int_equal(t.ring.counts[0].captured, 61);
	assert_int_equal(t.ring.counts[0].bytes, 60 * 61 / 2);
}

static void test_packets_up_to_jumbo_size(void **state)
{
	for (uint32_t len = 60; len <= 1600; len++)
		check_length(len);
	for (uint32_t len = 1601; len < 9728; len += 61)
		check_length(len);
	check_length(9728);
}

static void test_burst_of_mixed_lengths(void **state)
{
	struct rte_mbuf *m[64];

	for (uint32_t i = 0; i < 64; i++)
		m[i] = test_frame(i, i * 37 % 200);
	test_ring_push(&t, RT_DIR_RX, m, 64, NS);
	for (uint32_t i = 0; i < 64; i++) {
		assert_true(test_ring_next(&t, &r));
		assert_int_equal(r.captured, i * 37 % 200);
		assert_bytes(i, 0, 0, r.captured);
	}
	assert_false(test_ring_next(&t, &r));
	rte_pktmbuf_free_bulk(m, 64);
}

static void test_sent_packets_are_outbound(void **state)
{
	through(RT_DIR_TX, test_frame(1, 60));
	assert_int_equal(r.flags, 2);
	assert_int_equal(r.queue, 77);
}

static void test_queue_numbers_of_all_sizes(void **state)
{
	t.tap[0].queue = 65535;
	rt_epb_prepare(&t.tap[0]);
	through(RT_DIR_RX, test_frame(1, 60));
	assert_int_equal(r.queue, 65535);
}

/* ---- segments ---- */

static void check_chain(uint32_t len, const uint16_t *cuts, unsigned n)
{
	through(RT_DIR_RX, test_chain(3, len, cuts, n));
	assert_int_equal(r.captured, len);
	assert_int_equal(r.original, len);
	assert_bytes(3, 0, 0, len);
	test_ring_release(&t);
}

static void test_chains_are_copied_completely(void **state)
{
	static const uint16_t one[] = {1}, zeros[] = {0, 0, 5, 0}, many[] = {1, 2, 3, 4, 5, 6, 7},
			      big[] = {2048, 2048, 2048, 2048};

	check_chain(60, one, 1);
	check_chain(60, zeros, 4);
	check_chain(300, many, 7);
	check_chain(9728, big, 4);
	check_chain(28, many, 7); /* the last segment is empty */
	check_chain(0, zeros, 4);
}

static void test_chain_that_is_too_short_is_counted_as_broken(void **state)
{
	static const uint16_t cuts[] = {30};
	struct rte_mbuf *m = test_chain(3, 60, cuts, 1);

	m->pkt_len = 61;
	test_ring_push(&t, RT_DIR_RX, &m, 1, NS);
	assert_false(test_ring_next(&t, &r));
	assert_int_equal(t.ring.counts[0].lost[RT_LOSS_BAD_MBUF], 1);
	assert_int_equal(t.ring.counts[0].captured, 0);
	m->pkt_len = 60;
	test_drop(m);
	/* The next record's dropcount includes the loss. */
	through(RT_DIR_RX, test_frame(4, 60));
	assert_int_equal(r.dropped, 1);
	assert_bytes(4, 0, 0, 60);
}

static void test_single_segment_that_is_too_short_is_counted_as_broken(void **state)
{
	struct rte_mbuf *m = test_frame(3, 60);

	m->pkt_len = 64;
	test_ring_push(&t, RT_DIR_RX, &m, 1, NS);
	assert_int_equal(t.ring.counts[0].lost[RT_LOSS_BAD_MBUF], 1);
	m->pkt_len = UINT32_MAX;
	test_ring_push(&t, RT_DIR_RX, &m, 1, NS);
	assert_int_equal(t.ring.counts[0].lost[RT_LOSS_BAD_MBUF], 2);
	assert_false(test_ring_next(&t, &r));
	m->pkt_len = 60;
	test_drop(m);
}

static void test_segment_longer_than_the_packet_is_cut_to_it(void **state)
{
	struct rte_mbuf *m = test_frame(3, 64);

	m->pkt_len = 60;
	through(RT_DIR_RX, m);
	assert_int_equal(r.captured, 60);
	assert_bytes(3, 0, 0, 60);
}

static void test_packet_larger_than_a_chunk_is_cut_to_it(void **state)
{
	const uint32_t wire = RT_CHUNK_MIN + 1000, longest = rt_epb_longest(RT_CHUNK_MIN);
	uint16_t cuts[16];
	struct test_ring tiny;
	struct rte_mbuf *m;

	for (unsigned i = 0; i < RTE_DIM(cuts); i++)
		cuts[i] = 9000;
	m = test_chain(3, wire, cuts, wire / 9000);
	test_ring_make(&tiny, TEST_RING);
	test_ring_push(&tiny, RT_DIR_RX, &m, 1, NS);
	test_ring_push(&tiny, RT_DIR_RX, &m, 1, NS);
	assert_int_equal(tiny.ring.counts[0].captured, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(test_ring_next(&tiny, &r));
		assert_int_equal(r.captured, longest);
		assert_int_equal(r.original, wire);
		assert_bytes(3, 0, 0, longest);
	}
	test_drop(m);
	test_ring_free(&tiny);
}

/* ---- snaplen ---- */

static void test_snaplen_cuts_exactly(void **state)
{
	static const uint32_t lens[] = {1, 4, 13, 14, 15, 59, 60, 61, 128};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		t.tap[0].snaplen = lens[i];
		through(RT_DIR_RX, test_frame(9, 60));
		assert_int_equal(r.captured, RTE_MIN(lens[i], 60u));
		assert_int_equal(r.original, 60);
		assert_bytes(9, 0, 0, r.captured);
	}
	assert_int_equal(t.ring.counts[0].bytes, 60 * sizeof(lens) / sizeof(lens[0]));
}

static void test_snaplen_cuts_chains_at_any_place(void **state)
{
	static const uint16_t cuts[] = {7, 20};

	for (uint32_t snaplen = 1; snaplen < 70; snaplen++) {
		t.tap[0].snaplen = snaplen;
		through(RT_DIR_RX, test_chain(9, 60, cuts, 2));
		assert_int_equal(r.captured, RTE_MIN(snaplen, 60u));
		assert_int_equal(r.original, 60);
		assert_bytes(9, 0, 0, r.captured);
	}
}

/* ---- VLAN tags in the mbuf ---- */

static const uint64_t vlan[] = {RTE_MBUF_F_RX_VLAN_STRIPPED, RTE_MBUF_F_TX_VLAN};
static const uint64_t qinq[] = {
	RTE_MBUF_F_RX_QINQ_STRIPPED | RTE_MBUF_F_RX_VLAN_STRIPPED, RTE_MBUF_F_TX_QINQ};

static struct rte_mbuf *tagged(uint64_t flags, uint32_t len)
{
	static const uint16_t cuts[] = {5};
	struct rte_mbuf *m = len % 2 ? test_chain(8, len, cuts, 1) : test_frame(8, len);

	m->ol_flags |= flags;
	m->vlan_tci = 0x1234;
	m->vlan_tci_outer = 0x5678;
	return m;
}

static void assert_tagged(uint32_t len, const char *tags, uint32_t tag_len)
{
	assert_int_equal(r.captured, len + tag_len);
	assert_int_equal(r.original, len + tag_len);
	assert_bytes(8, 0, 0, 12);
	assert_memory_equal(r.data + 12, tags, tag_len);
	assert_bytes(8, 12, 12 + tag_len, len - 12);
}

static void test_vlan_tag_is_inserted(void **state)
{
	for (int dir = 0; dir < 2; dir++) {
		for (uint32_t len = 60; len < 64; len++) {
			through(dir, tagged(vlan[dir], len));
			assert_tagged(len, "\x81\x00\x12\x34", 4);
		}
	}
}

static void test_both_tags_are_inserted(void **state)
{
	for (int dir = 0; dir < 2; dir++) {
		for (uint32_t len = 60; len < 64; len++) {
			through(dir, tagged(qinq[dir], len));
			assert_tagged(len, "\x88\xa8\x56\x78\x81\x00\x12\x34", 8);
		}
	}
}

static void test_flags_of_the_other_direction_are_ignored(void **state)
{
	/* The flag bits of one direction may mean something else in the other one. */
	through(RT_DIR_RX, tagged(vlan[RT_DIR_TX], 60));
	assert_int_equal(r.captured, 60);
	through(RT_DIR_TX, tagged(vlan[RT_DIR_RX], 60));
	assert_int_equal(r.captured, 60);
}

static void test_snaplen_may_end_in_a_tag(void **state)
{
	static const uint8_t tags[] = {0x88, 0xa8, 0x56, 0x78, 0x81, 0x00, 0x12, 0x34};

	for (uint32_t snaplen = 1; snaplen < 30; snaplen++) {
		t.tap[0].snaplen = snaplen;
		through(RT_DIR_RX, tagged(qinq[0], 61));
		assert_int_equal(r.captured, snaplen);
		assert_int_equal(r.original, 69);
		assert_bytes(8, 0, 0, RTE_MIN(snaplen, 12u));
		for (uint32_t i = 12; i < snaplen && i < 20; i++)
			assert_int_equal(r.data[i], tags[i - 12]);
		if (snaplen > 20)
			assert_bytes(8, 12, 20, snaplen - 20);
	}
}

static void test_tag_may_make_a_packet_exceed_snaplen(void **state)
{
	t.tap[0].snaplen = 60;
	through(RT_DIR_RX, tagged(vlan[0], 60));
	assert_int_equal(r.captured, 60);
	assert_int_equal(r.original, 64);
}

static void test_frame_without_addresses_gets_no_tag(void **state)
{
	for (uint32_t len = 0; len < 12; len++) {
		through(RT_DIR_RX, tagged(vlan[0], len));
		assert_int_equal(r.captured, len);
		assert_int_equal(r.original, len);
		assert_bytes(8, 0, 0, len);
	}
	through(RT_DIR_RX, tagged(vlan[0], 12));
	assert_tagged(12, "\x81\x00\x12\x34", 4);
}

/* ---- hash and time ---- */

static struct rte_mbuf *hashed(uint32_t len)
{
	struct rte_mbuf *m = test_frame(6, len);

	m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	m->hash.rss = 0xcafef00d;
	return m;
}

static void test_hash_is_recorded(void **state)
{
	for (uint32_t len = 0; len < 100; len++) {
		through(RT_DIR_RX, hashed(len));
		assert_true(r.has_hash);
		assert_int_equal(r.hash, 0xcafef00d);
		assert_int_equal(r.queue, 77);
		assert_bytes(6, 0, 0, len);
	}
}

static void test_hash_of_unusual_packets_is_recorded(void **state)
{
	struct rte_mbuf *m = hashed(60);

	m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	through(RT_DIR_RX, m);
	assert_int_equal(r.captured, 64);
	assert_int_equal(r.hash, 0xcafef00d);
}

static void test_hash_of_a_sent_packet_is_not_recorded(void **state)
{
	through(RT_DIR_TX, hashed(60));
	assert_false(r.has_hash);
}

static void test_hashed_and_other_packets_mix(void **state)
{
	struct rte_mbuf *m[32];

	for (uint32_t i = 0; i < 32; i++)
		m[i] = i % 3 ? hashed(64) : test_frame(i, 64);
	test_ring_push(&t, RT_DIR_RX, m, 32, NS);
	for (uint32_t i = 0; i < 32; i++) {
		assert_true(test_ring_next(&t, &r));
		assert_int_equal(r.has_hash, i % 3 != 0);
	}
	rte_pktmbuf_free_bulk(m, 32);
}

static struct rte_mbuf *with_id(struct rte_mbuf *m, uint64_t id)
{
	char err[RT_TEXT_LEN];

	assert_int_equal(rt_ids_register(err), 0);
	m->ol_flags |= rt_ids.flag;
	*RTE_MBUF_DYNFIELD(m, rt_ids.offset, uint64_t *) = id;
	return m;
}

static void test_ids_are_recorded_where_they_are_requested(void **state)
{
	for (int dir = 0; dir < 2; dir++) {
		through(dir, with_id(test_frame(1, 60), 4711));
		assert_false(r.has_id);
		t.tap[dir].ids = RT_IDS_ON;
		t.tap[dir].id_source = 0xfull << 60;
		for (uint32_t len = 0; len < 100; len++) {
			through(dir, with_id(test_frame(len, len), 4711 + len));
			assert_true(r.has_id);
			assert_int_equal(r.id, 0xf000000000000000ull + 4711 + len);
			assert_bytes(len, 0, 0, len);
		}
		through(dir, with_id(test_frame(1, 60), 0));
		assert_false(r.has_id);
		through(dir, test_frame(1, 60));
		assert_false(r.has_id);
	}
}

static void test_hashes_and_ids_are_recorded(void **state)
{
	t.tap[RT_DIR_RX].ids = RT_IDS_ON;
	for (uint32_t len = 0; len < 100; len++) {
		through(RT_DIR_RX, with_id(hashed(len), UINT64_MAX));
		assert_int_equal(r.hash, 0xcafef00d);
		assert_int_equal(r.id, RT_ID_MASK);
		assert_bytes(6, 0, 0, len);
	}
}

static void test_nic_time_stamps_have_precedence(void **state)
{
	static const struct rt_clock_line line = {.mult = 1ull << RT_CLOCK_SHIFT};
	static struct rt_nic_clock clock;
	struct rte_mbuf *m = test_frame(1, 60);
	uint64_t flag;
	int offset;

	assert_int_equal(rte_mbuf_dyn_rx_timestamp_register(&offset, &flag), 0);
	assert_int_equal(rt_nic_time_lookup(&t.tap[0].nic_ts_offset, &t.tap[0].nic_ts_flag), 0);
	assert_int_equal(t.tap[0].nic_ts_offset, offset);
	rt_latch_publish(&clock.latch, &line);
	t.tap[0].nic_clock = &clock;
	*RTE_MBUF_DYNFIELD(m, offset, uint64_t *) = 4711;
	assert_true(rt_epb_slow(&t.ring, &t.tap[0], m, NS));
	m->ol_flags |= flag;
	assert_true(rt_epb_slow(&t.ring, &t.tap[0], m, NS));
	rt_ring_publish(&t.ring);
	assert_true(test_ring_next(&t, &r));
	assert_int_equal(r.ns, NS);
	assert_true(test_ring_next(&t, &r));
	assert_int_equal(r.ns, 4711);
	test_drop(m);
}

#define with_ring(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	with_ring(test_an_empty_burst),
	with_ring(test_tiny_packets),
	with_ring(test_packets_up_to_jumbo_size),
	with_ring(test_burst_of_mixed_lengths),
	with_ring(test_sent_packets_are_outbound),
	with_ring(test_queue_numbers_of_all_sizes),
	with_ring(test_chains_are_copied_completely),
	with_ring(test_chain_that_is_too_short_is_counted_as_broken),
	with_ring(test_single_segment_that_is_too_short_is_counted_as_broken),
	with_ring(test_segment_longer_than_the_packet_is_cut_to_it),
	with_ring(test_packet_larger_than_a_chunk_is_cut_to_it),
	with_ring(test_snaplen_cuts_exactly),
	with_ring(test_snaplen_cuts_chains_at_any_place),
	with_ring(test_vlan_tag_is_inserted),
	with_ring(test_both_tags_are_inserted),
	with_ring(test_flags_of_the_other_direction_are_ignored),
	with_ring(test_snaplen_may_end_in_a_tag),
	with_ring(test_tag_may_make_a_packet_exceed_snaplen),
	with_ring(test_frame_without_addresses_gets_no_tag),
	with_ring(test_hash_is_recorded),
	with_ring(test_hash_of_unusual_packets_is_recorded),
	with_ring(test_hash_of_a_sent_packet_is_not_recorded),
	with_ring(test_hashed_and_other_packets_mix),
	with_ring(test_ids_are_recorded_where_they_are_requested),
	with_ring(test_hashes_and_ids_are_recorded),
	with_ring(test_nic_time_stamps_have_precedence),
};

static int run(const char *group)
{
	return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}

int main(void)
{
	return test_run_both_copies(run);
}
