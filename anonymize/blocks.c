/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blocks.h"
#include "common/pcapng.h"
#include "common/record.h"

enum { OPT_COMMENT = 1 };
enum {
	IF_NAME = 2,
	IF_MAC = 6,
	IF_SPEED = 8,
	IF_TSRESOL = 9,
	IF_TSOFFSET = 14,
	IF_TXSPEED = 16,
	IF_RXSPEED
};
enum { ISB_FIRST = 2, ISB_LAST = 8 };
enum { PACK_FLAGS = 2 };

/* Direction, kind of reception, checksums, errors of the link; not the FCS, which is not there. */
#define FLAGS_KEPT 0xffff0e1fu

void anonymizer_free(struct anonymizer *a)
{
	blocks_close(&a->blocks);
}

/* ---- writing ---- */

/* A block that is being written, in the byte order of the file. */
struct writer {
	uint8_t *out;
	size_t len;
	bool swapped;
	bool options; /* there are some */
};

static void put16(struct writer *w, uint16_t v)
{
	v = rt_pcapng_get16((const uint8_t *)&v, w->swapped);
	memcpy(w->out + w->len, &v, sizeof(v));
	w->len += sizeof(v);
}

static void put32(struct writer *w, uint32_t v)
{
	v = rt_pcapng_get32((const uint8_t *)&v, w->swapped);
	memcpy(w->out + w->len, &v, sizeof(v));
	w->len += sizeof(v);
}

static void put_bytes(struct writer *w, const void *p, size_t len)
{
	memcpy(w->out + w->len, p, len);
	w->len += len;
}

static void put_padding(struct writer *w)
{
	const size_t n = -w->len & 3;

	memset(w->out + w->len, 0, n);
	w->len += n;
}

static void put_option(struct writer *w, uint16_t code, const void *value, uint16_t len)
{
	put16(w, code);
	put16(w, len);
	put_bytes(w, value, len);
	put_padding(w);
	w->options = true;
}

static struct writer begin(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	struct writer w = {.out = out, .swapped = a->blocks.swapped};

	put_bytes(&w, b->bytes, 4);
	put32(&w, 0);
	return w;
}

static size_t end(struct writer *w)
{
	uint32_t total;

	if (w->options)
		put32(w, 0);
	total = (uint32_t)w->len + 4;
	put32(w, total);
	memcpy(w->out + 4, w->out + w->len - 4, 4);
	return w->len;
}

/* ---- sections, interfaces, statistics ---- */

/* magic 4 | version 4 | length 8 */
static size_t put_section(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	static const char *const payloads[] = {"cut", "zeros", "kept"};
	const uint64_t unknown = UINT64_MAX;
	struct writer w = begin(a, b, out);
	char text[128];
	int n;

	n = snprintf(text, sizeof(text),
		"anonymised by ringtap " RINGTAP_VERSION ": addresses are pseudonyms, payload %s",
		payloads[a->payload]);
	put_bytes(&w, b->bytes + 8, 8);
	put_bytes(&w, &unknown, sizeof(unknown));
	put_option(&w, OPT_COMMENT, text, (uint16_t)n);
	return end(&w);
}

static void put_interface_option(
	const struct anonymizer *a, struct writer *w, const struct rt_pcapng_options *o)
{
	uint8_t mac[6];

	switch (o->code) {
	case IF_MAC:
		if (o->len != sizeof(mac))
			return;
		pseudonym_mac(a->names, o->value, mac);
		put_option(w, IF_MAC, mac, sizeof(mac));
		return;
	case IF_TSRESOL:
		if (o->len == 1)
			put_option(w, o->code, o->value, o->len);
		return;
	case IF_SPEED:
	case IF_TSOFFSET:
	case IF_TXSPEED:
	case IF_RXSPEED:
		if (o->len == 8)
			put_option(w, o->code, o->value, o->len);
	}
}

/* linktype 2 | reserved 2 | snaplen 4 */
static size_t put_interface(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	struct rt_pcapng_options o = block_options(b, BLOCK_INTERFACE);
	struct writer w = begin(a, b, out);
	char name[32];
	int n = snprintf(name, sizeof(name), "interface%u", b->local);

	put_bytes(&w, b->bytes + 8, 2);
	put16(&w, 0);
	put_bytes(&w, b->bytes + 12, 4);
	put_option(&w, IF_NAME, name, (uint16_t)n);
	while (rt_pcapng_option_next(&o, w.swapped))
		put_interface_option(a, &w, &o);
	return end(&w);
}

/* interface 4 | time 8 */
static size_t put_statistics(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	struct rt_pcapng_options o = block_options(b, BLOCK_STATISTICS);
	struct writer w = begin(a, b, out);

	put_bytes(&w, b->bytes + 8, 12);
	while (rt_pcapng_option_next(&o, w.swapped))
		if (o.code >= ISB_FIRST && o.code <= ISB_LAST && o.len == 8)
			put_option(&w, o.code, o.value, o.len);
	return end(&w);
}

/* ---- packets ---- */

static bool is_kept(const struct rt_pcapng_options *o)
{
	switch (o->code) {
	case RT_OPTION_DROPCOUNT:
	case RT_OPTION_PACKETID: return o->len == 8;
	case RT_OPTION_QUEUE: return o->len == 4;
	/* The one of common/record.h, and those of eBPF: a number. A hash is not kept: it is
	 * one of addresses. */
	case RT_OPTION_VERDICT:
		return o->len && (o->value[0] ? o->value[0] <= 2 && o->len == 9
					      : o->len == sizeof(struct rt_verdict) &&
							 o->value[1] == RT_VERDICT_VERSION);
	default: return false;
	}
}

static void put_flags(struct writer *w, const struct rt_pcapng_options *o)
{
	put16(w, o->code);
	put16(w, o->len);
	put32(w, rt_pcapng_get32(o->value, w->swapped) & FLAGS_KEPT);
	w->options = true;
}

static void put_packet_options(struct writer *w, const struct block *b, bool obsolete)
{
	struct rt_pcapng_options o = {
		.p = b->data + ((b->captured + 3) & ~3u), .end = b->bytes + b->len - 4};

	static_assert(PACK_FLAGS == RT_OPTION_FLAGS, "one number in both blocks");
	while (rt_pcapng_option_next(&o, w->swapped)) {
		if (o.code == RT_OPTION_FLAGS && o.len == 4)
			put_flags(w, &o);
		else if (!obsolete && is_kept(&o))
			put_option(w, o.code, o.value, o.len);
	}
}

/* interface 4, or interface 2 and dropped 2 | time 8 | captured 4 | length 4 | packet | options */
static size_t put_enhanced(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	struct writer w = begin(a, b, out);
	size_t captured = anonymize_packet(
		a->names, a->payload, b->linktype, b->data, b->captured, b->length, out + 28);

	put_bytes(&w, b->bytes + 8, 12);
	put32(&w, (uint32_t)captured);
	put_bytes(&w, b->bytes + 24, 4);
	w.len += captured;
	put_padding(&w);
	put_packet_options(&w, b, rt_pcapng_get32(b->bytes, w.swapped) != RT_PCAPNG_EPB);
	return end(&w);
}

/* length 4 | packet. It cannot be cut. */
static size_t put_simple(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	const enum payload payload = a->payload == PAYLOAD_CUT ? PAYLOAD_ZERO : a->payload;
	struct writer w = begin(a, b, out);

	put_bytes(&w, b->bytes + 8, 4);
	w.len += anonymize_packet(
		a->names, payload, b->linktype, b->data, b->captured, b->length, out + 12);
	put_padding(&w);
	return end(&w);
}

static size_t put_packet(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	if (rt_pcapng_get32(b->bytes, a->blocks.swapped) == RT_PCAPNG_SIMPLE_PACKET)
		return put_simple(a, b, out);
	return put_enhanced(a, b, out);
}

/* ---- fates ---- */

/* Numbers, but for the texts of reasons. */
static void put_reasons(struct writer *w, const struct block_fates *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		struct rt_fates_reason reason = {0};

		memcpy(&reason, f->entries + i * sizeof(reason), 2);
		snprintf(reason.text, sizeof(reason.text), "reason %u", reason.number);
		put_bytes(w, &reason, sizeof(reason));
	}
}

/* kind 2 | bytes of an entry 2 | entries 4 | time 8 | entries */
static size_t put_fates(const struct anonymizer *a, const struct block *b, uint8_t *out)
{
	const struct block_fates *f = &a->blocks.fates;
	struct writer w = begin(a, b, out);

	put_bytes(&w, b->bytes + 8, 4);
	put32(&w, f->kind == RT_FATES_BEGIN ? 0 : f->count);
	put_bytes(&w, b->bytes + 16, 8);
	if (f->kind == RT_FATES_PACKETS)
		put_bytes(&w, f->entries, f->count * sizeof(struct rt_fates_packet));
	else if (f->kind == RT_FATES_END)
		put_bytes(&w, f->entries, f->count * sizeof(struct rt_fates_queue));
	else if (f->kind == RT_FATES_REASONS)
		put_reasons(&w, f);
	return end(&w);
}

size_t anonymize_block(
	const struct anonymizer *a, enum block_kind kind, const struct block *b, uint8_t *out)
{
	switch (kind) {
	case BLOCK_SECTION: return put_section(a, b, out);
	case BLOCK_INTERFACE: return put_interface(a, b, out);
	case BLOCK_STATISTICS: return put_statistics(a, b, out);
	case BLOCK_PACKET: return put_packet(a, b, out);
	case BLOCK_FATES: return put_fates(a, b, out);
	default: return 0;
	}
}

ssize_t anonymize_blocks(
	struct anonymizer *a, const void *in, size_t len, uint8_t *out, size_t room)
{
	struct block b;
	size_t n = 0;
	int kind;

	window_memory(&a->blocks.w, in, len);
	a->blocks.next = 0;
	while ((kind = blocks_next(&a->blocks, &b)) > 0) {
		if (room - n < b.len + ANONYMIZE_MORE)
			return -EBADMSG;
		n += anonymize_block(a, kind, &b, out + n);
	}
	if (kind)
		return kind;
	return a->blocks.torn[0] ? -EBADMSG : (ssize_t)n;
}
