/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP, ICMPv6 with neighbour discovery, IGMP. Messages that are not listed keep their type, code
 * and checksum. */
#include "pass.h"

/* The packet that an error is about. What may stand behind it (RFC 4884) is left out, and its
 * length, in words of unit bytes, which stands in the header at length_at. */
static void take_quoted(
	struct pass *p, uint16_t type, struct rest *r, uint8_t *length_at, unsigned unit)
{
	const bool quoted = p->quoted;

	if (*length_at)
		rest_limit(r, *length_at * unit);
	*length_at = 0;
	p->quoted = true;
	pass_by_type(p, type, r);
	p->quoted = quoted;
}

/* ---- ICMP ---- */

enum {
	ICMP_REPLY = 0,
	ICMP_UNREACHABLE = 3,
	ICMP_QUENCH = 4,
	ICMP_REDIRECT = 5,
	ICMP_REQUEST = 8,
	ICMP_EXCEEDED = 11,
	ICMP_PARAMETER = 12,
};

/* type 1 | code 1 | checksum 2 | 4, by type */
void pass_icmp(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = rest_take(r, 8);

	if (!at)
		return;
	pass_keep(p, at, 4);
	switch (at[0]) {
	case ICMP_REPLY:
	case ICMP_REQUEST:
		pass_keep(p, at, 8);
		pass_payload(p, r);
		break;
	case ICMP_UNREACHABLE:
	case ICMP_QUENCH:
	case ICMP_EXCEEDED:
	case ICMP_PARAMETER:
		pass_keep(p, at, 8);
		take_quoted(p, TYPE_IP, r, pass_out(p, at + 5), 4);
		break;
	case ICMP_REDIRECT:
		pass_address(p, 4, at + 4);
		take_quoted(p, TYPE_IP, r, &(uint8_t){0}, 4);
		break;
	}
	pass_checksum(p, ip, at, 2, ip->wire, 0, false);
}

/* ---- ICMPv6 ---- */

enum {
	ICMP6_UNREACHABLE = 1,
	ICMP6_TOO_BIG,
	ICMP6_EXCEEDED,
	ICMP6_PARAMETER,
	ICMP6_REQUEST = 128,
	ICMP6_REPLY,
	MLD_QUERY,
	MLD_REPORT,
	MLD_DONE,
	ND_ROUTER_SOLICIT,
	ND_ROUTER_ADVERT,
	ND_SOLICIT,
	ND_ADVERT,
	ND_REDIRECT,
};
enum { ND_SOURCE = 1, ND_TARGET, ND_PREFIX, ND_REDIRECTED, ND_MTU };

/* RFC 4861 section 4.6.2: 1 | 1 | bits of the prefix 1 | flags 1 | times 8 | 4 | prefix 16. Bits
 * behind the prefix are zeros, as they should be. */
static void take_prefix(struct pass *p, const uint8_t *at)
{
	uint8_t *out = pass_out(p, at + 16);

	pass_keep(p, at, 12);
	pass_address(p, 6, at + 16);
	for (unsigned i = at[2]; i < 128; i++)
		out[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
}

/* Type 1 | length in units of 8 bytes 1 | content. What is not known keeps these two. */
static void take_option(struct pass *p, const uint8_t *at, size_t len)
{
	struct rest inner = {at + 8, len - 8, len - 8};

	pass_keep(p, at, 2);
	pass_known(p, at + len);
	switch (at[0]) {
	case ND_SOURCE:
	case ND_TARGET:
		if (len == 8)
			pass_mac(p, at + 2);
		break;
	case ND_PREFIX:
		if (len == 32)
			take_prefix(p, at);
		break;
	case ND_REDIRECTED: take_quoted(p, TYPE_IPV6, &inner, &(uint8_t){0}, 8); break;
	case ND_MTU:
		if (len == 8)
			pass_keep(p, at, 8);
		break;
	}
}

/* keep: bytes between the checksum and the addresses; then options. */
static void take_neighbour(
	struct pass *p, const uint8_t *at, struct rest *r, size_t keep, unsigned addresses)
{
	const uint8_t *from;

	pass_keep(p, at, 8);
	if (keep > 4 && !pass_take(p, r, keep - 4))
		return;
	for (unsigned i = 0; i < addresses; i++) {
		from = rest_take(r, 16);
		if (!from)
			return;
		pass_address(p, 6, from);
	}
	while (r->len >= 8) {
		size_t len = r->p[1] * 8u;

		from = len ? rest_take(r, len) : NULL;
		if (!from)
			return;
		take_option(p, from, len);
	}
}

void pass_icmp6(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = rest_take(r, 8);

	if (!at)
		return;
	pass_keep(p, at, 4);
	switch (at[0]) {
	case ICMP6_REQUEST:
	case ICMP6_REPLY:
		pass_keep(p, at, 8);
		pass_payload(p, r);
		break;
	case ICMP6_UNREACHABLE:
	case ICMP6_EXCEEDED:
		pass_keep(p, at, 8);
		take_quoted(p, TYPE_IPV6, r, pass_out(p, at + 4), 8);
		break;
	case ICMP6_TOO_BIG:
	case ICMP6_PARAMETER:
		pass_keep(p, at, 8);
		take_quoted(p, TYPE_IPV6, r, &(uint8_t){0}, 8);
		break;
	case MLD_QUERY:
	case MLD_REPORT:
	case MLD_DONE:
		take_neighbour(p, at, &(struct rest){r->p, r->len < 16 ? r->len : 16, 16}, 4, 1);
		break;
	case ND_ROUTER_SOLICIT: take_neighbour(p, at, r, 4, 0); break;
	case ND_ROUTER_ADVERT: take_neighbour(p, at, r, 12, 0); break;
	case ND_SOLICIT:
	case ND_ADVERT: take_neighbour(p, at, r, 4, 1); break;
	case ND_REDIRECT: take_neighbour(p, at, r, 4, 2); break;
	}
	pass_checksum(p, ip, at, 2, ip->wire, ip->wire, false);
}

/* ---- IGMP ---- */

enum { IGMP_QUERY = 0x11, IGMP_REPORT = 0x12, IGMP_REPORT_2 = 0x16, IGMP_LEAVE = 0x17 };

/* RFC 2236: type 1 | time 1 | checksum 2 | group 4. */
void pass_igmp(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = rest_take(r, 8);

	if (!at)
		return;
	pass_keep(p, at, 4);
	switch (at[0]) {
	case IGMP_QUERY:
	case IGMP_REPORT:
	case IGMP_REPORT_2:
	case IGMP_LEAVE: pass_address(p, 4, at + 4); break;
	}
	pass_checksum(p, ip, at, 2, ip->wire, 0, false);
}
