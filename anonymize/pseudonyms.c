/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/aes.h>

#include "common/layers.h"
#include "pseudonyms.h"

#define BLOCK AES_BLOCK_SIZE

/* Addresses found last; a slot is that of a hash. Zeros are their own pseudonym, so that an empty
 * slot is a good one. */
#define SLOTS_IPV4 32768u
#define SLOTS_IPV6 8192u
#define SLOTS_MAC  16384u

struct slot_ipv4 {
	uint32_t in, out;
};

struct slot_ipv6 {
	uint8_t in[16], out[16];
};

struct slot_mac {
	uint8_t in[6], out[6];
};

struct pseudonyms {
	struct aes128_ctx address, mac;
	uint8_t pad[BLOCK];
	struct slot_ipv4 ipv4[SLOTS_IPV4];
	struct slot_ipv6 ipv6[SLOTS_IPV6];
	struct slot_mac macs[SLOTS_MAC];
};

struct pseudonyms *pseudonyms_new(const uint8_t key[PSEUDONYM_KEY])
{
	static const uint8_t label[BLOCK] = "ringtap mac 1";
	struct pseudonyms *p = calloc(1, sizeof(*p));
	uint8_t derived[BLOCK];

	if (!p)
		return NULL;
	aes128_set_encrypt_key(&p->address, key);
	aes128_encrypt(&p->address, BLOCK, p->pad, key + BLOCK);
	/* Under the pad: no input of CryptoPAn is known to be the same block. */
	memcpy(derived, label, BLOCK);
	for (unsigned i = 0; i < BLOCK; i++)
		derived[i] ^= key[BLOCK + i];
	aes128_encrypt(&p->address, BLOCK, derived, derived);
	aes128_set_encrypt_key(&p->mac, derived);
	explicit_bzero(derived, sizeof(derived));
	return p;
}

void pseudonyms_free(struct pseudonyms *p)
{
	if (p)
		explicit_bzero(p, sizeof(*p));
	free(p);
}

/* ---- IP ---- */

static void set_bit(uint8_t *p, unsigned i, unsigned bit)
{
	const uint8_t mask = (uint8_t)(0x80u >> i % 8);

	p[i / 8] = (uint8_t)((p[i / 8] & ~mask) | (bit ? mask : 0));
}

static unsigned bit_of(const uint8_t *p, unsigned i)
{
	return p[i / 8] >> (7 - i % 8) & 1u;
}

void cryptopan(
	const struct pseudonyms *p, const uint8_t *in, unsigned bits, unsigned kept, uint8_t *out)
{
	uint8_t blocks[128][BLOCK], next[BLOCK], flipped[16];
	const unsigned n = kept < bits ? bits - kept : 0;

	memcpy(next, p->pad, BLOCK);
	for (unsigned i = 0; i < kept && i < bits; i++)
		set_bit(next, i, bit_of(in, i));
	for (unsigned i = 0; i < n; i++) {
		memcpy(blocks[i], next, BLOCK);
		set_bit(next, kept + i, bit_of(in, kept + i));
	}
	aes128_encrypt(&p->address, n * BLOCK, blocks[0], blocks[0]);
	memcpy(flipped, in, bits / 8);
	for (unsigned i = 0; i < n; i++)
		set_bit(flipped, kept + i, bit_of(in, kept + i) ^ blocks[i][0] >> 7);
	memcpy(out, flipped, bits / 8);
}

/*
 * Addresses that begin with the first len bits of prefix: kept bits of them stay. To tell them from
 * others, an address stays the same up to and including its first bit that differs from such a
 * prefix: the mapping preserves prefixes all the same.
 */
struct special {
	uint8_t prefix[16];
	uint8_t len, kept;
};

static const struct special specials_ipv4[] = {
	{{0}, 32, 32},                  /* none */
	{{127}, 8, 32},                 /* loopback */
	{{169, 254}, 16, 16},           /* link-local */
	{{224}, 3, 3},                  /* multicast, reserved */
	{{224}, 24, 32},                /* groups of protocols (RFC 5771) */
	{{255, 255, 255, 255}, 32, 32}, /* broadcast */
};

/* Multicast addresses count with any flags and scope. */
static const struct special specials_ipv6[] = {
	{{0}, 127, 128},          /* none, loopback */
	{{0xfe, 0x80}, 64, 64},   /* link-local */
	{{0xff, 0x02}, 16, 16},   /* multicast */
	{{0xff, 0x02}, 111, 128}, /* groups of protocols (RFC 4291) */
	{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}, 104,
		104}, /* groups of a solicited node */
};

static unsigned common_bits(const uint8_t *a, const uint8_t *b, unsigned max)
{
	unsigned n = 0;

	while (n + 8 <= max && a[n / 8] == b[n / 8])
		n += 8;
	while (n < max && bit_of(a, n) == bit_of(b, n))
		n++;
	return n;
}

static unsigned kept_bits(const struct special *s, size_t count, const uint8_t *in)
{
	unsigned kept = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned same = common_bits(in, s[i].prefix, s[i].len);

		same = same == s[i].len ? s[i].kept : same + 1;
		kept = same > kept ? same : kept;
	}
	return kept;
}

#define KEPT_BITS(list, in) kept_bits(list, sizeof(list) / sizeof((list)[0]), in)

static uint32_t hash(const uint8_t *in, size_t len)
{
	uint64_t h = 0;

	for (size_t i = 0; i < len; i += 2) {
		uint16_t v;

		memcpy(&v, in + i, sizeof(v));
		h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return (uint32_t)(h >> 40);
}

void pseudonym_ipv4(struct pseudonyms *p, const uint8_t in[4], uint8_t out[4])
{
	struct slot_ipv4 *s = &p->ipv4[hash(in, 4) % SLOTS_IPV4];

	if (memcmp(&s->in, in, 4)) {
		memcpy(&s->in, in, 4);
		cryptopan(p, in, 32, KEPT_BITS(specials_ipv4, in), (uint8_t *)&s->out);
	}
	memcpy(out, &s->out, 4);
}

void pseudonym_ipv6(struct pseudonyms *p, const uint8_t in[16], uint8_t out[16])
{
	struct slot_ipv6 *s = &p->ipv6[hash(in, 16) % SLOTS_IPV6];

	if (memcmp(s->in, in, 16)) {
		uint8_t plain[16];

		memcpy(plain, in, 16);
		if (in[0] == 0xff)
			plain[1] = 0x02;
		memcpy(s->in, in, 16);
		cryptopan(p, in, 128, KEPT_BITS(specials_ipv6, plain), s->out);
	}
	memcpy(out, s->out, 16);
}

/* ---- MAC ---- */

#define ROUNDS 10u /* rounds of a Feistel network, as FF1's (NIST SP 800-38G) */

/* A permutation of numbers of that many bits; kind: another one for each. */
static uint64_t permute(const struct pseudonyms *p, uint8_t kind, uint64_t v, unsigned bits)
{
	const unsigned high = bits / 2, low = bits - high;
	uint64_t a = v >> low, b = v & ((UINT64_C(1) << low) - 1);

	for (unsigned i = 0; i < ROUNDS; i++) {
		const uint64_t mask = (UINT64_C(1) << (i % 2 ? low : high)) - 1;
		uint8_t block[BLOCK] = {kind, (uint8_t)bits, (uint8_t)i};
		uint64_t f, c;

		memcpy(block + 8, &b, sizeof(b));
		aes128_encrypt(&p->mac, BLOCK, block, block);
		memcpy(&f, block, sizeof(f));
		c = (a ^ f) & mask;
		a = b;
		b = c;
	}
	return a << low | b;
}

/* A permutation of numbers from min to less than end. */
static uint64_t permute_within(const struct pseudonyms *p, uint8_t kind, uint64_t v, unsigned bits,
	uint64_t min, uint64_t end)
{
	do
		v = permute(p, kind, v, bits);
	while (v < min || v >= end);
	return v;
}

static void put_low(uint8_t out[6], uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		out[5 - i] = (uint8_t)(v >> 8 * i);
}

/* Groups that standards assign: they name protocols, not hosts. */
static bool is_protocol_group(const uint8_t m[6])
{
	static const uint8_t bridge[5] = {0x01, 0x80, 0xc2, 0, 0};
	static const uint8_t cisco[5] = {0x01, 0x00, 0x0c, 0xcc, 0xcc};
	static const uint8_t ptp[6] = {0x01, 0x1b, 0x19}, ipv4[5] = {0x01, 0x00, 0x5e};
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	return !memcmp(m, bridge, 5) || !memcmp(m, cisco, 5) || !memcmp(m, ptp, 6) ||
	       !memcmp(m, ipv4, 5) || !memcmp(m, broadcast, 6) ||
	       (m[0] == 0x33 && m[1] == 0x33 && be32(m + 2) < 0x20000);
}

enum { KIND_UNICAST, KIND_GROUP_IPV4 = 16, KIND_GROUP_IPV6 };

/* Groups of IP by their low bits; that of a solicited node as its address. */
static void map_mac(struct pseudonyms *p, const uint8_t in[6], uint8_t out[6])
{
	static const uint8_t ipv4[3] = {0x01, 0x00, 0x5e}, node[3] = {0x33, 0x33, 0xff};
	uint8_t address[16] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
	uint64_t v;

	memcpy(out, in, 6);
	if (is_protocol_group(in))
		return;
	if (!memcmp(in, ipv4, 3) && in[3] < 0x80) {
		v = permute_within(p, KIND_GROUP_IPV4, be32(in + 2) & 0x7fffff, 23, 256, 1u << 23);
		put_low(out, v, 3);
	} else if (!memcmp(in, node, 3)) {
		memcpy(address + 13, in + 3, 3);
		pseudonym_ipv6(p, address, address);
		memcpy(out + 3, address + 13, 3);
	} else if (in[0] == 0x33 && in[1] == 0x33) {
		v = permute_within(p, KIND_GROUP_IPV6, be32(in + 2), 32, 0x20000, 0xff000000);
		put_low(out, v, 4);
	} else if (be32(in) || be16(in + 4)) {
		v = (uint64_t)(in[0] >> 2) << 40 | (uint64_t)in[1] << 32 | be32(in + 2);
		v = permute_within(p, KIND_UNICAST + (in[0] & 3), v, 46, 1, UINT64_MAX);
		put_low(out, v, 5);
		out[0] = (uint8_t)((v >> 40) << 2 | (in[0] & 3));
	}
}

void pseudonym_mac(struct pseudonyms *p, const uint8_t in[6], uint8_t out[6])
{
	struct slot_mac *s = &p->macs[hash(in, 6) % SLOTS_MAC];

	if (memcmp(s->in, in, 6)) {
		memcpy(s->in, in, 6);
		map_mac(p, s->in, s->out);
	}
	memcpy(out, s->out, 6);
}
