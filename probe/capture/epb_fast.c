/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "epb.h"
#include "readable.h"

#define PREFETCH_AHEAD 6    /* packets */
#define OWN_AHEAD      8192 /* bytes; docs/performance.md */

/* 32 bytes: one register where there is AVX2, two where there is not. */
typedef uint32_t v8 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint8_t v16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Progress of a burst. The data area is mapped twice, so pointers run straight. */
struct cursor {
	struct rte_mbuf **pkts, **last; /* next packet, and behind the last one */
	uint8_t *at;                    /* next record */
	const uint8_t *end;             /* of the room */
	uint64_t bytes;
};

INLINE void copy_short(uint8_t *d, const uint8_t *s, uint32_t n)
{
	if (n >= 16) {
		*(v16 *)d = *(const v16 *)s;
		*(v16 *)(d + n - 16) = *(const v16 *)(s + n - 16);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		d[i] = s[i];
}

/* Copies exactly n bytes: reading past the mbuf could leave its page, writing past the record
 * would need more guard. The last store overlaps the one before it. */
INLINE void copy(uint8_t *d, const uint8_t *s, uint32_t n)
{
	uint32_t i = 0;

	if (rt_unlikely(n < 32)) {
		copy_short(d, s, n);
		return;
	}
	if (n > 64) {
		/* Stores that split a cache line cost more than loads that do. */
		*(v8 *)d = *(const v8 *)s;
		i = 32 - ((uintptr_t)d & 31);
	}
	for (; i + 32 <= n; i += 32)
		*(v8 *)(d + i) = *(const v8 *)(s + i);
	if (i < n)
		*(v8 *)(d + n - 32) = *(const v8 *)(s + n - 32);
}

/* To write a cache line costs a transfer from the reader's core, which has read it: request it
 * early. */
INLINE void own_ahead(const uint8_t *at, uint32_t len)
{
	__builtin_prefetch(at, 1, 3);
	__builtin_prefetch(at + RT_CACHE_LINE, 1, 3);
	for (uint32_t o = 2 * RT_CACHE_LINE; o < len; o += RT_CACHE_LINE)
		__builtin_prefetch(at + o, 1, 3);
}

/* The record at p has no options yet; an RSS hash goes with them. Returns its length. */
static __attribute__((noinline)) uint32_t finish_hash(
	uint8_t *p, uint32_t options_at, const struct rt_tap *tap, const struct rte_mbuf *m)
{
	uint32_t total = options_at + RT_TRAILER_HASH;
	uint8_t *t = p + options_at;

	((u32 *)p)[1] = total;
	memcpy(t, tap->trailer_hash, RT_TRAILER_HASH);
	*(u32 *)(t + RT_TRAILER_HASH_AT) = m->hash.rss;
	*(u32 *)(t + RT_TRAILER_HASH_LEN_AT) = total;
	return total;
}

/* Copies plain packets until one is not plain or does not fit. Values that cannot change within
 * a burst are in locals: the compiler must assume that stores into the ring alias everything
 * else. */
INLINE void push_plain(
	struct cursor *cursor, const struct rt_tap *tap, uint64_t ns, const uint32_t ahead)
{
	const uint64_t slow_flags = tap->slow_flags;
	const uint64_t odd_flags =
		slow_flags | (tap->direction == RT_DIR_RX ? RTE_MBUF_F_RX_RSS_HASH : 0);
	const uint32_t snaplen = tap->snaplen;
	struct rte_mbuf **pkts = cursor->pkts, **const last = cursor->last;
	const uint8_t *const end = cursor->end - (RT_TRAILER_HASH - RT_TRAILER);
	uint8_t *at = cursor->at;
	v8 head = {RT_EPB_TYPE, 0, tap->if_index, (uint32_t)(ns >> 32), (uint32_t)ns};
	v8 tail = *(const v8 *)tap->trailer;
	uint32_t last_len = UINT32_MAX, options_at = 0;
	uint64_t bytes = 0;

	for (; pkts != last; pkts++) {
		const struct rte_mbuf *m = *pkts;
		uint64_t flags = m->ol_flags;
		uint32_t len = m->data_len;

		if (pkts + PREFETCH_AHEAD < last)
			__builtin_prefetch(rte_pktmbuf_mtod(pkts[PREFETCH_AHEAD], void *));
		if (rt_unlikely(m->nb_segs != 1 || len != m->pkt_len || len > snaplen ||
				!rt_readable_own(m)))
			break;
		if (rt_unlikely(len != last_len)) {
			last_len = len;
			options_at = RT_EPB_HEADER + ((len + 3) & ~3u);
			head[1] = tail[RT_TRAILER_LEN_AT / 4] = options_at + RT_TRAILER;
			head[5] = head[6] = len;
		}
		if (rt_unlikely(at + options_at + RT_TRAILER > end))
			break;
		if (ahead)
			own_ahead(at + ahead, options_at + RT_TRAILER);
		if (rt_unlikely(flags & odd_flags) && (flags & slow_flags))
			break;
		*(v8 *)at = head;
		*(u32 *)(at + options_at - 4) =
			0; /* zero the padding first; the packet overwrites what is not padding */
		copy(at + RT_EPB_HEADER, rte_pktmbuf_mtod(m, const uint8_t *), len);
		bytes += len;
		if (rt_likely(!(flags & odd_flags))) {
			*(v8 *)(at + options_at) = tail;
			at += options_at + RT_TRAILER;
		} else {
			at += finish_hash(at, options_at, tap, m);
		}
	}
	cursor->pkts = pkts;
	cursor->at = at;
	cursor->bytes += bytes;
}

/* To request lines that the reader may still read would slow both. */
INLINE bool may_own_ahead(const struct rt_ring *r, const struct cursor *c)
{
	return r->own_ahead && c->end - c->at > 2 * OWN_AHEAD;
}

INLINE void push(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns)
{
	struct rt_seg_count *count = &r->counts[tap->index];
	struct cursor c = {.pkts = pkts, .last = pkts + n};

	for (; c.pkts != c.last; c.pkts++) {
		struct rte_mbuf **from = c.pkts;
		uint8_t *start = r->chunk + (r->head & r->mask);

		c.at = start;
		c.end = start + (r->limit > r->head ? r->limit - r->head : 0);
		if (rt_unlikely(r->pending[tap->index]))
			; /* the slow path records the gap */
		else if (rt_likely(may_own_ahead(r, &c)))
			push_plain(&c, tap, ns, OWN_AHEAD);
		else
			push_plain(&c, tap, ns, 0);
		rt_compiler_barrier(); /* the records are complete: see rt_epb_mend() */
		r->head += (uint64_t)(c.at - start);
		count->captured += (uint64_t)(c.pkts - from);
		if (rt_likely(c.pkts == c.last))
			break;
		if (!rt_epb_slow(r, tap, *c.pkts, ns)) {
			rt_epb_lost(r, tap, (unsigned)(c.last - c.pkts));
			break;
		}
	}
	count->bytes += c.bytes;
}

static void push_generic(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns)
{
	push(r, tap, pkts, n, ns);
}

rt_epb_push_fn rt_epb_push = push_generic;

#ifdef __x86_64__
/* tune=haswell: the generic tuning splits unaligned 32-byte accesses. */
__attribute__((target("avx2,prfchw,tune=haswell"))) static void push_avx2(struct rt_ring *r,
	const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	push(r, tap, pkts, n, ns);
}
#endif

void rt_epb_init(void)
{
#ifdef __x86_64__
	/* AVX-512 was measured and is no faster: docs/performance.md. */
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2"))
		rt_epb_push = push_avx2;
#endif
}
