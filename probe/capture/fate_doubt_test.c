/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that may have been sent where no hook gets them, or in buffers that others share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "common/clock.h"
#include "ids.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/test_fates.h"

#define PORT 7

/* As the control thread does it. */
static int begin(void **state)
{
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	return test_fates_begin(state);
}

static int begin_events(void **state)
{
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	return test_fates_begin_events(state);
}

static int end(void **state)
{
	int ret = test_fates_end(state);

	rt_ports_unwatch();
	return ret;
}

/* The mbuf of a packet that was freed comes back from a driver. */
static void come_back(struct rte_mbuf *m)
{
	m->port = PORT;
	test_stamp(m);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &m, 1, rt_tsc());
}

static struct rte_mbuf *receive(void)
{
	struct rte_mbuf *m = test_receive(1);

	assert_non_null(m);
	return m;
}

/* The application frees the packet, and its mbuf comes back. */
static void drop(struct rte_mbuf *m)
{
	come_back(m);
	test_offer(m);
}

/* The same for an mbuf that is in its pool. */
static void drop_free(struct rte_mbuf *m)
{
	static struct rte_mbuf *all[8192];
	unsigned n = 0;

	do {
		assert_int_equal(rte_mempool_get(m->pool, (void **)&all[n]), 0);
	} while (all[n++] != m);
	rte_mempool_put_bulk(m->pool, (void **)all, n - 1);
	drop(m);
}

static void expect(uint64_t not_offered, uint64_t unseen, uint64_t stopped)
{
	struct rt_seg_count c = test_count(1, RT_DIR_RX);
	assert_int_equal(c.not_offered, not_offered);
	assert_int_equal(c.unseen, unseen);
	assert_int_equal(c.stopped, stopped);
	assert_int_equal(c.unknown, unseen + stopped);
	assert_int_equal(c.seen, not_offered);
}

static void start(uint16_t port, uint16_t queues)
{
	const struct rte_eth_conf conf = {0};

	assert_int_equal(rte_eth_dev_configure(port, queues, queues, &conf), 0);
	for (uint16_t q = 0; q < queues; q++) {
		assert_int_equal(rte_eth_rx_queue_setup(port, q, 64, 0, NULL, test_pool()), 0);
		assert_int_equal(rte_eth_tx_queue_setup(port, q, 64, 0, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_start(port), 0);
}

static uint16_t add_port(const char *name)
{
	uint16_t port;

	assert_int_equal(rte_eal_hotplug_add("vdev", name, ""), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &port), 0);
	return port;
}

/* Nothing of it is sent by a hook: the port has none. */
static void test_a_new_port_may_have_sent_what_is_not_seen(void **state)
{
	struct rte_mbuf *before = receive();
	uint16_t port = add_port("net_null7");

	drop(receive()); /* it cannot send yet */
	expect(1, 0, 0);
	start(port, 1);
	drop(receive());
	expect(1, 1, 0);
	drop(before);
	expect(1, 2, 0);
	before = receive();
	rt_session_rescan(session);
	drop(before);
	expect(1, 3, 0);
	assert_true(
		(int64_t)(session->shm.header->fate_unseen_tsc - session->fates->unseen_tsc) == 0);
	drop(receive());
	expect(2, 3, 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null7"), 0);
	rt_session_rescan(session);
	drop(receive());
	expect(3, 3, 0);
}

static void test_new_queues_of_a_port_may_have_sent_what_is_not_seen(void **state)
{
	uint16_t port = add_port("net_null7");
	struct rte_mbuf *before;

	start(port, 1);
	rt_session_rescan(session);
	drop(receive());
	expect(1, 0, 0);
	assert_int_equal(rte_eth_dev_stop(port), 0);
	rt_fates_watch(session); /* the control thread, in between */
	start(port, 2);
	drop(before = receive());
	expect(1, 1, 0);
	before = receive();
	rt_session_rescan(session);
	drop(before);
	expect(1, 2, 0);
	drop(receive());
	expect(2, 2, 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null7"), 0);
	rt_session_rescan(session);
}

/* Readers, which have the time of the last doubt, read the mbufs in its pool then. */
static void test_walks_publish_the_time_of_doubt_first(void **state)
{
	struct rte_mbuf *m = receive();
	uint16_t port = add_port("net_null7");

	start(port, 1);
	test_offer(receive());
	rte_pktmbuf_free(m);
	assert_int_equal(session->shm.header->fate_unseen_tsc, 0);
	test_walk();
	assert_int_equal(test_entry(m)->walk, session->shm.header->fate_walk);
	assert_true((int64_t)(session->shm.header->fate_unseen_tsc - test_entry(m)->tsc) > 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null7"), 0);
}

static void test_a_stopped_port_may_have_refused_what_is_not_sent(void **state)
{
	const struct rt_tap *out = test_tap(0, RT_DIR_TX);
	struct rte_mbuf *m = receive(), *during;

	assert_int_equal(rte_eth_tx_burst(out->port, 0, &m, 1), 1);
	assert_int_equal(rte_eth_rx_burst(out->port, 0, &m, 1), 1);
	rte_pktmbuf_free(m);
	rt_session_rescan(session); /* the port is in use */
	assert_int_equal(rte_eth_dev_stop(out->port), 0);
	m = receive();
	assert_int_equal(rte_eth_tx_burst(out->port, 0, &m, 1), 0);
	drop(m);
	expect(0, 0, 1);
	during = receive();
	rt_session_rescan(session);
	assert_int_equal(rte_eth_dev_start(out->port), 0);
	rt_session_rescan(session);
	drop(during);
	expect(0, 0, 2);
	drop(receive());
	expect(1, 0, 2);
}

static void test_a_port_that_was_never_used_may_be_stopped(void **state)
{
	const struct rt_tap *idle = test_tap(2, RT_DIR_TX);

	assert_int_equal(rte_eth_dev_stop(idle->port), 0);
	rt_session_rescan(session);
	drop(receive());
	expect(1, 0, 0);
	assert_int_equal(rte_eth_dev_start(idle->port), 0);
	rt_session_rescan(session);
}

static void test_doubt_is_an_event(void **state)
{
	uint16_t port = add_port("net_null7");
	unsigned events = 0;
	struct test_record r;

	start(port, 1);
	for (int i = 0; i < 8; i++) /* the filter refuses half of them */
		drop(receive());
	for (; test_next_record(&r); events++)
		assert_int_equal(r.flags >> RT_EVENT_SHIFT, RT_EVENT_UNSEEN);
	assert_int_equal(events, test_count(1, RT_DIR_RX).captured);
	assert_true(events > 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null7"), 0);
	rt_session_rescan(session);
}

/* ---- shared buffers ---- */

static struct rte_mempool *pinned;

/* As a driver with these mbufs. */
static struct rte_mbuf *receive_from(struct rte_mempool *from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from);

	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, 64));
	m->port = PORT;
	test_stamp(m);
	rt_fates_feed(&session->rings[0], test_tap(1, RT_DIR_RX), &m, 1, rt_tsc());
	return m;
}

static int make_pinned(void **state)
{
	static struct rte_pktmbuf_extmem memory;

	if (!pinned) {
		memory.buf_len = 1 << 20;
		memory.elt_size = 2048;
		memory.buf_ptr = aligned_alloc(4096, memory.buf_len);
		memory.buf_iova = RTE_BAD_IOVA;
		pinned = rte_pktmbuf_pool_create_extbuf(
			"pinned", 63, 0, 0, memory.elt_size, SOCKET_ID_ANY, &memory, 1);
		assert_non_null(pinned);
	}
	return begin(state);
}

static void expect_shared(uint64_t offered, uint64_t not_offered, uint64_t unknown)
{
	struct rt_seg_count c = test_count(1, RT_DIR_RX);

	assert_int_equal(c.offered, offered);
	assert_int_equal(c.not_offered, not_offered);
	assert_int_equal(c.unknown, unknown);
}

static void test_clones_of_pinned_buffers_are_their_packets(void **state)
{
	struct rte_mbuf *m = receive_from(pinned), *c = rte_pktmbuf_clone(m, pool);

	assert_true(c->ol_flags & RTE_MBUF_F_EXTERNAL);
	rte_pktmbuf_free(m);
	test_offer(c);
	expect_shared(1, 0, 0);
	drop_free(m);
	expect_shared(1, 0, 0);
	m = receive_from(pinned);
	c = rte_pktmbuf_clone(m, pool); /* both */
	test_offer(m);
	test_offer(c);
	expect_shared(2, 0, 0);
	m = receive_from(pinned);
	c = rte_pktmbuf_clone(m, pool); /* none */
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(c);
	drop_free(m);
	expect_shared(2, 1, 0);
	assert_int_equal(test_count(0, RT_DIR_TX).rest_offered, 0);
}

static void keep_buffer(void *addr, void *opaque)
{
}

static void attach(struct rte_mbuf *m)
{
	static char memory[16][4096] __attribute__((aligned(128)));
	static unsigned next;
	uint16_t len = sizeof(memory[0]);
	char *at = memory[next++ % RTE_DIM(memory)];
	struct rte_mbuf_ext_shared_info *info =
		rte_pktmbuf_ext_shinfo_init_helper(at, &len, keep_buffer, at);

	assert_non_null(info);
	rte_pktmbuf_attach_extbuf(m, at, RTE_BAD_IOVA, len, info);
}

/* The mbuf of the original is in nobody's reach: the clone has only the id. */
static void test_clones_of_attached_buffers_are_their_packets(void **state)
{
	struct rte_mbuf *m = receive_from(pool), *c;
	struct rt_fate_stray *place;

	attach(m);
	c = rte_pktmbuf_clone(m, pool);
	rte_pktmbuf_free(m);
	test_offer(c);
	drop_free(m);
	expect_shared(1, 0, 0);
	drop(receive()); /* others are not concerned */
	expect_shared(1, 1, 0);
	m = receive_from(pool);
	attach(m);
	c = rte_pktmbuf_clone(m, pool);
	place = &session->fates->strays[test_entry(m)->id % RT_FATE_STRAYS];
	rte_pktmbuf_free(m);
	test_offer(c);
	place->id = 1; /* the place is another one's */
	drop_free(m);
	expect_shared(1, 1, 1);
}

static void test_lent_buffers_are_never_not_offered(void **state)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	attach(m);
	m->port = PORT;
	test_stamp(m);
	rt_fates_feed(&session->rings[0], test_tap(1, RT_DIR_RX), &m, 1, rt_tsc());
	assert_int_equal(test_entry(m)->external, 1);
	rte_pktmbuf_free(m);
	drop_free(m);
	expect_shared(0, 0, 1);
	assert_int_equal(test_entry(m)->external, 0);
}

/* It never had a port: it may be the guest's, or the application's in its mbuf. */
static void test_a_guests_packet_whose_flags_were_reset_is_unknown(void **state)
{
	struct rt_tap *tap = (struct rt_tap *)(uintptr_t)test_tap(1, RT_DIR_RX);
	struct rte_mbuf *m = receive();
	uint16_t port = tap->port;

	rt_store(&tap->port, RTE_MAX_ETHPORTS);
	m->ol_flags = 0;
	m->port = RTE_MBUF_PORT_INVALID;
	rt_fates_feed(&session->rings[0], test_tap(0, RT_DIR_TX), &m, 1, rt_tsc());
	rt_store(&tap->port, port);
	truth[1].unknown++;
	test_check();
	rte_pktmbuf_free(m);
}

#define with_ports(f)  cmocka_unit_test_setup_teardown(f, begin, end)
#define with_pinned(f) cmocka_unit_test_setup_teardown(f, make_pinned, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_ports(test_a_guests_packet_whose_flags_were_reset_is_unknown),
		with_ports(test_a_new_port_may_have_sent_what_is_not_seen),
		with_ports(test_new_queues_of_a_port_may_have_sent_what_is_not_seen),
		with_ports(test_walks_publish_the_time_of_doubt_first),
		with_ports(test_a_stopped_port_may_have_refused_what_is_not_sent),
		with_ports(test_a_port_that_was_never_used_may_be_stopped),
		cmocka_unit_test_setup_teardown(test_doubt_is_an_event, begin_events, end),
		with_pinned(test_clones_of_pinned_buffers_are_their_packets),
		with_ports(test_clones_of_attached_buffers_are_their_packets),
		with_ports(test_lent_buffers_are_never_not_offered),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
