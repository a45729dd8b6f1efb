/* SPDX-License-Identifier: BSD-3-Clause */
/* Records that are not the common case. */
#include <string.h>

#include <rte_cycles.h>
#include <rte_mbuf_dyn.h>

#include "common/record.h"
#include "probe/capture/copy_bytes.h"
#include "probe/capture/epb.h"
#include "probe/capture/ids.h"
#include "probe/dpdk/nic_time.h"
#include "probe/capture/readable.h"
#include "probe/trace/trace.h"
#include "probe/tunables.h"

#define HASH_TOEPLITZ 5
#define FLAG_INBOUND  1u
#define FLAG_OUTBOUND 2u

static uint8_t *put16(uint8_t *p, uint16_t a, uint16_t b)
{
	memcpy(p, &a, 2);
	memcpy(p + 2, &b, 2);
	return p + 4;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
	return p + 4;
}

static uint8_t *put_common(uint8_t *p, const struct rt_tap *tap, uint32_t flags)
{
	uint32_t way = tap->direction == RT_DIR_RX ? FLAG_INBOUND : FLAG_OUTBOUND;

	p = put32(put16(p, RT_OPTION_FLAGS, 4), way | flags);
	return put32(put16(p, RT_OPTION_QUEUE, 4), tap->queue);
}

static uint8_t *put_hash(uint8_t *p, uint32_t hash)
{
	p = put16(p, RT_OPTION_HASH, 5);
	*p++ = HASH_TOEPLITZ;
	p = put32(p, hash);
	memset(p, 0, 3);
	return p + 3;
}

static uint8_t *put64(uint8_t *p, uint16_t option, uint64_t v)
{
	p = put16(p, option, 8);
	memcpy(p, &v, 8);
	return p + 8;
}

/* The enum rt_checksum of two flags, whose values mbufs have, too. */
static uint8_t checksum(uint64_t flags, uint64_t bad, uint64_t good)
{
	return (uint8_t)(!!(flags & bad) * RT_CHECKSUM_BAD | !!(flags & good) * RT_CHECKSUM_GOOD);
}

static uint8_t l4_checksum(const struct rte_mbuf *m)
{
	return checksum(m->ol_flags, RTE_MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_L4_CKSUM_GOOD);
}

/* As bits of epb_flags. A checksum that a driver reports as "none" is that of a neighbour in the
 * same machine, which has left it to be computed by a NIC. */
static uint32_t offloads(const struct rt_tap *tap, const struct rte_mbuf *m)
{
	const uint64_t cut = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG;
	uint8_t l4 = l4_checksum(m);

	if (tap->direction == RT_DIR_RX)
		return (l4 == RT_CHECKSUM_NONE ? RT_FLAGS_NOT_READY : 0) |
		       (l4 == RT_CHECKSUM_GOOD ? RT_FLAGS_VALID : 0) |
		       (m->ol_flags & RTE_MBUF_F_RX_LRO ? RT_FLAGS_SEGMENTED : 0);
	return (m->ol_flags & (cut | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IP_CKSUM |
				      RTE_MBUF_F_TX_OUTER_IP_CKSUM | RTE_MBUF_F_TX_OUTER_UDP_CKSUM)
			       ? RT_FLAGS_NOT_READY
			       : 0) |
	       (m->ol_flags & cut ? RT_FLAGS_SEGMENTED : 0);
}

/* Writes nothing if the NIC has reported nothing. */
static uint8_t *put_verdict(uint8_t *p, const struct rte_mbuf *m)
{
	const uint64_t f = m->ol_flags;
	const struct rt_verdict v = {.version = RT_VERDICT_VERSION,
		.ip = checksum(f, RTE_MBUF_F_RX_IP_CKSUM_BAD, RTE_MBUF_F_RX_IP_CKSUM_GOOD),
		.l4 = l4_checksum(m),
		.outer_ip = checksum(f, RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD, 0),
		.outer_l4 = checksum(
			f, RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD, RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD),
		.has_mark = f & RTE_MBUF_F_RX_FDIR_ID ? 1
			    : f & RTE_MBUF_F_RX_FDIR  ? 2
						      : 0,
		.mark = rte_cpu_to_le_32(f & RTE_MBUF_F_RX_FDIR_ID ? m->hash.fdir.hi : 0),
		.packet_type = rte_cpu_to_le_32(m->packet_type)};

	if (!(v.ip | v.l4 | v.outer_ip | v.outer_l4 | v.has_mark | v.packet_type))
		return p;
	p = put16(p, RT_OPTION_VERDICT, sizeof(v));
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

void rt_epb_prepare(struct rt_tap *tap)
{
	tap->each = tap->nic_ts_offset >= 0 || tap->mbufs || tap->lengths || tap->first;
	memset(tap->trailer, 0, sizeof(tap->trailer));
	memset(tap->trailer_hash, 0, sizeof(tap->trailer_hash));
	memset(tap->trailer_id, 0, sizeof(tap->trailer_id));
	put_common(tap->trailer, tap, 0);
	put_hash(put_common(tap->trailer_hash, tap, 0), 0);
	/* End and length follow. */
	put64(put_common(tap->trailer_id, tap, 0), RT_OPTION_PACKETID, 0);
	/* The id itself is behind these 32 bytes. */
	put16(put_hash(put_common(tap->trailer_both, tap, 0), 0), RT_OPTION_PACKETID, 8);
}

void rt_epb_lost(struct rt_ring *r, const struct rt_tap *tap, unsigned n)
{
	uint32_t reason = tap->wait ? RT_LOSS_WAIT : RT_LOSS_RING_FULL;

	/* Woken by the end of the session: the packet no longer belongs to it. */
	if (tap->wait && rt_load(&tap->session->stopping)) {
		r->counts[tap->index].seen -= n;
		return;
	}
	r->counts[tap->index].lost[reason] += n;
	rt_ring_miss(r, tap->index, n);
	rt_trace_ring_full(tap->session->id, rt_load(&tap->port), tap->queue, n);
	rt_trace_drop(rt_load(&tap->port), tap->queue, n, reason);
}

void rt_epb_mend(struct rt_ring *r, uint32_t flags)
{
	struct rt_seg_count *c = &r->counts[r->open - 1];
	uint64_t missing = c->seen - c->captured - c->filtered -
			   (flags & RT_OPEN_SAMPLE ? c->not_sampled : 0) -
			   (flags & RT_OPEN_FIRST ? c->cut : 0);

	rt_chunks_mend(r);
	for (unsigned i = 0; i < RT_LOSS_COUNT; i++)
		missing -= c->lost[i];
	c->lost[RT_LOSS_NO_RING] += missing;
	rt_ring_miss(r, r->open - 1, missing);
	r->open = 0;
}

static bool fits(const struct rt_ring *r, uint64_t need)
{
	return r->head + need <= r->limit;
}

/* Only for labs: the application stands still until the reader has caught up. */
static bool wait_for_room(struct rt_ring *r, const struct rt_tap *tap)
{
	uint64_t start = rte_rdtsc(), most = rt_probe_limits.full_wait_ms * rte_get_tsc_hz() / 1000;

	if (r->gave_up)
		return false;
	/* Publish first, or the reader never makes room. */
	rt_ring_publish(r);
	while (!rt_load(&tap->session->stopping)) {
		if (!rt_ring_refresh(r))
			return false;
		if (rt_chunks_next(r))
			return true;
		/* Also when the counter has gone back. */
		if (rte_rdtsc() - start > most)
			break;
		rt_pause();
	}
	r->gave_up = true;
	return false;
}

/* Makes room for need bytes at r->head: in this chunk, or in the next one, which holds them
 * (rt_epb_longest()) and which the tap may wait for (on-full=wait). Everything before r->head is
 * complete. */
static bool make_room(struct rt_ring *r, const struct rt_tap *tap, uint64_t need)
{
	if (fits(r, need))
		return true;
	if (!rt_ring_refresh(r))
		return false;
	if (rt_chunks_next(r)) {
		r->gave_up = false;
		return true;
	}
	return tap->wait && wait_for_room(r, tap);
}

/* Stops at nb_segs, as rt_readable_chain() does. */
static bool chain_has(const struct rte_mbuf *m, uint64_t bytes)
{
	for (unsigned segs = m->nb_segs; m && segs && bytes; m = m->next, segs--)
		bytes -= RTE_MIN(bytes, m->data_len);
	return !bytes;
}

/* Copies len bytes from off on out of a segment chain that has them. */
static void copy_chain(uint8_t *dst, const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	for (; len; m = m->next) {
		uint32_t n;

		if (off >= m->data_len) {
			off -= m->data_len;
			continue;
		}
		n = RTE_MIN(m->data_len - off, len);
		memcpy(dst, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n);
		dst += n;
		len -= n;
		off = 0;
	}
}

/* Restored tags within the first cap bytes of the frame, bytes. */
static uint32_t tags_of(uint32_t cap, uint32_t tag_len)
{
	return cap > RT_MAC_BYTES ? RTE_MIN(cap - RT_MAC_BYTES, tag_len) : 0;
}

/* The frame as on the wire, with tags put back, cut to cap bytes. */
static void copy_frame(
	uint8_t *dst, const struct rte_mbuf *m, uint64_t tags, uint32_t tag_len, uint32_t cap)
{
	uint32_t t = tags_of(cap, tag_len), macs = t ? RT_MAC_BYTES : cap;

	copy_chain(dst, m, 0, macs);
	memcpy(dst + macs, &tags, t);
	copy_chain(dst + macs + t, m, macs, cap - macs - t);
}

static uint32_t put_options(
	uint8_t *p, struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m)
{
	uint8_t *start = p;
	uint64_t dropped = r->pending[tap->index], id = 0;

	p = put_common(p, tap, tap->mbufs ? offloads(tap, m) : 0);
	if (tap->direction == RT_DIR_RX && (m->ol_flags & RTE_MBUF_F_RX_RSS_HASH))
		p = put_hash(p, m->hash.rss);
	if (tap->ids)
		id = rt_ids_of(m, tap, tap->direction, rt_ids.flag, rt_ids.offset);
	if (id)
		p = put64(p, RT_OPTION_PACKETID, id);
	if (dropped)
		p = put64(p, RT_OPTION_DROPCOUNT, dropped);
	if (tap->mbufs && tap->direction == RT_DIR_RX)
		p = put_verdict(p, m);
	return (uint32_t)(put32(p, 0) - start);
}

static void bad_mbuf(struct rt_ring *r, const struct rt_tap *tap)
{
	r->counts[tap->index].lost[RT_LOSS_BAD_MBUF]++;
	rt_ring_miss(r, tap->index, 1);
	rt_trace_drop(rt_load(&tap->port), tap->queue, 1, RT_LOSS_BAD_MBUF);
}

void rt_epb_unreadable(struct rt_ring *r, const struct rt_tap *tap, unsigned n)
{
	r->counts[tap->index].lost[RT_LOSS_UNREADABLE] += n;
	rt_ring_miss(r, tap->index, n);
	rt_trace_drop(rt_load(&tap->port), tap->queue, n, RT_LOSS_UNREADABLE);
}

/* The record at p has its packet and options; *e has neither length nor time. */
static void finish(struct rt_ring *r, const struct rt_tap *tap, struct rt_epb *e, uint32_t options,
	uint64_t ns)
{
	struct rt_seg_count *c = &r->counts[tap->index];
	uint8_t *p = r->chunk + (r->head & r->mask);

	e->total_len = RT_EPB_HEADER + ((e->cap_len + 3) & ~3u) + options + 4;
	e->ts_high = (uint32_t)(ns >> 32);
	e->ts_low = (uint32_t)ns;
	put32(p + e->total_len - 4, e->total_len);
	memcpy(p, e, sizeof(*e));
	rt_compiler_barrier(); /* the record is complete: see rt_epb_mend() */
	r->head += e->total_len;
	/* The reader may have changed pending: its own records lack it, or have it too often. */
	if (r->pending[tap->index] && r->gaps)
		r->gaps--;
	r->pending[tap->index] = 0;
	c->captured++;
	c->bytes += e->orig_len;
}

bool rt_epb_kept(
	struct rt_ring *r, const struct rt_tap *tap, const struct rt_epb_kept *k, uint64_t ns)
{
	struct rt_epb e = {.type = RT_EPB_TYPE,
		.if_index = tap->if_index,
		.cap_len = RTE_MIN(k->cap, k->len),
		.orig_len = k->len};
	uint32_t padded = (e.cap_len + 3) & ~3u;
	uint32_t flags = (uint32_t)k->event << RT_EVENT_SHIFT | k->reason << RT_REASON_SHIFT;
	uint64_t dropped = r->pending[tap->index];
	uint8_t *p, *options;

	if (!make_room(r, tap, (uint64_t)RT_EPB_AROUND + padded))
		return false;
	p = r->chunk + (r->head & r->mask) + RT_EPB_HEADER;
	memset(p + padded - (padded ? 4 : 0), 0, 4);
	rt_copy(p, k->data, e.cap_len, false);
	options = p + padded;
	p = put64(put_common(options, tap, flags), RT_OPTION_PACKETID, k->number);
	if (dropped)
		p = put64(p, RT_OPTION_DROPCOUNT, dropped);
	finish(r, tap, &e, (uint32_t)(put32(p, 0) - options), ns);
	return true;
}

/* The length on the wire of a packet of which the mbuf has `whole` bytes, tags included. */
static uint64_t wire_of(
	const struct rt_tap *tap, const struct rte_mbuf *m, uint64_t whole, uint32_t tag_len)
{
	if (!(m->ol_flags & tap->wire_flag))
		return whole;
	whole = (uint64_t)*RTE_MBUF_DYNFIELD(m, tap->wire_offset, const uint32_t *) + tag_len;
	return RTE_MAX(whole, (uint64_t)m->pkt_len + tag_len);
}

uint64_t rt_epb_wire(const struct rt_tap *tap, const struct rte_mbuf *m)
{
	uint64_t tags;
	uint32_t tag_len = rt_epb_vlan(m, tap->direction, &tags);

	return wire_of(tap, m, (uint64_t)m->pkt_len + tag_len, tag_len);
}

bool rt_epb_slow(struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m, uint64_t ns)
{
	return rt_epb_cut(r, tap, m, tap->snaplen, ns);
}

bool rt_epb_cut(struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m,
	uint32_t snaplen, uint64_t ns)
{
	uint64_t tags;
	uint32_t tag_len = rt_epb_vlan(m, tap->direction, &tags);
	uint64_t whole = (uint64_t)m->pkt_len + tag_len, wire = wire_of(tap, m, whole, tag_len);
	uint32_t cap = (uint32_t)RTE_MIN(whole, snaplen), padded = (cap + 3) & ~3u;
	uint64_t need = (uint64_t)RT_EPB_AROUND + padded;
	struct rt_epb e = {.type = RT_EPB_TYPE, .if_index = tap->if_index, .cap_len = cap};
	uint8_t *p;

	if (rt_unlikely(!rt_readable(m, cap))) {
		rt_epb_unreadable(r, tap, 1);
		return true;
	}
	/* First, as room for a length that is not true may end a chunk early. */
	if (wire > UINT32_MAX || !chain_has(m, cap - tags_of(cap, tag_len))) {
		bad_mbuf(r, tap);
		return true;
	}
	if (!make_room(r, tap, need))
		return false;
	p = r->chunk + (r->head & r->mask);
	memset(p + RT_EPB_HEADER + padded - (padded ? 4 : 0), 0, 4);
	copy_frame(p + RT_EPB_HEADER, m, tags, tag_len, cap);
	if (tap->nic_ts_offset >= 0 && (m->ol_flags & tap->nic_ts_flag))
		ns = rt_nic_time(rt_load(&tap->nic_clock),
			*RTE_MBUF_DYNFIELD(m, tap->nic_ts_offset, const uint64_t *), ns);
	e.orig_len = (uint32_t)wire;
	finish(r, tap, &e, put_options(p + RT_EPB_HEADER + padded, r, tap, m), ns);
	return true;
}
