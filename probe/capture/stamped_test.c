/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports whose packets have time stamps of CLOCK_REALTIME: times and busy state of their rings. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "epb.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/nic_time.h"
#include "request.h"
#include "ringtap/probe.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/tunables.h"

#define LONG_AGO 1500000000000000000ull /* ns since the epoch */

#define LINK 101 /* LINKTYPE_RAW */

static struct rt_session *session;
static uint16_t port, stamped, source; /* port: the one of the test */
static int field, wire_field;
static uint64_t flag, wire_flag;

static int start_port(uint16_t id)
{
	struct rte_eth_conf conf = {0};

	return rte_eth_dev_configure(id, 1, 1, &conf) ||
	       rte_eth_rx_queue_setup(id, 0, 512, SOCKET_ID_ANY, NULL, test_pool()) ||
	       rte_eth_tx_queue_setup(id, 0, 512, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(id);
}

static int make_source(void)
{
	static const struct rte_mbuf_dynfield length = {
		.name = "test_wire_length", .size = 4, .align = 4};
	static const struct rte_mbuf_dynflag cut = {.name = "test_cut"};
	struct ringtap_probe_source s = {.driver = "elsewhere", .linktype = LINK};

	wire_field = rte_mbuf_dynfield_register(&length);
	wire_flag = 1ull << rte_mbuf_dynflag_register(&cut);
	s.wire_offset = wire_field;
	s.wire_flag = wire_flag;
	return rte_eal_hotplug_add("vdev", "net_ring1", "") ||
	       rte_eth_dev_get_port_by_name("net_ring1", &source) ||
	       ringtap_probe_port_source(source, &s) || start_port(source);
}

static int make_ports(void **state)
{
	return rte_eal_hotplug_add("vdev", "net_ring0", "") ||
	       rte_eth_dev_get_port_by_name("net_ring0", &stamped) ||
	       rte_mbuf_dyn_rx_timestamp_register(&field, &flag) ||
	       ringtap_probe_port_stamped(stamped) || start_port(stamped) || make_source();
}

/* The port receives the packets that it sends. */
static void send_stamped(uint64_t ns)
{
	struct rte_mbuf *m = test_frame(1, 60);

	*RTE_MBUF_DYNFIELD(m, field, uint64_t *) = ns;
	m->ol_flags |= flag;
	assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
}

static uint16_t poll_port(void)
{
	struct rte_mbuf *m[4];
	uint16_t n = rte_eth_rx_burst(port, 0, m, 4);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static void open_with(uint16_t directions, uint32_t on_full)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = directions,
		.linktype = port == source ? LINK : 0,
		.snaplen = 96,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = TEST_RING, .on_full = on_full};

	snprintf(target.port, sizeof(target.port), "%u", port);
	session = test_session_open(&open, &target, NULL);
	poll_port(); /* so that this thread has a slot and the first ring */
	test_session_arm(session, test_clock());
}

static int open_session(void **state)
{
	port = stamped;
	open_with(RT_TARGET_RX, RT_ON_FULL_DROP);
	return 0;
}

static int open_both(void **state)
{
	port = stamped;
	open_with(RT_TARGET_RX | RT_TARGET_TX, RT_ON_FULL_DROP);
	return 0;
}

static int open_source(void **state)
{
	port = source;
	open_with(RT_TARGET_RX | RT_TARGET_TX, RT_ON_FULL_DROP);
	return 0;
}

static int open_waiting(void **state)
{
	port = stamped;
	rt_probe_limits.full_wait_ms = 3600000;
	open_with(RT_TARGET_RX, RT_ON_FULL_WAIT);
	return 0;
}

static int close_session(void **state)
{
	rt_session_stop(session);
	while (!rt_session_stopped(session) || !rt_hook_reclaim())
		sched_yield();
	rt_session_free(session);
	return 0;
}

static const struct rt_seg_ring *ring(void)
{
	return session->rings[0].pub;
}

static const struct rt_epb *record(unsigned i)
{
	const struct rt_epb *e = (const void *)session->shm.data;

	while (i--)
		e = (const void *)((const uint8_t *)e + e->total_len);
	return e;
}

static uint64_t record_ns(unsigned i)
{
	return (uint64_t)record(i)->ts_high << 32 | record(i)->ts_low;
}

static void test_packets_have_their_stamps_with_timestamp_tsc(void **state)
{
	send_stamped(LONG_AGO);
	send_stamped(LONG_AGO + 7);
	assert_int_equal(poll_port(), 2);
	assert_int_equal(record_ns(0), LONG_AGO);
	assert_int_equal(record_ns(1), LONG_AGO + 7);
}

/* Packets that wait may be older than the session. */
static void test_ring_holds_the_watermark_before_its_first_poll(void **state)
{
	assert_int_equal(ring()->busy, 1);
	assert_int_equal(ring()->last_ns, 0);
}

static void test_ring_stays_busy_as_of_its_last_packet(void **state)
{
	send_stamped(LONG_AGO);
	send_stamped(LONG_AGO + 7);
	poll_port();
	assert_int_equal(ring()->busy, 1);
	assert_int_equal(ring()->last_ns, LONG_AGO + 7);
}

/* Before the time of packets to be received is known. */
static void test_ring_that_only_sends_holds_the_watermark(void **state)
{
	send_stamped(LONG_AGO);
	assert_int_equal(ring()->busy, 1);
	assert_int_equal(ring()->last_ns, 0);
	assert_in_range(ring()->head, 1, TEST_RING);
	poll_port();
	assert_int_equal(ring()->last_ns, LONG_AGO);
}

static void test_sent_packets_keep_the_ring_in_order(void **state)
{
	ringtap_probe_received_until(LONG_AGO - 10);
	send_stamped(LONG_AGO);
	assert_int_equal(record_ns(0), LONG_AGO - 10);
	poll_port();
	assert_int_equal(record_ns(1), LONG_AGO);
	send_stamped(LONG_AGO + 7);
	assert_int_equal(record_ns(2), LONG_AGO);
	assert_int_equal(ring()->last_ns, LONG_AGO);
	assert_int_equal(ring()->busy, 1);
	poll_port();
	assert_int_equal(record_ns(3), LONG_AGO + 7);
	assert_int_equal(ring()->last_ns, LONG_AGO + 7);
	assert_int_equal(ring()->busy, 1);
}

/* ---- on-full=wait ---- */

static struct {
	uint64_t head, last_ns; /* published during the burst */
} waiting;

/* Releases space for the rest of the burst. */
static void *release(void *arg)
{
	uint64_t before = waiting.head;

	while (rt_load_acquire(&ring()->head) == before)
		sched_yield();
	waiting.head = rt_load_acquire(&ring()->head);
	waiting.last_ns = rt_load_acquire(&ring()->last_ns);
	rt_store_release(&session->shm.tails[0].tail, waiting.head);
	return NULL;
}

/* Later packets of the burst may not be before last_ns. */
static void test_last_ns_is_published_before_a_wait(void **state)
{
	const struct rt_epb *first = (const void *)session->shm.data;
	uint64_t limit = test_session_room(session), before, bytes, written;
	pthread_t thread;

	do {
		send_stamped(LONG_AGO);
		assert_int_equal(poll_port(), 1);
		before = ring()->head;
	} while (before + 400 <= limit); /* room for one to three */
	bytes = first->total_len;
	for (unsigned i = 1; i <= 4; i++)
		send_stamped(LONG_AGO + i);
	waiting.head = before;
	assert_int_equal(pthread_create(&thread, NULL, release, NULL), 0);
	assert_int_equal(poll_port(), 4);
	pthread_join(thread, NULL);
	assert_in_range(waiting.head - before, bytes, 3 * bytes);
	written = (waiting.head - before) / bytes;
	assert_int_equal(waiting.last_ns, LONG_AGO + 1 + written);
	assert_int_equal(ring()->last_ns, LONG_AGO + 4);
	/* In the next chunk. */
	assert_int_equal(ring()->head, limit + RT_CHUNK_GUARD + (4 - written) * bytes);
}

static void test_empty_polls_publish_last_ns(void **state)
{
	ringtap_probe_received_until(LONG_AGO + 100);
	assert_int_equal(poll_port(), 0);
	assert_int_equal(ring()->last_ns, LONG_AGO + 100);
	/* It never decreases. */
	ringtap_probe_received_until(LONG_AGO + 50);
	assert_int_equal(poll_port(), 0);
	assert_int_equal(ring()->last_ns, LONG_AGO + 100);
	assert_int_equal(ring()->busy, 1);
	assert_int_equal(ring()->head, 0);
}

/* ---- ports whose packets come from elsewhere ---- */

/* A packet of 60 bytes with the wire length, received as it was sent. */
static void pass_cut(uint64_t ns, uint32_t wire)
{
	struct rte_mbuf *m = test_frame(1, 60);

	*RTE_MBUF_DYNFIELD(m, field, uint64_t *) = ns;
	*RTE_MBUF_DYNFIELD(m, wire_field, uint32_t *) = wire;
	m->ol_flags |= flag | wire_flag;
	assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
	assert_int_equal(poll_port(), 1);
}

static void test_sent_packets_of_a_source_have_their_stamps(void **state)
{
	send_stamped(LONG_AGO + 300);
	assert_int_equal(record_ns(0), LONG_AGO + 300);
	assert_int_equal(ring()->last_ns, LONG_AGO + 300);
	poll_port();
	assert_int_equal(record_ns(1), LONG_AGO + 300);
}

static void test_cut_packets_have_their_length_on_the_wire(void **state)
{
	pass_cut(LONG_AGO, 9000);
	pass_cut(LONG_AGO, 10); /* less than there is: not true */
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(record(i)->cap_len, 60);
		assert_int_equal(record(i)->orig_len, i < 2 ? 9000 : 60);
	}
	assert_int_equal(
		session->shm.counts[0].bytes + session->shm.counts[1].bytes, 2 * (9000 + 60));
}

static void test_ports_that_are_no_source_have_no_wire_length(void **state)
{
	pass_cut(LONG_AGO, 9000);
	assert_int_equal(record(0)->orig_len, 60);
}

static void test_description_of_a_source(void **state)
{
	struct rt_msg_port p;

	assert_int_equal(rt_port_describe(source, &p), 0);
	assert_string_equal(p.driver, "elsewhere");
	assert_int_equal(p.linktype, LINK);
	assert_int_equal(p.stamps, RT_STAMPS_TIME);
	assert_int_equal(session->shm.ifs[0].linktype, LINK);
	assert_int_equal(rt_port_describe(stamped, &p), 0);
	assert_int_equal(p.linktype, 0);
}

/* Readers that do not know of link types request Ethernet. */
static void test_ports_of_another_link_type_are_not_captured(void **state)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX,
		.snaplen = 96,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = TEST_RING};
	char err[RT_TEXT_LEN];
	struct rt_request req = {.open = open, .targets = &target};
	struct rt_session *s;

	req.open.target_count = 1;
	snprintf(target.port, sizeof(target.port), "%u", source);
	assert_int_equal(rt_session_open(&s, &req, err), -ENOTSUP);
	assert_non_null(strstr(err, "port 'net_ring1' has packets of link type 101, which the"));
	target.port[0] = 0;
	session = test_session_open(&open, &target, NULL);
	assert_int_equal(session->if_count, 1);
	assert_int_equal(session->ifs[0].port.port_id, stamped);
	test_session_arm(session, test_clock());
	close_session(NULL);
}

static void test_counts_are_added_to_the_drivers(void **state)
{
	const struct ringtap_probe_counts more = {5, 500, 7, 700};
	struct rt_port_stats before, after;

	assert_int_equal(rt_port_stats(source, 0, &before), 0);
	assert_int_equal(ringtap_probe_port_count(source, &more), 0);
	assert_int_equal(rt_port_stats(source, 0, &after), 0);
	assert_int_equal(after.ipackets - before.ipackets, 5);
	assert_int_equal(after.ibytes - before.ibytes, 500);
	assert_int_equal(after.opackets - before.opackets, 7);
	assert_int_equal(after.obytes - before.obytes, 700);
}

static void test_port_ids_are_bounded(void **state)
{
	const struct ringtap_probe_source s = {.driver = ""};
	const struct ringtap_probe_counts more = {0};

	assert_int_equal(ringtap_probe_port_stamped(RTE_MAX_ETHPORTS), -EINVAL);
	assert_int_equal(ringtap_probe_port_source(RTE_MAX_ETHPORTS, &s), -EINVAL);
	assert_int_equal(ringtap_probe_port_count(RTE_MAX_ETHPORTS, &more), -EINVAL);
}

/* Zero and not known are different: nothing reads the driver of a stopped port. */
static void test_counters_of_the_nic_have_the_time_of_their_reading(void **state)
{
	const struct rt_seg_if *f = &session->shm.ifs[0];
	uint64_t read_ns, received;

	assert_int_equal(f->nic_ns, 0);
	assert_int_equal(rte_eth_dev_stop(stamped), 0);
	rt_session_refresh(session, 0);
	assert_int_equal(f->nic_ns, 0);
	assert_int_equal(rte_eth_dev_start(stamped), 0);
	send_stamped(LONG_AGO);
	assert_int_equal(poll_port(), 1);
	rt_session_refresh(session, 0);
	read_ns = f->nic_ns;
	received = f->ipackets;
	assert_true(read_ns > LONG_AGO);
	assert_true(received > 0);
	/* The last reading stays. */
	assert_int_equal(rte_eth_dev_stop(stamped), 0);
	rt_session_refresh(session, 0);
	assert_int_equal(f->nic_ns, read_ns);
	assert_int_equal(f->ipackets, received);
	assert_int_equal(rte_eth_dev_start(stamped), 0);
}

#define in_session(f) cmocka_unit_test_setup_teardown(f, open_session, close_session)
#define of_source(f)  cmocka_unit_test_setup_teardown(f, open_source, close_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_session(test_packets_have_their_stamps_with_timestamp_tsc),
		in_session(test_ring_holds_the_watermark_before_its_first_poll),
		in_session(test_ring_stays_busy_as_of_its_last_packet),
		cmocka_unit_test_setup_teardown(
			test_ring_that_only_sends_holds_the_watermark, open_both, close_session),
		cmocka_unit_test_setup_teardown(
			test_last_ns_is_published_before_a_wait, open_waiting, close_session),
		cmocka_unit_test_setup_teardown(
			test_sent_packets_keep_the_ring_in_order, open_both, close_session),
		in_session(test_empty_polls_publish_last_ns),
		of_source(test_sent_packets_of_a_source_have_their_stamps),
		of_source(test_cut_packets_have_their_length_on_the_wire),
		cmocka_unit_test_setup_teardown(test_ports_that_are_no_source_have_no_wire_length,
			open_both, close_session),
		of_source(test_description_of_a_source),
		cmocka_unit_test(test_ports_of_another_link_type_are_not_captured),
		cmocka_unit_test(test_counts_are_added_to_the_drivers),
		in_session(test_counters_of_the_nic_have_the_time_of_their_reading),
		cmocka_unit_test(test_port_ids_are_bounded),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, make_ports, NULL);
}
