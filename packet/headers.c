/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "headers.h"

#define LINKTYPE_ETHERNET 1
#define TYPE_MIN          0x600 /* less is a length (IEEE 802.3) */
#define IP_HEADERS_MAX    8     /* extension headers of IPv6 */

enum { TYPE_IP = 0x0800, TYPE_ARP = 0x0806, TYPE_IPV6 = 0x86dd };
enum { TYPE_VLAN = 0x8100, TYPE_QINQ = 0x88a8, TYPE_QINQ_OLD = 0x9100 };

/* What is left of a packet. */
struct rest {
	const uint8_t *p;
	size_t len;
};

/* The next n bytes; NULL: the packet is cut before. */
static const uint8_t *take(struct rest *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->len < n)
		return NULL;
	r->p += n;
	r->len -= n;
	return p;
}

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void read_ports(struct headers *h, struct rest *r)
{
	const uint8_t *p;

	if (h->protocol != IPPROTO_TCP && h->protocol != IPPROTO_UDP && h->protocol != IPPROTO_SCTP)
		return;
	p = take(r, 4);
	if (!p)
		return;
	h->src_port = be16(p);
	h->dst_port = be16(p + 2);
	h->flags |= HAS_PORTS;
}

static void read_ipv4(struct headers *h, struct rest *r)
{
	const uint8_t *p = take(r, 20);

	if (!p || p[0] >> 4 != 4 || (p[0] & 15) < 5)
		return;
	h->version = 4;
	h->tos = p[1];
	h->ttl = p[8];
	h->protocol = p[9];
	memcpy(h->src, p + 12, 4);
	memcpy(h->dst, p + 16, 4);
	h->flags |= HAS_IP;
	if (be16(p + 6) & 0x1fff) /* a fragment after the first */
		return;
	if (take(r, ((p[0] & 15u) - 5) * 4))
		read_ports(h, r);
}

/* Goes on to the transport header; false: there is none, or it is cut off. */
static bool skip_extensions(struct headers *h, struct rest *r)
{
	for (int i = 0; i < IP_HEADERS_MAX; i++) {
		bool fragment = h->protocol == IPPROTO_FRAGMENT;
		const uint8_t *p;

		if (!fragment && h->protocol != IPPROTO_HOPOPTS && h->protocol != IPPROTO_ROUTING &&
			h->protocol != IPPROTO_DSTOPTS)
			return true;
		p = take(r, 8);
		if (!p || (!fragment && !take(r, p[1] * 8u)))
			return false;
		h->protocol = p[0];
		if (fragment && be16(p + 2) >> 3)
			return false;
	}
	return false;
}

static void read_ipv6(struct headers *h, struct rest *r)
{
	const uint8_t *p = take(r, 40);

	if (!p || p[0] >> 4 != 6)
		return;
	h->version = 6;
	h->tos = (uint8_t)(p[0] << 4 | p[1] >> 4);
	h->protocol = p[6];
	h->ttl = p[7];
	memcpy(h->src, p + 8, 16);
	memcpy(h->dst, p + 24, 16);
	h->flags |= HAS_IP;
	if (skip_extensions(h, r))
		read_ports(h, r);
}

/* ARP for IPv4 over Ethernet (RFC 826). */
static void read_arp(struct headers *h, struct rest *r)
{
	const uint8_t *p = take(r, 28);

	if (!p || be16(p + 2) != TYPE_IP || p[4] != 6 || p[5] != 4)
		return;
	memcpy(h->src, p + 14, 4);
	memcpy(h->dst, p + 24, 4);
	h->flags |= HAS_ARP;
}

static bool is_tag(uint16_t type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD;
}

void headers_read(struct headers *h, uint16_t linktype, const uint8_t *data, size_t len)
{
	struct rest r = {data, len};
	const uint8_t *p;

	memset(h, 0, sizeof(*h));
	p = linktype == LINKTYPE_ETHERNET ? take(&r, 12) : NULL;
	if (!p)
		return;
	memcpy(h->dst_mac, p, 6);
	memcpy(h->src_mac, p + 6, 6);
	h->flags = HAS_MAC;
	for (p = take(&r, 2); p && is_tag(be16(p)); p = take(&r, 2)) {
		const uint8_t *tci = take(&r, 2);

		if (!tci)
			return;
		if (h->vlans < 2)
			h->tci[h->vlans] = be16(tci);
		h->vlans += h->vlans < UINT8_MAX;
	}
	if (!p)
		return;
	h->type = be16(p);
	h->flags |= HAS_TYPE;
	if (h->type == TYPE_IP)
		read_ipv4(h, &r);
	else if (h->type == TYPE_IPV6)
		read_ipv6(h, &r);
	else if (h->type == TYPE_ARP)
		read_arp(h, &r);
}

/* ---- as text ---- */

static void mac_text(const uint8_t m[6], char buf[18])
{
	snprintf(buf, 18, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

static void address_text(const struct headers *h, const uint8_t *a, char buf[INET6_ADDRSTRLEN])
{
	inet_ntop(h->version == 6 ? AF_INET6 : AF_INET, a, buf, INET6_ADDRSTRLEN);
}

static void protocol_name(uint8_t protocol, char buf[16])
{
	switch (protocol) {
	case IPPROTO_ICMP: strcpy(buf, "ICMP"); break;
	case IPPROTO_IGMP: strcpy(buf, "IGMP"); break;
	case IPPROTO_TCP: strcpy(buf, "TCP"); break;
	case IPPROTO_UDP: strcpy(buf, "UDP"); break;
	case IPPROTO_GRE: strcpy(buf, "GRE"); break;
	case IPPROTO_ESP: strcpy(buf, "ESP"); break;
	case IPPROTO_ICMPV6: strcpy(buf, "ICMPv6"); break;
	case IPPROTO_SCTP: strcpy(buf, "SCTP"); break;
	default: snprintf(buf, 16, "protocol %u", protocol);
	}
}

char *headers_protocol(const struct headers *h, char buf[PROTOCOL_TEXT])
{
	char name[16];

	if (h->flags & HAS_IP) {
		protocol_name(h->protocol, name);
		snprintf(buf, PROTOCOL_TEXT, "IPv%u %s", h->version, name);
	} else if (!(h->flags & HAS_TYPE)) {
		snprintf(buf, PROTOCOL_TEXT, "unreadable");
	} else if (h->type == TYPE_ARP) {
		snprintf(buf, PROTOCOL_TEXT, "ARP");
	} else if (h->type < TYPE_MIN) {
		snprintf(buf, PROTOCOL_TEXT, "IEEE 802.3");
	} else {
		snprintf(buf, PROTOCOL_TEXT, "type 0x%04x", h->type);
	}
	return buf;
}

char *headers_text(const struct headers *h, char buf[HEADERS_TEXT])
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], name[PROTOCOL_TEXT];
	const char *left = h->version == 6 ? "[" : "", *right = h->version == 6 ? "]" : "";

	headers_protocol(h, name);
	if (h->flags & (HAS_IP | HAS_ARP)) {
		address_text(h, h->src, src);
		address_text(h, h->dst, dst);
	} else {
		mac_text(h->src_mac, src);
		mac_text(h->dst_mac, dst);
	}
	if (h->flags & HAS_PORTS)
		snprintf(buf, HEADERS_TEXT, "%s%s%s:%u > %s%s%s:%u %s", left, src, right,
			h->src_port, left, dst, right, h->dst_port, name + 5);
	else if (h->flags & HAS_MAC)
		snprintf(buf, HEADERS_TEXT, "%s > %s %s", src, dst,
			h->flags & HAS_IP ? name + 5 : name);
	else
		snprintf(buf, HEADERS_TEXT, "unreadable");
	return buf;
}

/* ---- changes ---- */

const char *const change_names[CHANGES] = {"source MAC address", "destination MAC address",
	"VLAN tag added", "VLAN tag removed", "VLAN tag", "ethertype", "TTL, hop limit", "DSCP",
	"ECN", "IP protocol", "source address", "destination address", "source port",
	"destination port", "length"};
const char *const change_keys[CHANGES] = {"src_mac", "dst_mac", "vlan_added", "vlan_removed",
	"vlan", "ethertype", "ttl", "dscp", "ecn", "protocol", "src_address", "dst_address",
	"src_port", "dst_port", "length"};

static uint32_t bit(bool differs, enum change c)
{
	return (uint32_t)differs << c;
}

static uint32_t compare_vlans(const struct headers *a, const struct headers *b)
{
	if (a->vlans != b->vlans)
		return bit(b->vlans > a->vlans, CHANGE_VLAN_ADDED) |
		       bit(b->vlans < a->vlans, CHANGE_VLAN_REMOVED);
	return bit(a->tci[0] != b->tci[0] || a->tci[1] != b->tci[1], CHANGE_VLAN);
}

/* Addresses are compared only if both are of one version: else the type has changed. */
static uint32_t compare_ip(const struct headers *a, const struct headers *b)
{
	return bit((a->tos ^ b->tos) >> 2, CHANGE_DSCP) | bit((a->tos ^ b->tos) & 3, CHANGE_ECN) |
	       bit(a->ttl != b->ttl, CHANGE_TTL) |
	       bit(a->protocol != b->protocol, CHANGE_PROTOCOL) |
	       bit(memcmp(a->src, b->src, sizeof(a->src)), CHANGE_SRC) |
	       bit(memcmp(a->dst, b->dst, sizeof(a->dst)), CHANGE_DST);
}

uint32_t headers_compare(
	const struct headers *rx, uint32_t rx_length, const struct headers *tx, uint32_t tx_length)
{
	uint8_t both = rx->flags & tx->flags;
	uint32_t bits = bit(rx_length != tx_length, CHANGE_LENGTH);

	if (both & HAS_MAC)
		bits |= bit(memcmp(rx->src_mac, tx->src_mac, 6), CHANGE_SRC_MAC) |
			bit(memcmp(rx->dst_mac, tx->dst_mac, 6), CHANGE_DST_MAC);
	if (both & HAS_TYPE)
		bits |= compare_vlans(rx, tx) | bit(rx->type != tx->type, CHANGE_TYPE);
	if (both & HAS_IP && rx->version == tx->version)
		bits |= compare_ip(rx, tx);
	if (both & HAS_PORTS)
		bits |= bit(rx->src_port != tx->src_port, CHANGE_SRC_PORT) |
			bit(rx->dst_port != tx->dst_port, CHANGE_DST_PORT);
	return bits;
}

/* The value in one packet, as text. */
static void value_text(enum change c, const struct headers *h, uint32_t length, char buf[56])
{
	switch (c) {
	case CHANGE_SRC_MAC: mac_text(h->src_mac, buf); break;
	case CHANGE_DST_MAC: mac_text(h->dst_mac, buf); break;
	case CHANGE_VLAN_ADDED:
	case CHANGE_VLAN_REMOVED:
	case CHANGE_VLAN:
		if (h->vlans > 1)
			snprintf(buf, 56, "%u.%u", h->tci[0] & 4095, h->tci[1] & 4095);
		else
			snprintf(buf, 56, h->vlans ? "%u" : "none", h->tci[0] & 4095);
		/* Priority only where it is what may differ. */
		if (c == CHANGE_VLAN && h->vlans && h->tci[0] >> 12)
			snprintf(buf + strlen(buf), 16, " prio %u", h->tci[0] >> 13);
		break;
	case CHANGE_TYPE: snprintf(buf, 56, "0x%04x", h->type); break;
	case CHANGE_TTL: snprintf(buf, 56, "%u", h->ttl); break;
	case CHANGE_DSCP: snprintf(buf, 56, "%u", h->tos >> 2); break;
	case CHANGE_ECN: snprintf(buf, 56, "%u", h->tos & 3); break;
	case CHANGE_PROTOCOL: protocol_name(h->protocol, buf); break;
	case CHANGE_SRC: address_text(h, h->src, buf); break;
	case CHANGE_DST: address_text(h, h->dst, buf); break;
	case CHANGE_SRC_PORT: snprintf(buf, 56, "%u", h->src_port); break;
	case CHANGE_DST_PORT: snprintf(buf, 56, "%u", h->dst_port); break;
	default: snprintf(buf, 56, "%u", length);
	}
}

char *change_text(enum change c, const struct headers *rx, uint32_t rx_length,
	const struct headers *tx, uint32_t tx_length, char buf[CHANGE_TEXT])
{
	char from[56], to[56];

	value_text(c, rx, rx_length, from);
	value_text(c, tx, tx_length, to);
	snprintf(buf, CHANGE_TEXT, "%s > %s", from, to);
	return buf;
}
