/* SPDX-License-Identifier: BSD-3-Clause */
/* flow_id and digest: decoder.h has the formulas. */
#ifndef RINGTAP_ARCHIVE_IDENTITY_H
#define RINGTAP_ARCHIVE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "row.h"

/* Headers of an IP packet, as far as they were captured. */
struct ip {
	uint8_t version, protocol; /* protocol: valid if whole */
	bool whole;                /* the headers were captured, up to the payload */
	bool has_id;
	uint32_t id;
	uint16_t fragment;     /* offset in units of 8 bytes, 0x8000: more follow */
	uint32_t length;       /* total, or of IPv6's payload */
	const uint8_t *p;      /* payload, behind extension headers */
	size_t captured, wire; /* its bytes: that are there, that there were */
};

#define FRAGMENT_OFFSET 0x1fffu
#define FRAGMENT_MORE   0x8000u

int64_t flow_identity(const struct ends *e);
/* false: there is none, as headers are cut off. */
bool packet_digest(const struct ends *e, const struct ip *ip, uint32_t *digest);

#endif
