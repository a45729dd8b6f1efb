/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid memory from a reader: refused with a reason, and not accessed. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/atomics.h"
#include "common/proto.h"
#include "shm.h"
#include "probe/test_eal.h"

#define RINGS 2u
#define TAPS  10u

static struct rt_shm m;
static int fds[RT_FD_COUNT];
static char err[RT_TEXT_LEN];

static int set_up(void **state)
{
	rt_shm_lay_out(&m, &(struct rt_shm_numbers){.rings = RINGS,
				   .rows = RINGS,
				   .shares = RINGS,
				   .buffer_size = RINGS * RT_CHUNKS_OF_RING * RT_CHUNK_MIN,
				   .taps = TAPS});
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

/* Seals are permanent: makes other memory. */
static void restart(void **state)
{
	tear_down(state);
	set_up(state);
}

static void use(int which, int fd)
{
	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, fds[which]), fds[which]);
	close(fd);
}

static int memfd(uint64_t size, unsigned flags)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* Populated memory, as a reader allocates it. */
static int full(uint64_t size)
{
	int fd = memfd(size, 0);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0, size);
	munmap(p, size);
	return fd;
}

static void assert_refused(const char *why)
{
	struct rt_shm before = m;

	assert_true(rt_shm_attach(&m, fds, err) < 0);
	assert_non_null(strstr(err, why));
	assert_null(m.header);
	assert_null(m.tails);
	assert_null(m.data_base);
	m = before;
}

/* Allocated bytes of the file: the check must not allocate pages. */
static uint64_t used(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void test_valid_memory_is_accepted(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++)
		use(i, full(m.bytes[i]));
	assert_int_equal(rt_shm_attach(&m, fds, err), 0);
	assert_string_equal(err, "");
}

static void test_sparse_memory_is_refused(void **state)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		use(i, memfd(m.bytes[i], 0));
		assert_refused("it has holes");
		assert_int_equal(used(fds[i]), 0);
		restart(state);
	}
}

static void test_memory_with_one_hole_is_refused(void **state)
{
	use(RT_FD_DATA, full(m.bytes[RT_FD_DATA]));
	assert_int_equal(fallocate(fds[RT_FD_DATA], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)m.bytes[RT_FD_DATA] - 4096, 4096),
		0);
	assert_refused("it has holes");
	assert_int_equal(used(fds[RT_FD_DATA]), m.bytes[RT_FD_DATA] - 4096);
}

/* fallocate() reserves memory, and the first write is not charged: such memory may be accepted or
 * refused, but must not grow. */
static void test_memory_that_was_only_reserved_does_not_grow(void **state)
{
	uint64_t size = m.bytes[RT_FD_DATA];

	use(RT_FD_DATA, memfd(size, 0));
	assert_int_equal(fallocate(fds[RT_FD_DATA], 0, 0, (off_t)size), 0);
	(void)rt_shm_attach(&m, fds, err);
	assert_int_equal(used(fds[RT_FD_DATA]), size);
}

static void test_memory_of_another_size_is_refused(void **state)
{
	static const int64_t more[] = {-4096, 4096, -1, 1};

	for (unsigned k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
		for (int i = 0; i < RT_FD_COUNT; i++) {
			uint64_t size = m.bytes[i] + (uint64_t)more[k];

			restart(state);
			use(i, size ? full(size) : memfd(0, 0));
			assert_refused("not of the size");
		}
	}
}

static void test_descriptors_without_a_memfd_are_refused(void **state)
{
	static const char *const paths[] = {"/dev/zero", "/dev/null", "/proc/self/exe", "/"};
	int ends[2];

	for (unsigned k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
		use(RT_FD_DATA, open(paths[k], O_RDONLY | O_CLOEXEC));
		assert_refused("not a memfd");
	}
	assert_int_equal(pipe(ends), 0);
	use(RT_FD_SEGMENT, ends[0]);
	close(ends[1]);
	assert_refused("not a memfd");
}

/* The peer could write to it, or truncate it, by its name. */
static void test_file_on_disk_is_refused(void **state)
{
	char path[] = "/var/tmp/ringtap-test.XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)m.bytes[RT_FD_DATA]), 0);
	use(RT_FD_DATA, fd);
	assert_refused("not a memfd");
}

static void test_file_of_a_tmpfs_is_refused(void **state)
{
	char path[] = "/dev/shm/ringtap-test.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		skip();
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)m.bytes[RT_FD_DATA]), 0);
	use(RT_FD_DATA, fd);
	assert_refused("cannot be sealed");
}

static void test_hugetlb_memory_is_refused(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0)
		skip(); /* a kernel without hugetlbfs */
	assert_int_equal(ftruncate(fd, 4 << 20), 0);
	use(RT_FD_DATA, fd);
	assert_refused("hugetlb");
}

static void test_memory_that_cannot_be_written_is_refused(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[RT_FD_DATA]);
	use(RT_FD_DATA, open(path, O_RDONLY | O_CLOEXEC));
	assert_refused("cannot be written");
}

static void test_memory_that_is_sealed_already_is_refused(void **state)
{
	static const int seals[] = {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};
	static const char *const why[] = {"cannot", "cannot write", "cannot be sealed"};

	for (int k = 0; k < 3; k++) {
		use(RT_FD_DATA, full(m.bytes[RT_FD_DATA]));
		assert_int_equal(fcntl(fds[RT_FD_DATA], F_ADD_SEALS, seals[k]), 0);
		assert_refused(why[k]);
		restart(state);
	}
}

/* ---- memory that changes meanwhile ---- */

static uint32_t quit;

static void *resize(void *arg)
{
	off_t size = *(const off_t *)arg;

	while (!rt_load(&quit)) {
		(void)ftruncate(fds[RT_FD_DATA], 4096);
		(void)ftruncate(fds[RT_FD_DATA], size);
	}
	return NULL;
}

static void *punch(void *arg)
{
	off_t size = *(const off_t *)arg;
	char page[4096] = "";

	while (!rt_load(&quit)) {
		(void)fallocate(fds[RT_FD_DATA], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			size / 2, 4096);
		(void)!pwrite(fds[RT_FD_DATA], page, sizeof(page), size / 2);
	}
	return NULL;
}

/* Each time it is refused, or complete from then on; SIGBUS would end the test. */
static void race(void **state, void *(*spoil)(void *))
{
	for (int i = 0; i < 300; i++) {
		off_t size = (off_t)m.bytes[RT_FD_DATA];
		pthread_t thread;

		use(RT_FD_DATA, full(m.bytes[RT_FD_DATA]));
		rt_store(&quit, 0);
		assert_int_equal(pthread_create(&thread, NULL, spoil, &size), 0);
		if (rt_shm_attach(&m, fds, err) == 0) {
			memset(m.data, 7, m.bytes[RT_FD_DATA]);
			assert_int_equal(used(fds[RT_FD_DATA]), m.bytes[RT_FD_DATA]);
		}
		rt_store(&quit, 1);
		pthread_join(thread, NULL);
		restart(state);
	}
}

static void test_memory_that_changes_its_size_meanwhile(void **state)
{
	race(state, resize);
}

static void test_memory_that_gets_holes_meanwhile(void **state)
{
	race(state, punch);
}

/* ---- mlockall() ---- */

/* In a child, as locking cannot be tested for here. 0: as expected. */
static int locked_child(bool sparse, rlim_t limit)
{
	struct rlimit l = {limit, limit};
	int status = 0;

	if (sparse) {
		close(fds[RT_FD_DATA]);
		fds[RT_FD_DATA] = memfd(m.bytes[RT_FD_DATA], 0);
	}
	if (limit != RLIM_INFINITY && (setrlimit(RLIMIT_MEMLOCK, &l) || setuid(65534)))
		return 10;
	if (mlockall(MCL_FUTURE))
		return 11;
	if (rt_shm_attach(&m, fds, err)) {
		if (sparse)
			status = strstr(err, "holes") && used(fds[RT_FD_DATA]) == 0 ? 0 : 12;
		else
			status = strstr(err, "RLIMIT_MEMLOCK") ? 20 : 13;
	} else {
		memset(m.data, 1, RT_CHUNK_MIN);
	}
	return status;
}

static int in_child(bool sparse, rlim_t limit)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(locked_child(sparse, limit));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_process_that_locks_all_its_memory(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* sanitizers ignore mlockall(), which would populate their shadow memory */
#endif
	if (geteuid())
		skip(); /* no permission to lock */
	assert_int_equal(in_child(false, RLIM_INFINITY), 0);
	restart(state);
	/* Mapping populates no holes: the refusal comes before anything is charged. */
	assert_int_equal(in_child(true, RLIM_INFINITY), 0);
	restart(state);
	assert_int_equal(in_child(false, 65536), 20);
}

#define with_memory(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_memory(test_valid_memory_is_accepted),
		with_memory(test_sparse_memory_is_refused),
		with_memory(test_memory_with_one_hole_is_refused),
		with_memory(test_memory_that_was_only_reserved_does_not_grow),
		with_memory(test_memory_of_another_size_is_refused),
		with_memory(test_descriptors_without_a_memfd_are_refused),
		with_memory(test_file_on_disk_is_refused),
		with_memory(test_file_of_a_tmpfs_is_refused),
		with_memory(test_hugetlb_memory_is_refused),
		with_memory(test_memory_that_cannot_be_written_is_refused),
		with_memory(test_memory_that_is_sealed_already_is_refused),
		with_memory(test_memory_that_changes_its_size_meanwhile),
		with_memory(test_memory_that_gets_holes_meanwhile),
		with_memory(test_process_that_locks_all_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
