/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a session, and attacks by a peer that has its descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/pages.h"
#include "common/proto.h"
#include "shm.h"
#include "probe/test_eal.h"

#define RINGS  3u
#define TAPS   10u
#define BUFFER ((uint64_t)RINGS * RT_CHUNKS_OF_RING * RT_CHUNK_MIN)

static const struct rt_shm_numbers numbers = {
	.rings = RINGS, .rows = RINGS, .shares = RINGS, .buffer_size = BUFFER, .taps = TAPS};
static struct rt_shm m;
static int fds[RT_FD_COUNT];
static char err[RT_TEXT_LEN];

static int set_up(void **state)
{
	rt_shm_lay_out(&m, &numbers);
	test_shm_memory(&m, fds);
	memset(err, 0, sizeof(err));
	return 0;
}

static int tear_down(void **state)
{
	rt_shm_destroy(&m);
	for (int i = 0; i < RT_FD_COUNT; i++)
		close(fds[i]);
	return 0;
}

static int attach(void **state)
{
	return set_up(state) || rt_shm_attach(&m, fds, err);
}

static uint64_t size_of(int which)
{
	struct stat st;

	assert_int_equal(fstat(fds[which], &st), 0);
	return (uint64_t)st.st_size;
}

static void assert_chunks(uint32_t shares, uint64_t buffer, uint64_t size, uint32_t count)
{
	struct rt_shm s;

	rt_shm_lay_out(&s, &(struct rt_shm_numbers){.rings = RT_MAX_RINGS,
				   .rows = 1,
				   .shares = shares,
				   .buffer_size = buffer,
				   .taps = TAPS});
	assert_int_equal(s.chunk_size, size);
	assert_int_equal(s.chunk_count, count);
	assert_int_equal(s.bytes[RT_FD_DATA], size * count);
	assert_in_range(s.order_count, count + 1, 2 * count);
	assert_int_equal(s.order_count & (s.order_count - 1), 0);
}

static void test_buffers_are_cut_into_chunks(void **state)
{
	assert_chunks(1, 0, RT_CHUNK_MIN, 2);
	assert_chunks(1, 1, RT_CHUNK_MIN, 2);
	assert_chunks(1, 3 * RT_CHUNK_MIN + 1, RT_CHUNK_MIN, 4);
	assert_chunks(4, 1 << 20, RT_CHUNK_MIN, 8);
	assert_chunks(4, 4 << 20, 128 << 10, 32);
	assert_chunks(4, 32 << 20, 128 << 10, 256);
	assert_chunks(4, 64 << 20, 256 << 10, 256);
	assert_chunks(4, 256 << 20, 1 << 20, 256);
	assert_chunks(40, 256 << 20, 512 << 10, 512);
	assert_chunks(4, 512 << 20, RT_CHUNK_MAX, 256);
	assert_chunks(256, 256 << 20, 128 << 10, 2048);
	assert_chunks(1, RT_BUFFER_MAX, RT_CHUNK_MAX, RT_BUFFER_MAX / RT_CHUNK_MAX);
}

static void test_sizes_agree_with_the_header(void **state)
{
	assert_memory_equal(m.header->magic, RT_SEG_MAGIC, 8);
	assert_int_equal(m.header->version, RT_SEG_VERSION);
	assert_int_equal(m.header->ring_count, RINGS);
	assert_int_equal(m.header->chunk_size * m.header->chunk_count, BUFFER);
	assert_int_equal(m.header->tap_capacity, TAPS);
	assert_int_equal(size_of(RT_FD_SEGMENT), m.header->segment_size);
	assert_int_equal(size_of(RT_FD_DATA), BUFFER);
	assert_true(size_of(RT_FD_TAILS) >= RINGS * sizeof(struct rt_seg_tail));
}

static void test_table_of_fates_is_behind_the_others(void **state)
{
	const uint32_t bits[] = {12, 15}; /* 0.75 and 6 MiB */

	for (unsigned i = 0; i < 2; i++) {
		const struct rt_seg_header *h = &m.h;

		tear_down(state);
		rt_shm_lay_out(&m, &numbers);
		assert_int_equal(rt_shm_fate_bytes(h), 0);
		rt_shm_add_fates(&m, bits[i], 128, i == 1);
		assert_true(h->fate_pool_offset >=
			    h->order_offset + RINGS * h->order_count * sizeof(uint32_t));
		assert_true(h->fate_offset >=
			    h->fate_pool_offset + RT_FATE_POOLS * sizeof(struct rt_seg_fate_pool));
		assert_int_equal(h->fate_offset % (i ? RT_HUGE_PAGE : 128), 0);
		assert_true(h->segment_size >= h->fate_offset + (192ull << bits[i]));
		test_shm_memory(&m, fds);
		assert_int_equal(rt_shm_attach(&m, fds, err), 0);
		assert_ptr_equal(m.fates, (uint8_t *)m.header + m.header->fate_offset);
		assert_int_equal((uintptr_t)m.fates % (i ? RT_HUGE_PAGE : 128), 0);
		assert_int_equal(m.fates[(192ull << bits[i]) - 1], 0);
		assert_int_equal(m.header->fate_bits, bits[i]);
		assert_int_equal(m.header->fate_history, i ? 192 - RT_FATE_HISTORY : 0);
	}
}

struct range {
	uint64_t from, to;
};

static void test_tables_do_not_overlap(void **state)
{
	const struct rt_seg_header *h = m.header;
	struct range r[] = {{0, sizeof(*h)},
		{h->clock_offset, h->clock_offset + sizeof(struct rt_seg_clock)},
		{h->if_offset, h->if_offset + h->if_capacity * sizeof(struct rt_seg_if)},
		{h->tap_offset, h->tap_offset + TAPS * sizeof(struct rt_seg_tap)},
		{h->ring_offset, h->ring_offset + RINGS * sizeof(struct rt_seg_ring)},
		{h->orphan_offset, h->orphan_offset + TAPS * sizeof(struct rt_seg_count)},
		{h->order_offset, h->order_offset + RINGS * h->order_count * sizeof(uint32_t)},
		{h->count_offset, h->count_offset + RINGS * TAPS * sizeof(struct rt_seg_count)},
		{h->segment_size, UINT64_MAX}};

	for (unsigned i = 0; i + 1 < sizeof(r) / sizeof(r[0]); i++)
		assert_true(r[i].to <= r[i + 1].from);
}

static void test_lines_of_producers_are_their_own(void **state)
{
	assert_int_equal((uintptr_t)m.rings % 128, 0);
	assert_int_equal((uintptr_t)m.counts % 64, 0);
	assert_int_equal((uintptr_t)m.tails % 64, 0);
}

static void test_tables_begin_empty(void **state)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		assert_int_equal(m.rings[i].head, 0);
		assert_int_equal(m.rings[i].lcore, UINT32_MAX);
		assert_int_equal(m.tails[i].tail, 0);
	}
	assert_int_equal(m.header->if_count, 0);
	assert_int_equal(m.header->tap_count, 0);
}

/* A page fault in a polling thread is a defect. */
static void test_all_pages_are_populated(void **state)
{
	unsigned char there[BUFFER / 4096];

	assert_int_equal(mincore(m.data, BUFFER, there), 0);
	for (size_t p = 0; p < sizeof(there); p++)
		assert_true(there[p] & 1);
}

static void test_buffers_are_aligned_for_huge_pages(void **state)
{
	struct rt_shm big;

	test_shm_make(&big, 2, 16 * RT_CHUNK_MAX, 1);
	assert_int_equal((uintptr_t)big.data % RT_CHUNK_MAX, 0);
	rt_shm_destroy(&big);
}

/* ---- forbidden to the peer ---- */

static void test_no_part_can_shrink(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(ftruncate(fds[i], 0), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_no_part_can_grow(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(ftruncate(fds[i], (off_t)size_of(i) + 4096), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_seals_are_final(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(fcntl(fds[i], F_ADD_SEALS, F_SEAL_WRITE), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_no_hole_can_be_punched(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(
			fallocate(fds[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_memory_cannot_be_written(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(pwrite(fds[i], "x", 1, 0), -1);
		assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0),
			MAP_FAILED);
	}
}

/* Opening it again by its name in /proc must fail, too. */
static void test_memory_cannot_be_written_by_proc(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
		close(fd);
	}
}

/* A read-only mapping must not become writable later. */
static void test_mappings_cannot_become_writable(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[i], 0);

		assert_ptr_not_equal(p, MAP_FAILED);
		assert_int_equal(mprotect(p, 4096, PROT_READ | PROT_WRITE), -1);
		munmap(p, 4096);
	}
}

/* A mapping made before the seals stays writable, but must not allow holes. */
static void test_old_mappings_of_the_reader_punch_no_holes(void **state)
{
	void *old[RT_FD_COUNT];

	for (int i = 0; i < RT_FD_COUNT; i++) {
		old[i] = mmap(NULL, m.bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
		assert_ptr_not_equal(old[i], MAP_FAILED);
	}
	assert_int_equal(rt_shm_attach(&m, fds, err), 0);
	for (int i = 0; i < RT_FD_COUNT; i++) {
		volatile uint64_t *p = old[i];

		*p = 99;
		assert_int_equal(madvise(old[i], m.bytes[i], MADV_REMOVE), -1);
		assert_int_equal(errno, EPERM);
		(void)madvise(old[i], m.bytes[i], MADV_DONTNEED);
		assert_int_equal(lseek(fds[i], 0, SEEK_HOLE), m.bytes[i]);
		assert_int_equal(*p, 99);
		munmap(old[i], m.bytes[i]);
	}
}

#define with_shm(f)    cmocka_unit_test_setup_teardown(f, attach, tear_down)
#define with_memory(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffers_are_cut_into_chunks),
		with_shm(test_sizes_agree_with_the_header),
		with_shm(test_tables_do_not_overlap),
		with_shm(test_table_of_fates_is_behind_the_others),
		with_shm(test_lines_of_producers_are_their_own),
		with_shm(test_tables_begin_empty),
		with_shm(test_all_pages_are_populated),
		cmocka_unit_test(test_buffers_are_aligned_for_huge_pages),
		with_shm(test_no_part_can_shrink),
		with_shm(test_no_part_can_grow),
		with_shm(test_seals_are_final),
		with_shm(test_no_hole_can_be_punched),
		with_shm(test_memory_cannot_be_written),
		with_shm(test_memory_cannot_be_written_by_proc),
		with_shm(test_mappings_cannot_become_writable),
		with_memory(test_old_mappings_of_the_reader_punch_no_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
