/* SPDX-License-Identifier: BSD-3-Clause */
/* Names from Open vSwitch's database, which a thread of this process simulates. The process also
 * simulates the switch: it executes itself again with the socket of the database on its command
 * line. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
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

#include "common/atomics.h"
#include "common/ipc.h"
#include "conn.h"
#include "names.h"
#include "reader/tunables.h"

#define ROWS(rows)                               \
	"{\"id\":0,\"error\":null,\"result\":[{" \
	"\"rows\":[" rows "]}]}"
#define ROW(name, args, status)                                                           \
	"{\"name\":\"" name "\",\"options\":[\"map\",[[\"dpdk-devargs\",\"" args "\"]]]," \
	"\"status\":[\"map\",[" status "]]}"
#define NUMBER(n) "[\"driver_name\",\"x\"],[\"port_no\",\"" n "\"]"

static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static struct ringtap_conn *conn;
static pthread_t database;
static int listener = -1, peer = -1;
static const char *answer; /* NULL: no answer */
static size_t repeat;
static uint32_t questions;

static void set_answer(const char *text)
{
	rt_store(&answer, text);
}

static void *serve(void *arg)
{
	const char *text;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		char question[1024];
		ssize_t n = recv(fd, question, sizeof(question) - 1, 0);

		question[n > 0 ? n : 0] = 0;
		if (strstr(question, "\"Open_vSwitch\""))
			rt_fetch_add(&questions, 1);
		text = rt_load(&answer);
		for (size_t i = 0; text && i < rt_load(&repeat); i++)
			if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
				break;
		while (!text && recv(fd, question, sizeof(question), 0) > 0)
			; /* until the reader closes the connection */
		close(fd);
	}
	return NULL;
}

static int set_up(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int pair[2];

	set_answer(ROWS(""));
	rt_store(&repeat, 1);
	rt_store(&questions, 0);
	conn = calloc(1, sizeof(*conn));
	if (!conn || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -1;
	conn->fd = pair[0];
	peer = pair[1];
	rt_str_set(conn->app.program, sizeof(conn->app.program), "ovs-vswitchd-dpdk");
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	return bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 8) ||
	       pthread_create(&database, NULL, serve, NULL);
}

static int tear_down(void **state)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(database, NULL);
	close(listener);
	unlink(path);
	close(peer);
	ringtap_conn_close(conn);
	return 0;
}

static void assert_name(uint16_t id, const char *device, const char *expected)
{
	char name[RT_NAME_LEN];

	assert_int_equal(rt_switch_name(conn, id, device, name), strcmp(device, expected) != 0);
	assert_string_equal(name, expected);
}

static void test_names_by_number_and_by_device(void **state)
{
	set_answer(ROWS(ROW("p0", "0000:03:00.0", NUMBER("0")) "," ROW("p1",
		"net_af_packet1,iface=eth1", NUMBER("1")) "," ROW("late", "net_null7,a=b", "")));
	assert_name(0, "0000:03:00.0", "p0");
	assert_name(1, "net_af_packet1", "p1");
	assert_name(7, "net_null7", "late");
	assert_name(8, "other", "other");
	assert_int_equal(rt_load(&questions), 1);
}

/* Numbers are reused, and the database keeps that of a failed port. */
static void test_match_of_number_and_device_has_precedence(void **state)
{
	set_answer(ROWS(
		ROW("old", "net_null1", NUMBER("3")) "," ROW("new", "net_null2", NUMBER("3"))));
	assert_name(3, "net_null2", "new");
	assert_name(3, "net_null1", "old");
	assert_name(4, "net_null1", "net_null1");
}

static void test_representors_match_by_number(void **state)
{
	set_answer(ROWS(ROW("pf", "0000:03:00.0", NUMBER("0")) "," ROW(
		"vf0", "0000:03:00.0,representor=[0]", NUMBER("1"))));
	assert_name(0, "0000:03:00.0", "pf");
	assert_name(1, "0000:03:00.0_representor_0", "vf0");
}

#define VHOST(name, options, status)                                                              \
	"{\"name\":\"" name "\",\"options\":[\"map\",[" options "]],\"status\":[\"map\",[" status \
	"]]}"
#define PATH_100                                                                                       \
	"/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890" \
	"123456789"

/* The probe has the end of a long path. */
static void test_vhost_ports_match_by_path(void **state)
{
	set_answer("{\"id\":0,\"error\":null,\"result\":[{\"rows\":[" ROW(
		"p0", "0000:03:00.0", NUMBER("0")) "]},{\"rows\":[" VHOST("vm0",
		"[\"vhost-server-path\",\"/run/vm0.sock\"]",
		"[\"socket\",\"/run/other\"]") "," VHOST("vm1",
		"[\"vhost-server-path\",\"" PATH_100 "\"]", "") "]},{\"rows\":[" VHOST("vm2", "",
		"[\"mode\",\"server\"],[\"socket\",\"/run/vm2\"]") "," VHOST("vm3", "",
		"[\"status\",\"disconnected\"]") "]}]}");
	assert_name(0, "0000:03:00.0", "p0");
	assert_name(32, "/run/vm0.sock", "vm0");
	assert_name(33, PATH_100 + sizeof(PATH_100) - RT_NAME_LEN, "vm1");
	assert_name(34, "/run/vm2", "vm2");
	assert_name(35, "/run/other", "/run/other");
	assert_name(36, "", "");
}

#define LINKED(name, columns)                                                           \
	"{\"name\":\"" name "\"," columns                                               \
	",\"options\":[\"map\",[[\"vhost-server-path\",\"/run/" name                    \
	"\"]]],\"status\":[\"map\",[[\"features\",\"0x0000000950008000\"],"             \
	"[\"mode\",\"client\"],[\"num_of_vrings\",\"2\"],[\"numa\",\"0\"],[\"socket\"," \
	"\"/run/" name                                                                  \
	"\"],[\"status\",\"connected\"],[\"vring_0_size\",\"256\"],[\"vring_1_size\",\"256\"]]]}"
#define NOTHING "[\"set\",[]]"

static void assert_link(const char *device, bool before, bool up, uint32_t mbps)
{
	uint32_t link_mbps = 7;
	bool link_up = before;

	rt_switch_link(conn, 32, device, &link_up, &link_mbps);
	assert_int_equal(link_up, up);
	assert_int_equal(link_mbps, mbps);
}

/* Values that the switch does not know stay as the probe has them. */
static void test_links_of_vhost_ports_are_those_of_the_switch(void **state)
{
	set_answer("{\"id\":0,\"error\":null,\"result\":[{\"rows\":["
		   "{\"name\":\"p0\",\"link_state\":\"down\",\"link_speed\":10000000000,"
		   "\"options\":[\"map\",[[\"dpdk-devargs\",\"a\"]]],\"status\":[\"map\",[]]}]},"
		   "{\"rows\":[" LINKED("vm0",
			   "\"link_speed\":" NOTHING ",\"link_state\":\"up\"") "," LINKED("vm1",
			   "\"link_speed\":25000000000,\"link_state\":\"down\"") "," LINKED("vm2",
			   "\"link_speed\":" NOTHING ",\"link_state\":" NOTHING) "," LINKED("vm3",
			   "\"link_speed\":-1,\"link_state\":\"sideways\"") "," LINKED("vm4",
			   "\"link_speed\":9223372036854775807,\"link_state\":7") "]}]}");
	assert_name(32, "/run/vm0", "vm0");
	for (unsigned before = 0; before < 2; before++) {
		assert_link("/run/vm0", before, true, 7);
		assert_link("/run/vm1", before, false, 25000);
		assert_link("/run/vm2", before, before, 7);
		assert_link("/run/vm3", before, before, 7);
		assert_link("/run/vm4", before, before, 7);
		assert_link("/run/other", before, before, 7);
		assert_link("a", before, before, 7); /* ethdev knows its own link */
	}
	assert_int_equal(rt_load(&questions), 1);
}

/* A second after the last query there is another; without an answer the probe is right again. */
static void test_links_are_read_again(void **state)
{
	set_answer(ROWS(LINKED("vm0", "\"link_state\":\"down\"")));
	assert_link("/run/vm0", true, false, 7);
	set_answer(ROWS(LINKED("vm0", "\"link_state\":\"up\"")));
	assert_link("/run/vm0", false, false, 7);
	conn->names.next_ns = 1;
	assert_link("/run/vm0", false, true, 7);
	set_answer(NULL);
	assert_link("/run/vm0", false, true, 7);
	conn->names.next_ns = 1;
	assert_link("/run/vm0", false, false, 7);
	assert_int_equal(rt_load(&questions), 3);
}

static void test_answer_in_pieces(void **state)
{
	static char long_one[200000];
	size_t n = 0;

	n += (size_t)sprintf(long_one, "{\"id\":0,\"error\":null,\"result\":[{\"rows\":[");
	for (int i = 0; i < 1000; i++)
		n += (size_t)sprintf(long_one + n, "%s" ROW("port%d", "net_null%d", NUMBER("%d")),
			i ? "," : "", i, i, i);
	sprintf(long_one + n, "]}]}");
	set_answer(long_one);
	assert_name(999, "net_null999", "port999");
}

static void test_only_open_vswitch_is_queried(void **state)
{
	rt_str_set(conn->app.program, sizeof(conn->app.program), "testpmd");
	set_answer(ROWS(ROW("p0", "a", NUMBER("0"))));
	assert_name(0, "a", "a");
	assert_int_equal(rt_load(&questions), 0);
}

static void test_unanswered_query_is_not_repeated(void **state)
{
	set_answer(NULL);
	assert_name(0, "a", "a");
	assert_name(1, "b", "b");
	assert_int_equal(rt_load(&questions), 1);
}

static void test_invalid_answers_change_no_names(void **state)
{
	static const char *const lies[] = {"}", "{}", "[]\n", "null\n", "{\"result\":7}",
		"{\"result\":[{\"rows\":{}}]}", ROWS("7,null,[],{},\"x\""),
		ROWS("{\"name\":7,\"options\":[\"map\",[[1,2],3,[\"dpdk-devargs\"]]]}"),
		ROWS(ROW("", "a", NUMBER("0"))), ROWS(ROW("x", "b", NUMBER("-1"))),
		ROWS(ROW("x", "b", NUMBER("65536"))), ROWS(ROW("x", "b", NUMBER("0x0"))),
		ROWS(ROW("x", "b", NUMBER(""))), ROWS(ROW("x", "b", "[\"port_no\",0]")),
		"{\"id\":0,\"error\":\"no\",\"result\":null}", "\x80\xff}"};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		rt_names_free(&conn->names);
		set_answer(lies[i]);
		assert_name(0, "a", "a");
	}
	assert_int_equal(rt_load(&questions), sizeof(lies) / sizeof(lies[0]));
}

static void test_endless_answers_are_aborted(void **state)
{
	static const char *const openings[] = {"[", "{\"a\":", " ", "{}"};

	rt_store(&repeat, SIZE_MAX);
	for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		rt_names_free(&conn->names);
		set_answer(openings[i]);
		assert_name(0, "a", "a");
	}
}

static void test_long_names_and_control_characters(void **state)
{
	char name[RT_NAME_LEN];

	set_answer(ROWS(ROW("\\u001b[31mred", "a", NUMBER("0")) "," ROW(
		"0123456789012345678901234567890123456789012345678901234567890123456789", "b",
		NUMBER("1"))));
	assert_name(0, "a", "?[31mred");
	assert_true(rt_switch_name(conn, 1, "b", name));
	assert_int_equal(strlen(name), RT_NAME_LEN - 1);
}

static void test_slow_database_is_queried_less_often(void **state)
{
	static const struct {
		uint64_t took_ms, rest_ms; /* from the beginning */
	} cases[] = {{0, 100}, {4, 100}, {5, 100}, {6, 126}, {100, 2100}, {300, 6300}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rt_names n = {0};

		rt_names_queried(&n, 7000000, 7000000 + cases[i].took_ms * 1000000);
		assert_int_equal(n.next_ns, 7000000 + cases[i].rest_ms * 1000000);
	}
}

static void test_names_are_kept_until_the_next_query(void **state)
{
	set_answer(ROWS(ROW("p0", "a", NUMBER("0"))));
	assert_name(0, "a", "p0");
	conn->names.next_ns = UINT64_MAX;
	set_answer(ROWS(ROW("p1", "a", NUMBER("0"))));
	assert_name(0, "a", "p0");
	conn->names.next_ns = 1;
	assert_name(0, "a", "p1");
	assert_true(conn->names.next_ns > 1);
	assert_int_equal(rt_load(&questions), 2);
}

/* Changes the owner of the socket, or of the process that listens. */
static void listen_as(uid_t owner, uid_t process)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	shutdown(listener, SHUT_RDWR);
	pthread_join(database, NULL);
	close(listener);
	unlink(path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(chown(path, owner, (gid_t)-1), 0);
	/* A listener's credentials are those of its listen(). */
	assert_int_equal(seteuid(process), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(pthread_create(&database, NULL, serve, NULL), 0);
}

static void test_database_of_another_user_is_not_queried(void **state)
{
	if (geteuid())
		skip();
	set_answer(ROWS(ROW("p0", "a", NUMBER("0"))));
	listen_as(0, 0);
	assert_name(0, "a", "p0");
	rt_names_free(&conn->names);
	listen_as(65534, 0);
	assert_name(0, "a", "a");
	rt_names_free(&conn->names);
	listen_as(0, 65534);
	assert_name(0, "a", "a");
	assert_int_equal(rt_load(&questions), 1);
}

/* A switch in a container names a path of its own, which may be that of a socket of the host. */
static void test_path_is_one_of_the_switch(void **state)
{
	char root[] = "/tmp/rt-names-root-XXXXXX", inner[64];
	struct rt_msg_header h;
	unsigned fds;
	int pair[2];
	pid_t child;

	if (geteuid())
		skip();
	set_answer(ROWS(ROW("p0", "a", NUMBER("0"))));
	assert_non_null(mkdtemp(root));
	snprintf(inner, sizeof(inner), "%s/tmp", root);
	assert_int_equal(mkdir(inner, 0755), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	rt_msg_init(&h, 1, sizeof(h));
	child = fork();
	if (!child) {
		int own[2];

		/* The peer of a pair is the process that made it. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || chroot(root) || chdir("/") ||
			socketpair(AF_UNIX, SOCK_SEQPACKET, 0, own) ||
			rt_msg_send(pair[1], &h, own, 1))
			_exit(1);
		for (;;)
			pause();
	}
	close(conn->fd);
	assert_true(rt_msg_recv(pair[0], &h, sizeof(h), &conn->fd, 1, &fds, 5000) > 0);
	assert_int_equal(fds, 1);
	/* The host's socket is at this path, the container has none. */
	assert_name(0, "a", "a");
	assert_int_equal(rt_load(&questions), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pair[0]);
	close(pair[1]);
	rmdir(inner);
	rmdir(root);
}

#define with_database(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		with_database(test_names_by_number_and_by_device),
		with_database(test_match_of_number_and_device_has_precedence),
		with_database(test_representors_match_by_number),
		with_database(test_vhost_ports_match_by_path),
		with_database(test_links_of_vhost_ports_are_those_of_the_switch),
		with_database(test_links_are_read_again),
		with_database(test_answer_in_pieces),
		with_database(test_only_open_vswitch_is_queried),
		with_database(test_unanswered_query_is_not_repeated),
		with_database(test_invalid_answers_change_no_names),
		with_database(test_endless_answers_are_aborted),
		with_database(test_long_names_and_control_characters),
		cmocka_unit_test(test_slow_database_is_queried_less_often),
		with_database(test_names_are_kept_until_the_next_query),
		with_database(test_database_of_another_user_is_not_queried),
		with_database(test_path_is_one_of_the_switch),
	};

	const struct CMUnitTest of_environment[] = {
		with_database(test_names_by_number_and_by_device),
	};
	char remote[sizeof(path) + 8], folder[32] = "/tmp/rt-names-XXXXXX";
	int failed;

	rt_reader_limits.names_ms = 200;
	if (argc == 1) {
		snprintf(remote, sizeof(remote), "unix:/tmp/rt-names-%d.sock", (int)getpid());
		execv("/proc/self/exe", (char *[]){argv[0], "--unixctl=x", remote, NULL});
		return 1;
	}
	if (argc == 3) {
		snprintf(path, sizeof(path), "%s", argv[2] + strlen("unix:"));
		if (cmocka_run_group_tests(tests, NULL, NULL) || !mkdtemp(folder) ||
			setenv("OVS_RUNDIR", folder, 1))
			return 1;
		execv("/proc/self/exe", (char *[]){argv[0], "--unixctl=x", NULL});
		return 1;
	}
	snprintf(path, sizeof(path), "%s/db.sock", getenv("OVS_RUNDIR"));
	failed = cmocka_run_group_tests(of_environment, NULL, NULL);
	rmdir(getenv("OVS_RUNDIR"));
	return failed;
}
