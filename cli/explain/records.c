/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/pcapng.h"
#include "common/pcapng_read.h"
#include "records.h"

enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_TSRESOL = 9, IF_FILTER = 11, IF_TSOFFSET = 14 };
enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4, EPB_PACKETID = 5, EPB_QUEUE = 6 };
enum { ISB_STARTTIME = 2, ISB_IFDROP = 5, ISB_OSDROP = 7 };

#define PORT_SLOTS (2 * PORTS_MAX) /* a power of two */

/* How an interface of the section counts time. */
struct local {
	uint32_t port;
	uint8_t resolution; /* if_tsresol */
	int64_t offset_s;
};

struct records {
	struct bytes *in;
	size_t used; /* bytes of the block before */
	uint64_t number;
	bool begun, swapped; /* there was a section header; of the other byte order */
	struct local local[PORTS_MAX];
	uint32_t local_count;
	struct port *ports;
	uint32_t port_count;
	bool several;               /* applications */
	uint16_t slots[PORT_SLOTS]; /* index of a port + 1; 0: empty */
	const uint8_t *fates;       /* of the last block: those that were not returned yet */
	uint32_t fates_left;
	uint64_t fates_lost;
	struct secret secret;
	char error[160];
};

int records_new(struct records **out)
{
	struct records *b = calloc(1, sizeof(*b));

	*out = b;
	if (!b)
		return -ENOMEM;
	secret_make(&b->secret);
	b->ports = calloc(PORTS_MAX, sizeof(*b->ports));
	return b->ports ? 0 : -ENOMEM;
}

void records_free(struct records *b)
{
	if (!b)
		return;
	bytes_close(b->in);
	free(b->ports);
	free(b);
}

void records_start(struct records *b, struct bytes *in)
{
	bytes_close(b->in);
	b->in = in;
	b->used = 0;
	b->fates_left = 0;
	b->begun = false;
	b->local_count = 0;
	b->error[0] = '\0';
}

const char *records_error(const struct records *b)
{
	return b->error;
}

uint64_t records_fates_lost(const struct records *b)
{
	return b->fates_lost;
}

uint32_t records_port_count(const struct records *b)
{
	return b->port_count;
}

const struct port *records_port(const struct records *b, uint32_t i)
{
	return &b->ports[i];
}

__attribute__((format(printf, 2, 3))) static int bad(struct records *b, const char *format, ...)
{
	va_list args;
	char what[96];

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(b->error, sizeof(b->error), "byte %" PRIu64 ": %s", bytes_offset(b->in), what);
	return -EBADMSG;
}

/* ---- numbers in the file's byte order ---- */

static uint16_t get16(const struct records *b, const uint8_t *p)
{
	return rt_pcapng_get16(p, b->swapped);
}

static uint32_t get32(const struct records *b, const uint8_t *p)
{
	return rt_pcapng_get32(p, b->swapped);
}

static uint64_t get64(const struct records *b, const uint8_t *p)
{
	return rt_pcapng_get64(p, b->swapped);
}

static bool next_option(const struct records *b, struct rt_pcapng_options *o)
{
	return rt_pcapng_option_next(o, b->swapped);
}

/* ---- interfaces ---- */

/* What a terminal would not show as it is becomes '?'. */
static void copy_text(char dst[PORT_NAME], const uint8_t *src, size_t len)
{
	size_t n = 0;

	for (; n < len && n < PORT_NAME - 1; n++)
		dst[n] = src[n] >= ' ' && src[n] <= '~' ? (char)src[n] : '?';
	dst[n] = '\0';
}

/* "port 0 of DPDK application NAME, DEVICE": reader/capture/pcapng.c writes it. */
static void copy_application(char dst[PORT_NAME], const uint8_t *text, size_t len)
{
	static const char before[] = " of DPDK application ";
	const uint8_t *at = memmem(text, len, before, sizeof(before) - 1), *comma;

	if (!at)
		return;
	at += sizeof(before) - 1;
	len -= (size_t)(at - text);
	comma = memmem(at, len, ", ", 2);
	copy_text(dst, at, comma ? (size_t)(comma - at) : len);
}

/* Ports with a description of the user's (--ifdescr) name no application: they are taken for ports
 * of the first one. */
static uint16_t application_id(const struct records *b, const char *name)
{
	uint16_t next = 0;

	for (uint32_t i = 0; i < b->port_count && *name; i++) {
		const struct port *o = &b->ports[i];

		if (!strcmp(o->application, name))
			return o->application_id;
		if (o->application[0] && o->application_id >= next)
			next = (uint16_t)(o->application_id + 1);
	}
	return next;
}

static bool is_same(const struct port *a, const struct port *b)
{
	return !strcmp(a->application, b->application) && !strcmp(a->name, b->name) &&
	       a->linktype == b->linktype;
}

/* The slot of this port, or that where it would be. */
static uint16_t *port_slot(struct records *b, const struct port *p)
{
	uint64_t words[2 * PORT_NAME / 8] = {0};
	char *name = (char *)words;
	uint32_t i;

	/* What is behind their ends is undefined. */
	memcpy(name, p->name, strlen(p->name));
	memcpy(name + PORT_NAME, p->application, strlen(p->application));
	i = hash_short(hash_words(&b->secret, words, sizeof(words) / 8) + p->linktype);
	while (b->slots[i % PORT_SLOTS] && !is_same(&b->ports[b->slots[i % PORT_SLOTS] - 1], p))
		i++;
	return &b->slots[i % PORT_SLOTS];
}

/* ringtap record names ports so when it records several applications. */
static void show_application(struct port *p)
{
	size_t n = strlen(p->application);

	if (n && (strncmp(p->name, p->application, n) || p->name[n] != ':'))
		snprintf(p->shown, sizeof(p->shown), "%s:%s", p->application, p->name);
}

/* The port with this name, or a new one. PORTS_MAX: there is no room. Each section names its ports
 * again. */
static uint32_t find_port(struct records *b, const struct port *p)
{
	uint16_t *slot = port_slot(b, p);
	uint32_t i = b->port_count;

	if (*slot)
		return *slot - 1u;
	if (i == PORTS_MAX)
		return i;
	b->ports[i] = *p;
	b->ports[i].application_id = application_id(b, p->application);
	snprintf(b->ports[i].shown, sizeof(b->ports[i].shown), "%s", p->name);
	b->port_count++;
	/* With the second application, also those of the first. */
	for (uint32_t k = b->several ? i : 0; b->ports[i].application_id && k < i; k++)
		show_application(&b->ports[k]);
	b->several |= b->ports[i].application_id > 0;
	if (b->several)
		show_application(&b->ports[i]);
	*slot = (uint16_t)(i + 1);
	return i;
}

/* 2 | 2 | snaplen 4 | options */
static int take_interface(struct records *b, const uint8_t *body, size_t len)
{
	struct rt_pcapng_options o = {.p = body + 8, .end = body + len};
	struct local local = {.resolution = 6};
	struct port p = {.lost = COUNT_NONE, .missed = COUNT_NONE};
	uint32_t snaplen;

	if (len < 8)
		return bad(b, "an interface block of %zu bytes", len);
	if (b->local_count == PORTS_MAX)
		return bad(b, "more than %u interfaces", PORTS_MAX);
	p.linktype = get16(b, body);
	snaplen = get32(b, body + 4);
	p.cut = snaplen && snaplen < 65535;
	snprintf(p.name, sizeof(p.name), "interface %u", b->local_count);
	while (next_option(b, &o)) {
		if (o.code == IF_NAME && o.len)
			copy_text(p.name, o.value, o.len);
		else if (o.code == IF_DESCRIPTION)
			copy_application(p.application, o.value, o.len);
		else if (o.code == IF_TSRESOL && o.len == 1)
			local.resolution = o.value[0];
		else if (o.code == IF_TSOFFSET && o.len == 8)
			local.offset_s = (int64_t)get64(b, o.value);
		else if (o.code == IF_FILTER && o.len > 1)
			p.filtered = true;
	}
	local.port = find_port(b, &p);
	if (local.port == PORTS_MAX)
		return bad(b, "more than %u ports in all files", PORTS_MAX);
	b->ports[local.port].filtered |= p.filtered;
	b->ports[local.port].cut |= p.cut;
	b->local[b->local_count++] = local;
	return 0;
}

/* Counts are those since the capture began, also where it is spread over several files. */
static void begin_capture(struct port *p, uint64_t start)
{
	if (p->start == start)
		return;
	p->lost_before += p->lost == COUNT_NONE ? 0 : p->lost;
	p->lost = p->missed = COUNT_NONE;
	p->start = start;
}

/* interface 4 | time 8 | options */
static int take_statistics(struct records *b, const uint8_t *body, size_t len)
{
	struct rt_pcapng_options o = {.p = body + 12, .end = body + len};
	struct port *p;

	if (len < 12 || get32(b, body) >= b->local_count)
		return bad(b, "statistics of an interface that is not there");
	p = &b->ports[b->local[get32(b, body)].port];
	while (next_option(b, &o)) {
		if (o.len != 8)
			continue;
		if (o.code == ISB_STARTTIME)
			begin_capture(p, get64(b, o.value));
		else if (o.code == ISB_IFDROP)
			p->missed = get64(b, o.value);
		else if (o.code == ISB_OSDROP)
			p->lost = get64(b, o.value);
	}
	return 0;
}

/* ---- packets ---- */

static uint64_t to_ns(const struct local *l, uint64_t t)
{
	return rt_pcapng_ns(t, l->resolution) + (uint64_t)l->offset_s * 1000000000u;
}

static void take_options(const struct records *b, const uint8_t *at, const uint8_t *end,
	struct record *r, struct port *p)
{
	struct rt_pcapng_options o = {.p = at, .end = end};

	while (next_option(b, &o)) {
		if (o.code == EPB_FLAGS && o.len == 4)
			r->direction = get32(b, o.value) & 3;
		else if (o.code == EPB_QUEUE && o.len == 4)
			r->queue = get32(b, o.value);
		else if (o.code == EPB_PACKETID && o.len == 8)
			r->id = get64(b, o.value);
		else if (o.code == EPB_DROPCOUNT && o.len == 8)
			p->gaps += get64(b, o.value);
	}
	if (r->direction > DIRECTION_TX)
		r->direction = DIRECTION_NONE;
}

/* interface 4 | time, high and low 8 | captured length 4 | original length 4 | packet | options */
static int take_packet(struct records *b, const uint8_t *body, size_t len, struct record *r)
{
	uint32_t interface, padded;
	struct port *p;

	if (len < RT_PCAPNG_EPB_FIXED)
		return bad(b, "a packet block of %zu bytes", len);
	interface = get32(b, body);
	*r = (struct record){.number = b->number,
		.queue = NO_QUEUE,
		.caplen = get32(b, body + 12),
		.length = get32(b, body + 16),
		.data = body + RT_PCAPNG_EPB_FIXED};
	if (interface >= b->local_count)
		return bad(b, "a packet of interface %u, which is not there", interface);
	padded = (r->caplen + 3) & ~3u;
	if (r->caplen > len || padded > len - RT_PCAPNG_EPB_FIXED)
		return bad(b, "a packet that is longer than its block");
	r->port = b->local[interface].port;
	r->ns = to_ns(
		&b->local[interface], (uint64_t)get32(b, body + 4) << 32 | get32(b, body + 8));
	p = &b->ports[r->port];
	take_options(b, r->data + padded, body + len, r, p);
	p->received += r->direction == DIRECTION_RX;
	p->sent += r->direction == DIRECTION_TX;
	return 1;
}

/* ---- fates ---- */

/* Adds the counters of all queues. */
static void take_queues(struct records *b, const uint8_t *p, uint32_t count)
{
	for (; count--; p += sizeof(struct rt_fates_queue)) {
		uint64_t lost = get64(b, p + offsetof(struct rt_fates_queue, lost));

		b->fates_lost += lost < COUNT_NONE - b->fates_lost ? lost : 0;
	}
}

/* kind 2 | bytes of an entry 2 | entries 4 | time 8 | entries. Types of local use may be those of
 * other programs: what is not as we write it is left out. */
static int take_fates(struct records *b, const uint8_t *body, size_t len, struct record *r)
{
	uint32_t count;
	size_t each;

	if (len < RT_FATES_FIXED)
		return 0;
	each = get16(b, body + 2);
	count = get32(b, body + 4);
	len -= RT_FATES_FIXED;
	*r = (struct record){.queue = NO_QUEUE};
	switch (get16(b, body)) {
	case RT_FATES_BEGIN:
		r->kind = RECORD_FATES_BEGIN;
		r->ns = (uint64_t)get32(b, body + 8) << 32 | get32(b, body + 12);
		return 1;
	case RT_FATES_END:
		if (each != sizeof(struct rt_fates_queue) || len / each < count)
			return 0;
		take_queues(b, body + RT_FATES_FIXED, count);
		r->kind = RECORD_FATES_END;
		return 1;
	case RT_FATES_PACKETS:
		if (each != sizeof(struct rt_fates_packet) || len / each < count)
			return 0;
		b->fates = body + RT_FATES_FIXED;
		b->fates_left = count;
	}
	return 0;
}

/* The next fate of the block; 0: this one is of no interface that there is. */
static int next_fate(struct records *b, struct record *r)
{
	const uint8_t *p = b->fates;
	uint32_t interface = get32(b, p + offsetof(struct rt_fates_packet, interface));

	b->fates += sizeof(struct rt_fates_packet);
	b->fates_left--;
	if (interface >= b->local_count)
		return 0;
	*r = (struct record){.kind = RECORD_FATE,
		.fate = p[offsetof(struct rt_fates_packet, fate)],
		.why = p[offsetof(struct rt_fates_packet, why)],
		.id = get64(b, p),
		.ns = (uint64_t)get32(b, p + offsetof(struct rt_fates_packet, ns_high)) << 32 |
		      get32(b, p + offsetof(struct rt_fates_packet, ns_low)),
		.port = b->local[interface].port,
		.queue = get16(b, p + offsetof(struct rt_fates_packet, queue))};
	return 1;
}

/* ---- blocks ---- */

/* The byte order stands in the body of the section's header; its type reads the same in both. */
static int begin_section(struct records *b, const uint8_t *p, size_t have)
{
	uint32_t magic = 0;

	if (have >= 12)
		memcpy(&magic, p + 8, sizeof(magic));
	if (magic != RT_PCAPNG_MAGIC && magic != RT_PCAPNG_MAGIC_OTHER)
		return bad(b, "no byte order in the section header");
	b->swapped = magic == RT_PCAPNG_MAGIC_OTHER;
	b->begun = true;
	b->local_count = 0;
	return 0;
}

/* The next block, whole, at *p. Its length; 0: the end of the file; -errno. */
static ssize_t next_block(struct records *b, const uint8_t **p)
{
	ssize_t have;
	uint32_t type, len;

	bytes_skip(b->in, b->used);
	b->used = 0;
	have = bytes_peek(b->in, 12, p);
	if (have <= 0)
		return have;
	if (have < 12)
		return bad(b, "the file ends in the middle of a block");
	memcpy(&type, *p, sizeof(type));
	if (type == RT_PCAPNG_SHB && begin_section(b, *p, (size_t)have))
		return -EBADMSG;
	if (!b->begun)
		return bad(b, "this is not a pcapng file");
	len = get32(b, *p + 4);
	if (len < 12 || len % 4 || len > RT_PCAPNG_BLOCK_MAX)
		return bad(b, "a block of %u bytes", len);
	if ((size_t)have < len)
		have = bytes_peek(b->in, len, p);
	if (have < 0)
		return have;
	if ((size_t)have < len)
		return bad(b, "the file ends in the middle of a block");
	if (get32(b, *p + len - 4) != len)
		return bad(b, "a block with two different lengths");
	b->used = len;
	return (ssize_t)len;
}

static int take_block(struct records *b, const uint8_t *p, size_t len, struct record *r)
{
	const uint8_t *body = p + 8;

	len -= 12;
	switch (get32(b, p)) {
	case RT_PCAPNG_EPB: b->number++; return take_packet(b, body, len, r);
	case RT_PCAPNG_OBSOLETE_PACKET:
	case RT_PCAPNG_SIMPLE_PACKET: b->number++; return 0;
	case RT_PCAPNG_IDB: return take_interface(b, body, len);
	case RT_PCAPNG_ISB: return take_statistics(b, body, len);
	case RT_PCAPNG_FATES: return take_fates(b, body, len, r);
	default: return 0;
	}
}

/* Whether the next block is in memory: reading more would move the packets before it. */
static bool is_ready(const struct records *b)
{
	const uint8_t *p;
	size_t have = bytes_ready(b->in, &p);

	/* A section may have its lengths in the other byte order. */
	return have >= b->used + 12 && get32(b, p + b->used) != RT_PCAPNG_SHB &&
	       get32(b, p + b->used + 4) <= have - b->used;
}

int records_next(struct records *b, struct record *r, int max)
{
	int n = 0;

	if (b->error[0])
		return -EBADMSG;
	do {
		const uint8_t *p;
		ssize_t len;
		int ret;

		if (b->fates_left) {
			n += next_fate(b, &r[n]);
			continue;
		}
		len = next_block(b, &p);
		if (len == -EBADMSG && !b->error[0])
			bad(b, "the compressed data is damaged, or ends too early");
		if (len <= 0)
			return n ? n : (int)len;
		ret = take_block(b, p, (size_t)len, &r[n]);
		if (ret < 0)
			return n ? n : ret;
		n += ret;
	} while (!n || (n < max && (b->fates_left || is_ready(b))));
	return n;
}

bool records_swapped(const struct records *b)
{
	return b->swapped;
}

ssize_t records_block(struct records *b, const uint8_t **p, struct record *r)
{
	ssize_t len = b->error[0] ? -EBADMSG : next_block(b, p);
	int ret;

	*r = (struct record){.queue = NO_QUEUE};
	if (len <= 0)
		return len;
	ret = take_block(b, *p, (size_t)len, r);
	b->fates_left = 0;
	return ret < 0 ? ret : len;
}
