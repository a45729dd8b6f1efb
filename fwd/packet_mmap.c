/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet sockets with rings shared with the kernel: TPACKET_V3, see
 * Documentation/networking/packet_mmap.rst in the kernel's source.
 *
 * Received packets stay in the ring until they are freed. A block is returned to the kernel when
 * all of its packets are free. The kernel hands over a block when it is full, or BLOCK_MS after its
 * first packet, which is the latency of this plane at low rates.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/atomics.h"
#include "packet_link.h"
#include "base/util.h"

#define BLOCK_BYTES (1u << 18)
#define BLOCKS      64u
#define BLOCK_MS    1
#define SLOT_MIN    2048u
/* At the end the kernel has time to send the rest: as long as it goes on sending, and at most. */
#define DRAIN_NS     NS_PER_S
#define DRAIN_MAX_NS (10 * NS_PER_S)

struct mmap_rings {
	uint8_t *map;
	size_t bytes;
	uint8_t *rx, *tx; /* NULL: none */
	uint32_t block;   /* the block to be read next */
	uint32_t left;    /* packets of this block that are still to be read */
	struct tpacket3_hdr *next;
	uint32_t open[BLOCKS]; /* references: packets in use, and one while the block is read */
	uint32_t slot, slots, slot_bytes;
};

static struct tpacket_block_desc *block(struct mmap_rings *r, uint32_t i)
{
	return (struct tpacket_block_desc *)(r->rx + (size_t)i * BLOCK_BYTES);
}

static int set_rx(struct socket_link *s, struct mmap_rings *r)
{
	struct tpacket_req3 q = {.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = SLOT_MIN,
		.tp_frame_nr = BLOCK_BYTES / SLOT_MIN * BLOCKS,
		.tp_retire_blk_tov = BLOCK_MS};

	r->bytes += (size_t)BLOCK_BYTES * BLOCKS;
	return setsockopt(s->fd, SOL_PACKET, PACKET_RX_RING, &q, sizeof(q));
}

static int set_tx(struct socket_link *s, struct mmap_rings *r, const struct fwd_config *c)
{
	struct tpacket_req3 q = {.tp_block_size = BLOCK_BYTES};

	r->slot_bytes = FRAME_MAX + TPACKET3_HDRLEN > 8192 ? 16384 : 8192;
	q.tp_frame_size = r->slot_bytes;
	q.tp_block_nr = (c->descriptors * r->slot_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
	q.tp_frame_nr = r->slots = q.tp_block_nr * (BLOCK_BYTES / r->slot_bytes);
	r->bytes += (size_t)q.tp_block_nr * BLOCK_BYTES;
	return setsockopt(s->fd, SOL_PACKET, PACKET_TX_RING, &q, sizeof(q));
}

static int make_rings(struct link *l, const struct fwd_config *c)
{
	struct socket_link *s = l->socket;
	struct mmap_rings *r = s->rings = calloc(1, sizeof(*r));
	int version = TPACKET_V3, skip = 1;

	if (!r)
		return -ENOMEM;
	/* Without PACKET_LOSS, a frame that cannot be sent stops the ring forever. */
	if (setsockopt(s->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
		(l->tx && setsockopt(s->fd, SOL_PACKET, PACKET_LOSS, &skip, sizeof(skip))) ||
		(l->rx && set_rx(s, r)) || (l->tx && set_tx(s, r, c)))
		return -errno;
	r->map = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return -errno;
	}
	r->rx = l->rx ? r->map : NULL;
	r->tx = l->tx ? r->map + (l->rx ? (size_t)BLOCK_BYTES * BLOCKS : 0) : NULL;
	return 0;
}

static int mmap_open(struct link *l, const struct fwd_config *c)
{
	int ret = socket_open(l, c);

	if (ret)
		return ret;
	ret = make_rings(l, c);
	if (ret)
		return message_fail(ret,
			"%s: cannot create the rings of the packet socket: %s; give fewer "
			"--descriptors",
			l->name, strerror(-ret));
	return socket_bind(l);
}

static void mmap_close(struct link *l)
{
	struct mmap_rings *r = l->socket ? l->socket->rings : NULL;

	if (r && r->map)
		munmap(r->map, r->bytes);
	socket_close(l);
	free(r);
}

static void release_block(struct mmap_rings *r, uint32_t i)
{
	/* Pairs with the kernel's reading of the status before it writes to the block. */
	if (!--r->open[i])
		rt_store_release(&block(r, i)->hdr.bh1.block_status, TP_STATUS_KERNEL);
}

/* Takes the next block, if the kernel has filled it. */
static bool next_block(struct mmap_rings *r)
{
	struct tpacket_block_desc *b = block(r, r->block);

	/* A block still in use has its old status. The load pairs with the kernel's store. */
	if (r->open[r->block] || !(rt_load_acquire(&b->hdr.bh1.block_status) & TP_STATUS_USER))
		return false;
	r->left = b->hdr.bh1.num_pkts;
	r->next = (struct tpacket3_hdr *)((uint8_t *)b + b->hdr.bh1.offset_to_first_pkt);
	r->open[r->block] = 1;
	return true;
}

static uint16_t take_packets(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	struct socket_link *s = l->socket;
	struct mmap_rings *r = s->rings;
	uint16_t got = 0;

	if (!r->open[r->block] && !next_block(r))
		return 0;
	if (r->next == NULL && !next_block(r))
		return 0;
	while (got < n && r->left && s->idle_count) {
		struct packet *p = s->idle[--s->idle_count];

		p->block = r->block;
		p->m.buf_addr = r->next;
		p->m.data_off = r->next->tp_mac;
		/* Longer packets are truncated, as read() does on the other packet plane. */
		p->m.data_len = (uint16_t)RTE_MIN(r->next->tp_snaplen, (uint32_t)FRAME_MAX);
		p->m.pkt_len = p->m.data_len;
		r->open[r->block]++;
		r->next = (struct tpacket3_hdr *)((uint8_t *)r->next + r->next->tp_next_offset);
		r->left--;
		m[got++] = &p->m;
	}
	if (!r->left) {
		release_block(r, r->block);
		r->next = NULL;
		r->block = (r->block + 1) % BLOCKS;
	}
	return got;
}

static uint16_t mmap_rx(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got = take_packets(l, m, n);

	if (got || !l->socket->sleep)
		return got;
	socket_sleep(l);
	return take_packets(l, m, n);
}

static void mmap_free(struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct packet *p = packet_of(m[i]);

		if (p->m.buf_addr != p->own_buffer)
			release_block(p->home->rings, p->block);
		packet_idle(p);
	}
}

static uint16_t mmap_tx(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	struct mmap_rings *r = l->socket->rings;
	uint16_t sent = 0;

	for (; sent < n; sent++) {
		struct tpacket3_hdr *h =
			(struct tpacket3_hdr *)(r->tx + (size_t)r->slot * r->slot_bytes);
		uint32_t len = m[sent]->data_len;

		/* The kernel would drop it without an error. */
		if (len > l->socket->frame_max) {
			socket_error(l, EMSGSIZE);
			continue;
		}
		/* Pairs with the kernel's store when it is done with the slot. */
		if (rt_load_acquire(&h->tp_status) & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING))
			break;
		memcpy((uint8_t *)h + TPACKET3_HDRLEN - sizeof(struct sockaddr_ll),
			rte_pktmbuf_mtod(m[sent], void *), len);
		h->tp_len = len;
		h->tp_next_offset = 0;
		rt_store_release(&h->tp_status, TP_STATUS_SEND_REQUEST);
		r->slot = (r->slot + 1) % r->slots;
	}
	/* Also when no slot is free: the kernel may have stopped for lack of memory. */
	(void)send(l->socket->fd, NULL, 0, MSG_DONTWAIT);
	mmap_free(m, sent);
	return sent;
}

static uint32_t last_status(struct mmap_rings *r)
{
	uint32_t slot = (r->slot + r->slots - 1) % r->slots;
	struct tpacket3_hdr *h = (struct tpacket3_hdr *)(r->tx + (size_t)slot * r->slot_bytes);

	/* Pairs with the kernel's store when it is done with the slot. */
	return rt_load_acquire(&h->tp_status);
}

/* The kernel sends slots in order: if the last one is pending, it may have stopped. */
static void mmap_kick(struct link *l)
{
	if (last_status(l->socket->rings) & TP_STATUS_SEND_REQUEST)
		(void)send(l->socket->fd, NULL, 0, MSG_DONTWAIT);
}

static uint64_t unsent(const struct mmap_rings *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->slots; i++) {
		const struct tpacket3_hdr *h = (const void *)(r->tx + (size_t)i * r->slot_bytes);

		n += !!(rt_load_acquire(&h->tp_status) & TP_STATUS_SEND_REQUEST);
	}
	return n;
}

static uint64_t mmap_drain(struct link *l)
{
	struct mmap_rings *r = l->socket->rings;
	uint64_t start = now_ns(CLOCK_MONOTONIC), now = start, moved = start, left = unsent(r);

	while (left && now - moved < DRAIN_NS && now - start < DRAIN_MAX_NS) {
		uint64_t before = left;

		mmap_kick(l);
		sched_yield();
		left = unsent(r);
		now = now_ns(CLOCK_MONOTONIC);
		if (left < before)
			moved = now;
	}
	return left;
}

const struct plane_ops mmap_ops = {
	.open = mmap_open,
	.close = mmap_close,
	.rx = mmap_rx,
	.tx = mmap_tx,
	.alloc = socket_alloc,
	.free = mmap_free,
	.missed = socket_missed,
	.kick = mmap_kick,
	.drain = mmap_drain,
};
