/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of record --listen: each gets a recording of its own, and only the user's programs do. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/peer.h"
#include "test_record.h"

#define CLIENTS 8
#define NOBODY  65534

static pid_t server;
static int server_output;

/* Starts it with its standard error in a pipe. */
static void start(const char *line)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fflush(NULL);
	server = fork();
	assert_true(server >= 0);
	if (!server) {
		dup2(ends[1], STDERR_FILENO);
		_exit(record(line));
	}
	close(ends[1]);
	server_output = ends[0];
}

/* The next line that it prints; "": it has ended. */
static const char *next_line(void)
{
	static char line[256];
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(server_output, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	return line;
}

static void wait_end(void)
{
	int status;

	assert_int_equal(waitpid(server, &status, 0), server);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS_OK);
	close(server_output);
}

static void stop(void)
{
	assert_int_equal(kill(server, SIGTERM), 0);
	wait_end();
}

static int connect_unix(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static unsigned port;

/* Starts it at a free port. */
static void start_tcp(void)
{
	start("--listen 0 --allow 127.0.0.0/8"); /* which covers only other hosts */
	assert_int_equal(sscanf(next_line(), "Listening on 127.0.0.1:%u", &port), 1);
}

/* device: the client is bound to it; the kernel finds such a socket by it only. */
static int connect_tcp(const char *device)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Reads the stream to its end, into file f. */
static void receive(int fd)
{
	int out = open("f", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	char bytes[65536];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	close(out);
	close(fd);
}

static bool is_served(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 1;
}

static void each_client_gets_a_recording(void **state)
{
	start_tcp();
	for (unsigned i = 0; i < 2; i++) {
		receive(connect_tcp(i ? "lo" : ""));
		assert_int_equal(test_pcap_read("f").packets, TOTAL);
	}
	stop();
}

static void a_client_may_close_its_own_direction(void **state)
{
	int fd;

	fake.wait_for_stop = true;
	start_tcp();
	fd = connect_tcp("");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_true(is_served(fd));
	assert_int_equal(kill(server, SIGTERM), 0);
	receive(fd);
	stop();
}

/* Only the user can connect. */
static void a_socket_has_a_path(void **state)
{
	struct stat st;

	start("--listen unix:s -P");
	assert_string_equal(next_line(), "Listening on unix:s");
	assert_int_equal(stat("s", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	receive(connect_unix("s"));
	assert_int_equal(test_pcap_read("f").packets, TOTAL);
	stop();
	assert_int_equal(access("s", F_OK), -1);
}

/* Its output for one client. */
static const char *summary_with(const char *options)
{
	static char text[65536];
	size_t n = 0;
	ssize_t got;

	start(options);
	assert_string_equal(next_line(), "Listening on unix:s");
	receive(connect_unix("s"));
	assert_int_equal(kill(server, SIGTERM), 0);
	while ((got = read(server_output, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	wait_end();
	return text;
}

/* Several end at the same time, and print to the same standard error. */
static void a_summary_names_its_client(void **state)
{
	const char *text = summary_with("--listen unix:s");
	char line[64];

	snprintf(line, sizeof(line), "\nRecording for client process %d:\n", (int)getpid());
	assert_non_null(strstr(text, line));
	assert_non_null(strstr(strstr(text, line), "ended by: "));
	text = summary_with("--json --listen unix:s");
	snprintf(line, sizeof(line), "\"client\": \"process %d\"", (int)getpid());
	assert_non_null(strstr(text, line));
}

/* The recording of a client that has gone ends, and the next one has its place. */
static void clients_are_limited(void **state)
{
	int fd[CLIENTS + 1], status;

	fake.wait_for_stop = true;
	start("--listen unix:s");
	assert_string_equal(next_line(), "Listening on unix:s");
	for (unsigned i = 0; i < CLIENTS; i++) {
		fd[i] = connect_unix("s");
		assert_true(is_served(fd[i]));
	}
	fd[CLIENTS] = connect_unix("s");
	assert_false(is_served(fd[CLIENTS]));
	close(fd[CLIENTS]);
	close(fd[0]);
	while (fd[0] = connect_unix("s"), !is_served(fd[0])) {
		close(fd[0]);
		sched_yield();
	}
	stop();
	for (unsigned i = 0; i < CLIENTS; i++) {
		receive(fd[i]);
	}
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
}

static void another_user_gets_nothing(void **state)
{
	static const char *const devices[] = {"", "lo"};
	int status;
	pid_t pid;

	if (geteuid()) {
		print_message("skipped: only root may act for another user\n");
		skip();
	}
	start_tcp();
	for (unsigned i = 0; i < 2; i++) {
		fflush(NULL);
		pid = fork();
		if (!pid)
			_exit(setuid(NOBODY) || is_served(connect_tcp(devices[i])));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_non_null(strstr(next_line(), "is refused: it belongs to another user"));
	receive(connect_tcp(""));
	assert_int_equal(test_pcap_read("f").packets, TOTAL);
	stop();
}

static void a_path_in_use_is_left_alone(void **state)
{
	int status;

	start("--listen unix:s");
	assert_string_equal(next_line(), "Listening on unix:s");
	assert_int_equal(record("-q --listen unix:s"), STATUS_FAILED);
	assert_non_null(strstr(message_last(),
		"--listen unix:s: another program listens there; end it, or choose another path"));
	/* Killed, it leaves its socket. */
	assert_int_equal(kill(server, SIGKILL), 0);
	assert_int_equal(waitpid(server, &status, 0), server);
	close(server_output);
	start("--listen unix:s");
	assert_string_equal(next_line(), "Listening on unix:s");
	stop();
	test_write("s", "text", 4);
	assert_int_equal(record("-q --listen unix:s"), STATUS_FAILED);
	assert_non_null(strstr(message_last(),
		"--listen unix:s: it is a file that is not a socket, and stays as it is; choose "
		"another path"));
	assert_int_equal(access("s", F_OK), 0);
}

/* Made while it listened. */
static void a_file_of_another_program_is_not_removed(void **state)
{
	start("--listen unix:s");
	assert_string_equal(next_line(), "Listening on unix:s");
	assert_int_equal(unlink("s"), 0);
	test_write("s", "text", 4);
	stop();
	assert_int_equal(access("s", F_OK), 0);
}

/* The process of a recording that a server made just when it was killed has its socket a moment
 * longer. */
static void a_socket_that_is_being_closed_is_left(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "s"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
	pid_t pid;

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, CLIENTS), 0);
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1) != 1);
	close(fd);
	start("--listen unix:s");
	assert_string_equal(next_line(), "Listening on unix:s");
	stop();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *message;
		int status;
	} bad[] = {
		{"--listen 1 -w f", "leave out -w", STATUS_USAGE},
		{"--listen 1 -b packets:1", "leave out -b", STATUS_USAGE},
		{"--listen 1 --html f", "leave out --html", STATUS_USAGE},
		{"--listen 1 -S", "leave out -S", STATUS_USAGE},
		{"--listen 1 --split direction", "leave out --split", STATUS_USAGE},
		{"--allow 192.0.2.1", "for clients of --listen", STATUS_USAGE},
		{"--listen unix:s --allow ::1", "clients of a Unix socket", STATUS_USAGE},
		{"--listen 1 --allow 192.0.2.1/33", "--allow 192.0.2.1/33: not an address",
			STATUS_USAGE},
		{"--listen 1 --allow host", "--allow host: not an address", STATUS_USAGE},
		{"--listen 1 --allow ", "needs a value", STATUS_USAGE},
		{"--listen unix: -q", "--listen unix:: no path; give one", STATUS_USAGE},
		{"--listen unix:a/b -q", "--listen unix:a/b: its folder does not exist; make that",
			STATUS_FAILED},
		{"--listen 65536 -q", "not a port number", STATUS_USAGE},
		{"--listen 1 -i nosuch:0", "nosuch", STATUS_FAILED},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(record(bad[i].line), bad[i].status);
		if (!strstr(message_last(), bad[i].message))
			fail_msg("'%s' gave '%s'", bad[i].line, message_last());
	}
}

static void networks_are_compared_by_bits(void **state)
{
	static const struct {
		const char *network, *address;
		bool in;
	} cases[] = {
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.0/30", "192.0.2.3", true},
		{"192.0.2.0/30", "192.0.2.4", false},
		{"192.0.2.128/25", "192.0.2.127", false},
		{"0.0.0.0/0", "203.0.113.9", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"2001:db8::/32", "2001:db8:ffff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
		{"::/0", "192.0.2.1", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct peer_network n, one;
		struct peer p = {0};

		assert_int_equal(peer_network_parse(cases[i].network, &n), 0);
		assert_int_equal(peer_network_parse(cases[i].address, &one), 0);
		memcpy(p.address, one.address, sizeof(p.address));
		if (peer_is_in(&p, &n) != cases[i].in)
			fail_msg("%s in %s", cases[i].address, cases[i].network);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RECORD_TEST(each_client_gets_a_recording),
		RECORD_TEST(a_client_may_close_its_own_direction),
		RECORD_TEST(a_socket_has_a_path),
		RECORD_TEST(clients_are_limited),
		RECORD_TEST(another_user_gets_nothing),
		RECORD_TEST(a_path_in_use_is_left_alone),
		RECORD_TEST(a_file_of_another_program_is_not_removed),
		RECORD_TEST(a_summary_names_its_client),
		RECORD_TEST(a_socket_that_is_being_closed_is_left),
		RECORD_TEST(mistakes_are_named),
		RECORD_TEST(networks_are_compared_by_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
