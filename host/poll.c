/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives and frees packets: the probe's callbacks capture them. */
#include <time.h>

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "common/atomics.h"
#include "order.h"
#include "poll.h"

/* How long to wait where nothing comes: short enough for the kernel's buffers (which hold hundreds
 * of packets), long enough to leave the CPU to others. */
#define NAP_MIN_NS 50000
#define NAP_MAX_NS 500000

static struct share shares[RTE_MAX_LCORE];
static int stopping;

static unsigned receive(const struct queue *q)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n = rte_eth_rx_burst(q->port, q->queue, mbufs, BURST);

	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static int poll_queues(void *arg)
{
	struct share *s = arg;
	struct timespec nap = {.tv_nsec = NAP_MIN_NS};

	while (!rt_load(&stopping)) {
		unsigned received = 0;

		if (s->queues[0].frames)
			received = order_receive(s);
		for (unsigned i = 0; i < s->count && !s->queues[0].frames; i++)
			received += receive(&s->queues[i]);
		if (received) {
			nap.tv_nsec = NAP_MIN_NS;
		} else if (s->busy_poll) {
			rte_pause();
		} else {
			nanosleep(&nap, NULL);
			nap.tv_nsec = RTE_MIN(2 * nap.tv_nsec, NAP_MAX_NS);
		}
	}
	return 0;
}

static void share_out(const struct host *h)
{
	unsigned lcore = rte_get_next_lcore(-1, 1, 0);

	for (unsigned i = 0; i < h->port_count; i++) {
		const struct port *p = &h->ports[i];

		for (uint16_t q = 0; q < p->queues; q++) {
			struct share *s = &shares[lcore];

			s->queues[s->count++] =
				(struct queue){p->id, q, p->linktype, .frames = p->frames[q],
					.frame_size = p->frame_size, .frame_count = p->frame_count};
			lcore = rte_get_next_lcore(lcore, 1, 1);
		}
	}
}

int poll_start(const struct host *h)
{
	unsigned lcore;
	int ret = 0;

	share_out(h);
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		shares[lcore].busy_poll = h->busy_poll;
		if (!ret && shares[lcore].count)
			ret = rte_eal_remote_launch(poll_queues, &shares[lcore], lcore);
	}
	return ret;
}

void poll_stop(void)
{
	rt_store(&stopping, 1);
	rte_eal_mp_wait_lcore();
}
