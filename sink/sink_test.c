/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "convert.h"
#include "sink.h"
#include "base/test_util.h"

#define BLOCKS    200000u
#define BLOCK_LEN 92u /* the block of a packet of 60 bytes */
#define TOTAL     ((size_t)BLOCKS * BLOCK_LEN)

static uint8_t *blocks;

static int setup(void **state)
{
	blocks = malloc(TOTAL);
	test_epbs(blocks, BLOCKS, 60, 0);
	/* RLIMIT_FSIZE must be an error of the write, as it is in the program. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	test_folder_enter();
	return 0;
}

static int teardown(void **state)
{
	test_folder_leave();
	free(blocks);
	return 0;
}

/* Writes all blocks in calls of changing sizes and numbers of pieces. Returns the first error. */
static int write_blocks(struct sink *s, int flush_every)
{
	size_t at = 0;
	unsigned call = 0;

	while (at < BLOCKS) {
		struct iovec iov[3];
		unsigned n = 0;
		size_t before = at;
		int ret;

		for (; n < 3 && at < BLOCKS; n++) {
			size_t count = 1 + (call * 7919 + n * 104729) % 4000;

			if (count > BLOCKS - at)
				count = BLOCKS - at;
			iov[n] = (struct iovec){blocks + at * BLOCK_LEN, count * BLOCK_LEN};
			at += count;
		}
		ret = sink_write(s, iov, n, before);
		if (!ret && flush_every && call % (unsigned)flush_every == 0)
			ret = sink_flush(s);
		if (ret)
			return ret;
		call++;
	}
	return 0;
}

static struct sink *open_sink(const char *path, const struct sink_options *o)
{
	struct sink *s;

	assert_int_equal(sink_open(&s, path, o), 0);
	assert_int_equal(sink_start(s), 0);
	return s;
}

static void assert_file_is_prefix(const char *path, size_t expected)
{
	size_t len;
	uint8_t *data = test_read(path, &len);

	assert_int_equal(len, expected);
	assert_int_equal(memcmp(data, blocks, len), 0);
	free(data);
}

static void files_hold_what_was_written(void **state)
{
	for (int flush_every = 0; flush_every < 4; flush_every++) {
		for (int no_direct = 0; no_direct < 2; no_direct++) {
			const struct sink_options o = {.no_direct = no_direct};
			struct sink *s;
			uint64_t bytes, packets = 42;

			test_write("f", "something that was here before", 30);
			s = open_sink("f", &o);
			if (no_direct)
				assert_string_equal(sink_kind(s), "write");
			assert_int_equal(write_blocks(s, flush_every), 0);
			assert_int_equal(sink_close(s, &bytes, &packets), 0);
			assert_int_equal(bytes, TOTAL);
			assert_int_equal(packets, 42);
			assert_file_is_prefix("f", TOTAL);
		}
	}
}

/* Prints whether io_uring is unavailable here: the tests above and below then cover less. */
static void direct_is_used_on_disks(void **state)
{
	const struct sink_options o = {0};
	struct sink *s = open_sink("d", &o);
	const bool direct = !strcmp(sink_kind(s), "io_uring");
	uint64_t bytes, packets;

	assert_int_equal(sink_close(s, &bytes, &packets), 0);
	assert_int_equal(bytes, 0);
	if (!direct) {
		print_message("skipped: no io_uring or no O_DIRECT in this folder\n");
		skip();
	}
}

/* Mappings of size bytes that are not copied by fork(). */
static unsigned unforked_mappings(size_t size)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[256];
	size_t from, to, found = 0;
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%zx-%zx ", &from, &to) == 2)
			found = to - from;
		n += found == size && !strncmp(line, "VmFlags:", 8) && strstr(line, " dc");
	}
	fclose(f);
	return n;
}

/* A fork while it writes would leave small pages instead of huge ones. */
static void buffers_are_not_copied_by_fork(void **state)
{
	const struct sink_options o = {0};
	struct sink *s = open_sink("d", &o);
	const bool direct = !strcmp(sink_kind(s), "io_uring");
	uint64_t bytes, packets;

	assert_int_equal(unforked_mappings(16 << 20), direct);
	assert_int_equal(sink_close(s, &bytes, &packets), 0);
}

static void flushed_bytes_can_be_read_at_once(void **state)
{
	const struct sink_options o = {0};
	struct sink *s = open_sink("l", &o);
	struct iovec iov = {blocks, 3 * BLOCK_LEN};
	uint64_t bytes, packets;

	assert_int_equal(sink_write(s, &iov, 1, 0), 0);
	assert_int_equal(sink_flush(s), 0);
	assert_file_is_prefix("l", 3 * BLOCK_LEN);
	assert_int_equal(sink_close(s, &bytes, &packets), 0);
	assert_file_is_prefix("l", 3 * BLOCK_LEN);
}

static void file_that_ends_early_has_whole_blocks(void **state)
{
	/* In the first buffer, in a later one, at a block's end, and next to it. */
	static const rlim_t limits[] = {1, 1000, 100 * BLOCK_LEN, 100 * BLOCK_LEN + 1, 4 << 20,
		(4 << 20) + 4096, 10000001, 16 << 20};
	struct rlimit old, now;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (size_t i = 0; i < 2 * sizeof(limits) / sizeof(limits[0]); i++) {
		const struct sink_options o = {.no_direct = i % 2};
		struct sink *s = open_sink("e", &o);
		uint64_t bytes, packets = 0;
		size_t whole = limits[i / 2] / BLOCK_LEN;
		int wrote;

		now = (struct rlimit){limits[i / 2], old.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
		wrote = write_blocks(s, i % 3 == 0);
		assert_true(wrote == 0 || wrote == -EFBIG);
		assert_int_equal(sink_close(s, &bytes, &packets), -EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		/* O_DIRECT may leave out a last part of a page, but no more. */
		assert_true(packets <= whole && packets + 4096 / BLOCK_LEN + 1 >= whole);
		assert_int_equal(bytes, packets * BLOCK_LEN);
		assert_file_is_prefix("e", bytes);
	}
}

static void opaque_files_end_with_a_whole_call(void **state)
{
	struct rlimit old, now;
	const struct sink_options o = {.format = SINK_OPAQUE, .no_direct = true};
	struct sink *s = open_sink("o", &o);
	struct iovec iov = {blocks, 1000};
	uint64_t bytes, packets;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	now = (struct rlimit){2500, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(sink_write(s, &iov, 1, 0), 0);
	iov = (struct iovec){blocks + 1000, 1000};
	assert_int_equal(sink_write(s, &iov, 1, 5), 0);
	iov = (struct iovec){blocks + 2000, 1000};
	assert_int_equal(sink_write(s, &iov, 1, 11), -EFBIG);
	/* It sticks. */
	assert_int_equal(sink_write(s, &iov, 1, 11), -EFBIG);
	assert_int_equal(sink_close(s, &bytes, &packets), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(bytes, 2000);
	assert_int_equal(packets, 11);
	assert_file_is_prefix("o", 2000);
}

static void pcap_files_end_with_a_whole_record(void **state)
{
	for (int no_direct = 0; no_direct < 2; no_direct++) {
		const struct sink_options o = {.format = SINK_PCAP, .no_direct = no_direct};
		struct sink *s = open_sink("p", &o);
		uint8_t header[PCAP_FILE_HEADER], *records = malloc(TOTAL);
		struct rlimit old, now;
		uint64_t bytes, packets;
		struct iovec iov = {header, sizeof(header)};
		struct ringtap_run run = {.size = sizeof(run),
			.packets = BLOCKS,
			.bytes = TOTAL,
			.records = blocks,
			.interface_count = 1};
		struct ringtap_packets *it;
		int written;
		int64_t len;

		assert_int_equal(ringtap_packets_create(&it), 0);
		len = pcap_convert(records, it, &run);
		assert_true(len > 0);
		ringtap_packets_free(it);
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
		now = (struct rlimit){8192, old.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
		pcap_file_header(header, 262144, 1);
		assert_int_equal(sink_write(s, &iov, 1, 0), 0);
		iov = (struct iovec){records, (size_t)len};
		/* io_uring may report it later, at the end at the latest. */
		written = sink_write(s, &iov, 1, 0);
		assert_true(written == -EFBIG || (!no_direct && !written));
		assert_int_equal(sink_close(s, &bytes, &packets), -EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(packets, (8192 - 24) / 76);
		assert_int_equal(test_pcap_read("p").packets, packets);
		free(records);
	}
}

struct drain {
	int fd;
	uint8_t *data;
	size_t len;
};

static void *drain(void *arg)
{
	struct drain *d = arg;
	ssize_t n;

	/* Odd pieces, so that writes are short at odd places. */
	while ((n = read(d->fd, d->data + d->len, 8191)) > 0)
		d->len += (size_t)n;
	return NULL;
}

static void pipes_get_everything(void **state)
{
	for (int nonblock = 0; nonblock < 2; nonblock++) {
		const struct sink_options o = {0};
		struct drain d = {.data = malloc(TOTAL + 8192)};
		uint64_t bytes, packets;
		struct sink *s;
		pthread_t thread;
		char path[64];
		int fds[2];

		assert_int_equal(pipe(fds), 0);
		d.fd = fds[0];
		assert_int_equal(pthread_create(&thread, NULL, drain, &d), 0);
		if (nonblock) {
			/* As where another program made standard output non-blocking. */
			int out = dup(STDOUT_FILENO);

			fcntl(fds[1], F_SETFL, O_NONBLOCK);
			fflush(stdout);
			dup2(fds[1], STDOUT_FILENO);
			s = open_sink("-", &o);
			dup2(out, STDOUT_FILENO);
			close(out);
		} else {
			snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
			s = open_sink(path, &o);
		}
		close(fds[1]);
		assert_int_equal(write_blocks(s, 5), 0);
		assert_int_equal(sink_close(s, &bytes, &packets), 0);
		pthread_join(thread, NULL);
		close(fds[0]);
		assert_int_equal(bytes, TOTAL);
		assert_int_equal(d.len, TOTAL);
		assert_int_equal(memcmp(d.data, blocks, TOTAL), 0);
		free(d.data);
	}
}

static struct sink *open_pipe(int fds[2], struct sink_patience *patience)
{
	const struct sink_options o = {.patience = patience};
	char path[64];
	struct sink *s;

	assert_int_equal(pipe(fds), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
	s = open_sink(path, &o);
	close(fds[1]);
	return s;
}

static void closed_pipe_is_an_error(void **state)
{
	uint64_t bytes, packets;
	int fds[2];
	struct sink *s = open_pipe(fds, NULL);

	close(fds[0]);
	assert_int_equal(write_blocks(s, 0), -EPIPE);
	assert_int_equal(sink_close(s, &bytes, &packets), -EPIPE);
}

static void closed_pipe_is_told_without_a_write(void **state)
{
	uint64_t bytes, packets;
	int fds[2];
	struct sink *s = open_pipe(fds, NULL);

	assert_int_equal(sink_flush(s), 0);
	close(fds[0]);
	assert_int_equal(sink_flush(s), -EPIPE);
	assert_int_equal(sink_close(s, &bytes, &packets), 0);
	assert_int_equal(bytes, 0);
}

static struct sink_patience patience;

static void lose_patience(int signal)
{
	patience.give_up = 1;
}

/* The pipe is full and has no reader: a signal interrupts the write. */
static void stuck_pipe_can_be_given_up(void **state)
{
	const struct sigaction sa = {.sa_handler = lose_patience};
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	uint64_t bytes, packets;
	int fds[2];
	struct sink *s = open_pipe(fds, &patience);

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(write_blocks(s, 0), -ECANCELED);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_int_equal(sink_close(s, &bytes, &packets), -ECANCELED);
	close(fds[0]);
}

static void full_device_is_an_error(void **state)
{
	const struct sink_options o = {0};
	struct sink *s = open_sink("/dev/full", &o);
	uint64_t bytes, packets;

	assert_int_equal(write_blocks(s, 0), -ENOSPC);
	assert_int_equal(sink_close(s, &bytes, &packets), -ENOSPC);
	assert_int_equal(bytes, 0);
}

static void full_tmpfs_keeps_whole_blocks(void **state)
{
	const struct sink_options o = {0};
	struct sink *s;
	uint64_t bytes, packets;

	/* Another mount namespace, so that nothing is left behind whatever happens. */
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mkdir("t", 0700) || mount("none", "t", "tmpfs", 0, "size=1m")) {
		print_message("skipped: may not mount a tmpfs here: %s\n", strerror(errno));
		skip();
	}
	s = open_sink("t/f", &o);
	assert_string_equal(sink_kind(s), "write");
	assert_int_equal(write_blocks(s, 0), -ENOSPC);
	assert_int_equal(sink_close(s, &bytes, &packets), -ENOSPC);
	assert_int_equal(bytes, packets * BLOCK_LEN);
	assert_true(bytes > (1 << 20) - 4096);
	assert_file_is_prefix("t/f", bytes);
	assert_int_equal(umount("t"), 0);
	assert_int_equal(rmdir("t"), 0);
}

static void files_are_private_and_old_ones_safe(void **state)
{
	struct sink_options o = {0};
	struct sink *s;
	struct stat st;

	umask(0);
	assert_int_equal(sink_open(&s, "new", &o), 0);
	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	sink_abandon(s);
	assert_int_equal(stat("new", &st), -1);
	o.group_read = true;
	assert_int_equal(sink_open(&s, "group", &o), 0);
	assert_int_equal(stat("group", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	sink_abandon(s);
	test_write("old", blocks, 100);
	assert_int_equal(sink_open(&s, "old", &o), 0);
	sink_abandon(s);
	assert_file_is_prefix("old", 100);
	if (!geteuid()) {
		assert_int_equal(chown("old", 4711, 4711), 0);
		assert_int_equal(sink_open(&s, "old", &o), -EPERM);
	}
	assert_int_equal(sink_open(&s, "none/x", &o), -ENOENT);
	assert_int_equal(sink_open(&s, ".", &o), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_hold_what_was_written),
		cmocka_unit_test(direct_is_used_on_disks),
		cmocka_unit_test(buffers_are_not_copied_by_fork),
		cmocka_unit_test(flushed_bytes_can_be_read_at_once),
		cmocka_unit_test(file_that_ends_early_has_whole_blocks),
		cmocka_unit_test(opaque_files_end_with_a_whole_call),
		cmocka_unit_test(pcap_files_end_with_a_whole_record),
		cmocka_unit_test(pipes_get_everything),
		cmocka_unit_test(closed_pipe_is_an_error),
		cmocka_unit_test(closed_pipe_is_told_without_a_write),
		cmocka_unit_test(stuck_pipe_can_be_given_up),
		cmocka_unit_test(full_device_is_an_error),
		cmocka_unit_test(files_are_private_and_old_ones_safe),
		cmocka_unit_test(full_tmpfs_keeps_whole_blocks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
