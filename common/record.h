/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of records in rings: pcapng Enhanced Packet Blocks, see docs/format.md. Inline, as it
 * runs for each packet. */
#ifndef RINGTAP_COMMON_RECORD_H
#define RINGTAP_COMMON_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "atomics.h"
#include "segment.h"

/* The form of a run's records. */
enum rt_form { RT_FORM_EPB };

/* A record's fields, read once: the application may change them meanwhile. */
struct rt_record {
	uint64_t ns;
	uint32_t len, cap_len, orig_len, if_index;
};

/* Reads the record at p, of which left bytes are there. NULL, or what is wrong with it. Everything
 * that is returned is in bounds; the trailing length and the interface are not checked. */
static inline const char *rt_record_read(const uint8_t *p, uint64_t left, struct rt_record *r)
{
	const struct rt_epb *e = (const struct rt_epb *)p;

	if (rt_unlikely(left < RT_EPB_MIN || rt_load(&e->type) != RT_EPB_TYPE))
		return "not a packet";
	r->len = rt_load(&e->total_len);
	r->cap_len = rt_load(&e->cap_len);
	r->orig_len = rt_load(&e->orig_len);
	if (rt_unlikely(r->len < RT_EPB_MIN || r->len % 4 || r->len > left))
		return "impossible length";
	if (rt_unlikely(r->cap_len > r->len - RT_EPB_MIN || r->cap_len > r->orig_len))
		return "impossible captured length";
	r->if_index = rt_load(&e->if_index);
	r->ns = (uint64_t)rt_load(&e->ts_high) << 32 | rt_load(&e->ts_low);
	return NULL;
}

/* pcapng, sections 3.5 and 4.3.1 */
#define RT_OPTION_FLAGS     2
#define RT_OPTION_HASH      3
#define RT_OPTION_DROPCOUNT 4
#define RT_OPTION_PACKETID  5
#define RT_OPTION_QUEUE     6
#define RT_OPTION_VERDICT   7
#define RT_FLAGS_DIRECTION  3u /* 1: inbound, 2: outbound */
/* Sessions with RT_OPEN_MBUFS. */
#define RT_FLAGS_NOT_READY (1u << 9)  /* the checksum is not computed yet */
#define RT_FLAGS_VALID     (1u << 10) /* the NIC has found the transport checksum valid */
#define RT_FLAGS_SEGMENTED (1u << 11) /* a TCP or UDP packet that the NIC cuts, or has joined */

/* Value of epb_verdict in such records, in little-endian order: reported by the NIC for a
 * received packet. */
struct rt_verdict {
	uint8_t type; /* 0: of hardware */
	uint8_t version;
	uint8_t ip, l4;             /* enum rt_checksum */
	uint8_t outer_ip, outer_l4; /* the same; outer_ip is 0 or bad */
	uint8_t has_mark; /* 0; 1: a flow rule has set mark; 2: one has flagged the packet */
	uint8_t reserved;
	uint32_t mark;
	uint32_t packet_type; /* rte_mbuf.packet_type, RTE_PTYPE_…; 0: unknown */
};
static_assert(sizeof(struct rt_verdict) == 16, "docs/format.md");
#define RT_VERDICT_VERSION 1
enum rt_checksum { RT_CHECKSUM_UNKNOWN, RT_CHECKSUM_BAD, RT_CHECKSUM_GOOD, RT_CHECKSUM_NONE };

struct rt_options {
	uint32_t flags;
	uint32_t queue; /* UINT32_MAX: none */
	uint32_t hash;
	bool has_hash;
	uint64_t dropcount;
	uint64_t id; /* 0: none */
};

static inline void rt_record_option(
	struct rt_options *o, uint32_t code, uint32_t len, const uint8_t *value)
{
	if (code == RT_OPTION_FLAGS && len == 4) {
		memcpy(&o->flags, value, 4);
	} else if (code == RT_OPTION_QUEUE && len == 4) {
		memcpy(&o->queue, value, 4);
	} else if (code == RT_OPTION_HASH && len == 5) {
		memcpy(&o->hash, value + 1, 4); /* behind the algorithm */
		o->has_hash = true;
	} else if (code == RT_OPTION_DROPCOUNT && len == 8) {
		memcpy(&o->dropcount, value, 8);
	} else if (code == RT_OPTION_PACKETID && len == 8) {
		memcpy(&o->id, value, 8);
	}
}

/* Reads the options of a record at p that rt_record_read() has read. Those that are missing or
 * invalid are 0. */
static inline void rt_record_options(
	const uint8_t *p, const struct rt_record *r, struct rt_options *o)
{
	uint32_t padded = (r->cap_len + 3) & ~3u, left = r->len - RT_EPB_MIN - padded;

	*o = (struct rt_options){.queue = UINT32_MAX};
	p += RT_EPB_HEADER + padded;
	while (left >= 4) {
		uint32_t head, code, len;

		head = rt_load((const uint32_t *)(const void *)p); /* once */
		code = head & 0xffff;
		len = head >> 16;
		padded = (len + 3) & ~3u;
		if (!code || padded > left - 4)
			return;
		rt_record_option(o, code, len, p + 4);
		p += 4 + padded;
		left -= 4 + padded;
	}
}

#endif
