/* SPDX-License-Identifier: BSD-3-Clause */
/* Tunnels, from the outside in: see layers.h. */
#ifndef RINGTAP_COMMON_TUNNELS_H
#define RINGTAP_COMMON_TUNNELS_H

#include "layers.h"

enum { TYPE_FRAME = 0x6558 };
enum { PORT_GTP_U = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081 };

/* RFC 7348, RFC 8926: UDP 8 | flags or length of options 1 | 1 | type of GENEVE 2 | VNI 3 | 1. */
static inline bool tunnel_enter_udp(struct rest *r, uint16_t *type, uint32_t *vni)
{
	const uint8_t *p = rest_take(r, 16);
	bool vxlan = p && be16(p + 2) == PORT_VXLAN && p[8] & 8;

	if (!vxlan && (!p || be16(p + 2) != PORT_GENEVE || p[8] >> 6))
		return false;
	*type = vxlan ? TYPE_FRAME : be16(p + 10);
	*vni = be32(p + 12) >> 8;
	return vxlan || rest_take(r, (p[8] & 63) * 4u);
}

/* RFC 2784, RFC 2890: flags 2 | type 2 | checksum 4, key 4, sequence number 4, each by its flag. */
static inline bool tunnel_enter_gre(struct rest *r, uint16_t *type, uint32_t *vni)
{
	const uint8_t *p = rest_take(r, 4), *key;

	if (!p || be16(p) & 0x4007)
		return false;
	*type = be16(p + 2);
	if (p[0] & 0x80 && !rest_take(r, 4))
		return false;
	if (p[0] & 0x20) {
		key = rest_take(r, 4);
		if (!key)
			return false;
		*vni = *type == TYPE_FRAME ? be32(key) >> 8 : be32(key) & 0xffffff;
	}
	return !(p[0] & 0x10) || rest_take(r, 4);
}

/* Moves from the payload of ip into the tunnel. *type: EtherType of what begins there, TYPE_FRAME:
 * a frame; *vni: its number, if it has one. False: it is not one, or cut off. */
static inline bool tunnel_enter(
	const struct layer_ip *ip, struct rest *r, uint16_t *type, uint32_t *vni)
{
	if (!ip->whole || ip->fragment & FRAGMENT_OFFSET)
		return false;
	*r = (struct rest){ip->p, ip->captured, ip->wire};
	switch (ip->protocol) {
	case IPPROTO_UDP: return tunnel_enter_udp(r, type, vni);
	case IPPROTO_GRE: return tunnel_enter_gre(r, type, vni);
	case IPPROTO_IPIP: *type = TYPE_IP; return true;
	case IPPROTO_IPV6: *type = TYPE_IPV6; return true;
	default: return false;
	}
}

#define GTP_EXTENSIONS_MAX 4

/* 3GPP TS 29.281: UDP 8 | flags 1 | type 1 | length 2 | TEID 4, and with a flag of the last three
 * number 2 | N-PDU 1 | type of the next header 1. Such headers have their length in words of 4
 * bytes first, and the type of the next one last. */
static inline bool tunnel_enter_gtp(const struct layer_ip *ip, struct rest *r, uint16_t *type)
{
	const uint8_t *p, *next = NULL;

	if (!ip->whole || ip->fragment & FRAGMENT_OFFSET || ip->protocol != IPPROTO_UDP)
		return false;
	*r = (struct rest){ip->p, ip->captured, ip->wire};
	p = rest_take(r, 16);
	if (!p || be16(p + 2) != PORT_GTP_U || p[8] >> 4 != 3 || p[9] != 255)
		return false;
	if (p[8] & 7 && !(next = rest_take(r, 4)))
		return false;
	next = p[8] & 4 ? next + 3 : NULL;
	for (unsigned i = 0; next && *next; i++) {
		size_t len = r->len ? r->p[0] * 4u : 0;

		if (i == GTP_EXTENSIONS_MAX || !len || !(p = rest_take(r, len)))
			return false;
		next = p + len - 1;
	}
	if (!r->len)
		return false;
	*type = r->p[0] >> 4 == 6 ? TYPE_IPV6 : TYPE_IP;
	return true;
}

#endif
