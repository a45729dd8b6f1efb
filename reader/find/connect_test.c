/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sockets are trusted. Needs root, for listeners of several users; most tests are skipped
 * otherwise. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/proto.h"
#include "connect.h"
#include "ringtap/reader.h"
#include "owners.h"
#include "telemetry.h"
#include "views.h"
#include "reader/tunables.h"

#define ALICE   4711u
#define MALLORY 4712u

/* XDG_RUNTIME_DIR; applications are folders in its folder dpdk. */
static char home[64], dpdk[80];

static int make_home(void **state)
{
	strcpy(home, "/tmp/ringtap-users.XXXXXX");
	assert_non_null(mkdtemp(home));
	assert_int_equal(chmod(home, 0755), 0);
	snprintf(dpdk, sizeof(dpdk), "%s/dpdk", home);
	assert_int_equal(mkdir(dpdk, 0755), 0);
	return setenv("XDG_RUNTIME_DIR", home, 1) || setenv(RT_VIEWS_VARIABLE, "no", 1);
}

static int remove_home(void **state)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", home);
	return home[0] && system(command);
}

static const char *app_dir(const char *name)
{
	static char dir[2][128];
	static unsigned turn;
	char *d = dir[turn++ % 2];

	snprintf(d, sizeof(dir[0]), "%s/%s", dpdk, name);
	return d;
}

static void make_folder(const char *name, uid_t owner, mode_t mode)
{
	assert_int_equal(mkdir(app_dir(name), 0700), 0);
	assert_int_equal(chmod(app_dir(name), mode), 0);
	assert_int_equal(chown(app_dir(name), owner, owner), 0);
}

struct listener {
	pid_t pid;
	int heard; /* bytes that it has received when its peer has closed */
	char path[160];
};

/* Into a user namespace in which this process's user is the only one. */
static bool leave_users(uid_t user)
{
	FILE *map;

	/* Root owns the files of a process that changed its user. */
	if (setresuid(user, user, user) || prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
		return false;
	map = fopen("/proc/self/uid_map", "w");
	return map && fprintf(map, "%u %u 1", (unsigned)user, (unsigned)user) > 0 && !fclose(map);
}

static bool in_namespace; /* listeners have a user namespace */

static void listen_forever(const char *path, uid_t user, int backlog, int ready, int heard)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), conn;
	char buf[256];
	ssize_t n;

	memcpy(addr.sun_path, path, strlen(path) + 1);
	/* A listener's credentials are those at listen(). */
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
		(in_namespace ? !leave_users(user) : setresuid(user, user, user)) ||
		listen(fd, backlog))
		_exit(1);
	if (write(ready, "", 1) != 1)
		_exit(1);
	while (backlog && (conn = accept(fd, NULL, NULL)) >= 0) {
		uint32_t count = 0;

		while ((n = recv(conn, buf, sizeof(buf), 0)) > 0)
			count += (uint32_t)n;
		if (write(heard, &count, sizeof(count)) != sizeof(count))
			_exit(1);
		close(conn);
	}
	pause();
}

static struct listener start(
	const char *app, const char *socket, uid_t owner, uid_t user, int backlog)
{
	struct listener l;
	int ready[2], heard[2];
	char c;

	assert_in_range(snprintf(l.path, sizeof(l.path), "%s/%s", app_dir(app), socket), 1, 107);
	assert_int_equal(pipe(ready) | pipe(heard), 0);
	l.pid = fork();
	if (!l.pid) {
		close(ready[0]);
		listen_forever(l.path, user, backlog, ready[1], heard[1]);
		_exit(1);
	}
	close(ready[1]);
	close(heard[1]);
	l.heard = heard[0];
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_int_equal(chown(l.path, owner, owner), 0);
	assert_int_equal(chmod(l.path, 0666), 0);
	return l;
}

static void stop(struct listener *l)
{
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	close(l->heard);
}

static char why[512];

static int try_connect(const char *app)
{
	int fd = rt_connect_why(app_dir(app), RT_SOCKET_NAME, why, sizeof(why));

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Number of entries with this name in the list, and of notes with this text. */
static unsigned listed(const char *name, const char *note, unsigned *notes)
{
	struct ringtap_apps *apps;
	unsigned n = 0;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		n += !strcmp(ringtap_apps_name(apps, i), name);
	*notes = 0;
	for (size_t i = 0; i < ringtap_apps_notes(apps); i++)
		*notes += strstr(ringtap_apps_note(apps, i), note) != NULL;
	assert_null(ringtap_apps_note(apps, ringtap_apps_notes(apps)));
	ringtap_apps_free(apps);
	return n;
}

static void assert_refused(const char *app, const char *reason)
{
	char err[512] = "";
	struct ringtap_conn *conn;
	unsigned notes;

	assert_int_equal(try_connect(app), -EPERM);
	assert_non_null(strstr(why, reason));
	assert_int_equal(ringtap_conn_open(&conn, app_dir(app), NULL, err, sizeof(err)), -EPERM);
	assert_non_null(strstr(err, reason));
	assert_int_equal(listed(app, reason, &notes), 0);
	assert_int_equal(notes, 1);
}

static void test_sockets_of_root_are_trusted(void **state)
{
	struct listener l;
	unsigned notes;

	make_folder("roots", 0, 0700);
	l = start("roots", RT_SOCKET_NAME, 0, 0, 8);
	assert_int_equal(try_connect("roots"), 0);
	assert_int_equal(listed("roots", "roots", &notes), 1);
	assert_int_equal(notes, 0);
	stop(&l);
}

static void test_root_may_connect_to_sockets_of_one_user(void **state)
{
	struct listener l;
	unsigned notes;

	make_folder("alices", ALICE, 0700);
	l = start("alices", RT_SOCKET_NAME, ALICE, ALICE, 8);
	assert_int_equal(try_connect("alices"), 0);
	/* Its name cannot be that of one of root's. */
	assert_int_equal(listed("alices", "alices", &notes), 0);
	assert_int_equal(listed("alices@4711", "alices", &notes), 1);
	assert_int_equal(notes, 0);
	stop(&l);
}

static unsigned searched(const char *name, const uint32_t *users, size_t count)
{
	const struct ringtap_apps_options opts = {
		.size = sizeof(opts), .users = users, .user_count = count};
	struct ringtap_apps *apps;
	unsigned n = 0;

	assert_int_equal(ringtap_apps_search(&apps, &opts), 0);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		if (!strcmp(ringtap_apps_name(apps, i), name)) {
			assert_int_equal(ringtap_apps_foreign(apps, i), strchr(name, '@') != NULL);
			n++;
		}
	ringtap_apps_free(apps);
	return n;
}

/* Files of others, which they could make long, need not be searched. */
static void test_applications_of_some_users_are_found(void **state)
{
	static const uint32_t alice[] = {ALICE}, mallory[] = {MALLORY};
	struct listener a, r;

	make_folder("some-alices", ALICE, 0700);
	make_folder("some-roots", 0, 0700);
	a = start("some-alices", RT_SOCKET_NAME, ALICE, ALICE, 8);
	r = start("some-roots", RT_SOCKET_NAME, 0, 0, 8);
	assert_int_equal(searched("some-alices@4711", NULL, 0), 1);
	assert_int_equal(searched("some-alices@4711", alice, 1), 1);
	assert_int_equal(searched("some-alices@4711", mallory, 1), 0);
	assert_int_equal(searched("some-alices@4711", alice, 0), 0);
	assert_int_equal(searched("some-roots", alice, 0), 1);
	assert_int_equal(searched("some-roots", NULL, 0), 1);
	stop(&a);
	stop(&r);
}

static void test_users_of_sockets_are_known(void **state)
{
	int own = socket(AF_UNIX, SOCK_STREAM, 0), alices;
	struct rt_owners owners;
	struct stat st;

	assert_int_equal(seteuid(ALICE), 0);
	alices = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(seteuid(0), 0);
	rt_owners_read(&owners);
	if (!owners.known)
		skip(); /* a kernel before 5.3 */
	assert_int_equal(fstat(alices, &st), 0);
	assert_true(rt_owners_foreign(&owners, st.st_ino));
	assert_int_equal(fstat(own, &st), 0);
	assert_false(rt_owners_foreign(&owners, st.st_ino));
	free(owners.foreign);
	close(own);
	close(alices);
}

static void test_socket_of_another_user_is_refused(void **state)
{
	struct listener l;

	make_folder("fake-socket", 0, 0755);
	l = start("fake-socket", RT_SOCKET_NAME, MALLORY, MALLORY, 8);
	assert_refused("fake-socket", "its socket belongs to user 4712, not to user 0");
	stop(&l);
}

static void test_listener_of_another_user_receives_nothing(void **state)
{
	struct listener l;
	uint32_t heard;

	make_folder("fake-listener", ALICE, 0755);
	l = start("fake-listener", RT_SOCKET_NAME, ALICE, MALLORY, 8);
	assert_refused("fake-listener", "belongs to user 4712, not to user 4711");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read(l.heard, &heard, sizeof(heard)), sizeof(heard));
		assert_int_equal(heard, 0);
	}
	stop(&l);
}

/* A probe there refuses root: if its user cannot connect either, that is the reason. */
static void test_why_the_user_of_another_namespace_cannot_connect(void **state)
{
	struct listener l;
	unsigned notes;

	make_folder("elsewhere", ALICE, 0755);
	in_namespace = true;
	l = start("elsewhere", RT_SOCKET_NAME, ALICE, ALICE, 8);
	in_namespace = false;
	assert_int_equal(try_connect("elsewhere"), 0);
	assert_int_equal(chmod(l.path, 0), 0); /* which does not hold for root */
	assert_int_equal(try_connect("elsewhere"), -EACCES);
	assert_string_equal(why, "cannot connect as its user 4711: Permission denied");
	assert_int_equal(listed("elsewhere@4711", "elsewhere", &notes), 1);
	assert_int_equal(notes, 0);
	stop(&l);
}

static void test_telemetry_socket_of_another_user_is_refused(void **state)
{
	char name[RT_SOCKET_NAME_MAX];
	struct listener l;
	unsigned notes;

	make_folder("fake-telemetry", ALICE, 0755);
	l = start("fake-telemetry", RT_TELEMETRY_SOCKET, MALLORY, MALLORY, 8);
	assert_int_equal(
		rt_telemetry_wake(app_dir("fake-telemetry"), name, why, sizeof(why)), -EPERM);
	assert_non_null(strstr(why, "belongs to user 4712, not to user 4711"));
	assert_int_equal(listed("fake-telemetry", "fake-telemetry", &notes), 0);
	assert_int_equal(notes, 1);
	stop(&l);
}

static void test_folder_that_others_may_write_to_is_refused(void **state)
{
	struct listener l;

	make_folder("writable", 0, 0777);
	l = start("writable", RT_SOCKET_NAME, 0, 0, 8);
	assert_refused("writable", "can be written to by others than user 0");
	stop(&l);
}

static void test_links_of_other_users_are_refused(void **state)
{
	struct listener l;
	unsigned notes;

	make_folder("victim", 0, 0755);
	l = start("victim", RT_SOCKET_NAME, 0, 0, 8);
	assert_int_equal(symlink(app_dir("victim"), app_dir("link")), 0);
	/* Links of root are followed, also relative ones. */
	assert_int_equal(try_connect("link"), 0);
	assert_int_equal(symlink("../dpdk/./victim/", app_dir("relative")), 0);
	assert_int_equal(try_connect("relative"), 0);
	assert_int_equal(listed("relative", "relative", &notes), 1);
	assert_int_equal(lchown(app_dir("link"), MALLORY, MALLORY), 0);
	assert_refused("link", "a symbolic link of user 4712, but belongs to user 0");
	/* A chain of two links of two users. */
	assert_int_equal(symlink(app_dir("link"), app_dir("links")), 0);
	assert_int_equal(lchown(app_dir("links"), ALICE, ALICE), 0);
	assert_refused("links", "symbolic links of different users");
	stop(&l);
	/* A user's link to a folder of the same user. */
	make_folder("mallorys", MALLORY, 0700);
	l = start("mallorys", RT_SOCKET_NAME, MALLORY, MALLORY, 8);
	assert_int_equal(unlink(app_dir("link")), 0);
	assert_int_equal(symlink("mallorys", app_dir("link")), 0);
	assert_int_equal(lchown(app_dir("link"), MALLORY, MALLORY), 0);
	assert_int_equal(try_connect("link"), 0);
	/* A socket may not be a link. */
	assert_int_equal(symlink("../victim/" RT_SOCKET_NAME, app_dir("mallorys/other.sock")), 0);
	assert_int_equal(rt_connect_name(app_dir("mallorys"), "other.sock", why, sizeof(why)),
		-ECONNREFUSED);
	assert_int_equal(symlink("round", app_dir("round")), 0);
	assert_int_equal(try_connect("round"), -ELOOP);
	stop(&l);
}

/* Users trust sockets of root and their own. */
static void test_users_may_connect_to_root_and_themselves(void **state)
{
	struct listener a, r, m;
	int status;
	pid_t pid;

	make_folder("for-alice", ALICE, 0755);
	a = start("for-alice", RT_SOCKET_NAME, ALICE, ALICE, 8);
	make_folder("open-roots", 0, 0755);
	r = start("open-roots", RT_SOCKET_NAME, 0, 0, 8);
	make_folder("open-mallorys", MALLORY, 0755);
	m = start("open-mallorys", RT_SOCKET_NAME, MALLORY, MALLORY, 8);
	pid = fork();
	if (!pid) {
		if (setresuid(ALICE, ALICE, ALICE))
			_exit(10);
		_exit(try_connect("for-alice")                                   ? 1
			: try_connect("open-roots")                              ? 2
			: try_connect("open-mallorys") != -EPERM                 ? 3
			: !strstr(why, "belongs to user 4712, not to user 4711") ? 4
										 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	stop(&a);
	stop(&r);
	stop(&m);
}

/* Its backlog stays full: a list must not wait for it. */
static void test_list_does_not_wait_for_a_listener_without_room(void **state)
{
	struct listener l;
	int fds[8];
	unsigned notes, n = 0;

	make_folder("full", 0, 0700);
	l = start("full", RT_SOCKET_NAME, 0, 0, 0);
	rt_reader_limits.telemetry_ms = 0;
	while (n < 8 && (fds[n] = rt_connect(app_dir("full"), RT_SOCKET_NAME)) >= 0)
		n++;
	assert_in_range(n, 1, 7);
	assert_int_equal(fds[n], -EAGAIN);
	rt_reader_limits.telemetry_ms = 3600000;
	assert_int_equal(listed("full", "full", &notes), 1);
	rt_reader_limits.telemetry_ms = 3000;
	while (n)
		close(fds[--n]);
	stop(&l);
}

static void test_further_applications_of_a_folder_have_numbers(void **state)
{
	struct listener one, ten, odd;
	unsigned notes;

	make_folder("shared", 0, 0700);
	one = start("shared", RT_TELEMETRY_SOCKET ":1", 0, 0, 8);
	ten = start("shared", RT_SOCKET_NAME ":10", 0, 0, 8);
	odd = start("shared", RT_SOCKET_NAME ":010", 0, 0, 8);
	assert_int_equal(try_connect("shared"), -ENOENT);
	assert_int_equal(try_connect("shared#1"), -ENOENT);
	assert_int_equal(try_connect("shared#10"), 0);
	assert_int_equal(listed("shared", "shared", &notes), 0);
	assert_int_equal(listed("shared#1", "shared", &notes), 1);
	assert_int_equal(listed("shared#10", "shared", &notes), 1);
	assert_int_equal(notes, 0);
	/* A file-prefix may have this form. */
	make_folder("shared#10", 0, 0700);
	assert_int_equal(try_connect("shared#10"), -ENOENT);
	stop(&one);
	stop(&ten);
	stop(&odd);
}

static void test_control_characters_in_application_names_are_replaced(void **state)
{
	struct listener l;
	unsigned notes;

	make_folder("red\033[31m", 0, 0700);
	l = start("red\033[31m", RT_SOCKET_NAME, 0, 0, 8);
	assert_int_equal(listed("red\033[31m", "\033", &notes), 0);
	assert_int_equal(notes, 0);
	assert_int_equal(listed("red?[31m", "red?[31m: its name has control", &notes), 0);
	assert_int_equal(notes, 1);
	stop(&l);
}

static void test_numbers_of_sockets(void **state)
{
	static const struct {
		const char *name;
		int number;
	} t[] = {{"x", 0}, {"x:1", 1}, {"x:255", 255}, {"x:256", -1}, {"x:0", -1}, {"x:01", -1},
		{"x:", -1}, {"x:-1", -1}, {"x:1 ", -1}, {"x:1:1", -1}, {"y", -1}, {"xx", -1},
		{"x1", -1}, {"x/1", -1}, {"x:99999999999999999999", -1}, {"", -1}};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(rt_socket_instance(t[i].name, "x"), t[i].number);
}

int main(void)
{
	const struct CMUnitTest users[] = {
		cmocka_unit_test(test_sockets_of_root_are_trusted),
		cmocka_unit_test(test_root_may_connect_to_sockets_of_one_user),
		cmocka_unit_test(test_applications_of_some_users_are_found),
		cmocka_unit_test(test_users_of_sockets_are_known),
		cmocka_unit_test(test_socket_of_another_user_is_refused),
		cmocka_unit_test(test_listener_of_another_user_receives_nothing),
		cmocka_unit_test(test_why_the_user_of_another_namespace_cannot_connect),
		cmocka_unit_test(test_telemetry_socket_of_another_user_is_refused),
		cmocka_unit_test(test_folder_that_others_may_write_to_is_refused),
		cmocka_unit_test(test_links_of_other_users_are_refused),
		cmocka_unit_test(test_users_may_connect_to_root_and_themselves),
		cmocka_unit_test(test_list_does_not_wait_for_a_listener_without_room),
		cmocka_unit_test(test_further_applications_of_a_folder_have_numbers),
		cmocka_unit_test(test_control_characters_in_application_names_are_replaced),
	};
	const struct CMUnitTest any[] = {
		cmocka_unit_test(test_numbers_of_sockets),
	};
	int failed = cmocka_run_group_tests(any, NULL, NULL);

	if (geteuid()) {
		print_message("skipped: several users, which needs root\n");
		return failed;
	}
	return failed + cmocka_run_group_tests(users, make_home, remove_home);
}
