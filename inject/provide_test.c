/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "provide.h"

#define OTHER 65534 /* a user without privileges */
#define GROUP 4711  /* a group of ours, not of that user */

static pid_t start_process(void)
{
	pid_t child = fork();

	if (!child) {
		if (setgroups(0, NULL) || setgid(OTHER) || setuid(OTHER) ||
			prctl(PR_SET_PDEATHSIG, SIGKILL))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	return child;
}

static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fchown(fd, 0, GROUP), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* Whether the process gets copies of the probe, for it cannot read it. */
static bool gets_copies(pid_t pid, const char *probe)
{
	const struct rt_process p = {.pid = pid};
	gid_t groups[8];
	struct rt_provided f;
	char err[256] = "";
	bool copies;

	if (rt_provide(&f, &p, probe, err, sizeof(err)))
		fail_msg("%s", err);
	copies = strcmp(f.path, probe) != 0;
	rt_provided_remove(&f);
	assert_int_equal(access(f.path, F_OK), copies ? -1 : 0);
	assert_int_equal(getgroups(8, groups), 1);
	assert_int_equal(groups[0], GROUP);
	return copies;
}

/* Files that root may read by one of its groups are not readable for the process. */
static void groups_of_root_are_not_those_of_the_process(void **state)
{
	const gid_t group = GROUP;
	char folder[] = "/var/tmp/ringtap-provide-XXXXXX", probe[64], objects[64], object[96];
	pid_t pid;

	if (geteuid() || setgroups(1, &group))
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(probe, sizeof(probe), "%s/" RT_PROBE_NAME, folder);
	snprintf(objects, sizeof(objects), "%s/ringtap", folder);
	snprintf(object, sizeof(object), "%s/probe-abi1.so", objects);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(mkdir(objects, 0755), 0);
	assert_int_equal(chmod(objects, 0755), 0);
	make_file(object, 0644);
	make_file(probe, 0644);
	pid = start_process();
	assert_false(gets_copies(pid, probe));
	make_file(probe, 0640);
	assert_true(gets_copies(pid, probe));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(object);
	unlink(probe);
	rmdir(objects);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_of_root_are_not_those_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
