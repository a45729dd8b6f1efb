/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What readers of pcapng files (IETF draft-ietf-opsawg-pcapng) share: numbers in the file's byte
 * order, options, time stamps. Inline, as it runs for each packet. Files come from outside: lengths
 * are checked here.
 */
#ifndef RINGTAP_COMMON_PCAPNG_READ_H
#define RINGTAP_COMMON_PCAPNG_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Blocks and the magic number that common/pcapng.h does not write. */
#define RT_PCAPNG_OBSOLETE_PACKET 2u
#define RT_PCAPNG_SIMPLE_PACKET   3u
#define RT_PCAPNG_EPB             6u
#define RT_PCAPNG_MAGIC_OTHER     0x4d3c2b1au
#define RT_PCAPNG_BLOCK_MAX       (16u << 20) /* bytes; Wireshark's limit is the same */
#define RT_PCAPNG_EPB_FIXED       20u         /* between the length and the packet */

static inline uint16_t rt_pcapng_get16(const uint8_t *p, bool swapped)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t rt_pcapng_get32(const uint8_t *p, bool swapped)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap32(v) : v;
}

static inline uint64_t rt_pcapng_get64(const uint8_t *p, bool swapped)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap64(v) : v;
}

/* Options, from p to end. */
struct rt_pcapng_options {
	const uint8_t *p, *end;
	uint16_t code, len;
	const uint8_t *value;
};

/* The next option; false at the end. What runs over the block ends the options. */
static inline bool rt_pcapng_option_next(struct rt_pcapng_options *o, bool swapped)
{
	uint32_t padded;

	if (o->end - o->p < 4)
		return false;
	o->code = rt_pcapng_get16(o->p, swapped);
	o->len = rt_pcapng_get16(o->p + 2, swapped);
	o->value = o->p + 4;
	padded = (o->len + 3u) & ~3u;
	if (!o->code || padded > (size_t)(o->end - o->value))
		return false;
	o->p = o->value + padded;
	return true;
}

/* Nanoseconds of a time stamp. resolution: if_tsresol, a power of 10, or of 2 where the highest bit
 * is set. Times beyond 2^64 ns wrap around. */
static inline uint64_t rt_pcapng_ns(uint64_t t, uint8_t resolution)
{
	unsigned power = resolution & 127;

	if (resolution & 128)
		return power < 64 ? (uint64_t)(((unsigned __int128)t * 1000000000u) >> power) : 0;
	for (; power < 9; power++)
		t *= 10;
	for (; power > 9 && t; power--)
		t /= 10;
	return t;
}

#endif
