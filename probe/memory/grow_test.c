/* SPDX-License-Identifier: BSD-3-Clause */
/* A buffer whose memory comes in pieces, while threads use the first one. */
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
#include "probe/test_eal.h"
#include "shm.h"

#define MIB    (1ull << 20)
#define FIRST  (2 * MIB)
#define BUFFER (7 * MIB)
#define SHARES 2u

static struct rt_shm m;
static char err[RT_TEXT_LEN];

static struct rt_shm laid_out(uint64_t buffer, uint64_t first, uint32_t shares)
{
	struct rt_shm s;

	rt_shm_lay_out(&s, &(struct rt_shm_numbers){.rings = RT_MAX_RINGS,
				   .taps = 4,
				   .rows = 1,
				   .shares = shares,
				   .buffer_size = buffer,
				   .first = first});
	return s;
}

static int set_up(void **state)
{
	int fds[RT_FD_COUNT], ret;

	err[0] = 0;
	m = laid_out(BUFFER, FIRST, SHARES);
	test_shm_memory(&m, fds);
	ret = rt_shm_attach(&m, fds, err);
	for (int i = 0; i < RT_FD_COUNT; i++)
		close(fds[i]);
	return ret;
}

static int tear_down(void **state)
{
	rt_shm_destroy(&m);
	return 0;
}

static int memfd(uint64_t size, unsigned flags)
{
	int fd = memfd_create("test", MFD_CLOEXEC | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* As a reader makes it. */
static int full(uint64_t size)
{
	int fd = memfd(size, MFD_ALLOW_SEALING);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0, size);
	munmap(p, size);
	return fd;
}

static uint64_t used(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static int grow(uint64_t size)
{
	int fd = full(size), ret = rt_shm_grow(&m, fd, err);

	close(fd);
	return ret;
}

/* A system call that reads there fails where an access would raise a signal. */
static bool is_readable(const uint8_t *at)
{
	int fd = memfd(0, 0);
	bool ok = write(fd, at, 1) == 1;

	assert_true(ok || errno == EFAULT);
	close(fd);
	return ok;
}

static void test_the_first_memory_is_what_rings_need(void **state)
{
	static const struct {
		uint64_t buffer, first;
		uint32_t shares;
		uint64_t bytes;
	} cases[] = {
		{256 * MIB, 16 * MIB, 3, 16 * MIB},
		{256 * MIB, 0, 3, 256 * MIB},
		{16 * MIB, 16 * MIB, 3, 16 * MIB},
		{8 * MIB, 16 * MIB, 3, 8 * MIB},
		{17 * MIB, 16 * MIB, 3, 16 * MIB},
		{256 * MIB, 15 * MIB, 3, 16 * MIB}, /* huge pages */
		{2048 * MIB, 16 * MIB, 64, 256 * MIB},
		{RT_BUFFER_MAX, 16 * MIB, 3, 16 * MIB},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rt_shm s = laid_out(cases[i].buffer, cases[i].first, cases[i].shares);

		assert_int_equal(s.bytes[RT_FD_DATA], cases[i].bytes);
		assert_int_equal(s.chunk_size * s.chunk_count, cases[i].buffer);
	}
}

static void test_pieces_follow_each_other(void **state)
{
	unsigned char there[BUFFER / 4096];

	assert_int_equal(m.there, FIRST);
	assert_false(is_readable(m.data + FIRST));
	assert_int_equal(grow(4 * MIB), 0);
	assert_int_equal(m.there, FIRST + 4 * MIB);
	assert_false(is_readable(m.data + m.there));
	assert_int_equal(grow(1 * MIB), 0); /* the last one need not be of huge pages */
	assert_int_equal(m.there, BUFFER);
	assert_int_equal(mincore(m.data, BUFFER, there), 0);
	for (size_t p = 0; p < sizeof(there); p++)
		assert_true(there[p] & 1);
	memset(m.data, 1, BUFFER);
	assert_int_equal(grow(1 * MIB), -EINVAL); /* all of it is there */
	assert_string_equal(err, "cannot use the reader's memory for the rings: it is not of a "
				 "size that was requested");
}

static int a_pipe(void)
{
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	close(fd[1]);
	return fd[0];
}

static int sparse(void)
{
	return memfd(2 * MIB, MFD_ALLOW_SEALING);
}

static int with_a_hole(void)
{
	int fd = full(2 * MIB);

	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 4096), 0);
	return fd;
}

static int without_seals(void)
{
	return memfd(2 * MIB, 0);
}

static int read_only(void)
{
	char path[64];
	int rw = full(2 * MIB), fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", rw);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close(rw);
	return fd;
}

static int empty(void)
{
	return memfd(0, MFD_ALLOW_SEALING);
}

static int small(void)
{
	return full(MIB);
}

static int odd(void)
{
	return full(2 * MIB + 4096);
}

static int large(void)
{
	return full(BUFFER - FIRST + 4096);
}

/* The session keeps what it has, and takes valid memory afterwards. */
static void test_invalid_memory_is_refused_and_not_accessed(void **state)
{
	static const struct {
		int (*make)(void);
		const char *why;
	} cases[] = {
		{a_pipe, "it is not a memfd"},
		{sparse, "it has holes"},
		{with_a_hole, "it has holes"},
		{without_seals, "it cannot be sealed"},
		{read_only, "it cannot be written"},
		{empty, "not of a size"},
		{small, "not of a size"},
		{odd, "not of a size"},
		{large, "not of a size"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = cases[i].make();
		uint64_t before = used(fd);

		assert_int_equal(rt_shm_grow(&m, fd, err), -EINVAL);
		assert_non_null(strstr(err, cases[i].why));
		assert_int_equal(m.there, FIRST);
		assert_int_equal(used(fd), before);
		close(fd);
		assert_false(is_readable(m.data + FIRST));
		memset(m.data, 1, FIRST);
	}
	assert_int_equal(grow(4 * MIB), 0);
}

static void test_the_peer_cannot_change_a_piece(void **state)
{
	int fd = full(4 * MIB);

	assert_int_equal(rt_shm_grow(&m, fd, err), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(fd);
}

#define with_first(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_memory_is_what_rings_need),
		with_first(test_pieces_follow_each_other),
		with_first(test_invalid_memory_is_refused_and_not_accessed),
		with_first(test_the_peer_cannot_change_a_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
