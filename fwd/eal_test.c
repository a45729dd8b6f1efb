/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime folder of DPDK, and arguments of EAL; EAL itself is not started. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "eal.h"
#include "run_dir.h"
#include "base/util.h"

static char base[] = "/tmp/ringtap-fwd-eal-XXXXXX";
static char path[PATH_MAX + NAME_MAX];
static pid_t child; /* 0: none */
static int child_end;

static int setup_group(void **state)
{
	(void)state;
	if (!mkdtemp(base) || setenv("RUNTIME_DIRECTORY", base, 1))
		return -1;
	snprintf(path, sizeof(path), "%s/dpdk", base);
	return mkdir(path, 0700);
}

static int teardown_group(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

static const char *in(const char *folder, const char *file)
{
	snprintf(path, sizeof(path), "%s/dpdk/%s%s%s", base, folder, file ? "/" : "",
		file ? file : "");
	return path;
}

static void put(const char *folder, const char *file)
{
	mkdir(in(folder, NULL), 0700);
	if (file)
		close(open(in(folder, file), O_CREAT | O_WRONLY, 0600));
}

static bool there(const char *folder, const char *file)
{
	return !access(in(folder, file), F_OK);
}

/* Another process: it calls f, and lives until child_ends(). */
static void child_does(bool (*f)(const char *folder), const char *folder)
{
	int ready[2], end[2];
	char one;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(end[1]);
		one = f(folder);
		if (write(ready[1], &one, 1) == 1)
			(void)!read(end[0], &one, 1);
		_exit(0);
	}
	close(end[0]);
	close(ready[1]);
	child_end = end[1];
	assert_int_equal(read(ready[0], &one, 1), 1);
	close(ready[0]);
	assert_true(one);
}

static int child_ends(void **state)
{
	(void)state;
	if (!child)
		return 0;
	close(child_end);
	waitpid(child, NULL, 0);
	child = 0;
	return 0;
}

static bool locks(const char *folder)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(in(folder, "config"), O_RDWR);

	return fd >= 0 && !fcntl(fd, F_SETLK, &lock);
}

static bool listens_to(const char *folder, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	if (strlen(in(folder, "dpdk_telemetry.v2")) >= sizeof(a.sun_path))
		return false;
	strcpy(a.sun_path, path);
	return fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) &&
	       (type == SOCK_DGRAM || !listen(fd, 1));
}

static bool listens(const char *folder)
{
	return listens_to(folder, SOCK_SEQPACKET);
}

static bool listens_by_datagrams(const char *folder)
{
	return listens_to(folder, SOCK_DGRAM);
}

static bool used(const char *folder)
{
	char dir[PATH_MAX];

	run_dir_path(dir, folder);
	return run_dir_used(dir);
}

static void folder_of_a_process_that_runs(void **state)
{
	bool (*const kinds[])(const char *) = {locks, listens, listens_by_datagrams};
	static const char *const folders[] = {"locked", "listens", "datagrams"};
	char dir[PATH_MAX];

	for (unsigned i = 0; i < 3; i++) {
		put(folders[i], "config");
		assert_false(used(folders[i]));
		child_does(kinds[i], folders[i]);
		assert_true(used(folders[i]));
		run_dir_path(dir, folders[i]);
		run_dir_remove(dir);
		assert_true(there(folders[i], "config"));
		child_ends(state);
		assert_false(used(folders[i]));
		run_dir_remove(dir);
		assert_false(there(folders[i], NULL));
	}
}

static void missing_folder_is_not_used(void **state)
{
	char dir[PATH_MAX];

	(void)state;
	run_dir_path(dir, "missing");
	assert_false(run_dir_exists(dir));
	assert_false(run_dir_used(dir));
	run_dir_remove(dir);
}

static void unknown_files_are_kept(void **state)
{
	static const char *const known[] = {"config", "hugepage_info", "fbarray_memseg-1",
		"mp_socket", "mp_socket_12_34", "dpdk_telemetry.v2", "ringtap.sock", "ringtap.ids"};
	static const char *const unknown[] = {"theirs", "config2", "xfbarray_"};
	char dir[PATH_MAX];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		put("mixed", known[i]);
	for (unsigned i = 0; i < 3; i++)
		put("mixed", unknown[i]);
	run_dir_path(dir, "mixed");
	run_dir_remove(dir);
	for (unsigned i = 0; i < 8; i++)
		assert_false(there("mixed", known[i]));
	for (unsigned i = 0; i < 3; i++)
		assert_true(there("mixed", unknown[i]));
}

static void link_is_not_followed(void **state)
{
	char target[PATH_MAX], dir[PATH_MAX];

	(void)state;
	put("target", "config");
	run_dir_path(target, "target");
	run_dir_path(dir, "link");
	assert_int_equal(symlink(target, dir), 0);
	assert_true(run_dir_exists(dir));
	run_dir_remove(dir);
	assert_true(there("target", "config"));
	assert_true(run_dir_exists(dir));
}

/* A process id that no process has. */
static pid_t dead(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static void folders_of_ended_runs_are_removed(void **state)
{
	char names[5][NAME_MAX];
	const int pid = dead();

	(void)state;
	snprintf(names[0], NAME_MAX, "ringtap-fwd-%d", pid);
	snprintf(names[1], NAME_MAX, "ringtap-fwd-0%d", pid);
	snprintf(names[2], NAME_MAX, "another-%d", pid);
	snprintf(names[3], NAME_MAX, "ringtap-fwd-%d", getpid());
	snprintf(names[4], NAME_MAX, "ringtap-fwd-%dx", pid);
	for (int i = 0; i < 5; i++)
		put(names[i], "config");
	run_dir_sweep("ringtap-fwd-");
	for (int i = 0; i < 5; i++)
		assert_int_equal(there(names[i], "config"), i > 0);
}

static struct fwd_config c;

static int config(void **state)
{
	(void)state;
	config_init(&c);
	c.no_huge = true;
	c.name = "mine";
	c.eal_bytes = 16 << 20;
	return 0;
}

static void name_of_another_application(void **state)
{
	(void)state;
	put("mine", "config");
	child_does(locks, "mine");
	assert_int_equal(eal_start(&c), -EBUSY);
	assert_non_null(strstr(
		message_last(), "--name mine: another DPDK application runs under this name"));
	assert_true(there("mine", "config"));
}

static void too_many_arguments(void **state)
{
	static char *many[500];
	int status;
	pid_t pid;

	(void)state;
	for (int i = 0; i < 500; i++)
		many[i] = (char *)(uintptr_t) "-v";
	c.eal_argv = many;
	c.eal_argc = 500;
	/* In another process: EAL's arguments are collected once. */
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(eal_start(&c) == -E2BIG && strstr(message_last(), "EAL argument -v") ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void argument_that_is_too_long(void **state)
{
	static char text[1025];

	(void)state;
	memset(text, 'x', 1024);
	c.vdevs[c.vdev_count++] = text;
	assert_int_equal(eal_start(&c), -E2BIG);
	assert_non_null(strstr(message_last(), "EAL argument xxxx"));
	assert_non_null(strstr(message_last(), "too long or too many"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(folder_of_a_process_that_runs, child_ends),
		cmocka_unit_test(missing_folder_is_not_used),
		cmocka_unit_test(unknown_files_are_kept),
		cmocka_unit_test(link_is_not_followed),
		cmocka_unit_test(folders_of_ended_runs_are_removed),
		cmocka_unit_test_setup_teardown(name_of_another_application, config, child_ends),
		cmocka_unit_test_setup(too_many_arguments, config),
		cmocka_unit_test_setup(argument_that_is_too_long, config),
	};

	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
