/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of programs of another version, and invalid ones: sizes, values, times, NULL. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/ipc.h"
#include "capture.h"
#include "ringtap/monitor.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define LIMIT_MS 40

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static char err[RT_TEXT_LEN];

static int set_up(void **state)
{
	test_session_make(&session, 1, TEST_RING);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	return ringtap_capture_create(&cap, NULL);
}

static int tear_down(void **state)
{
	ringtap_capture_close(cap);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

static int open_conn(const struct ringtap_conn_options *o)
{
	struct ringtap_conn *conn;
	int ret = ringtap_conn_open(&conn, peer.dir, o, err, sizeof(err));

	ringtap_conn_close(conn);
	return ret;
}

static int open_monitor(const struct ringtap_monitor_options *o)
{
	struct ringtap_monitor *mon;
	int ret = ringtap_monitor_open(&mon, peer.dir, o, err, sizeof(err));

	ringtap_monitor_close(mon);
	return ret;
}

static int attach(const struct ringtap_capture_options *o)
{
	return ringtap_capture_attach(cap, peer.dir, &all, 1, o);
}

/* ---- sizes ---- */

/* Options of a later version, which has more bytes. */
union later {
	struct ringtap_conn_options conn;
	struct ringtap_capture_options capture;
	struct ringtap_monitor_options monitor;
	struct ringtap_target target;
	uint8_t bytes[8192];
};

static void test_options_shorter_than_the_first_version_are_refused(void **state)
{
	struct ringtap_conn_options conn = {0};
	struct ringtap_capture_options capture = {0};
	struct ringtap_monitor_options monitor = {0};

	for (size_t size = 0; size < sizeof(size); size++) {
		conn.size = capture.size = monitor.size = size;
		assert_int_equal(open_conn(&conn), -EINVAL);
		assert_int_equal(attach(&capture), -EINVAL);
		assert_int_equal(open_monitor(&monitor), -EINVAL);
	}
	conn.size = offsetof(struct ringtap_conn_options, timeout_ms) + 3;
	capture.size = offsetof(struct ringtap_capture_options, timeout_ms) + 3;
	monitor.size = offsetof(struct ringtap_monitor_options, timeout_ms) + 3;
	assert_int_equal(open_conn(&conn), -EINVAL);
	assert_int_equal(attach(&capture), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "size"));
	assert_int_equal(open_monitor(&monitor), -EINVAL);
	assert_non_null(strstr(err, "size"));
}

static void test_later_options_that_are_zero_are_accepted(void **state)
{
	union later o = {.conn = {.size = sizeof(o.conn) + 64}};

	assert_int_equal(open_conn(&o.conn), 0);
	o.capture = (struct ringtap_capture_options){.size = sizeof(o.capture) + 64};
	assert_int_equal(attach(&o.capture), 0);
}

static void test_later_options_that_are_set_are_refused(void **state)
{
	union later o = {.conn = {.size = sizeof(o.conn) + 64}};

	o.bytes[sizeof(o.conn) + 63] = 1;
	assert_int_equal(open_conn(&o.conn), -E2BIG);
	assert_non_null(strstr(err, "later version"));
	o = (union later){.capture = {.size = sizeof(o.capture) + 64}};
	o.bytes[sizeof(o.capture)] = 1;
	assert_int_equal(attach(&o.capture), -E2BIG);
	o = (union later){.monitor = {.size = sizeof(o.monitor) + 64}};
	o.bytes[sizeof(o.monitor)] = 1;
	assert_int_equal(open_monitor(&o.monitor), -E2BIG);
}

static void test_options_of_ringtap_capture_create(void **state)
{
	struct {
		struct ringtap_capture_create_options o;
		uint64_t later;
	} o = {.o = {.size = sizeof(o)}};
	struct ringtap_capture *other = cap;

	assert_int_equal(ringtap_capture_create(&other, &o.o), 0);
	ringtap_capture_close(other);
	o.later = 1;
	assert_int_equal(ringtap_capture_create(&other, &o.o), -E2BIG);
	assert_null(other);
	o.o.size = 0;
	assert_int_equal(ringtap_capture_create(&other, &o.o), -EINVAL);
}

/* An uninitialized size: nothing beyond the structure may be read. */
static void test_impossible_sizes_are_refused(void **state)
{
	struct ringtap_conn_options conn = {.size = SIZE_MAX};

	assert_int_equal(open_conn(&conn), -E2BIG);
	assert_int_equal(
		ringtap_capture_attach_sized(cap, peer.dir, &all, SIZE_MAX, 1, NULL), -E2BIG);
}

static int attach_target(const union later *targets, size_t size)
{
	return ringtap_capture_attach_sized(cap, peer.dir, &targets->target, size, 1, NULL);
}

static void test_targets_of_other_versions(void **state)
{
	union later t = {.target = all};

	assert_int_equal(attach_target(&t, 0), -EINVAL);
	assert_int_equal(
		attach_target(&t, offsetof(struct ringtap_target, filter_len) + 3), -EINVAL);
	assert_int_equal(attach_target(&t, sizeof(t.target) + 8), 0);
	t.bytes[sizeof(t.target) + 7] = 1;
	assert_int_equal(attach_target(&t, sizeof(t.target) + 8), -E2BIG);
}

static void test_structures_without_a_size_are_not_filled(void **state)
{
	struct ringtap_interface interface = {0};
	struct ringtap_tap tap = {0};
	struct ringtap_ring ring = {0};
	struct ringtap_stats stats = {0};
	struct ringtap_app_info app = {0};
	struct ringtap_conn *conn;

	assert_int_equal(attach(NULL), 0);
	assert_int_equal(ringtap_capture_interface(cap, 0, &interface), -EINVAL);
	assert_int_equal(ringtap_capture_tap(cap, 0, &tap), -EINVAL);
	assert_int_equal(ringtap_capture_ring(cap, 0, &ring), -EINVAL);
	assert_int_equal(ringtap_capture_stats(cap, &stats), -EINVAL);
	assert_int_equal(ringtap_conn_open(&conn, peer.dir, NULL, err, sizeof(err)), 0);
	assert_int_equal(ringtap_conn_app(conn, &app), -EINVAL);
	ringtap_conn_close(conn);
}

static void test_runs_shorter_than_the_first_version_are_refused(void **state)
{
	struct ringtap_run run;

	assert_int_equal(attach(NULL), 0);
	assert_int_equal(ringtap_capture_next_sized(cap, &run, 0, 1, 0), -EINVAL);
	assert_int_equal(ringtap_capture_next_sized(
				 cap, &run, offsetof(struct ringtap_run, interface_count), 1, 0),
		-EINVAL);
}

/* ---- values ---- */

static void test_unknown_values_are_refused(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o)};

	o.on_full = (enum ringtap_on_full)(RINGTAP_WAIT + 1);
	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "on_full"));
	o.on_full = RINGTAP_WAIT;
	o.timestamp = (enum ringtap_timestamp)(RINGTAP_NIC + 1);
	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "timestamp"));
	o.timestamp = RINGTAP_NIC;
	o.ids = (enum ringtap_ids)(RINGTAP_IDS_INFERRED + 1);
	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "ids"));
	o.ids = RINGTAP_IDS_INFERRED;
	assert_int_equal(attach(&o), 0);
}

/* It knows no message of this type, and would not look at ids in the other. */
static bool answer_as_before_ids(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -EPROTO, .text = "unknown message"};

	if (type != RT_MSG_OPEN_IDS)
		return test_peer_answer(p, sock, type);
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_msg_send(sock, &m.h, NULL, 0);
	return false;
}

static void test_ids_of_an_earlier_probe_are_refused(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o), .ids = RINGTAP_IDS};

	peer.answer = answer_as_before_ids;
	assert_int_equal(attach(&o), -ENOTSUP);
	assert_non_null(strstr(ringtap_capture_error(cap), "older than packet ids"));
	o.ids = RINGTAP_NO_IDS;
	assert_int_equal(attach(&o), 0);
}

static void test_samples_that_are_no_power_of_two_are_refused(void **state)
{
	static const uint32_t bad[] = {3, 1000, 16777217, 1u << 25};
	struct ringtap_capture_options o = {.size = sizeof(o)};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.sample = bad[i];
		assert_int_equal(attach(&o), -EINVAL);
		assert_non_null(strstr(ringtap_capture_error(cap), "sample"));
	}
	o.sample = 2;
	o.fates = true;
	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "leave out the sample"));
}

/* All processes of an application choose the same ids. */
static void test_a_sample_is_requested_with_the_secret_of_the_capture(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o), .sample = 1};
	struct rt_msg_sample first;

	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.open.flags & RT_OPEN_SAMPLE, 0);
	o.sample = 1024;
	assert_int_equal(attach(&o), 0);
	first = peer.sample;
	assert_int_equal(first.every, 1024);
	assert_int_not_equal(first.secret[0], first.secret[1]);
	o.sample = 16777216;
	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.sample.every, 16777216);
	assert_memory_equal(peer.sample.secret, first.secret, sizeof(first.secret));
}

static void test_a_sample_of_an_earlier_probe_is_refused(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o), .sample = 2};

	peer.unknown = RT_OPEN_SAMPLE;
	assert_int_equal(attach(&o), -ENOTSUP);
	assert_non_null(strstr(ringtap_capture_error(cap), "older than sampling"));
	o.sample = 0;
	assert_int_equal(attach(&o), 0);
}

static void test_metadata_and_lengths_are_requested(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o)};

	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.open.flags & (RT_OPEN_MBUFS | RT_OPEN_LENGTHS), 0);
	o.mbufs = true;
	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.open.flags & (RT_OPEN_MBUFS | RT_OPEN_LENGTHS), RT_OPEN_MBUFS);
	o.lengths = true;
	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.open.flags & (RT_OPEN_MBUFS | RT_OPEN_LENGTHS),
		RT_OPEN_MBUFS | RT_OPEN_LENGTHS);
	o.fates = true;
	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "leave these out"));
}

static void test_metadata_and_lengths_of_an_earlier_probe_are_refused(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o), .lengths = true};

	peer.unknown = RT_OPEN_MBUFS | RT_OPEN_LENGTHS;
	assert_int_equal(attach(&o), -ENOTSUP);
	assert_non_null(strstr(ringtap_capture_error(cap), "older than lengths"));
	o.mbufs = true;
	assert_int_equal(attach(&o), -ENOTSUP);
	assert_non_null(strstr(ringtap_capture_error(cap), "older than metadata"));
}

/* The counter has the place of one of fates. */
static void test_packets_not_sampled_count_in_a_sample_only(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o)};
	struct ringtap_stats s = {.size = sizeof(s)};
	struct ringtap_interface f = {.size = sizeof(f)};

	for (o.sample = 1; o.sample <= 8; o.sample += 7) {
		assert_int_equal(attach(&o), 0);
		session.counts[0] =
			(struct rt_seg_count){.seen = 9, .captured = 2, .not_sampled = 7};
		session.h->used[0] = 1;
		session.h->tap_count = 1;
		assert_int_equal(ringtap_capture_stats(cap, &s), 0);
		assert_int_equal(s.total.not_sampled, o.sample > 1 ? 7 : 0);
		assert_int_equal(ringtap_capture_interface(cap, 0, &f), 0);
		assert_int_equal(f.sample, o.sample);
		ringtap_capture_close(cap);
		assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	}
}

static void test_limits_of_flows_are_requested(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o), .sample = 8};

	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.open.flags & RT_OPEN_FIRST, 0);
	o.first = 100;
	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.sample.every, 8);
	assert_int_equal(peer.first_of.limit, 100);
	assert_int_equal(peer.first_of.packets | peer.first_of.inner, 0);
	assert_int_equal(1 << peer.first_of.bits, 16384);
	o = (struct ringtap_capture_options){.size = sizeof(o),
		.first = RT_FIRST_MAX,
		.first_packets = true,
		.first_inner = true,
		.first_flows = 256};
	assert_int_equal(attach(&o), 0);
	assert_int_equal(peer.first_of.limit, RT_FIRST_MAX);
	assert_int_equal(peer.first_of.packets & peer.first_of.inner, 1);
	assert_int_equal(1 << peer.first_of.bits, 256);
}

static void test_limits_of_flows_are_refused(void **state)
{
	static const uint32_t bad[] = {1, 128, 300, 131072};
	struct ringtap_capture_options o = {.size = sizeof(o), .first = RT_FIRST_MAX + 1};

	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "first is above"));
	o.first = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.first_flows = bad[i];
		assert_int_equal(attach(&o), -EINVAL);
		assert_non_null(strstr(ringtap_capture_error(cap), "first_flows"));
	}
	o.first_flows = 0;
	o.fates = true;
	assert_int_equal(attach(&o), -EINVAL);
	assert_non_null(strstr(ringtap_capture_error(cap), "leave out the limit of flows"));
	o.fates = false;
	peer.unknown = RT_OPEN_FIRST;
	assert_int_equal(attach(&o), -ENOTSUP);
	assert_non_null(strstr(ringtap_capture_error(cap), "older than limits of flows"));
}

/* The counters have the places of those of fates. */
static void test_packets_are_cut_by_a_limit_only(void **state)
{
	struct ringtap_capture_options o = {.size = sizeof(o)};
	struct ringtap_stats s = {.size = sizeof(s)};

	for (o.first = 0; o.first <= 8; o.first += 8) {
		assert_int_equal(attach(&o), 0);
		session.counts[0] =
			(struct rt_seg_count){.seen = 9, .captured = 2, .cut = 7, .evicted = 3};
		session.h->used[0] = 1;
		session.h->tap_count = 1;
		assert_int_equal(ringtap_capture_stats(cap, &s), 0);
		assert_int_equal(s.total.cut, o.first ? 7 : 0);
		assert_int_equal(s.total.evicted, o.first ? 3 : 0);
		ringtap_capture_close(cap);
		assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	}
}

static void test_unknown_directions_are_refused(void **state)
{
	static const unsigned bad[] = {0, 4, RINGTAP_RX | 4, 1u << 31 | RINGTAP_TX};
	struct ringtap_target targets[2] = {all, all};

	/* The peer takes what comes: the library has to refuse. */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		targets[1].directions = bad[i];
		assert_int_equal(ringtap_capture_attach(cap, peer.dir, targets, 2, NULL), -EINVAL);
		assert_non_null(strstr(ringtap_capture_error(cap), "directions"));
	}
	targets[1].directions = RINGTAP_TX;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, targets, 2, NULL), 0);
}

static void test_negative_timeouts_are_refused(void **state)
{
	const struct ringtap_conn_options conn = {.size = sizeof(conn), .timeout_ms = -1};
	const struct ringtap_capture_options capture = {.size = sizeof(capture), .timeout_ms = -1};
	const struct ringtap_monitor_options monitor = {.size = sizeof(monitor), .timeout_ms = -1};
	char *answer;

	assert_int_equal(open_conn(&conn), -EINVAL);
	assert_non_null(strstr(err, "timeout"));
	assert_int_equal(attach(&capture), -EINVAL);
	assert_int_equal(open_monitor(&monitor), -EINVAL);
	assert_int_equal(ringtap_telemetry(peer.dir, "/", -1, &answer, NULL), -EINVAL);
	assert_null(answer);
}

static void test_reasons_of_loss_have_names(void **state)
{
	unsigned count = 0;

	while (ringtap_loss_name(count))
		assert_true(*ringtap_loss_name(count++));
	assert_int_equal(count, RT_LOSS_COUNT);
	assert_string_equal(ringtap_loss_name(RINGTAP_LOST_BAD), "bad_mbuf");
	assert_null(ringtap_loss_name(RINGTAP_LOST_MAX));
	assert_null(ringtap_loss_name(UINT_MAX));
}

/* ---- times ---- */

static bool answers_the_start_only(struct test_peer *p, int sock, uint16_t type)
{
	return type == RT_MSG_FILTER || type == RT_MSG_STOP || test_peer_answer(p, sock, type);
}

static void start_with_a_limit(void)
{
	const struct ringtap_capture_options o = {.size = sizeof(o), .timeout_ms = LIMIT_MS};

	peer.answer = answers_the_start_only;
	assert_int_equal(attach(&o), 0);
	assert_int_equal(ringtap_capture_start(cap), 0);
}

static void test_timeout_of_a_capture_applies_to_its_filter(void **state)
{
	static const struct ringtap_insn none = {.code = 6};
	uint64_t before;

	start_with_a_limit();
	before = rt_mono_ns();
	assert_int_equal(ringtap_capture_filter(cap, &none, 1), -ETIMEDOUT);
	assert_in_range(rt_mono_ns() - before, LIMIT_MS * 1000000ull,
		(uint64_t)rt_reader_limits.filter_ms * 1000000 / 2);
}

static void test_timeout_of_a_capture_applies_to_its_end(void **state)
{
	struct ringtap_run runs[8];

	start_with_a_limit();
	assert_int_equal(ringtap_capture_stop(cap), 0);
	/* Less than the default timeout: 0 would mean that it still waits. */
	assert_int_equal(
		ringtap_capture_next(cap, runs, 8, rt_reader_limits.answer_ms / 2), -ETIMEDOUT);
}

/* ---- NULL ---- */

static void test_text_of_an_error_is_not_required(void **state)
{
	struct ringtap_monitor *mon;
	struct ringtap_conn *conn;

	assert_int_equal(ringtap_conn_open(&conn, "/nonexistent/app", NULL, NULL, 0), -ENOENT);
	assert_int_equal(ringtap_conn_open(&conn, "/nonexistent/app", NULL, NULL, 80), -ENOENT);
	assert_int_equal(ringtap_conn_open(&conn, "/nonexistent/app", NULL, err, 0), -ENOENT);
	assert_int_equal(ringtap_monitor_open(&mon, "/nonexistent/app", NULL, NULL, 0), -ENOENT);
	assert_false(ringtap_process_halted(1, NULL, 0));
}

static void test_telemetry_without_a_command_is_refused(void **state)
{
	char *answer = err;

	assert_int_equal(ringtap_telemetry(peer.dir, NULL, 0, &answer, NULL), -EINVAL);
	assert_null(answer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_options_shorter_than_the_first_version_are_refused),
		TEST(test_later_options_that_are_zero_are_accepted),
		TEST(test_later_options_that_are_set_are_refused),
		TEST(test_options_of_ringtap_capture_create),
		TEST(test_impossible_sizes_are_refused),
		TEST(test_targets_of_other_versions),
		TEST(test_structures_without_a_size_are_not_filled),
		TEST(test_runs_shorter_than_the_first_version_are_refused),
		TEST(test_unknown_values_are_refused),
		TEST(test_ids_of_an_earlier_probe_are_refused),
		TEST(test_samples_that_are_no_power_of_two_are_refused),
		TEST(test_a_sample_is_requested_with_the_secret_of_the_capture),
		TEST(test_a_sample_of_an_earlier_probe_is_refused),
		TEST(test_metadata_and_lengths_are_requested),
		TEST(test_metadata_and_lengths_of_an_earlier_probe_are_refused),
		TEST(test_packets_not_sampled_count_in_a_sample_only),
		TEST(test_limits_of_flows_are_requested),
		TEST(test_limits_of_flows_are_refused),
		TEST(test_packets_are_cut_by_a_limit_only),
		TEST(test_unknown_directions_are_refused),
		TEST(test_negative_timeouts_are_refused),
		TEST(test_reasons_of_loss_have_names),
		TEST(test_timeout_of_a_capture_applies_to_its_filter),
		TEST(test_timeout_of_a_capture_applies_to_its_end),
		TEST(test_text_of_an_error_is_not_required),
		TEST(test_telemetry_without_a_command_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
