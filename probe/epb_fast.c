/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "epb.h"

#define PREFETCH_AHEAD 6 /* packets */

/* 32 bytes: one register where there is AVX2, two where there is not. */
typedef uint32_t v8 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint8_t v16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Where in the burst and in the ring. The data area is mapped twice, so pointers run straight. */
struct cursor {
	uint8_t *at;    /* next record */
	uint8_t *end;   /* of the room */
	uint8_t *owned; /* lines before it have been asked for */
	uint64_t bytes;
	unsigned i, n; /* packets */
};

/* Copies exactly n bytes: reading past the mbuf could leave its page, writing past the record
 * would need more guard. The last store overlaps the one before it. */
INLINE void copy(uint8_t *d, const uint8_t *s, uint32_t n)
{
	uint32_t i = 0;

	if (rt_unlikely(n < 16)) {
		for (; i < n; i++)
			d[i] = s[i];
		return;
	}
	for (; i + 32 <= n; i += 32)
		*(v8 *)(d + i) = *(const v8 *)(s + i);
	if (i + 16 <= n) {
		*(v16 *)(d + i) = *(const v16 *)(s + i);
		i += 16;
	}
	if (i < n)
		*(v16 *)(d + n - 16) = *(const v16 *)(s + n - 16);
}

/* To write a line costs a trip to the core of the reader, which has read it: ask for it early,
 * once, and never for one that the reader may still be reading. */
INLINE void own_ahead(struct cursor *c, uint32_t ahead)
{
	uint8_t *to = c->at + ahead;

	if (to > c->end)
		to = c->end;
	for (; c->owned < to; c->owned += RT_CACHE_LINE)
		__builtin_prefetch(c->owned, 1, 3);
}

/* Copies plain packets until one is not plain or does not fit. What may change only between bursts
 * is taken into locals: the stores into the ring could alias anything. */
INLINE void push_plain(struct cursor *cursor, const struct rt_tap *tap, struct rte_mbuf **pkts,
	uint64_t ns, uint32_t ahead)
{
	const uint64_t slow_flags = tap->slow_flags;
	const uint64_t hash_flag = tap->direction == RT_DIR_RX ? RTE_MBUF_F_RX_RSS_HASH : 0;
	const uint32_t snaplen = tap->snaplen;
	struct cursor c = *cursor;
	v8 head = {RT_EPB_TYPE, 0, tap->if_index, (uint32_t)(ns >> 32), (uint32_t)ns};
	v8 tail = *(const v8 *)tap->trailer;
	uint32_t last_len = UINT32_MAX, padded = 0, total = 0;

	for (; c.i < c.n; c.i++) {
		const struct rte_mbuf *m = pkts[c.i];
		uint64_t flags = m->ol_flags;
		uint32_t len = m->data_len;
		uint8_t *t;

		if (c.i + PREFETCH_AHEAD < c.n)
			__builtin_prefetch(rte_pktmbuf_mtod(pkts[c.i + PREFETCH_AHEAD], void *));
		if (rt_unlikely((flags & slow_flags) || m->nb_segs != 1 || len != m->pkt_len ||
				len > snaplen))
			break;
		if (rt_unlikely(len != last_len)) {
			last_len = len;
			padded = (len + 3) & ~3u;
			total = RT_EPB_HEADER + padded + RT_TRAILER;
			head[1] = total;
			head[5] = head[6] = len;
			tail[RT_TRAILER_LEN_AT / 4] = total;
		}
		if (rt_unlikely(c.at + total + (RT_TRAILER_HASH - RT_TRAILER) > c.end))
			break;
		if (ahead)
			own_ahead(&c, ahead);
		t = c.at + RT_EPB_HEADER + padded;
		*(v8 *)c.at = head;
		*(u32 *)(t - 4) = 0; /* the padding; the packet goes over what it has of it */
		copy(c.at + RT_EPB_HEADER, rte_pktmbuf_mtod(m, const uint8_t *), len);
		if (rt_likely(!(flags & hash_flag))) {
			*(v8 *)t = tail;
			c.at += total;
		} else {
			uint32_t longer = total + RT_TRAILER_HASH - RT_TRAILER;

			((u32 *)c.at)[1] = longer;
			memcpy(t, tap->trailer_hash, RT_TRAILER_HASH);
			*(u32 *)(t + RT_TRAILER_HASH_AT) = m->hash.rss;
			*(u32 *)(t + RT_TRAILER_HASH_LEN_AT) = longer;
			c.at += longer;
		}
		c.bytes += len;
	}
	*cursor = c;
}

INLINE void set_cursor(struct cursor *c, const struct rt_ring *r)
{
	uint64_t room = r->limit > r->head ? r->limit - r->head : 0;

	c->at = r->data + (r->head & r->mask);
	c->end = c->at + room;
	c->owned = r->owned > r->head ? c->at + (r->owned - r->head) : c->at;
}

/* The packet at the cursor is unusual or does not fit. False: the ring is full. */
static __attribute__((noinline)) bool push_one(
	struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m, uint64_t ns)
{
	return rt_epb_slow(r, tap, m, ns);
}

INLINE void push(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns)
{
	struct rt_seg_count *count = &r->counts[tap->index];
	struct cursor c = {.n = n};

	while (c.i < n) {
		unsigned from = c.i;
		uint8_t *start;

		set_cursor(&c, r);
		start = c.at;
		if (rt_likely(!r->pending[tap->index]))
			push_plain(&c, tap, pkts, ns, r->own_ahead);
		r->owned = r->head + (uint64_t)(c.owned - start);
		r->head += (uint64_t)(c.at - start);
		count->captured += c.i - from;
		if (rt_likely(c.i == n))
			break;
		if (!push_one(r, tap, pkts[c.i], ns)) {
			rt_epb_lost(r, tap, n - c.i);
			break;
		}
		c.i++;
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
/* tune: the generic one splits unaligned 32-byte accesses. */
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
