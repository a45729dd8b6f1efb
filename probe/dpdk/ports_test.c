/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often the probe calls drivers: the linker wraps ethdev's functions that call a driver, and
 * the test counts them. Stopped ports, and the counters of ports that start or come back later.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "probe/hook/hook.h"
#include "nic_time.h"
#include "reader/capture/capture.h"
#include "probe/capture/request.h"
#include "ringtap/monitor.h"
#include "ringtap/probe.h"
#include "probe/monitor/refresh.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define LOOKS 200u
#define TICKS 25u /* steps of the control thread */

/* ---- calls of drivers ---- */

enum call { CALL_INFO, CALL_LINK, CALL_STATS, CALL_RXQ, CALL_TXQ, CALL_CLOCK, CALLS };

static uint32_t calls[RTE_MAX_ETHPORTS][CALLS];

#define WRAP(function, call, parameters, arguments)  \
	int __real_##function parameters;            \
	int __wrap_##function parameters;            \
	int __wrap_##function parameters             \
	{                                            \
		rt_fetch_add(&calls[port][call], 1); \
		return __real_##function arguments;  \
	}

WRAP(rte_eth_dev_info_get, CALL_INFO, (uint16_t port, struct rte_eth_dev_info *out), (port, out))
WRAP(rte_eth_link_get_nowait, CALL_LINK, (uint16_t port, struct rte_eth_link *out), (port, out))
WRAP(rte_eth_stats_get, CALL_STATS, (uint16_t port, struct rte_eth_stats *out), (port, out))
WRAP(rte_eth_rx_queue_info_get, CALL_RXQ,
	(uint16_t port, uint16_t queue, struct rte_eth_rxq_info *out), (port, queue, out))
WRAP(rte_eth_tx_queue_info_get, CALL_TXQ,
	(uint16_t port, uint16_t queue, struct rte_eth_txq_info *out), (port, queue, out))
WRAP(rte_eth_read_clock, CALL_CLOCK, (uint16_t port, uint64_t *out), (port, out))

static uint32_t calls_of(uint16_t id)
{
	uint32_t n = 0;

	for (int i = 0; i < CALLS; i++)
		n += rt_load(&calls[id][i]);
	return n;
}

static uint32_t called(uint16_t id, enum call call)
{
	return rt_load(&calls[id][call]);
}

static void reset_calls(void)
{
	for (uint32_t *c = &calls[0][0]; c < &calls[0][0] + RTE_MAX_ETHPORTS * CALLS; c++)
		rt_store(c, 0);
}

/* ---- ports and sessions ---- */

static uint16_t port[2];

static int make_ports(void **state)
{
	port[0] = test_port_make("net_ring_0");
	port[1] = test_port_make("net_ring_1");
	return 0;
}

static int remove_ports(void **state)
{
	test_port_remove(port[0]);
	test_port_remove(port[1]);
	return 0;
}

static struct rt_session *ready_session(const char *name, uint64_t buffer_size)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 96,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = buffer_size};
	struct rt_session *s;

	snprintf(target.port, sizeof(target.port), "%s", name);
	s = test_session_open(&open, &target, NULL);
	test_session_ready(s, test_clock());
	return s;
}

static struct rt_session *open_session(const char *name, uint64_t buffer_size)
{
	struct rt_session *s = ready_session(name, buffer_size);

	rt_session_arm(s, test_clock());
	return s;
}

static void end_session(struct rt_session *s)
{
	test_session_end(s);
	rt_session_free(s);
}

static void set_queues(uint16_t id, uint16_t rx, uint16_t tx)
{
	struct rte_eth_conf conf = {0};

	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(rte_eth_dev_configure(id, rx, tx, &conf), 0);
	for (uint16_t q = 0; q < rx; q++)
		assert_int_equal(
			rte_eth_rx_queue_setup(id, q, 512, SOCKET_ID_ANY, NULL, test_pool()), 0);
	for (uint16_t q = 0; q < tx; q++)
		assert_int_equal(rte_eth_tx_queue_setup(id, q, 512, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(id), 0);
}

/* ---- how often ---- */

static void test_ports_that_are_not_captured_are_not_called(void **state)
{
	struct rt_session *s;

	reset_calls();
	s = open_session("net_ring_0", TEST_RING);
	assert_true(called(port[0], CALL_INFO) > 0);
	reset_calls();
	for (unsigned i = 0; i < LOOKS; i++)
		rt_session_rescan(s);
	assert_int_equal(calls_of(port[0]), 0);
	for (unsigned i = 0; i < 5; i++)
		rt_session_refresh(s, 450);
	assert_in_range(calls_of(port[0]), 0, 1);
	end_session(s);
	s = open_session("0", TEST_RING); /* by port id */
	for (unsigned i = 0; i < LOOKS; i++)
		rt_session_rescan(s);
	end_session(s);
	assert_int_equal(calls_of(port[1]), 0);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Waits for this number of ticks: the control thread writes the clock once a tick. Returns the time
 * in ms. */
static uint64_t let_tick(const struct ringtap_capture *cap, unsigned ticks)
{
	const struct rt_seg_clock *clock = cap->sources[0].seg.clock;
	uint32_t until = rt_load(&clock->seq) + 2 * ticks;
	uint64_t begin = now_ms();

	while ((int32_t)(rt_load(&clock->seq) - until) < 0)
		sched_yield();
	return now_ms() - begin;
}

/* The complete path: readers, control thread, two sessions and a monitor of the same ports. */
static void test_drivers_are_called_rarely(void **state)
{
	static const struct ringtap_target targets[] = {
		{.port = "net_ring_0", .queue = -1, .directions = RINGTAP_RX | RINGTAP_TX}};
	const char *dir = rte_eal_get_runtime_dir();
	struct ringtap_capture *cap[2];
	struct ringtap_monitor *mon;
	char err[RT_TEXT_LEN];
	uint64_t ms;

	assert_int_equal(ringtap_probe_start(), 0);
	reset_calls();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ringtap_capture_create(&cap[i], NULL), 0);
		if (ringtap_capture_attach(cap[i], dir, targets, 1, NULL))
			fail_msg("%s", ringtap_capture_error(cap[i]));
		assert_int_equal(ringtap_capture_start(cap[i]), 0);
	}
	assert_int_equal(calls_of(port[1]), 0);
	let_tick(cap[0], 2);
	reset_calls();
	ms = let_tick(cap[0], TICKS);
	assert_int_equal(calls_of(port[1]), 0);
	assert_int_equal(calls_of(port[0]), called(port[0], CALL_STATS));
	assert_in_range(called(port[0], CALL_STATS), 1, ms / 450 + 1);
	/* A monitor attaches to all ports. */
	if (ringtap_monitor_open(&mon, dir,
		    &(struct ringtap_monitor_options){
			    .size = sizeof(struct ringtap_monitor_options),
			    .collectors = RINGTAP_POLLS,
			    .latency_every = 1},
		    err, sizeof(err)))
		fail_msg("%s", err);
	let_tick(cap[0], 2);
	reset_calls();
	ms = let_tick(cap[0], TICKS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(called(port[i], CALL_INFO), 0);
		assert_in_range(called(port[i], CALL_LINK), 0, ms / 1000 + 1);
		assert_in_range(called(port[i], CALL_RXQ), 0, ms / 1000 + 1);
		assert_in_range(called(port[i], CALL_STATS), 1, 2 * (ms / 450 + 1));
	}
	ringtap_monitor_close(mon);
	for (int i = 0; i < 2; i++)
		ringtap_capture_close(cap[i]);
	ringtap_probe_stop();
}

/* Between two scans: detected by reading memory only. */
static void test_changed_numbers_of_queues_are_detected(void **state)
{
	struct rt_session *s = open_session("net_ring_0", TEST_RING);
	uint32_t n[2];

	assert_int_equal(s->tap_count, 2);
	reset_calls();
	set_queues(port[0], 3, 2);
	reset_calls(); /* starting a port also calls its driver */
	for (unsigned i = 0; i < LOOKS; i++)
		rt_session_rescan(s);
	assert_int_equal(s->tap_count, 5);
	assert_int_equal(calls_of(port[0]), 1);
	set_queues(port[0], 1, 2);
	assert_int_equal(rt_port_queues(port[0], n), 0);
	assert_int_equal(n[RT_DIR_RX], 1);
	assert_int_equal(n[RT_DIR_TX], 2);
	set_queues(port[0], 1, 1);
	assert_int_equal(rt_port_queues(port[0], n), 0);
	assert_int_equal(n[RT_DIR_TX], 1);
	end_session(s);
}

/* ---- stopped ports ---- */

static uint16_t make_null(unsigned i)
{
	struct rte_eth_conf conf = {0};
	char name[32];
	uint16_t id;

	snprintf(name, sizeof(name), "net_null%u", i);
	assert_int_equal(rte_eal_hotplug_add("vdev", name, ""), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
	assert_int_equal(rte_eth_dev_configure(id, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(id, 0, 512, SOCKET_ID_ANY, NULL, test_pool()), 0);
	assert_int_equal(rte_eth_tx_queue_setup(id, 0, 512, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(id), 0);
	return id;
}

static void remove_null(uint16_t id, unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "net_null%u", i);
	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", name), 0);
}

/* All port ids that exist, including the last one. */
static void test_maximum_number_of_ports(void **state)
{
	uint64_t nic[RT_NIC_COUNTERS];
	struct rt_session *s;

	for (unsigned i = 2; i < RTE_MAX_ETHPORTS; i++)
		assert_int_equal(make_null(i), i);
	s = open_session("", TEST_RING);
	assert_int_equal(s->shm.header->if_count, RTE_MAX_ETHPORTS);
	assert_int_equal(s->shm.header->tap_count, 2 * RTE_MAX_ETHPORTS);
	for (uint16_t i = 2; i < RTE_MAX_ETHPORTS; i++)
		assert_int_equal(test_port_poll(i, 32), 32);
	rt_session_refresh(s, 0);
	for (uint16_t i = 2; i < RTE_MAX_ETHPORTS; i++) {
		struct rt_msg_port desc;

		assert_int_equal(rt_port_describe(i, &desc), 0);
		assert_int_equal(desc.nb_rx_queues, 1);
		assert_int_equal(s->shm.ifs[i].ipackets, 32);
	}
	assert_int_equal(rte_eth_dev_stop(RTE_MAX_ETHPORTS - 1), 0);
	assert_int_equal(rt_port_counters(RTE_MAX_ETHPORTS - 1, 0, nic), -ENODEV);
	assert_int_equal(rt_port_counters(RTE_MAX_ETHPORTS - 2, 0, nic), 0);
	end_session(s);
	for (uint16_t i = 2; i < RTE_MAX_ETHPORTS; i++)
		remove_null(i, i);
}

static uint64_t nic_opackets(struct rt_session *s)
{
	rt_session_refresh(s, 0);
	return s->shm.ifs[0].opackets;
}

static void test_counters_of_a_stopped_port_begin_with_the_session(void **state)
{
	struct rt_session *s;

	test_port_send(port[0], 5);
	assert_int_equal(rte_eth_dev_stop(port[0]), 0);
	s = open_session("net_ring_0", TEST_RING);
	assert_int_equal(nic_opackets(s), 0);
	assert_int_equal(rte_eth_dev_start(port[0]), 0);
	test_port_send(port[0], 3); /* before the first scan */
	assert_int_equal(nic_opackets(s), 3);
	/* The application resets its counters: packets counted before stay counted. */
	assert_int_equal(rte_eth_stats_reset(port[0]), 0);
	test_port_send(port[0], 2);
	assert_int_equal(nic_opackets(s), 5);
	end_session(s);
}

/* It takes seconds to make a large memory: "seen 0" stood beside the packets of that time. */
static void test_counters_begin_when_packets_can_be_captured(void **state)
{
	struct rt_session *s = ready_session("net_ring_0", TEST_RING);

	test_port_send(port[0], 9);
	rt_session_arm(s, test_clock());
	assert_int_equal(nic_opackets(s), 0);
	test_port_send(port[0], 2);
	assert_int_equal(nic_opackets(s), 2);
	end_session(s);
}

static struct rt_session *watched; /* NULL: none */

static void rescan(void)
{
	if (watched)
		rt_session_rescan(watched);
	if (rt_stat_current)
		rt_stats_scan_ports(rt_stat_current);
}

static void test_counters_of_a_port_that_comes_back_continue(void **state)
{
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	watched = open_session("net_ring_0", TEST_RING);
	for (unsigned i = 1; i <= 3; i++) {
		test_port_send(port[0], 7);
		assert_int_equal(nic_opackets(watched), 7 * i);
		test_port_remove(port[0]);
		assert_int_equal(nic_opackets(watched), 7 * i);
		port[0] = test_port_make("net_ring_0");
		rescan();
	}
	rt_ports_unwatch();
	end_session(watched);
	watched = NULL;
}

/* ---- ports that come back, and more ports than entries ---- */

static uint64_t captured(const struct rt_session *s, uint32_t tap)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r <= s->rows; r++)
		n += test_session_row(s, r)[tap].captured;
	return n;
}

/* More often than there are entries. All packets belong to its interface and its taps. */
static void test_captures_of_a_port_that_comes_back_continue(void **state)
{
	const uint32_t times = RT_MAX_IFS + 20;
	uint16_t id = port[1];

	watched = open_session("", 4 << 20);
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	for (uint32_t i = 1; i <= times; i++) {
		test_port_send(port[1], 3);
		assert_int_equal(test_port_poll(port[1], 32), 3);
		test_port_remove(port[1]);
		if (i % 2) { /* the control thread may notice it late */
			rescan();
			assert_int_equal(watched->shm.ifs[1].state, RT_IF_GONE);
		}
		port[1] = test_port_make("net_ring_1");
		assert_int_equal(port[1], id); /* the id is reused */
		rescan();
		assert_int_equal(watched->shm.ifs[1].state, RT_IF_PRESENT);
		while (!rt_hook_reclaim())
			sched_yield();
	}
	assert_int_equal(watched->shm.header->if_count, 2);
	assert_int_equal(watched->shm.header->tap_count, 4);
	assert_int_equal(watched->taps_refused, 0);
	for (uint32_t t = 0; t < 4; t++)
		assert_int_equal(
			captured(watched, t), watched->shm.taps[t].if_index == 1 ? 3 * times : 0);
	rt_ports_unwatch();
	end_session(watched);
	watched = NULL;
	assert_int_equal(test_port_callbacks(port[1]), 0);
}

/* The two ports come back with exchanged ids. */
static void test_port_that_comes_back_under_another_id(void **state)
{
	const uint16_t id[2] = {port[0], port[1]};

	watched = open_session("", TEST_RING);
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	test_port_remove(port[0]);
	test_port_remove(port[1]);
	port[1] = test_port_make("net_ring_1");
	port[0] = test_port_make("net_ring_0");
	assert_true(port[0] == id[1] && port[1] == id[0]);
	rescan();
	assert_int_equal(watched->shm.header->if_count, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(watched->shm.ifs[i].port_id, port[i]);
	test_port_send(port[0], 5);
	test_port_poll(port[0], 32);
	for (uint32_t t = 0; t < 4; t++)
		assert_int_equal(captured(watched, t), watched->shm.taps[t].if_index ? 0 : 5);
	rt_ports_unwatch();
	end_session(watched);
	watched = NULL;
}

/* Each has another name: all of them have an entry until the table is full, and packets of the rest
 * are counted. */
static void test_more_ports_than_entries_are_counted(void **state)
{
	const uint32_t beyond = 3;

	watched = open_session("", TEST_RING);
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	for (uint32_t i = 2; i < RT_MAX_IFS + beyond; i++) {
		uint16_t id = make_null(i);

		rescan();
		rescan();
		if (i == 200) {
			assert_int_equal(watched->taps_refused, 0);
			assert_int_equal(watched->tap_count, 2 * (i + 1));
		}
		remove_null(id, i);
	}
	assert_int_equal(watched->shm.header->if_count, RT_MAX_IFS);
	/* Ports without an entry, and queues of others without a tap. */
	assert_int_equal(watched->tap_count, watched->tap_capacity);
	assert_int_equal(
		watched->shm.header->taps_refused, 2 * RT_MAX_IFS - watched->tap_capacity + beyond);
	rt_ports_unwatch();
	end_session(watched);
	watched = NULL;
}

/* Another NIC at the same place is another port. */
static void test_identity_of_a_port(void **state)
{
	static const uint8_t hardware[6] = {0, 0x1b, 0x21, 1, 2, 3},
			     made_up[6] = {2, 1, 2, 3, 4, 5};
	struct rt_msg_port p = {.name = "0000:03:00.0", .driver = "net_ice"};

	memcpy(p.mac, hardware, 6);
	assert_true(rt_port_same(&p, p.name, p.driver, hardware));
	assert_false(rt_port_same(&p, p.name, p.driver, made_up));
	assert_false(rt_port_same(&p, p.name, "net_i40e", hardware));
	assert_false(rt_port_same(&p, "0000:03:00.1", p.driver, hardware));
	memcpy(p.mac, made_up, 6);
	assert_true(rt_port_same(&p, p.name, p.driver, hardware));
}

/* Within RT_PORTS_SETTLE_MS, and noticed while it is stopped. */
static void test_port_that_restarts_soon_after_its_creation_keeps_its_hooks(void **state)
{
	struct rt_session *s = open_session("net_ring_1", TEST_RING);

	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	test_port_remove(port[1]);
	port[1] = test_port_make("net_ring_1");
	rt_session_rescan(s);
	rte_eth_dev_stop(port[1]);
	rt_session_rescan(s);
	assert_int_equal(s->shm.ifs[0].state, RT_IF_PRESENT);
	assert_int_equal(rte_eth_dev_start(port[1]), 0);
	test_port_send(port[1], 3);
	assert_int_equal(test_port_poll(port[1], 32), 3);
	assert_int_equal(captured(s, 0) + captured(s, 1), 6);
	rt_ports_unwatch();
	end_session(s);
}

/* More often than there are entries. It keeps its entry and blocks: its counters do not decrease,
 * although those of the driver restart. */
static void test_statistics_of_a_port_that_comes_back_continue(void **state)
{
	static struct rt_monitor mon;
	const struct rt_stat_port *p;
	uint32_t index, blocks;

	test_monitor(&mon, RT_COLLECT_POLLS, 1);
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	index = test_port_index(port[1]);
	p = &rt_stat_current->ports[index];
	test_port_send(port[1], 1);
	test_port_poll(port[1], 32);
	blocks = rt_stat_current->header->hook_count;
	for (unsigned i = 2; i < RT_STAT_PORTS + 20; i++) {
		test_stats_tick();
		test_port_remove(port[1]);
		if (i % 2) {
			rescan();
			assert_int_equal(p->state, RT_IF_GONE);
		}
		assert_null(rt_hook_get(port[1], 0, RT_DIR_RX)->stats);
		port[1] = test_port_make("net_ring_1");
		rescan();
		assert_int_equal(test_port_index(port[1]), index);
		test_port_send(port[1], 1);
		assert_int_equal(test_port_poll(port[1], 32), 1);
		assert_int_equal(test_block(port[1], RT_DIR_RX)->burst[1], i);
		test_stats_tick();
		assert_int_equal(p->ipackets, i);
		assert_int_equal(p->opackets, i);
	}
	assert_int_equal(rt_stat_current->header->hook_count, blocks);
	assert_int_equal(rt_stat_current->header->ports_beyond, 0);
	rt_ports_unwatch();
	test_monitor_end(&mon);
}

/* No session was open while the port was replaced. */
static void test_clock_of_a_port_without_sessions_is_reset(void **state)
{
	struct rt_nic_clock *c;

	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	c = rt_nic_clock_get(port[1], "net_ring", rt_port_generation(port[1]));
	c->first_ticks = 1;
	assert_ptr_equal(c, rt_nic_clock_get(port[1], "net_ring", rt_port_generation(port[1])));
	assert_int_equal(c->first_ticks, 1); /* used by another session */
	rt_ports_unwatch();
	test_port_remove(port[1]);
	port[1] = test_port_make("net_ring_1");
	assert_int_equal(rt_ports_watch(rt_hook_cut), 0);
	rt_nic_clock_get(port[1], "net_ring", rt_port_generation(port[1]));
	assert_int_equal(c->first_ticks, 0);
	rt_ports_unwatch();
}

#define with_ports(f) cmocka_unit_test_setup_teardown(f, make_ports, remove_ports)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_ports(test_ports_that_are_not_captured_are_not_called),
		with_ports(test_drivers_are_called_rarely),
		with_ports(test_changed_numbers_of_queues_are_detected),
		with_ports(test_maximum_number_of_ports),
		with_ports(test_counters_of_a_stopped_port_begin_with_the_session),
		with_ports(test_counters_begin_when_packets_can_be_captured),
		with_ports(test_counters_of_a_port_that_comes_back_continue),
		with_ports(test_captures_of_a_port_that_comes_back_continue),
		with_ports(test_port_that_comes_back_under_another_id),
		with_ports(test_more_ports_than_entries_are_counted),
		with_ports(test_statistics_of_a_port_that_comes_back_continue),
		with_ports(test_port_that_restarts_soon_after_its_creation_keeps_its_hooks),
		with_ports(test_clock_of_a_port_without_sessions_is_reset),
		cmocka_unit_test(test_identity_of_a_port),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
