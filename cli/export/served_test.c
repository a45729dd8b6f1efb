/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of ringtap export, for applications that are made up and with a clock that is set. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "recorder/ask.h"
#include "recorder/request.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"
#include "server.h"

static struct fake_app *app;
static struct watch w;
static struct export_config config;
static struct export_server *server;
static int port;
static const char *answers; /* JSON, of the recorders of "app" */
static int request_result;
static char requested[256];

/* ---- instead of the recorders */

bool ask_recorders(json_t *list, const char *dir, const char *name, int timeout_ms)
{
	json_t *j = answers && !strcmp(name, "app") ? json_loads(answers, 0, NULL) : NULL;

	if (j)
		json_array_extend(list, j);
	json_decref(j);
	return true;
}

int request_send(const char *folder, const char *comment)
{
	snprintf(requested, sizeof(requested), "%s: %s", folder, comment ? comment : "none");
	return request_result;
}

/* ---- the server */

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	app = &fake_apps[0];
	w = (struct watch){.command = "export", .collectors = RINGTAP_POLLS, .latency_every = 1};
	config = (struct export_config){
		.serve = {.listen = "127.0.0.1:0"}, .limits = {50000, 200000}};
	answers = NULL;
	request_result = 0;
	*requested = '\0';
	watch_init(&w);
	return 0;
}

static void serve(void)
{
	char url[128];

	assert_int_equal(watch_refresh(&w), 0);
	assert_int_equal(export_serve(&server, &w, &config, url, sizeof(url)), 0);
	assert_int_equal(sscanf(url, "http://127.0.0.1:%d", &port), 1);
}

static int end(void **state)
{
	export_stop(server);
	server = NULL;
	watch_free(&w);
	fake_apps_end();
	return fake_monitors ? -1 : 0;
}

static int connect_there(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Until the server ends the connection. The caller frees. */
static char *receive_all(int fd)
{
	size_t len = 0, size = 1 << 20;
	char *text = calloc(1, size);
	ssize_t n;

	while ((n = recv(fd, text + len, size - 1 - len, 0)) > 0)
		len += (size_t)n;
	close(fd);
	return text;
}

/* The whole answer to "METHOD URL" with more header lines. The caller frees. */
static char *ask(const char *what, const char *headers, const char *body)
{
	char request[2048];
	int fd = connect_there();
	int n = snprintf(request, sizeof(request),
		"%s HTTP/1.1\r\n%s%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s", what,
		strstr(headers, "Host: ") ? "" : "Host: localhost\r\n", headers, strlen(body),
		body);

	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	return receive_all(fd);
}

static void assert_status(const char *what, const char *headers, int status)
{
	char *text = ask(what, headers, "");
	int got = 0;

	sscanf(text, "HTTP/1.1 %d", &got);
	if (got != status)
		fail_msg("%s: %s", what, text);
	free(text);
}

static void assert_type(const char *accept, const char *type)
{
	char headers[256], *text;

	snprintf(headers, sizeof(headers), "Accept: %s\r\n", accept);
	text = ask("GET /metrics", headers, "");
	if (!strstr(text, type))
		fail_msg("%s: %.500s", accept, text);
	free(text);
}

/* ---- requests */

static void what_there_is(void **state)
{
	serve();
	assert_status("GET /metrics", "", 200);
	assert_status("GET /", "", 200);
	assert_status("GET /nothing", "", 404);
	assert_status("GET /metrics/", "", 404);
	assert_status("POST /metrics", "", 405);
	assert_status("PUT /metrics", "", 405);
	assert_status("DELETE /", "", 405);
}

static void the_first_page_says_what_is_served(void **state)
{
	char *text;

	serve();
	text = ask("GET /", "", "");
	assert_non_null(strstr(text, "Content-Type: text/html; charset=utf-8\r\n"));
	assert_non_null(strstr(text, "Content-Security-Policy: default-src 'none'\r\n"));
	assert_non_null(strstr(text, "<a href=\"/metrics\">"));
	assert_non_null(strstr(text, "never packets"));
	free(text);
}

static void head_has_no_body(void **state)
{
	char *text;

	serve();
	text = ask("HEAD /metrics", "", "");
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_non_null(strstr(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
}

static void formats_by_what_is_accepted(void **state)
{
	static const char open[] = "Content-Type: application/openmetrics-text; version=1.0.0";
	static const char plain[] = "Content-Type: text/plain; version=0.0.4; charset=utf-8";

	serve();
	assert_type("application/openmetrics-text", open);
	assert_type("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", open);
	assert_type("application/openmetrics-text;q=0.5,text/plain;q=0.5", open);
	assert_type("text/plain", plain);
	assert_type("*/*", plain);
	assert_type("text/plain;q=0.9,application/openmetrics-text;q=0.1", plain);
	assert_type("application/openmetrics-text;q=0", plain);
	assert_type("", plain);
}

static void names_of_other_hosts_are_refused(void **state)
{
	config.serve.hosts[config.serve.host_count++] = "metrics.example";
	serve();
	assert_status("GET /metrics", "Host: evil.example\r\n", 403);
	assert_status("POST /metrics", "Host: evil.example\r\n", 403);
	assert_status("GET /metrics", "Host: metrics.example:1\r\n", 200);
	assert_status("GET /metrics", "Host: localhost\r\n", 200);
	assert_status("GET /metrics", "Host: [::1]:9777\r\n", 200);
	assert_status("GET /metrics", "Host: 127.0.0.1\r\n", 200);
}

static void send_raw(const char *bytes, size_t len, size_t filler)
{
	char *text = malloc(len + filler);
	int fd = connect_there();

	memcpy(text, bytes, len);
	memset(text + len, 'a', filler);
	for (size_t at = 0, n = len + filler; at < n;) {
		ssize_t sent = send(fd, text + at, n - at, MSG_NOSIGNAL);

		if (sent <= 0)
			break; /* it has ended the connection */
		at += (size_t)sent;
	}
	free(text);
	close(fd);
}

/* The server goes on. */
static void bytes_that_are_not_a_request(void **state)
{
	static const char *const rows[] = {"\x01\xff\x13 garbage\r\n\r\n", "GET /metrics\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nX: ", "GET /", "",
		"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx"};

	serve();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t filler = 0; filler < 200000; filler += 100000)
			send_raw(rows[i], strlen(rows[i]), filler);
	assert_status("GET /metrics", "", 200);
}

static bool is_over(int fd)
{
	char c;

	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1 &&
	       recv(fd, &c, 1, 0) <= 0;
}

/* It is not silent: the server's own time-out does not end it. */
static void a_request_has_ten_seconds_as_a_whole(void **state)
{
	int slow, quick;

	serve();
	slow = connect_there();
	assert_true(send(slow, "GET /metrics", 12, 0) == 12);
	assert_status("GET /", "", 200); /* by now the server has accepted it */
	test_now_pass(9 * NS_PER_S);
	quick = connect_there();
	assert_true(send(quick, "GET /metrics", 12, 0) == 12);
	assert_status("GET /", "", 200);
	export_expire(server);
	assert_int_equal(poll(&(struct pollfd){.fd = slow, .events = POLLIN}, 1, 0), 0);
	test_now_pass(NS_PER_S + 1);
	export_expire(server);
	assert_true(is_over(slow));
	assert_int_equal(poll(&(struct pollfd){.fd = quick, .events = POLLIN}, 1, 0), 0);
	close(slow);
	close(quick);
}

static void the_oldest_of_many_connections_makes_room(void **state)
{
	int silent[100];

	serve();
	for (unsigned i = 0; i < 100; i++)
		silent[i] = connect_there();
	assert_status("GET /metrics", "", 200);
	for (unsigned i = 0; i < 100; i++)
		close(silent[i]);
}

/* ---- incidents on request */

static void allow(const char *folder)
{
	assert_int_equal(export_trigger_add(&config.triggers, folder), 0);
}

static void requests_are_off_by_default(void **state)
{
	serve();
	assert_status("POST /flight/incidents/trigger", "", 405);
	assert_string_equal(requested, "");
}

static void a_request_goes_to_its_folder(void **state)
{
	allow("/var/lib/a/");
	allow("other/b");
	serve();
	assert_status("POST /flight/b/trigger?comment=alert%201", "", 202);
	assert_string_equal(requested, "other/b: alert 1");
	assert_status("POST /flight/a/trigger", "", 202);
	assert_string_equal(requested, "/var/lib/a/: none");
}

static void other_urls_are_not_requests(void **state)
{
	allow("a");
	serve();
	assert_status("POST /flight/other/trigger", "", 404);
	assert_status("POST /flight/trigger", "", 404);
	assert_status("POST /flight/a/trigger/trigger", "", 404);
	assert_status("POST /flight/a/triggers", "", 404);
	assert_status("POST /flight//trigger", "", 404);
	assert_status("POST /metrics", "", 404);
	assert_status("GET /flight/a/trigger", "", 404);
	assert_status("PUT /flight/a/trigger", "", 405);
	assert_string_equal(requested, "");
}

static void requests_of_pages_and_proxies_are_refused(void **state)
{
	static const char *const headers[] = {"Origin: http://example.com\r\n",
		"Forwarded: for=192.0.2.1\r\n", "Via: 1.1 proxy\r\n",
		"X-Forwarded-For: 192.0.2.1\r\n", "Host: example.com\r\n"};

	allow("a");
	serve();
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		assert_status("POST /flight/a/trigger", headers[i], 403);
	assert_string_equal(requested, "");
}

static void pages_are_refused_from_any_client(void **state)
{
	allow("a");
	config.triggers.from_any = true;
	serve();
	assert_status("POST /flight/a/trigger", "Origin: http://example.com\r\n", 403);
	assert_status("POST /flight/a/trigger", "Via: 1.1 proxy\r\n", 202);
}

static void one_request_a_second(void **state)
{
	allow("a");
	allow("b");
	serve();
	assert_status("POST /flight/a/trigger", "", 202);
	assert_status("POST /flight/a/trigger", "", 429);
	assert_status("POST /flight/b/trigger", "", 202);
	test_now_pass(NS_PER_S - 1);
	assert_status("POST /flight/a/trigger", "", 429);
	test_now_pass(1);
	assert_status("POST /flight/a/trigger", "", 202);
}

static void requests_that_fail_are_not_counted(void **state)
{
	allow("a");
	request_result = -ESRCH;
	serve();
	assert_status("POST /flight/a/trigger", "", 503);
	request_result = -EPERM;
	assert_status("POST /flight/a/trigger", "", 500);
	request_result = 0;
	assert_status("POST /flight/a/trigger", "", 202);
}

static void bodies_are_read_up_to_a_limit(void **state)
{
	char *body = calloc(1, 1001), *text;

	allow("a");
	serve();
	memset(body, 'x', 1000);
	text = ask("POST /flight/a/trigger", "", body);
	assert_non_null(strstr(text, "HTTP/1.1 202"));
	free(text);
	free(body);
	*requested = '\0';
	send_raw("POST /flight/a/trigger HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
		 "1000000\r\n\r\n",
		strlen("POST /flight/a/trigger HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
		       "1000000\r\n\r\n"),
		1000000);
	assert_status("GET /", "", 200);
	assert_string_equal(requested, "");
}

/* ---- metrics */

/* Counters of all kinds. */
static void trouble(struct fake_app *a, uint64_t ns)
{
	struct fake_stats *s = &a->s;
	uint64_t readings = ns / FAKE_READING_NS;

	fake_forward(a, ns);
	s->ports[0].imissed = 50 * readings;
	s->ports[0].rx_nombuf = 25 * readings;
	s->ports[0].ierrors = 10 * readings;
	s->ports[1].oerrors = 4 * readings;
	s->threads[0].wait_ns = 100000000 * readings;
	s->threads[0].preempted = 7 * readings;
	s->threads[0].gaps_busy[20] = 3;
	s->threads[0].gaps_idle[7] = 9;
	s->threads[0].busy_periods = 12;
	s->threads[0].busy_period_packets[3] = 12;
}

static char *metrics(const char *accept)
{
	char headers[128], *text, *body;

	snprintf(headers, sizeof(headers), "Accept: %s\r\n", accept);
	text = ask("GET /metrics", headers, "");
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	body = strdup(strstr(text, "\r\n\r\n") + 4);
	free(text);
	return body;
}

/* After two seconds. */
static void assert_metrics(const char *accept, const char *file)
{
	char *text;

	app->work = trouble;
	serve();
	watch_step(&w);
	test_now_pass(2 * NS_PER_S);
	text = metrics(accept);
	test_golden_text(GOLDEN, file, text);
	free(text);
}

static void metrics_as_text(void **state)
{
	assert_metrics("text/plain", "metrics.txt");
}

static void metrics_as_openmetrics(void **state)
{
	assert_metrics("application/openmetrics-text", "openmetrics.txt");
}

static bool has(const char *line)
{
	char *text = metrics("text/plain");
	bool found = strstr(text, line);

	free(text);
	return found;
}

/* The kernel and the drivers are read for the first time after a second. */
static void unread(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	if (ns < NS_PER_S)
		a->s.threads[0].read_ns = a->s.ports[0].read_ns = a->s.ports[1].read_ns = 0;
}

static void unknown_values_are_absent(void **state)
{
	app->work = unread;
	serve();
	assert_true(has("ringtap_queue_packets_total"));
	assert_false(has("ringtap_thread_cpu_seconds_total{"));
	assert_false(has("ringtap_port_rx_packets_total{"));
	test_now_pass(NS_PER_S);
	assert_true(has("ringtap_thread_cpu_seconds_total{app=\"app\",thread=\"lcore 1\"} 1\n"));
	assert_true(has("ringtap_port_rx_packets_total{app=\"app\",port=\"p0\"} 1000000\n"));
}

static void counters_of_ports_that_come_back_go_on(void **state)
{
	serve();
	app->s.snapshot.port_count = 2;
	app->s.snapshot.queue_count = 2;
	test_now_pass(NS_PER_S);
	assert_true(has("ringtap_queue_packets_total{app=\"app\",port=\"p0\",queue=\"0\",direction="
			"\"rx\"} 1000000\n"));
	/* Another entry with its name. */
	strcpy(app->s.ports[1].name, "p0");
	app->s.ports[0].gone = true;
	app->s.queues[1].direction = RINGTAP_RX;
	test_now_pass(NS_PER_S);
	assert_true(has("ringtap_queue_packets_total{app=\"app\",port=\"p0\",queue=\"0\",direction="
			"\"rx\"} 4000000\n"));
}

static void an_application_that_ends_is_not_exported(void **state)
{
	serve();
	assert_true(has("ringtap_up{app=\"app\"} 1\n"));
	fake_app_end(app);
	assert_true(has("ringtap_up{app=\"app\"} 0\n"));
	assert_int_equal(watch_refresh(&w), 0);
	assert_false(has("app=\"app\""));
}

static void one_that_cannot_be_attached_to_is_down(void **state)
{
	app->error = -ETIMEDOUT;
	fake_app_add("other");
	serve();
	assert_true(has("ringtap_up{app=\"app\"} 0\n"));
	assert_true(has("ringtap_up{app=\"other\"} 1\n"));
	assert_false(has("{app=\"app\",port="));
}

static void the_number_of_samples_is_bounded(void **state)
{
	config.limits.of_app = 10;
	serve();
	assert_false(has("ringtap_samples_left_out{app=\"app\"} 0\n"));
	assert_true(has("ringtap_samples_left_out{app=\"app\"} "));
}

static void recorders_have_their_series(void **state)
{
	answers =
		"[{\"application\": {\"name\": \"app\"}, \"folder\": \"/var/lib/x\", \"kept_packets\": 12, "
		"\"kept_ns\": 2500000000, \"conditions\": [{\"condition\": \"gap > 50us\", "
		"\"incidents\": 3}, {\"condition\": \"gap > 50us\", \"incidents\": 4}]}, "
		"{\"application\": {\"name\": \"app\"}, \"folder\": \"/var/lib/x\", \"kept_packets\": 13}]";
	serve();
	/* The thread asks at once, while the server already answers. */
	while (!has("ringtap_flight_kept_packets{"))
		sched_yield();
	assert_true(has("ringtap_flight_kept_packets{app=\"app\",folder=\"/var/lib/x\"} 12\n"));
	assert_true(has("ringtap_flight_kept_seconds{app=\"app\",folder=\"/var/lib/x\"} 2.5\n"));
	assert_true(
		has("ringtap_flight_incidents_total{app=\"app\",folder=\"/var/lib/x\",condition="
		    "\"gap > 50us\"} 3\n"));
	/* Another recorder of one folder and the same condition again are the same series. */
	assert_false(has("folder=\"/var/lib/x\"} 13\n"));
	assert_false(has("condition=\"gap > 50us\"} 4\n"));
}

/* ---- starting */

static void an_address_in_use(void **state)
{
	struct test_output o;
	char args[64];

	serve();
	snprintf(args, sizeof(args), "--listen|127.0.0.1:%d", port);
	o = test_command(&cmd_export, args);
	assert_int_equal(o.status, STATUS_FAILED);
	assert_non_null(strstr(o.err,
		"another program listens there; end it, or choose another address or port\n"));
	test_output_free(&o);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_there_is),
		CASE(the_first_page_says_what_is_served),
		CASE(head_has_no_body),
		CASE(formats_by_what_is_accepted),
		CASE(names_of_other_hosts_are_refused),
		CASE(bytes_that_are_not_a_request),
		CASE(a_request_has_ten_seconds_as_a_whole),
		CASE(the_oldest_of_many_connections_makes_room),
		CASE(requests_are_off_by_default),
		CASE(a_request_goes_to_its_folder),
		CASE(other_urls_are_not_requests),
		CASE(requests_of_pages_and_proxies_are_refused),
		CASE(pages_are_refused_from_any_client),
		CASE(one_request_a_second),
		CASE(requests_that_fail_are_not_counted),
		CASE(bodies_are_read_up_to_a_limit),
		CASE(metrics_as_text),
		CASE(metrics_as_openmetrics),
		CASE(unknown_values_are_absent),
		CASE(counters_of_ports_that_come_back_go_on),
		CASE(an_application_that_ends_is_not_exported),
		CASE(one_that_cannot_be_attached_to_is_down),
		CASE(the_number_of_samples_is_bounded),
		CASE(recorders_have_their_series),
		CASE(an_address_in_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
