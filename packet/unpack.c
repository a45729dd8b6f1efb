/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "unpack.h"

#define CHUNK      (1u << 20) /* bytes of a read() */
#define MAGIC_ZSTD 0xfd2fb528u
#define MAGIC_LZ4  0x184d2204u

struct unpack {
	int fd;
	ZSTD_DCtx *zstd;
	LZ4F_dctx *lz4;
	bool whole;        /* compressed: the last frame is complete */
	uint8_t in[CHUNK]; /* bytes of the file */
	size_t in_at, in_end;
};

static ssize_t read_some(struct unpack *u, uint8_t *dst, size_t len)
{
	ssize_t n;

	do
		n = read(u->fd, dst, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- compressed ---- */

static int unpack_zstd(struct unpack *u, uint8_t *dst, size_t len, size_t *out)
{
	ZSTD_inBuffer in = {u->in + u->in_at, u->in_end - u->in_at, 0};
	ZSTD_outBuffer to = {dst, len, 0};
	size_t ret = ZSTD_decompressStream(u->zstd, &to, &in);

	if (ZSTD_isError(ret))
		return -EBADMSG;
	u->in_at += in.pos;
	u->whole = ret == 0;
	*out = to.pos;
	return 0;
}

static int unpack_lz4(struct unpack *u, uint8_t *dst, size_t len, size_t *out)
{
	size_t used = u->in_end - u->in_at, made = len;
	size_t ret = LZ4F_decompress(u->lz4, dst, &made, u->in + u->in_at, &used, NULL);

	if (LZ4F_isError(ret))
		return -EBADMSG;
	u->in_at += used;
	u->whole = ret == 0;
	*out = made;
	return 0;
}

/* Without any bytes left a decoder may still have some to give. */
static ssize_t unpack(struct unpack *u, uint8_t *dst, size_t len)
{
	size_t out = 0;

	while (!out) {
		bool dry = u->in_at == u->in_end;
		int ret;

		if (dry) {
			ssize_t n = read_some(u, u->in, CHUNK);

			if (n < 0)
				return n;
			if (!n)
				return u->whole ? 0 : -EBADMSG;
			u->in_at = 0;
			u->in_end = (size_t)n;
		}
		ret = u->zstd ? unpack_zstd(u, dst, len, &out) : unpack_lz4(u, dst, len, &out);
		if (ret)
			return ret;
	}
	return (ssize_t)out;
}

/* Bytes that were read to find the format go first. */
static ssize_t copy(struct unpack *u, uint8_t *dst, size_t len)
{
	size_t n = u->in_end - u->in_at;

	if (!n)
		return read_some(u, dst, len);
	n = n < len ? n : len;
	memcpy(dst, u->in + u->in_at, n);
	u->in_at += n;
	return (ssize_t)n;
}

static ssize_t read_unpacked(struct window *w, uint8_t *dst, size_t len, uint64_t offset)
{
	struct unpack *u = w->source;

	(void)offset; /* it is read forwards */
	return u->zstd || u->lz4 ? unpack(u, dst, len) : copy(u, dst, len);
}

static void close_unpacked(struct window *w)
{
	struct unpack *u = w->source;

	if (u->fd >= 0)
		close(u->fd);
	ZSTD_freeDCtx(u->zstd);
	if (u->lz4)
		LZ4F_freeDecompressionContext(u->lz4);
	free(u);
}

/* By the first bytes. A pipe has fewer at a time. */
static int find_format(struct unpack *u)
{
	uint32_t magic = 0;

	while (u->in_end < sizeof(magic)) {
		ssize_t n = read_some(u, u->in + u->in_end, CHUNK - u->in_end);

		if (n <= 0)
			return (int)n;
		u->in_end += (size_t)n;
	}
	memcpy(&magic, u->in, sizeof(magic));
	if (magic == MAGIC_ZSTD) {
		u->zstd = ZSTD_createDCtx();
		return u->zstd ? 0 : -ENOMEM;
	}
	if (magic != MAGIC_LZ4)
		return 0;
	return LZ4F_isError(LZ4F_createDecompressionContext(&u->lz4, LZ4F_VERSION)) ? -ENOMEM : 0;
}

int unpack_open(struct window *w, const char *path)
{
	struct unpack *u = calloc(1, sizeof(*u));

	*w = (struct window){.fd = -1,
		.own = malloc(CHUNK),
		.room = CHUNK,
		.read = read_unpacked,
		.close = u ? close_unpacked : NULL,
		.source = u};
	w->buf = w->own;
	if (!u || !w->own)
		return -ENOMEM;
	u->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				  : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (u->fd < 0)
		return -errno;
	(void)posix_fadvise(u->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return find_format(u);
}

const char *unpack_error(int error)
{
	switch (error) {
	case -EBADMSG: return "the compressed data is damaged";
	case -ENOENT: return "No such file or directory; check the name";
	case -EACCES: return "Permission denied; run ringtap as a user that may read it";
	case -EISDIR: return "Is a directory; give a file in it";
	case -EIO: return "Input/output error; check the disk that it is on";
	default: return strerror(-error);
	}
}
