/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK application whose second lcore polls a port. For each line of standard input it prints the
 * longest time between two polls since the line before, in nanoseconds. */
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#define BURST 32

static uint64_t longest;
static int over;

static int set_up(struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};

	return !pool || rte_eth_dev_configure(0, 1, 1, &conf) ||
	       rte_eth_rx_queue_setup(0, 0, 256, 0, NULL, pool) ||
	       rte_eth_tx_queue_setup(0, 0, 256, 0, NULL) || rte_eth_dev_start(0);
}

static int poll_port(void *arg)
{
	uint64_t last = rte_rdtsc(), now;
	struct rte_mbuf *pkts[BURST];

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		uint16_t n = rte_eth_rx_burst(0, 0, pkts, BURST);

		n -= rte_eth_tx_burst(0, 0, pkts, n);
		rte_pktmbuf_free_bulk(pkts, n);
		now = rte_rdtsc();
		if (now - last > __atomic_load_n(&longest, __ATOMIC_RELAXED))
			__atomic_store_n(&longest, now - last, __ATOMIC_RELAXED);
		last = now;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rte_eal_init(argc, argv) < 0 ||
		set_up(rte_pktmbuf_pool_create("rx", 4095, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0)) ||
		rte_eal_mp_remote_launch(poll_port, NULL, SKIP_MAIN))
		return 1;
	puts("ready");
	while (fgets(line, sizeof(line), stdin))
		printf("%.0f\n", (double)__atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED) * 1e9 /
					 (double)rte_get_tsc_hz());
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	rte_eal_mp_wait_lcore();
	return rte_eal_cleanup();
}
