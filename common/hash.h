/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash of numbers, with a secret per run: the keys come from the network, and an attacker could
 * choose such that meet in one slot of a table. */
#ifndef RINGTAP_COMMON_HASH_H
#define RINGTAP_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

struct secret {
	uint64_t word[2];
};

/* Without random numbers the tables work, without that protection. */
static inline void secret_make(struct secret *s)
{
	*s = (struct secret){{UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd1b54a32d192ed03)}};
	(void)!getrandom(s->word, sizeof(s->word), GRND_NONBLOCK);
	s->word[0] |= 1;
	s->word[1] |= 1;
}

/* Both halves of the product: each bit of it depends on each bit of a and of b. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_number(const struct secret *s, uint64_t a, uint64_t b)
{
	return hash_mix(a ^ s->word[0], b ^ s->word[1]);
}

/* len counts words of 8 bytes. */
static inline uint64_t hash_words(const struct secret *s, const void *data, size_t words)
{
	uint64_t h = words; /* not word[1]: a factor of 0 would make all first words equal */

	for (size_t i = 0; i < words; i++) {
		uint64_t v;

		memcpy(&v, (const uint8_t *)data + 8 * i, sizeof(v));
		h = hash_mix(v ^ s->word[0], h ^ s->word[1]);
	}
	return h;
}

/* Never 0, which stands for an empty slot. */
static inline uint32_t hash_short(uint64_t h)
{
	uint32_t v = (uint32_t)(h ^ h >> 32);

	return v ? v : 1;
}

#endif
