/* SPDX-License-Identifier: BSD-3-Clause */
/* Which records have one id, after all that an application may do to a packet. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "common/record.h"
#include "ids.h"
#include "readable.h"
#include "probe/burst/stamp.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define BURST 32u

static uint16_t in, out;
static struct rt_session *session;
static struct rte_mbuf *pkts[1024];

/* ---- records ---- */

struct seen {
	uint64_t id; /* 0: none */
	uint32_t port, direction;
	uint64_t ns;
};

static struct seen records[4096];
static unsigned count;

/* All that a session has in the first chunks of its rings. */
static void read_records(const struct rt_session *s)
{
	count = 0;
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++) {
		const struct rt_ring *ring = &s->rings[i];
		const uint8_t *chunk = s->shm.data + ring->pub_order[0] * s->shm.chunk_size;

		assert_in_range(ring->head, 0, s->shm.chunk_size);
		for (uint64_t at = 0; at < ring->head;) {
			struct rt_record r = {0};
			struct rt_options o;

			assert_null(rt_record_read(chunk + at, ring->head - at, &r));
			rt_record_options(chunk + at, &r, &o);
			assert_in_range(count, 0, RTE_DIM(records) - 1);
			records[count++] = (struct seen){o.id, s->ifs[r.if_index].port.port_id,
				o.flags == 1 ? RT_DIR_RX : RT_DIR_TX, r.ns};
			at += r.len;
		}
	}
}

/* The id of the i-th record of this kind; fails the test if there is none. */
static uint64_t id_at(uint16_t port, enum rt_direction dir, unsigned i)
{
	for (unsigned k = 0; k < count; k++) {
		if (records[k].port == port && records[k].direction == dir && !i--)
			return records[k].id;
	}
	fail_msg("no such record");
	return 0;
}

static uint64_t received(unsigned i)
{
	read_records(session);
	return id_at(in, RT_DIR_RX, i);
}

static uint64_t sent(unsigned i)
{
	read_records(session);
	return id_at(out, RT_DIR_TX, i);
}

/* ---- packets ---- */

static void open_as(struct rt_session **s, uint32_t ids, uint32_t on_full)
{
	const struct rt_msg_target all = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = TEST_RING, .ids = ids, .on_full = on_full};

	*s = test_session_open(&open, &all, NULL);
	test_port_poll(in, BURST); /* so that this thread has a ring */
	test_session_arm(*s, test_clock());
	rt_readable_look(5000); /* for clones, whose data are not behind their mbufs */
}

static void open_with(struct rt_session **s, uint32_t ids)
{
	open_as(s, ids, RT_ON_FULL_DROP);
}

static void close_session(struct rt_session **s)
{
	test_session_end(*s);
	rt_session_free(*s);
	*s = NULL;
	rt_readable_forget();
	rt_readable_forget();
}

static int make_ports(void **state)
{
	in = test_port_make("net_ring_0");
	out = test_port_make("net_ring_1");
	open_with(&session, RT_IDS_ON);
	return 0;
}

static int make_ports_to_infer(void **state)
{
	in = test_port_make("net_ring_0");
	out = test_port_make("net_ring_1");
	open_with(&session, RT_IDS_ON | RT_IDS_INFER);
	return 0;
}

static int remove_ports(void **state)
{
	test_monitors_drop();
	close_session(&session);
	while (test_port_poll(in, BURST) || test_port_poll(out, BURST))
		;
	test_port_remove(in);
	test_port_remove(out);
	return 0;
}

static void take_in(unsigned n)
{
	test_port_send(in, n);
	assert_int_equal(test_port_receive(in, pkts, 1024), n);
	for (unsigned i = 0; i < n; i++)
		pkts[i]->port = in; /* as drivers of NICs set it */
}

static void hand_over(struct rte_mbuf **p, unsigned n)
{
	assert_int_equal(rte_eth_tx_burst(out, 0, p, (uint16_t)n), n);
}

/* Packets that the application makes of mbufs that it has received before. */
static void send_made(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = test_frame(1, 60);

		hand_over(&m, 1);
	}
}

/* ---- one packet, one id ---- */

static void test_received_packets_keep_their_ids_when_they_are_sent(void **state)
{
	take_in(BURST);
	hand_over(pkts, BURST);
	for (unsigned i = 0; i < BURST; i++) {
		assert_int_not_equal(received(i), 0);
		assert_int_equal(sent(i), received(i));
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(received(i), received(k));
	}
}

static void test_created_packets_have_none(void **state)
{
	take_in(BURST);
	rte_pktmbuf_free_bulk(pkts, BURST);
	send_made(1000); /* all mbufs of the pool, some twice */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(id_at(out, RT_DIR_TX, (read_records(session), i)), 0);
	assert_int_equal(id_at(in, RT_DIR_TX, 0), 0);
}

static void test_packets_offered_again_have_the_same(void **state)
{
	unsigned n;

	test_port_send(out, 1000);
	take_in(BURST);
	n = rte_eth_tx_burst(out, 0, pkts, BURST);
	assert_true(n < BURST); /* the ring takes 1023 */
	assert_int_equal(rte_eth_tx_burst(out, 0, pkts + n, (uint16_t)(BURST - n)), 0);
	read_records(session);
	for (unsigned i = n; i < BURST; i++) {
		assert_int_equal(id_at(out, RT_DIR_TX, 1000 + i), received(i));
		assert_int_equal(id_at(out, RT_DIR_TX, 1000 + BURST + i - n), received(i));
	}
	rte_pktmbuf_free_bulk(pkts + n, BURST - n);
}

static void test_each_reception_has_its_own(void **state)
{
	take_in(1);
	hand_over(pkts, 1);
	assert_int_equal(test_port_receive(out, pkts, 1), 1);
	hand_over(pkts, 1);
	assert_int_equal(sent(0), received(0));
	assert_int_not_equal(id_at(out, RT_DIR_RX, 0), received(0));
	assert_int_equal(sent(1), id_at(out, RT_DIR_RX, 0));
}

/* Held by others: neither a new id, which could not be written, nor the old one. */
static void test_packets_that_are_received_shared_have_none(void **state)
{
	take_in(1);
	rte_mbuf_refcnt_update(pkts[0], 1);
	hand_over(pkts, 1);
	assert_int_equal(test_port_receive(out, pkts, 1), 1);
	read_records(session);
	assert_int_equal(id_at(out, RT_DIR_RX, 0), 0);
	rte_mbuf_refcnt_update(pkts[0], -1);
	rte_pktmbuf_free(pkts[0]);
}

/* ---- one packet, several mbufs ---- */

static void test_clones_and_copies_have_the_id_of_their_original(void **state)
{
	struct rte_mbuf *made[3];

	take_in(2);
	made[0] = rte_pktmbuf_clone(pkts[1], test_pool());
	made[1] = rte_pktmbuf_clone(made[0], test_pool());
	made[2] = rte_pktmbuf_copy(pkts[1], test_pool(), 0, UINT32_MAX);
	hand_over(made, 3);
	hand_over(&pkts[1], 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sent(i), received(1));
	rte_pktmbuf_free(pkts[0]);
}

/* Multicast: one mbuf with several references, to several ports. */
static void test_mbuf_that_is_sent_several_times_has_one(void **state)
{
	take_in(1);
	rte_mbuf_refcnt_update(pkts[0], 2);
	hand_over(pkts, 1);
	hand_over(pkts, 1);
	assert_int_equal(rte_eth_tx_burst(in, 0, pkts, 1), 1);
	assert_int_equal(sent(0), received(0));
	assert_int_equal(sent(1), received(0));
	read_records(session);
	assert_int_equal(id_at(in, RT_DIR_TX, 1), received(0)); /* the first is that of take_in() */
}

static struct rte_mbuf *before(struct rte_mbuf *m, unsigned headers)
{
	for (; headers; headers--) {
		struct rte_mbuf *h = test_frame(1, 14);

		h->next = m;
		h->nb_segs = (uint16_t)(m->nb_segs + 1);
		h->pkt_len += m->pkt_len;
		m = h;
	}
	return m;
}

static void test_headers_of_the_application_may_precede_the_packet(void **state)
{
	struct rte_mbuf *m;

	take_in(4);
	for (unsigned i = 0; i < 4; i++) {
		m = before(pkts[i], i + 1);
		hand_over(&m, 1);
		/* Four segments are searched. */
		assert_int_equal(sent(i), i < 3 ? received(i) : 0);
	}
}

/* Scattered reception at a port without ids, of a driver that sets the flags of the first segment
 * only: the second one was received with an id before. */
static void test_segments_of_another_reception_have_none(void **state)
{
	struct rte_mbuf *m;

	for (unsigned i = 0; i < 2; i++) {
		take_in(1);
		m = before(pkts[0], 1);
		m->port = i ? in : out;
		hand_over(&m, 1);
		assert_int_equal(sent(i), i ? received(i) : 0);
	}
}

/* Into a pool whose mbufs were received before: the rest of a chain has no old id. */
static void test_all_segments_of_a_chain_have_its_id(void **state)
{
	static const uint16_t cuts[] = {20, 20};
	struct rte_mbuf *m = test_chain(1, 60, cuts, 2), *rest;

	for (unsigned i = 0; i < 3; i++) {
		struct rte_mbuf *s = i == 0 ? m : i == 1 ? m->next : m->next->next;

		s->ol_flags |= rt_ids.flag;
		*RTE_MBUF_DYNFIELD(s, rt_ids.offset, uint64_t *) = 4711;
	}
	assert_int_equal(rte_eth_tx_burst(in, 0, &m, 1), 1);
	assert_int_equal(test_port_receive(in, &m, 1), 1);
	rest = m->next;
	rest->pkt_len = 40;
	rest->nb_segs = 2;
	m->next = NULL;
	m->nb_segs = 1;
	rte_pktmbuf_free(m);
	hand_over(&rest, 1);
	assert_int_not_equal(received(0), 4711);
	assert_int_equal(sent(0), received(0));
}

static void test_packets_that_leave_by_a_ring_keep_theirs(void **state)
{
	struct rte_ring *ring = rte_ring_create("elsewhere", 64, SOCKET_ID_ANY, 0);

	take_in(2);
	assert_int_equal(rte_ring_enqueue_bulk(ring, (void **)pkts, 2, NULL), 2);
	read_records(session);
	assert_int_equal(count, 4); /* nothing was offered to a port */
	assert_int_equal(rte_ring_dequeue_bulk(ring, (void **)pkts, 2, NULL), 2);
	hand_over(pkts, 2);
	assert_int_equal(sent(1), received(1));
	rte_ring_free(ring);
}

/* ---- threads and sessions ---- */

/* With the same numbers as another thread before. */
static void *receive_there(void *number)
{
	test_port_poll(out, BURST);
	rt_thread_self->ids = *(const uint64_t *)number;
	assert_int_equal(test_port_receive(in, pkts + BURST, BURST), BURST);
	return NULL;
}

static void test_ids_of_threads_differ(void **state)
{
	uint64_t number = rt_thread_self->ids;
	pthread_t thread;

	take_in(BURST);
	test_port_send(in, BURST);
	assert_int_equal(pthread_create(&thread, NULL, receive_there, &number), 0);
	pthread_join(thread, NULL);
	hand_over(pkts, 2 * BURST);
	for (unsigned i = 0; i < 2 * BURST; i++) {
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(sent(i), sent(k));
		assert_int_not_equal(sent(i), 0);
	}
}

static void test_sessions_share_ids_but_for_the_source(void **state)
{
	struct rt_session *second;

	/* One that may wait is served by itself. */
	open_as(&second, RT_IDS_ON | 15u << RT_IDS_SOURCE_SHIFT, RT_ON_FULL_WAIT);
	take_in(BURST);
	hand_over(pkts, BURST);
	for (unsigned i = 0; i < BURST; i++) {
		uint64_t id = received(i);

		assert_int_equal(id >> RT_ID_SOURCE_SHIFT, 0);
		read_records(second);
		assert_int_equal(id_at(in, RT_DIR_RX, i), id | 15ull << RT_ID_SOURCE_SHIFT);
		assert_int_equal(id_at(out, RT_DIR_TX, i), id | 15ull << RT_ID_SOURCE_SHIFT);
	}
	close_session(&second);
}

static void test_sessions_without_ids_have_none(void **state)
{
	struct rt_session *plain;

	open_with(&plain, 0);
	take_in(1);
	hand_over(pkts, 1);
	assert_int_equal(sent(0), received(0));
	read_records(plain);
	assert_int_equal(id_at(in, RT_DIR_RX, 0) | id_at(out, RT_DIR_TX, 0), 0);
	close_session(&plain);
}

static void test_no_id_is_given_twice(void **state)
{
	uint64_t first;

	take_in(1);
	first = received(0);
	close_session(&session);
	open_with(&session, RT_IDS_ON);
	hand_over(pkts, 1);
	take_in(1);
	hand_over(pkts, 1);
	assert_int_equal(sent(0), first); /* that packet was received before */
	assert_int_not_equal(received(0), first);
	assert_int_equal(sent(1), received(0));
}

static void test_packets_that_a_filter_refuses_have_ids(void **state)
{
	const struct rt_insn nothing = {.code = 6 /* BPF_RET | BPF_K */};
	char err[RT_TEXT_LEN];
	uint64_t first;

	take_in(1);
	first = received(0);
	assert_int_equal(test_set_filter(session, &nothing, err), 0);
	take_in(BURST);
	assert_int_equal(test_set_filter(session, NULL, err), -EBUSY);
	while (!rt_session_filter_settled(session))
		;
	assert_int_equal(test_set_filter(session, NULL, err), 0);
	hand_over(pkts, BURST);
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(sent(i), first + 1 + i);
}

static void test_latencies_are_measured_at_the_same_time(void **state)
{
	static struct rt_monitor mon;
	uint64_t timed = 0;

	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	take_in(BURST);
	hand_over(pkts, BURST);
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(sent(i), received(i));
	for (uint32_t i = 0; i < rt_stat_current->header->pair_count; i++)
		timed += rt_stat_current->pairs[i].count;
	assert_int_equal(timed, BURST);
}

/* A thread that loses its CPU within the hook delays packets for both or for none. */
static void test_latencies_and_records_begin_at_the_same_time(void **state)
{
	static struct rt_monitor mon;
	const struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	uint64_t stamp, now;

	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	take_in(BURST);
	now = rt_tsc();
	stamp = *rt_stamp_field(pkts[0], rt_stat_mode.latency_field) - rt_stamp_place(pkts[0]);
	now -= (now - stamp) & RT_STAMP_TSC_MASK; /* it has the low 42 bits */
	received(0);
	for (unsigned k = 0; k < count; k++)
		if (records[k].port == in && records[k].direction == RT_DIR_RX)
			assert_int_equal(records[k].ns, rt_clock_at(&line, now));
}

/* ---- packets without their flag ---- */

/* As testpmd's mac, macswap, csum and 5tswap do. */
static void reset_flags(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pkts[i]->ol_flags = 0;
}

static void test_nothing_is_inferred_without_a_request(void **state)
{
	take_in(BURST);
	reset_flags(BURST);
	hand_over(pkts, BURST);
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(sent(i), 0);
}

static void test_packets_without_their_flag_are_inferred(void **state)
{
	take_in(BURST);
	reset_flags(BURST);
	hand_over(pkts, BURST);
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(sent(i), received(i));
}

static void test_packets_of_another_port_are_not_inferred(void **state)
{
	take_in(2);
	reset_flags(2);
	pkts[0]->port = out;
	pkts[1]->port = RTE_MBUF_PORT_INVALID;
	hand_over(pkts, 2);
	assert_int_equal(sent(0), 0);
	assert_int_equal(sent(1), 0);
}

/* Once sent, with its flag or without, an mbuf that the application fills itself is nothing. */
static void test_sent_mbufs_are_not_inferred_again(void **state)
{
	take_in(2);
	pkts[0]->ol_flags = 0;
	hand_over(pkts, 2);
	/* Out of the ring, unseen by any hook, as a driver frees them and a pool gives them. */
	for (unsigned i = 0; i < 2; i++)
		pkts[i]->ol_flags = 0;
	hand_over(pkts, 2);
	assert_int_equal(sent(0), received(0));
	assert_int_equal(sent(1), received(1));
	assert_int_equal(sent(2), 0);
	assert_int_equal(sent(3), 0);
	rte_pktmbuf_refcnt_update(pkts[0], 1); /* each is twice in the ring */
	rte_pktmbuf_refcnt_update(pkts[1], 1);
}

static void test_created_packets_are_not_inferred(void **state)
{
	take_in(BURST);
	rte_pktmbuf_free_bulk(pkts, BURST);
	send_made(1000);
	read_records(session);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(id_at(out, RT_DIR_TX, i), 0);
}

/* As in the middle of linking, when other taps are not linked yet: an id that is given now could
 * pass a port without a record, and come back. */
static void test_nothing_has_an_id_before_all_taps_are_linked(void **state)
{
	session->flows = 0;
	take_in(BURST);
	for (unsigned i = 0; i < BURST; i++)
		assert_false(pkts[i]->ol_flags & rt_ids.flag);
	hand_over(pkts, BURST);
	read_records(session);
	assert_int_equal(count, 0);
	assert_int_equal(test_session_sum(session).seen, 0);
	session->flows = 1;
	take_in(1);
	hand_over(pkts, 1);
	assert_int_not_equal(received(0), 0);
	assert_int_equal(sent(0), received(0));
}

#define with_ports(f) cmocka_unit_test_setup_teardown(f, make_ports, remove_ports)
#define to_infer(f)   cmocka_unit_test_setup_teardown(f, make_ports_to_infer, remove_ports)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_ports(test_received_packets_keep_their_ids_when_they_are_sent),
		with_ports(test_created_packets_have_none),
		with_ports(test_packets_offered_again_have_the_same),
		with_ports(test_each_reception_has_its_own),
		with_ports(test_packets_that_are_received_shared_have_none),
		with_ports(test_clones_and_copies_have_the_id_of_their_original),
		with_ports(test_mbuf_that_is_sent_several_times_has_one),
		with_ports(test_headers_of_the_application_may_precede_the_packet),
		with_ports(test_segments_of_another_reception_have_none),
		with_ports(test_all_segments_of_a_chain_have_its_id),
		with_ports(test_packets_that_leave_by_a_ring_keep_theirs),
		with_ports(test_ids_of_threads_differ),
		with_ports(test_sessions_share_ids_but_for_the_source),
		with_ports(test_sessions_without_ids_have_none),
		with_ports(test_no_id_is_given_twice),
		with_ports(test_nothing_has_an_id_before_all_taps_are_linked),
		with_ports(test_packets_that_a_filter_refuses_have_ids),
		with_ports(test_latencies_are_measured_at_the_same_time),
		with_ports(test_latencies_and_records_begin_at_the_same_time),
		with_ports(test_nothing_is_inferred_without_a_request),
		to_infer(test_packets_without_their_flag_are_inferred),
		to_infer(test_packets_of_another_port_are_not_inferred),
		to_infer(test_sent_mbufs_are_not_inferred_again),
		to_infer(test_created_packets_are_not_inferred),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
