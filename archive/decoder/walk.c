/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/pcapng.h"
#include "walk.h"

enum { OPT_COMMENT = 1, SHB_HARDWARE, SHB_OS, SHB_APPLICATION };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_SPEED = 8, IF_FILTER = 11, IF_OS = 12 };
enum { IF_HARDWARE = 15 };

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
	free(i->first);
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
	blocks_close(&w->b);
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
	int ret;

	*w = (struct walk){.fates_begun = from->fates_begun};
	ret = blocks_fork(&w->b, &from->b);
	for (uint32_t i = from->base; !ret && i < from->count; i++) {
		struct iface *copy = rt_array_add(w->ifs, w->count);

		if (!copy)
			return -ENOMEM;
		*copy = from->ifs[i];
		copy->name = copy->description = copy->filter = copy->hardware = copy->os =
			copy->first = NULL;
	}
	return ret;
}

/* Appends a block to what later parts of this section begin with. */
static int keep_block(struct walk *w, const struct block *f)
{
	int ret = rt_array_room(w->header, w->header_room, w->header_len + f->len);

	if (ret)
		return ret;
	memcpy(w->header + w->header_len, f->bytes, f->len);
	w->header_len += f->len;
	return 0;
}

/* A part has not the section's length. */
static int begin_section(struct walk *w, const struct block *f)
{
	struct rt_pcapng_options o = block_options(f, BLOCK_SECTION);
	int ret;

	w->fates_begun = false;
	w->base = w->count;
	w->header_len = 0;
	ret = keep_block(w, f);
	if (ret)
		return ret;
	memset(w->header + 16, 0xff, 8);
	free_section(w);
	while (rt_pcapng_option_next(&o, w->b.swapped)) {
		if (o.code == OPT_COMMENT)
			keep_text(&w->comment, o.value, o.len);
		else if (o.code == SHB_HARDWARE)
			keep_text(&w->hardware, o.value, o.len);
		else if (o.code == SHB_OS)
			keep_text(&w->os, o.value, o.len);
		else if (o.code == SHB_APPLICATION)
			keep_text(&w->application, o.value, o.len);
	}
	return BLOCK_OTHER;
}

/* "sampling: every=N": reader/capture/pcapng.c writes it. */
static void sampling_parse(struct iface *i, const uint8_t *text, size_t len)
{
	static const char before[] = "sampling: every=";
	const size_t n = sizeof(before) - 1;
	char number[12] = "";

	if (len <= n || memcmp(text, before, n))
		return;
	memcpy(number, text + n, len - n < sizeof(number) ? len - n : sizeof(number) - 1);
	i->sample = (uint32_t)strtoul(number, NULL, 10);
}

/* "first: bytes=N flows=M" or "first: packets=N flows=M", and " inner": the same writes it. */
static void first_parse(struct iface *i, const uint8_t *text, size_t len)
{
	static const char before[] = "first: ";
	const size_t n = sizeof(before) - 1;

	if (len > n && !memcmp(text, before, n))
		keep_text(&i->first, text + n, len - n);
}

static void interface_option(
	const struct walk *w, struct iface *i, const struct rt_pcapng_options *o)
{
	switch (o->code) {
	case OPT_COMMENT:
		clock_parse(&i->clock, o->value, o->len);
		sampling_parse(i, o->value, o->len);
		first_parse(i, o->value, o->len);
		return;
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
			i->speed = rt_pcapng_get64(o->value, w->b.swapped);
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

static int add_interface(struct walk *w, const struct block *f)
{
	struct rt_pcapng_options o = block_options(f, BLOCK_INTERFACE);
	struct iface *i;
	int ret;

	if (w->count == INTERFACES)
		return blocks_refuse(&w->b, f->offset, "more than %u interfaces", INTERFACES);
	if (w->header_len + f->len > WALK_HEADER)
		return blocks_refuse(
			&w->b, f->offset, "interfaces of more than %u MiB", WALK_HEADER >> 20);
	ret = keep_block(w, f);
	if (ret)
		return ret;
	i = rt_array_add(w->ifs, w->count);
	if (!i)
		return -ENOMEM;
	i->of = w->b.ifs[f->local];
	memset(&i->last, 0xff, sizeof(i->last));
	while (rt_pcapng_option_next(&o, w->b.swapped))
		interface_option(w, i, &o);
	i->application = application_of(i->description);
	return i->clock.said ? BLOCK_INTERFACE : BLOCK_OTHER;
}

static void take_statistics(struct walk *w, const struct block *f)
{
	struct rt_pcapng_options o = block_options(f, BLOCK_STATISTICS);
	struct iface *i = walk_iface(w, f->local);

	w->before = i->last;
	i->last = w->b.statistics;
	i->report.said = false;
	while (rt_pcapng_option_next(&o, w->b.swapped))
		if (o.code == OPT_COMMENT)
			clock_parse(&i->report, o.value, o.len);
}

static void count_packet(struct walk *w, const struct block *f)
{
	struct iface *i = walk_iface(w, f->local);

	i->all++;
	i->gaps += f->dropcount;
}

/* The begin of fates belongs to each part. */
static int take_fates(struct walk *w, const struct block *f)
{
	if (w->b.fates.kind != RT_FATES_BEGIN || f->len >= 256 || w->fates_begun)
		return BLOCK_FATES;
	w->fates_begun = true;
	return keep_block(w, f) ?: BLOCK_FATES;
}

int walk_next(struct walk *w, struct block *f)
{
	const uint64_t start = w->b.next;

	do {
		int kind = blocks_next(&w->b, f);

		switch (kind) {
		case BLOCK_SECTION: kind = begin_section(w, f); break;
		case BLOCK_INTERFACE: kind = add_interface(w, f); break;
		case BLOCK_STATISTICS: take_statistics(w, f); break;
		case BLOCK_PACKET: count_packet(w, f); break;
		case BLOCK_FATES: kind = take_fates(w, f); break;
		}
		if (kind != BLOCK_OTHER)
			return kind;
	} while (w->b.next - start < WALK_FAR);
	return BLOCK_OTHER;
}
