/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include "common/link_types.h"
#include "identity.h"
#include "packet.h"

enum { TYPE_ETHERNET = 0x6558, TYPE_PPPOE = 0x8864 };
enum { TYPE_MPLS = 0x8847, TYPE_MPLS_MULTICAST = 0x8848 };
enum { PPP_IP = 0x21, PPP_IPV6 = 0x57 };
enum { PORT_VXLAN = 4789, PORT_VXLAN_OLD = 8472, PORT_GTPU = 2152 };

/* ---- link layer ---- */

/* Also that of LLC with SNAP for Ethernet's types. */
static void read_type(struct link_type *l, struct rest *r)
{
	static const uint8_t snap[6] = {0xaa, 0xaa, 3, 0, 0, 0};

	layer_type(l, r);
	if (!l->has_type || l->type >= TYPE_MIN)
		return;
	rest_limit(r, l->type);
	l->has_type = r->len >= 8 && !memcmp(r->p, snap, sizeof(snap));
	if (l->has_type)
		l->type = be16(rest_take(r, 8) + 6);
}

static void read_ethernet(struct link_type *l, struct rest *r)
{
	if (rest_take(r, 12))
		read_type(l, r);
}

/* Without a type of its own: that of the IP version that it begins with. */
static uint16_t guess_type(const struct rest *r)
{
	unsigned version = r->len ? r->p[0] >> 4 : 0;

	return version == 4 ? TYPE_IP : version == 6 ? TYPE_IPV6 : 0;
}

/* The address family of the capturing system, in its byte order. 2: IPv4 everywhere. */
static uint16_t read_family(struct rest *r)
{
	const uint8_t *p = rest_take(r, 4);
	uint32_t family;

	if (!p)
		return 0;
	family = be32(p);
	if (family > 0xffff)
		family = __builtin_bswap32(family);
	if (family == 2)
		return TYPE_IP;
	/* NetBSD, OpenBSD; FreeBSD; macOS */
	return family == 24 || family == 28 || family == 30 ? TYPE_IPV6 : 0;
}

/* SLL: the type is at the end of the header; SLL2: at its beginning, before 18 other bytes. */
static void read_cooked(struct link_type *l, struct rest *r, bool second)
{
	const uint8_t *p = rest_take(r, second ? 20 : 14);

	if (!p)
		return;
	if (!second) {
		read_type(l, r);
		return;
	}
	l->type = be16(p);
	if (!layer_is_tag(l->type)) {
		l->has_type = l->type >= TYPE_MIN;
		return;
	}
	p = rest_take(r, 2);
	if (!p)
		return;
	l->tci[l->vlans++] = be16(p);
	read_type(l, r);
}

/* The type of the network layer; 0: none that we know. */
static uint16_t read_link(struct row *row, uint16_t linktype, struct rest *r)
{
	struct link_type l = {0};

	switch (linktype) {
	case LINK_ETHERNET: read_ethernet(&l, r); break;
	case LINK_SLL: read_cooked(&l, r, false); break;
	case LINK_SLL2: read_cooked(&l, r, true); break;
	case LINK_NULL:
	case LINK_LOOP: return read_family(r);
	case LINK_IPV4: return TYPE_IP;
	case LINK_IPV6: return TYPE_IPV6;
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD: return guess_type(r);
	default: return 0;
	}
	if (l.vlans) {
		row->vlan = l.tci[0] & 4095;
		row->has |= HAS(COL_VLAN);
	}
	if (!l.has_type)
		return 0;
	row->ethertype = l.type;
	row->has |= HAS(COL_ETHERTYPE);
	return l.type;
}

/* ---- IP ---- */

static void put_ipv4(uint8_t address[16], const uint8_t *p)
{
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + 12, p, 4);
}

/* Version and type 1 | code 1: 0 of data | session 2 | length 2 | PPP's protocol, 1 byte if that is
 * odd (RFC 1661, 6.5) */
static uint16_t skip_pppoe(struct rest *r)
{
	const uint8_t *p = rest_take(r, 6);
	uint16_t protocol;

	if (!p || p[1])
		return 0;
	rest_limit(r, be16(p + 4));
	p = rest_take(r, r->len && r->p[0] & 1 ? 1 : 2);
	if (!p)
		return 0;
	protocol = p[0] & 1 ? p[0] : be16(p);
	return protocol == PPP_IP ? TYPE_IP : protocol == PPP_IPV6 ? TYPE_IPV6 : 0;
}

/* Advances to the IP packet in labels of MPLS, or in a session of PPPoE. Returns the type of the
 * rest. */
static uint16_t skip_shims(uint16_t type, struct rest *r)
{
	const uint8_t *p;

	if (type == TYPE_PPPOE)
		return skip_pppoe(r);
	if (type != TYPE_MPLS && type != TYPE_MPLS_MULTICAST)
		return type;
	do
		p = rest_take(r, 4);
	while (p && !(p[2] & 1));
	return p ? guess_type(r) : 0;
}

/* Addresses, protocol and the payload. false: no IP packet. */
static bool read_ip(uint16_t type, struct ends *e, struct layer_ip *ip, struct rest *r)
{
	if (!layer_ip(ip, skip_shims(type, r), r))
		return false;
	e->protocol = ip->protocol;
	if (ip->version == 4) {
		put_ipv4(e->src, ip->src);
		put_ipv4(e->dst, ip->dst);
	} else {
		memcpy(e->src, ip->src, 16);
		memcpy(e->dst, ip->dst, 16);
	}
	return true;
}

/* Also where the header that names it is cut off behind that. */
static bool knows_protocol(const struct layer_ip *ip)
{
	return ip->whole || !layer_is_extension(ip->protocol) || ip->version == 4;
}

static bool read_ports(struct ends *e, const struct layer_ip *ip)
{
	const uint8_t *p = layer_ports(ip);

	if (!p)
		return false;
	e->src_port = be16(p);
	e->dst_port = be16(p + 2);
	return true;
}

/* ---- TCP ---- */

static void read_tcp(struct row *row, const struct layer_ip *ip)
{
	uint32_t header;

	if (ip->captured >= 8) {
		row->tcp_seq = be32(ip->p + 4);
		row->has |= HAS(COL_TCP_SEQ);
	}
	header = ip->captured < 14 ? 0 : (ip->p[12] >> 4) * 4u;
	if (header < 20)
		return;
	row->tcp_flags = ip->p[13];
	row->has |= HAS(COL_TCP_FLAGS);
	if (header > ip->wire || ip->fragment & FRAGMENT_MORE)
		return;
	row->tcp_ack = be32(ip->p + 8);
	row->tcp_len = (uint32_t)(ip->wire - header);
	row->tcp_whole = true;
}

/* ---- tunnels ---- */

static void read_inner(struct row *row, uint16_t type, struct rest *r)
{
	struct ends *e = &row->inner;
	struct layer_ip ip;

	if (!read_ip(type, e, &ip, r))
		return;
	row->has |= HAS(COL_INNER_SRC) | HAS(COL_INNER_DST);
	if (knows_protocol(&ip))
		row->has |= HAS(COL_INNER_PROTOCOL);
	if (read_ports(e, &ip))
		row->has |= HAS(COL_INNER_SRC_PORT) | HAS(COL_INNER_DST_PORT);
}

static void read_inner_ethernet(struct row *row, struct rest *r)
{
	struct link_type l = {0};

	read_ethernet(&l, r);
	if (l.has_type)
		read_inner(row, l.type, r);
}

static void put_tunnel(struct row *row, uint8_t tunnel, bool has_id, uint32_t id)
{
	memset((uint8_t *)row + ROW_TUNNEL, 0, sizeof(*row) - ROW_TUNNEL);
	row->tunnel = tunnel;
	row->has |= HAS(COL_TUNNEL);
	if (has_id) {
		row->tunnel_id = id;
		row->has |= HAS(COL_TUNNEL_ID);
	}
}

/* RFC 7348: flags 1 | 3 | VNI 3 | 1 | Ethernet */
static void read_vxlan(struct row *row, struct rest *r)
{
	const uint8_t *p = rest_take(r, 8);

	if (!p || !(p[0] & 8))
		return;
	put_tunnel(row, TUNNEL_VXLAN, true, be32(p + 4) >> 8);
	read_inner_ethernet(row, r);
}

/* RFC 2784, 2890: flags 2 | type 2 | checksum 4 if C or routing | key 4 if K | sequence 4 if S */
static void read_gre(struct row *row, struct rest *r)
{
	const uint8_t *p = rest_take(r, 4), *key = NULL;
	uint16_t flags, type;

	if (!p || be16(p) & 0x4007) /* a source route, or a version of its own (PPTP) */
		return;
	flags = be16(p);
	type = be16(p + 2);
	if (flags & 0x8000 && !rest_take(r, 4))
		return;
	if (flags & 0x2000) {
		key = rest_take(r, 4);
		if (!key)
			return;
	}
	put_tunnel(row, TUNNEL_GRE, key, key ? be32(key) : 0);
	if (flags & 0x1000 && !rest_take(r, 4))
		return;
	if (type == TYPE_ETHERNET)
		read_inner_ethernet(row, r);
	else
		read_inner(row, type, r);
}

/* 3GPP TS 29.281: flags 1 | message 1 | length 2 | TEID 4 | sequence, N-PDU, next extension 4 if
 * any of E, S, PN | extensions: length in units of 4 bytes 1, ..., next 1 */
static void read_gtpu(struct row *row, struct rest *r)
{
	const uint8_t *p = rest_take(r, 8);
	uint8_t next = 0;

	if (!p || p[0] >> 4 != 3 || p[1] != 255) /* version 1, no prime; a G-PDU */
		return;
	put_tunnel(row, TUNNEL_GTPU, true, be32(p + 4));
	if (p[0] & 7) {
		const uint8_t *more = rest_take(r, 4);

		if (!more)
			return;
		next = p[0] & 4 ? more[3] : 0;
	}
	while (next) {
		size_t n = r->len ? r->p[0] * 4u : 0;
		const uint8_t *extension = n ? rest_take(r, n) : NULL;

		if (!extension)
			return;
		next = extension[n - 1];
	}
	read_inner(row, guess_type(r), r);
}

static void read_tunnel(struct row *row, const struct layer_ip *ip)
{
	struct rest r = {ip->p, ip->captured, ip->wire};

	if (ip->protocol == IPPROTO_GRE) {
		read_gre(row, &r);
		return;
	}
	if (ip->protocol != IPPROTO_UDP || !rest_take(&r, 8))
		return;
	if (row->outer.dst_port == PORT_VXLAN || row->outer.dst_port == PORT_VXLAN_OLD)
		read_vxlan(row, &r);
	else if (row->outer.dst_port == PORT_GTPU || row->outer.src_port == PORT_GTPU)
		read_gtpu(row, &r);
}

/* ---- ARP ---- */

/* A filter on a host means ARP as well. */
static void read_arp(struct row *row, const struct rest *r)
{
	if (!layer_is_arp(r))
		return;
	put_ipv4(row->outer.src, r->p + ARP_SENDER);
	row->has |= HAS(COL_SRC);
	if (r->len < ARP_BYTES)
		return;
	put_ipv4(row->outer.dst, r->p + ARP_TARGET);
	row->has |= HAS(COL_DST);
}

/* ---- all ---- */

static void read_transport(struct row *row, const struct layer_ip *ip, bool digest)
{
	if (read_ports(&row->outer, ip))
		row->has |= HAS(COL_SRC_PORT) | HAS(COL_DST_PORT);
	row->has |= HAS(COL_FLOW_ID);
	row->flow_id = flow_identity(&row->outer);
	if (digest && packet_digest(&row->outer, ip, &row->digest))
		row->has |= HAS(COL_DIGEST);
	if (ip->fragment & FRAGMENT_OFFSET)
		return;
	if (ip->protocol == IPPROTO_TCP)
		read_tcp(row, ip);
	else if (ip->protocol == IPPROTO_UDP || ip->protocol == IPPROTO_GRE)
		read_tunnel(row, ip);
}

void packet_read(struct row *row, uint16_t linktype, const uint8_t *data, size_t len, size_t wire,
	bool digest)
{
	struct rest r = {data, len, wire > len ? wire : len};
	uint16_t type = read_link(row, linktype, &r);
	struct layer_ip ip;

	if (type == TYPE_ARP || type == TYPE_RARP)
		read_arp(row, &r);
	if (!type || !read_ip(type, &row->outer, &ip, &r))
		return;
	row->has |= HAS(COL_SRC) | HAS(COL_DST);
	if (ip.has_id) {
		row->ip_id = ip.id;
		row->has |= HAS(COL_IP_ID);
	}
	if (knows_protocol(&ip))
		row->has |= HAS(COL_PROTOCOL);
	if (ip.whole)
		read_transport(row, &ip, digest);
}
