/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of ringtap web, for applications that are made up and with a clock that is set. */
#include <linux/filter.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "base/test_command.h"
#include "test_web.h"

/* ---- requests */

static void what_is_refused(void **state)
{
	static const struct {
		const char *what, *headers;
		int status;
	} rows[] = {{"GET /", "", 403}, {"GET /?token=", "", 403}, {"GET /?token=wrong", "", 403},
		{"GET /events", "", 403}, {"GET /events?token=wrong", "", 403},
		{"GET /nothing", "", 403}, {"GET /", "Cookie: ringtap-1=x\r\n", 403},
		{"GET /events", "Authorization: Bearer wrong\r\n", 403},
		{"GET /events", "Authorization: Basic eDp4\r\n", 403},
		{"POST /events", "Content-Length: 0\r\n", 405},
		{"PUT /", "Content-Length: 0\r\n", 405}, {"DELETE /", "", 405}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_status(rows[i].what, rows[i].headers, rows[i].status);
}

static void the_token_in_the_url_opens_the_page_only(void **state)
{
	char what[256];

	snprintf(what, sizeof(what), "GET /?token=%s", web.token.text);
	assert_status(what, "", 200);
	snprintf(what, sizeof(what), "GET /events?token=%s", web.token.text);
	assert_status(what, "", 403);
}

/* Standard output of a service is in the journal. */
static void the_token_of_a_file_is_not_printed(void **state)
{
	struct web_options o = {.token_file = "token",
		.serve = {.command = "web", .listen = "127.0.0.1:0"},
		.watch = {.command = "web"}};
	struct web other;
	char url[256], what[256];
	int number;

	test_folder_enter();
	assert_int_equal(web_start(&other, &o, url, sizeof(url)), 0);
	assert_null(strstr(url, other.token.text));
	assert_int_equal(sscanf(url, "http://127.0.0.1:%d/", &number), 1);
	web_stop(&other);
	test_folder_leave();
	snprintf(what, sizeof(what), "GET /?token=%s", other.token.text);
	assert_status(what, "", 403); /* the other server's */
}

static void the_cookie_stands_for_the_token(void **state)
{
	char what[256], cookie[256], *text;

	snprintf(what, sizeof(what), "GET /?token=%s", web.token.text);
	text = ask(what, "");
	snprintf(cookie, sizeof(cookie),
		"Set-Cookie: ringtap-%d=%s; HttpOnly; SameSite=Strict; Path=/\r\n", port,
		web.token.text);
	assert_non_null(strstr(text, cookie));
	assert_non_null(strstr(text, "Cache-Control: no-store\r\n"));
	assert_non_null(strstr(text, "Referrer-Policy: no-referrer\r\n"));
	assert_non_null(strstr(text, "frame-ancestors 'none'"));
	assert_non_null(strstr(text, "form-action 'none'; connect-src 'self'\">"));
	free(text);
	snprintf(cookie, sizeof(cookie), "Cookie: ringtap-%d=%s\r\n", port, web.token.text);
	assert_status("GET /", cookie, 200);
	assert_status("GET /nothing", cookie, 404);
}

static void a_wrong_host_is_refused_with_the_token(void **state)
{
	char headers[512];

	snprintf(headers, sizeof(headers), "Host: evil.example\r\n%s", shown);
	assert_status("GET /", headers, 403);
	assert_status("GET /events", headers, 403);
	snprintf(headers, sizeof(headers), "Host: 127.0.0.1:1\r\n%s", shown);
	assert_status("GET /", headers, 200);
}

static void long_names_are_refused(void **state)
{
	char what[12000];

	snprintf(what, sizeof(what), "GET /events?app=%0*d", 500, 0);
	assert_status(what, shown, 400);
	snprintf(what, sizeof(what), "GET /events?port=%0*d", 500, 0);
	assert_status(what, shown, 400);
	snprintf(what, sizeof(what), "GET /events?app=%0*d", 10000, 0);
	assert_status(what, shown, 414);
	assert_status("HEAD /", shown, 200);
}

/* ---- streams */

static double cell(const json_t *document, size_t column)
{
	const json_t *table = json_array_get(json_object_get(document, "panels"), 0);
	const json_t *row = json_array_get(json_object_get(table, "rows"), 0);

	return json_number_value(json_array_get(row, column));
}

static size_t rows_of(const json_t *document)
{
	const json_t *table = json_array_get(json_object_get(document, "panels"), 0);

	return json_array_size(json_object_get(table, "rows"));
}

static void nothing_is_done_without_clients(void **state)
{
	for (unsigned i = 0; i < 10; i++)
		second();
	assert_int_equal(web.apps.snapshots, 0);
	assert_int_equal(app->attempts, 0);
}

static void a_client_gets_the_document_and_updates(void **state)
{
	struct reader c = subscribe("", 0);
	json_t *j = next_event(&c, "document");

	assert_int_equal(rows_of(j), 0);
	json_decref(j);
	attached();
	skip_event(&c, "document"); /* collecting has begun */
	second();
	skip_event(&c, "update");
	second();
	j = next_event(&c, "update");
	assert_int_equal(rows_of(j), 1);
	assert_true(cell(j, 1) == 1e6);
	json_decref(j);
	unsubscribe(&c);
}

static void the_last_one_of_ten_minutes_gets_all_of_it(void **state)
{
	struct reader c = subscribe("", 0), later;
	json_t *j, *levels;

	skip_event(&c, "document");
	attached();
	for (unsigned i = 0; i < 30; i++)
		second();
	later = subscribe("", 0);
	j = next_event(&later, "document");
	levels = json_array_get(json_object_get(j, "panels"), 1);
	assert_string_equal(json_string_value(json_object_get(levels, "id")), "received");
	assert_int_equal(json_array_size(json_object_get(levels, "edges_ns")), 32);
	json_decref(j);
	second();
	j = next_event(&later, "update");
	levels = json_array_get(json_object_get(j, "panels"), 1);
	assert_int_equal(json_array_size(json_object_get(levels, "edges_ns")), 2);
	json_decref(j);
	unsubscribe(&later);
	unsubscribe(&c);
}

/* All are served by one snapshot a second, and by one text. */
static void twenty_clients_cost_what_one_costs(void **state)
{
	struct reader c[20];

	for (unsigned i = 0; i < 20; i++) {
		c[i] = subscribe("", 0);
		skip_event(&c[i], "document");
	}
	assert_int_equal(web.streams.made, 1);
	attached();
	for (unsigned i = 0; i < 20; i++)
		skip_event(&c[i], "document");
	assert_int_equal(web.streams.made, 2);
	for (unsigned n = 0; n < 5; n++) {
		second();
		for (unsigned i = 0; i < 20; i++)
			skip_event(&c[i], "update");
	}
	assert_int_equal(web.apps.snapshots, 6);
	assert_int_equal(web.streams.made, 7);
	for (unsigned i = 0; i < 20; i++)
		unsubscribe(&c[i]);
}

static void views_are_made_for_their_clients_only(void **state)
{
	struct reader all = subscribe("", 0), one = subscribe("?app=app", 0),
		      two = subscribe("?app=app&port=p0", 0);
	json_t *j;

	skip_event(&all, "document");
	skip_event(&one, "document");
	skip_event(&two, "document");
	assert_int_equal(web.streams.made, 3);
	attached();
	skip_event(&two, "document");
	second();
	skip_event(&two, "update");
	second();
	j = next_event(&two, "update");
	assert_string_equal(json_string_value(json_object_get(j, "title")), "app, p0 of host");
	json_decref(j);
	unsubscribe(&all);
	unsubscribe(&one);
	unsubscribe(&two);
}

static void too_many_clients_are_refused(void **state)
{
	struct reader c[STREAMS_MAX];
	struct reader after;

	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		c[i] = subscribe("", 0);
		skip_event(&c[i], "document");
	}
	assert_status("GET /events", shown, 503);
	assert_status("GET /", shown, 200);
	unsubscribe(&c[0]);
	attached();
	while (streams_count(&web.streams) == STREAMS_MAX) {
		second(); /* the server notices its end when it sends */
		sched_yield();
	}
	after = subscribe("", 0);
	skip_event(&after, "document");
	unsubscribe(&after);
	for (unsigned i = 1; i < STREAMS_MAX; i++)
		unsubscribe(&c[i]);
}

/* The steps of its first panel along the time. */
static size_t steps_of(const json_t *document)
{
	const json_t *panel;
	size_t i;

	json_array_foreach(json_object_get(document, "panels"), i, panel)
	{
		if (json_object_get(panel, "edges_ns"))
			return json_array_size(json_object_get(panel, "edges_ns"));
	}
	return 0;
}

/* It gets the document when it reads again, or has been ended by then: five seconds are real. */
static void a_slow_client_does_not_hold_the_others(void **state)
{
	struct reader quick = subscribe("?app=app", 0), slow = subscribe("?app=app", 1);
	bool again = false;
	json_t *j;

	skip_event(&quick, "document");
	skip_event(&slow, "document");
	attached();
	skip_event(&quick, "document");
	for (unsigned i = 0; i < 700; i++) {
		second();
		skip_event(&quick, "update");
	}
	while (!again && (j = next_event_or_end(&slow, NULL))) {
		again = steps_of(j) > 300;
		json_decref(j);
	}
	unsubscribe(&quick);
	unsubscribe(&slow);
}

/* Nothing that the server sends arrives, and no end of the connection: the host may have lost its
 * power. */
static void a_client_that_vanishes_is_ended(void **state)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog drop = {.len = 1, .filter = &nothing};
	struct reader c;

	assert_int_equal(web.serve.clients.vanished_ms, 20000);
	web.serve.clients.vanished_ms = 50;
	c = subscribe("", 0);
	skip_event(&c, "document");
	assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)), 0);
	while (streams_count(&web.streams)) {
		second();
		sched_yield();
	}
	unsubscribe(&c);
}

static void collecting_ends_some_minutes_after_the_last_client(void **state)
{
	struct reader c = subscribe("", 0);

	skip_event(&c, "document");
	attached();
	second();
	assert_int_equal(fake_monitors, 1);
	unsubscribe(&c);
	second();
	while (streams_count(&web.streams)) {
		second();
		sched_yield();
	}
	for (unsigned i = 0; web.watching; i++) {
		assert_true(i < 121);
		second();
	}
	assert_int_equal(fake_monitors, 0);
	assert_false(app->attached);
}

static void history_is_kept_without_clients_on_request(void **state)
{
	struct reader c;
	json_t *j;

	options.history_ns = 60 * NS_PER_S;
	attached();
	for (unsigned i = 0; i < 100; i++)
		second();
	c = subscribe("", 0);
	j = next_event(&c, "document");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "range"), "to_ns")),
		100 * NS_PER_S);
	assert_int_equal(rows_of(j), 1);
	json_decref(j);
	unsubscribe(&c);
}

static void an_application_that_ends_is_shown_as_gone(void **state)
{
	struct reader c = subscribe("?app=app", 0);
	const json_t *state_fact;
	json_t *j;

	skip_event(&c, "document");
	attached();
	skip_event(&c, "document");
	second();
	skip_event(&c, "update");
	fake_app_end(app);
	second();
	j = next_event(&c, "update");
	state_fact = json_array_get(json_object_get(j, "facts"), 3);
	assert_string_equal(json_string_value(json_object_get(state_fact, "value")),
		"the application has ended");
	json_decref(j);
	unsubscribe(&c);
}

/* Ended applications are shown for ten minutes where there is room only. */
static void ended_applications_make_room(void **state)
{
	struct reader c;

	while (web.apps.count < APPS_MAX) {
		struct app *a = web.apps.list[web.apps.count++] = calloc(1, sizeof(*a));

		a->state = APP_GONE;
		a->last = 1000;
		a->label = strdup("ended");
		a->name = strdup("ended");
		a->dir = strdup("ended");
	}
	c = subscribe("", 0);
	skip_event(&c, "document");
	attached();
	second();
	assert_non_null(apps_find(&web.apps, "app"));
	assert_int_equal(web.apps.count, APPS_MAX);
	assert_int_equal(web.apps.left_out, 0);
	unsubscribe(&c);
}

/* ---- an application */

static void losing(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.ports[0].imissed = 50 * (ns / FAKE_READING_NS);
}

static void the_way_of_packets(void **state)
{
	struct reader c = subscribe("?app=app", 0);
	const json_t *pipeline, *lost;
	json_t *j;

	app->work = losing;
	j = shown_later(&c);
	pipeline = panel_of(j, "pipeline");
	lost = json_array_get(json_object_get(box_at(pipeline, 0, "from p0"), "lost"), 0);
	assert_string_equal(json_string_value(json_object_get(lost, "name")), "missed");
	assert_true(json_number_value(json_object_get(lost, "rate")) == 100);
	assert_true(
		json_number_value(json_object_get(box_at(pipeline, 1, "rx p0, 0"), "rate")) == 1e6);
	box_at(pipeline, 2, "lcore 1");
	box_at(pipeline, 3, "to p1");
	box_at(pipeline, 4, "tx p1, 0");
	assert_int_equal(json_array_size(json_object_get(pipeline, "lines")), 4);
	json_decref(j);
	unsubscribe(&c);
}

static void a_port_has_its_own_queues(void **state)
{
	struct reader c = subscribe("?app=app&port=p1", 0);
	json_t *j = shown_later(&c);

	box_at(panel_of(j, "pipeline"), 0, "to p1");
	assert_int_equal(json_array_size(json_object_get(panel_of(j, "queues"), "rows")), 1);
	assert_int_equal(json_array_size(json_object_get(panel_of(j, "ports"), "rows")), 1);
	assert_null(panel_of(j, "threads"));
	json_decref(j);
	unsubscribe(&c);
}

static void gaps_are_shown_where_they_are_collected(void **state)
{
	struct reader c = subscribe("?app=app", 0);
	json_t *j;

	app->s.snapshot.collectors = RINGTAP_POLLS;
	j = shown_later(&c);
	assert_null(panel_of(j, "gaps"));
	json_decref(j);
	unsubscribe(&c);
}

static void with_gaps(void **state)
{
	struct reader c;
	const json_t *lane;
	json_t *j;

	app->s.snapshot.collectors = RINGTAP_POLLS | RINGTAP_GAPS;
	app->s.threads[0].gap_count = 1;
	app->s.gaps[0][0] =
		(struct ringtap_gap){.start_ns = TEST_NOW_REAL_NS + 10, .ns = 36000000, .port = 0};
	c = subscribe("?app=app", 0);
	j = shown_later(&c);
	lane = json_array_get(json_object_get(panel_of(j, "gaps"), "lanes"), 0);
	assert_string_equal(json_string_value(json_object_get(lane, "name")), "lcore 1");
	assert_int_equal(json_array_size(json_object_get(lane, "intervals")), 0);
	json_decref(j);
	unsubscribe(&c);
	c = subscribe("?app=app", 0);
	j = next_event(&c, "document");
	lane = json_array_get(json_object_get(panel_of(j, "gaps"), "lanes"), 0);
	assert_int_equal(json_array_size(json_object_get(lane, "intervals")), 1);
	json_decref(j);
	unsubscribe(&c);
}

static void rings_that_were_not_freed(void **state)
{
	struct reader c = subscribe("?app=app", 0);
	json_t *j = shown_later(&c);
	const json_t *row = row_of(j, "rings", "rx_to_worker");

	assert_int_equal(json_number_value(json_array_get(row, 3)), 1023);
	assert_int_equal(json_number_value(json_array_get(row, 4)), 256);
	assert_int_equal(json_array_size(json_object_get(panel_of(j, "ring-use"), "series")), 1);
	json_decref(j);
	app->s.rings[0].gone = true;
	second();
	j = next_event(&c, "update");
	assert_non_null(panel_of(j, "rings"));
	assert_null(row_of(j, "rings", "rx_to_worker"));
	json_decref(j);
	unsubscribe(&c);
}

static void counters_of_drivers_and_devices(void **state)
{
	struct reader c = subscribe("?app=app", 0);
	json_t *j = shown_later(&c);

	assert_null(panel_of(j, "xstats"));
	assert_null(panel_of(j, "devices"));
	json_decref(j);
	app->s.xstats[0] = (struct ringtap_xstat_stats){
		.name = "rx_crc", .port = 1, .value = UINT64_MAX, .read_ns = 1};
	app->s.xstats[1] = (struct ringtap_xstat_stats){.name = "tx_crc", .read_ns = 1};
	app->s.devices[0] = (struct ringtap_device_stat){.device = "event_sw",
		.name = "rx",
		.part = RINGTAP_PART_PORT,
		.number = 2,
		.value = 7,
		.read_ns = 1};
	app->s.snapshot.xstat_count = 2;
	app->s.snapshot.device_stat_count = 1;
	app->s.snapshot.collectors |= RINGTAP_XSTATS | RINGTAP_DEVICES;
	second();
	j = next_event(&c, "update");
	assert_float_equal(json_number_value(json_array_get(row_of(j, "xstats", "p1"), 2)),
		1.8446744e19, 1e13);
	assert_null(row_of(j, "xstats", "p0")); /* that of 0 */
	assert_float_equal(
		json_number_value(json_array_get(row_of(j, "devices", "event_sw port 2"), 2)), 7,
		0);
	json_decref(j);
	unsubscribe(&c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_refused),
		CASE(the_token_in_the_url_opens_the_page_only),
		CASE(the_cookie_stands_for_the_token),
		CASE(the_token_of_a_file_is_not_printed),
		CASE(a_wrong_host_is_refused_with_the_token),
		CASE(long_names_are_refused),
		CASE(nothing_is_done_without_clients),
		CASE(a_client_gets_the_document_and_updates),
		CASE(the_last_one_of_ten_minutes_gets_all_of_it),
		CASE(twenty_clients_cost_what_one_costs),
		CASE(views_are_made_for_their_clients_only),
		CASE(too_many_clients_are_refused),
		CASE(a_slow_client_does_not_hold_the_others),
		CASE(a_client_that_vanishes_is_ended),
		CASE(collecting_ends_some_minutes_after_the_last_client),
		CASE(history_is_kept_without_clients_on_request),
		CASE(an_application_that_ends_is_shown_as_gone),
		CASE(ended_applications_make_room),
		CASE(rings_that_were_not_freed),
		CASE(counters_of_drivers_and_devices),
		CASE(the_way_of_packets),
		CASE(a_port_has_its_own_queues),
		CASE(gaps_are_shown_where_they_are_collected),
		CASE(with_gaps),
	};

	static const struct test_refusal rows[] = {
		{"--listen|127.0.0.1:x", STATUS_USAGE,
			"web: --listen 127.0.0.1:x: 'x' is not a port"},
		{"--history|5s", STATUS_USAGE, "--history 5s"},
		{"--history|11m", STATUS_USAGE, "--history 11m"},
		{"--collectors|x", STATUS_USAGE,
			"web: --collectors 'x': there is no collector 'x'"},
		{"--host|", STATUS_USAGE, "web: --host '': no name"},
		{"--users|,", STATUS_USAGE, "web: --users ','"},
		{"--token-file|/nonexistent/token", STATUS_FAILED,
			"web: --token-file /nonexistent/token: No such file or directory; give a file"},
	};

	return cmocka_run_group_tests(tests, NULL, NULL) +
	       test_refusals(&cmd_web, rows, sizeof(rows) / sizeof(rows[0]));
}
