/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flavours of storing one finished pcapng block into a ring. Each flavour has a writer: begin at a
 * position, put blocks, end. All may scribble up to 127 bytes past the end of the last block.
 */
#ifndef RINGTAP_BENCH_COPY_STORE_H
#define RINGTAP_BENCH_COPY_STORE_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define EPB_HEADER   28u
#define EPB_TRAILER  24u
#define EPB_OVERHEAD (EPB_HEADER + EPB_TRAILER)

#define TARGET_SSE2   __attribute__((target("sse2")))
#define TARGET_AVX2   __attribute__((target("avx2")))
#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,movdir64b")))

/* The same for all packets of a burst. */
struct block_meta {
	uint32_t if_index;
	uint32_t ts_high;
	uint32_t ts_low;
	uint32_t queue;
};

static inline uint32_t block_len(uint32_t data_len)
{
	return EPB_OVERHEAD + ((data_len + 3) & ~3u);
}

static inline void store_u64(uint8_t *dst, uint32_t low, uint32_t high)
{
	uint64_t v = low | (uint64_t)high << 32;
	memcpy(dst, &v, sizeof(v));
}

static inline void store_header(uint8_t *dst, const struct block_meta *m, uint32_t len)
{
	uint32_t orig = len;
	store_u64(dst, 6, block_len(len));
	store_u64(dst + 8, m->if_index, m->ts_high);
	store_u64(dst + 16, m->ts_low, len);
	memcpy(dst + 24, &orig, sizeof(orig));
}

static inline void store_trailer(uint8_t *dst, const struct block_meta *m, uint32_t total)
{
	store_u64(dst, 2 | 4 << 16, 1);
	store_u64(dst + 8, 6 | 4 << 16, m->queue);
	store_u64(dst + 16, 0, total);
}

/* ---- Writers without state: any alignment ------------------------------------------------- */

struct plain_writer {
	uint8_t *dst;
};

static inline void plain_begin(struct plain_writer *w, uint8_t *dst)
{
	w->dst = dst;
}

static inline void plain_end(struct plain_writer *w)
{
	(void)w;
}

static inline void memcpy_put(
	struct plain_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	uint32_t total = block_len(len);
	store_header(w->dst, m, len);
	memcpy(w->dst + EPB_HEADER, src, len);
	store_trailer(w->dst + total - EPB_TRAILER, m, total);
	w->dst += total;
}

TARGET_SSE2 static inline void sse2_put(
	struct plain_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	uint32_t total = block_len(len), off = 0;
	store_header(w->dst, m, len);
	do {
		__m128i v = _mm_loadu_si128((const __m128i *)(src + off));
		_mm_storeu_si128((__m128i *)(w->dst + EPB_HEADER + off), v);
		off += 16;
	} while (off < len);
	store_trailer(w->dst + total - EPB_TRAILER, m, total);
	w->dst += total;
}

TARGET_AVX2 static inline __m256i avx2_header(const struct block_meta *m, uint32_t len)
{
	__m256i same =
		_mm256_setr_epi32(6, 0, (int)m->if_index, (int)m->ts_high, (int)m->ts_low, 0, 0, 0);
	__m256i v = _mm256_blend_epi32(same, _mm256_set1_epi32((int)block_len(len)), 0x02);
	return _mm256_blend_epi32(v, _mm256_set1_epi32((int)len), 0x60);
}

TARGET_AVX2 static inline __m256i avx2_trailer(const struct block_meta *m, uint32_t total)
{
	__m256i same = _mm256_setr_epi32(2 | 4 << 16, 1, 6 | 4 << 16, (int)m->queue, 0, 0, 0, 0);
	return _mm256_blend_epi32(same, _mm256_set1_epi32((int)total), 0x20);
}

TARGET_AVX2 static inline void avx2_put(
	struct plain_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	uint32_t total = block_len(len), off = 0;
	_mm256_storeu_si256((__m256i *)w->dst, avx2_header(m, len));
	do {
		__m256i v = _mm256_loadu_si256((const __m256i *)(src + off));
		_mm256_storeu_si256((__m256i *)(w->dst + EPB_HEADER + off), v);
		off += 32;
	} while (off < len);
	_mm256_storeu_si256((__m256i *)(w->dst + total - EPB_TRAILER), avx2_trailer(m, total));
	w->dst += total;
}

/* Header and the first nine words of data; reads at most 28 bytes before src (mbuf headroom). */
TARGET_AVX512 static inline __m512i avx512_front(
	const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	__m512i header = _mm512_castsi256_si512(avx2_header(m, len));
	return _mm512_mask_loadu_epi32(header, 0xff80, src - EPB_HEADER);
}

TARGET_AVX512 static inline void avx512_put(
	struct plain_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	uint32_t total = block_len(len), off = 64 - EPB_HEADER;
	_mm512_storeu_si512(w->dst, avx512_front(m, src, len));
	while (off < len) {
		_mm512_storeu_si512(w->dst + EPB_HEADER + off, _mm512_loadu_si512(src + off));
		off += 64;
	}
	_mm256_storeu_si256((__m256i *)(w->dst + total - EPB_TRAILER), avx2_trailer(m, total));
	w->dst += total;
}

/* As avx512_put(), the trailer shifted in behind the last data: two stores for 64 bytes. */
TARGET_AVX512 static inline void merge512_put(
	struct plain_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	uint32_t total = block_len(len), words = (len + 3) / 4 + 7, at = 0;
	__m512i trailer = _mm512_castsi256_si512(avx2_trailer(m, total));
	__m512i v = avx512_front(m, src, len);
	while (words > 10) {
		_mm512_storeu_si512(w->dst + at, v);
		at += 64;
		if (words <= 16) {
			_mm256_storeu_si256((__m256i *)(w->dst + total - EPB_TRAILER),
				_mm512_castsi512_si256(trailer));
			w->dst += total;
			return;
		}
		v = _mm512_loadu_si512(src - EPB_HEADER + at);
		words -= 16;
	}
	v = _mm512_mask_expand_epi32(v, (__mmask16)(0x3f << words), trailer);
	_mm512_storeu_si512(w->dst + at, v);
	w->dst += total;
}

/* ---- Writers of whole aligned lines: a partial line is carried in a register ----------------- */

struct line_writer {
	__m512i carry;  /* words before phase are valid */
	uint8_t *line;  /* aligned */
	uint32_t phase; /* words */
};

TARGET_AVX512 static inline void line_begin(struct line_writer *w, uint8_t *dst)
{
	w->line = (uint8_t *)((uintptr_t)dst & ~(uintptr_t)63);
	w->phase = ((uintptr_t)dst & 63) / 4;
	w->carry = _mm512_load_si512(w->line);
}

TARGET_AVX512 static inline void line_end(struct line_writer *w)
{
	_mm512_store_si512(w->line, w->carry);
}

enum line_kind { LINE_NORMAL, LINE_STREAM, LINE_DIRECT };

/* Appends the first count words of v (1 to 16). */
TARGET_AVX512 static inline __attribute__((always_inline)) void line_append(
	struct line_writer *w, __m512i v, uint32_t count, enum line_kind kind)
{
	const __m512i iota =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i turn = _mm512_sub_epi32(iota, _mm512_set1_epi32((int)w->phase));
	__m512i turned = _mm512_permutexvar_epi32(turn, v);
	__m512i line = _mm512_mask_mov_epi32(w->carry, (__mmask16)(0xffffu << w->phase), turned);
	uint32_t end = w->phase + count;
	__mmask16 full = (__mmask16) - (end >> 4);

	if (kind == LINE_NORMAL)
		_mm512_store_si512(w->line, line);
	else if (full && kind == LINE_STREAM)
		_mm512_stream_si512((__m512i *)w->line, line);
	else if (full)
		_movdir64b(w->line, &line);
	w->carry = _mm512_mask_mov_epi32(line, full, turned);
	w->line += (end >> 4) * 64;
	w->phase = end & 15;
}

TARGET_AVX512 static inline __attribute__((always_inline)) void line_put_kind(struct line_writer *w,
	const struct block_meta *m, const uint8_t *src, uint32_t len, enum line_kind kind)
{
	uint32_t words = (len + 3) / 4 + 7;
	__m512i trailer = _mm512_castsi256_si512(avx2_trailer(m, block_len(len)));
	__m512i v = avx512_front(m, src, len);
	src -= EPB_HEADER;
	while (words > 10) {
		line_append(w, v, words < 16 ? words : 16, kind);
		if (words <= 16) {
			line_append(w, trailer, 6, kind);
			return;
		}
		src += 64;
		v = _mm512_loadu_si512(src);
		words -= 16;
	}
	v = _mm512_mask_expand_epi32(v, (__mmask16)(0x3f << words), trailer);
	line_append(w, v, words + 6, kind);
}

TARGET_AVX512 static inline void line_put(
	struct line_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	line_put_kind(w, m, src, len, LINE_NORMAL);
}

TARGET_AVX512 static inline void stream_put(
	struct line_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	line_put_kind(w, m, src, len, LINE_STREAM);
}

TARGET_AVX512 static inline void direct_put(
	struct line_writer *w, const struct block_meta *m, const uint8_t *src, uint32_t len)
{
	line_put_kind(w, m, src, len, LINE_DIRECT);
}

#endif
