/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest application with the probe linked in: forwards port 0 to itself until interrupted.
 *   cc linked_in.c $(pkg-config --cflags --libs libringtap-probe libdpdk) -o linked_in
 *   ./linked_in --no-huge -m 256 --no-pci --vdev net_null0 */
#include <signal.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <ringtap/probe.h>

static volatile sig_atomic_t quit;

static void on_signal(int sig)
{
	quit = 1;
}

static int start_port(uint16_t port)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"pool", 4095, 250, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_eth_conf conf = {0};

	if (!pool || rte_eth_dev_configure(port, 1, 1, &conf) ||
		rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) ||
		rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL))
		return -1;
	return rte_eth_dev_start(port);
}

int main(int argc, char **argv)
{
	if (rte_eal_init(argc, argv) < 0 || rte_eth_dev_count_avail() == 0 || start_port(0))
		return fprintf(stderr, "cannot start port 0\n"), 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (ringtap_probe_start()) /* the only line that ringtap needs */
		fprintf(stderr, "no ringtap probe\n");
	puts("running");
	fflush(stdout);
	while (!quit) {
		struct rte_mbuf *pkts[32];
		uint16_t n = rte_eth_rx_burst(0, 0, pkts, 32);
		uint16_t sent = rte_eth_tx_burst(0, 0, pkts, n);

		while (sent < n)
			rte_pktmbuf_free(pkts[sent++]);
	}
	ringtap_probe_stop();
	rte_eth_dev_stop(0);
	return rte_eal_cleanup();
}
