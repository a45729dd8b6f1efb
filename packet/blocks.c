/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blocks.h"
#include "common/pcapng.h"

#define BLOCK_MIN 12u /* type and both lengths */

int blocks_open(struct blocks *b, int fd)
{
	*b = (struct blocks){.fd = fd, .buf = malloc(BLOCKS_MAX)};
	return b->buf ? 0 : -ENOMEM;
}

void blocks_close(struct blocks *b)
{
	free(b->buf);
	b->buf = NULL;
}

int block_read(const uint8_t *p, size_t left, struct block *out)
{
	uint32_t last, magic;

	if (!left)
		return 0;
	if (left < BLOCK_MIN)
		return -ENODATA;
	memcpy(&out->type, p, 4);
	memcpy(&out->len, p + 4, 4);
	out->data = p;
	if (out->len < BLOCK_MIN || out->len % 4 || out->len > BLOCKS_MAX)
		return -EBADMSG;
	if (out->len > left)
		return -ENODATA;
	memcpy(&last, p + out->len - 4, 4);
	if (last != out->len)
		return -EBADMSG;
	if (out->type != RT_PCAPNG_SHB)
		return 1;
	memcpy(&magic, p + 8, 4);
	return magic == RT_PCAPNG_MAGIC ? 1 : -EBADMSG;
}

/* Adds what the file has, up to a whole buffer. 0 or -errno. */
static int refill(struct blocks *b)
{
	memmove(b->buf, b->buf + b->at, b->end - b->at);
	b->end -= b->at;
	b->at = 0;
	while (b->end < BLOCKS_MAX) {
		ssize_t n = read(b->fd, b->buf + b->end, BLOCKS_MAX - b->end);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			break;
		b->end += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int blocks_next(struct blocks *b, struct block *out)
{
	int ret = block_read(b->buf + b->at, b->end - b->at, out);

	if (!ret || ret == -ENODATA) {
		ret = refill(b);
		if (ret)
			return ret;
		ret = block_read(b->buf, b->end, out);
	}
	if (ret > 0)
		b->at += out->len;
	return ret;
}

int block_packet(const struct block *b, struct rt_record *r, const uint8_t **data)
{
	if (b->type != RT_EPB_TYPE || rt_record_read(b->data, b->len, r) || r->len != b->len)
		return -EBADMSG;
	*data = b->data + RT_EPB_HEADER;
	return 0;
}
