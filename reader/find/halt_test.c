/* SPDX-License-Identifier: BSD-3-Clause */
/* Stopped peers: errors that state it, and that do not state it without evidence. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/proto.h"
#include "reader/conn/conn.h"
#include "halt.h"
#include "telemetry.h"
#include "reader/tunables.h"

#define SHORT_MS 30

/* A process with a runtime folder, in which it listens on a socket and locks a file as DPDK does.
 * It accepts no connection. */
struct peer {
	char dir[32], path[2][64];
	pid_t pid;
};

static void listen_and_sleep(const struct peer *p, int ready)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 8, .l_len = 8};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), file;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", p->path[0]);
	file = open(p->path[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || file < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
		listen(fd, 0) || fcntl(file, F_SETLK, &lock) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void peer_start(struct peer *p, const char *socket)
{
	int ready[2];
	char byte;

	strcpy(p->dir, "/tmp/ringtap-test.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path[0], sizeof(p->path[0]), "%s/%s", p->dir, socket);
	snprintf(p->path[1], sizeof(p->path[1]), "%s/config", p->dir);
	assert_int_equal(pipe(ready), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid)
		listen_and_sleep(p, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static void peer_signal(const struct peer *p, int number, int wait_for)
{
	int status;

	assert_int_equal(kill(p->pid, number), 0);
	assert_int_equal(waitpid(p->pid, &status, wait_for), p->pid);
}

static void peer_end(const struct peer *p)
{
	peer_signal(p, SIGKILL, 0);
	unlink(p->path[0]);
	unlink(p->path[1]);
	rmdir(p->dir);
}

static void assert_advice(const struct peer *p, const char *err)
{
	char command[32];

	snprintf(command, sizeof(command), "kill -CONT %d", (int)p->pid);
	assert_non_null(strstr(err, "stopped (SIGSTOP)"));
	assert_non_null(strstr(err, command));
}

static void test_state_of_a_process(void **state)
{
	char err[RT_TEXT_LEN] = "untouched", tracer[32];
	struct peer p;

	peer_start(&p, "socket");
	assert_false(rt_halted(p.pid, err, sizeof(err)));
	assert_string_equal(err, "untouched");
	peer_signal(&p, SIGSTOP, WUNTRACED);
	assert_true(rt_halted(p.pid, err, sizeof(err)));
	assert_advice(&p, err);
	peer_signal(&p, SIGCONT, WCONTINUED);
	assert_false(rt_halted(p.pid, err, sizeof(err)));
	assert_int_equal(ptrace(PTRACE_SEIZE, p.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, p.pid, 0, 0), 0);
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	assert_true(rt_halted(p.pid, err, sizeof(err)));
	snprintf(tracer, sizeof(tracer), "debugger (pid %d)", (int)getpid());
	assert_non_null(strstr(err, tracer));
	peer_end(&p);
}

static void test_running_and_invisible_processes_are_not_halted(void **state)
{
	char err[RT_TEXT_LEN] = "untouched";
	int fd[2];

	assert_false(rt_halted(0, err, sizeof(err))); /* a process of another PID namespace */
	assert_false(rt_halted(-1, err, sizeof(err)));
	assert_false(rt_halted(999999999, err, sizeof(err)));
	assert_false(rt_peer_halted(STDIN_FILENO, err, sizeof(err)));
	assert_false(rt_folder_halted(&(struct rt_folder){.fd = -1}, err, sizeof(err)));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	assert_false(rt_peer_halted(fd[0], err, sizeof(err))); /* this process runs */
	close(fd[0]);
	close(fd[1]);
	assert_string_equal(err, "untouched");
}

/* Connections are queued until the backlog is full. */
static void assert_attach_reports_it(const char *socket)
{
	int saved[] = {rt_reader_limits.answer_ms, rt_reader_limits.telemetry_ms}, full = 0;
	char err[RT_TEXT_LEN];
	struct ringtap_conn *conn;
	struct peer p;

	rt_reader_limits.answer_ms = rt_reader_limits.telemetry_ms = SHORT_MS;
	peer_start(&p, socket);
	assert_int_equal(ringtap_conn_open(&conn, p.dir, NULL, err, sizeof(err)), -ETIMEDOUT);
	peer_signal(&p, SIGSTOP, WUNTRACED);
	for (int i = 0; i < 4; i++) {
		struct rt_folder f;
		int fd;

		assert_int_equal(
			ringtap_conn_open(&conn, p.dir, NULL, err, sizeof(err)), -EHOSTDOWN);
		assert_null(conn);
		assert_advice(&p, err);
		assert_int_equal(rt_folder_open(&f, p.dir, err, sizeof(err)), 0);
		fd = rt_folder_connect(&f, socket, 0, err, sizeof(err));
		full += fd == -EAGAIN;
		rt_folder_close(&f);
		if (fd >= 0)
			close(fd);
	}
	assert_true(full > 0);
	peer_end(&p);
	rt_reader_limits.answer_ms = saved[0];
	rt_reader_limits.telemetry_ms = saved[1];
}

static void test_attaching_to_a_stopped_application(void **state)
{
	assert_attach_reports_it(RT_TELEMETRY_SOCKET);
}

static void test_attaching_to_a_stopped_application_whose_probe_is_awake(void **state)
{
	assert_attach_reports_it(RT_SOCKET_NAME);
}

/* EAL writes it when it is initialised. */
static void put_magic(const struct peer *p, uint32_t magic)
{
	int fd = open(p->path[1], O_WRONLY);

	assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	close(fd);
}

static void fill_backlog(const struct peer *p, int fds[4])
{
	char err[RT_TEXT_LEN];
	struct rt_folder f;
	int fd = 0;

	assert_int_equal(rt_folder_open(&f, p->dir, err, sizeof(err)), 0);
	for (int i = 0; i < 4; i++) {
		fd = rt_folder_connect(&f, RT_TELEMETRY_SOCKET, 0, err, sizeof(err));
		fds[i] = fd;
	}
	assert_int_equal(fd, -EAGAIN);
	rt_folder_close(&f);
}

/* Its telemetry is not there yet, or does not accept a connection. */
static void test_an_application_that_starts_is_named(void **state)
{
	int saved = rt_reader_limits.telemetry_ms, fds[4] = {-1, -1, -1, -1};
	char err[RT_TEXT_LEN];
	struct ringtap_conn *conn;
	struct peer p;

	rt_reader_limits.telemetry_ms = SHORT_MS;
	for (unsigned full = 0; full < 2; full++) {
		peer_start(&p, full ? RT_TELEMETRY_SOCKET : "other");
		if (full)
			fill_backlog(&p, fds);
		put_magic(&p, 0);
		assert_int_equal(ringtap_conn_open(&conn, p.dir, NULL, err, sizeof(err)), -EAGAIN);
		assert_string_equal(err, "it is starting: DPDK is not initialised in it yet");
		put_magic(&p, 19820526);
		assert_int_equal(ringtap_conn_open(&conn, p.dir, NULL, err, sizeof(err)),
			full ? -EAGAIN : -ENOENT);
		assert_non_null(strstr(err, full ? "it accepts no connection" : "No such file"));
		peer_end(&p);
	}
	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	rt_reader_limits.telemetry_ms = saved;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state_of_a_process),
		cmocka_unit_test(test_running_and_invisible_processes_are_not_halted),
		cmocka_unit_test(test_attaching_to_a_stopped_application),
		cmocka_unit_test(test_attaching_to_a_stopped_application_whose_probe_is_awake),
		cmocka_unit_test(test_an_application_that_starts_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
