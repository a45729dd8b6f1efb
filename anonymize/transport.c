/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"
#include "pass.h"

/* width: bytes of the checksum, which become zeros. */
static struct summed summed_of(const struct pass *p, const struct layer_ip *ip, const uint8_t *from,
	size_t at, size_t width, size_t covered)
{
	const size_t captured = ip->captured - (size_t)(from - ip->p);

	if (captured > at)
		memset(pass_out(p, from + at), 0, captured < at + width ? captured - at : width);
	return (struct summed){.in = from,
		.out = pass_out(p, from),
		.at = at,
		.captured = captured < covered ? captured : covered,
		.whole = captured >= covered && !(ip->fragment & FRAGMENT_MORE),
		.in_src = ip->src,
		.in_dst = ip->dst,
		.out_src = pass_out(p, ip->src),
		.out_dst = pass_out(p, ip->dst),
		.protocol = ip->protocol};
}

void pass_checksum(struct pass *p, const struct layer_ip *ip, const uint8_t *from, size_t at,
	size_t covered, size_t length, bool optional)
{
	struct summed s = summed_of(p, ip, from, at, 2, covered);

	s.length = (uint32_t)length;
	s.address_bytes = !length ? 0 : ip->version == 4 ? 4 : 16;
	checksum_put(&s, optional);
}

/* ---- TCP ---- */

enum { TCP_END, TCP_NOP, TCP_MSS, TCP_SCALE, TCP_SACK_OK, TCP_SACK, TCP_TIMES = 8 };

/* Options that hold numbers of this connection only. */
static bool is_plain_option(uint8_t kind, uint8_t len)
{
	switch (kind) {
	case TCP_MSS: return len == 4;
	case TCP_SCALE: return len == 3;
	case TCP_SACK_OK: return len == 2;
	case TCP_SACK: return len >= 10 && len <= 34 && len % 8 == 2;
	case TCP_TIMES: return len == 10;
	default: return false;
	}
}

/* Others become NOPs. */
static void take_tcp_options(struct pass *p, const uint8_t *at, const uint8_t *end)
{
	pass_known(p, end);
	while (at < end && *at != TCP_END) {
		const size_t left = (size_t)(end - at);
		size_t len = *at == TCP_NOP || left < 2 ? 1 : at[1];

		if (*at != TCP_NOP && (left < 2 || len < 2 || len > left))
			return;
		if (*at != TCP_NOP && is_plain_option(at[0], at[1]))
			pass_keep(p, at, len);
		else
			memset(pass_out(p, at), TCP_NOP, len);
		at += len;
	}
}

static void take_tcp(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = r->p;
	size_t header;

	pass_keep(p, at, r->len < 20 ? r->len : 20);
	if (r->len < 20)
		goto sum;
	header = (at[12] >> 4) * 4u;
	if (header >= 20) {
		size_t there = header < r->len ? header : r->len;

		take_tcp_options(p, at + 20, at + there);
		rest_take(r, there);
		pass_payload(p, r);
	}
sum:
	pass_checksum(p, ip, at, 16, ip->wire, ip->wire, false);
}

/* ---- UDP ---- */

static void take_udp(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = pass_take(p, r, 8);
	size_t length;

	if (!at)
		return;
	length = be16(at + 4);
	if (length < 8 || (length > ip->wire && !(ip->fragment & FRAGMENT_MORE)))
		length = ip->wire;
	rest_limit(r, length - 8);
	if (!pass_udp_tunnel(p, be16(at + 2), r))
		pass_payload(p, r);
	pass_checksum(p, ip, at, 6, length, length, true);
}

/* RFC 3828: the checksum covers the first bytes. */
static void take_udplite(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = pass_take(p, r, 8);
	size_t covered;

	if (!at)
		return;
	covered = be16(at + 4);
	pass_payload(p, r);
	if (covered < 8 || covered > ip->wire)
		covered = ip->wire;
	pass_checksum(p, ip, at, 6, covered, ip->wire, false);
}

/* ---- others ---- */

/* RFC 9260: ports 4 | tag 4 | CRC 4. */
static void take_sctp(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = pass_take(p, r, 12);
	struct summed s;

	if (!at)
		return;
	pass_payload(p, r);
	s = summed_of(p, ip, at, 8, 4, ip->wire);
	crc32c_put(&s, ip->wire);
}

/* RFC 4340: ports 4 | length of the header 1 | CCVal, coverage 1 | checksum 2 | type, extended 1 |
 * number 3, or 7. What follows, by type, and options are zeros, which is padding. */
static void take_dccp(struct pass *p, const struct layer_ip *ip, struct rest *r)
{
	const uint8_t *at = r->p;
	size_t header, covered = ip->wire;

	if (r->len < 12 || !pass_take(p, r, at[8] & 1 ? 16 : 12))
		return;
	header = at[4] * 4u;
	if (at[5] & 15)
		covered = header + ((at[5] & 15) - 1) * 4u;
	if (covered > ip->wire)
		covered = ip->wire;
	pass_checksum(p, ip, at, 6, covered, ip->wire, false);
}

void pass_transport(struct pass *p, const struct layer_ip *ip)
{
	struct rest r = {ip->p, ip->captured, ip->wire};

	switch (ip->protocol) {
	case IPPROTO_TCP: take_tcp(p, ip, &r); break;
	case IPPROTO_UDP: take_udp(p, ip, &r); break;
	case IPPROTO_UDPLITE: take_udplite(p, ip, &r); break;
	case IPPROTO_SCTP: take_sctp(p, ip, &r); break;
	case IPPROTO_DCCP: take_dccp(p, ip, &r); break;
	case IPPROTO_ICMP: pass_icmp(p, ip, &r); break;
	case IPPROTO_ICMPV6: pass_icmp6(p, ip, &r); break;
	case IPPROTO_IGMP: pass_igmp(p, ip, &r); break;
	case IPPROTO_GRE: pass_gre(p, ip, &r); break;
	case IPPROTO_IPIP: pass_by_type(p, TYPE_IP, &r); break;
	case IPPROTO_IPV6: pass_by_type(p, TYPE_IPV6, &r); break;
	case IPPROTO_ESP: pass_take(p, &r, 8); break; /* index and number (RFC 4303) */
	}
}
