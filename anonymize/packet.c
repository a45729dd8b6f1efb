/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/link_types.h"
#include "checksum.h"
#include "pass.h"

enum { TYPE_FRAME = 0x6558, TYPE_MPLS = 0x8847, TYPE_MPLS_GROUP = 0x8848, TYPE_PPPOE = 0x8864 };
enum { PPP_IP = 0x21, PPP_IPV6 = 0x57 };

/* ---- IP ---- */

static void take_ipv4(struct pass *p, const struct layer_ip *ip, const uint8_t *at)
{
	struct summed s = {.in = at,
		.out = pass_out(p, at),
		.at = 10,
		.captured = ip->whole ? (size_t)(ip->p - at) : 20,
		.whole = ip->whole};

	pass_keep(p, at, 12);
	pass_address(p, 4, at + 12);
	pass_address(p, 4, at + 16);
	pass_known(p, at + s.captured); /* options are zeros: the end of the list */
	checksum_put(&s, false);
}

enum { ROUTE_SOURCE = 0, ROUTE_MOBILE = 2, ROUTE_SEGMENTS = 4 };

/* RFC 8200 section 4.4, RFC 6275, RFC 8754: next 1 | length 1 | type 1 | segments left 1 | last 1 |
 * 3 | addresses. ip->dst becomes the one that checksums cover. */
static void take_routes(struct pass *p, struct layer_ip *ip, const uint8_t *at, size_t len)
{
	size_t count = (len - 8) / 16, final;

	if (at[2] != ROUTE_SOURCE && at[2] != ROUTE_MOBILE && at[2] != ROUTE_SEGMENTS)
		return;
	if (at[2] == ROUTE_SEGMENTS && count > at[4] + 1u)
		count = at[4] + 1u;
	pass_keep(p, at, 8);
	for (size_t i = 0; i < count; i++)
		pass_address(p, 6, at + 8 + 16 * i);
	final = at[2] == ROUTE_SEGMENTS ? 0 : count - 1;
	if (at[3] && count)
		ip->dst = at + 8 + 16 * final;
}

/* Copies headers that layer_ipv6() has passed. Options are zeros: padding of one byte each. */
static void take_extensions(struct pass *p, struct layer_ip *ip, const uint8_t *at)
{
	uint8_t protocol = at[6];

	for (at += 40; at + 8 <= ip->p;) {
		const bool fragment = protocol == IPPROTO_FRAGMENT;
		const size_t len = fragment ? 8 : 8 + at[1] * 8u;

		pass_keep(p, at, fragment ? 8 : 2);
		if (len > (size_t)(ip->p - at))
			return;
		pass_known(p, at + len);
		if (protocol == IPPROTO_ROUTING)
			take_routes(p, ip, at, len);
		protocol = at[0];
		at += len;
	}
}

static void take_ip(struct pass *p, uint16_t type, struct rest *r)
{
	const uint8_t *at = r->p;
	struct layer_ip ip;

	if (p->depth++ >= DEPTH_MAX || !layer_ip(&ip, type, r))
		return;
	if (ip.version == 4) {
		take_ipv4(p, &ip, at);
	} else {
		pass_keep(p, at, 8);
		pass_address(p, 6, ip.src);
		pass_address(p, 6, ip.dst);
		take_extensions(p, &ip, at);
	}
	/* A later fragment does not show what it holds. */
	if (ip.whole && !(ip.fragment & FRAGMENT_OFFSET))
		pass_transport(p, &ip);
}

static void take_by_version(struct pass *p, struct rest *r)
{
	if (r->len)
		take_ip(p, r->p[0] >> 4 == 4 ? TYPE_IP : TYPE_IPV6, r);
}

/* Bytes that a short Ethernet frame may have behind a packet. */
#define PADDED_MAX 46

/* Ethernet addresses may begin as a header of IP. */
static bool is_certain(const struct rest *r)
{
	const uint8_t *at = r->p;
	size_t len;

	if (r->len >= 20 && at[0] >> 4 == 4) {
		len = (at[0] & 15) * 4u;
		return len >= 20 && len <= r->len && be16(at + 2) <= r->wire &&
		       checksum_right(at, len);
	}
	if (r->len < 40 || at[0] >> 4 != 6)
		return false;
	len = be16(at + 4) + 40u;
	return len == r->wire || (len < r->wire && r->wire <= PADDED_MAX);
}

void pass_guess(struct pass *p, struct rest *r)
{
	if (is_certain(r))
		take_by_version(p, r);
}

/* ---- below IP ---- */

static void take_arp(struct pass *p, struct rest *r)
{
	const uint8_t *at = r->p;

	if (!layer_is_arp(r))
		return;
	pass_keep(p, at, 8);
	pass_mac(p, at + 8);
	pass_address(p, 4, at + ARP_SENDER);
	if (r->len < ARP_BYTES)
		return;
	pass_mac(p, at + 18);
	pass_address(p, 4, at + ARP_TARGET);
}

/* RFC 3032: label 20 bits, class 3, bottom 1, TTL 8. */
static void take_labels(struct pass *p, struct rest *r)
{
	const uint8_t *label;

	do
		label = pass_take(p, r, 4);
	while (label && !(label[2] & 1));
	if (label)
		pass_guess(p, r);
}

/* RFC 2516: version and type 1 | code 1 | session 2 | length 2 | protocol of PPP 2, or 1 where it
 * is odd (RFC 1661). */
static void take_pppoe(struct pass *p, struct rest *r)
{
	const uint8_t *at = r->p;
	unsigned protocol;

	if (r->len < 8 || at[0] != 0x11 || at[1])
		return;
	pass_take(p, r, 6);
	protocol = at[6] & 1 ? at[6] : be16(at + 6);
	if (protocol != PPP_IP && protocol != PPP_IPV6)
		return;
	pass_take(p, r, at[6] & 1 ? 1 : 2);
	take_ip(p, protocol == PPP_IP ? TYPE_IP : TYPE_IPV6, r);
}

/* IEEE 802.2: 1 | 1 | control 1, and with SNAP: 3 | EtherType 2. */
static void take_llc(struct pass *p, struct rest *r)
{
	const uint8_t *at = pass_take(p, r, 3);

	if (!at || at[0] != 0xaa || at[1] != 0xaa || at[2] != 3)
		return;
	at = pass_take(p, r, 5);
	if (at && !at[0] && !at[1] && !at[2])
		pass_by_type(p, be16(at + 3), r);
}

void pass_by_type(struct pass *p, uint16_t type, struct rest *r)
{
	switch (type) {
	case TYPE_IP:
	case TYPE_IPV6: take_ip(p, type, r); break;
	case TYPE_ARP:
	case TYPE_RARP: take_arp(p, r); break;
	case TYPE_FRAME: pass_ethernet(p, r); break;
	case TYPE_MPLS:
	case TYPE_MPLS_GROUP: take_labels(p, r); break;
	case TYPE_PPPOE: take_pppoe(p, r); break;
	}
}

/* Numbers below EtherTypes: a length in Ethernet, in cooked captures a kind of packets, of which
 * one is that of 802.2. */
#define COOKED_LLC 4

static void take_small(struct pass *p, uint16_t type, bool cooked, struct rest *r)
{
	if (cooked && type != COOKED_LLC)
		return;
	if (!cooked)
		rest_limit(r, type);
	take_llc(p, r);
}

/* Tags, and the EtherType. */
static void take_type(struct pass *p, bool cooked, struct rest *r)
{
	const uint8_t *at = r->p;
	struct link_type l = {0};

	layer_type(&l, r);
	pass_keep(p, at, (size_t)(r->p - at));
	if (!l.has_type)
		return;
	if (l.type < TYPE_MIN)
		take_small(p, l.type, cooked, r);
	else
		pass_by_type(p, l.type, r);
}

void pass_ethernet(struct pass *p, struct rest *r)
{
	const uint8_t *at = rest_take(r, 12);

	if (!at || p->depth++ >= DEPTH_MAX)
		return;
	pass_mac(p, at);
	pass_mac(p, at + 6);
	take_type(p, false, r);
}

/* ---- link types ---- */

enum { HARDWARE_ETHERNET = 1, HARDWARE_LOOPBACK = 772 };

/* An address of len bytes in a field of 8. */
static void take_sll_address(struct pass *p, uint16_t hardware, unsigned len, const uint8_t *at)
{
	if (len == 6 && (hardware == HARDWARE_ETHERNET || hardware == HARDWARE_LOOPBACK))
		pass_mac(p, at);
	pass_known(p, at + 8);
}

/* Type of the packet 2 | hardware 2 | length of the address 2 | address 8 | EtherType 2 */
static void take_sll(struct pass *p, struct rest *r)
{
	const uint8_t *at = rest_take(r, 14);

	if (!at)
		return;
	pass_keep(p, at, 6);
	take_sll_address(p, be16(at + 2), be16(at + 4), at + 6);
	take_type(p, true, r);
}

/* EtherType 2 | 2 | interface 4 | hardware 2 | type of the packet 1 | length 1 | address 8 */
static void take_sll2(struct pass *p, struct rest *r)
{
	const uint8_t *at = rest_take(r, 20);
	struct link_type l = {0};
	struct rest type;

	if (!at)
		return;
	pass_keep(p, at, 12);
	take_sll_address(p, be16(at + 8), at[11], at + 12);
	if (!layer_is_tag(be16(at))) {
		if (be16(at) < TYPE_MIN)
			take_small(p, be16(at), true, r);
		else
			pass_by_type(p, be16(at), r);
		return;
	}
	/* The tag's number, and what follows it. */
	type = *r;
	if (!rest_take(r, 2))
		return;
	layer_type(&l, r);
	pass_keep(p, type.p, (size_t)(r->p - type.p));
	if (l.has_type)
		pass_by_type(p, l.type, r);
}

/* The family is a small number, in the byte order of some machine. */
static void take_family(struct pass *p, struct rest *r)
{
	if (r->len < 4 || (be32(r->p) & 0xffffff && be32(r->p) > 0xff))
		return;
	pass_take(p, r, 4);
	take_by_version(p, r);
}

typedef void take_fn(struct pass *p, struct rest *r);

static take_fn *take_of(uint16_t linktype)
{
	switch (linktype) {
	case LINK_ETHERNET: return pass_ethernet;
	case LINK_NULL:
	case LINK_LOOP: return take_family;
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6: return take_by_version;
	case LINK_SLL: return take_sll;
	case LINK_SLL2: return take_sll2;
	default: return NULL;
	}
}

bool anonymize_knows(uint16_t linktype)
{
	return take_of(linktype);
}

size_t anonymize_packet(struct pseudonyms *names, enum payload payload, uint16_t linktype,
	const uint8_t *in, size_t captured, size_t length, uint8_t *out)
{
	struct pass p = {.names = names, .payload = payload, .in = in, .out = out, .known = in};
	struct rest r = {in, captured, length > captured ? length : captured};

	take_fn *take = take_of(linktype);

	memset(out, 0, captured);
	if (take)
		take(&p, &r);
	return payload == PAYLOAD_CUT ? (size_t)(p.known - in) : captured;
}
