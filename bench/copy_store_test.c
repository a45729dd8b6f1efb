/* SPDX-License-Identifier: BSD-3-Clause */
/* All flavours write the same blocks, or the comparison is worth nothing. Returns 0 or 1. */
#include "copy_loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copy_store.h"
#include "common/atomics.h"

#define RING_BYTES ((size_t)1 << 20)
#define FRAME_MAX  1600u

static uint8_t ring[2 * RING_BYTES] __attribute__((aligned(4096)));
static uint8_t expected[RING_BYTES];
static uint8_t buffers[COPY_BURST][FRAME_MAX + 256];
static struct fake_mbuf mbufs[COPY_BURST];
static struct fake_mbuf *table[COPY_BURST];

static void fill(uint32_t first_len)
{
	for (uint32_t i = 0; i < COPY_BURST; i++) {
		for (uint32_t j = 0; j < sizeof(buffers[i]); j++)
			buffers[i][j] = (uint8_t)(i * 31 + j * 7 + 1);
		mbufs[i] = (struct fake_mbuf){.buf_addr = buffers[i],
			.data_off = 128,
			.data_len = (uint16_t)(first_len + i)};
		table[i] = &mbufs[i];
	}
}

/* Padding is whatever lay behind the frame, and times differ between runs. */
static void blank(uint8_t *blocks, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t total, cap;
		memcpy(&total, blocks + at + 4, sizeof(total));
		memcpy(&cap, blocks + at + 20, sizeof(cap));
		memset(blocks + at + 12, 0, 8);
		if (total < EPB_OVERHEAD || cap > total - EPB_OVERHEAD)
			return;
		memset(blocks + at + EPB_HEADER + cap, 0, total - EPB_OVERHEAD - cap);
		at += total;
	}
}

/* The producer stops by itself: the ring is never released and holds few bursts. */
static size_t run(const struct copy_flavour *flavour, uint32_t max_len, uint32_t prefetch)
{
	static struct copy_shared shared;
	struct copy_producer p = {.shared = &shared,
		.ring = ring,
		.ring_size = RING_BYTES,
		.mbufs = table,
		.mbuf_count = COPY_BURST,
		.max_block = block_len(max_len),
		.prefetch = prefetch,
		.bursts = 3};
	memset(&shared, 0, sizeof(shared));
	memset(ring, 0, sizeof(ring));
	flavour->produce(&p);
	blank(ring, p.bytes);
	return p.bytes;
}

static int check(const struct copy_flavour *flavour, uint32_t first_len)
{
	fill(first_len);
	uint32_t max_len = first_len + COPY_BURST - 1;
	size_t len = run(&copy_flavours[0], max_len, 0);
	memcpy(expected, ring, len);
	for (uint32_t prefetch = 0; prefetch <= 8192; prefetch += 8192) {
		if (run(flavour, max_len, prefetch) == len && memcmp(expected, ring, len) == 0)
			continue;
		fprintf(stderr, "%s differs from %s at frames from %u bytes\n", flavour->name,
			copy_flavours[0].name, first_len);
		return 1;
	}
	return 0;
}

int main(void)
{
	int failed = 0;
	for (unsigned i = 0; i < copy_flavour_count; i++)
		if (copy_flavours[i].usable())
			for (uint32_t len = 14; len <= FRAME_MAX - COPY_BURST; len += 17)
				failed |= check(&copy_flavours[i], len);
	return failed;
}
