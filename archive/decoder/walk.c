/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pcapng.h"
#include "common/pcapng_read.h"
#include "common/record.h"
#include "walk.h"

enum { OPT_COMMENT = 1, SHB_HARDWARE, SHB_OS, SHB_APPLICATION };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_SPEED = 8, IF_TSRESOL = 9, IF_FILTER = 11, IF_OS = 12 };
enum { IF_TSOFFSET = 14, IF_HARDWARE = 15 };
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

__attribute__((format(printf, 2, 3))) static int torn(struct walk *w, const char *format, ...)
{
	va_list args;
	char what[96];

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(w->torn, sizeof(w->torn), "byte %" PRIu64 ": %s", w->next, what);
	return FOUND_END;
}

static uint32_t get32(const struct walk *w, const uint8_t *p)
{
	return rt_pcapng_get32(p, w->swapped);
}

/* Times are two halves, the high one first, in both byte orders. */
static uint64_t get_time(const struct walk *w, const uint8_t *p)
{
	return (uint64_t)get32(w, p) << 32 | get32(w, p + 4);
}

/* Keeps the text of the first option of its kind. Without memory it is missing. */
static void keep_text(char **dst, const uint8_t *text, size_t len)
{
	if (!*dst && len)
		*dst = strndup((const char *)text, len < WALK_TEXT ? len : WALK_TEXT - 1);
}

static void free_iface(struct iface *i)
{
	free(i->name);
	free(i->description);
	free(i->filter);
	free(i->hardware);
	free(i->os);
}

static void free_section(struct walk *w)
{
	free(w->hardware);
	free(w->os);
	free(w->application);
	free(w->comment);
	w->hardware = w->os = w->application = w->comment = NULL;
}

void walk_close(struct walk *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		free_iface(&w->ifs[i]);
	free(w->ifs);
	free(w->header);
	free_section(w);
	window_close(&w->w);
}

void walk_part(struct walk *w)
{
	for (uint32_t i = 0; i < w->base; i++)
		free_iface(&w->ifs[i]);
	w->count -= w->base;
	if (w->count)
		memmove(w->ifs, w->ifs + w->base, w->count * sizeof(*w->ifs));
	w->base = 0;
	for (uint32_t i = 0; i < w->count; i++)
		w->ifs[i].packets = 0;
}

int walk_fork(struct walk *w, const struct walk *from)
{
	*w = (struct walk){.next = from->next,
		.begun = from->begun,
		.swapped = from->swapped,
		.fates_begun = from->fates_begun,
		.count = from->count - from->base,
		.room = from->count - from->base + 1,
		.last_ns = from->last_ns};
	w->ifs = calloc(w->room, sizeof(*w->ifs));
	if (!w->ifs) {
		w->count = 0;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->count; i++) {
		w->ifs[i] = *walk_iface(from, i);
		w->ifs[i].name = w->ifs[i].description = w->ifs[i].filter = NULL;
		w->ifs[i].hardware = w->ifs[i].os = NULL;
	}
	return window_again(&w->w, &from->w);
}

/* Appends a block to what later parts of this section begin with. */
static int keep_block(struct walk *w, const uint8_t *p, size_t len)
{
	if (w->header_room - w->header_len < len) {
		size_t room = 2 * w->header_len + len;
		uint8_t *header = realloc(w->header, room);

		if (!header)
			return -ENOMEM;
		w->header = header;
		w->header_room = room;
	}
	memcpy(w->header + w->header_len, p, len);
	w->header_len += len;
	return 0;
}

/* ---- sections and interfaces ---- */

/* The byte order stands in the body of the section's header; its type reads the same in both. */
static bool begin_order(struct walk *w, const uint8_t *p)
{
	uint32_t magic;

	memcpy(&magic, p + 8, sizeof(magic));
	if (magic != RT_PCAPNG_MAGIC && magic != RT_PCAPNG_MAGIC_OTHER)
		return false;
	w->swapped = magic == RT_PCAPNG_MAGIC_OTHER;
	return true;
}

/* magic 4 | major 2 | minor 2 | section length 8 | options. A part has not the section's length. */
static int take_section(struct walk *w, const uint8_t *p, uint32_t len)
{
	struct rt_pcapng_options o = {.p = p + 24, .end = p + len - 4};
	int ret;

	if (len < 28)
		return torn(w, "a section header of %u bytes", len);
	if (rt_pcapng_get16(p + 12, w->swapped) != 1)
		return torn(
			w, "a section of pcapng version %u", rt_pcapng_get16(p + 12, w->swapped));
	w->begun = true;
	w->fates_begun = false;
	w->base = w->count;
	w->header_len = 0;
	ret = keep_block(w, p, len);
	if (ret)
		return ret;
	memset(w->header + 16, 0xff, 8);
	free_section(w);
	while (rt_pcapng_option_next(&o, w->swapped)) {
		if (o.code == OPT_COMMENT)
			keep_text(&w->comment, o.value, o.len);
		else if (o.code == SHB_HARDWARE)
			keep_text(&w->hardware, o.value, o.len);
		else if (o.code == SHB_OS)
			keep_text(&w->os, o.value, o.len);
		else if (o.code == SHB_APPLICATION)
			keep_text(&w->application, o.value, o.len);
	}
	return FOUND_OTHER;
}

static void interface_option(
	const struct walk *w, struct iface *i, const struct rt_pcapng_options *o)
{
	switch (o->code) {
	case OPT_COMMENT: clock_parse(&i->clock, o->value, o->len); return;
	case IF_NAME: keep_text(&i->name, o->value, o->len); return;
	case IF_DESCRIPTION: keep_text(&i->description, o->value, o->len); return;
	case IF_OS: keep_text(&i->os, o->value, o->len); return;
	case IF_HARDWARE: keep_text(&i->hardware, o->value, o->len); return;
	case IF_FILTER:
		if (o->len > 1 && !o->value[0]) /* a libpcap expression */
			keep_text(&i->filter, o->value + 1, o->len - 1u);
		return;
	case IF_SPEED:
		if (o->len == 8)
			i->speed = rt_pcapng_get64(o->value, w->swapped);
		return;
	case IF_TSRESOL:
		if (o->len == 1)
			i->resolution = o->value[0];
		return;
	case IF_TSOFFSET:
		if (o->len == 8)
			i->offset_s = (int64_t)rt_pcapng_get64(o->value, w->swapped);
	}
}

/* FNV-1a of NAME in "port 0 of DPDK application NAME, DEVICE" (reader/capture/pcapng.c). */
static uint64_t application_of(const char *description)
{
	static const char before[] = " of DPDK application ";
	const char *name = description ? strstr(description, before) : NULL;
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	if (!name)
		return 0;
	for (name += sizeof(before) - 1; *name && *name != ','; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return h;
}

static int make_room(struct walk *w)
{
	uint32_t room = w->room ? 2 * w->room : 16;
	struct iface *ifs;

	if (w->count < w->room)
		return 0;
	ifs = realloc(w->ifs, room * sizeof(*ifs));
	if (!ifs)
		return -ENOMEM;
	w->ifs = ifs;
	w->room = room;
	return 0;
}

/* linktype 2 | reserved 2 | snaplen 4 | options */
static int take_interface(struct walk *w, const uint8_t *p, uint32_t len, struct found *f)
{
	struct rt_pcapng_options o = {.p = p + 16, .end = p + len - 4};
	struct iface *i;
	int ret;

	if (len < 20)
		return torn(w, "an interface block of %u bytes", len);
	if (w->count == INTERFACES)
		return torn(w, "more than %u interfaces", INTERFACES);
	if (w->header_len + len > WALK_HEADER)
		return torn(w, "interfaces of more than %u MiB", WALK_HEADER >> 20);
	ret = make_room(w);
	if (!ret)
		ret = keep_block(w, p, len);
	if (ret)
		return ret;
	i = &w->ifs[w->count++];
	*i = (struct iface){.linktype = rt_pcapng_get16(p + 8, w->swapped),
		.snaplen = get32(w, p + 12),
		.resolution = 6};
	memset(&i->last, 0xff, sizeof(i->last));
	while (rt_pcapng_option_next(&o, w->swapped))
		interface_option(w, i, &o);
	i->application = application_of(i->description);
	if (!i->clock.said)
		return FOUND_OTHER;
	*f = (struct found){.offset = w->next, .local = w->count - 1 - w->base};
	return FOUND_INTERFACE;
}

/* Nanoseconds since the epoch, as far as 64 bits go. */
static int64_t to_ns(const struct iface *i, uint64_t t)
{
	__int128 ns;

	if (__builtin_expect(i->resolution == 9 && !i->offset_s && t <= INT64_MAX, 1))
		return (int64_t)t;
	ns = (__int128)rt_pcapng_ns(t, i->resolution) + (__int128)i->offset_s * 1000000000;
	return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

/* interface 4 | time 8 | options */
static int take_statistics(struct walk *w, const uint8_t *p, uint32_t len, struct found *f)
{
	struct rt_pcapng_options o = {.p = p + 20, .end = p + len - 4};
	struct statistics *s;
	uint32_t local;

	if (len < 24)
		return torn(w, "statistics of %u bytes", len);
	local = get32(w, p + 8);
	if (local >= w->count - w->base)
		return torn(w, "statistics of interface %u, which is not there", local);
	s = &walk_iface(w, local)->last;
	*f = (struct found){.offset = w->next, .local = local, .before = *s};
	memset(s, 0xff, sizeof(*s));
	walk_iface(w, local)->report.said = false;
	f->ns = to_ns(walk_iface(w, local), get_time(w, p + 12));
	s->time_ns = (uint64_t)f->ns;
	while (rt_pcapng_option_next(&o, w->swapped)) {
		uint64_t v;

		if (o.code == OPT_COMMENT)
			clock_parse(&walk_iface(w, local)->report, o.value, o.len);
		if (o.len != 8)
			continue;
		v = rt_pcapng_get64(o.value, w->swapped);
		switch (o.code) {
		case ISB_STARTTIME:
			s->start_ns = (uint64_t)to_ns(walk_iface(w, local), get_time(w, o.value));
			break;
		case ISB_ENDTIME:
			s->end_ns = (uint64_t)to_ns(walk_iface(w, local), get_time(w, o.value));
			break;
		case ISB_IFRECV: s->received = v; break;
		case ISB_IFDROP: s->dropped = v; break;
		case ISB_ACCEPTED: s->accepted = v; break;
		case ISB_OSDROP: s->os_dropped = v; break;
		case ISB_DELIVERED: s->delivered = v; break;
		}
	}
	return FOUND_STATISTICS;
}

/* ---- packets ---- */

static void packet_options(
	const struct walk *w, const uint8_t *p, const uint8_t *end, struct found *f)
{
	struct rt_pcapng_options o = {.p = p, .end = end};

	while (rt_pcapng_option_next(&o, w->swapped)) {
		if (o.code == RT_OPTION_FLAGS && o.len == 4) {
			f->direction = get32(w, o.value) & RT_FLAGS_DIRECTION;
		} else if (o.code == RT_OPTION_QUEUE && o.len == 4) {
			f->queue = get32(w, o.value);
		} else if (o.code == RT_OPTION_HASH && o.len == 5) {
			f->hash = get32(w, o.value + 1); /* behind the algorithm */
			f->has_hash = true;
		} else if (o.code == RT_OPTION_DROPCOUNT && o.len == 8) {
			f->dropcount = rt_pcapng_get64(o.value, w->swapped);
		} else if (o.code == RT_OPTION_PACKETID && o.len == 8) {
			f->id = rt_pcapng_get64(o.value, w->swapped);
			f->has_id = true;
		}
	}
	f->direction = f->direction == 3 ? 0 : f->direction;
}

/* What packets of all three kinds of blocks have. p: the packet, of which left bytes of the block
 * are there. */
static int take_data(struct walk *w, const uint8_t *p, uint32_t left, struct found *f)
{
	uint32_t padded = (f->captured + 3) & ~3u;
	struct iface *i;

	if (f->local >= w->count - w->base)
		return torn(w, "a packet of interface %u, which is not there", f->local);
	if (f->captured > left || padded > left)
		return torn(w, "a packet of %u bytes, more than its block has", f->captured);
	i = walk_iface(w, f->local);
	f->data = p;
	f->linktype = i->linktype;
	return FOUND_PACKET;
}

static void count_packet(struct walk *w, const struct found *f)
{
	struct iface *i = walk_iface(w, f->local);

	i->all++;
	i->gaps += f->dropcount;
	w->last_ns = f->ns;
}

/* interface 4 | time 8 | captured length 4 | original length 4 | packet | options */
static int take_enhanced(struct walk *w, const uint8_t *p, uint32_t len, struct found *f)
{
	int ret;

	if (len < 12 + RT_PCAPNG_EPB_FIXED)
		return torn(w, "a packet block of %u bytes", len);
	*f = (struct found){.offset = w->next,
		.local = get32(w, p + 8),
		.captured = get32(w, p + 20),
		.length = get32(w, p + 24),
		.queue = NO_QUEUE};
	ret = take_data(w, p + 28, len - 32, f);
	if (ret != FOUND_PACKET)
		return ret;
	f->ns = to_ns(walk_iface(w, f->local), get_time(w, p + 12));
	packet_options(w, p + 28 + ((f->captured + 3) & ~3u), p + len - 4, f);
	count_packet(w, f);
	return ret;
}

/* interface 2 | dropped 2 | and on as above. Dropped is since the packet before; 65535: unknown. */
static int take_obsolete(struct walk *w, const uint8_t *p, uint32_t len, struct found *f)
{
	struct rt_pcapng_options o = {.end = p + len - 4};
	uint16_t dropped;
	int ret;

	if (len < 12 + RT_PCAPNG_EPB_FIXED)
		return torn(w, "a packet block of %u bytes", len);
	dropped = rt_pcapng_get16(p + 10, w->swapped);
	*f = (struct found){.offset = w->next,
		.local = rt_pcapng_get16(p + 8, w->swapped),
		.captured = get32(w, p + 20),
		.length = get32(w, p + 24),
		.dropcount = dropped == UINT16_MAX ? 0 : dropped,
		.queue = NO_QUEUE};
	ret = take_data(w, p + 28, len - 32, f);
	if (ret != FOUND_PACKET)
		return ret;
	f->ns = to_ns(walk_iface(w, f->local), get_time(w, p + 12));
	for (o.p = p + 28 + ((f->captured + 3) & ~3u); rt_pcapng_option_next(&o, w->swapped);)
		if (o.code == PACK_FLAGS && o.len == 4)
			f->direction = get32(w, o.value) & RT_FLAGS_DIRECTION;
	f->direction = f->direction == 3 ? 0 : f->direction;
	count_packet(w, f);
	return ret;
}

/* original length 4 | packet. Of interface 0, without a time: that of the packet before is taken.
 */
static int take_simple(struct walk *w, const uint8_t *p, uint32_t len, struct found *f)
{
	uint32_t snaplen;
	int ret;

	if (len < 16 || w->count == w->base)
		return torn(w, len < 16 ? "a simple packet block without a length"
					: "a simple packet block without an interface");
	snaplen = walk_iface(w, 0)->snaplen;
	*f = (struct found){
		.offset = w->next, .length = get32(w, p + 8), .queue = NO_QUEUE, .ns = w->last_ns};
	f->captured = snaplen && snaplen < f->length ? snaplen : f->length;
	if (f->captured > len - 16)
		f->captured = len - 16;
	ret = take_data(w, p + 12, len - 16, f);
	if (ret == FOUND_PACKET)
		count_packet(w, f);
	return ret;
}

/* Types of local use may be those of other programs. The begin of fates belongs to each part. */
static int take_fates(struct walk *w, const uint8_t *p, uint32_t len, struct found *f)
{
	if (len < 12 + RT_FATES_FIXED)
		return FOUND_OTHER;
	if (rt_pcapng_get16(p + 8, w->swapped) == RT_FATES_BEGIN && len < 256 && !w->fates_begun) {
		int ret = keep_block(w, p, len);

		w->fates_begun = true;
		if (ret)
			return ret;
	}
	*f = (struct found){.offset = w->next, .body = p + 8, .body_len = len - 12};
	return FOUND_FATES;
}

/* ---- blocks ---- */

/* The next block, whole, at *p. Its length; 0: the end, or the file is torn; -errno. */
static ssize_t next_block(struct walk *w, const uint8_t **p)
{
	ssize_t have = window_peek(&w->w, w->next, 12, p);
	uint32_t len;

	if (have <= 0)
		return have;
	if (have < 12)
		return torn(w, "the file ends in the middle of a block");
	if (rt_pcapng_get32(*p, false) == RT_PCAPNG_SHB && !begin_order(w, *p))
		return torn(w, "no byte order in the section header");
	if (!w->begun && rt_pcapng_get32(*p, false) != RT_PCAPNG_SHB)
		return torn(w, "this is not a pcapng file");
	len = get32(w, *p + 4);
	if (len < 12 || len % 4 || len > RT_PCAPNG_BLOCK_MAX)
		return torn(w, "a block of %u bytes", len);
	if ((size_t)have < len)
		have = window_peek(&w->w, w->next, len, p);
	if (have < 0)
		return have;
	if ((size_t)have < len)
		return torn(w, "the file ends in the middle of a block");
	if (get32(w, *p + len - 4) != len)
		return torn(w, "a block with two different lengths");
	return (ssize_t)len;
}

int walk_next(struct walk *w, struct found *f)
{
	const uint64_t start = w->next;

	for (;;) {
		const uint8_t *p;
		ssize_t n = w->torn[0] ? 0 : next_block(w, &p);
		uint32_t len = (uint32_t)n;
		int ret = FOUND_OTHER;

		if (n <= 0)
			return (int)n;
		switch (get32(w, p)) {
		case RT_PCAPNG_EPB: ret = take_enhanced(w, p, len, f); break;
		case RT_PCAPNG_OBSOLETE_PACKET: ret = take_obsolete(w, p, len, f); break;
		case RT_PCAPNG_SIMPLE_PACKET: ret = take_simple(w, p, len, f); break;
		case RT_PCAPNG_SHB: ret = take_section(w, p, len); break;
		case RT_PCAPNG_IDB: ret = take_interface(w, p, len, f); break;
		case RT_PCAPNG_ISB: ret = take_statistics(w, p, len, f); break;
		case RT_PCAPNG_FATES: ret = take_fates(w, p, len, f); break;
		}
		if (ret <= 0)
			return ret;
		w->next += len;
		if (ret == FOUND_OTHER && w->next - start >= WALK_FAR)
			*f = (struct found){.offset = w->next - len};
		else if (ret == FOUND_OTHER)
			continue;
		return ret;
	}
}
