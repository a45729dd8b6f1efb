/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash.h"
#include "common/pcapng.h"
#include "packet/blocks.h"
#include "records.h"

enum { OPT_COMMENT = 1, IF_NAME = 2, IF_DESCRIPTION = 3, IF_FILTER = 11 };

#define PORT_SLOTS (2 * PORTS_MAX) /* a power of two */

struct records {
	struct blocks blocks;
	uint64_t number;
	uint32_t *local; /* the ports of the section's interfaces */
	size_t local_room;
	struct port *ports;
	uint32_t port_count;
	bool several;               /* applications */
	uint16_t slots[PORT_SLOTS]; /* index of a port + 1; 0: empty */
	uint32_t fates_left;        /* in the last block, not returned yet */
	uint64_t fates_lost;
	struct secret secret;
	bool damaged; /* compressed data is */
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
	blocks_close(&b->blocks);
	free(b->ports);
	free(b->local);
	free(b);
}

void records_start(struct records *b, const struct window *in)
{
	blocks_start(&b->blocks, in);
	b->fates_left = 0;
	b->damaged = false;
}

const char *records_error(const struct records *b)
{
	return b->damaged ? "the compressed data is damaged, or ends too early" : b->blocks.torn;
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

/* ---- interfaces ---- */

/* Replaces characters that a terminal would not print by '?'. */
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

	/* Bytes behind their ends are undefined. */
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

/* "sampling: every=N" and "first: bytes=N flows=M": reader/capture/pcapng.c writes them. */
static void take_comment(struct port *p, const uint8_t *value, size_t len)
{
	static const char sampling[] = "sampling: every=", first[] = "first: ";
	char text[PORT_NAME];

	copy_text(text, value, len);
	if (!strncmp(text, sampling, strlen(sampling)))
		p->sample = (uint32_t)strtoul(text + strlen(sampling), NULL, 10);
	p->first |= !strncmp(text, first, strlen(first));
}

static int take_interface(struct records *b, const struct block *f)
{
	struct rt_pcapng_options o = block_options(f, BLOCK_INTERFACE);
	uint32_t snaplen = b->blocks.ifs[f->local].snaplen, port;
	struct port p = {.lost = NO_COUNT,
		.missed = NO_COUNT,
		.linktype = f->linktype,
		.cut = snaplen && snaplen < 65535};

	snprintf(p.name, sizeof(p.name), "interface %u", f->local);
	while (rt_pcapng_option_next(&o, b->blocks.swapped)) {
		if (o.code == IF_NAME && o.len)
			copy_text(p.name, o.value, o.len);
		else if (o.code == IF_DESCRIPTION)
			copy_application(p.application, o.value, o.len);
		else if (o.code == IF_FILTER && o.len > 1)
			p.filtered = true;
		else if (o.code == OPT_COMMENT)
			take_comment(&p, o.value, o.len);
	}
	if (rt_array_room(b->local, b->local_room, f->local + 1u))
		return -ENOMEM;
	b->local[f->local] = port = find_port(b, &p);
	if (port == PORTS_MAX) {
		blocks_refuse(&b->blocks, f->offset, "more than %u ports in all files", PORTS_MAX);
		return -EBADMSG;
	}
	b->ports[port].filtered |= p.filtered;
	b->ports[port].sample = p.sample > b->ports[port].sample ? p.sample : b->ports[port].sample;
	b->ports[port].first |= p.first;
	b->ports[port].cut |= p.cut;
	return 0;
}

/* Counts are those since the capture began, also where it is spread over several files. */
static void begin_capture(struct port *p, uint64_t start)
{
	if (p->start == start)
		return;
	p->lost_before += p->lost == NO_COUNT ? 0 : p->lost;
	p->lost = p->missed = NO_COUNT;
	p->start = start;
}

static int take_statistics(struct records *b, const struct block *f, struct record *r)
{
	const struct statistics *s = &b->blocks.statistics;
	struct port *p = &b->ports[b->local[f->local]];

	if (s->start_ns != NO_COUNT)
		begin_capture(p, s->start_ns);
	if (s->dropped != NO_COUNT)
		p->missed = s->dropped;
	if (s->os_dropped != NO_COUNT)
		p->lost = s->os_dropped;
	if (s->end_ns == NO_COUNT)
		return 0;
	*r = (struct record){.kind = RECORD_END, .ns = s->end_ns, .queue = NO_QUEUE};
	return 1;
}

/* ---- packets ---- */

static int take_packet(struct records *b, const struct block *f, struct record *r)
{
	struct port *p;

	b->number++;
	if (rt_pcapng_get32(f->bytes, b->blocks.swapped) != RT_PCAPNG_EPB)
		return 0;
	*r = (struct record){.number = b->number,
		.ns = (uint64_t)f->ns,
		.id = f->id,
		.port = b->local[f->local],
		.queue = f->queue,
		.direction = f->direction,
		.caplen = f->captured,
		.length = f->length,
		.data = f->data};
	p = &b->ports[r->port];
	p->gaps += f->dropcount;
	p->received += r->direction == DIRECTION_RX;
	p->sent += r->direction == DIRECTION_TX;
	return 1;
}

/* ---- fates ---- */

/* Adds the counters of all queues. */
static void take_queues(struct records *b)
{
	const uint8_t *p = b->blocks.fates.entries + offsetof(struct rt_fates_queue, lost);

	for (uint32_t i = 0; i < b->blocks.fates.count; i++) {
		uint64_t lost =
			rt_pcapng_get64(p + i * sizeof(struct rt_fates_queue), b->blocks.swapped);

		b->fates_lost += lost < NO_COUNT - b->fates_lost ? lost : 0;
	}
}

static int take_fates(struct records *b, struct record *r)
{
	*r = (struct record){.queue = NO_QUEUE};
	switch (b->blocks.fates.kind) {
	case RT_FATES_BEGIN:
		r->kind = RECORD_FATES_BEGIN;
		r->ns = b->blocks.fates.ns;
		return 1;
	case RT_FATES_END:
		take_queues(b);
		r->kind = RECORD_FATES_END;
		return 1;
	default: b->fates_left = b->blocks.fates.count; return 0;
	}
}

static int next_reason(struct records *b, struct record *r)
{
	const struct block_fates *f = &b->blocks.fates;
	const struct rt_fates_reason *p =
		(const struct rt_fates_reason *)f->entries + (f->count - b->fates_left--);

	*r = (struct record){.kind = RECORD_REASON,
		.queue = NO_QUEUE,
		.why = p->number,
		.fate = p->source,
		.caplen = sizeof(p->text),
		.data = (const uint8_t *)p->text};
	return 1;
}

/* The next fate of the block; 0: this one is of no interface that there is. */
static int next_fate(struct records *b, struct record *r)
{
	const struct block_fates *f = &b->blocks.fates;
	const uint8_t *p = f->entries + (f->count - b->fates_left) * sizeof(struct rt_fates_packet);
	bool swapped = b->blocks.swapped;
	uint32_t interface =
		rt_pcapng_get32(p + offsetof(struct rt_fates_packet, interface), swapped);

	b->fates_left--;
	if (interface >= b->blocks.count)
		return 0;
	*r = (struct record){.kind = RECORD_FATE,
		.fate = p[offsetof(struct rt_fates_packet, fate)],
		.why = p[offsetof(struct rt_fates_packet, why)],
		.id = rt_pcapng_get64(p, swapped),
		.ns = (uint64_t)rt_pcapng_get32(
			      p + offsetof(struct rt_fates_packet, ns_high), swapped)
			      << 32 |
		      rt_pcapng_get32(p + offsetof(struct rt_fates_packet, ns_low), swapped),
		.port = b->local[interface],
		.queue = rt_pcapng_get16(p + offsetof(struct rt_fates_packet, queue), swapped)};
	return 1;
}

/* ---- blocks ---- */

/* The records in the next block: 1 or 0. -ENODATA: the end of the file; -errno. */
static int take_block(struct records *b, struct block *f, struct record *r)
{
	int kind = blocks_next(&b->blocks, f);

	if (kind < 0) {
		b->damaged = kind == -EBADMSG;
		return kind;
	}
	switch (kind) {
	case BLOCK_END: return b->blocks.torn[0] ? -EBADMSG : -ENODATA;
	case BLOCK_PACKET: return take_packet(b, f, r);
	case BLOCK_INTERFACE: return take_interface(b, f);
	case BLOCK_STATISTICS: return take_statistics(b, f, r);
	case BLOCK_FATES: return take_fates(b, r);
	default: return 0;
	}
}

int records_next(struct records *b, struct record *r, int max)
{
	int n = 0;

	if (records_error(b)[0])
		return -EBADMSG;
	do {
		struct block f;
		int ret;

		if (b->fates_left) {
			n += b->blocks.fates.kind == RT_FATES_REASONS ? next_reason(b, &r[n])
								      : next_fate(b, &r[n]);
			continue;
		}
		ret = take_block(b, &f, &r[n]);
		if (ret < 0)
			return n ? n : ret == -ENODATA ? 0 : ret;
		n += ret;
	} while (!n || (n < max && (b->fates_left || blocks_ready(&b->blocks))));
	return n;
}

bool records_swapped(const struct records *b)
{
	return b->blocks.swapped;
}

ssize_t records_block(struct records *b, const uint8_t **p, struct record *r)
{
	struct block f;
	int ret;

	*r = (struct record){.queue = NO_QUEUE};
	if (records_error(b)[0])
		return -EBADMSG;
	ret = take_block(b, &f, r);
	b->fates_left = 0;
	if (ret < 0)
		return ret == -ENODATA ? 0 : ret;
	*p = f.bytes;
	return f.len;
}
