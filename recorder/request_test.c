/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a recorder, which is this process: its folder, its lock, and what it answers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "common/test_now.h"
#include "request.h"

static char folder[64], taken[4][REQUEST_COMMENT_MAX];
static unsigned taken_count, signals;
static int refusal, lock;

static void on_signal(int number)
{
	signals++;
}

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	strcpy(folder, "/tmp/ringtap-request-XXXXXX");
	signal(SIGUSR1, on_signal);
	taken_count = signals = 0;
	refusal = 0;
	if (!mkdtemp(folder))
		return -1;
	lock = folder_lock(folder);
	return lock < 0;
}

static int end(void **state)
{
	char command[80];

	close(lock);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static int take_one(void *ctx, const char *comment)
{
	strcpy(taken[taken_count++ % 4], comment);
	if (refusal)
		message_print("flight: command: 16 incidents are being written already");
	return refusal;
}

/* As the recorder does, while the sender waits. */
static void take(void *arg)
{
	requests_take(folder, take_one, NULL);
}

static char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void assert_empty(void)
{
	char command[160];

	snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = .recorder", folder);
	assert_int_equal(system(command), 0);
}

/* ---- the lock */

static void a_second_recorder_is_refused(void **state)
{
	assert_int_equal(folder_lock(folder), -EBUSY);
	assert_non_null(strstr(message_last(), "another recorder writes there"));
}

static void a_folder_is_made(void **state)
{
	struct stat st;
	int fd = folder_lock(path_of("new"));

	assert_true(fd >= 0);
	assert_int_equal(stat(path_of("new"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(path_of("new/.recorder"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
}

static void folders_that_cannot_be_made(void **state)
{
	assert_int_equal(folder_lock(path_of("no/such")), -ENOENT);
	assert_non_null(strstr(message_last(), "No such file or directory; choose another folder"));
	assert_int_equal(folder_lock(path_of(".recorder")), -ENOTDIR);
}

static void the_lock_is_not_a_link(void **state)
{
	assert_int_equal(mkdir(path_of("x"), 0700), 0);
	assert_int_equal(symlink("/dev/null", path_of("x/.recorder")), 0);
	assert_int_equal(folder_lock(path_of("x")), -ELOOP);
}

/* ---- requests */

static void a_request_comes_with_its_comment(void **state)
{
	char why[REQUEST_WHY_MAX];

	test_now_after(NS_PER_S / 10, take, NULL);
	assert_int_equal(request_send_within(folder, "link\x1b flapped", 10000, why), 0);
	assert_int_equal(taken_count, 1);
	assert_string_equal(taken[0], "link? flapped");
	assert_int_equal(signals, 1);
	assert_empty();
}

static void a_request_without_a_comment(void **state)
{
	assert_int_equal(request_send(folder, NULL), 0);
	assert_int_equal(requests_take(folder, take_one, NULL), 1);
	assert_string_equal(taken[0], "");
	assert_int_equal(requests_take(folder, take_one, NULL), 0);
}

static void a_refusal_has_its_reason(void **state)
{
	char why[REQUEST_WHY_MAX];

	refusal = -EAGAIN;
	test_now_after(NS_PER_S / 10, take, NULL);
	assert_int_equal(request_send_within(folder, "x", 10000, why), -ECANCELED);
	assert_string_equal(why, "flight: command: 16 incidents are being written already");
	assert_empty();
}

static void a_recorder_has_ten_seconds(void **state)
{
	uint64_t begin_ns = rt_now_ns(CLOCK_MONOTONIC);
	char why[REQUEST_WHY_MAX];

	assert_int_equal(request_send_within(folder, "x", 10000, why), -ETIMEDOUT);
	assert_in_range(rt_now_ns(CLOCK_MONOTONIC) - begin_ns, 10 * NS_PER_S,
		10 * NS_PER_S + NS_PER_S / 50);
	/* It is taken back. */
	assert_int_equal(requests_take(folder, take_one, NULL), 0);
	assert_empty();
}

static void no_recorder(void **state)
{
	flock(lock, LOCK_UN);
	assert_int_equal(request_send(folder, "x"), -ESRCH);
	assert_int_equal(request_send("/nowhere", "x"), -ESRCH);
	assert_int_equal(request_send("/dev/null", "x"), -ESRCH);
	unlink(path_of(".recorder"));
	assert_int_equal(request_send(folder, "x"), -ESRCH);
	assert_int_equal(signals, 0);
}

static void write_pid(const char *text)
{
	assert_int_equal(ftruncate(lock, 0), 0);
	assert_int_equal(pwrite(lock, text, strlen(text), 0), strlen(text));
}

static void process_ids_that_are_none(void **state)
{
	static const char *const texts[] = {"", "x", "0", "-1", "99999999999"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_pid(texts[i]);
		assert_true(request_send(folder, "x") < 0);
	}
	assert_int_equal(signals, 0);
}

/* The folder's owner writes which process that is: one that has not the lock open gets no signal.
 */
static void another_process_gets_no_signal(void **state)
{
	int ready[2], status;
	char text[16];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		close(lock);
		signal(SIGUSR1, SIG_DFL);
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], text, 1), 1);
	close(ready[0]);
	close(ready[1]);
	snprintf(text, sizeof(text), "%d\n", (int)child);
	write_pid(text);
	assert_int_equal(request_send(folder, "x"), -EPERM);
	assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_empty();
}

/* ---- files in the folder that are not requests */

static void other_files_are_not_taken(void **state)
{
	test_write(path_of(".request-"), "a", 1);
	test_write(path_of(".request-1x"), "b", 1);
	test_write(path_of(".new-1"), "c", 1);
	assert_int_equal(requests_take(folder, take_one, NULL), 0);
	assert_int_equal(requests_take("/nowhere", take_one, NULL), 0);
}

static void a_pipe_is_a_request_without_a_comment(void **state)
{
	assert_int_equal(mkfifo(path_of(".request-1"), 0600), 0);
	assert_int_equal(symlink("/etc/passwd", path_of(".request-2")), 0);
	assert_int_equal(requests_take(folder, take_one, NULL), 2);
	assert_string_equal(taken[0], "");
	assert_string_equal(taken[1], "");
	assert_empty();
}

static void a_lock_that_is_a_pipe(void **state)
{
	unlink(path_of(".recorder"));
	assert_int_equal(mkfifo(path_of(".recorder"), 0600), 0);
	assert_true(request_send(folder, "x") < 0);
}

static void comments_are_cut(void **state)
{
	char *text = calloc(1, 100001);

	memset(text, 'x', 100000);
	test_write(path_of(".request-1"), text, 100000);
	assert_int_equal(requests_take(folder, take_one, NULL), 1);
	assert_true(strlen(taken[0]) < REQUEST_COMMENT_MAX);
	free(text);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_second_recorder_is_refused),
		CASE(a_folder_is_made),
		CASE(folders_that_cannot_be_made),
		CASE(the_lock_is_not_a_link),
		CASE(a_request_comes_with_its_comment),
		CASE(a_request_without_a_comment),
		CASE(a_refusal_has_its_reason),
		CASE(a_recorder_has_ten_seconds),
		CASE(no_recorder),
		CASE(process_ids_that_are_none),
		CASE(another_process_gets_no_signal),
		CASE(other_files_are_not_taken),
		CASE(a_pipe_is_a_request_without_a_comment),
		CASE(a_lock_that_is_a_pipe),
		CASE(comments_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
