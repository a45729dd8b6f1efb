/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_ether.h>

#include "probe/capture/copy_bytes.h"
#include "probe/capture/epb.h"
#include "probe/capture/ids.h"
#include "probe/capture/readable.h"

#define PREFETCH_AHEAD 6 /* packets */
/* Prefetch distances for chains, in packets: pointer to the second segment, segment, its data. */
#define NEXT_AHEAD   8
#define SECOND_AHEAD 5
#define DATA_AHEAD   3
#define OWN_AHEAD    8192 /* bytes; docs/performance.md */

typedef uint32_t v4 __attribute__((vector_size(16), aligned(1), may_alias));

/* Progress of a burst. No record crosses the end of a chunk, so pointers run straight. */
struct cursor {
	struct rte_mbuf **pkts, **last; /* next packet, and behind the last one */
	uint8_t *at;                    /* next record */
	const uint8_t *end;             /* end of the room */
	uint64_t bytes;
};

/* To write a cache line costs a transfer from the reader's core, which has read it: request it
 * early. */
RT_INLINE void own_ahead(const uint8_t *at, uint32_t len)
{
	__builtin_prefetch(at, 1, 3);
	__builtin_prefetch(at + RT_CACHE_LINE, 1, 3);
	for (uint32_t o = 2 * RT_CACHE_LINE; o < len; o += RT_CACHE_LINE)
		__builtin_prefetch(at + o, 1, 3);
}

/* Whether the first bytes of a segment can be read; bytes is not more than it has. */
RT_INLINE bool is_readable(const struct rte_mbuf *m, uint32_t bytes)
{
	return rt_likely(rt_readable_own(m) && !(m->ol_flags & RTE_MBUF_F_EXTERNAL)) ||
	       rt_readable_chain(m, bytes);
}

/* Copies n bytes from off on, which is in the first segment. False: the slow path finds out why. */
RT_INLINE bool copy_chain(
	uint8_t *d, const struct rte_mbuf *m, uint32_t off, uint32_t n, const bool wide)
{
	for (unsigned segs = m->nb_segs; m && segs; m = m->next, segs--) {
		uint32_t k = RTE_MIN(m->data_len - off, n);

		if (rt_unlikely(!is_readable(m, off + k)))
			return false;
		rt_copy(d, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), k, wide);
		d += k;
		n -= k;
		if (!n)
			return true;
		off = 0;
	}
	return !n;
}

/* The second segment, if the copy needs it. */
RT_INLINE const struct rte_mbuf *second(const struct rte_mbuf *m, uint32_t snaplen)
{
	return m->nb_segs > 1 && m->data_len < RTE_MIN(m->pkt_len, snaplen) ? m->next : NULL;
}

/* For the packets that follow a chain, perhaps chains, too. Each address is found in memory that
 * the one before leads to. */
RT_INLINE void prefetch_chains(struct rte_mbuf **pkts, uint64_t left, uint32_t snaplen)
{
	const struct rte_mbuf *m;

	if (left > NEXT_AHEAD)
		__builtin_prefetch(&pkts[NEXT_AHEAD]->next);
	if (left > SECOND_AHEAD && (m = second(pkts[SECOND_AHEAD], snaplen))) {
		__builtin_prefetch(m);
		__builtin_prefetch(&m->next);
	}
	if (left > DATA_AHEAD && (m = second(pkts[DATA_AHEAD], snaplen))) {
		__builtin_prefetch(rte_pktmbuf_mtod(m, void *));
		__builtin_prefetch(m->next);
	}
}

/* Copies the MAC addresses and puts tags behind them. False: the slow path does it, or finds out
 * why not. */
RT_INLINE bool put_tags(uint8_t *d, const struct rte_mbuf *m, uint64_t tags, uint32_t cap)
{
	const uint8_t *s = rte_pktmbuf_mtod(m, const uint8_t *);

	if (rt_unlikely(cap < RT_MAC_BYTES + sizeof(tags) || m->data_len < RT_MAC_BYTES ||
			!m->nb_segs || !is_readable(m, RT_MAC_BYTES)))
		return false;
	*(rt_u64 *)d = *(const rt_u64 *)s;
	*(rt_u32 *)(d + 8) = *(const rt_u32 *)(s + 8);
	*(rt_u64 *)(d + RT_MAC_BYTES) = tags;
	return true;
}

/* The packet is one segment, which can be read, of 16 bytes at least. */
RT_INLINE bool is_simple(const struct rte_mbuf *m)
{
	return m->data_len == m->pkt_len && m->data_len >= sizeof(v4) && m->nb_segs &&
	       rt_readable_own(m);
}

/* Copies a packet for which is_simple() holds with its stripped tag: cap bytes, at least 16. */
RT_INLINE void copy_tagged(uint8_t *d, const struct rte_mbuf *m, uint32_t cap, const bool wide)
{
	const uint8_t *s = rte_pktmbuf_mtod(m, const uint8_t *);
	v4 head = *(const v4 *)s;

	head[RT_MAC_BYTES / 4] =
		rte_cpu_to_be_32((uint32_t)RTE_ETHER_TYPE_VLAN << 16 | m->vlan_tci);
	*(v4 *)d = head;
	rt_copy(d + sizeof(head), s + RT_MAC_BYTES, cap - (uint32_t)sizeof(head), wide);
}

/* Writes the options with an RSS hash, an id (0: none) or both, and the total length. */
RT_INLINE void put_options(uint8_t *t, const struct rt_tap *tap, const struct rte_mbuf *m,
	uint32_t total, const bool hash, uint64_t id)
{
	if (!id) {
		*(rt_v8 *)t = *(const rt_v8 *)tap->trailer_hash;
		*(rt_u32 *)(t + RT_TRAILER_HASH_AT) = m->hash.rss;
		*(rt_u32 *)(t + RT_TRAILER_HASH_LEN_AT) = total;
	} else if (hash) {
		*(rt_v8 *)t = *(const rt_v8 *)tap->trailer_both;
		*(rt_u32 *)(t + RT_TRAILER_HASH_AT) = m->hash.rss;
		*(rt_u64 *)(t + RT_TRAILER_BOTH_ID_AT) = id;
		*(rt_u64 *)(t + RT_TRAILER_BOTH_END_AT) = (uint64_t)total << 32;
	} else {
		*(rt_v8 *)t = *(const rt_v8 *)tap->trailer_id;
		*(rt_u64 *)(t + RT_TRAILER_ID_AT) = id;
		*(rt_u32 *)(t + RT_TRAILER_ID_LEN_AT) = total;
	}
}

/* Replaces the trailer of the record at p by one with options. Returns the record's end. */
RT_INLINE uint8_t *put_more(uint8_t *p, uint64_t options_at, const struct rt_tap *tap,
	const struct rte_mbuf *m, bool hash, uint64_t id)
{
	uint32_t total = (uint32_t)options_at +
			 (id ? hash ? RT_TRAILER_BOTH : RT_TRAILER_ID : RT_TRAILER_HASH);

	((rt_u32 *)p)[1] = total;
	put_options(p + options_at, tap, m, total, hash, id);
	return p + total;
}

/* Fields that packets of one length share. */
struct record {
	rt_v8 head, tail;
	uint64_t options_at; /* 64 bits: a broken mbuf may have any length */
	uint32_t cap;        /* bytes captured */
};

RT_INLINE void set_lengths(struct record *r, uint32_t wire, uint32_t snaplen)
{
	r->cap = RTE_MIN(wire, snaplen);
	r->options_at = RT_EPB_HEADER + (((uint64_t)r->cap + 3) & ~3ull);
	r->head[1] = r->tail[RT_TRAILER_LEN_AT / 4] = (uint32_t)r->options_at + RT_TRAILER;
	r->head[5] = r->cap;
	r->head[6] = wire;
}

RT_INLINE void prefetch(struct rte_mbuf *m, int32_t id_offset, const bool ids)
{
	__builtin_prefetch(rte_pktmbuf_mtod(m, void *));
	if (ids)
		__builtin_prefetch(RTE_MBUF_DYNFIELD(m, id_offset, void *));
}

/* Packets of a run: one segment holds what is captured of each, in the mbuf's own buffer. */
#define RUN_SHORTEST 32u
#define RUN_LONGEST  128u

/* Copies a run of packets of one length without tags, all with an RSS hash or none, and all with an
 * id if ids are requested. Ends at the first other packet, or where there is no room: push_fast()
 * goes on. Most bursts are such a run; what packets have in common is computed once for it. */
RT_INLINE void push_run(struct cursor *cursor, const struct rt_tap *tap, uint64_t ns,
	const uint32_t ahead, const bool hash, const bool ids, const bool wide)
{
	const enum rt_direction dir = tap->direction;
	const uint64_t id_flag = rt_ids.flag;
	const int32_t id_offset = rt_ids.offset;
	const uint64_t hash_flag = dir == RT_DIR_RX ? RTE_MBUF_F_RX_RSS_HASH : 0;
	const uint64_t watched = rt_epb_tag_flags(dir) | RTE_MBUF_F_EXTERNAL | hash_flag;
	const uint64_t flags = hash ? hash_flag : 0;
	const uint32_t trailer = ids    ? hash ? RT_TRAILER_BOTH : RT_TRAILER_ID
				 : hash ? RT_TRAILER_HASH
					: RT_TRAILER;
	struct rte_mbuf **pkts = cursor->pkts, **const last = cursor->last;
	uint8_t *at = cursor->at;
	struct record r = {
		.head = {RT_EPB_TYPE, 0, tap->if_index, (uint32_t)(ns >> 32), (uint32_t)ns},
		.tail = *(const rt_v8 *)(ids ? tap->trailer_id : tap->trailer)};
	const uint32_t wire = (*pkts)->pkt_len;
	uint32_t n, total;

	set_lengths(&r, wire, tap->snaplen);
	n = r.cap;
	if (n - RUN_SHORTEST > RUN_LONGEST - RUN_SHORTEST)
		return;
	total = (uint32_t)r.options_at + trailer;
	r.head[1] = total;
	if (cursor->end < at + total)
		return;
	for (const uint8_t *stop = cursor->end - total; pkts != last && at <= stop; pkts++) {
		const struct rte_mbuf *m = *pkts;
		uint64_t id = 0;
		const uint8_t *s;
		uint8_t *d = at + RT_EPB_HEADER;

		if (pkts + PREFETCH_AHEAD < last)
			prefetch(pkts[PREFETCH_AHEAD], id_offset, ids);
		if (rt_unlikely(((m->ol_flags & watched) ^ flags) | (m->pkt_len ^ wire) |
				(m->data_len < n) | !m->nb_segs) ||
			rt_unlikely(!rt_readable_own(m)))
			break;
		if (ids && rt_unlikely(!(id = rt_ids_of(m, tap, dir, id_flag, id_offset))))
			break;
		if (ahead)
			own_ahead(at + ahead, total);
		s = rte_pktmbuf_mtod(m, const uint8_t *);
		*(rt_v8 *)at = r.head;
		/* The padding; the packet overwrites what is not. */
		*(rt_u32 *)(at + total - trailer - 4) = 0;
		rt_copy(d, s, n, wide);
		at += total - trailer;
		if (ids || hash)
			put_options(at, tap, m, total, hash, id);
		else
			*(rt_v8 *)at = r.tail;
		at += trailer;
	}
	cursor->bytes += (uint64_t)(pkts - cursor->pkts) * wire;
	cursor->pkts = pkts;
	cursor->at = at;
}

/* Copies packets until one does not fit, or needs the slow path. Values that cannot change within
 * a burst are in locals: the compiler must assume that stores into the ring alias everything
 * else. */
RT_INLINE void push_fast(struct cursor *cursor, const struct rt_tap *tap, uint64_t ns,
	const uint32_t ahead, const bool ids, const bool wide)
{
	const enum rt_direction dir = tap->direction;
	const uint64_t id_flag = rt_ids.flag;
	const int32_t id_offset = rt_ids.offset;
	const uint64_t tag_flags = rt_epb_tag_flags(dir);
	const uint64_t odd_flags = tag_flags | RTE_MBUF_F_EXTERNAL;
	const uint64_t hash_flag = dir == RT_DIR_RX ? RTE_MBUF_F_RX_RSS_HASH : 0;
	const uint32_t snaplen = tap->snaplen;
	/* The flags of a packet that copy_tagged() may copy; 0: no packet has them. */
	const uint64_t one_tag = snaplen < sizeof(v4) ? 0
				 : dir == RT_DIR_RX   ? RTE_MBUF_F_RX_VLAN_STRIPPED
						      : RTE_MBUF_F_TX_VLAN;
	struct rte_mbuf **pkts = cursor->pkts, **const last = cursor->last;
	const uint8_t *const end =
		cursor->end - ((ids ? RT_TRAILER_BOTH : RT_TRAILER_HASH) - RT_TRAILER);
	uint8_t *at = cursor->at;
	struct record r = {
		.head = {RT_EPB_TYPE, 0, tap->if_index, (uint32_t)(ns >> 32), (uint32_t)ns},
		.tail = *(const rt_v8 *)tap->trailer};
	uint64_t last_wire = UINT64_MAX, bytes = 0;

	for (; pkts != last; pkts++) {
		const struct rte_mbuf *m = *pkts;
		uint64_t odd = m->ol_flags & odd_flags, tags = 0, id = 0;
		uint32_t wire = m->pkt_len, tag_len = 0, off = 0, n;
		uint8_t *d = at + RT_EPB_HEADER;
		bool one = false;

		if (pkts + PREFETCH_AHEAD < last)
			prefetch(pkts[PREFETCH_AHEAD], id_offset, ids);
		if (rt_unlikely(odd) && (odd & tag_flags)) {
			one = odd == one_tag && is_simple(m);
			tag_len = one ? RT_TAG_BYTES : rt_epb_vlan(m, dir, &tags);
			wire += tag_len;
		}
		if (rt_unlikely(wire != last_wire)) {
			last_wire = wire;
			set_lengths(&r, wire, snaplen);
		}
		if (rt_unlikely(at + r.options_at + RT_TRAILER > end))
			break;
		if (ahead)
			own_ahead(at + ahead, (uint32_t)r.options_at + RT_TRAILER);
		*(rt_v8 *)at = r.head;
		*(rt_u32 *)(at + r.options_at - 4) =
			0; /* zero the padding first; the packet overwrites what is not padding */
		n = r.cap;
		if (rt_unlikely(one)) {
			copy_tagged(d, m, n, wide);
			goto copied;
		}
		if (rt_unlikely(odd) && (odd & tag_flags)) {
			if (!put_tags(d, m, tags, n))
				break;
			off = RT_MAC_BYTES;
			d += RT_MAC_BYTES + tag_len;
			n -= RT_MAC_BYTES + tag_len;
		}
		if (rt_likely(off + n <= m->data_len && m->nb_segs && rt_readable_own(m) &&
			      (!odd || !(odd & RTE_MBUF_F_EXTERNAL)))) {
			rt_copy(d, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n, wide);
		} else {
			prefetch_chains(pkts, (uint64_t)(last - pkts), snaplen);
			if (!copy_chain(d, m, off, n, wide))
				break;
		}
	copied:
		bytes += wire;
		if (ids)
			id = rt_ids_of(m, tap, dir, id_flag, id_offset);
		if (ids && rt_likely(id)) {
			at = put_more(at, r.options_at, tap, m, m->ol_flags & hash_flag, id);
		} else if (rt_unlikely(m->ol_flags & hash_flag)) {
			at = put_more(at, r.options_at, tap, m, true, 0);
		} else {
			*(rt_v8 *)(at + r.options_at) = r.tail;
			at += r.options_at + RT_TRAILER;
		}
	}
	cursor->pkts = pkts;
	cursor->at = at;
	cursor->bytes += bytes;
}

/* To request lines that the reader may still read would slow both. */
RT_INLINE bool may_own_ahead(const struct rt_ring *r, const struct cursor *c, uint8_t size)
{
	return r->own_ahead & size && c->end - c->at > 2 * OWN_AHEAD;
}

RT_INLINE void push_some(const struct rt_ring *r, struct cursor *c, const struct rt_tap *tap,
	uint64_t ns, uint8_t size, const bool ids, const bool wide)
{
	if (rt_likely(may_own_ahead(r, c, size)))
		push_fast(c, tap, ns, OWN_AHEAD, ids, wide);
	else
		push_fast(c, tap, ns, 0, ids, wide);
}

RT_INLINE void push_runs(const struct rt_ring *r, struct cursor *c, const struct rt_tap *tap,
	uint64_t ns, const bool hash, const bool ids, const bool wide)
{
	if (rt_likely(may_own_ahead(r, c, RT_OWN_SMALL)))
		push_run(c, tap, ns, OWN_AHEAD, hash, ids, wide);
	else
		push_run(c, tap, ns, 0, hash, ids, wide);
}

/* The first packets of a burst, if they are a run. False: some are left. */
RT_INLINE bool push_first(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf ***pkts,
	unsigned *n, uint64_t ns, const bool wide)
{
	struct rt_seg_count *count = &r->counts[tap->index];
	struct cursor c = {.pkts = *pkts, .last = *pkts + *n};
	uint8_t *start = r->chunk + (r->head & r->mask);
	bool hash;

	if (rt_unlikely(!*n || (r->gaps && r->pending[tap->index]) || r->limit <= r->head))
		return false;
	hash = tap->direction == RT_DIR_RX && (**pkts)->ol_flags & RTE_MBUF_F_RX_RSS_HASH;
	c.at = start;
	c.end = start + (r->limit - r->head);
	if (rt_unlikely(tap->ids) && hash)
		push_runs(r, &c, tap, ns, true, true, wide);
	else if (rt_unlikely(tap->ids))
		push_runs(r, &c, tap, ns, false, true, wide);
	else if (hash)
		push_runs(r, &c, tap, ns, true, false, wide);
	else
		push_runs(r, &c, tap, ns, false, false, wide);
	rt_compiler_barrier(); /* the records are complete: see rt_epb_mend() */
	r->head += (uint64_t)(c.at - start);
	count->captured += (uint64_t)(c.pkts - *pkts);
	count->bytes += c.bytes;
	*n = (unsigned)(c.last - c.pkts);
	*pkts = c.pkts;
	return !*n;
}

RT_INLINE void push_all(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns, uint8_t size, const bool wide)
{
	struct rt_seg_count *count = &r->counts[tap->index];
	struct cursor c = {.pkts = pkts, .last = pkts + n};

	for (; c.pkts != c.last; c.pkts++) {
		struct rte_mbuf **from = c.pkts;
		uint8_t *start = r->chunk + (r->head & r->mask);

		c.at = start;
		c.end = start + (r->limit > r->head ? r->limit - r->head : 0);
		if (rt_unlikely(r->gaps && r->pending[tap->index]))
			; /* the slow path records the gap */
		else if (rt_unlikely(tap->ids))
			push_some(r, &c, tap, ns, size, true, wide);
		else
			push_some(r, &c, tap, ns, size, false, wide);
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

/* All packets of a burst count as large, or small, as its first one does. */
RT_INLINE void push(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns, const bool wide)
{
	bool large = n && RTE_MIN((*pkts)->pkt_len, tap->snaplen) >= RT_OWN_LARGE_MIN;
	bool tried = large && r->own_ahead & RT_OWN_TRIAL;
	uint64_t head = r->head, start = 0;

	if (rt_unlikely(tried))
		start = rt_own_start(r);
	push_all(r, tap, pkts, n, ns, large ? RT_OWN_LARGE : RT_OWN_SMALL, wide);
	if (rt_unlikely(tried))
		rt_own_stop(r, start, head);
}

static __rte_noinline void push_generic_rest(struct rt_ring *r, const struct rt_tap *tap,
	struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	push(r, tap, pkts, n, ns, false);
}

static void push_generic(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns)
{
	if (rt_unlikely(!push_first(r, tap, &pkts, &n, ns, false)))
		push_generic_rest(r, tap, pkts, n, ns);
}

rt_epb_push_fn rt_epb_push = push_generic;

#ifdef __x86_64__
/* tune=haswell: the generic tuning splits unaligned 32-byte accesses. */
#define AVX2 __attribute__((target("avx2,prfchw,tune=haswell")))

AVX2 static __rte_noinline void push_avx2_rest(struct rt_ring *r, const struct rt_tap *tap,
	struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	push(r, tap, pkts, n, ns, true);
}

AVX2 static void push_avx2(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns)
{
	if (rt_unlikely(!push_first(r, tap, &pkts, &n, ns, true)))
		push_avx2_rest(r, tap, pkts, n, ns);
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
