/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zstd.h>

#include "common/array.h"
#include "compress.h"

#define ZSTD_FAST 1 /* level: the capture must keep up */

static const LZ4F_preferences_t lz4_prefs = {
	.frameInfo = {
		.blockSizeID = LZ4F_max1MB, .contentChecksumFlag = LZ4F_contentChecksumEnabled}};

struct compressor {
	enum compress kind;
	ZSTD_CCtx *zstd;
	LZ4F_cctx *lz4;
	uint8_t *out;
	size_t out_len, out_size; /* bytes */
	uint64_t pending;
};

int compressor_new(struct compressor **out, enum compress kind)
{
	struct compressor *c = calloc(1, sizeof(*c));
	bool ok = false;

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->kind = kind;
	if (kind == COMPRESS_ZSTD) {
		c->zstd = ZSTD_createCCtx();
		ok = c->zstd &&
		     !ZSTD_isError(
			     ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_FAST)) &&
		     !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1));
	} else {
		ok = !LZ4F_isError(LZ4F_createCompressionContext(&c->lz4, LZ4F_VERSION));
	}
	if (!ok) {
		compressor_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void compressor_free(struct compressor *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->zstd);
	if (c->lz4)
		LZ4F_freeCompressionContext(c->lz4);
	free(c->out);
	free(c);
}

/* Makes room for len more bytes of output. */
static int reserve(struct compressor *c, size_t len)
{
	return rt_array_room(c->out, c->out_size, c->out_len + len);
}

static int zstd_put(struct compressor *c, const void *data, size_t len, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {.src = data, .size = len};
	size_t left;

	do {
		ZSTD_outBuffer out;
		int ret = reserve(c, ZSTD_CStreamOutSize());

		if (ret)
			return ret;
		out = (ZSTD_outBuffer){.dst = c->out, .size = c->out_size, .pos = c->out_len};
		left = ZSTD_compressStream2(c->zstd, &out, &in, how);
		if (ZSTD_isError(left))
			return -EIO;
		c->out_len = out.pos;
	} while (in.pos < in.size || (how == ZSTD_e_end && left));
	return 0;
}

/* Takes the return value of an LZ4F function that wrote to the end of out. */
static int lz4_wrote(struct compressor *c, size_t n)
{
	if (LZ4F_isError(n))
		return -EIO;
	c->out_len += n;
	return 0;
}

static int lz4_begin(struct compressor *c)
{
	int ret = reserve(c, LZ4F_HEADER_SIZE_MAX);

	if (ret)
		return ret;
	return lz4_wrote(c, LZ4F_compressBegin(c->lz4, c->out + c->out_len,
				    c->out_size - c->out_len, &lz4_prefs));
}

static int lz4_put(struct compressor *c, const void *data, size_t len)
{
	int ret = reserve(c, LZ4F_compressBound(len, &lz4_prefs));

	if (ret)
		return ret;
	return lz4_wrote(c, LZ4F_compressUpdate(c->lz4, c->out + c->out_len,
				    c->out_size - c->out_len, data, len, NULL));
}

static int lz4_end(struct compressor *c)
{
	int ret = reserve(c, LZ4F_compressBound(0, &lz4_prefs));

	if (ret)
		return ret;
	return lz4_wrote(
		c, LZ4F_compressEnd(c->lz4, c->out + c->out_len, c->out_size - c->out_len, NULL));
}

int compressor_put(struct compressor *c, const void *data, size_t len)
{
	int ret = 0;

	if (!c->pending) {
		c->out_len = 0;
		if (c->kind == COMPRESS_LZ4)
			ret = lz4_begin(c);
	}
	if (ret)
		return ret;
	c->pending += len;
	return c->kind == COMPRESS_LZ4 ? lz4_put(c, data, len)
				       : zstd_put(c, data, len, ZSTD_e_continue);
}

uint64_t compressor_pending(const struct compressor *c)
{
	return c->pending;
}

int compressor_end(struct compressor *c, void **data, size_t *len)
{
	int ret = c->kind == COMPRESS_LZ4 ? lz4_end(c) : zstd_put(c, NULL, 0, ZSTD_e_end);

	c->pending = 0;
	*data = c->out;
	*len = c->out_len;
	return ret;
}
