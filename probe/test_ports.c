/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "probe/capture/epb.h"
#include "probe/hook/hook.h"
#include "test_eal.h"
#include "test_ports.h"

#define MOST 1024

static struct rt_clock wall;
static struct rt_monitor *attached[16];

uint16_t test_port_make(const char *name)
{
	struct rte_eth_conf conf = {0};
	uint16_t port;

	assert_int_equal(rte_eal_hotplug_add("vdev", name, ""), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &port), 0);
	assert_int_equal(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, test_pool()), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
	return port;
}

void test_port_remove(uint16_t port)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	while (test_port_poll(port, 512))
		;
	rte_eth_dev_get_name_by_port(port, name);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	rte_eal_hotplug_remove("vdev", name);
}

void test_port_send(uint16_t port, unsigned n)
{
	struct rte_mbuf *m[MOST];

	assert_in_range(n, 0, MOST);
	for (unsigned i = 0; i < n; i++)
		m[i] = test_frame(i, 60);
	assert_int_equal(rte_eth_tx_burst(port, 0, m, (uint16_t)n), n);
}

unsigned test_port_receive(uint16_t port, struct rte_mbuf **pkts, unsigned max)
{
	return rte_eth_rx_burst(port, 0, pkts, (uint16_t)max);
}

unsigned test_port_poll(uint16_t port, unsigned max)
{
	struct rte_mbuf *m[MOST];
	unsigned n;

	assert_in_range(max, 0, MOST);
	n = test_port_receive(port, m, max);
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

void test_port_forward(uint16_t port)
{
	struct rte_mbuf *m[32];
	uint16_t n = rte_eth_rx_burst(port, 0, m, RTE_DIM(m));
	uint16_t sent = rte_eth_tx_burst(port, 0, m, n);

	rte_pktmbuf_free_bulk(m + sent, n - sent);
}

unsigned test_port_callbacks(uint16_t port)
{
	unsigned n = 0;

	for (int dir = 0; dir < 2; dir++) {
		const struct rt_hook *h = rt_hook_get(port, 0, dir);

		n += h->callback && h->users;
	}
	return n;
}

void test_stats_start(void)
{
	uint64_t tsc, ns;

	test_eal_start();
	rt_epb_init();
	if (rt_threads_init())
		abort();
	rt_clock_sample(&tsc, &ns);
	rt_clock_init(&wall, tsc, ns, tsc, ns, rte_get_tsc_hz());
	rt_hook_set_clock(&wall.line);
}

const struct rt_clock_line *test_clock(void)
{
	return &wall.line;
}

void test_monitor(struct rt_monitor *m, uint32_t collectors, uint32_t every)
{
	char err[RT_TEXT_LEN] = "";

	if (rt_stats_attach(m, collectors, every, test_clock(), err))
		fail_msg("%s", err);
	for (unsigned i = 0; i < RTE_DIM(attached); i++) {
		if (!attached[i] || attached[i] == m) {
			attached[i] = m;
			return;
		}
	}
	abort();
}

void test_monitors_drop(void)
{
	for (unsigned i = 0; i < RTE_DIM(attached) && attached[i]; i++) {
		rt_stats_detach(attached[i], test_clock());
		attached[i] = NULL;
	}
	while (!rt_stats_reclaim())
		sched_yield();
}

void test_monitor_end(struct rt_monitor *m)
{
	rt_stats_detach(m, test_clock());
	while (!rt_stats_reclaim())
		sched_yield();
}

void test_stats_tick(void)
{
	static uint64_t now_ms = 1u << 20;

	now_ms += 10000;
	rt_stats_tick(now_ms, test_clock());
}

uint32_t test_port_index(uint16_t port)
{
	const struct rt_stats *f = rt_stat_current;
	uint32_t i = 0;

	while (i < f->header->port_count &&
		!(f->ports[i].state == RT_IF_PRESENT && f->ports[i].port_id == port))
		i++;
	assert_in_range(i, 0, f->header->port_count - 1);
	return i;
}

const struct rt_stat_hook *test_block(uint16_t port, enum rt_direction dir)
{
	const struct rt_stats *f = rt_stat_current;
	uint32_t index = test_port_index(port),
		 n = RTE_MIN(f->header->hook_count, (uint32_t)RT_STAT_HOOKS);
	const struct rt_stat_hook *found = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct rt_stat_hook *b = &f->hooks[i];

		if (b->port_index != index || b->direction != dir || b->queue ||
			b->thread != rt_thread_self->index)
			continue;
		assert_null(found);
		found = b;
	}
	assert_non_null(found);
	return found;
}

const struct rt_stat_thread *test_thread(void)
{
	return &rt_stat_current->threads[rt_thread_self->index];
}

uint64_t test_sum(const uint64_t *v, unsigned n)
{
	uint64_t s = 0;

	while (n--)
		s += v[n];
	return s;
}

void test_spin(uint64_t cycles)
{
	uint64_t begin = rt_tsc();

	while (rt_tsc() - begin < cycles)
		rt_pause();
}
