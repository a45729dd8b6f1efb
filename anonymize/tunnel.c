/* SPDX-License-Identifier: BSD-3-Clause */
#include "pass.h"

enum { PORT_GTP_U = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081 };

/* Traffic of another protocol may have these ports: the header must be as it is defined. */

enum { VXLAN = 0x08000000, VXLAN_IP = 0x0c000001, VXLAN_IPV6, VXLAN_ETHERNET };

/* RFC 7348, and draft-ietf-nvo3-vxlan-gpe: flags 1 | 2 | next protocol 1 | VNI 3 | 1. */
static bool take_vxlan(struct pass *p, struct rest *r)
{
	const uint32_t word = r->len < 8 ? 0 : be32(r->p);

	if ((word != VXLAN && (word < VXLAN_IP || word > VXLAN_ETHERNET)) || r->p[7])
		return false;
	pass_take(p, r, 8);
	if (word == VXLAN_IP || word == VXLAN_IPV6)
		pass_by_type(p, word == VXLAN_IP ? TYPE_IP : TYPE_IPV6, r);
	else
		pass_ethernet(p, r);
	return true;
}

/* RFC 8926: version, length of options 1 | flags 1 | EtherType 2 | VNI 3 | 1 | options, which
 * become empty ones. */
static bool take_geneve(struct pass *p, struct rest *r)
{
	const uint8_t *at = r->p;

	if (r->len < 8 || at[0] >> 6 || at[1] & 0x3f || at[7] || be16(at + 2) < TYPE_MIN)
		return false;
	pass_take(p, r, 8);
	if (!rest_take(r, (at[0] & 63) * 4u))
		return true;
	pass_known(p, r->p);
	pass_by_type(p, be16(at + 2), r);
	return true;
}

enum { GTP_NUMBERS = 7, GTP_EXTENDED = 4, GTP_PACKET = 255 };

/* Extension headers of GTP-U: length in units of 4 bytes 1 | content | type of the next one 1. */
static bool take_gtp_headers(struct pass *p, struct rest *r, uint8_t next)
{
	while (next) {
		const uint8_t *at = r->p;
		size_t len = r->len ? at[0] * 4u : 0;

		if (!len || !rest_take(r, len))
			return false;
		pass_keep(p, at, 1);
		next = at[len - 1];
		pass_keep(p, at + len - 1, 1);
	}
	return true;
}

/* 3GPP TS 29.281: flags 1 | type 1 | length 2 | TEID 4, and with any flag of GTP_NUMBERS: number 2
 * | N-PDU 1 | type of the next header 1. */
static bool take_gtp(struct pass *p, struct rest *r)
{
	const uint8_t *at = r->p, *more;

	if (r->len < 8 || at[0] >> 4 != 3 || at[1] != GTP_PACKET || be16(at + 2) != r->wire - 8)
		return false;
	pass_take(p, r, 8);
	if (at[0] & GTP_NUMBERS) {
		more = pass_take(p, r, 4);
		if (!more || (at[0] & GTP_EXTENDED && !take_gtp_headers(p, r, more[3])))
			return true;
	}
	pass_guess(p, r); /* or Ethernet */
	return true;
}

bool pass_udp_tunnel(struct pass *p, uint16_t port, struct rest *r)
{
	switch (port) {
	case PORT_VXLAN: return take_vxlan(p, r);
	case PORT_GENEVE: return take_geneve(p, r);
	case PORT_GTP_U: return take_gtp(p, r);
	default: return false;
	}
}

enum { GRE_CHECKSUM = 0x8000, GRE_KEY = 0x2000, GRE_NUMBER = 0x1000, GRE_OTHER = 0x4fff };

/* RFC 2784, RFC 2890: flags 2 | type 2 | checksum 4, key 4, number 4, each by its flag. */
void pass_gre(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = r->p;
	unsigned flags = r->len >= 4 ? be16(at) : GRE_OTHER;
	size_t words = !!(flags & GRE_CHECKSUM) + !!(flags & GRE_KEY) + !!(flags & GRE_NUMBER);

	if (flags & GRE_OTHER || !pass_take(p, r, 4 + 4 * words))
		return;
	pass_by_type(p, be16(at + 2), r);
	if (flags & GRE_CHECKSUM)
		pass_checksum(p, ip, at, 4, ip->wire, 0, false);
}
