/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/tunnels.h"
#include "headers.h"
#include "protocols.h"

static void take_tcp(struct headers *h, const struct layer_ip *ip)
{
	const uint8_t *start = ip->src - (ip->version == 6 ? 8 : 12);
	size_t before = (size_t)(ip->p - start) + (ip->p[12] >> 4) * 4u;

	h->tcp_flags = ip->p[13];
	h->tcp_seq = be32(ip->p + 4);
	h->tcp_payload = (uint16_t)(h->ip_bytes > before ? h->ip_bytes - before : 0);
}

static void take_ip(struct headers *h, const struct layer_ip *ip)
{
	const uint8_t *ports = layer_ports(ip);

	h->version = ip->version;
	h->tos = ip->tos;
	h->ttl = ip->ttl;
	h->protocol = ip->protocol;
	h->ip_bytes = ip->length + (ip->version == 6 && ip->length ? 40 : 0);
	memcpy(h->src, ip->src, 4);
	memcpy(h->dst, ip->dst, 4);
	if (ip->version == 6) {
		memcpy(h->src + 4, ip->src + 4, 12);
		memcpy(h->dst + 4, ip->dst + 4, 12);
	}
	h->flags |= HAS_IP;
	if (!ports)
		return;
	h->src_port = be16(ports);
	h->dst_port = be16(ports + 2);
	h->flags |= HAS_PORTS;
	if (ip->protocol == IPPROTO_TCP && ip->captured > 13)
		take_tcp(h, ip);
}

static void take_arp(struct headers *h, const uint8_t *p)
{
	memcpy(h->src, p + ARP_SENDER, 4);
	memcpy(h->dst, p + ARP_TARGET, 4);
	h->flags |= HAS_ARP;
}

/* Parses the header behind an EtherType. True: *ip is there. */
static bool read_network(struct headers *h, uint16_t type, struct rest *r, struct layer_ip *ip)
{
	h->type = type;
	h->flags |= HAS_TYPE;
	if (layer_ip(ip, type, r)) {
		take_ip(h, ip);
		return true;
	}
	if (type == TYPE_ARP && r->len >= ARP_BYTES && layer_is_arp(r))
		take_arp(h, r->p);
	return false;
}

static bool read_frame(struct headers *h, struct rest *r, struct layer_ip *ip)
{
	const uint8_t *p = rest_take(r, 12);
	struct link_type l = {0};

	if (!p)
		return false;
	memcpy(h->dst_mac, p, 6);
	memcpy(h->src_mac, p + 6, 6);
	h->flags = HAS_MAC;
	layer_type(&l, r);
	h->vlans = l.vlans;
	memcpy(h->tci, l.tci, sizeof(h->tci));
	return l.has_type && read_network(h, l.type, r, ip);
}

void headers_read(struct headers *h, uint16_t linktype, const uint8_t *data, size_t len)
{
	struct rest r = {data, len, len};
	struct layer_ip ip;

	*h = (struct headers){0};
	if (linktype == LINKTYPE_ETHERNET)
		read_frame(h, &r, &ip);
}

/* ---- tunnels ---- */

unsigned headers_inner(
	struct headers *h, uint32_t *vni, uint16_t linktype, const uint8_t *data, size_t len)
{
	struct rest r = {data, len, len};
	uint16_t type = TYPE_FRAME;
	unsigned tunnels = 0;
	struct layer_ip ip;

	*vni = 0;
	*h = (struct headers){0};
	if (linktype != LINKTYPE_ETHERNET || !read_frame(h, &r, &ip))
		return 0;
	for (; tunnels < TUNNELS_MAX; tunnels++) {
		struct headers inner = {0};
		uint32_t number = *vni;
		bool is_ip;

		if (!tunnel_enter(&ip, &r, &type, &number))
			break;
		is_ip = type == TYPE_FRAME ? read_frame(&inner, &r, &ip)
					   : read_network(&inner, type, &r, &ip);
		if (!(inner.flags & (HAS_MAC | HAS_IP))) /* cut off: the tunnel itself counts */
			break;
		*vni = number;
		*h = inner;
		if (!is_ip)
			return tunnels + 1;
	}
	return tunnels;
}

/* ---- as text ---- */

char *mac_text(const uint8_t m[6], char buf[MAC_TEXT])
{
	snprintf(
		buf, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
	return buf;
}

char *address_text(uint8_t version, const uint8_t *a, char buf[ADDRESS_TEXT])
{
	inet_ntop(version == 6 ? AF_INET6 : AF_INET, a, buf, ADDRESS_TEXT);
	return buf;
}

#define CASE(number, name) \
	case number: strcpy(buf, name); break;

char *protocol_text(uint8_t protocol, char buf[16])
{
	switch (protocol) {
		IP_PROTOCOLS(CASE)
	default: snprintf(buf, 16, "proto %u", protocol);
	}
	return buf;
}

char *ethertype_text(uint16_t type, char buf[16])
{
	switch (type) {
		ETHERTYPES(CASE)
	default: snprintf(buf, 16, type < TYPE_MIN ? "IEEE 802.3" : "0x%04x", type);
	}
	return buf;
}

char *headers_protocol(const struct headers *h, char buf[PROTOCOL_TEXT])
{
	char name[16];

	if (h->flags & HAS_IP) {
		protocol_text(h->protocol, name);
		snprintf(buf, PROTOCOL_TEXT, "IPv%u %s", h->version, name);
	} else if (!(h->flags & HAS_TYPE)) {
		snprintf(buf, PROTOCOL_TEXT, "unreadable");
	} else {
		snprintf(buf, PROTOCOL_TEXT, "%s", ethertype_text(h->type, name));
	}
	return buf;
}

char *headers_text(const struct headers *h, char buf[HEADERS_TEXT])
{
	char src[ADDRESS_TEXT], dst[ADDRESS_TEXT], name[PROTOCOL_TEXT];
	const char *left = h->version == 6 ? "[" : "", *right = h->version == 6 ? "]" : "";

	headers_protocol(h, name);
	if (h->flags & (HAS_IP | HAS_ARP)) {
		address_text(h->version, h->src, src);
		address_text(h->version, h->dst, dst);
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
