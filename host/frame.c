/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in the buffers of packet sockets, as libpcap hands them out: tags that
 * the kernel took out are put back, and packets without a link-layer header get a cooked one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "common/atomics.h"
#include "frame.h"
#include "link.h"
#include "ringtap/probe.h"

#define MACS     12u /* bytes before a tag */
#define HEAD_MAX 20u

static struct rte_mempool *pool;
static int time_field, wire_field;
static uint64_t time_flag, wire_flag;
static int loopback; /* its index */

/* linux/if_packet.h has no such structures; link/LINUX_SLL of tcpdump.org has. */
struct sll {
	uint16_t kind, arphrd, address_len;
	uint8_t address[8];
	uint16_t protocol;
} __attribute__((packed));
struct sll2 {
	uint16_t protocol, reserved;
	uint32_t ifindex;
	uint16_t arphrd;
	uint8_t kind, address_len;
	uint8_t address[8];
} __attribute__((packed));
static_assert(sizeof(struct sll) == 16 && sizeof(struct sll2) == HEAD_MAX, "cooked headers");

int frame_init(struct rte_mempool *p)
{
	static const struct rte_mbuf_dynfield length = {.name = "ringtap_dynfield_wire_length",
		.size = sizeof(uint32_t),
		.align = __alignof__(uint32_t)};
	static const struct rte_mbuf_dynflag cut = {.name = "ringtap_dynflag_cut"};
	int bit;

	pool = p;
	loopback = (int)if_nametoindex("lo");
	if (rte_mbuf_dyn_rx_timestamp_register(&time_field, &time_flag))
		return -rte_errno;
	wire_field = rte_mbuf_dynfield_register(&length);
	bit = rte_mbuf_dynflag_register(&cut);
	if (wire_field < 0 || bit < 0)
		return -rte_errno;
	wire_flag = 1ull << bit;
	return 0;
}

void frame_source(const struct port *p, struct ringtap_probe_source *out)
{
	*out = (struct ringtap_probe_source){.driver = "af_packet",
		.linktype = p->linktype,
		.wire_flag = wire_flag,
		.wire_offset = wire_field};
}

static struct tpacket2_hdr *frame_at(const struct queue *q, uint32_t k)
{
	return (void *)(q->frames + (size_t)((q->next + k) % q->frame_count) * q->frame_size);
}

static const struct sockaddr_ll *address_of(const struct tpacket2_hdr *h)
{
	return (const void *)((const uint8_t *)h + TPACKET_ALIGN(sizeof(*h)));
}

uint64_t frame_time(const struct queue *q, uint32_t k)
{
	const struct tpacket2_hdr *h = frame_at(q, k);

	/* Pairs with the barrier in the kernel's __packet_set_status(). */
	if (k >= q->frame_count || !(rt_load_acquire(&h->tp_status) & TP_STATUS_USER))
		return 0;
	return h->tp_sec * 1000000000ull + h->tp_nsec;
}

static void release(struct queue *q)
{
	/* Pairs with the kernel's reading of the status. */
	rt_store_release(&frame_at(q, 0)->tp_status, TP_STATUS_KERNEL);
	q->next = (q->next + 1) % q->frame_count;
}

bool frame_counts(struct queue *q)
{
	const struct sockaddr_ll *a = address_of(frame_at(q, 0));

	if (a->sll_ifindex != loopback || a->sll_pkttype != PACKET_OUTGOING)
		return true;
	release(q);
	return false;
}

/* A tag of which the kernel says where it was: behind the addresses, or in the cooked header before
 * the protocol. Returns its bytes. */
static uint32_t put_tag(uint8_t *to, const struct tpacket2_hdr *h)
{
	bool typed = h->tp_vlan_tpid || h->tp_status & TP_STATUS_VLAN_TPID_VALID;
	uint16_t tag[2] = {htons(typed ? h->tp_vlan_tpid : ETH_P_8021Q), htons(h->tp_vlan_tci)};

	if (!h->tp_vlan_tci && !(h->tp_status & TP_STATUS_VLAN_VALID))
		return 0;
	memcpy(to, tag, sizeof(tag));
	return sizeof(tag);
}

static uint32_t put_cooked(uint8_t *to, uint16_t linktype, const struct sockaddr_ll *a)
{
	struct sll one = {htons(a->sll_pkttype), htons(a->sll_hatype), htons(a->sll_halen), {0},
		a->sll_protocol};
	struct sll2 two = {a->sll_protocol, 0, htonl((uint32_t)a->sll_ifindex),
		htons(a->sll_hatype), a->sll_pkttype, a->sll_halen, {0}};

	if (linktype == LINK_SLL) {
		memcpy(one.address, a->sll_addr, sizeof(one.address));
		memcpy(to, &one, sizeof(one));
		return sizeof(one);
	}
	memcpy(two.address, a->sll_addr, sizeof(two.address));
	memcpy(to, &two, sizeof(two));
	return sizeof(two);
}

/* Bytes that are put before, or into, the beginning of the packet. *skip: bytes of the packet that
 * are in it already. Returns its bytes; *added: those that the kernel does not count. */
static uint32_t put_head(uint8_t head[HEAD_MAX + 4], uint16_t linktype,
	const struct tpacket2_hdr *h, uint32_t *skip, uint32_t *added)
{
	const uint8_t *data = (const uint8_t *)h + h->tp_mac;
	uint32_t n;

	*skip = *added = 0;
	if (link_is_cooked(linktype)) {
		n = put_cooked(head, linktype, address_of(h));
		*added = n;
		return n;
	}
	if (linktype != LINK_ETHERNET || h->tp_snaplen < MACS)
		return 0;
	n = put_tag(head + MACS, h);
	if (!n)
		return 0;
	memcpy(head, data, MACS);
	*skip = MACS;
	*added = n;
	return MACS + n;
}

/* Appends to the chain whose last segment is *last. */
static bool append(struct rte_mbuf *m, struct rte_mbuf **last, const uint8_t *data, uint32_t len)
{
	while (len) {
		uint32_t n = RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(*last));
		struct rte_mbuf *more;

		if (!n) {
			more = rte_pktmbuf_alloc(pool);
			if (!more)
				return false;
			(*last)->next = more;
			*last = more;
			m->nb_segs++;
			continue;
		}
		memcpy(rte_pktmbuf_mtod_offset(*last, uint8_t *, (*last)->data_len), data, n);
		(*last)->data_len = (uint16_t)((*last)->data_len + n);
		m->pkt_len += n;
		data += n;
		len -= n;
	}
	return true;
}

struct rte_mbuf *frame_take(struct queue *q, bool *sent)
{
	const struct tpacket2_hdr *h = frame_at(q, 0);
	const uint8_t *data =
		(const uint8_t *)h + (link_is_cooked(q->linktype) ? h->tp_net : h->tp_mac);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *last = m;
	uint8_t head[HEAD_MAX + 4];
	uint32_t skip, added, n = put_head(head, q->linktype, h, &skip, &added);

	if (!m)
		return NULL;
	if (!append(m, &last, head, n) || !append(m, &last, data + skip, h->tp_snaplen - skip)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->port = q->port;
	if (h->tp_len + added > m->pkt_len) {
		*RTE_MBUF_DYNFIELD(m, wire_field, uint32_t *) = h->tp_len + added;
		m->ol_flags |= wire_flag;
	}
	*sent = address_of(h)->sll_pkttype == PACKET_OUTGOING;
	release(q);
	return m;
}

void frame_set_time(struct rte_mbuf *m, uint64_t ns)
{
	*RTE_MBUF_DYNFIELD(m, time_field, rte_mbuf_timestamp_t *) = ns;
	m->ol_flags |= time_flag;
}
