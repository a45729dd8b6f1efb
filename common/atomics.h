/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only spelling of atomic accesses in ringtap. Every release names the acquire that it pairs
 * with, at the place of use.
 */
#ifndef RINGTAP_COMMON_ATOMICS_H
#define RINGTAP_COMMON_ATOMICS_H

#define RT_CACHE_LINE 64

#define rt_load(p)             __atomic_load_n((p), __ATOMIC_RELAXED)
#define rt_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define rt_store(p, v)         __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define rt_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* Read-modify-write: never in a per-packet path. */
#define rt_fetch_add(p, v)         __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define rt_fetch_add_release(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define rt_fetch_or(p, v)          __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define rt_cas(p, expected, v) \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Stores before it stay before stores after it, loads before loads; plain ones too. ThreadSanitizer
 * knows no fences. */
#ifdef __SANITIZE_THREAD__
#define rt_fence_release() rt_compiler_barrier()
#define rt_fence_acquire() rt_compiler_barrier()
#else
#define rt_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define rt_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Orders the compiler only; the other side pays for the CPU's order, see probe/hook/thread.h. */
#define rt_compiler_barrier() __asm__ __volatile__("" ::: "memory")

#define rt_likely(x)   __builtin_expect(!!(x), 1)
#define rt_unlikely(x) __builtin_expect(!!(x), 0)

static inline void rt_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

#endif
