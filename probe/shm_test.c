/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a session, and what a peer that has its descriptors can do to it. */
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

#include "shm.h"

#define RINGS 3u
#define TAPS  10u

static struct rt_shm m;

static int set_up(void **state)
{
	return rt_shm_create(&m, RINGS, RT_RING_SIZE_MIN, TAPS);
}

static int tear_down(void **state)
{
	rt_shm_destroy(&m);
	return 0;
}

static uint64_t size_of(int which)
{
	struct stat st;

	assert_int_equal(fstat(m.fd[which], &st), 0);
	return (uint64_t)st.st_size;
}

static void test_ring_sizes_are_powers_of_two_within_bounds(void **state)
{
	assert_int_equal(rt_shm_ring_size(0), RT_RING_SIZE_MIN);
	assert_int_equal(rt_shm_ring_size(1), RT_RING_SIZE_MIN);
	assert_int_equal(rt_shm_ring_size(RT_RING_SIZE_MIN), RT_RING_SIZE_MIN);
	assert_int_equal(rt_shm_ring_size(RT_RING_SIZE_MIN + 1), RT_RING_SIZE_MIN * 2);
	assert_int_equal(rt_shm_ring_size(1000000), 1u << 20);
	assert_int_equal(rt_shm_ring_size(RT_RING_SIZE_MAX), RT_RING_SIZE_MAX);
	assert_int_equal(rt_shm_ring_size(UINT64_MAX), RT_RING_SIZE_MAX);
}

static void test_sizes_agree_with_the_header(void **state)
{
	assert_memory_equal(m.header->magic, RT_SEG_MAGIC, 8);
	assert_int_equal(m.header->version, RT_SEG_VERSION);
	assert_int_equal(m.header->ring_count, RINGS);
	assert_int_equal(m.header->ring_size, RT_RING_SIZE_MIN);
	assert_int_equal(m.header->tap_capacity, TAPS);
	assert_int_equal(size_of(RT_FD_SEGMENT), m.header->segment_size);
	assert_int_equal(size_of(RT_FD_DATA), RINGS * RT_RING_SIZE_MIN);
	assert_true(size_of(RT_FD_TAILS) >= RINGS * sizeof(struct rt_seg_tail));
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
		{h->count_offset,
			h->count_offset + (RINGS + 1) * TAPS * sizeof(struct rt_seg_count)},
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

static void test_every_ring_is_mapped_twice(void **state)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		volatile uint8_t *d = m.data[i]; /* the compiler knows of one mapping only */

		d[RT_RING_SIZE_MIN + 5] = (uint8_t)(i + 1);
		assert_int_equal(d[5], i + 1);
		d[RT_RING_SIZE_MIN - 1] = (uint8_t)(i + 11);
		assert_int_equal(d[2 * RT_RING_SIZE_MIN - 1], i + 11);
	}
	for (uint32_t i = 0; i < RINGS; i++)
		assert_int_equal(m.data[i][5], i + 1);
}

/* A page fault in a polling thread is a defect. */
static void test_all_pages_are_there(void **state)
{
	unsigned char there[2 * RT_RING_SIZE_MIN / 4096];

	for (uint32_t i = 0; i < RINGS; i++) {
		assert_int_equal(mincore(m.data[i], 2 * RT_RING_SIZE_MIN, there), 0);
		for (size_t p = 0; p < sizeof(there); p++)
			assert_true(there[p] & 1);
	}
}

static void test_large_rings_are_aligned_for_huge_pages(void **state)
{
	struct rt_shm big;

	assert_int_equal(rt_shm_create(&big, 2, RT_RING_SIZE_HUGE, 1), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal((uintptr_t)big.data[i] % RT_RING_SIZE_HUGE, 0);
		((volatile uint8_t *)big.data[i])[RT_RING_SIZE_HUGE] = 7;
		assert_int_equal(big.data[i][0], 7);
	}
	rt_shm_destroy(&big);
}

static void test_impossible_amounts_are_an_error_that_leaves_nothing(void **state)
{
	struct rt_shm big;
	int before = dup(0), after;

	close(before);
	assert_true(rt_shm_create(&big, RT_MAX_RINGS, 1ull << 50, 1) < 0);
	assert_null(big.header);
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
}

/* ---- what the peer may not ---- */

static void test_no_part_can_shrink(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(ftruncate(m.fd[i], 0), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_no_part_can_grow(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(ftruncate(m.fd[i], (off_t)size_of(i) + 4096), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_seals_are_final(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(fcntl(m.fd[i], F_ADD_SEALS, F_SEAL_WRITE), -1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_no_hole_can_be_punched_into_what_is_ours(void **state)
{
	static const int ours[] = {RT_FD_SEGMENT, RT_FD_DATA};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fallocate(m.fd[ours[i]],
					 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
			-1);
		assert_int_equal(errno, EPERM);
	}
}

static void test_what_is_ours_cannot_be_written(void **state)
{
	static const int ours[] = {RT_FD_SEGMENT, RT_FD_DATA};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pwrite(m.fd[ours[i]], "x", 1, 0), -1);
		assert_ptr_equal(
			mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd[ours[i]], 0),
			MAP_FAILED);
	}
}

/* Opening it anew by its name in /proc is no way round. */
static void test_what_is_ours_cannot_be_written_by_another_name(void **state)
{
	static const int ours[] = {RT_FD_SEGMENT, RT_FD_DATA};

	for (int i = 0; i < 2; i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", m.fd[ours[i]]);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
		close(fd);
	}
}

/* A read-only mapping must not become writable later. */
static void test_what_is_ours_cannot_be_made_writable(void **state)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, m.fd[RT_FD_DATA], 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p, 4096, PROT_READ | PROT_WRITE), -1);
	munmap(p, 4096);
}

static void test_tails_are_the_readers_to_write(void **state)
{
	struct rt_seg_tail *tails =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd[RT_FD_TAILS], 0);

	assert_ptr_not_equal(tails, MAP_FAILED);
	tails[2].tail = 99;
	assert_int_equal(m.tails[2].tail, 99);
	munmap(tails, 4096);
}

#define with_shm(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_sizes_are_powers_of_two_within_bounds),
		with_shm(test_sizes_agree_with_the_header),
		with_shm(test_tables_do_not_overlap),
		with_shm(test_lines_of_producers_are_their_own),
		with_shm(test_tables_begin_empty),
		with_shm(test_every_ring_is_mapped_twice),
		with_shm(test_all_pages_are_there),
		cmocka_unit_test(test_large_rings_are_aligned_for_huge_pages),
		cmocka_unit_test(test_impossible_amounts_are_an_error_that_leaves_nothing),
		with_shm(test_no_part_can_shrink),
		with_shm(test_no_part_can_grow),
		with_shm(test_seals_are_final),
		with_shm(test_no_hole_can_be_punched_into_what_is_ours),
		with_shm(test_what_is_ours_cannot_be_written),
		with_shm(test_what_is_ours_cannot_be_written_by_another_name),
		with_shm(test_what_is_ours_cannot_be_made_writable),
		with_shm(test_tails_are_the_readers_to_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
