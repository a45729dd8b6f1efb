/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcapng.h"

/* Option codes: sections 3.5.1, 4.1, 4.2 and 4.6. */
enum {
	OPT_END = 0,
	OPT_COMMENT = 1,
	SHB_HARDWARE = 2,
	SHB_OS = 3,
	SHB_USERAPPL = 4,
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	IF_MACADDR = 6,
	IF_SPEED = 8,
	IF_TSRESOL = 9,
	IF_FILTER = 11,
	IF_OS = 12,
	IF_HARDWARE = 15,
	ISB_STARTTIME = 2,
	ISB_ENDTIME = 3,
	ISB_IFRECV = 4,
	ISB_IFDROP = 5,
	ISB_FILTERACCEPT = 6,
	ISB_OSDROP = 7,
	ISB_USRDELIV = 8,
};

/* A block under construction. Its length grows also where the buffer ends. The first error sticks.
 */
struct block {
	uint8_t *buf;
	size_t size;
	size_t len;
	int error;
};

/* The place of the next len bytes, and of their padding; NULL: they do not fit. */
static uint8_t *take(struct block *b, size_t len)
{
	size_t at = b->len, padded = (len + 3) & ~(size_t)3;

	b->len += padded;
	if (b->len > b->size)
		return NULL;
	memset(b->buf + at, 0, padded);
	return b->buf + at;
}

static void put(struct block *b, const void *data, size_t len)
{
	uint8_t *at = take(b, len);

	if (at)
		memcpy(at, data, len);
}

static void put16x2(struct block *b, uint16_t first, uint16_t second)
{
	uint16_t v[2] = {first, second};

	put(b, v, sizeof(v));
}

static void put32(struct block *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void option(struct block *b, uint16_t code, const void *data, size_t len)
{
	if (len > RT_PCAPNG_TEXT_MAX && !b->error)
		b->error = -EMSGSIZE;
	put16x2(b, code, (uint16_t)len);
	put(b, data, len);
}

static void option_text(struct block *b, uint16_t code, const char *text)
{
	if (text && *text)
		option(b, code, text, strlen(text));
}

/* Times are two 32-bit halves, high one first, whatever the byte order (section 4.6). */
static void option_time(struct block *b, uint16_t code, uint64_t ns)
{
	uint32_t v[2] = {(uint32_t)(ns >> 32), (uint32_t)ns};

	if (ns != RT_PCAPNG_NONE)
		option(b, code, v, sizeof(v));
}

static void option_count(struct block *b, uint16_t code, uint64_t v)
{
	if (v != RT_PCAPNG_NONE)
		option(b, code, &v, sizeof(v));
}

static struct block begin(void *buf, size_t size, uint32_t type)
{
	struct block b = {.buf = buf, .size = size};

	put32(&b, type);
	put32(&b, 0);
	return b;
}

static ssize_t end(struct block *b)
{
	uint32_t total = (uint32_t)b->len + 8;

	put16x2(b, OPT_END, 0);
	put32(b, total);
	if (b->error)
		return b->error;
	if (b->len <= b->size)
		memcpy(b->buf + 4, &total, sizeof(total));
	return (ssize_t)b->len;
}

ssize_t rt_pcapng_shb(void *buf, size_t size, const struct rt_pcapng_shb *shb)
{
	struct block b = begin(buf, size, RT_PCAPNG_SHB);
	const int64_t unknown = -1;

	put32(&b, RT_PCAPNG_MAGIC);
	put16x2(&b, 1, 0);
	put(&b, &unknown, sizeof(unknown));
	option_text(&b, OPT_COMMENT, shb->comment);
	for (unsigned i = 0; shb->more && shb->more[i]; i++)
		option_text(&b, OPT_COMMENT, shb->more[i]);
	option_text(&b, SHB_HARDWARE, shb->hardware);
	option_text(&b, SHB_OS, shb->os);
	option_text(&b, SHB_USERAPPL, shb->application);
	return end(&b);
}

/* if_filter begins with a byte that gives the type of what follows (section 4.2). */
static void option_filter(struct block *b, const char *text)
{
	size_t len = strlen(text);
	uint8_t *at;

	if (len + 1 > RT_PCAPNG_TEXT_MAX && !b->error)
		b->error = -EMSGSIZE;
	put16x2(b, IF_FILTER, (uint16_t)(len + 1));
	at = take(b, len + 1);
	if (at)
		memcpy(at + 1, text, len);
}

ssize_t rt_pcapng_idb(void *buf, size_t size, const struct rt_pcapng_idb *idb)
{
	struct block b = begin(buf, size, RT_PCAPNG_IDB);
	const uint8_t nanoseconds = 9;

	put16x2(&b, idb->linktype ? idb->linktype : RT_LINKTYPE_ETHERNET, 0);
	put32(&b, idb->snaplen);
	option_text(&b, OPT_COMMENT, idb->comment);
	for (size_t i = 0; i < sizeof(idb->remark) / sizeof(idb->remark[0]); i++)
		option_text(&b, OPT_COMMENT, idb->remark[i]);
	option_text(&b, IF_NAME, idb->name);
	option_text(&b, IF_DESCRIPTION, idb->description);
	if (idb->mac)
		option(&b, IF_MACADDR, idb->mac, 6);
	if (idb->speed_bits)
		option(&b, IF_SPEED, &idb->speed_bits, sizeof(idb->speed_bits));
	option(&b, IF_TSRESOL, &nanoseconds, sizeof(nanoseconds));
	if (idb->filter && *idb->filter)
		option_filter(&b, idb->filter);
	option_text(&b, IF_OS, idb->os);
	option_text(&b, IF_HARDWARE, idb->hardware);
	return end(&b);
}

static void option_comment(struct block *b, const char *text)
{
	if (text && *text)
		option(b, OPT_COMMENT, text, strnlen(text, RT_PCAPNG_COMMENT_MAX));
}

ssize_t rt_pcapng_isb(void *buf, size_t size, const struct rt_pcapng_isb *isb)
{
	struct block b = begin(buf, size, RT_PCAPNG_ISB);

	put32(&b, isb->interface_id);
	put32(&b, (uint32_t)(isb->time_ns >> 32));
	put32(&b, (uint32_t)isb->time_ns);
	for (unsigned i = 0; i < RT_PCAPNG_COMMENTS; i++)
		option_comment(&b, isb->comment[i]);
	option_time(&b, ISB_STARTTIME, isb->starttime_ns);
	option_time(&b, ISB_ENDTIME, isb->endtime_ns);
	option_count(&b, ISB_IFRECV, isb->ifrecv);
	option_count(&b, ISB_IFDROP, isb->ifdrop);
	option_count(&b, ISB_FILTERACCEPT, isb->filteraccept);
	option_count(&b, ISB_OSDROP, isb->osdrop);
	option_count(&b, ISB_USRDELIV, isb->usrdeliv);
	return end(&b);
}

ssize_t rt_pcapng_fates(void *buf, size_t size, enum rt_fates_kind kind, uint64_t ns,
	const void *entries, uint32_t count)
{
	static const uint16_t sizes[] = {[RT_FATES_PACKETS] = sizeof(struct rt_fates_packet),
		[RT_FATES_END] = sizeof(struct rt_fates_queue),
		[RT_FATES_REASONS] = sizeof(struct rt_fates_reason)};
	struct block b = begin(buf, size, RT_PCAPNG_FATES);
	uint32_t total;

	put16x2(&b, (uint16_t)kind, sizes[kind]);
	put32(&b, count);
	put32(&b, (uint32_t)(ns >> 32));
	put32(&b, (uint32_t)ns);
	if (count)
		put(&b, entries, (size_t)count * sizes[kind]);
	total = (uint32_t)b.len + 4;
	put32(&b, total);
	if (b.len <= b.size)
		memcpy(b.buf + 4, &total, sizeof(total));
	return (ssize_t)b.len;
}
