/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include <rte_prefetch.h>

#include "common/tunnels.h"
#include "epb.h"
#include "first.h"
#include "readable.h"

#define LABELS_MAX  8u
#define TUNNELS_MAX 4u

enum { TYPE_MPLS = 0x8847, TYPE_MPLS_MULTICAST = 0x8848 };

int rt_first_make(struct rt_first **out, const struct rt_msg_first *m)
{
	struct rt_first *f = aligned_alloc(_Alignof(struct rt_first), sizeof(*f));

	*out = f;
	if (!f)
		return -ENOMEM;
	memset(f, 0, sizeof(*f));
	f->m = *m;
	f->mask = (1u << m->bits) / RT_FIRST_WAYS - 1;
	secret_make(&f->secret);
	return 0;
}

/* ---- the flow of a packet ---- */

/* The first bytes of a packet, in one piece. */
static const uint8_t *head_of(const struct rte_mbuf *m, uint8_t copy[RT_FIRST_HEAD], size_t *len)
{
	unsigned segs = m->nb_segs;

	*len = RTE_MIN(m->data_len, RT_FIRST_HEAD);
	if (rt_likely(m->data_len == m->pkt_len || m->data_len >= RT_FIRST_HEAD))
		return rte_pktmbuf_mtod(m, const uint8_t *);
	*len = 0;
	for (; m && segs && *len < RT_FIRST_HEAD; m = m->next, segs--) {
		size_t n = RTE_MIN(m->data_len, RT_FIRST_HEAD - *len);

		memcpy(copy + *len, rte_pktmbuf_mtod(m, const uint8_t *), n);
		*len += n;
	}
	return copy;
}

/* The type of what begins at r, by its version. 0: neither. */
static uint16_t type_of_ip(const struct rest *r)
{
	unsigned version = r->len ? r->p[0] >> 4 : 0;

	return version == 4 ? TYPE_IP : version == 6 ? TYPE_IPV6 : 0;
}

static uint16_t skip_labels(struct rest *r)
{
	for (unsigned i = 0; i < LABELS_MAX; i++) {
		const uint8_t *p = rest_take(r, 4);

		if (!p)
			return 0;
		if (p[2] & 1)
			return type_of_ip(r);
	}
	return 0;
}

/* Behind Ethernet's header, tags and labels. 0: it has no IP. */
static uint16_t skip_ethernet(struct rest *r)
{
	struct link_type l = {0};

	if (!rest_take(r, 12))
		return 0;
	layer_type(&l, r);
	if (l.type == TYPE_MPLS || l.type == TYPE_MPLS_MULTICAST)
		return skip_labels(r);
	return l.type;
}

static bool find_ip(const struct rt_first *f, bool ethernet, struct rest r, struct layer_ip *ip)
{
	bool found = layer_ip(ip, ethernet ? skip_ethernet(&r) : type_of_ip(&r), &r);
	uint32_t vni;

	for (unsigned i = 0; found && f->m.inner && i < TUNNELS_MAX; i++) {
		struct layer_ip inner;
		uint16_t type;

		if (ip->fragment) /* the first one is where the others are */
			break;
		if (!tunnel_enter(ip, &r, &type, &vni) && !tunnel_enter_gtp(ip, &r, &type))
			break;
		if (!layer_ip(&inner, type == TYPE_FRAME ? skip_ethernet(&r) : type, &r))
			break;
		*ip = inner;
	}
	return found;
}

/* A keyed hash of its flow. 0: it has none. */
static uint64_t key_of(const struct rt_first *f, const struct rt_tap *tap, const struct rte_mbuf *m)
{
	struct {
		uint8_t src[16], dst[16];
		uint32_t ports, rest;
	} six;
	struct {
		uint8_t src[4], dst[4];
		uint32_t ports, rest;
	} four;
	uint8_t copy[RT_FIRST_HEAD];
	const uint8_t *ports;
	uint32_t both = 0, rest;
	struct rest r = {.wire = m->pkt_len};
	struct layer_ip ip;
	uint64_t h;

	if (rt_unlikely(!rt_readable(m, RT_FIRST_HEAD)))
		return 0;
	r.p = head_of(m, copy, &r.len);
	if (!find_ip(f, !tap->raw, r, &ip))
		return 0;
	/* All fragments of a packet have one flow: that of the addresses. */
	ports = ip.fragment ? NULL : layer_ports(&ip);
	if (ports)
		memcpy(&both, ports, sizeof(both));
	rest = ip.protocol | (uint32_t)tap->direction << 8 | tap->if_index << 9;
	if (ip.version == 4) {
		memcpy(four.src, ip.src, sizeof(four.src));
		memcpy(four.dst, ip.dst, sizeof(four.dst));
		four.ports = both;
		four.rest = rest;
		h = hash_words(&f->secret, &four, sizeof(four) / 8);
	} else {
		memcpy(six.src, ip.src, sizeof(six.src));
		memcpy(six.dst, ip.dst, sizeof(six.dst));
		six.ports = both;
		six.rest = rest;
		h = hash_words(&f->secret, &six, sizeof(six) / 8);
	}
	return h ? h : 1;
}

/* ---- the table ---- */

static struct rt_first_flow *set_of(
	const struct rt_first *f, const struct rt_first_state *state, uint64_t key)
{
	return &state->flows[(key >> 32 & f->mask) * RT_FIRST_WAYS];
}

/* Its entry, or else that of the flow that is replaced: a free one, or the one that was seen last
 * the longest ago. */
static struct rt_first_flow *find_flow(struct rt_first_flow *set, uint64_t key, uint32_t now)
{
	struct rt_first_flow *oldest = set;

	for (unsigned i = 0; i < RT_FIRST_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (oldest->key && (!set[i].key || now - set[i].seen > now - oldest->seen))
			oldest = &set[i];
	}
	return oldest;
}

/* Bytes on the wire, stripped tags included, or 1. */
static uint32_t units_of(
	const struct rt_first *f, const struct rt_tap *tap, const struct rte_mbuf *m)
{
	uint64_t wire = m->pkt_len;

	if (f->m.packets)
		return 1;
	if (rt_unlikely(m->ol_flags & (rt_epb_tag_flags(tap->direction) | tap->wire_flag)))
		wire = rt_epb_wire(tap, m);
	return (uint32_t)RTE_MIN(wire, UINT32_MAX);
}

static bool is_captured(const struct rt_first *f, struct rt_first_state *state,
	struct rt_seg_count *c, uint64_t key, uint32_t units)
{
	uint32_t now = ++state->now;
	struct rt_first_flow *flow = find_flow(set_of(f, state, key), key, now);

	if (flow->key != key) {
		c->evicted += flow->key != 0;
		*flow = (struct rt_first_flow){.key = key};
	}
	flow->seen = now;
	if (flow->used >= f->m.limit)
		return false;
	flow->used += RTE_MIN(units, RT_FIRST_MAX);
	return true;
}

unsigned rt_first_choose(struct rt_first *f, struct rt_ring *r, const struct rt_tap *tap,
	struct rte_mbuf **pkts, unsigned n, struct rte_mbuf **chosen)
{
	struct rt_first_state *state = &f->state[r->index];
	struct rt_seg_count *c = &r->counts[tap->index];
	uint64_t key[RT_FIRST_BURST];
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++) {
		key[i] = key_of(f, tap, pkts[i]);
		if (key[i])
			rte_prefetch0(set_of(f, state, key[i]));
	}
	for (unsigned i = 0; i < n; i++)
		if (!key[i] || is_captured(f, state, c, key[i], units_of(f, tap, pkts[i])))
			chosen[k++] = pkts[i];
	return k;
}
