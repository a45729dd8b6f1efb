/* SPDX-License-Identifier: BSD-3-Clause */
/* Secondary processes in a runtime folder, with sockets as DPDK and the probe make them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ringtap/reader.h"
#include "secondary.h"
#include "telemetry.h"
#include "reader/test_peer.h"
#include "views.h"
#include "reader/tunables.h"

#define OTHER  65534   /* a user */
#define NOBODY 3999999 /* a process id that no process has, almost certainly */

static char home[64], folder[128];
/* Names this process only: another run of this test may be found, too. */
static char prefix[32];

static int make(void **state)
{
	strcpy(home, "/tmp/ringtap-secondary.XXXXXX");
	if (!mkdtemp(home))
		return -1;
	snprintf(folder, sizeof(folder), "%s/dpdk", home);
	snprintf(prefix, sizeof(prefix), "secondary-test-%d", (int)getpid());
	if (mkdir(folder, 0700) || setenv(RT_VIEWS_VARIABLE, "no", 1))
		return -1;
	snprintf(folder, sizeof(folder), "%s/dpdk/%s", home, prefix);
	return mkdir(folder, 0700) || setenv("XDG_RUNTIME_DIR", home, 1);
}

static int clean(void **state)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -r %s", home);
	return system(command);
}

static int open_at(int type, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	assert_in_range(snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", folder, name), 1,
		sizeof(addr.sun_path) - 1);
	unlink(addr.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (type == SOCK_SEQPACKET)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* The names that are found, in their order, and their process ids. */
static const char *found(uint32_t pids[4])
{
	static char names[512];
	struct ringtap_apps *apps;
	size_t len = strlen(prefix), n = 0;

	names[0] = 0;
	assert_int_equal(ringtap_apps_find(&apps), 0);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		const char *name = ringtap_apps_name(apps, i);

		if (strncmp(name, prefix, len))
			continue;
		assert_in_range(n, 0, 3);
		pids[n++] = ringtap_apps_pid(apps, i);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s%s", name + len,
			ringtap_apps_secondary(apps, i) ? "" : "!");
	}
	ringtap_apps_free(apps);
	return names;
}

static void test_own_socket_of_dpdk_is_found_with_its_process(void **state)
{
	char name[64], wanted[32];
	uint32_t pids[4];
	int fd;

	snprintf(name, sizeof(name), "mp_socket_%d_1234abcd", (int)getpid());
	snprintf(wanted, sizeof(wanted), " /%d", (int)getpid());
	fd = open_at(SOCK_DGRAM, name);
	assert_string_equal(found(pids), wanted);
	assert_int_equal(pids[0], getpid());
	close(fd);
	/* Files that a killed process leaves. */
	assert_string_equal(found(pids), "");
}

static void test_process_of_another_namespace_is_not_guessed(void **state)
{
	char name[64], wanted[32];
	uint32_t pids[4];
	int fd;

	/* The id is that of init here. */
	fd = open_at(SOCK_DGRAM, "mp_socket_1_1234abcd");
	assert_string_equal(found(pids), " /1");
	assert_int_equal(pids[0], 0);
	close(fd);
	snprintf(name, sizeof(name), "mp_socket_%d_1234abcd", NOBODY);
	snprintf(wanted, sizeof(wanted), " /%d", NOBODY);
	fd = open_at(SOCK_DGRAM, name);
	assert_string_equal(found(pids), wanted);
	assert_int_equal(pids[0], 0);
	close(fd);
}

static int count_found(const struct rt_secondary *s, void *count)
{
	++*(unsigned *)count;
	return 0;
}

static int count_refused(const char *why, void *count)
{
	return 0;
}

/* The owner of a folder makes any number of files: they are read until a time, which is that of
 * other users' folders. */
static void test_names_are_read_until_a_time(void **state)
{
	static const struct {
		uint64_t until_ns;
		unsigned found;
	} cases[] = {{0, 1}, {UINT64_MAX, 1}, {1, 0}};
	char err[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned count = 0;
		const struct rt_secondary_visitor v = {
			count_found, count_refused, &count, cases[i].until_ns};
		int fd = open_at(SOCK_SEQPACKET, "ringtap.sock@77");
		struct rt_folder f;

		assert_int_equal(rt_folder_open(&f, folder, err, sizeof(err)), 0);
		assert_int_equal(rt_secondaries_each(&f, &v), 0);
		assert_int_equal(count, cases[i].found);
		assert_int_equal(rt_folder_until(&f, false), 0);
		assert_true(rt_folder_until(&f, true) > 1);
		f.uid = geteuid() + 1;
		assert_true(rt_folder_until(&f, false) > 1);
		rt_folder_close(&f);
		close(fd);
	}
}

/* Lines that a user can make in /proc/PID/net/unix prove nothing about another user's process. */
static void test_process_of_another_user_is_not_taken(void **state)
{
	char name[64], path[200], wanted[64];
	uint32_t pids[4];
	int fd;

	if (geteuid())
		skip();
	snprintf(name, sizeof(name), "mp_socket_%d_1234abcd", (int)getpid());
	snprintf(wanted, sizeof(wanted), " /%d@%d", (int)getpid(), OTHER);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open_at(SOCK_DGRAM, name);
	assert_int_equal(chown(folder, OTHER, OTHER) | chown(path, OTHER, OTHER), 0);
	assert_string_equal(found(pids), wanted);
	assert_int_equal(pids[0], 0);
	assert_int_equal(chown(folder, 0, 0), 0);
	close(fd);
}

static void test_probes_tell_processes_with_the_same_id_apart(void **state)
{
	int mp = open_at(SOCK_DGRAM, "mp_socket_1_aa"),
	    one = open_at(SOCK_SEQPACKET, "ringtap.sock@1"),
	    two = open_at(SOCK_SEQPACKET, "ringtap.sock@1:1"),
	    ten = open_at(SOCK_SEQPACKET, "ringtap.sock@10"),
	    first = open_at(SOCK_SEQPACKET, "ringtap.sock");
	uint32_t pids[4];

	assert_string_equal(found(pids), " ! /1 /1#1 /10");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pids[i], getpid()); /* the listener's */
	close(mp);
	close(one);
	close(two);
	close(ten);
	close(first);
}

static void test_primary_is_told_of_a_secondary(void **state)
{
	int first = open_at(SOCK_SEQPACKET, "ringtap.sock"),
	    second = open_at(SOCK_SEQPACKET, "ringtap.sock@7");
	struct ringtap_apps *apps;
	size_t i = 0;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	while (strcmp(ringtap_apps_name(apps, i), prefix))
		i++;
	assert_int_equal(ringtap_apps_primary(apps, i), i);
	assert_int_equal(ringtap_apps_primary(apps, i + 1), i);
	assert_true(ringtap_apps_secondary(apps, i + 1));
	assert_false(ringtap_apps_secondary(apps, i));
	ringtap_apps_free(apps);
	/* It lives on alone. */
	close(first);
	assert_int_equal(ringtap_apps_find(&apps), 0);
	for (i = 0; i < ringtap_apps_count(apps); i++)
		if (ringtap_apps_secondary(apps, i) &&
			!strncmp(ringtap_apps_name(apps, i), prefix, strlen(prefix)))
			assert_int_equal(ringtap_apps_primary(apps, i), i);
	ringtap_apps_free(apps);
	close(second);
}

static void test_connecting_says_what_is_missing(void **state)
{
	struct ringtap_conn *conn;
	char name[64], app[200], why[256];
	int fd;

	snprintf(name, sizeof(name), "mp_socket_%d_1", (int)getpid());
	snprintf(app, sizeof(app), "%s/%d", folder, (int)getpid());
	assert_int_equal(ringtap_conn_open(&conn, app, NULL, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "no secondary process"));
	fd = open_at(SOCK_DGRAM, name);
	assert_int_equal(ringtap_conn_open(&conn, app, NULL, why, sizeof(why)), -EPROTONOSUPPORT);
	assert_non_null(strstr(why, "without the ringtap probe"));
	assert_int_equal(ringtap_telemetry(app, "/info", 0, NULL, NULL), -ENOENT);
	close(fd);
	snprintf(app, sizeof(app), "%s/no-such-folder/1", folder);
	assert_int_equal(ringtap_conn_open(&conn, app, NULL, why, sizeof(why)), -ENOENT);
}

/* ---- full backlogs */

/* Connects until the backlog is full. The caller closes the descriptors. */
static unsigned fill(const char *name, int fds[8])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	unsigned n = 0;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.80s/%.20s", folder, name);
	do {
		assert_in_range(n, 0, 7);
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	} while (!connect(fds[n++], (struct sockaddr *)&addr, sizeof(addr)));
	assert_int_equal(errno, EAGAIN);
	return n;
}

static void test_full_backlog_is_no_missing_probe(void **state)
{
	char name[64], app[200], why[256], command[32];
	int fds[8], ready[2], fd, telemetry_ms = rt_reader_limits.telemetry_ms;
	struct ringtap_conn *conn;
	pid_t pid = 0;
	unsigned n;

	rt_reader_limits.telemetry_ms = 20;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		snprintf(name, sizeof(name), "ringtap.sock@%d", (int)getpid());
		fd = open_at(SOCK_SEQPACKET, name);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(fd);
	}
	assert_int_equal(read(ready[0], why, 1), 1);
	snprintf(name, sizeof(name), "ringtap.sock@%d", (int)pid);
	snprintf(app, sizeof(app), "%s/%d", folder, (int)pid);
	n = fill(name, fds);
	assert_int_equal(ringtap_conn_open(&conn, app, NULL, why, sizeof(why)), -ETIMEDOUT);
	assert_non_null(strstr(why, "accepts no connection"));
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	assert_int_equal(ringtap_conn_open(&conn, app, NULL, why, sizeof(why)), -EHOSTDOWN);
	snprintf(command, sizeof(command), "kill -CONT %d", (int)pid);
	assert_non_null(strstr(why, command));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (n)
		close(fds[--n]);
	close(ready[0]);
	close(ready[1]);
	rt_reader_limits.telemetry_ms = telemetry_ms;
}

/* It locks the config file, but its socket does not tell its process. */
static void test_primary_with_a_full_backlog_is_recognized(void **state)
{
	int first = open_at(SOCK_SEQPACKET, "ringtap.sock"),
	    second = open_at(SOCK_SEQPACKET, "ringtap.sock@7"), ready[2], fds[8];
	struct flock lock = {.l_type = F_WRLCK};
	struct ringtap_apps *apps;
	char path[200];
	unsigned n;
	pid_t pid;
	size_t i = 0;

	snprintf(path, sizeof(path), "%s/config", folder);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		int fd = open(path, O_RDWR | O_CREAT, 0600);

		if (!fcntl(fd, F_SETLK, &lock) && write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], path, 1), 1);
	n = fill("ringtap.sock", fds);
	assert_int_equal(ringtap_apps_find(&apps), 0);
	while (strcmp(ringtap_apps_name(apps, i), prefix))
		i++;
	assert_int_equal(ringtap_apps_pid(apps, i), pid);
	assert_true(ringtap_apps_secondary(apps, i + 1));
	assert_int_equal(ringtap_apps_primary(apps, i + 1), i);
	ringtap_apps_free(apps);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (n)
		close(fds[--n]);
	close(first);
	close(second);
	close(ready[0]);
	close(ready[1]);
}

/* ---- mount namespaces */

/* A process in a mount namespace of its own, in which the folder exists as well. 0: not permitted.
 */
static pid_t start_service(void)
{
	int ready[2];
	pid_t pid;
	char ok = 0;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		ok = !unshare(CLONE_NEWNS);
		if (write(ready[1], &ok, 1) == 1 && ok)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &ok, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (!ok)
		waitpid(pid, NULL, 0);
	return ok ? pid : 0;
}

static void test_service_does_not_multiply_connections(void **state)
{
	int fd = open_at(SOCK_SEQPACKET, "ringtap.sock@7"), conn, n = 0;
	pid_t pid = start_service();
	struct ucred peer;
	socklen_t len = sizeof(peer);
	uint32_t pids[4];

	if (!pid) {
		close(fd);
		skip();
	}
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	unsetenv(RT_VIEWS_VARIABLE);
	assert_string_equal(found(pids), " /7");
	setenv(RT_VIEWS_VARIABLE, "no", 1);
	while ((conn = accept(fd, NULL, NULL)) >= 0) {
		/* Another run may search, too. */
		assert_int_equal(getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len), 0);
		n += peer.pid == getpid();
		close(conn);
	}
	assert_int_equal(n, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

/* ---- ids */

/* The number of its ids that a source gets at this address. */
static uint32_t number_at(struct ringtap_capture *cap, const struct test_peer *p, const char *app)
{
	const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	const struct ringtap_capture_options o = {.size = sizeof(o), .ids = RINGTAP_IDS};

	if (ringtap_capture_attach(cap, app, &all, 1, &o))
		fail_msg("%s: %s", app, ringtap_capture_error(cap));
	return p->open.ids >> RT_IDS_SOURCE_SHIFT;
}

/* In a container each process has a path of its own to their folder. */
static void test_processes_of_a_folder_share_their_ids_by_any_path(void **state)
{
	struct test_peer peer, other = {0};
	struct test_session session, another;
	struct ringtap_capture *cap;
	char app[160], sock[2][160];

	assert_int_equal(test_capture_open(&session, &peer, &cap, 1, false), 0);
	snprintf(sock[0], sizeof(sock[0]), "%s/ringtap.sock", peer.dir);
	snprintf(sock[1], sizeof(sock[1]), "%s/ringtap.sock@7", peer.dir);
	assert_int_equal(link(sock[0], sock[1]), 0);
	test_session_make(&another, 1, TEST_RING);
	other.session = &another;
	test_peer_start(&other, true);
	assert_int_equal(number_at(cap, &peer, peer.dir), 0);
	assert_int_equal(number_at(cap, &other, other.dir), 1);
	snprintf(app, sizeof(app), "/proc/%d/root%s/7", (int)getpid(), peer.dir);
	assert_int_equal(number_at(cap, &peer, app), 0);
	unlink(sock[1]);
	test_peer_stop(&other);
	test_session_free(&another);
	test_capture_close(&session, &peer, cap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_socket_of_dpdk_is_found_with_its_process),
		cmocka_unit_test(test_process_of_another_namespace_is_not_guessed),
		cmocka_unit_test(test_process_of_another_user_is_not_taken),
		cmocka_unit_test(test_names_are_read_until_a_time),
		cmocka_unit_test(test_probes_tell_processes_with_the_same_id_apart),
		cmocka_unit_test(test_primary_is_told_of_a_secondary),
		cmocka_unit_test(test_connecting_says_what_is_missing),
		cmocka_unit_test(test_full_backlog_is_no_missing_probe),
		cmocka_unit_test(test_primary_with_a_full_backlog_is_recognized),
		cmocka_unit_test(test_service_does_not_multiply_connections),
		cmocka_unit_test(test_processes_of_a_folder_share_their_ids_by_any_path),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
