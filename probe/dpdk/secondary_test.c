/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe in a secondary process. This one is a primary, and DPDK treats it as that;
 * for the probe the linker replaces what tells them apart. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "common/clock.h"
#include "common/ipc.h"
#include "ports.h"
#include "reader/find/connect.h"
#include "ringtap/probe.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define WAIT_NS 10000000000ull

static bool without_queues;
static uint16_t port;

enum rte_proc_type_t __wrap_rte_eal_process_type(void);
enum rte_proc_type_t __wrap_rte_eal_process_type(void)
{
	return RTE_PROC_SECONDARY;
}

int __real_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *out);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *out);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *out)
{
	int ret = __real_rte_eth_dev_info_get(id, out);

	if (without_queues)
		out->nb_rx_queues = out->nb_tx_queues = 0;
	return ret;
}

static uint32_t macs_read;

int __real_rte_eth_macaddr_get(uint16_t id, struct rte_ether_addr *out);
int __wrap_rte_eth_macaddr_get(uint16_t id, struct rte_ether_addr *out);
int __wrap_rte_eth_macaddr_get(uint16_t id, struct rte_ether_addr *out)
{
	rt_fetch_add(&macs_read, 1);
	return __real_rte_eth_macaddr_get(id, out);
}

static uint64_t now(void)
{
	return rt_time_ns(CLOCK_MONOTONIC);
}

/* ---- ports */

static void nothing(uint16_t id)
{
}

static int watch(void **state)
{
	return rt_ports_watch(nothing);
}

static int unwatch(void **state)
{
	rt_ports_unwatch();
	test_port_remove(port);
	return 0;
}

/* In this process nothing but the driver's answer changes. */
static void test_queues_that_the_primary_sets_up_later_are_found(void **state)
{
	uint64_t until = now() + WAIT_NS;
	uint32_t n[2];

	port = test_port_make("net_ring_s");
	without_queues = true;
	assert_int_equal(rt_port_queues(port, n), 0);
	assert_int_equal(n[0] + n[1], 0);
	without_queues = false;
	do {
		sched_yield();
		assert_int_equal(rt_port_queues(port, n), 0);
	} while (n[0] + n[1] != 2 && now() < until);
	assert_int_equal(n[0] + n[1], 2);
}

/* The primary may close the port at any time. */
static void test_address_of_a_port_is_read_once(void **state)
{
	uint64_t until = now() + 5 * RT_PORTS_SETTLE_MS * 1000000ull;
	struct rt_msg_port desc;

	port = test_port_make("net_ring_s");
	macs_read = 0;
	do {
		sched_yield();
		assert_int_equal(rt_port_describe(port, &desc), 0);
	} while (now() < until);
	assert_int_equal(macs_read, 1);
	assert_true(desc.link_up);
}

/* ---- connections */

static uint32_t registered;

int __real_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type event, rte_eth_dev_cb_fn cb, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type event, rte_eth_dev_cb_fn cb, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type event, rte_eth_dev_cb_fn cb, void *arg)
{
	rt_fetch_add(&registered, 1);
	return __real_rte_eth_dev_callback_register(id, event, cb, arg);
}

static int reach(void)
{
	char app[256];
	int fd;

	snprintf(app, sizeof(app), "%s/%d", rte_eal_get_runtime_dir(), (int)getpid());
	fd = rt_connect(app, RT_SOCKET_NAME);
	assert_true(fd >= 0);
	return fd;
}

/* Sends the header of a message of this type, and as many bytes as it shall have. Returns the type
 * of the answer. */
static uint16_t answer_to(int fd, uint16_t type, uint32_t len)
{
	uint64_t buf[RT_MSG_MAX / 8] = {0};
	struct rt_msg_header *h = (void *)buf;

	rt_msg_init(h, type, len);
	assert_int_equal(rt_msg_send(fd, h, NULL, 0), 0);
	assert_true(rt_msg_recv(fd, buf, sizeof(buf), NULL, 0, NULL, 5000) > 0);
	return h->type;
}

/* A list of applications connects to each. What follows a greeting takes locks of the primary. */
static void test_connection_without_a_greeting_wakes_nothing(void **state)
{
	int fd;

	rt_store(&registered, 0);
	assert_int_equal(ringtap_probe_start(), 0);
	close(reach());
	/* Answered, so the one before has been accepted. */
	fd = reach();
	assert_int_equal(answer_to(fd, RT_MSG_LIST, sizeof(struct rt_msg_header)), RT_MSG_ERROR);
	close(fd);
	assert_int_equal(rt_load(&registered), 0);
	fd = reach();
	assert_int_equal(answer_to(fd, RT_MSG_HELLO, sizeof(struct rt_msg_hello)), RT_MSG_WELCOME);
	assert_int_equal(rt_load(&registered), 2);
	close(fd);
	ringtap_probe_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_queues_that_the_primary_sets_up_later_are_found, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_address_of_a_port_is_read_once, watch, unwatch),
		cmocka_unit_test(test_connection_without_a_greeting_wakes_nothing),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
