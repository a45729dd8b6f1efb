/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "annotate.h"
#include "common/array.h"
#include "packet/unpack.h"
#include "base/util.h"

#define EPB_HEADER  28u
#define OPT_COMMENT 1u
#define TEXT_MAX    192

/* ---- what is to be written ---- */

void annotate_note(void *ctx, const struct outcome *o)
{
	struct annotations *a = ctx;
	bool known = o->fate == FATE_NOT_OFFERED || o->fate == FATE_OPEN ||
		     o->fate == FATE_UNDECIDED || o->fate == FATE_LIKELY_OFFERED;

	if (a->error || !known)
		return;
	if (a->count == a->room && 2 * a->count * sizeof(*a->list) > a->memory)
		a->error = -E2BIG;
	else
		a->error = rt_array_room(a->list, a->room, a->count + 1);
	if (a->error)
		return;
	a->list[a->count++] = (struct annotation){.frame = o->rx->number,
		.after_ns = o->noticed_ns > o->rx->ns ? o->noticed_ns - o->rx->ns : 0,
		.reason = o->reason,
		.fate = o->fate};
}

void annotate_free(struct annotations *a)
{
	free(a->list);
	*a = (struct annotations){0};
}

static int by_frame(const void *a, const void *b)
{
	const struct annotation *x = a, *y = b;

	return (x->frame > y->frame) - (x->frame < y->frame);
}

/* extcap/ringtap.lua reads these texts. */
static size_t text_of(const struct annotation *a, char text[TEXT_MAX])
{
	switch (a->fate) {
	case FATE_NOT_OFFERED:
		snprintf(text, TEXT_MAX,
			"ringtap: not offered; noticed %" PRIu64 ".%09" PRIu64
			" s after its reception%s%s",
			a->after_ns / NS_PER_S, a->after_ns % NS_PER_S,
			a->reason ? "; reason: " : "", a->reason ? a->reason : "");
		break;
	case FATE_OPEN:
		snprintf(text, TEXT_MAX, "ringtap: open at the end of the recording");
		break;
	case FATE_LIKELY_OFFERED:
		snprintf(text, TEXT_MAX, "ringtap: unknown; likely offered");
		break;
	default: snprintf(text, TEXT_MAX, "ringtap: unknown");
	}
	return strlen(text);
}

/* ---- writing ---- */

/* A number in the file's byte order. */
static void put32(uint8_t *p, bool swapped, uint32_t v)
{
	v = swapped ? __builtin_bswap32(v) : v;
	memcpy(p, &v, sizeof(v));
}

static void put16(uint8_t *p, bool swapped, uint16_t v)
{
	v = swapped ? __builtin_bswap16(v) : v;
	memcpy(p, &v, sizeof(v));
}

/* The block at p with the comment as its first option. */
static int put_annotated(FILE *f, const uint8_t *p, size_t len, const struct record *r,
	const struct annotation *a, bool swapped)
{
	const size_t data = EPB_HEADER + ((r->caplen + 3) & ~3u), options = len - 4 - data;
	uint8_t header[8], option[4 + TEXT_MAX + 8] = {0}, trailer[4];
	size_t text = text_of(a, (char *)option + 4);
	size_t added = 4 + ((text + 3) & ~(size_t)3) + (options ? 0 : 4); /* opt_endofopt */
	uint32_t total = (uint32_t)(len + added);

	memcpy(header, p, 4);
	put32(header + 4, swapped, total);
	put32(trailer, swapped, total);
	put16(option, swapped, OPT_COMMENT);
	put16(option + 2, swapped, (uint16_t)text);
	fwrite(header, 1, sizeof(header), f);
	fwrite(p + 8, 1, data - 8, f);
	fwrite(option, 1, added, f);
	fwrite(p + data, 1, options, f);
	fwrite(trailer, 1, sizeof(trailer), f);
	return ferror(f) ? -EIO : 0;
}

static int put_block(struct annotations *a, size_t *at, FILE *f, const uint8_t *p, size_t len,
	const struct record *r, bool swapped)
{
	while (*at < a->count && a->list[*at].frame < r->number)
		++*at;
	if (r->number && *at < a->count && a->list[*at].frame == r->number)
		return put_annotated(f, p, len, r, &a->list[*at], swapped);
	return fwrite(p, 1, len, f) == len ? 0 : -EIO;
}

static int copy_file(
	struct annotations *a, size_t *at, struct records *b, const char *path, FILE *f)
{
	struct window in;
	int ret = unpack_open(&in, path);

	if (ret) {
		message_print("explain: %s: %s", path, unpack_error(ret));
		window_close(&in);
		return ret;
	}
	records_start(b, &in);
	for (;;) {
		const uint8_t *p;
		struct record r;
		ssize_t len = records_block(b, &p, &r);

		if (len <= 0) /* what is wrong was said when it was read first */
			return len == -EBADMSG ? 0 : (int)len;
		ret = put_block(a, at, f, p, (size_t)len, &r, records_swapped(b));
		if (ret)
			return ret;
	}
}

int annotate_write(struct annotations *a, const char *const *files, unsigned count, FILE *f)
{
	struct records *b;
	int ret = records_new(&b);
	size_t at = 0;

	if (a->count)
		qsort(a->list, a->count, sizeof(*a->list), by_frame);
	for (unsigned i = 0; i < count && !ret; i++)
		ret = copy_file(a, &at, b, files[i], f);
	records_free(b);
	return ret;
}
