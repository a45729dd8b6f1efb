/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of what one application, or one client, can take from others. */
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_util.h"
#include "serve/clients.h"
#include "families.h"

#define QUEUES 4096u

/* ---- samples ---- */

static struct ringtap_queue_stats queues[QUEUES];
static struct ringtap_port_stats ports[2];
static struct ringtap_snapshot snapshot;
static struct watched apps[3], *list[3] = {&apps[0], &apps[1], &apps[2]};
static struct watch watch = {.list = list, .count = 3};

static int set_up(void **state)
{
	memset(queues, 0, sizeof(queues));
	for (unsigned i = 0; i < QUEUES; i++)
		queues[i].queue = (uint16_t)i;
	for (unsigned i = 0; i < 2; i++)
		snprintf(ports[i].name, sizeof(ports[i].name), "p%u", i);
	snapshot = (struct ringtap_snapshot){.taken_ns = NS_PER_S,
		.taken_mono_ns = NS_PER_S,
		.tsc_hz = 1000000000,
		.collectors = RINGTAP_POLLS,
		.port_count = 2,
		.queue_count = QUEUES,
		.ports = {ports, sizeof(ports[0])},
		.queues = {queues, sizeof(queues[0])}};
	for (unsigned i = 0; i < 3; i++)
		apps[i] = (struct watched){.name = (char *)(i == 0   ? "mallorys"
							    : i == 1 ? "alices"
								     : "roots"),
			.dir = (char *)"/nowhere",
			.now = &snapshot,
			.mark = &snapshot,
			.tsc_hz = 1e9,
			.foreign = i < 2};
	return 0;
}

static char *answer(unsigned of_app, unsigned in_all)
{
	const struct export_limits limits = {of_app, in_all};
	struct recorder_answers *none;
	struct export_text t = {0};
	struct watch empty = {0};

	watch_init(&empty);
	assert_int_equal(recorder_answers_start(&none, &empty, NULL), 0);
	export_all(&t, &watch, &limits, none, NULL);
	recorder_answers_stop(none);
	watch_free(&empty);
	assert_false(t.failed);
	return t.data;
}

static void test_entries_of_one_name_are_one_series(void **state)
{
	static const uint32_t first[] = {0, 1, 2, 4};
	struct exported x = {.span = {.to = &snapshot}};
	const struct series *s;

	snapshot.queue_count = 6;
	queues[3] = queues[1];
	queues[5] = queues[1];
	queues[4].direction = RINGTAP_TX;
	assert_int_equal(labels_find(&x), 0);
	s = labels_series(&x, RT_OBJECT_CALLS);
	assert_ptr_equal(s, labels_series(&x, RT_OBJECT_QUEUE));
	assert_int_equal(s->count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(s->first[i], first[i]);
	assert_int_equal(s->next[1], 3);
	assert_int_equal(s->next[3], 5);
	assert_int_equal(s->next[5], RINGTAP_NO_INDEX);
	assert_int_equal(s->next[4], RINGTAP_NO_INDEX);
	labels_free(&x);
}

static void test_xstats_are_exported_while_they_are_read(void **state)
{
	static struct ringtap_xstat_stats x[] = {
		{.name = "rx_good_packets", .value = 5, .read_ns = 1},
		{.name = "rx_good_packets", .port = 1, .value = UINT64_MAX, .read_ns = 1},
		{.name = "a\"b", .port = RINGTAP_NO_INDEX, .value = 7, .read_ns = 1},
		{.name = "rx_good_packets", .port = RINGTAP_NO_INDEX, .value = 8, .read_ns = 1},
		{.name = "gone", .gone = true, .value = 9, .read_ns = 1},
		{.name = "unread", .value = 10}, {.name = "tx\"\\", .value = 0, .read_ns = 1}};
	char *text;

	snapshot.queue_count = 0;
	snapshot.xstats = (struct ringtap_array){x, sizeof(x[0])};
	snapshot.xstat_count = sizeof(x) / sizeof(x[0]);
	snapshot.xstats_beyond = 3;
	watch.count = 1;
	text = answer(1000, 1000);
	assert_int_equal(test_count(text, "ringtap_port_xstat{"), 0);
	assert_non_null(strstr(text, "ringtap_uncounted_xstats{app=\"mallorys\"} 0\n"));
	free(text);
	snapshot.collectors |= RINGTAP_XSTATS;
	text = answer(1000, 1000);
	assert_int_equal(test_count(text, "ringtap_port_xstat{"), 3);
	assert_non_null(strstr(text,
		"ringtap_port_xstat{app=\"mallorys\",port=\"p0\",xstat=\"rx_good_packets\"} 5\n"));
	assert_non_null(strstr(text,
		"ringtap_port_xstat{app=\"mallorys\",port=\"p1\",xstat=\"rx_good_packets\"} "
		"18446744073709551616\n"));
	assert_non_null(strstr(
		text, "ringtap_port_xstat{app=\"mallorys\",port=\"p0\",xstat=\"tx\\\"\\\\\"} 0\n"));
	assert_non_null(strstr(text, "ringtap_uncounted_xstats{app=\"mallorys\"} 3\n"));
	free(text);
	watch.count = 3;
}

static void test_devices_and_lcores_are_exported(void **state)
{
	static struct ringtap_device_stat d[] = {{.device = "event_sw",
							 .name = "rx",
							 .id = 1,
							 .part = RINGTAP_PART_PORT,
							 .value = 5,
							 .read_ns = 1},
		{.device = "event_sw",
			.name = "rx",
			.id = 1,
			.part = RINGTAP_PART_PORT,
			.number = 2,
			.value = 6,
			.read_ns = 1},
		{.device = "dma",
			.name = "errors",
			.kind = RINGTAP_DMADEV,
			.value = 7,
			.read_ns = 1},
		{.device = "gone", .name = "rx", .gone = true, .value = 9, .read_ns = 1},
		{.device = "unread", .name = "rx", .value = 10}};
	static struct ringtap_lcore_stats l[] = {{.lcore = 0},
		{.lcore = 1, .total_cycles = 4000000000, .busy_cycles = 3000000000, .read_ns = 1}};
	char *text;

	snapshot.queue_count = 0;
	snapshot.device_stats = (struct ringtap_array){d, sizeof(d[0])};
	snapshot.device_stat_count = sizeof(d) / sizeof(d[0]);
	snapshot.lcores = (struct ringtap_array){l, sizeof(l[0])};
	snapshot.lcore_count = 2;
	snapshot.device_stats_beyond = 3;
	snapshot.collectors |= RINGTAP_DEVICES | RINGTAP_BUSY;
	watch.count = 1;
	text = answer(1000, 1000);
	assert_int_equal(test_count(text, "ringtap_device_stat{"), 3);
	assert_non_null(strstr(text,
		"ringtap_device_stat{app=\"mallorys\",kind=\"eventdev\",device=\"event_sw\",id=\"1\","
		"part=\"port 2\",stat=\"rx\"} 6\n"));
	assert_non_null(strstr(text,
		"ringtap_device_stat{app=\"mallorys\",kind=\"dmadev\",device=\"dma\",id=\"0\","
		"part=\"\",stat=\"errors\"} 7\n"));
	assert_non_null(strstr(text, "ringtap_uncounted_device_stats{app=\"mallorys\"} 3\n"));
	assert_int_equal(test_count(text, "ringtap_lcore_busy_seconds_total{"), 1);
	assert_int_equal(test_count(text, "ringtap_lcore_counted_seconds_total{"), 1);
	assert_non_null(
		strstr(text, "ringtap_lcore_busy_seconds_total{app=\"mallorys\",lcore=\"1\"} "));
	free(text);
	watch.count = 3;
}

static void test_an_application_has_so_many_samples(void **state)
{
	char *text;

	watch.count = 1;
	text = answer(100, 1000000);
	assert_in_range(test_count(text, "{app=\"mallorys\""), 90, 110);
	assert_non_null(strstr(text, "ringtap_samples_left_out{app=\"mallorys\"} "));
	assert_null(strstr(text, "ringtap_samples_left_out{app=\"mallorys\"} 0\n"));
	/* A histogram is whole, or it is not there. */
	assert_int_equal(test_count(text, "ringtap_burst_packets_bucket"),
		12 * test_count(text, "ringtap_burst_packets_count"));
	free(text);
	watch.count = 3;
}

static void test_other_users_leave_room_for_root(void **state)
{
	char *text = answer(1000000, 8000);

	assert_in_range(test_count(text, "{app=\"mallorys\""), 900, 1010);
	assert_in_range(test_count(text, "{app=\"alices\""), 900, 1010);
	assert_in_range(test_count(text, "{app=\"roots\""), 5900, 6010);
	free(text);
	snapshot.queue_count = 8;
	text = answer(1000000, 8000);
	assert_non_null(strstr(text, "ringtap_samples_left_out{app=\"roots\"} 0\n"));
	free(text);
}

/* ---- clients ---- */

static struct clients clients = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct peer {
	int here, there;
};

static struct peer connect_from(uint32_t address, uint64_t now)
{
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	clients_add(&clients, fd[0], (const struct sockaddr *)&a, now);
	return (struct peer){fd[0], fd[1]};
}

/* Whether the server has ended it. */
static bool ended(const struct peer *p)
{
	return poll(&(struct pollfd){.fd = p->there, .events = POLLIN}, 1, 0) == 1;
}

static void leave(struct peer *p)
{
	clients_remove(&clients, p->here);
	close(p->here);
	close(p->there);
}

static void test_request_has_a_time_as_a_whole(void **state)
{
	struct peer slow = connect_from(1, 0), quick = connect_from(2, 0);

	clients_expire(&clients, 9 * NS_PER_S);
	assert_false(ended(&slow));
	clients_served(&clients, quick.here, 9 * NS_PER_S);
	clients_expire(&clients, 11 * NS_PER_S);
	assert_true(ended(&slow));
	assert_false(ended(&quick));
	leave(&slow);
	leave(&quick);
	assert_int_equal(clients.count, 0);
}

static void test_oldest_of_most_makes_room(void **state)
{
	struct peer one = connect_from(1, 0), many[CLIENTS_KEPT];

	for (unsigned i = 0; i < CLIENTS_KEPT; i++)
		many[i] = connect_from(2, 1 + i);
	assert_true(ended(&many[0]));
	assert_false(ended(&one) || ended(&many[1]));
	/* It is still there: the server has not closed it. */
	leave(&many[0]);
	many[0] = connect_from(2, 100);
	assert_true(ended(&many[1]));
	assert_false(ended(&one) || ended(&many[0]) || ended(&many[2]));
	for (unsigned i = 0; i < CLIENTS_KEPT; i++)
		leave(&many[i]);
	leave(&one);
}

static void test_names_of_this_host(void **state)
{
	static const char *const right[] = {"127.0.0.1", "127.0.0.1:9777", "[::1]", "[::1]:9777",
		"localhost", "LocalHost:9777", "localhost.", "10.1.2.3:1", "metrics.example:9777"};
	static const char *const wrong[] = {"", "evil.example", "evil.example:9777", ":9777",
		"localhost.evil.example", "127.0.0.1.evil.example", "[::1", "[evil]", "::1",
		"[::1]evil", "127.0.0.1:9777:1"};
	static const char *const names[] = {"metrics.example"};
	char own[256] = "";

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_true(clients_is_host(right[i], names, 1));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(clients_is_host(wrong[i], names, 1));
	assert_int_equal(gethostname(own, sizeof(own) - 1), 0);
	assert_true(clients_is_host(own, NULL, 0));
	assert_true(clients_is_host(NULL, NULL, 0));
}

/* ---- text ---- */

static void labels_are_escaped(void **state)
{
	static const struct rt_metric some = {
		.prometheus = "some", .type = RT_METRIC_COUNTER, .help = "it \"is\""};
	struct export_text t = {0};
	char labels[LABELS_LEN], longest[2 * LABELS_LEN];

	export_labels(labels, "a", "x\"\\\n\x1b\xff", "b", "", NULL);
	assert_string_equal(labels, "a=\"x\\\"\\\\???\",b=\"\"");
	memset(longest, '"', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	export_labels(labels, "a", longest, "b", "x", NULL);
	assert_in_range(strlen(labels), LABELS_LEN - 8, LABELS_LEN - 1);
	assert_true(labels[strlen(labels) - 1] == '"');
	export_family(&t, &some);
	export_number(&t, "", "a=\"b\"", 9007199254740991);
	export_number(&t, "", "", 0.1);
	export_bucket(&t, "", 1e-7, 3);
	export_bucket(&t, "", 512, 3);
	export_bucket(&t, "", INFINITY, 3);
	assert_string_equal(t.data,
		"# HELP ringtap_some_total It \"is\".\n# TYPE ringtap_some_total counter\n"
		"ringtap_some_total{a=\"b\"} 9007199254740991\nringtap_some_total 0.1\n"
		"ringtap_some_bucket{le=\"1e-07\"} 3\nringtap_some_bucket{le=\"512.0\"} 3\n"
		"ringtap_some_bucket{le=\"+Inf\"} 3\n");
	free(t.data);
}

static void text_grows(void **state)
{
	static const struct rt_metric x = {.prometheus = "x", .type = RT_METRIC_INFO, .help = "it"};
	struct export_text t = {.openmetrics = true};

	export_family(&t, &x);
	for (unsigned i = 0; i < 10000; i++)
		export_number(&t, "", "", 1);
	export_end(&t);
	assert_false(t.failed);
	assert_int_equal(t.len, strlen(t.data));
	assert_int_equal(t.len, strlen("# HELP ringtap_x It.\n# TYPE ringtap_x info\n# EOF\n") +
					10000 * strlen("ringtap_x_info 1\n"));
	free(t.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_entries_of_one_name_are_one_series, set_up),
		cmocka_unit_test_setup(test_xstats_are_exported_while_they_are_read, set_up),
		cmocka_unit_test_setup(test_devices_and_lcores_are_exported, set_up),
		cmocka_unit_test_setup(test_an_application_has_so_many_samples, set_up),
		cmocka_unit_test_setup(test_other_users_leave_room_for_root, set_up),
		cmocka_unit_test(test_request_has_a_time_as_a_whole),
		cmocka_unit_test(test_oldest_of_most_makes_room),
		cmocka_unit_test(test_names_of_this_host),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(text_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
