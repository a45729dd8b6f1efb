/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports in the statistics: description and the drivers' counters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "probe/hook/hook.h"
#include "probe/dpdk/given.h"
#include "probe/dpdk/ports.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

static uint16_t port;

static int make_port(void **state)
{
	port = test_port_make("net_ring_0");
	return rt_ports_watch(rt_hook_cut);
}

static int remove_port(void **state)
{
	test_monitors_drop();
	rt_ports_unwatch();
	test_port_remove(port);
	return 0;
}

static void test_ports_are_described(void **state)
{
	static struct rt_monitor m;
	const struct rt_stat_port *p;
	uint64_t nic[RT_NIC_COUNTERS];

	test_port_send(port, 5);
	test_monitor(&m, RT_COLLECT_POLLS, 1);
	p = &rt_stat_current->ports[test_port_index(port)];
	assert_string_equal(p->name, "net_ring_0");
	assert_string_equal(p->driver, "net_ring");
	assert_int_equal(p->link_up, 1);
	assert_int_equal(p->nb_rx_queues, 1);
	assert_int_equal(p->nb_tx_queues, 1);
	assert_int_equal(p->opackets, 5);
	assert_true(p->read_ns > 0);
	/* Sent before the hooks were installed. */
	assert_int_equal(p->tx_before, 0);
	assert_int_equal(p->tx_after, 0);
	test_port_send(port, 3);
	assert_int_equal(test_port_poll(port, 32), 8);
	test_stats_tick();
	assert_int_equal(p->ipackets, 8);
	assert_int_equal(p->opackets, 8);
	assert_int_equal(p->tx_before, 3);
	assert_int_equal(p->tx_after, 3);
	/* The application's own counts belong to it, here as in a recording. */
	assert_int_equal(p->imissed, 0);
	assert_int_equal(rt_port_set_missed(port, 7), 0);
	test_stats_tick();
	assert_int_equal(p->imissed, 7);
	assert_int_equal(rt_port_counters(port, 0, nic), 0);
	assert_int_equal(nic[2], 7);
	rt_port_set_missed(port, 0);
	test_monitor_end(&m);
}

static void assert_port(const struct rt_stat_port *p, uint64_t opackets, uint32_t epoch,
	uint64_t unknown, uint64_t passed)
{
	test_stats_tick();
	assert_int_equal(p->opackets, opackets);
	assert_int_equal(p->epoch, epoch);
	assert_int_equal(p->tx_unknown, unknown);
	assert_int_equal(p->tx_before, passed);
}

static void test_drivers_counters_are_carried_over(void **state)
{
	const struct rt_stat_port *p;
	static struct rt_monitor m;

	test_monitor(&m, RT_COLLECT_POLLS, 1);
	p = &rt_stat_current->ports[test_port_index(port)];
	test_port_send(port, 10);
	assert_port(p, 10, 0, 0, 10);
	/* Four are sent before the application resets the counters, three after it. */
	test_port_send(port, 4);
	assert_int_equal(rte_eth_stats_reset(port), 0);
	test_port_send(port, 3);
	assert_port(p, 13, 1, 4, 17);
	test_port_send(port, 20);
	assert_port(p, 33, 1, 4, 37);
	/* The same for a port that is removed and comes back. */
	test_port_send(port, 6);
	test_port_remove(port);
	test_stats_tick();
	port = test_port_make("net_ring_0");
	assert_port(p, 33, 2, 10, 43);
	test_port_send(port, 2);
	assert_port(p, 35, 2, 10, 45);
	test_monitor_end(&m);
}

/* A port is stopped before it is closed: its driver must not be called any more. Hooks are
 * installed on its new queues when it is started. */
static void test_drivers_of_stopped_ports_are_not_called(void **state)
{
	struct rte_eth_conf conf = {0};
	static struct rt_monitor m;
	uint32_t n[2], index;

	test_monitor(&m, RT_COLLECT_POLLS, 1);
	index = test_port_index(port);
	assert_int_equal(rte_eth_dev_stop(port), 0);
	assert_int_equal(rte_eth_dev_configure(port, 2, 1, &conf), 0);
	for (uint16_t q = 0; q < 2; q++)
		assert_int_equal(
			rte_eth_rx_queue_setup(port, q, 512, SOCKET_ID_ANY, NULL, test_pool()), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rt_port_queues(port, n), 0);
	assert_int_equal(n[RT_DIR_RX], 1);
	test_stats_tick();
	assert_int_equal(rt_stat_current->port_state[index].queues[RT_DIR_RX], 1);
	assert_int_equal(rte_eth_dev_start(port), 0);
	assert_int_equal(rt_port_queues(port, n), 0);
	assert_int_equal(n[RT_DIR_RX], 2);
	test_stats_tick();
	assert_int_equal(rt_stat_current->port_state[index].queues[RT_DIR_RX], 2);
	assert_int_equal(test_port_index(port), index);
	test_monitor_end(&m);
}

static void test_ports_that_were_in_use_are_known_to_be_stopped(void **state)
{
	const struct rt_stat_port *p;
	static struct rt_monitor m;

	test_monitor(&m, 0, 1);
	p = &rt_stat_current->ports[test_port_index(port)];
	assert_int_equal(rte_eth_dev_stop(port), 0);
	test_stats_tick();
	assert_true(p->stopped_ns > 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
	test_stats_tick();
	assert_int_equal(p->stopped_ns, 0);
	assert_false(p->used);
	test_port_send(port, 1);
	test_stats_tick();
	assert_true(p->used);
	test_monitor_end(&m);
	assert_int_equal(rte_eth_dev_stop(port), 0);
	test_monitor(&m, 0, 1); /* which did not see it run */
	p = &rt_stat_current->ports[test_port_index(port)];
	assert_true(p->used && p->stopped_ns);
	assert_int_equal(rte_eth_dev_start(port), 0);
	test_monitor_end(&m);
}

#define with_port(f) cmocka_unit_test_setup_teardown(f, make_port, remove_port)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_port(test_ports_are_described),
		with_port(test_ports_that_were_in_use_are_known_to_be_stopped),
		with_port(test_drivers_counters_are_carried_over),
		with_port(test_drivers_of_stopped_ports_are_not_called),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
