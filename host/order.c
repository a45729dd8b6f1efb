/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of packets by the kernel's time stamps, across all queues of a thread. The ports are
 * made by net_null, whose functions are replaced: so the probe's callbacks are called as by any
 * driver, and packets that this host sends are passed to TX.
 */
#include <time.h>

#include <rte_ethdev.h>

#include "order.h"
#include "ringtap/probe.h"

/* The kernel stamps a packet and then copies it, on several CPUs at once, and each may be held up
 * by interrupts or a hypervisor: wait so long for packets that are stamped before others and come
 * after them. */
#define HOLD_NS 1000000ull
/* A longer delay is a clock that was set back. */
#define STEP_NS 1000000000ull

static __thread struct {
	struct rte_mbuf *pkts[BURST];
	uint64_t ns[BURST];
	bool sent[BURST];
	unsigned at, end; /* what receive() returns next */
	uint64_t last_ns; /* last time that the thread has received */
} batch;

static uint64_t in_order(uint64_t ns)
{
	if (ns < batch.last_ns && batch.last_ns - ns < STEP_NS)
		ns = batch.last_ns;
	batch.last_ns = ns;
	return ns;
}

/* By time; nearly always they are. */
static void sort(unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		for (unsigned k = i; k && batch.ns[k] < batch.ns[k - 1]; k--) {
			RTE_SWAP(batch.ns[k], batch.ns[k - 1]);
			RTE_SWAP(batch.pkts[k], batch.pkts[k - 1]);
			RTE_SWAP(batch.sent[k], batch.sent[k - 1]);
		}
	}
}

/* Instead of the driver's functions. */
static uint16_t receive(void *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	n = (uint16_t)RTE_MIN(n, batch.end - batch.at);
	for (unsigned i = 0; i < n; i++)
		pkts[i] = batch.pkts[batch.at++];
	return n;
}

static uint16_t pass_on(void *txq, struct rte_mbuf **pkts, uint16_t n)
{
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

void order_start(const struct port *p)
{
	rte_eth_fp_ops[p->id].rx_pkt_burst = receive;
	rte_eth_fp_ops[p->id].tx_pkt_burst = pass_on;
}

/* Far ahead: the clock was set back. Packets may have come since now was read. */
static bool ripe(uint64_t ns, uint64_t now)
{
	return ns && (ns <= now - HOLD_NS || ns > now + STEP_NS);
}

/* The queue with the earliest packet, and the time of the earliest of the other queues. */
static struct queue *earliest(struct share *s, uint64_t now, uint64_t *next)
{
	struct queue *first = NULL;
	uint64_t first_ns = UINT64_MAX;

	*next = UINT64_MAX;
	for (unsigned i = 0; i < s->count; i++) {
		uint64_t ns = frame_time(&s->queues[i], 0);

		if (!ripe(ns, now))
			continue;
		if (ns < first_ns) {
			*next = first_ns;
			first_ns = ns;
			first = &s->queues[i];
		} else {
			*next = RTE_MIN(*next, ns);
		}
	}
	return first;
}

static unsigned poll_queue(const struct queue *q)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n = rte_eth_rx_burst(q->port, q->queue, mbufs, BURST);

	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static void count(const struct queue *q, unsigned n)
{
	struct ringtap_probe_counts c = {0};

	for (unsigned i = 0; i < n; i++) {
		*(batch.sent[i] ? &c.tx_packets : &c.rx_packets) += 1;
		*(batch.sent[i] ? &c.tx_bytes : &c.rx_bytes) += batch.pkts[i]->pkt_len;
	}
	ringtap_probe_port_count(q->port, &c);
}

/* Runs of one direction, as bursts. */
static void pass(const struct queue *q, unsigned n)
{
	sort(n);
	count(q, n);
	for (unsigned i = 0; i < n; i++)
		frame_set_time(batch.pkts[i], in_order(batch.ns[i]));
	for (batch.at = 0; batch.at < n;) {
		bool sent = batch.sent[batch.at];

		for (batch.end = batch.at; batch.end < n && batch.sent[batch.end] == sent;)
			batch.end++;
		if (sent)
			batch.at += rte_eth_tx_burst(q->port, q->queue, batch.pkts + batch.at,
				(uint16_t)(batch.end - batch.at));
		else
			poll_queue(q);
	}
	batch.at = batch.end = 0;
}

/* Packets of one queue that are ripe, and not later than the next one of another queue. False:
 * there is no memory for them. */
static bool take(struct queue *q, uint64_t now, uint64_t next, unsigned *n)
{
	uint64_t ns;

	while (*n < BURST && ripe(ns = frame_time(q, 0), now) && (!*n || ns <= next)) {
		if (!frame_counts(q))
			continue;
		batch.pkts[*n] = frame_take(q, &batch.sent[*n]);
		if (!batch.pkts[*n])
			return *n;
		batch.ns[(*n)++] = ns;
	}
	return true;
}

unsigned order_receive(struct share *s)
{
	struct timespec ts;
	struct queue *q;
	uint64_t now, next;
	unsigned received = 0;
	bool all = true;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
	while (all && (q = earliest(s, now, &next))) {
		unsigned n = 0;

		all = take(q, now, next, &n);
		pass(q, n);
		received += n;
	}
	/* No packet is left that was stamped before, unless there was no mbuf for it. */
	if (all)
		ringtap_probe_received_until(in_order(now - HOLD_NS));
	for (unsigned i = 0; i < s->count; i++)
		poll_queue(&s->queues[i]);
	return received;
}
