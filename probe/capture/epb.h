/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy of packets into a ring, as pcapng Enhanced Packet Blocks. The hot path.
 *
 *   28  block type 6, total length, interface, time high, time low, captured, original length
 *    n  packet, padded with zeros to 32 bits
 *   24  epb_flags (direction), epb_queue, opt_endofopt, total length
 * or, where the NIC delivered an RSS hash,
 *   36  epb_flags, epb_queue, epb_hash (Toeplitz), opt_endofopt, total length
 * or, where the session requests ids, with epb_packetid (12 bytes) before opt_endofopt.
 *
 * (pcapng, sections 3.5 and 4.3; option codes 2, 6, 3, 5.) The slow path in epb_slow.c handles any
 * packet: it adds epb_dropcount, uses NIC time stamps, and finds out what is wrong with broken
 * ones.
 */
#ifndef RINGTAP_PROBE_CAPTURE_EPB_H
#define RINGTAP_PROBE_CAPTURE_EPB_H

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "session.h"

#define RT_TRAILER             24u /* bytes */
#define RT_TRAILER_HASH        36u /* bytes */
#define RT_TRAILER_LEN_AT      20u
#define RT_TRAILER_HASH_AT     21u
#define RT_TRAILER_HASH_LEN_AT 32u
#define RT_TRAILER_ID          36u /* bytes */
#define RT_TRAILER_ID_AT       20u
#define RT_TRAILER_ID_LEN_AT   32u
#define RT_TRAILER_BOTH        48u /* bytes; hash and id */
#define RT_TRAILER_BOTH_ID_AT  32u
#define RT_TRAILER_BOTH_END_AT 40u

/* Bytes that a record has besides its packet, at most. */
#define RT_EPB_AROUND (RT_EPB_HEADER + 80u /* options */ + 4u)

/* The longest packet that a chunk of that size holds: a tap's snaplen is at most this. */
static inline uint32_t rt_epb_longest(uint64_t chunk_size)
{
	return (uint32_t)(chunk_size - RT_CHUNK_GUARD - RT_EPB_AROUND) & ~3u;
}

/* Fills in the tap's trailers from its direction and queue. */
void rt_epb_prepare(struct rt_tap *tap);

/* Writes one packet of any shape at r->head and advances it. Counts everything itself. False: the
 * ring is full. */
bool rt_epb_slow(
	struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m, uint64_t ns);
/* The same, with a snaplen of its own. */
bool rt_epb_cut(struct rt_ring *r, const struct rt_tap *tap, const struct rte_mbuf *m,
	uint32_t snaplen, uint64_t ns);

/* A received packet of which some bytes were kept, or none. */
struct rt_epb_kept {
	const uint8_t *data;      /* may change meanwhile */
	uint32_t cap, len;        /* bytes kept, and of the packet */
	uint64_t number;          /* as epb_packetid: the time of its reception, or its id */
	enum rt_fate_event event; /* with an id */
	uint32_t reason;          /* number; 0: none */
};

/* Writes its record as rt_epb_slow() does, at time ns. False: the ring is full. */
bool rt_epb_kept(
	struct rt_ring *r, const struct rt_tap *tap, const struct rt_epb_kept *k, uint64_t ns);

/* Counts n packets in memory that cannot be read. */
void rt_epb_unreadable(struct rt_ring *r, const struct rt_tap *tap, unsigned n);

/* Counts n packets that found the ring full. */
void rt_epb_lost(struct rt_ring *r, const struct rt_tap *tap, unsigned n);

/* Finishes the burst that its thread left by a jump out of the hook: its complete records stay,
 * the other packets are lost. flags: RT_OPEN_… of its session. */
void rt_epb_mend(struct rt_ring *r, uint32_t flags);

/* The length of a packet on the wire, stripped tags included. */
uint64_t rt_epb_wire(const struct rt_tap *tap, const struct rte_mbuf *m);

/* Copies a burst of packets that passed the filter; ns is the burst's time. r->head is advanced but
 * not published. */
typedef void (*rt_epb_push_fn)(struct rt_ring *r, const struct rt_tap *tap, struct rte_mbuf **pkts,
	unsigned n, uint64_t ns);
extern rt_epb_push_fn rt_epb_push;

/* Picks the copy for this CPU. */
void rt_epb_init(void);

#define RT_MAC_BYTES 12u
#define RT_TAG_BYTES 4 /* a VLAN tag */

/* The mbuf flags of tags that belong to the frame but are not in its bytes. */
static inline __attribute__((always_inline)) uint64_t rt_epb_tag_flags(enum rt_direction dir)
{
	return dir == RT_DIR_RX ? RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED
				: RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_TX_QINQ;
}

/* Restores stripped VLAN tags: fills tags with the bytes to insert after the MAC addresses and
 * returns their number: 0, 4 or 8. The others are zero. */
static inline __attribute__((always_inline)) unsigned rt_epb_vlan(
	const struct rte_mbuf *m, enum rt_direction dir, uint64_t *tags)
{
	uint64_t qinq = dir == RT_DIR_RX ? RTE_MBUF_F_RX_QINQ_STRIPPED : RTE_MBUF_F_TX_QINQ;
	/* On receipt each flag stands for the one tag that the NIC has stripped. */
	uint64_t vlan = dir == RT_DIR_RX ? RTE_MBUF_F_RX_VLAN_STRIPPED
					 : RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_TX_QINQ;
	uint64_t v = 0;
	unsigned len = 0;

	*tags = 0;
	if (m->pkt_len < RT_MAC_BYTES)
		return 0;
	/* IEEE 802.1ad service tag outside, 802.1Q customer tag inside. */
	if (m->ol_flags & qinq) {
		v = (uint64_t)(0x88a8u << 16 | m->vlan_tci_outer) << 32;
		len = 4;
	}
	if (m->ol_flags & vlan) {
		v |= (uint64_t)(0x8100u << 16 | m->vlan_tci) << (32 - 8 * len);
		len += 4;
	}
	*tags = RTE_BE64(v);
	return len;
}

#endif
