/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "epb.h"

#define PREFETCH_AHEAD 6 /* packets */

typedef uint8_t v16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint8_t v32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Copies exactly n bytes: reading past the mbuf could leave its page, writing past the record
 * would need more guard. The last store overlaps the one before it. */
INLINE void copy(uint8_t *d, const uint8_t *s, uint32_t n, unsigned width)
{
	uint32_t i = 0;

	if (rt_unlikely(n < 16)) {
		for (; i < n; i++)
			d[i] = s[i];
		return;
	}
	if (width >= 32) {
		for (; i + 32 <= n; i += 32)
			*(v32 *)(d + i) = *(const v32 *)(s + i);
	}
	for (; i + 16 <= n; i += 16)
		*(v16 *)(d + i) = *(const v16 *)(s + i);
	if (i < n)
		*(v16 *)(d + n - 16) = *(const v16 *)(s + n - 16);
}

INLINE uint32_t write_record(uint8_t *p, const struct rt_tap *tap, const struct rte_mbuf *m,
	uint32_t len, uint32_t padded, uint64_t if_ts, uint32_t ts_low, unsigned width)
{
	const uint8_t *src = rte_pktmbuf_mtod(m, const uint8_t *);
	bool hash = m->ol_flags & RTE_MBUF_F_RX_RSS_HASH && tap->direction == RT_DIR_RX;
	uint32_t total = RT_EPB_HEADER + padded + (hash ? RT_TRAILER_HASH : RT_TRAILER);
	uint8_t *t = p + RT_EPB_HEADER + padded;

	*(u64 *)p = RT_EPB_TYPE | (uint64_t)total << 32;
	*(u64 *)(p + 8) = if_ts;
	*(u64 *)(p + 16) = ts_low | (uint64_t)len << 32;
	*(u32 *)(p + 24) = len;
	*(u32 *)(t - 4) = 0; /* the padding; the packet goes over what it has of it */
	copy(p + RT_EPB_HEADER, src, len, width);
	if (rt_likely(!hash)) {
		if (width >= 32) {
			*(v32 *)t = *(const v32 *)tap->trailer;
		} else {
			*(v16 *)t = *(const v16 *)tap->trailer;
			*(u64 *)(t + 16) = 0;
		}
		*(u32 *)(t + RT_TRAILER_LEN_AT) = total;
	} else {
		memcpy(t, tap->trailer_hash, RT_TRAILER_HASH);
		*(u32 *)(t + RT_TRAILER_HASH_AT) = m->hash.rss;
		*(u32 *)(t + RT_TRAILER_HASH_LEN_AT) = total;
	}
	return total;
}

INLINE bool is_plain(const struct rt_tap *tap, const struct rte_mbuf *m)
{
	return rt_likely(!(m->ol_flags & tap->slow_flags) && m->nb_segs == 1 &&
			 m->data_len == m->pkt_len && m->data_len <= tap->snaplen);
}

/* To write a line costs a trip to the core of the reader, which has read it: ask for it early,
 * once, and never for one that the reader may still be reading. */
INLINE uint64_t own_ahead(const struct rt_ring *r, uint64_t owned, uint64_t pos, uint64_t limit)
{
	uint64_t to = pos + r->own_ahead;

	if (to > limit)
		to = limit;
	for (; owned < to; owned += RT_CACHE_LINE)
		__builtin_prefetch(r->data + (owned & r->mask), 1, 3);
	return owned;
}

INLINE void push(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns, unsigned width)
{
	struct rt_seg_count *c = &r->counts[tap->index];
	uint64_t if_ts = tap->if_index | (ns & 0xffffffff00000000ull);
	uint64_t pos = r->head, limit = r->limit, owned = r->owned, bytes = 0, copied = 0;
	uint8_t *data = r->data;

	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];
		uint32_t len = m->data_len, padded = (len + 3) & ~3u;
		uint64_t need = RT_EPB_HEADER + padded + RT_TRAILER_HASH;

		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *));
		if (rt_unlikely(!is_plain(tap, m) || r->pending[tap->index])) {
			r->head = pos;
			if (!rt_epb_slow(r, tap, m, ns)) {
				rt_epb_lost(r, tap, n - i);
				break;
			}
			pos = r->head;
			limit = r->limit;
			continue;
		}
		if (rt_unlikely(pos + need > limit)) {
			r->head = pos;
			if (rt_epb_room(r, tap, need) != RT_ROOM_OK) {
				rt_epb_lost(r, tap, n - i);
				break;
			}
			limit = r->limit;
		}
		if (r->own_ahead)
			owned = own_ahead(r, owned, pos, limit);
		pos += write_record(
			data + (pos & r->mask), tap, m, len, padded, if_ts, (uint32_t)ns, width);
		bytes += len;
		copied++;
	}
	r->head = pos;
	r->owned = owned;
	c->captured += copied;
	c->bytes += bytes;
}

static void push_generic(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns)
{
	push(r, tap, pkts, n, ns, 16);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void push_avx2(struct rt_ring *r, const struct rt_tap *tap,
	struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	push(r, tap, pkts, n, ns, 32);
}
#endif

rt_epb_push_fn rt_epb_push = push_generic;

void rt_epb_init(void)
{
#ifdef __x86_64__
	__builtin_cpu_init();
	/* AVX-512 was measured and is no faster: docs/performance.md. */
	if (__builtin_cpu_supports("avx2"))
		rt_epb_push = push_avx2;
#endif
}
