/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of thread slots: a bit each. */
#ifndef RINGTAP_PROBE_HOOK_THREAD_SET_H
#define RINGTAP_PROBE_HOOK_THREAD_SET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/atomics.h"

#define RT_MAX_THREADS      256
#define RT_THREAD_SET_WORDS (RT_MAX_THREADS / 64)

struct rt_thread_set {
	uint64_t word[RT_THREAD_SET_WORDS];
};

static inline uint64_t rt_thread_bit(uint32_t slot)
{
	return 1ull << slot % 64;
}

static inline bool rt_thread_set_has(const struct rt_thread_set *s, uint32_t slot)
{
	return rt_load(&s->word[slot / 64]) & rt_thread_bit(slot);
}

/* Any thread. */
static inline void rt_thread_set_add(struct rt_thread_set *s, uint32_t slot)
{
	rt_fetch_or(&s->word[slot / 64], rt_thread_bit(slot));
}

static inline void rt_thread_set_clear(struct rt_thread_set *s)
{
	for (unsigned i = 0; i < RT_THREAD_SET_WORDS; i++)
		rt_store(&s->word[i], 0);
}

/* Adds the members of from, to which other threads may be adding. */
static inline void rt_thread_set_merge(struct rt_thread_set *s, const struct rt_thread_set *from)
{
	for (unsigned i = 0; i < RT_THREAD_SET_WORDS; i++)
		s->word[i] |= rt_load(&from->word[i]);
}

/* The first member from this one on; RT_MAX_THREADS: none. */
static inline uint32_t rt_thread_set_next(const struct rt_thread_set *s, uint32_t from)
{
	for (uint32_t w = from / 64; w < RT_THREAD_SET_WORDS; w++, from = w * 64) {
		uint64_t bits = rt_load(&s->word[w]) & (UINT64_MAX << from % 64);

		if (bits)
			return w * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return RT_MAX_THREADS;
}

static inline uint32_t rt_thread_set_count(const struct rt_thread_set *s)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < RT_THREAD_SET_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(rt_load(&s->word[i]));
	return n;
}

#endif
