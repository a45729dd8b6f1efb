/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A primary process and secondary ones on one port with a queue for each (--vdev net_null0):
 * packets on command, numbered, so that every one can be found in a recording.
 *
 *   rt_pair EAL-ARGUMENTS -- QUEUE
 *
 * Commands on standard input, each answered by "done":
 *   forward COUNT PAUSE_US   receives and sends that many packets, one at a time
 *   give COUNT               receives packets and passes them to the process that takes them
 *   take COUNT               sends packets that another process gives
 *   quit
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#define QUEUES 4
#define PORT   0

static struct rte_ring *passed;
static uint16_t queue;
static uint32_t number;

static void die(const char *what)
{
	fprintf(stderr, "rt_pair: %s\n", what);
	exit(1);
}

static void set_up(void)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"pair", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_eth_conf conf = {0};

	passed = rte_ring_create("pair", 2048, SOCKET_ID_ANY, 0);
	if (!pool || !passed || rte_eth_dev_configure(PORT, QUEUES, QUEUES, &conf))
		die("cannot set up");
	for (uint16_t q = 0; q < QUEUES; q++) {
		if (rte_eth_rx_queue_setup(PORT, q, 64, SOCKET_ID_ANY, NULL, pool) ||
			rte_eth_tx_queue_setup(PORT, q, 64, SOCKET_ID_ANY, NULL))
			die("no queues");
	}
	if (rte_eth_dev_start(PORT))
		die("cannot start the port");
}

/* Its first bytes: the queue and a number. */
static struct rte_mbuf *receive(void)
{
	struct rte_mbuf *m;

	while (!rte_eth_rx_burst(PORT, queue, &m, 1))
		;
	return m;
}

static void label(struct rte_mbuf *m)
{
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);

	memset(at, 0, 16);
	at[0] = (uint8_t)(2 * queue); /* no multicast */
	number++;
	memcpy(at + 6, &number, sizeof(number));
}

static void send_one(struct rte_mbuf *m)
{
	while (!rte_eth_tx_burst(PORT, queue, &m, 1))
		;
}

static void forward(unsigned count, unsigned pause_us)
{
	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *m = receive();

		label(m);
		send_one(m);
		if (pause_us)
			usleep(pause_us);
	}
}

static void give(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *m = receive();

		label(m);
		while (rte_ring_enqueue(passed, m))
			usleep(100);
	}
}

static void take(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		void *m;

		while (rte_ring_dequeue(passed, &m))
			usleep(100);
		send_one(m);
	}
}

int main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);
	unsigned count, pause_us;
	char line[128];

	if (n < 0 || argc - n < 2)
		die("cannot start EAL");
	queue = (uint16_t)atoi(argv[n + 1]);
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		set_up();
	else
		passed = rte_ring_lookup("pair");
	if (!passed)
		die("no ring");
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "quit\n"))
			break;
		if (sscanf(line, "forward %u %u", &count, &pause_us) == 2)
			forward(count, pause_us);
		else if (sscanf(line, "give %u", &count) == 1)
			give(count);
		else if (sscanf(line, "take %u", &count) == 1)
			take(count);
		printf("done\n");
		fflush(stdout);
	}
	return rte_eal_cleanup();
}
