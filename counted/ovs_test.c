/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket of Open vSwitch, which a thread of this process plays. The process plays the
 * switch as well: it executes itself again with the socket's path on its command line. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_util.h"
#include "common/atomics.h"
#include "counted.h"

#define SHOWN                                                                               \
	"Event coverage, avg rate over last: 5 seconds, last minute, last hour,  "          \
	"hash=0f1e2d3c:\\n"                                                                 \
	"netlink_sent               0.0/sec     0.000/sec        0.0000/sec   total: 9\\n"  \
	"datapath_drop_meter      240.8/sec    20.067/sec        0.3344/sec   total: %s\\n" \
	"drop_action_of_pipeline    0.0/sec     0.000/sec        0.0000/sec   total: 3\\n"  \
	"drop_action_of_tomorrow    0.0/sec     0.000/sec        0.0000/sec   total: 4\\n"  \
	"78 events never hit\\n"                                                            \
	"netdev@ovs-netdev:\\n"                                                             \
	"  port 1: br0 (tap)\\n"                                                            \
	"    RX packets:0 errors:0 dropped:9 overruns:0 frame:0\\n"                         \
	"  port 3: vm0 (dpdkvhostuserclient: mtu=1500)\\n"                                  \
	"    RX packets:8 errors:? dropped:%s overruns:? frame:?\\n"                        \
	"    TX packets:8 errors:? dropped:? aborted:? carrier:?\\n"                        \
	"    RX bytes:480  TX bytes:480\\n"
#define ANSWER "{\"id\":0,\"result\":\"" SHOWN "\",\"error\":null}"

#define WAIT "--wait"

static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static int listener = -1;
static pthread_t thread;
static const char *answer;       /* NULL: none */
static const char *answer_ports; /* to dpctl/show; NULL: the same */
static bool endless;
static char question[256];

static void *serve(void *arg)
{
	const char *text;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		char rest[16];
		ssize_t n = recv(fd, question, sizeof(question) - 1, 0);

		question[n > 0 ? n : 0] = 0;
		text = rt_load(&answer);
		if (strstr(question, "dpctl/show") && rt_load(&answer_ports))
			text = rt_load(&answer_ports);
		while (text && send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0 && rt_load(&endless))
			;
		while (recv(fd, rest, sizeof(rest), 0) > 0)
			; /* until the reader closes the connection */
		close(fd);
	}
	return NULL;
}

static void listen_as(uid_t owner, uid_t process)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (!geteuid()) {
		assert_int_equal(chown(path, owner, (gid_t)-1), 0);
		/* A listener's credentials are those of its listen(). */
		assert_int_equal(seteuid(process), 0);
	}
	assert_int_equal(listen(listener, 8), 0);
	if (owner != process || process)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void unlisten(void)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	unlink(path);
}

static void set_answer(const char *text, bool for_ever)
{
	rt_store(&endless, for_ever);
	rt_store(&answer, text);
}

static int set_up(void **state)
{
	set_answer(NULL, false);
	listen_as(geteuid(), geteuid());
	return 0;
}

static int tear_down(void **state)
{
	rt_store(&endless, false);
	unlisten();
	return 0;
}

/* One reading of the whole. */
static int read_once(struct counted *c, int within_ms)
{
	*c = (struct counted){.source = &counted_open_vswitch,
		.pid = getpid(),
		.own_pid = getpid(),
		.list = calloc(COUNTED_MAX, sizeof(struct counted_value))};
	assert_non_null(c->list);
	return c->source->read(c, within_ms);
}

static void assert_fails(int error, int within_ms, const char *why)
{
	struct counted c;

	assert_int_equal(read_once(&c, within_ms), error);
	assert_non_null(strstr(c.why, why));
	assert_int_equal(c.count, 0);
	counted_free(&c);
}

static void test_counters_of_dropped_packets(void **state)
{
	char first[2048], second[2048];
	struct counted c;

	snprintf(first, sizeof(first), ANSWER, "1204", "6");
	snprintf(second, sizeof(second), ANSWER, "1210", "8");
	set_answer(first, false);
	counted_begin(&c, "ovs-vswitchd-dpdk", getpid(), getpid());
	assert_string_equal(c.why, "");
	assert_string_equal(question, "{\"id\":0,\"method\":\"dpctl/show\",\"params\":[\"-s\"]}");
	set_answer(second, false);
	counted_end(&c, 6);
	assert_int_equal(c.count, 4);
	assert_string_equal(c.list[0].name, "datapath_drop_meter");
	assert_string_equal(c.list[0].meaning, "by a meter");
	assert_int_equal(c.list[0].begin, 1204);
	assert_int_equal(c.list[0].end, 1210);
	assert_int_equal(c.list[1].end, 3);
	assert_string_equal(c.list[2].name, "drop_action_of_tomorrow");
	assert_null(c.list[2].meaning);
	assert_string_equal(c.list[3].name, "vm0 rx_dropped");
	assert_int_equal(c.list[3].begin, 6);
	assert_int_equal(c.list[3].end, 8);
	counted_free(&c);
}

/* The other counters are known; those of ports begin when they can be read. */
static void test_a_switch_that_does_not_tell_its_ports(void **state)
{
	char first[2048], second[2048];
	struct counted c;

	snprintf(first, sizeof(first), ANSWER, "1204", "6");
	snprintf(second, sizeof(second), ANSWER, "1210", "8");
	set_answer(first, false);
	rt_store(&answer_ports, "{\"id\":0,\"result\":null,\"error\":\"no such command\"}");
	counted_begin(&c, "ovs-vswitchd-dpdk", getpid(), getpid());
	assert_true(c.begun);
	assert_string_equal(c.why, "");
	assert_int_equal(c.count, 3);
	rt_store(&answer_ports, second);
	set_answer(second, false);
	counted_end(&c, 6);
	assert_int_equal(counted_since(&c.list[0]), 6);
	assert_int_equal(c.count, 4);
	assert_int_equal(c.list[3].begin, 8);
	assert_int_equal(c.list[3].end, 8);
	rt_store(&answer_ports, NULL);
	counted_free(&c);
}

#define DROPPED "\n    RX packets:1 errors:0 dropped:5 overruns:?\n"

static void test_counters_of_ports(void **state)
{
	static const struct {
		const char *port, *name;
		bool mixed;
	} cases[] = {{"  port 0: ovs-netdev (tap)" DROPPED, NULL, false},
		{"  port 1: br0" DROPPED, NULL, false},
		{"  port 2: p0 (dpdk: mtu=1500)" DROPPED, "p0 rx_dropped", true},
		{"  port 2: p0 (dpdk: mtu=1500)\n    TX packets:1 dropped:5", "p0 tx_dropped",
			true},
		{"  port 3: vm0 (dpdkvhostuserclient: mtu=1)" DROPPED, "vm0 rx_dropped", false},
		{"  port 3: vm0 (dpdkvhostuser)" DROPPED, "vm0 rx_dropped", false},
		{"  port 3: vm0 (dpdkvhost", NULL, false}, {"  port 3: (dpdk" DROPPED, NULL, false},
		{"  port 3 (dpdk: vm0" DROPPED, NULL, false},
		{"  port 3: a\033b (dpdk: m=1)" DROPPED, NULL, false},
		{"  port 3: p (dpdk: m=1)\n    RX packets:1 dropped:?\n", NULL, false},
		{"  port 3: p (dpdk: m=1)\n    RX packets:1 dropped:0\n", NULL, false},
		{"  port 3: p (dpdk: m=1)\n    RX packets:1 \n dropped:5\n", NULL, false},
		{"  port 3: p (dpdk: m=1)\n  port 4: br1 (tap)" DROPPED, NULL, false},
		{DROPPED, NULL, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct counted c = {.list = calloc(COUNTED_MAX, sizeof(struct counted_value))};

		assert_non_null(c.list);
		counted_take_ports(&c, cases[i].port);
		assert_int_equal(c.count, cases[i].name != NULL);
		if (cases[i].name) {
			assert_string_equal(c.list[0].name, cases[i].name);
			assert_int_equal(c.list[0].end, 5);
			assert_int_equal(c.list[0].mixed, cases[i].mixed);
		}
		counted_free(&c);
	}
}

static void test_ports_with_long_names(void **state)
{
	char text[512];

	for (int len = COUNTED_NAME_LEN - 20; len < COUNTED_NAME_LEN + 20; len++) {
		struct counted c = {.list = calloc(COUNTED_MAX, sizeof(struct counted_value))};

		assert_non_null(c.list);
		snprintf(text, sizeof(text), "  port 1: %0*d (dpdk: m=1)" DROPPED, len, 0);
		counted_take_ports(&c, text);
		assert_int_equal(c.count, len + sizeof(" rx_dropped") <= COUNTED_NAME_LEN);
		counted_free(&c);
	}
}

/* As Open vSwitch 3.1.0 answers. Threads that have received nothing have fewer lines. */
#define PERF                                                                       \
	"Time: 10:15:32.137\nMeasurement duration: 11.462 s\n\n"                   \
	"pmd thread numa_id 0 core_id %d:\n\n"                                     \
	"  Iterations:         35134532  (0.33 us/it)\n"                           \
	"  - Used TSC cycles:  25215716832  (100.0 %% of total cycles)\n"          \
	"  - idle iterations:  35134310  ( 99.9 %% of used cycles)\n"              \
	"  Rx packets:        %12s  (0 Kpps, 5083 cycles/pkt)\n"                   \
	"  Datapath passes:            702  (1.00 passes/pkt)\n"                   \
	"  - EMC hits:                 698  ( 99.4 %%)\n"                          \
	"  - Megaflow hits:              0  (  0.0 %%, 0.00 subtbl lookups/hit)\n" \
	"  - Upcalls:         %12s  (  0.6 %%, 62.4 us/upcall)\n"                  \
	"  - Lost upcalls:    %12s  (  0.0 %%)\n"                                  \
	"  Tx packets:        %12s  (0 Kpps)\n"                                    \
	"  Tx batches:                 451  (1.56 pkts/batch)\n\n"                 \
	"Time: 10:15:32.137\nMeasurement duration: 11.462 s\n\nmain thread:\n\n"   \
	"  Iterations:                   0\n  - Used TSC cycles:            0\n"   \
	"  Rx packets:                   0\n  Tx packets:                   0\n\n"

static void assert_thread(const struct counted_thread *t, const char *name, uint64_t received,
	uint64_t sent, uint64_t slow, uint64_t lost)
{
	assert_string_equal(t->name, name);
	assert_int_equal(counted_thread_since(t, COUNTED_RECEIVED), received);
	assert_int_equal(counted_thread_since(t, COUNTED_SENT), sent);
	assert_int_equal(counted_thread_since(t, COUNTED_SLOW), slow);
	assert_int_equal(counted_thread_since(t, COUNTED_LOST), lost);
}

static struct counted with_threads(void)
{
	struct counted c = {.threads = calloc(1, sizeof(*c.threads))};

	assert_non_null(c.threads);
	return c;
}

static void test_packets_of_threads(void **state)
{
	struct counted c = with_threads();
	char text[4096];

	snprintf(text, sizeof(text), PERF, 3, "702", "4", "0", "700");
	counted_take_threads(&c, text);
	assert_int_equal(c.threads->count, 2);
	assert_thread(&c.threads->list[0], "pmd thread numa_id 0 core_id 3", 0, 0, 0, 0);
	snprintf(text, sizeof(text), PERF, 3, "1702", "9", "2", "1500");
	counted_take_threads(&c, text);
	/* One that the switch starts now begins with 0. */
	snprintf(text, sizeof(text), PERF, 5, "18446744073709551615", "1", "0", "7");
	counted_take_threads(&c, text);
	assert_int_equal(c.threads->count, 3);
	assert_thread(&c.threads->list[0], "pmd thread numa_id 0 core_id 3", 1000, 800, 5, 2);
	assert_thread(&c.threads->list[1], "main thread", 0, 0, 0, 0);
	assert_thread(&c.threads->list[2], "pmd thread numa_id 0 core_id 5", UINT64_MAX, 7, 1, 0);
	/* pmd-stats-clear */
	snprintf(text, sizeof(text), PERF, 3, "0", "0", "0", "0");
	counted_take_threads(&c, text);
	assert_thread(&c.threads->list[0], "pmd thread numa_id 0 core_id 3", 0, 0, 0, 0);
	counted_free(&c);
}

static void test_answers_about_threads_that_are_none(void **state)
{
	static const char *const lies[] = {"", "\n", ":", "thread", "  Rx packets: 7\n",
		"thread:\n  Rx packets: -7\n  Tx packets: x\n  - Upcalls: \n", "th\033read:\n",
		"main thread:\n  Rx packets: 99999999999999999999\n  Tx packets:7\n"};
	char name[COUNTED_NAME_LEN + 64];
	struct counted c;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		c = with_threads();
		counted_take_threads(&c, lies[i]);
		for (size_t k = 0; k < c.threads->count; k++)
			for (unsigned what = 0; what < COUNTED_OF_THREAD; what++)
				assert_int_equal(c.threads->list[k].end[what], 0);
		counted_free(&c);
	}
	c = with_threads();
	for (int i = 0; i < COUNTED_THREADS + 2; i++) {
		snprintf(name, sizeof(name), "thread %d:\n  Rx packets: 5\n", i);
		counted_take_threads(&c, name);
	}
	assert_int_equal(c.threads->count, COUNTED_THREADS);
	snprintf(name, sizeof(name), "thread %0*d:", COUNTED_NAME_LEN, 0);
	counted_free(&c);
	c = with_threads();
	counted_take_threads(&c, name);
	assert_int_equal(c.threads->count, 0);
	counted_free(&c);
}

static void test_totals_that_are_no_numbers(void **state)
{
	static const char *const totals[] = {"", "-1", "+1", " 1", "1x", "0x10", "1.5",
		"18446744073709551616", "99999999999999999999999999999999999999"};
	static char texts[10][2048]; /* the thread may still have the one before */
	struct counted c;

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		snprintf(texts[i], sizeof(texts[i]), ANSWER, totals[i], "?");
		set_answer(texts[i], false);
		assert_int_equal(read_once(&c, 5000), 0);
		assert_int_equal(c.count, 2); /* those of the other lines */
		counted_free(&c);
	}
	snprintf(texts[9], sizeof(texts[9]), ANSWER, "18446744073709551615", "?");
	set_answer(texts[9], false);
	assert_int_equal(read_once(&c, 5000), 0);
	assert_int_equal(c.list[0].end, UINT64_MAX);
	counted_free(&c);
}

static void test_answers_that_are_none(void **state)
{
	static char deep[20000];
	static const char *const lies[] = {"}", "{}", "[]\n", "{\"result\":7}",
		"{\"id\":0,\"result\":null,\"error\":\"no such command\\n\"}", "\x80\xff}", deep};

	memset(deep, '[', sizeof(deep) - 2);
	deep[sizeof(deep) - 2] = '}';
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct counted c;

		set_answer(lies[i], false);
		assert_true(read_once(&c, 100) < 0);
		assert_int_equal(c.count, 0);
		assert_true(*c.why);
		counted_free(&c);
	}
}

static void test_an_answer_without_end(void **state)
{
	set_answer("{\"result\":\"", true);
	assert_fails(-EPROTO, 60000, "its answer cannot be read");
}

static void test_no_answer(void **state)
{
	assert_fails(-ETIMEDOUT, 50, "no answer within 50 ms");
}

static void test_sockets_of_other_users(void **state)
{
	if (geteuid())
		skip();
	unlisten();
	listen_as(65534, 0);
	assert_fails(-EPERM, 5000, "belongs to another user");
	unlisten();
	listen_as(0, 65534);
	assert_fails(-EPERM, 5000, "belongs to another user");
}

static void test_what_is_no_socket(void **state)
{
	unlink(path);
	assert_fails(-ENOENT, 5000, "No such file");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_fails(-ENOTSOCK, 5000, path);
	rmdir(path);
}

/* Reads the counters of a switch with number 77 and this command line. */
static void assert_error(
	int error, const char *why, const char *env, const char *first, const char *second)
{
	char *const envp[] = {"A=1", (char *)(uintptr_t)env, NULL};
	char *const argv[] = {"/usr/sbin/ovs-vswitchd", (char *)(uintptr_t)first,
		(char *)(uintptr_t)second, NULL};
	struct counted c = {.source = &counted_open_vswitch, .own_pid = 77};
	int started[2];
	char none;

	assert_int_equal(pipe2(started, O_CLOEXEC), 0);
	c.pid = fork();
	if (!c.pid) {
		if (!prctl(PR_SET_PDEATHSIG, SIGKILL))
			execve("/proc/self/exe", argv, envp);
		_exit(1);
	}
	close(started[1]);
	assert_int_equal(read(started[0], &none, 1), 0); /* until it executes that */
	close(started[0]);
	assert_int_equal(c.source->read(&c, 5000), error);
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	assert_string_equal(c.why, why);
}

static void assert_looks_for(
	const char *why, const char *env, const char *first, const char *second)
{
	assert_error(-ENOENT, why, env, first, second);
}

static void test_paths_of_command_lines(void **state)
{
	assert_looks_for("/var/run/openvswitch/ovs-vswitchd.77.ctl: No such file or directory",
		NULL, WAIT, NULL);
	assert_looks_for(
		"/no/sw.ctl: No such file or directory", NULL, WAIT, "--unixctl=/no/sw.ctl");
	assert_looks_for("/no/sw.ctl: No such file or directory", NULL, "--unixctl", "/no/sw.ctl");
	assert_looks_for("/var/run/openvswitch/no.ctl: No such file or directory", NULL, WAIT,
		"--unixctl=no.ctl");
	assert_looks_for("it has no control socket (--unixctl=none)", NULL, WAIT, "--unixctl=none");
}

static void test_run_time_folders_of_the_environment(void **state)
{
	char far[256];

	assert_looks_for(
		"/no/ovs-vswitchd.77.ctl: No such file or directory", "OVS_RUNDIR=/no", WAIT, NULL);
	assert_looks_for("/no/no.ctl: No such file or directory", "OVS_RUNDIR=/no", WAIT,
		"--unixctl=no.ctl");
	assert_looks_for("/no/sw.ctl: No such file or directory", "OVS_RUNDIR=/another", WAIT,
		"--unixctl=/no/sw.ctl");
	snprintf(far, sizeof(far), "OVS_RUNDIR=/%0200d", 0);
	assert_error(-ENAMETOOLONG, "the path of its control socket is too long", far, WAIT, NULL);
}

#define with_socket(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		with_socket(test_counters_of_dropped_packets),
		with_socket(test_a_switch_that_does_not_tell_its_ports),
		cmocka_unit_test(test_counters_of_ports),
		cmocka_unit_test(test_ports_with_long_names),
		cmocka_unit_test(test_packets_of_threads),
		cmocka_unit_test(test_answers_about_threads_that_are_none),
		with_socket(test_totals_that_are_no_numbers),
		with_socket(test_answers_that_are_none),
		with_socket(test_an_answer_without_end),
		with_socket(test_no_answer),
		with_socket(test_sockets_of_other_users),
		with_socket(test_what_is_no_socket),
		cmocka_unit_test(test_paths_of_command_lines),
		cmocka_unit_test(test_run_time_folders_of_the_environment),
	};

	/* As a switch of test_paths_of_command_lines(). */
	while (argc > 1 && (!strcmp(argv[1], WAIT) || !strcmp(argv[1], "--unixctl")))
		pause();
	if (argc == 1) {
		char option[sizeof(path) + 16];

		snprintf(option, sizeof(option), "--unixctl=/tmp/rt-counted-%d.ctl", (int)getpid());
		execv("/proc/self/exe", (char *[]){argv[0], option, NULL});
		return 1;
	}
	snprintf(path, sizeof(path), "%s", strchr(argv[1], '=') + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
