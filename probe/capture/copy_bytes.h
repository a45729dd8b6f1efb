/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of a packet's bytes in hooks: exactly n of them, without a call. Reading past the mbuf
 * could leave its page, writing past the record would need more guard.
 */
#ifndef RINGTAP_PROBE_CAPTURE_COPY_BYTES_H
#define RINGTAP_PROBE_CAPTURE_COPY_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/atomics.h"

/* 32 bytes: one register where there is AVX2, two where there is not. */
typedef uint32_t rt_v8 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint8_t rt_v16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t rt_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t rt_u64 __attribute__((aligned(1), may_alias));

#define RT_INLINE static inline __attribute__((always_inline))

/* n < 32. */
RT_INLINE void rt_copy_short(uint8_t *d, const uint8_t *s, uint32_t n)
{
	if (n >= 16) {
		*(rt_v16 *)d = *(const rt_v16 *)s;
		*(rt_v16 *)(d + n - 16) = *(const rt_v16 *)(s + n - 16);
	} else if (n >= 8) {
		*(rt_u64 *)d = *(const rt_u64 *)s;
		*(rt_u64 *)(d + n - 8) = *(const rt_u64 *)(s + n - 8);
	} else if (n >= 4) {
		*(rt_u32 *)d = *(const rt_u32 *)s;
		*(rt_u32 *)(d + n - 4) = *(const rt_u32 *)(s + n - 4);
	} else {
		for (uint32_t i = 0; i < n; i++)
			d[i] = s[i];
	}
}

/* wide: there are registers of 32 bytes. GCC moves an rt_v8 over the stack where there are none. */
RT_INLINE void rt_copy32(uint8_t *d, const uint8_t *s, const bool wide)
{
	if (wide)
		*(rt_v8 *)d = *(const rt_v8 *)s;
	else
		memcpy(d, s, 32);
}

/* The last stores overlap those before them. */
RT_INLINE void rt_copy(uint8_t *d, const uint8_t *s, uint32_t n, const bool wide)
{
	if (rt_unlikely(n < 32)) {
		rt_copy_short(d, s, n);
		return;
	}
	rt_copy32(d, s, wide);
	if (n > 128) {
		/* Stores that split a cache line cost more than loads that do. */
		for (uint32_t i = 32 - ((uintptr_t)d & 31); i + 64 <= n; i += 64) {
			rt_copy32(d + i, s + i, wide);
			rt_copy32(d + i + 32, s + i + 32, wide);
		}
	} else if (n > 64) {
		rt_copy32(d + 32, s + 32, wide);
	}
	if (n > 64)
		rt_copy32(d + n - 64, s + n - 64, wide);
	rt_copy32(d + n - 32, s + n - 32, wide);
}

#endif
