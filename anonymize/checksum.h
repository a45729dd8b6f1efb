/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums of packets whose bytes change. */
#ifndef RINGTAP_ANONYMIZE_CHECKSUM_H
#define RINGTAP_ANONYMIZE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that a checksum covers, before and after. */
struct summed {
	const uint8_t *in;
	uint8_t *out;
	size_t at;       /* offset of the checksum */
	size_t captured; /* bytes that are there */
	bool whole;      /* and these are all */
	/* Addresses of the pseudo header; address_bytes is 0 without one. */
	const uint8_t *in_src, *in_dst, *out_src, *out_dst;
	size_t address_bytes;
	uint32_t length; /* in the pseudo header, as protocol */
	uint8_t protocol;
};

/* Writes the checksum of out. Bytes that are missing are zeros there. One that was wrong stays
 * wrong, by a difference that does not depend on in; 0 stays 0, where it was wrong or is optional:
 * none was computed. */
void checksum_put(const struct summed *s, bool optional);
/* The same for a CRC32c of SCTP (RFC 9260). all: covered bytes, also those that are missing. */
void crc32c_put(const struct summed *s, size_t all);

/* Whether a header with its own checksum is right. */
bool checksum_right(const uint8_t *p, size_t len);

#endif
