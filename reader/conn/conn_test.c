/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to an application: telemetry, greeting, lists; and all errors of these. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/atomics.h"
#include "common/ipc.h"
#include "conn.h"
#include "reader/find/telemetry.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define SHORT_MS 30

static char err[RT_TEXT_LEN];

/* Opens a connection to a peer with this behaviour. */
static int open_peer(struct test_peer *p, bool awake, struct ringtap_conn **conn)
{
	memset(err, 0, sizeof(err));
	test_peer_start(p, awake);
	return ringtap_conn_open(conn, p->dir, NULL, err, sizeof(err));
}

static void assert_fails(struct test_peer p, bool awake, int code, const char *text)
{
	struct ringtap_conn *conn = (void *)1;

	assert_int_equal(open_peer(&p, awake, &conn), code);
	test_peer_stop(&p);
	assert_null(conn);
	assert_non_null(strstr(err, text));
}

/* ---- telemetry ---- */

#define WOKEN "{\"/ringtap/attach\":{\"protocol\":4,\"status\":0,\"socket\":\"ringtap.sock\"}}"

/* busy: connections that are closed before one is served. */
static void assert_woken_after(uint32_t busy)
{
	struct test_peer p = {.telemetry = WOKEN, .telemetry_wakes = true, .telemetry_busy = busy};
	struct ringtap_conn *conn;

	assert_int_equal(open_peer(&p, false, &conn), 0);
	assert_int_equal(p.requests, busy + 1);
	ringtap_conn_close(conn);
	test_peer_stop(&p);
}

static void test_sleeping_probe_is_woken(void **state)
{
	assert_woken_after(0);
}

static void test_woken_probe_names_its_socket(void **state)
{
	struct test_peer p = {.telemetry = "{\"/ringtap/attach\":{\"protocol\":4,\"status\":0,"
					   "\"socket\":\"ringtap.sock:5\"}}",
		.telemetry_wakes = true,
		.socket = "ringtap.sock:5"};
	struct ringtap_conn *conn;

	assert_int_equal(open_peer(&p, false, &conn), 0);
	ringtap_conn_close(conn);
	test_peer_stop(&p);
}

static void test_socket_name_with_a_path_is_an_error(void **state)
{
	static const char *const names[] = {"\"../ringtap.sock\"", "\"/run/x\"", "\"\"", "3",
		"\"ringtap.sock:5x\"", "\"dpdk_telemetry.v2\"", "\"ringtap.sock:-1\""};
	char answer[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(answer, sizeof(answer),
			"{\"/ringtap/attach\":{\"protocol\":4,\"status\":0,\"socket\":%s}}",
			names[i]);
		assert_fails((struct test_peer){.telemetry = answer, .telemetry_wakes = true},
			false, -EPROTO, "sent an invalid answer");
	}
}

static void test_probe_that_is_awake_is_not_woken(void **state)
{
	struct test_peer p = {.telemetry = WOKEN};
	struct ringtap_conn *conn;

	assert_int_equal(open_peer(&p, true, &conn), 0);
	assert_int_equal(rt_load(&p.requests), 0);
	ringtap_conn_close(conn);
	test_peer_stop(&p);
}

static void test_woken_probe_without_a_socket_is_an_error(void **state)
{
	assert_fails((struct test_peer){.telemetry = WOKEN}, false, -ENOENT, "cannot connect to");
}

static void test_error_names_a_missing_probe(void **state)
{
	assert_fails((struct test_peer){.telemetry = "{\"/ringtap/attach\":null}"}, false,
		-EPROTONOSUPPORT, "without the ringtap probe");
}

static void test_probe_of_another_protocol_is_refused(void **state)
{
	assert_fails(
		(struct test_peer){
			.telemetry = "{\"/ringtap/attach\":{\"protocol\":5,\"status\":0}}"},
		false, -EPROTOTYPE, "version 5");
}

static void test_reason_of_a_failed_start_is_returned(void **state)
{
	assert_fails((struct test_peer){.telemetry = "{\"/ringtap/attach\":{\"protocol\":4,"
						     "\"status\":-12}}"},
		false, -ENOMEM, "cannot start: the application has no memory for it");
}

static void test_reason_of_the_probe_is_returned_without_escapes(void **state)
{
	assert_fails(
		(struct test_peer){.telemetry = "{\"/ringtap/attach\":{\"protocol\":4,"
						"\"status\":-95,\"reason\":\"max\\u001b[2J\"}}"},
		false, -ENOTSUP, "cannot start: max [2J");
}

/* It is detached, and its socket is still there when the reader connects. */
static bool detach(struct test_peer *p, int sock, uint16_t type)
{
	char path[sizeof(p->dir) + 32];

	snprintf(path, sizeof(path), "%s/" RT_SOCKET_NAME, p->dir);
	unlink(path);
	close(p->listener);
	p->listener = -1;
	return false;
}

static void test_probe_that_was_detached_just_now_is_named(void **state)
{
	assert_fails((struct test_peer){.telemetry = "{\"/ringtap/attach\":{\"protocol\":4,"
						     "\"status\":-49}}",
			     .answer = detach},
		true, -EUNATCH, "detached; 'ringtap attach' wakes it");
}

static void test_detached_probe_is_named(void **state)
{
	assert_fails((struct test_peer){.telemetry = "{\"/ringtap/attach\":{\"protocol\":4,"
						     "\"status\":-49}}"},
		false, -EUNATCH, "detached; 'ringtap attach' wakes it");
}

static void test_status_without_an_errno_is_an_error(void **state)
{
	static const char *const answers[] = {
		"{\"/ringtap/attach\":{\"protocol\":4,\"status\":5}}",
		"{\"/ringtap/attach\":{\"protocol\":4,\"status\":-5000000000}}",
		"{\"/ringtap/attach\":{\"protocol\":4,\"status\":9223372036854775807}}",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		assert_fails((struct test_peer){.telemetry = answers[i]}, false, -EPROTO,
			"cannot start");
}

static void test_invalid_telemetry_answers_are_errors(void **state)
{
	static const char *const answers[] = {"x", "[]", "3", "{}", "{\"/ringtap/attach\":[]}",
		"{\"/ringtap/attach\":{}}", "{\"/ringtap/attach\":{\"protocol\":\"1\"}}",
		"{\"/ringtap/attach\":{\"protocol\":4", "{\"/ringtap/attach\":7}", "\xff\xfe",
		"[[[[[["};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		assert_fails((struct test_peer){.telemetry = answers[i]}, false, -EPROTO,
			"sent an invalid answer");
}

static void test_telemetry_that_closes_does_not_block(void **state)
{
	assert_fails((struct test_peer){.telemetry = ""}, false, -ECONNRESET, "does not answer");
}

/* As DPDK does while it serves ten clients. */
static void test_probe_that_sleeps_may_be_left_asleep(void **state)
{
	const struct ringtap_conn_options opts = {.size = sizeof(opts), .awake_only = 1};
	struct test_peer p = {.telemetry = WOKEN, .telemetry_wakes = true};
	struct ringtap_conn *conn;

	test_peer_start(&p, false);
	assert_int_equal(ringtap_conn_open(&conn, p.dir, &opts, NULL, 0), -EPROTONOSUPPORT);
	test_peer_stop(&p);
	assert_int_equal(p.requests, 0);
}

static void test_telemetry_with_too_many_clients_is_asked_again(void **state)
{
	assert_woken_after(3);
}

static void test_telemetry_that_always_has_too_many_clients_is_an_error(void **state)
{
	int saved = rt_reader_limits.telemetry_ms;

	rt_reader_limits.telemetry_ms = SHORT_MS;
	assert_fails((struct test_peer){.telemetry = WOKEN, .telemetry_busy = UINT32_MAX}, false,
		-EBUSY, "ten clients");
	rt_reader_limits.telemetry_ms = saved;
}

static void test_endless_telemetry_answer_is_an_error(void **state)
{
	static char huge[40000];

	memset(huge, ' ', sizeof(huge) - 1);
	assert_fails((struct test_peer){.telemetry = huge}, false, -EPROTO, "invalid answer");
}

static void test_silent_telemetry_times_out(void **state)
{
	int saved = rt_reader_limits.telemetry_ms;

	rt_reader_limits.telemetry_ms = SHORT_MS;
	assert_fails((struct test_peer){.telemetry = "", .telemetry_silent = true}, false,
		-ETIMEDOUT, "does not answer");
	rt_reader_limits.telemetry_ms = saved;
}

/* ---- greeting ---- */

static bool hang_up(struct test_peer *p, int sock, uint16_t type)
{
	return false;
}

/* As a probe that goes to sleep just then. */
static bool hang_up_first(struct test_peer *p, int sock, uint16_t type)
{
	return rt_fetch_add(&p->requests, 1) && test_peer_answer(p, sock, type);
}

static bool send_nothing(struct test_peer *p, int sock, uint16_t type)
{
	return true;
}

static bool send_started(struct test_peer *p, int sock, uint16_t type)
{
	test_peer_send(sock, RT_MSG_STARTED, NULL, 0);
	return true;
}

static bool send_short_welcome(struct test_peer *p, int sock, uint16_t type)
{
	test_peer_send(sock, RT_MSG_WELCOME, NULL, 0);
	return true;
}

static bool send_garbage(struct test_peer *p, int sock, uint16_t type)
{
	assert_int_equal(send(sock, "garbage garbage garbage", 23, MSG_NOSIGNAL), 23);
	return true;
}

static bool send_other_version(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_header h;

	rt_msg_init(&h, RT_MSG_WELCOME, sizeof(h));
	h.version = RT_PROTO_VERSION + 1;
	return rt_msg_send(sock, &h, NULL, 0) == 0;
}

static bool send_error(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -EBUSY};

	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	memset(m.text, 'A', sizeof(m.text)); /* not terminated */
	m.text[1] = '\n';
	m.text[2] = '\033';
	return rt_msg_send(sock, &m.h, NULL, 0) == 0;
}

static bool send_positive_error(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = 17, .text = "seventeen"};

	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	return rt_msg_send(sock, &m.h, NULL, 0) == 0;
}

static bool send_short_error(struct test_peer *p, int sock, uint16_t type)
{
	test_peer_send(sock, RT_MSG_ERROR, NULL, 0);
	return true;
}

static bool send_unterminated_names(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_welcome w;

	memset(&w, 'B', sizeof(w));
	rt_msg_init(&w.h, RT_MSG_WELCOME, sizeof(w));
	return rt_msg_send(sock, &w.h, NULL, 0) == 0;
}

static void test_probe_that_closes_does_not_block(void **state)
{
	assert_fails((struct test_peer){.answer = hang_up}, true, -ECONNRESET, "went away");
}

static void test_probe_that_goes_to_sleep_is_tried_again(void **state)
{
	struct test_peer p = {.answer = hang_up_first};
	struct ringtap_conn *conn;

	assert_int_equal(open_peer(&p, true, &conn), 0);
	ringtap_conn_close(conn);
	test_peer_stop(&p);
}

static void test_silent_probe_times_out(void **state)
{
	int saved = rt_reader_limits.answer_ms;

	rt_reader_limits.answer_ms = SHORT_MS;
	assert_fails(
		(struct test_peer){.answer = send_nothing}, true, -ETIMEDOUT, "does not answer");
	rt_reader_limits.answer_ms = saved;
}

static void test_unexpected_answers_are_errors(void **state)
{
	static const test_answer_fn answers[] = {
		send_started, send_short_welcome, send_garbage, send_short_error};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		assert_fails(
			(struct test_peer){.answer = answers[i]}, true, -EPROTO, "invalid answer");
}

static void test_probe_of_another_version_is_refused(void **state)
{
	assert_fails((struct test_peer){.answer = send_other_version}, true, -EPROTOTYPE,
		"different versions");
}

static void test_control_characters_in_errors_are_replaced(void **state)
{
	assert_fails((struct test_peer){.answer = send_error}, true, -EBUSY, "A  AAA");
}

static void test_error_codes_are_always_negative(void **state)
{
	assert_fails((struct test_peer){.answer = send_positive_error}, true, -EPROTO, "seventeen");
}

static void test_names_are_always_terminated(void **state)
{
	struct test_peer p = {.answer = send_unterminated_names};
	struct ringtap_app_info info = {.size = sizeof(info)};
	struct ringtap_conn *conn;

	assert_int_equal(open_peer(&p, true, &conn), 0);
	ringtap_conn_app(conn, &info);
	assert_int_equal(strlen(info.prefix), RINGTAP_NAME_LEN - 1);
	assert_int_equal(strlen(info.program), RINGTAP_NAME_LEN - 1);
	assert_int_equal(strlen(info.dpdk), RINGTAP_NAME_LEN - 1);
	assert_int_equal(strlen(info.probe), RINGTAP_NAME_LEN - 1);
	ringtap_conn_close(conn);
	test_peer_stop(&p);
}

static void test_structures_are_filled_up_to_their_size(void **state)
{
	struct test_peer p = {0};
	struct ringtap_app_info info;
	struct ringtap_conn *conn;

	assert_int_equal(open_peer(&p, true, &conn), 0);
	memset(&info, 0x55, sizeof(info));
	info.size = offsetof(struct ringtap_app_info, program);
	ringtap_conn_app(conn, &info);
	assert_int_equal(info.pid, 77);
	assert_string_equal(info.prefix, "test");
	assert_int_equal(info.program[0], 0x55);
	assert_int_equal(info.size, offsetof(struct ringtap_app_info, program));
	ringtap_conn_close(conn);
	test_peer_stop(&p);
}

static void test_missing_application_is_enoent(void **state)
{
	struct ringtap_conn *conn;

	assert_int_equal(
		ringtap_conn_open(&conn, "/nonexistent/app", NULL, err, sizeof(err)), -ENOENT);
	assert_null(conn);
	assert_non_null(strstr(err, "/nonexistent/app"));
}

static void test_folder_name_too_long_for_a_socket_is_an_error(void **state)
{
	struct ringtap_conn *conn;
	char dir[300];

	memset(dir, 'd', sizeof(dir));
	dir[0] = '/';
	dir[sizeof(dir) - 1] = 0;
	assert_int_equal(ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)), -ENAMETOOLONG);
}

/* ---- listing ---- */

static bool list_two_ports(struct test_peer *p, int sock, uint16_t type)
{
	struct {
		struct rt_msg_header h;
		struct rt_msg_port port[2];
	} ports = {.port = {{.name = "net_a",
				    .driver = "x",
				    .port_id = 4,
				    .mtu = 1500,
				    .nb_rx_queues = 3},
			   {.port_id = 5}}};
	struct {
		struct rt_msg_header h;
		uint32_t reserved;
		struct rt_msg_session session;
	} sessions = {.session = {.id = 9, .reader_pid = 8, .buffer_size = 1u << 20}};

	if (type != RT_MSG_LIST)
		return test_peer_answer(p, sock, type);
	memset(ports.port[1].name, 'N', sizeof(ports.port[1].name));
	memset(sessions.session.reader, 'R', sizeof(sessions.session.reader));
	rt_msg_init(&ports.h, RT_MSG_PORTS, sizeof(ports));
	rt_msg_send(sock, &ports.h, NULL, 0);
	rt_msg_init(&sessions.h, RT_MSG_SESSIONS,
		(uint32_t)(offsetof(__typeof__(sessions), session) + sizeof(sessions.session)));
	rt_msg_send(sock, &sessions.h, NULL, 0);
	return true;
}

static bool list_nothing(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_LIST)
		return test_peer_answer(p, sock, type);
	/* Bodies that are too short. */
	test_peer_send(sock, RT_MSG_PORTS, NULL, 0);
	test_peer_send(sock, RT_MSG_SESSIONS, NULL, 0);
	return true;
}

static bool list_half(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_LIST)
		return test_peer_answer(p, sock, type);
	test_peer_send(sock, RT_MSG_PORTS, NULL, 0);
	return false;
}

static int list(test_answer_fn answer, struct ringtap_list **out)
{
	struct test_peer p = {.answer = answer};
	struct ringtap_conn *conn;
	int ret;

	assert_int_equal(open_peer(&p, true, &conn), 0);
	ret = ringtap_conn_list(conn, out);
	ringtap_conn_close(conn);
	test_peer_stop(&p);
	return ret;
}

static void test_ports_and_sessions_are_listed(void **state)
{
	struct ringtap_list *l;

	assert_int_equal(list(list_two_ports, &l), 0);
	assert_int_equal(l->port_count, 2);
	assert_string_equal(ringtap_list_port(l, 0)->name, "net_a");
	assert_int_equal(ringtap_list_port(l, 0)->port_id, 4);
	assert_int_equal(ringtap_list_port(l, 0)->mtu, 1500);
	assert_int_equal(ringtap_list_port(l, 0)->rx_queues, 3);
	assert_int_equal(strlen(ringtap_list_port(l, 1)->name), RINGTAP_NAME_LEN - 1);
	assert_int_equal(l->session_count, 1);
	assert_int_equal(ringtap_list_session(l, 0)->id, 9);
	assert_int_equal(ringtap_list_session(l, 0)->buffer_size, 1u << 20);
	assert_int_equal(strlen(ringtap_list_session(l, 0)->reader), RINGTAP_NAME_LEN - 1);
	ringtap_list_free(l);
}

static void test_empty_lists_are_no_errors(void **state)
{
	struct ringtap_list *l;

	assert_int_equal(list(list_nothing, &l), 0);
	assert_int_equal(l->port_count, 0);
	assert_int_equal(l->session_count, 0);
	ringtap_list_free(l);
}

static void test_incomplete_list_is_an_error(void **state)
{
	struct ringtap_list *l;

	assert_int_equal(list(list_half, &l), -ECONNRESET);
	assert_null(l);
}

static void assert_copied(const char *from, const char *expected)
{
	char out[32], src[32] = "";

	memcpy(src, from, strlen(from));
	rt_copy_text(out, src, sizeof(out));
	assert_string_equal(out, expected);
}

static void test_control_characters_in_names_are_replaced(void **state)
{
	char cut[4];

	assert_copied("eth0", "eth0");
	assert_copied("a\x1b[2J\x7f\n", "a?[2J??");
	assert_copied("Stra\xc3\x9f"
		      "e \xe2\x82\xac \xf0\x9f\x98\x80",
		"Stra\xc3\x9f"
		"e \xe2\x82\xac \xf0\x9f\x98\x80");
	/* C1, in UTF-8 and as single bytes; invalid UTF-8; surrogates; overlong encodings. */
	assert_copied("x\xc2\x9b"
		      "2J",
		"x??2J");
	assert_copied("x\x9b"
		      "2J\xff",
		"x?2J?");
	assert_copied("\xed\xa0\x80 \xc0\xaf \xe0\x80\xaf", "??? ?? ???");
	assert_copied("half \xe2\x82", "half ??");
	rt_copy_text(cut, "ab\xc3\x9f", sizeof(cut));
	assert_string_equal(cut, "ab?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeping_probe_is_woken),
		cmocka_unit_test(test_woken_probe_names_its_socket),
		cmocka_unit_test(test_socket_name_with_a_path_is_an_error),
		cmocka_unit_test(test_probe_that_is_awake_is_not_woken),
		cmocka_unit_test(test_woken_probe_without_a_socket_is_an_error),
		cmocka_unit_test(test_error_names_a_missing_probe),
		cmocka_unit_test(test_probe_of_another_protocol_is_refused),
		cmocka_unit_test(test_reason_of_a_failed_start_is_returned),
		cmocka_unit_test(test_reason_of_the_probe_is_returned_without_escapes),
		cmocka_unit_test(test_detached_probe_is_named),
		cmocka_unit_test(test_probe_that_was_detached_just_now_is_named),
		cmocka_unit_test(test_status_without_an_errno_is_an_error),
		cmocka_unit_test(test_invalid_telemetry_answers_are_errors),
		cmocka_unit_test(test_telemetry_that_closes_does_not_block),
		cmocka_unit_test(test_probe_that_sleeps_may_be_left_asleep),
		cmocka_unit_test(test_telemetry_with_too_many_clients_is_asked_again),
		cmocka_unit_test(test_telemetry_that_always_has_too_many_clients_is_an_error),
		cmocka_unit_test(test_endless_telemetry_answer_is_an_error),
		cmocka_unit_test(test_silent_telemetry_times_out),
		cmocka_unit_test(test_probe_that_closes_does_not_block),
		cmocka_unit_test(test_probe_that_goes_to_sleep_is_tried_again),
		cmocka_unit_test(test_silent_probe_times_out),
		cmocka_unit_test(test_unexpected_answers_are_errors),
		cmocka_unit_test(test_probe_of_another_version_is_refused),
		cmocka_unit_test(test_control_characters_in_errors_are_replaced),
		cmocka_unit_test(test_error_codes_are_always_negative),
		cmocka_unit_test(test_names_are_always_terminated),
		cmocka_unit_test(test_control_characters_in_names_are_replaced),
		cmocka_unit_test(test_structures_are_filled_up_to_their_size),
		cmocka_unit_test(test_missing_application_is_enoent),
		cmocka_unit_test(test_folder_name_too_long_for_a_socket_is_an_error),
		cmocka_unit_test(test_ports_and_sessions_are_listed),
		cmocka_unit_test(test_empty_lists_are_no_errors),
		cmocka_unit_test(test_incomplete_list_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
