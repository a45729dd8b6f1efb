/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/clock.h"
#include "common/ipc.h"
#include "test_session.h"

#define CLOCK_AT 256u
#define IF_AT    512u
#define TAP_AT   (IF_AT + TEST_IFS * sizeof(struct rt_seg_if))
#define RING_AT  (TAP_AT + TEST_TAPS * sizeof(struct rt_seg_tap))
#define FATES    ((uint64_t)TEST_FATES * (sizeof(struct rt_seg_fate) + TEST_SNAP))
#define POOLS    ((uint64_t)RT_FATE_POOLS * sizeof(struct rt_seg_fate_pool))
#define TRAILER  8u /* end of options, total length */

int test_memfd(uint64_t size, int seals)
{
	int fd = memfd_create("ringtap-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals))
		abort();
	return fd;
}

static void *map(int fd, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* Measured once, as fuzzers make thousands of sessions. */
static void start_clock(struct test_session *s)
{
	static struct rt_clock c;
	uint64_t tsc, ns, tsc0, ns0;

	if (!c.line.mult) {
		rt_clock_sample(&tsc0, &ns0);
		do {
			rt_clock_sample(&tsc, &ns);
		} while (ns - ns0 < 2000000);
		rt_clock_init(&c, tsc0, ns0, tsc, ns, 0);
	}
	rt_clock_publish(s->clock, &c.line);
}

static void fill_tables(struct test_session *s)
{
	for (int i = 0; i < 2; i++) {
		memcpy(s->ifs[i].name, i ? "port1" : "port0", 6);
		s->ifs[i].port_id = (uint16_t)i;
		s->ifs[i].snaplen = 262144;
		s->ifs[i].state = RT_IF_PRESENT;
		s->taps[i] = (struct rt_seg_tap){.if_index = (uint32_t)i, .queue = 3};
	}
	s->h->if_count = s->h->tap_count = 2;
}

static uint32_t order_entries(uint64_t chunks)
{
	uint32_t n = 1;

	while (n <= chunks)
		n *= 2;
	return n;
}

static void make(struct test_session *s, uint32_t rings, uint64_t ring_size, uint64_t extra)
{
	uint64_t count_at = RING_AT + rings * sizeof(struct rt_seg_ring);
	uint64_t order_at = count_at + (rings + 1) * TEST_TAPS * sizeof(struct rt_seg_count);
	uint32_t order_count = order_entries(rings * ring_size / RT_CHUNK_MIN);
	uint64_t fate_at = (order_at + rings * order_count * sizeof(uint32_t) + 63) / 64 * 64;
	uint64_t size = fate_at + extra;
	uint64_t tails_size = (rings * sizeof(struct rt_seg_tail) + 4095) / 4096 * 4096;
	uint8_t *base;

	memset(s, 0, sizeof(*s));
	s->ring_size = ring_size;
	s->data_size = s->there = rings * ring_size;
	size = (size + 4095) / 4096 * 4096;
	s->fds[RT_FD_SEGMENT] = test_memfd(size, F_SEAL_SHRINK | F_SEAL_GROW);
	s->fds[RT_FD_DATA] = test_memfd(rings * ring_size, F_SEAL_SHRINK | F_SEAL_GROW);
	s->fds[RT_FD_TAILS] = test_memfd(tails_size, F_SEAL_SHRINK | F_SEAL_GROW);
	base = map(s->fds[RT_FD_SEGMENT], size);
	s->data = map(s->fds[RT_FD_DATA], rings * ring_size);
	s->tails = map(s->fds[RT_FD_TAILS], tails_size);
	s->h = (void *)base;
	s->clock = (void *)(base + CLOCK_AT);
	s->ifs = (void *)(base + IF_AT);
	s->taps = (void *)(base + TAP_AT);
	s->rings = (void *)(base + RING_AT);
	s->counts = (void *)(base + count_at);
	s->orders = (void *)(base + order_at);
	s->fates = base + fate_at;
	*s->h = (struct rt_seg_header){.magic = RT_SEG_MAGIC,
		.version = RT_SEG_VERSION,
		.header_size = sizeof(*s->h),
		.segment_size = size,
		.chunk_size = RT_CHUNK_MIN,
		.chunk_count = (uint32_t)(rings * ring_size / RT_CHUNK_MIN),
		.order_count = order_count,
		.ring_count = rings,
		.share_count = rings,
		.window = order_count / 2 / rings,
		.reserve = (uint32_t)(rings * ring_size / RT_CHUNK_MIN / 4),
		.if_capacity = TEST_IFS,
		.tap_capacity = TEST_TAPS,
		.clock_offset = CLOCK_AT,
		.if_offset = IF_AT,
		.tap_offset = TAP_AT,
		.ring_offset = RING_AT,
		.count_offset = count_at,
		.orphan_offset = count_at + rings * TEST_TAPS * sizeof(struct rt_seg_count),
		.order_offset = order_at,
		.state = RT_SEG_ARMED};
	for (uint32_t i = 0; i < rings; i++)
		s->h->used[i / 64] |= 1ull << i % 64;
	fill_tables(s);
	start_clock(s);
}

void test_session_make(struct test_session *s, uint32_t rings, uint64_t ring_size)
{
	make(s, rings, ring_size, 0);
}

void test_session_make_fates(struct test_session *s, uint32_t rings, uint64_t ring_size)
{
	make(s, rings, ring_size, FATES + POOLS);
	s->pools = (void *)(s->fates + FATES);
	s->h->fate_offset = (uint64_t)(s->fates - (uint8_t *)s->h);
	s->h->fate_pool_offset = s->h->fate_offset + FATES;
	s->h->fate_bits = (uint32_t)__builtin_ctz(TEST_FATES);
	s->h->fate_stride = sizeof(struct rt_seg_fate) + TEST_SNAP;
	s->h->fate_snap = TEST_SNAP;
}

struct rt_seg_fate *test_fate(const struct test_session *s, uint32_t i)
{
	return (void *)(s->fates + i * (sizeof(struct rt_seg_fate) + TEST_SNAP));
}

static uint64_t size_of(int fd)
{
	return (uint64_t)lseek(fd, 0, SEEK_END);
}

void test_session_free(struct test_session *s)
{
	munmap(s->data, s->data_size);
	munmap(s->tails, size_of(s->fds[RT_FD_TAILS]));
	munmap(s->h, size_of(s->fds[RT_FD_SEGMENT]));
	for (int i = 0; i < RT_FD_COUNT; i++)
		close(s->fds[i]);
}

void test_session_lay_out(const struct test_session *s, struct rt_msg_layout *out)
{
	*out = (struct rt_msg_layout){.chunk_size = s->h->chunk_size,
		.chunk_count = s->h->chunk_count,
		.order_count = s->h->order_count,
		.ring_count = s->h->ring_count,
		.share_count = s->h->share_count,
		.if_capacity = TEST_IFS,
		.tap_capacity = TEST_TAPS};
	for (int i = 0; i < RT_FD_COUNT; i++)
		out->bytes[i] = size_of(s->fds[i]);
	out->bytes[RT_FD_DATA] = s->data_size;
	out->filled = out->bytes[RT_FD_SEGMENT];
	for (int i = 0; i < RT_MAX_RINGS; i++)
		out->node[i] = RT_NODE_UNKNOWN;
	rt_msg_init(&out->h, RT_MSG_LAYOUT, sizeof(*out));
}

static void move(int fd, void *at, uint64_t size)
{
	void *p = map(fd, size);

	memcpy(p, at, size);
	if (mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		abort();
	/* As a probe does after mapping it. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		abort();
}

void test_session_move(struct test_session *s, const int fds[RT_FD_COUNT])
{
	void *at[RT_FD_COUNT] = {s->h, s->data, s->tails};

	s->there = size_of(fds[RT_FD_DATA]);
	for (int i = 0; i < RT_FD_COUNT; i++) {
		uint64_t size = size_of(fds[i]);

		if (i == RT_FD_DATA ? size > s->data_size : size != size_of(s->fds[i]))
			abort();
		move(fds[i], at[i], size);
		if (dup3(fds[i], s->fds[i], O_CLOEXEC) < 0)
			abort();
	}
}

bool test_session_grow(struct test_session *s, int fd)
{
	uint64_t size = size_of(fd);

	if (size > s->data_size - s->there || lseek(fd, 0, SEEK_HOLE) != (off_t)size)
		return false;
	move(fd, s->data + s->there, size);
	rt_store_release(&s->there, s->there + size); /* for a test that waits */
	return true;
}

static void put_bytes(
	struct test_session *s, uint32_t ring, uint64_t pos, const void *src, uint64_t len)
{
	uint64_t number = pos / RT_CHUNK_MIN, of_ring = s->ring_size / RT_CHUNK_MIN;
	uint32_t id = (uint32_t)(ring * of_ring + number % of_ring);
	uint32_t *order = &s->orders[ring * s->h->order_count];

	order[number % s->h->order_count] = id;
	memcpy(s->data + (uint64_t)id * RT_CHUNK_MIN + pos % RT_CHUNK_MIN, src, len);
}

uint64_t test_put(
	struct test_session *s, uint32_t ring, uint64_t ns, uint32_t if_index, uint32_t len)
{
	uint32_t padded = (len + 3) & ~3u, total = RT_EPB_HEADER + padded + TRAILER;
	struct rt_epb e = {.type = RT_EPB_TYPE,
		.total_len = total,
		.if_index = if_index,
		.ts_high = (uint32_t)(ns >> 32),
		.ts_low = (uint32_t)ns,
		.cap_len = len,
		.orig_len = len};
	uint32_t trailer[2] = {0, total};
	uint64_t pos = s->pos[ring];

	if (pos % RT_CHUNK_MIN + total > RT_CHUNK_MIN - RT_CHUNK_GUARD) {
		uint32_t end = RT_CHUNK_END;

		put_bytes(s, ring, pos, &end, sizeof(end));
		pos = (pos / RT_CHUNK_MIN + 1) * RT_CHUNK_MIN;
	}
	put_bytes(s, ring, pos, &e, sizeof(e));
	put_bytes(s, ring, pos + total - TRAILER, trailer, TRAILER);
	s->pos[ring] = pos + total;
	return pos;
}

void test_spoil(struct test_session *s, uint32_t ring, uint64_t pos, uint32_t value)
{
	put_bytes(s, ring, pos, &value, sizeof(value));
}

void test_publish(struct test_session *s, uint32_t ring, uint64_t last_ns)
{
	rt_store_release(&s->rings[ring].last_ns, last_ns);
	rt_store_release(&s->rings[ring].head, s->pos[ring]); /* pairs with rt_in_refresh() */
}

uint64_t test_now(const struct test_session *s)
{
	struct rt_clock_line line;

	if (rt_clock_read(s->clock, &line))
		abort();
	return rt_clock_ns(&line, rt_tsc());
}
