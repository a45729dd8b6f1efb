/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK application whose second lcore sleeps until its port has packets (RX interrupt mode), and
 * sends them back. For each line of standard input it prints two numbers: how often it has slept,
 * and how many packets it has received. */
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#define BURST 32

static uint64_t slept, received;

static int set_up(struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {.intr_conf = {.rxq = 1}};

	return !pool || rte_eth_dev_configure(0, 1, 1, &conf) ||
	       rte_eth_rx_queue_setup(0, 0, 256, 0, NULL, pool) ||
	       rte_eth_tx_queue_setup(0, 0, 256, 0, NULL) || rte_eth_dev_start(0);
}

/* Until the port has no more. net_tap has its packets some time after the interrupt: a signal
 * handler tells it of them. */
static void drain(void)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 20;
	struct rte_mbuf *pkts[BURST];

	while (rte_rdtsc() < end) {
		uint16_t n = rte_eth_rx_burst(0, 0, pkts, BURST), sent;

		sent = rte_eth_tx_burst(0, 0, pkts, n);
		rte_pktmbuf_free_bulk(pkts + sent, n - sent);
		__atomic_add_fetch(&received, n, __ATOMIC_RELAXED);
	}
}

static int sleep_and_drain(void *arg)
{
	struct rte_epoll_event event;

	(void)arg;
	if (rte_eth_dev_rx_intr_ctl_q(0, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL)) {
		puts("no interrupts");
		exit(1);
	}
	puts("ready");
	for (;;) {
		rte_eth_dev_rx_intr_enable(0, 0);
		__atomic_add_fetch(&slept, 1, __ATOMIC_RELAXED);
		rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, -1);
		rte_eth_dev_rx_intr_disable(0, 0);
		drain();
	}
}

int main(int argc, char **argv)
{
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rte_eal_init(argc, argv) < 0 ||
		set_up(rte_pktmbuf_pool_create("rx", 4095, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0)) ||
		rte_eal_mp_remote_launch(sleep_and_drain, NULL, SKIP_MAIN))
		return 1;
	while (fgets(line, sizeof(line), stdin))
		printf("%llu %llu\n", (unsigned long long)__atomic_load_n(&slept, __ATOMIC_RELAXED),
			(unsigned long long)__atomic_load_n(&received, __ATOMIC_RELAXED));
	return 0; /* the other lcore sleeps */
}
