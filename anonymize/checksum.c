/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <string.h>

#include "checksum.h"

static uint64_t add(uint64_t sum, const uint8_t *p, size_t len)
{
	uint16_t last = 0;
	uint32_t word;

	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, 4);
		sum += word;
	}
	if (len >= 2) {
		uint16_t half;

		memcpy(&half, p, 2);
		sum += half;
		p += 2;
		len -= 2;
	}
	memcpy(&last, p, len);
	return sum + last;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

bool checksum_right(const uint8_t *p, size_t len)
{
	return fold(add(0, p, len)) == 0xffff;
}

/* RFC 768, RFC 8200 section 8.1: the addresses, the length, and the protocol. */
static uint64_t pseudo(const struct summed *s, const uint8_t *src, const uint8_t *dst)
{
	if (!s->address_bytes)
		return 0;
	return add(0, src, s->address_bytes) + add(0, dst, s->address_bytes) + htobe32(s->length) +
	       htobe32(s->protocol);
}

static bool is_wrong(const struct summed *s)
{
	return s->whole &&
	       fold(pseudo(s, s->in_src, s->in_dst) + add(0, s->in, s->captured)) != 0xffff;
}

void checksum_put(const struct summed *s, bool optional)
{
	uint16_t sum = 0;
	bool wrong;

	if (s->captured < s->at + 2)
		return;
	wrong = is_wrong(s);
	memcpy(s->out + s->at, &sum, 2);
	if ((optional || wrong) && !s->in[s->at] && !s->in[s->at + 1])
		return;
	sum = (uint16_t)~fold(pseudo(s, s->out_src, s->out_dst) + add(0, s->out, s->captured));
	if (wrong) {
		sum ^= 0x5555;
		sum = sum ? sum : 0xaaaa;
	}
	sum = optional && !sum ? 0xffff : sum;
	memcpy(s->out + s->at, &sum, 2);
}

/* ---- SCTP ---- */

static uint32_t crc_add(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--) {
		crc ^= p ? *p++ : 0;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}

/* The CRC of p with zeros instead of its checksum. */
static uint32_t crc_of(const struct summed *s, const uint8_t *p, size_t all)
{
	uint32_t crc = crc_add(UINT32_MAX, p, s->at);

	crc = crc_add(crc, NULL, 4);
	crc = crc_add(crc, p + s->at + 4, s->captured - s->at - 4);
	return htole32(~crc_add(crc, NULL, all - s->captured));
}

void crc32c_put(const struct summed *s, size_t all)
{
	uint32_t was, crc;

	if (s->captured < s->at + 4 || all < s->captured)
		return;
	if (all > UINT16_MAX) /* no packet of IP: its length would cost seconds */
		return;
	memcpy(&was, s->in + s->at, 4);
	crc = crc_of(s, s->out, all);
	if (s->whole && was != crc_of(s, s->in, all))
		crc ^= 0x55555555;
	memcpy(s->out + s->at, &crc, 4);
}
