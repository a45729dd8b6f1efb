/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "bytes.h"

#define CHUNK      (1u << 20) /* of a read() */
#define MAGIC_ZSTD 0xfd2fb528u
#define MAGIC_LZ4  0x184d2204u

struct bytes {
	int fd; /* -1: memory */
	uint8_t *buf;
	size_t room, at, end; /* of buf; what lies between at and end is not used yet */
	uint64_t offset;      /* of buf[at] */
	bool ended;
	ZSTD_DCtx *zstd;
	LZ4F_dctx *lz4;
	bool whole;  /* compressed: the last frame is complete */
	uint8_t *in; /* compressed bytes */
	size_t in_at, in_end;
};

/* Read until len bytes are there or the end: a pipe has less at a time. */
static ssize_t read_some(struct bytes *b, uint8_t *dst, size_t len)
{
	ssize_t n;

	if (b->fd < 0)
		return 0;
	do
		n = read(b->fd, dst, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- compressed ---- */

static int unpack_zstd(struct bytes *b, uint8_t *dst, size_t len, size_t *out)
{
	ZSTD_inBuffer in = {b->in + b->in_at, b->in_end - b->in_at, 0};
	ZSTD_outBuffer to = {dst, len, 0};
	size_t ret = ZSTD_decompressStream(b->zstd, &to, &in);

	if (ZSTD_isError(ret))
		return -EBADMSG;
	b->in_at += in.pos;
	b->whole = ret == 0;
	*out = to.pos;
	return 0;
}

static int unpack_lz4(struct bytes *b, uint8_t *dst, size_t len, size_t *out)
{
	size_t used = b->in_end - b->in_at, made = len;
	size_t ret = LZ4F_decompress(b->lz4, dst, &made, b->in + b->in_at, &used, NULL);

	if (LZ4F_isError(ret))
		return -EBADMSG;
	b->in_at += used;
	b->whole = ret == 0;
	*out = made;
	return 0;
}

/* Without any bytes left a decoder may still have some to give. */
static ssize_t unpack(struct bytes *b, uint8_t *dst, size_t len)
{
	size_t out = 0;

	while (!out) {
		bool dry = b->in_at == b->in_end;
		int ret;

		if (dry) {
			ssize_t n = read_some(b, b->in, CHUNK);

			if (n < 0)
				return n;
			if (!n)
				return b->whole ? 0 : -EBADMSG;
			b->in_at = 0;
			b->in_end = (size_t)n;
		}
		ret = b->zstd ? unpack_zstd(b, dst, len, &out) : unpack_lz4(b, dst, len, &out);
		if (ret)
			return ret;
	}
	return (ssize_t)out;
}

/* The first bytes of the file, in buf, are those of a compressed one? Then they move to in. */
static int detect(struct bytes *b)
{
	uint32_t magic = 0;

	while (b->end < sizeof(magic)) {
		ssize_t n = read_some(b, b->buf + b->end, b->room - b->end);

		if (n <= 0)
			return (int)n;
		b->end += (size_t)n;
	}
	memcpy(&magic, b->buf, sizeof(magic));
	if (magic == MAGIC_ZSTD)
		b->zstd = ZSTD_createDCtx();
	else if (magic != MAGIC_LZ4)
		return 0;
	else if (LZ4F_isError(LZ4F_createDecompressionContext(&b->lz4, LZ4F_VERSION)))
		return -ENOMEM;
	b->in = malloc(CHUNK);
	if (!b->in || (!b->zstd && !b->lz4))
		return -ENOMEM;
	memcpy(b->in, b->buf, b->end);
	b->in_end = b->end;
	b->end = 0;
	return 0;
}

/* ---- opening ---- */

static int new_bytes(struct bytes **out, size_t room)
{
	struct bytes *b = calloc(1, sizeof(*b));

	*out = b;
	if (!b)
		return -ENOMEM;
	b->fd = -1;
	b->room = room;
	b->buf = malloc(room);
	return b->buf ? 0 : -ENOMEM;
}

int bytes_open(struct bytes **out, const char *path)
{
	int ret = new_bytes(out, CHUNK);

	if (ret)
		return ret;
	(*out)->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				       : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if ((*out)->fd < 0)
		return -errno;
	(void)posix_fadvise((*out)->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return detect(*out);
}

int bytes_memory(struct bytes **out, const void *data, size_t len)
{
	int ret = new_bytes(out, len ? len : 1);

	if (ret)
		return ret;
	memcpy((*out)->buf, data, len);
	(*out)->end = len;
	(*out)->ended = true;
	return 0;
}

void bytes_close(struct bytes *b)
{
	if (!b)
		return;
	if (b->fd >= 0)
		close(b->fd);
	ZSTD_freeDCtx(b->zstd);
	if (b->lz4)
		LZ4F_freeDecompressionContext(b->lz4);
	free(b->in);
	free(b->buf);
	free(b);
}

/* ---- reading ---- */

/* Makes room for n bytes from at on. */
static int make_room(struct bytes *b, size_t n)
{
	uint8_t *buf;

	if (b->at) {
		memmove(b->buf, b->buf + b->at, b->end - b->at);
		b->end -= b->at;
		b->at = 0;
	}
	if (n <= b->room)
		return 0;
	buf = realloc(b->buf, n);
	if (!buf)
		return -ENOMEM;
	b->buf = buf;
	b->room = n;
	return 0;
}

ssize_t bytes_peek(struct bytes *b, size_t n, const uint8_t **p)
{
	while (b->end - b->at < n && !b->ended) {
		ssize_t got;
		int ret = b->room - b->at < n || b->end == b->room ? make_room(b, n) : 0;

		if (ret)
			return ret;
		got = b->in ? unpack(b, b->buf + b->end, b->room - b->end)
			    : read_some(b, b->buf + b->end, b->room - b->end);
		if (got < 0)
			return got;
		b->ended = !got;
		b->end += (size_t)got;
	}
	*p = b->buf + b->at;
	return (ssize_t)(b->end - b->at);
}

size_t bytes_ready(const struct bytes *b, const uint8_t **p)
{
	*p = b->buf + b->at;
	return b->end - b->at;
}

void bytes_skip(struct bytes *b, size_t n)
{
	b->at += n;
	b->offset += n;
}

uint64_t bytes_offset(const struct bytes *b)
{
	return b->offset;
}
