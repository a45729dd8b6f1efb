/* SPDX-License-Identifier: BSD-3-Clause */
/* Between packet.c and its parts: a packet that is being made. */
#ifndef RINGTAP_ANONYMIZE_PASS_H
#define RINGTAP_ANONYMIZE_PASS_H

#include <stdbool.h>
#include <string.h>

#include "packet.h"
#include "common/layers.h"

#define DEPTH_MAX 12 /* headers of Ethernet and IP, one in the other */

struct pass {
	struct pseudonyms *names;
	enum payload payload;
	const uint8_t *in;    /* the packet */
	uint8_t *out;         /* zeros, but for what is written */
	const uint8_t *known; /* end of the last header, in in */
	unsigned depth;
	bool quoted; /* inside of an error message: payload is not kept */
};

/* The place in out of a byte of in. */
static inline uint8_t *pass_out(const struct pass *p, const uint8_t *in)
{
	return p->out + (in - p->in);
}

/* Bytes up to here have been understood; zeros of them are meant. */
static inline void pass_known(struct pass *p, const uint8_t *end)
{
	if (end > p->known)
		p->known = end;
}

/* Copies bytes, which hold no address and no content. */
static inline void pass_keep(struct pass *p, const uint8_t *from, size_t n)
{
	memcpy(pass_out(p, from), from, n);
	pass_known(p, from + n);
}

/* Copies the next n bytes; NULL: there are fewer, and none is copied. */
static inline const uint8_t *pass_take(struct pass *p, struct rest *r, size_t n)
{
	const uint8_t *from = rest_take(r, n);

	if (from)
		pass_keep(p, from, n);
	return from;
}

static inline void pass_mac(struct pass *p, const uint8_t *from)
{
	pseudonym_mac(p->names, from, pass_out(p, from));
	pass_known(p, from + 6);
}

/* version: 4 or 6. */
static inline void pass_address(struct pass *p, uint8_t version, const uint8_t *from)
{
	if (version == 4)
		pseudonym_ipv4(p->names, from, pass_out(p, from));
	else
		pseudonym_ipv6(p->names, from, pass_out(p, from));
	pass_known(p, from + (version == 4 ? 4 : 16));
}

/* The rest of r is payload. */
static inline void pass_payload(struct pass *p, const struct rest *r)
{
	if (p->payload == PAYLOAD_KEEP && !p->quoted)
		pass_keep(p, r->p, r->len);
}

/* packet.c: a packet inside of another one. */
void pass_ethernet(struct pass *p, struct rest *r);
void pass_by_type(struct pass *p, uint16_t type, struct rest *r); /* an EtherType */
/* IP behind a header that does not name it: only if it is certain. */
void pass_guess(struct pass *p, struct rest *r);

/* transport.c: what IP carries. */
void pass_transport(struct pass *p, const struct layer_ip *ip);
/* Writes the checksum at an offset of from. covered: bytes of it, also those that are missing.
 * length: in the pseudo header; 0: without one. */
void pass_checksum(struct pass *p, const struct layer_ip *ip, const uint8_t *from, size_t at,
	size_t covered, size_t length, bool optional);

/* tunnel.c: true: it was one. r is behind the header of UDP. */
bool pass_udp_tunnel(struct pass *p, uint16_t port, struct rest *r);
void pass_gre(struct pass *p, const struct layer_ip *ip, struct rest *r);

/* icmp.c */
void pass_icmp(struct pass *p, const struct layer_ip *ip, struct rest *r);
void pass_icmp6(struct pass *p, const struct layer_ip *ip, struct rest *r);
void pass_igmp(struct pass *p, const struct layer_ip *ip, struct rest *r);

#endif
