/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's time stamps. net_af_packet of DPDK 22.11 drops them, and a capture needs them in
 * order across all queues of a thread. So the headers in the driver's packet buffers are read
 * before the driver reads them, and it gets to receive just the packets that are next. (TPACKET_V2
 * of Documentation/networking/packet_mmap.rst.)
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "common/atomics.h"
#include "host.h"
#include "ringtap/probe.h"

/* The kernel stamps a packet and then copies it, on several CPUs at once, and each may be held up
 * by interrupts or a hypervisor: wait so long for packets that are stamped before others and come
 * after them. */
#define HOLD_NS 1000000ull
/* A longer delay is a clock that was set back. */
#define STEP_NS 1000000000ull

static int field;
static uint64_t flag;
static eth_rx_burst_t driver_rx;

/* The driver's next frame, and the source of its packets' time stamps. */
static __thread struct {
	uint64_t ns[BURST];
	unsigned count;
	uint64_t last_ns; /* of all that the thread has received */
} batch;

static uint64_t in_order(uint64_t ns)
{
	if (ns < batch.last_ns && batch.last_ns - ns < STEP_NS)
		ns = batch.last_ns;
	batch.last_ns = ns;
	return ns;
}

/* By time; nearly always they are. */
static void sort(struct rte_mbuf **pkts, uint64_t *ns, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		for (unsigned k = i; k && ns[k] < ns[k - 1]; k--) {
			RTE_SWAP(ns[k], ns[k - 1]);
			RTE_SWAP(pkts[k], pkts[k - 1]);
		}
	}
}

/* Instead of the driver's function, so that the probe's callback finds the time stamps. */
static uint16_t receive(void *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	n = driver_rx(rxq, pkts, (uint16_t)RTE_MIN(n, batch.count));
	sort(pkts, batch.ns, n);
	for (unsigned i = 0; i < n; i++) {
		*RTE_MBUF_DYNFIELD(pkts[i], field, rte_mbuf_timestamp_t *) = in_order(batch.ns[i]);
		pkts[i]->ol_flags |= flag;
	}
	return n;
}

/* Time of the packet that is the k-th from now on in the buffer. 0: it has not come. */
static uint64_t time_of(const struct queue *q, uint32_t k)
{
	const struct tpacket2_hdr *h =
		(const void *)(q->frames +
			       (size_t)((q->next + k) % q->frame_count) * q->frame_size);

	/* Pairs with the barrier in the kernel's __packet_set_status(). */
	if (k >= q->frame_count || !(rt_load_acquire(&h->tp_status) & TP_STATUS_USER))
		return 0;
	return h->tp_sec * 1000000000ull + h->tp_nsec;
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
		uint64_t ns = time_of(&s->queues[i], 0);

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

static unsigned poll_queue(struct queue *q)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n = rte_eth_rx_burst(q->port, q->queue, mbufs, BURST);

	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

unsigned order_receive(struct share *s)
{
	struct timespec ts;
	struct queue *q;
	uint64_t now, next, ns;
	unsigned n = 1, received = 0;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
	while (n && (q = earliest(s, now, &next))) {
		batch.count = 0;
		while (batch.count < BURST && ripe(ns = time_of(q, batch.count), now) &&
			(!batch.count || ns <= next))
			batch.ns[batch.count++] = ns;
		n = poll_queue(q);
		q->next = (q->next + n) % q->frame_count;
		received += n;
	}
	/* No packet is left that was stamped before, unless the driver had no mbuf for it. */
	if (n)
		ringtap_probe_received_until(in_order(now - HOLD_NS));
	batch.count = 0;
	for (unsigned i = 0; i < s->count; i++)
		poll_queue(&s->queues[i]);
	return received;
}

/* The number behind a key in name,key=value,...; 0: there is none. */
static uint64_t number(const char *vdev, const char *key)
{
	const char *at = strstr(vdev, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool has_headers(int fd)
{
	int version = 0;
	socklen_t len = sizeof(version);

	return !getsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, &len) && version == TPACKET_V2;
}

int order_open(struct port *p)
{
	uint64_t size = number(p->vdev, ",framesz="), count = number(p->vdev, ",framecnt=");

	for (unsigned i = 0; i < p->socket_count; i++)
		if (!size || !count || !has_headers(p->sockets[i]))
			return 0;
	for (unsigned i = 0; i < p->socket_count; i++) {
		/* As the driver does: one buffer for each direction, only whole. */
		void *frames =
			mmap(NULL, 2 * size * count, PROT_READ, MAP_SHARED, p->sockets[i], 0);

		if (frames == MAP_FAILED)
			return -errno;
		p->frames[i] = frames;
		p->frame_size = (uint32_t)size;
		p->frame_count = (uint32_t)count;
	}
	if (!p->socket_count)
		return 0;
	if (rte_mbuf_dyn_rx_timestamp_register(&field, &flag))
		return -rte_errno;
	return ringtap_probe_port_stamped(p->id);
}

/* The queue's socket is what net_af_packet's struct pkt_rx_queue begins with. */
static int frames_by_queue(struct port *p)
{
	for (uint16_t q = 0; q < p->queues; q++) {
		const int *fd = rte_eth_fp_ops[p->id].rxq.data[q];
		unsigned i = q;

		while (i < p->socket_count && p->sockets[i] != *fd)
			i++;
		if (i == p->socket_count)
			return -ENOTSUP;
		RTE_SWAP(p->sockets[q], p->sockets[i]);
		RTE_SWAP(p->frames[q], p->frames[i]);
	}
	return 0;
}

int order_start(struct port *p)
{
	int ret;

	if (!p->frame_count)
		return 0;
	ret = frames_by_queue(p);
	if (ret)
		return ret;
	/* All ports have one driver. */
	driver_rx = rte_eth_fp_ops[p->id].rx_pkt_burst;
	rte_eth_fp_ops[p->id].rx_pkt_burst = receive;
	return 0;
}

/* A mapping keeps its socket open. */
void order_close(struct port *p)
{
	for (unsigned i = 0; i < p->socket_count; i++)
		if (p->frames[i])
			munmap((void *)(uintptr_t)p->frames[i],
				2 * (size_t)p->frame_size * p->frame_count);
}
