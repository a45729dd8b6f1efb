/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a packet, one layer after the other, from the outside in. Packets may be cut
 * anywhere, and nothing in them is trusted. Inline, as it runs for each packet. */
#ifndef RINGTAP_COMMON_LAYERS_H
#define RINGTAP_COMMON_LAYERS_H

#include <endian.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TYPE_VLAN = 0x8100, TYPE_QINQ = 0x88a8, TYPE_QINQ_OLD = 0x9100 };
enum { TYPE_IP = 0x0800, TYPE_ARP = 0x0806, TYPE_RARP = 0x8035, TYPE_IPV6 = 0x86dd };
#define TYPE_MIN 0x600 /* less is a length (IEEE 802.3) */

static inline uint16_t be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

/* Rest of a packet: captured bytes, and bytes on the wire. */
struct rest {
	const uint8_t *p;
	size_t len, wire;
};

/* The next n bytes; NULL: the packet is cut before. */
static inline const uint8_t *rest_take(struct rest *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->len < n)
		return NULL;
	r->p += n;
	r->len -= n;
	r->wire -= n;
	return p;
}

/* Bytes behind the wire length are padding. */
static inline void rest_limit(struct rest *r, size_t wire)
{
	if (r->wire > wire)
		r->wire = wire;
	if (r->len > wire)
		r->len = wire;
}

/* The EtherType and the tags before it. */
struct link_type {
	bool has_type;
	uint8_t vlans;   /* tags; the first two are in tci */
	uint16_t tci[2]; /* host byte order, as the following */
	uint16_t type;
};

static inline bool layer_is_tag(uint16_t type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD;
}

/* Set *l to zeros first, or to what is known of tags already. */
static inline void layer_type(struct link_type *l, struct rest *r)
{
	const uint8_t *p;

	for (p = rest_take(r, 2); p && layer_is_tag(be16(p)); p = rest_take(r, 2)) {
		const uint8_t *tci = rest_take(r, 2);

		if (!tci)
			return;
		if (l->vlans < 2)
			l->tci[l->vlans] = be16(tci);
		l->vlans += l->vlans < UINT8_MAX;
	}
	if (!p)
		return;
	l->type = be16(p);
	l->has_type = true;
}

struct layer_ip {
	uint8_t version, tos, ttl;
	uint8_t protocol; /* protocol of the payload, as far as headers were captured */
	bool whole;       /* the headers were captured, up to the payload */
	bool has_id;      /* not of IPv6 without a fragment header */
	uint32_t id;
	uint16_t fragment;        /* offset in units of 8 bytes, and FRAGMENT_MORE */
	uint32_t length;          /* total, or of IPv6's payload */
	const uint8_t *src, *dst; /* addresses in the packet */
	const uint8_t *p;         /* payload, behind extension headers */
	size_t captured, wire;    /* its bytes: that are there, that there were */
};

#define FRAGMENT_OFFSET 0x1fffu
#define FRAGMENT_MORE   0x8000u

static inline bool layer_ipv4(struct layer_ip *ip, struct rest *r)
{
	const uint8_t *p = r->p;
	size_t header, total;

	if (r->len < 20 || p[0] >> 4 != 4)
		return false;
	header = (p[0] & 15) * 4u;
	total = be16(p + 2);
	if (header < 20 || (total && total < header))
		return false;
	if (total) /* 0: segmented by the NIC, the length is that of the frame */
		rest_limit(r, total);
	*ip = (struct layer_ip){.version = 4,
		.tos = p[1],
		.ttl = p[8],
		.protocol = p[9],
		.whole = true,
		.has_id = true,
		.id = be16(p + 4),
		.fragment = (uint16_t)((be16(p + 6) & FRAGMENT_OFFSET) |
				       (p[6] & 0x20 ? FRAGMENT_MORE : 0)),
		.length = (uint32_t)total,
		.src = p + 12,
		.dst = p + 16};
	if (rest_take(r, header))
		return true;
	r->len = 0;
	r->wire = 0;
	ip->whole = false;
	return true;
}

#define EXTENSIONS_MAX 16 /* headers of IPv6 between its own and that of a transport */
static inline bool layer_is_extension(uint8_t protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_FRAGMENT || protocol == IPPROTO_DSTOPTS;
}

/* Goes on to the payload; whole is false if the headers are cut off before it. */
static inline void layer_extensions(struct layer_ip *ip, struct rest *r)
{
	for (int i = 0; i < EXTENSIONS_MAX && layer_is_extension(ip->protocol) && r->len; i++) {
		bool fragment = ip->protocol == IPPROTO_FRAGMENT;
		const uint8_t *p = r->p;

		ip->protocol = p[0];
		if (!rest_take(r, 8) || (!fragment && !rest_take(r, p[1] * 8u)))
			return;
		if (!fragment)
			continue;
		ip->has_id = true;
		ip->id = be32(p + 4);
		ip->fragment = (uint16_t)(be16(p + 2) >> 3 | (p[3] & 1 ? FRAGMENT_MORE : 0));
		if (ip->fragment & FRAGMENT_OFFSET) {
			ip->whole = true;
			return;
		}
	}
	ip->whole = !layer_is_extension(ip->protocol);
}

static inline bool layer_ipv6(struct layer_ip *ip, struct rest *r)
{
	const uint8_t *p = rest_take(r, 40);

	if (!p || p[0] >> 4 != 6)
		return false;
	*ip = (struct layer_ip){.version = 6,
		.tos = (uint8_t)(p[0] << 4 | p[1] >> 4),
		.ttl = p[7],
		.protocol = p[6],
		.length = be16(p + 4),
		.src = p + 8,
		.dst = p + 24};
	/* 0 with options: a jumbogram (RFC 2675), or segmented by the NIC. */
	if (ip->length || ip->protocol != IPPROTO_HOPOPTS)
		rest_limit(r, ip->length);
	layer_extensions(ip, r);
	return true;
}

/* type: an EtherType. false: this is no IP packet. */
static inline bool layer_ip(struct layer_ip *ip, uint16_t type, struct rest *r)
{
	if (!(type == TYPE_IP ? layer_ipv4(ip, r) : type == TYPE_IPV6 && layer_ipv6(ip, r)))
		return false;
	ip->p = r->p;
	ip->captured = r->len;
	ip->wire = r->wire;
	return true;
}

static inline bool layer_has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_UDPLITE || protocol == IPPROTO_DCCP;
}

/* The ports: 4 bytes. NULL: it has none, or they are cut off, or in an earlier fragment. */
static inline const uint8_t *layer_ports(const struct layer_ip *ip)
{
	return ip->whole && !(ip->fragment & FRAGMENT_OFFSET) && ip->captured >= 4 &&
			       layer_has_ports(ip->protocol)
		       ? ip->p
		       : NULL;
}

/* ARP for IPv4 over Ethernet (RFC 826), as far as the sender's address: hardware 2 | protocol 2 |
 * bytes of their addresses 1 + 1 | operation 2 | MAC 6, IP 4 of the sender | of the target. */
#define ARP_SENDER    14
#define ARP_TARGET    24
#define ARP_BYTES_MIN 18
#define ARP_BYTES     28
static inline bool layer_is_arp(const struct rest *r)
{
	return r->len >= ARP_BYTES_MIN && be16(r->p + 2) == TYPE_IP && r->p[4] == 6 && r->p[5] == 4;
}

#endif
