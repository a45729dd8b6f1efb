/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Anonymous packets. Each is made again, of zeros: bytes that stand in a header that is understood
 * are copied or replaced, one field after the other, and all others are zeros. So what is not
 * understood cannot leak.
 */
#ifndef RINGTAP_ANONYMIZE_PACKET_H
#define RINGTAP_ANONYMIZE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pseudonyms.h"

/* The treatment of bytes behind the last header that is understood. */
enum payload {
	PAYLOAD_CUT,  /* the packet is shorter; its length on the wire stays */
	PAYLOAD_ZERO, /* zeros */
	PAYLOAD_KEEP, /* payload of TCP, UDP, SCTP and so on is copied; the rest is zeros */
};

/* The texts of these, for a table of options. */
#define PAYLOAD_CHOICES "cut|zero|keep"

/* Writes the packet of captured bytes, which had length on the wire, to out, of as much room. in
 * must not change meanwhile. linktype: LINKTYPE_…; packets of those that are unknown are zeros.
 * Returns the bytes in out, at most captured. */
size_t anonymize_packet(struct pseudonyms *names, enum payload payload, uint16_t linktype,
	const uint8_t *in, size_t captured, size_t length, uint8_t *out);

/* Whether packets of this link type are read. */
bool anonymize_knows(uint16_t linktype);

#endif
