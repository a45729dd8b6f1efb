/* SPDX-License-Identifier: BSD-3-Clause */
/* Classic pcap files as pcapng: packets and times unchanged. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/pcapng.h"
#include "common/pcapng_read.h"
#include "decoder.h"
#include "packet/window.h"

#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du

enum { OPT_END, OPT_TSRESOL = 9, OPT_FCSLEN = 13 };

struct conversion {
	struct window in;
	uint64_t at;
	bool swapped, ns;
	int to;
	uint8_t *buf; /* OUT bytes of what is written */
	size_t used;
};

#define OUT ((1u << 20) + RT_PCAPNG_BLOCK_MAX)

static int write_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int flush(struct conversion *c)
{
	int ret = write_all(c->to, c->buf, c->used);

	c->used = 0;
	return ret;
}

static void put(struct conversion *c, const void *p, size_t len)
{
	memcpy(c->buf + c->used, p, len);
	memset(c->buf + c->used + len, 0, -len & 3);
	c->used += (len + 3) & ~(size_t)3;
}

static void put32(struct conversion *c, uint32_t v)
{
	put(c, &v, sizeof(v));
}

static void put_option(struct conversion *c, uint16_t code, uint8_t value)
{
	uint16_t head[2] = {code, 1};

	put(c, head, sizeof(head));
	put(c, &value, 1);
}

/* magic 4 | version 4 | 8 | snaplen 4 | link type 2 (28 bits), FCS length in the upper 4 */
static int put_headers(struct conversion *c, const uint8_t *p)
{
	static const struct rt_pcapng_shb shb = {.application = "ringtap " RINGTAP_VERSION};
	uint32_t network = rt_pcapng_get32(p + 20, c->swapped), total;
	uint16_t link[2] = {(uint16_t)network, 0};
	ssize_t n = rt_pcapng_shb(c->buf, OUT, &shb);
	size_t begin;

	if (n < 0)
		return (int)n;
	c->used = begin = (size_t)n;
	put32(c, RT_PCAPNG_IDB);
	put32(c, 0);
	put(c, link, sizeof(link));
	put32(c, rt_pcapng_get32(p + 16, c->swapped));
	put_option(c, OPT_TSRESOL, c->ns ? 9 : 6);
	if (network & 1u << 26)
		put_option(c, OPT_FCSLEN, (uint8_t)(network >> 28));
	put32(c, OPT_END);
	total = (uint32_t)(c->used - begin) + 4;
	memcpy(c->buf + begin + 4, &total, sizeof(total));
	put32(c, total);
	return 0;
}

/* seconds 4 | fraction 4 | captured 4 | length 4 | packet */
static void put_packet(struct conversion *c, const uint8_t *p, uint32_t captured)
{
	uint64_t t = (uint64_t)rt_pcapng_get32(p, c->swapped) * (c->ns ? 1000000000u : 1000000u) +
		     rt_pcapng_get32(p + 4, c->swapped);
	uint32_t total = 32 + ((captured + 3) & ~3u);

	put32(c, RT_PCAPNG_EPB);
	put32(c, total);
	put32(c, 0);
	put32(c, (uint32_t)(t >> 32));
	put32(c, (uint32_t)t);
	put32(c, captured);
	put32(c, rt_pcapng_get32(p + 12, c->swapped));
	put(c, p + 16, captured);
	put32(c, total);
}

/* 1: one packet more; 0: the end, or the file is torn; -errno. */
static int next(struct conversion *c, char *torn, size_t size)
{
	const uint8_t *p;
	ssize_t have = window_peek(&c->in, c->at, 16, &p);
	uint32_t captured;

	if (have <= 0)
		return (int)have;
	captured = have < 16 ? 0 : rt_pcapng_get32(p + 8, c->swapped);
	if (captured > RT_PCAPNG_BLOCK_MAX - 64) {
		snprintf(torn, size, "byte %" PRIu64 ": a packet of %u bytes", c->at, captured);
		return 0;
	}
	if (have >= 16 && (size_t)have < 16u + captured)
		have = window_peek(&c->in, c->at, 16u + captured, &p);
	if (have < 0)
		return (int)have;
	if ((size_t)have < 16u + captured) {
		snprintf(torn, size, "byte %" PRIu64 ": the file ends in the middle of a packet",
			c->at);
		return 0;
	}
	put_packet(c, p, captured);
	c->at += 16u + captured;
	return 1;
}

static int convert(struct conversion *c, char *torn, size_t size)
{
	const uint8_t *p;
	ssize_t have = window_peek(&c->in, 0, 24, &p);
	uint32_t magic;
	int ret;

	if (have < 24)
		return have < 0 ? (int)have : 1;
	magic = rt_pcapng_get32(p, false);
	c->swapped = magic == __builtin_bswap32(MAGIC_US) || magic == __builtin_bswap32(MAGIC_NS);
	magic = rt_pcapng_get32(p, c->swapped);
	if (magic != MAGIC_US && magic != MAGIC_NS)
		return 1;
	c->ns = magic == MAGIC_NS;
	ret = put_headers(c, p);
	for (c->at = 24; !ret;) {
		ret = next(c, torn, size);
		if (ret <= 0)
			break;
		ret = c->used >= 1u << 20 ? flush(c) : 0;
	}
	return ret ? ret : flush(c);
}

int rt_archive_convert(int from, int to, char *torn, size_t size)
{
	struct conversion c = {.to = to, .buf = malloc(OUT)};
	int ret = window_open(&c.in, from);

	torn[0] = '\0';
	if (!c.buf)
		ret = -ENOMEM;
	if (!ret)
		ret = convert(&c, torn, size);
	window_close(&c.in);
	free(c.buf);
	return ret;
}
