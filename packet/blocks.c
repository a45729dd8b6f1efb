/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "blocks.h"
#include "common/array.h"
#include "common/pcapng.h"
#include "common/record.h"

enum { IF_TSRESOL = 9, IF_TSOFFSET = 14 };
enum {
	ISB_STARTTIME = 2,
	ISB_ENDTIME,
	ISB_IFRECV,
	ISB_IFDROP,
	ISB_ACCEPTED,
	ISB_OSDROP,
	ISB_DELIVERED
};
enum { PACK_FLAGS = 2 };

void blocks_close(struct blocks *b)
{
	window_close(&b->w);
	free(b->ifs);
	*b = (struct blocks){.w.fd = -1};
}

void blocks_start(struct blocks *b, const struct window *w)
{
	blocks_close(b);
	b->w = *w;
}

int blocks_fork(struct blocks *b, const struct blocks *from)
{
	*b = (struct blocks){.w.fd = -1,
		.next = from->next,
		.begun = from->begun,
		.swapped = from->swapped,
		.last_ns = from->last_ns};
	for (uint32_t i = 0; i < from->count; i++) {
		struct block_interface *copy = rt_array_add(b->ifs, b->count);

		if (!copy)
			return -ENOMEM;
		*copy = from->ifs[i];
	}
	return window_again(&b->w, &from->w);
}

static void keep_reason(struct blocks *b, const char *format, va_list args)
{
	char what[TORN_TEXT - 32];

	vsnprintf(what, sizeof(what), format, args);
	snprintf(b->torn, sizeof(b->torn), "byte %" PRIu64 ": %s", b->next, what);
}

__attribute__((format(printf, 2, 3))) static int torn(struct blocks *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep_reason(b, format, args);
	va_end(args);
	return BLOCK_END;
}

int blocks_refuse(struct blocks *b, uint64_t offset, const char *format, ...)
{
	va_list args;

	b->next = offset;
	va_start(args, format);
	keep_reason(b, format, args);
	va_end(args);
	return BLOCK_END;
}

static uint32_t get32(const struct blocks *b, const uint8_t *p)
{
	return rt_pcapng_get32(p, b->swapped);
}

/* Times are two halves, the high one first, in both byte orders. */
static uint64_t get_time(const struct blocks *b, const uint8_t *p)
{
	return (uint64_t)get32(b, p) << 32 | get32(b, p + 4);
}

struct rt_pcapng_options block_options(const struct block *b, enum block_kind kind)
{
	uint32_t at = kind == BLOCK_SECTION ? 24 : kind == BLOCK_INTERFACE ? 16 : 20;

	return (struct rt_pcapng_options){.p = b->bytes + at, .end = b->bytes + b->len - 4};
}

/* ---- sections and interfaces ---- */

/* The byte order stands in the body of the section's header; its type reads the same in both. */
static bool begin_order(struct blocks *b, const uint8_t *p)
{
	uint32_t magic;

	memcpy(&magic, p + 8, sizeof(magic));
	if (magic != RT_PCAPNG_MAGIC && magic != RT_PCAPNG_MAGIC_OTHER)
		return false;
	b->swapped = magic == RT_PCAPNG_MAGIC_OTHER;
	return true;
}

/* magic 4 | major 2 | minor 2 | section length 8 | options */
static int take_section(struct blocks *b, const struct block *f)
{
	if (f->len < 28)
		return torn(b, "a section header of %u bytes", f->len);
	if (rt_pcapng_get16(f->bytes + 12, b->swapped) != 1)
		return torn(b, "a section of pcapng version %u",
			rt_pcapng_get16(f->bytes + 12, b->swapped));
	b->begun = true;
	b->count = 0;
	return BLOCK_SECTION;
}

/* linktype 2 | reserved 2 | snaplen 4 | options */
static int take_interface(struct blocks *b, struct block *f)
{
	struct rt_pcapng_options o = block_options(f, BLOCK_INTERFACE);
	struct block_interface *i;

	if (f->len < 20)
		return torn(b, "an interface block of %u bytes", f->len);
	if (b->count == INTERFACES_MAX)
		return torn(b, "more than %u interfaces", INTERFACES_MAX);
	f->local = b->count;
	i = rt_array_add(b->ifs, b->count);
	if (!i)
		return -ENOMEM;
	i->linktype = f->linktype = rt_pcapng_get16(f->bytes + 8, b->swapped);
	i->snaplen = get32(b, f->bytes + 12);
	i->resolution = 6;
	while (rt_pcapng_option_next(&o, b->swapped)) {
		if (o.code == IF_TSRESOL && o.len == 1)
			i->resolution = o.value[0];
		else if (o.code == IF_TSOFFSET && o.len == 8)
			i->offset_s = (int64_t)rt_pcapng_get64(o.value, b->swapped);
	}
	return BLOCK_INTERFACE;
}

/* Nanoseconds since the epoch, as far as 64 bits go. */
static int64_t to_ns(const struct block_interface *i, uint64_t t)
{
	__int128 ns;

	if (__builtin_expect(i->resolution == 9 && !i->offset_s && t <= INT64_MAX, 1))
		return (int64_t)t;
	ns = (__int128)rt_pcapng_ns(t, i->resolution) + (__int128)i->offset_s * 1000000000;
	return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

/* interface 4 | time 8 | options */
static int take_statistics(struct blocks *b, struct block *f)
{
	struct rt_pcapng_options o = block_options(f, BLOCK_STATISTICS);
	struct statistics *s = &b->statistics;
	const struct block_interface *i;

	if (f->len < 24)
		return torn(b, "statistics of %u bytes", f->len);
	f->local = get32(b, f->bytes + 8);
	if (f->local >= b->count)
		return torn(b, "statistics of interface %u, which is not there", f->local);
	i = &b->ifs[f->local];
	f->ns = to_ns(i, get_time(b, f->bytes + 12));
	memset(s, 0xff, sizeof(*s));
	s->time_ns = (uint64_t)f->ns;
	while (rt_pcapng_option_next(&o, b->swapped)) {
		uint64_t v;

		if (o.len != 8)
			continue;
		v = rt_pcapng_get64(o.value, b->swapped);
		switch (o.code) {
		case ISB_STARTTIME: s->start_ns = (uint64_t)to_ns(i, get_time(b, o.value)); break;
		case ISB_ENDTIME: s->end_ns = (uint64_t)to_ns(i, get_time(b, o.value)); break;
		case ISB_IFRECV: s->received = v; break;
		case ISB_IFDROP: s->dropped = v; break;
		case ISB_ACCEPTED: s->accepted = v; break;
		case ISB_OSDROP: s->os_dropped = v; break;
		case ISB_DELIVERED: s->delivered = v; break;
		}
	}
	return BLOCK_STATISTICS;
}

/* ---- packets ---- */

/* Called with constants: it takes most of the time that a packet takes here. */
static inline __attribute__((always_inline)) void packet_options(
	bool swapped, const uint8_t *p, const uint8_t *end, struct block *f)
{
	struct rt_pcapng_options o = {.p = p, .end = end};

	while (rt_pcapng_option_next(&o, swapped)) {
		if (o.code == RT_OPTION_FLAGS && o.len == 4) {
			f->direction = rt_pcapng_get32(o.value, swapped) & RT_FLAGS_DIRECTION;
		} else if (o.code == RT_OPTION_QUEUE && o.len == 4) {
			f->queue = rt_pcapng_get32(o.value, swapped);
		} else if (o.code == RT_OPTION_HASH && o.len == 5) {
			f->hash = rt_pcapng_get32(o.value + 1, swapped); /* behind the algorithm */
			f->has_hash = true;
		} else if (o.code == RT_OPTION_DROPCOUNT && o.len == 8) {
			f->dropcount = rt_pcapng_get64(o.value, swapped);
		} else if (o.code == RT_OPTION_PACKETID && o.len == 8) {
			f->id = rt_pcapng_get64(o.value, swapped);
			f->has_id = true;
		}
	}
	f->direction = f->direction == 3 ? 0 : f->direction;
}

/* Fields of packets in all three kinds of blocks; bytes of the block stand before the packet.
 */
static int take_data(struct blocks *b, uint32_t bytes, struct block *f)
{
	uint32_t padded = (f->captured + 3) & ~3u, left = f->len - bytes - 4;

	if (f->local >= b->count)
		return torn(b, "a packet of interface %u, which is not there", f->local);
	if (f->captured > left || padded > left)
		return torn(b, "a packet of %u bytes, more than its block has", f->captured);
	f->data = f->bytes + bytes;
	f->linktype = b->ifs[f->local].linktype;
	return BLOCK_PACKET;
}

static const uint8_t *behind_data(const struct block *f)
{
	return f->data + ((f->captured + 3) & ~3u);
}

/* interface 4 | time 8 | captured length 4 | original length 4 | packet | options */
static int take_enhanced(struct blocks *b, struct block *f)
{
	const uint8_t *p = f->bytes;

	if (f->len < 12 + RT_PCAPNG_EPB_FIXED)
		return torn(b, "a packet block of %u bytes", f->len);
	f->local = get32(b, p + 8);
	f->captured = get32(b, p + 20);
	f->length = get32(b, p + 24);
	if (take_data(b, 28, f) != BLOCK_PACKET)
		return BLOCK_END;
	b->last_ns = f->ns = to_ns(&b->ifs[f->local], get_time(b, p + 12));
	if (b->swapped)
		packet_options(true, behind_data(f), p + f->len - 4, f);
	else
		packet_options(false, behind_data(f), p + f->len - 4, f);
	return BLOCK_PACKET;
}

/* interface 2 | dropped 2 | and on as above. Dropped is since the packet before; 65535: unknown. */
static int take_obsolete(struct blocks *b, struct block *f)
{
	struct rt_pcapng_options o = {.end = f->bytes + f->len - 4};
	const uint8_t *p = f->bytes;
	uint16_t dropped;

	if (f->len < 12 + RT_PCAPNG_EPB_FIXED)
		return torn(b, "a packet block of %u bytes", f->len);
	dropped = rt_pcapng_get16(p + 10, b->swapped);
	f->local = rt_pcapng_get16(p + 8, b->swapped);
	f->captured = get32(b, p + 20);
	f->length = get32(b, p + 24);
	f->dropcount = dropped == UINT16_MAX ? 0 : dropped;
	if (take_data(b, 28, f) != BLOCK_PACKET)
		return BLOCK_END;
	b->last_ns = f->ns = to_ns(&b->ifs[f->local], get_time(b, p + 12));
	for (o.p = behind_data(f); rt_pcapng_option_next(&o, b->swapped);)
		if (o.code == PACK_FLAGS && o.len == 4)
			f->direction = get32(b, o.value) & RT_FLAGS_DIRECTION;
	f->direction = f->direction == 3 ? 0 : f->direction;
	return BLOCK_PACKET;
}

/* original length 4 | packet. Of interface 0, without a time: that of the packet before is taken.
 */
static int take_simple(struct blocks *b, struct block *f)
{
	uint32_t snaplen;

	if (f->len < 16 || !b->count)
		return torn(b, f->len < 16 ? "a simple packet block without a length"
					   : "a simple packet block without an interface");
	snaplen = b->ifs[0].snaplen;
	f->ns = b->last_ns;
	f->length = get32(b, f->bytes + 8);
	f->captured = snaplen && snaplen < f->length ? snaplen : f->length;
	if (f->captured > f->len - 16)
		f->captured = f->len - 16;
	return take_data(b, 12, f);
}

/* kind 2 | bytes of an entry 2 | entries 4 | time 8 | entries. Types of local use may be those of
 * other programs: what is not as we write it is left out. */
static int take_fates(struct blocks *b, const struct block *f)
{
	const uint8_t *p = f->bytes;
	size_t each, ours;

	if (f->len < 12 + RT_FATES_FIXED)
		return BLOCK_OTHER;
	each = rt_pcapng_get16(p + 10, b->swapped);
	b->fates = (struct block_fates){.kind = rt_pcapng_get16(p + 8, b->swapped),
		.count = get32(b, p + 12),
		.ns = get_time(b, p + 16),
		.entries = p + 8 + RT_FATES_FIXED};
	switch (b->fates.kind) {
	case RT_FATES_BEGIN: return BLOCK_FATES;
	case RT_FATES_PACKETS: ours = sizeof(struct rt_fates_packet); break;
	case RT_FATES_END: ours = sizeof(struct rt_fates_queue); break;
	case RT_FATES_REASONS: ours = sizeof(struct rt_fates_reason); break;
	default: return BLOCK_OTHER;
	}
	return each == ours && (f->len - 12 - RT_FATES_FIXED) / ours >= b->fates.count
		       ? BLOCK_FATES
		       : BLOCK_OTHER;
}

/* ---- blocks ---- */

static const char *other_format(const uint8_t *p, size_t len)
{
	uint32_t magic = 0;

	if (len >= sizeof(magic))
		memcpy(&magic, p, sizeof(magic));
	for (unsigned i = 0; i < 2; i++, magic = __builtin_bswap32(magic))
		/* libpcap's savefile(5): microseconds, nanoseconds */
		if (magic == 0xa1b2c3d4 || magic == 0xa1b23c4d)
			return "this is a classic pcap file: 'editcap -F pcapng IN OUT' converts "
			       "it, but ids and fates are only in what was recorded as pcapng";
	return "this is not a pcapng file";
}

/* The next block, whole, at *p. Its length; 0: the end, or the file is torn; -errno. */
static ssize_t next_block(struct blocks *b, const uint8_t **p)
{
	ssize_t have = window_peek(&b->w, b->next, 12, p);
	uint32_t len;

	if (have <= 0)
		return have;
	if (have < 12)
		return torn(b, "the file ends in the middle of a block");
	if (rt_pcapng_get32(*p, false) == RT_PCAPNG_SHB && !begin_order(b, *p))
		return torn(b, "no byte order in the section header");
	if (!b->begun && rt_pcapng_get32(*p, false) != RT_PCAPNG_SHB)
		return torn(b, "%s", other_format(*p, (size_t)have));
	len = get32(b, *p + 4);
	if (len < 12 || len % 4 || len > RT_PCAPNG_BLOCK_MAX)
		return torn(b, "a block of %u bytes", len);
	if ((size_t)have < len)
		have = window_peek(&b->w, b->next, len, p);
	if (have < 0)
		return have;
	if ((size_t)have < len)
		return torn(b, "the file ends in the middle of a block");
	if (get32(b, *p + len - 4) != len)
		return torn(b, "a block with two different lengths");
	return (ssize_t)len;
}

static int take_block(struct blocks *b, struct block *f)
{
	switch (get32(b, f->bytes)) {
	case RT_PCAPNG_EPB: return take_enhanced(b, f);
	case RT_PCAPNG_OBSOLETE_PACKET: return take_obsolete(b, f);
	case RT_PCAPNG_SIMPLE_PACKET: return take_simple(b, f);
	case RT_PCAPNG_SHB: return take_section(b, f);
	case RT_PCAPNG_IDB: return take_interface(b, f);
	case RT_PCAPNG_ISB: return take_statistics(b, f);
	case RT_PCAPNG_FATES: return take_fates(b, f);
	default: return BLOCK_OTHER;
	}
}

int blocks_next(struct blocks *b, struct block *out)
{
	const uint8_t *p;
	ssize_t n = b->torn[0] ? 0 : next_block(b, &p);
	int kind;

	if (n <= 0)
		return (int)n;
	*out = (struct block){.offset = b->next, .bytes = p, .len = (uint32_t)n, .queue = NO_QUEUE};
	kind = take_block(b, out);
	if (kind > 0)
		b->next += out->len;
	return kind;
}

bool blocks_ready(const struct blocks *b)
{
	const uint8_t *p = b->w.buf + (b->next - b->w.at);
	uint64_t have = b->next < b->w.end ? b->w.end - b->next : 0;

	/* A section may have its lengths in the other byte order. */
	return have >= 12 && get32(b, p) != RT_PCAPNG_SHB && get32(b, p + 4) <= have;
}
