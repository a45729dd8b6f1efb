/* SPDX-License-Identifier: BSD-3-Clause */
/* The producers of the copy loop: one loop for each flavour of storing. */
#include "copy_loop.h"

#include <cpuid.h>

#include "copy_store.h"
#include "common/atomics.h"

/* Room for a burst of the largest blocks. Pairs with the release of tail in consume(). */
static inline bool room(struct copy_producer *p, uint64_t head, uint64_t *tail)
{
	uint64_t need = head + COPY_BURST * p->max_block + COPY_GUARD;
	if (rt_likely(need - *tail <= p->ring_size))
		return true;
	*tail = rt_load_acquire(&p->shared->tail);
	return need - *tail <= p->ring_size;
}

/* Takes lines for writing before they are needed, but none that the consumer has not released:
 * it would have to fetch them back. */
static inline const uint8_t *prefetch_lines(
	const uint8_t *fetched, const uint8_t *until, const uint8_t *limit)
{
	until = until < limit ? until : limit;
	for (; fetched < until; fetched += 64)
		__builtin_prefetch(fetched, 1, 3);
	return fetched;
}

static inline void demote_lines(const uint8_t *from, const uint8_t *to)
{
	from = (const uint8_t *)((uintptr_t)from & ~(uintptr_t)63);
	for (; from + 64 <= to; from += 64)
		__asm__ __volatile__("cldemote %0" ::"m"(*from));
}

static inline struct block_meta burst_meta(void)
{
	uint64_t tsc = __rdtsc();
	return (struct block_meta){.ts_high = (uint32_t)(tsc >> 32), .ts_low = (uint32_t)tsc};
}

/* A macro and not a function: the loop must be compiled for the flavour's instruction set. */
#define COPY_PRODUCER(name, target, writer, begin, put, end, position)                        \
	target static void produce_##name(struct copy_producer *p)                            \
	{                                                                                     \
		const uint64_t mask = p->ring_size - 1;                                       \
		const uint32_t ahead = p->prefetch;                                           \
		const uint64_t limit_packets =                                                \
			p->bursts != 0 ? p->bursts * COPY_BURST : UINT64_MAX;                 \
		uint64_t head = 0, tail = 0, packets = 0, done = 0;                           \
		uint32_t next = 0;                                                            \
		while (!rt_load(&p->shared->stop) && packets < limit_packets) {               \
			if (!room(p, head, &tail)) {                                          \
				p->stalls++;                                                  \
				rt_pause();                                                   \
				continue;                                                     \
			}                                                                     \
			struct block_meta meta = burst_meta();                                \
			uint8_t *start = p->ring + (head & mask);                             \
			const uint8_t *limit = start + (tail + p->ring_size - head);          \
			const uint8_t *fetched = start + done;                                \
			struct writer w;                                                      \
			begin(&w, start);                                                     \
			for (uint32_t i = 0; i < COPY_BURST; i++) {                           \
				const struct fake_mbuf *m = p->mbufs[next + i];               \
				if (ahead != 0)                                               \
					fetched = prefetch_lines(                             \
						fetched, (position) + ahead, limit);          \
				put(&w, &meta, m->buf_addr + m->data_off, m->data_len);       \
			}                                                                     \
			end(&w);                                                              \
			uint64_t len = (uint64_t)((position)-start);                          \
			done = fetched > start + len ? (uint64_t)(fetched - start) - len : 0; \
			head += len;                                                          \
			packets += COPY_BURST;                                                \
			next = next + COPY_BURST == p->mbuf_count ? 0 : next + COPY_BURST;    \
			/* Pairs with the acquire of head in consume(). */                    \
			rt_store_release(&p->shared->head, head);                             \
			if (p->demote)                                                        \
				demote_lines(start, start + len);                             \
		}                                                                             \
		p->packets = packets;                                                         \
		p->bytes = head;                                                              \
	}

#define PLAIN(name, target) \
	COPY_PRODUCER(name, target, plain_writer, plain_begin, name##_put, plain_end, w.dst)
#define LINES(name)                                                                       \
	COPY_PRODUCER(name, TARGET_AVX512, line_writer, line_begin, name##_put, line_end, \
		w.line + w.phase * 4)

PLAIN(memcpy, TARGET_SSE2)
PLAIN(sse2, TARGET_SSE2)
PLAIN(avx2, TARGET_AVX2)
PLAIN(avx512, TARGET_AVX512)
PLAIN(merge512, TARGET_AVX512)
LINES(line)
LINES(stream)
LINES(direct)

static bool always(void)
{
	return true;
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl");
}

static bool has_movdir64b(void)
{
	unsigned a, b, c, d;
	return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 28) != 0;
}

const struct copy_flavour copy_flavours[] = {
	{"memcpy", produce_memcpy, always},
	{"sse2", produce_sse2, always},
	{"avx2", produce_avx2, has_avx2},
	{"avx512", produce_avx512, has_avx512},
	{"merge512", produce_merge512, has_avx512},
	{"line", produce_line, has_avx512},
	{"stream", produce_stream, has_avx512},
	{"direct", produce_direct, has_movdir64b},
};
const unsigned copy_flavour_count = sizeof(copy_flavours) / sizeof(copy_flavours[0]);
