/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures through the public interface: attaching, waiting, the end; with a simulated
 * application. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "common/ipc.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define RINGS   4u
#define RUN_MAX 64u

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct ringtap_run runs[RUN_MAX];

static int set_up(void **state)
{
	return test_capture_open(&session, &peer, &cap, RINGS, false);
}

static int tear_down(void **state)
{
	return test_capture_close(&session, &peer, cap);
}

static int attach(void)
{
	return ringtap_capture_attach(cap, peer.dir, &all, 1, NULL);
}

static int attach_and_start(void **state)
{
	return set_up(state) || attach() || ringtap_capture_start(cap);
}

static int next(int timeout_ms)
{
	return ringtap_capture_next(cap, runs, RUN_MAX, timeout_ms);
}

/* Reads to the end, whose code is *end. Returns the packets. */
static uint64_t drain(int *end)
{
	uint64_t packets = 0;

	while ((*end = next(1000)) > 0) {
		for (int i = 0; i < *end; i++)
			packets += runs[i].packets;
		ringtap_capture_release(cap);
	}
	return packets;
}

static void put_some(unsigned n)
{
	uint64_t now = test_now(&session);

	for (unsigned i = 0; i < n; i++)
		test_put(&session, 0, now, i % 2, 60);
	test_publish(&session, 0, now);
}

/* ---- attaching ---- */

static void assert_attach_fails(int code, const char *text)
{
	assert_int_equal(attach(), code);
	assert_non_null(strstr(ringtap_capture_error(cap), text));
	assert_int_equal(ringtap_capture_ring_count(cap), 0);
	assert_int_equal(ringtap_capture_interface_count(cap), 0);
	assert_int_equal(next(0), -EPIPE);
}

static bool open_at_once(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_OPEN)
		return test_peer_answer(p, sock, type);
	test_peer_send(sock, RT_MSG_OPENED, NULL, 0);
	return true;
}

static bool leave_the_memory_empty(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_MEMORY)
		return test_peer_answer(p, sock, type);
	test_peer_send(sock, RT_MSG_OPENED, NULL, 0);
	return true;
}

static bool open_refused(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -ENODEV, .text = "no port 'x'; there is y"};

	if (type != RT_MSG_OPEN)
		return test_peer_answer(p, sock, type);
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_msg_send(sock, &m.h, NULL, 0);
	return false;
}

static bool open_never(struct test_peer *p, int sock, uint16_t type)
{
	return type == RT_MSG_OPEN || test_peer_answer(p, sock, type);
}

static bool open_then_hang_up(struct test_peer *p, int sock, uint16_t type)
{
	return type != RT_MSG_OPEN && test_peer_answer(p, sock, type);
}

static void test_layout_without_memory_is_refused(void **state)
{
	peer.answer = open_at_once;
	assert_attach_fails(-EPROTO, "invalid answer");
}

static void test_memory_without_a_segment_is_refused(void **state)
{
	peer.answer = leave_the_memory_empty;
	assert_attach_fails(-EBADMSG, "magic");
}

static void test_error_of_the_probe_is_returned(void **state)
{
	peer.answer = open_refused;
	assert_attach_fails(-ENODEV, "no port 'x'; there is y");
}

static void test_probe_that_dies_while_attaching_is_an_error(void **state)
{
	peer.answer = open_then_hang_up;
	assert_attach_fails(-ECONNRESET, "went away");
}

static void test_probe_that_never_opens_times_out(void **state)
{
	int saved = rt_reader_limits.open_ms;

	rt_reader_limits.open_ms = 30;
	peer.answer = open_never;
	assert_attach_fails(-ETIMEDOUT, "does not answer");
	rt_reader_limits.open_ms = saved;
}

static void test_clock_that_was_never_finished_fails(void **state)
{
	session.clock->seq = 1;
	assert_attach_fails(-EBADMSG, "clock");
}

static void test_failed_attach_leaves_no_descriptor(void **state)
{
	int before = dup(0), after;

	close(before);
	peer.answer = leave_the_memory_empty;
	assert_int_equal(attach(), -EBADMSG);
	/* The peer closes its descriptors later, but they have lower numbers. */
	after = dup(0);
	close(after);
	assert_in_range(after, 0, before + 1);
}

static void test_capture_goes_on_after_a_failed_attach(void **state)
{
	int end;

	peer.answer = open_refused;
	assert_int_equal(attach(), -ENODEV);
	peer.answer = NULL;
	assert_int_equal(attach(), 0);
	put_some(5);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(drain(&end), 5);
	assert_int_equal(end, -EPIPE);
}

static void test_number_of_targets_is_bounded(void **state)
{
	struct ringtap_target *many = calloc(RT_MAX_TARGETS + 1, sizeof(*many));

	assert_int_equal(
		ringtap_capture_attach(cap, peer.dir, many, RT_MAX_TARGETS + 1, NULL), -E2BIG);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, many, 0, NULL), -E2BIG);
	free(many);
}

/* No entry may be read before the count is checked. */
static void test_excess_targets_are_not_read(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	void *none = mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(none, MAP_FAILED);
	for (int change = -8; change <= 8; change += 8)
		assert_int_equal(ringtap_capture_attach_sized(cap, peer.dir, none,
					 sizeof(struct ringtap_target) + (size_t)change,
					 RT_MAX_TARGETS + 1, NULL),
			-E2BIG);
	munmap(none, (size_t)page);
}

static void test_filters_are_bounded(void **state)
{
	static const struct ringtap_insn insn = {.code = 6};
	struct ringtap_target target = all;

	target.filter = &insn;
	target.filter_len = RT_MSG_MAX;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &target, 1, NULL), -E2BIG);
}

static void test_port_name_is_bounded(void **state)
{
	struct ringtap_target target = all;
	char name[RINGTAP_NAME_LEN + 1];

	memset(name, 'p', sizeof(name));
	name[RINGTAP_NAME_LEN] = 0;
	target.port = name;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &target, 1, NULL), -EINVAL);
}

/* ---- reading ---- */

static void test_next_returns_after_its_timeout(void **state)
{
	assert_int_equal(next(0), 0);
	assert_int_equal(next(5), 0);
}

static void test_break_wakes_next(void **state)
{
	ringtap_capture_break(cap);
	assert_int_equal(next(-1), 0);
	/* Only once. */
	assert_int_equal(next(5), 0);
}

static void *break_it(void *arg)
{
	ringtap_capture_break(cap);
	return NULL;
}

static void test_break_wakes_next_from_another_thread(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, break_it, NULL), 0);
	assert_int_equal(next(-1), 0);
	pthread_join(thread, NULL);
}

static void test_tail_moves_only_with_release(void **state)
{
	put_some(5);
	assert_true(next(1000) > 0);
	assert_int_equal(rt_load(&session.tails[0].tail), 0);
	ringtap_capture_release(cap);
	assert_int_equal(rt_load(&session.tails[0].tail), session.pos[0]);
}

static void test_clock_that_dies_later_does_not_stop_the_capture(void **state)
{
	put_some(5);
	rt_store(&session.clock->seq, session.clock->seq | 1);
	assert_true(next(1000) > 0);
}

/* ---- the end ---- */

static void test_stopped_capture_is_drained_to_the_end(void **state)
{
	int end;

	put_some(300);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(drain(&end), 300);
	assert_int_equal(end, -EPIPE);
	assert_int_equal(next(0), -EPIPE);
}

/* A thread was in a hook when the application was killed: busy stays set. */
static void test_killed_application_is_drained(void **state)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};
	struct ringtap_interface port = {.size = sizeof(port)};
	int end;

	put_some(300);
	for (uint32_t i = 0; i < RINGS; i++)
		rt_store(&session.rings[i].busy, 1);
	test_peer_die(&peer);
	assert_int_equal(drain(&end), 300);
	assert_int_equal(end, -EPIPE);
	ringtap_capture_stats(cap, &stats);
	assert_int_equal(stats.apps_dead, 1);
	assert_int_equal(ringtap_capture_interface(cap, 0, &port), 0);
	assert_true(port.gone);
	/* Nothing left to stop. */
	assert_int_equal(ringtap_capture_stop(cap), 0);
	test_peer_bury(&peer);
	test_peer_start(&peer, true); /* for the tear-down */
}

static void test_application_that_dies_before_it_starts_is_drained(void **state)
{
	int end;

	assert_int_equal(attach(), 0);
	test_peer_die(&peer);
	assert_int_equal(drain(&end), 0);
	assert_int_equal(end, -EPIPE);
	test_peer_bury(&peer);
	test_peer_start(&peer, true); /* for the tear-down */
}

static bool hang_up_on_stop(struct test_peer *p, int sock, uint16_t type)
{
	return type != RT_MSG_STOP && test_peer_answer(p, sock, type);
}

static bool never_stop(struct test_peer *p, int sock, uint16_t type)
{
	return type == RT_MSG_STOP || test_peer_answer(p, sock, type);
}

static void test_application_that_dies_while_stopping_is_drained(void **state)
{
	int end;

	peer.answer = hang_up_on_stop;
	put_some(7);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	assert_int_equal(drain(&end), 7);
	assert_int_equal(end, -EPIPE);
}

static void test_unresponsive_probe_is_drained(void **state)
{
	int end, saved = rt_reader_limits.answer_ms;

	peer.answer = never_stop;
	put_some(7);
	rt_reader_limits.answer_ms = 30;
	assert_int_equal(ringtap_capture_stop(cap), 0);
	rt_reader_limits.answer_ms = saved;
	assert_int_equal(drain(&end), 7);
	assert_int_equal(end, -ETIMEDOUT);
}

static bool complain_after_start(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -EBADMSG, .text = "an impossible tail"};
	bool more = test_peer_answer(p, sock, type);

	if (type != RT_MSG_START)
		return more;
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_msg_send(sock, &m.h, NULL, 0);
	return false;
}

static void test_reason_of_a_disconnect_is_returned(void **state)
{
	int end;

	peer.answer = complain_after_start;
	assert_int_equal(attach(), 0);
	put_some(7);
	assert_int_equal(drain(&end), 7);
	assert_int_equal(end, -EPIPE);
	assert_string_equal(ringtap_capture_error(cap), "an impossible tail");
}

/* ---- what is captured ---- */

static void test_counts_are_summed_over_threads(void **state)
{
	struct ringtap_tap tap = {.size = sizeof(tap)};
	struct ringtap_stats stats = {.size = sizeof(stats)};

	for (uint32_t row = 0; row <= RINGS; row++) {
		session.counts[row * TEST_TAPS + 1].seen = 10;
		session.counts[row * TEST_TAPS + 1].captured = 4;
		session.counts[row * TEST_TAPS + 1].filtered = 3;
		session.counts[row * TEST_TAPS + 1].lost[RT_LOSS_WAIT] = 3;
		session.counts[row * TEST_TAPS].bytes = 100;
	}
	assert_int_equal(ringtap_capture_tap_count(cap), 2);
	assert_int_equal(ringtap_capture_tap(cap, 1, &tap), 0);
	assert_int_equal(tap.interface, 1);
	assert_int_equal(tap.queue, 3);
	assert_int_equal(tap.direction, RINGTAP_RX);
	assert_int_equal(tap.counts.seen, 10 * (RINGS + 1));
	assert_int_equal(tap.counts.lost[RINGTAP_LOST_WAIT], 3 * (RINGS + 1));
	assert_int_equal(ringtap_capture_tap(cap, 2, &tap), -ENOENT);
	ringtap_capture_stats(cap, &stats);
	assert_int_equal(stats.total.captured, 4 * (RINGS + 1));
	assert_int_equal(stats.total.filtered, 3 * (RINGS + 1));
	assert_int_equal(stats.total.bytes, 100 * (RINGS + 1));
}

static void test_tap_of_an_unknown_interface_is_not_listed(void **state)
{
	struct ringtap_tap tap = {.size = sizeof(tap)};

	session.taps[0].if_index = UINT32_MAX;
	assert_int_equal(ringtap_capture_tap(cap, 0, &tap), -EAGAIN);
}

static void test_control_characters_in_port_names_are_replaced(void **state)
{
	struct ringtap_interface port = {.size = sizeof(port)};

	memset(session.ifs[0].name, 'n', RT_NAME_LEN);
	session.ifs[0].name[3] = '\033';
	assert_int_equal(ringtap_capture_interface(cap, 0, &port), 0);
	assert_int_equal(strlen(port.name), RINGTAP_NAME_LEN - 1);
	assert_int_equal(port.name[3], '?');
	assert_int_equal(ringtap_capture_interface(cap, 2, &port), -ENOENT);
}

static void test_target_of_an_interface_is_in_range(void **state)
{
	struct ringtap_interface port = {.size = sizeof(port)};

	assert_int_equal(ringtap_capture_interface(cap, 1, &port), 0);
	assert_int_equal(port.target, 0);
	session.ifs[1].target = 1;
	assert_int_equal(ringtap_capture_interface(cap, 1, &port), 0);
	assert_int_equal(port.target, RINGTAP_NO_INDEX);
	session.ifs[1].target = UINT32_MAX - 1;
	assert_int_equal(ringtap_capture_interface(cap, 1, &port), 0);
	assert_int_equal(port.target, RINGTAP_NO_INDEX);
}

static void test_fill_of_a_ring_never_exceeds_it(void **state)
{
	struct ringtap_ring ring = {.size = sizeof(ring)};

	rt_store(&session.rings[2].head, UINT64_MAX);
	assert_int_equal(ringtap_capture_ring(cap, 2, &ring), 0);
	assert_int_equal(ring.used, ring.buffer_size);
	assert_int_equal(ringtap_capture_ring(cap, RINGS, &ring), -ENOENT);
}

/* ---- several applications ---- */

static void test_two_applications_are_merged_and_renumbered(void **state)
{
	struct test_session other;
	struct test_peer second = {.session = &other};
	uint64_t now = test_now(&session), last = 0;
	int n, packets = 0;

	test_session_make(&other, 1, TEST_RING);
	test_peer_start(&second, true);
	assert_int_equal(attach(), 0);
	assert_int_equal(ringtap_capture_attach(cap, second.dir, &all, 1, NULL), 0);
	assert_int_equal(ringtap_capture_interface_count(cap), 4);
	for (uint32_t i = 0; i < 20; i++)
		test_put(i % 2 ? &other : &session, 0, now + i, 1, 60);
	test_publish(&session, 0, now + 18);
	test_publish(&other, 0, now + 19);
	assert_int_equal(ringtap_capture_stop(cap), 0);
	while ((n = next(5000)) > 0) {
		for (int i = 0; i < n; i++) {
			uint8_t copy[96];
			struct rt_epb e;

			assert_int_equal(runs[i].bytes, sizeof(copy));
			assert_null(ringtap_run_pcapng(&runs[i], NULL, 0));
			assert_null(ringtap_run_pcapng(&runs[i], copy, sizeof(copy) - 1));
			assert_true(runs[i].first_ns >= last);
			last = runs[i].last_ns;
			assert_ptr_equal(ringtap_run_pcapng(&runs[i], copy, sizeof(copy)), copy);
			memcpy(&e, copy, sizeof(e));
			assert_int_equal(e.if_index, runs[i].app ? 3 : 1);
			packets++;
		}
	}
	assert_int_equal(packets, 20);
	/* The handles of the second session must be closed before it. */
	ringtap_capture_close(cap);
	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	test_peer_stop(&second);
	test_session_free(&other);
}

#define before_attach(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define started(f)       cmocka_unit_test_setup_teardown(f, attach_and_start, tear_down)

static void test_use_of_the_buffer_is_noted(void **state)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};
	uint64_t now = test_now(&session), used;

	next(0);
	ringtap_capture_stats(cap, &stats);
	assert_int_equal(stats.buffer_size, RINGS * session.ring_size);
	assert_int_equal(stats.buffer_most_used, 0);
	test_put(&session, 0, now, 0, 1000);
	test_put(&session, 1, now, 0, 1000);
	test_publish(&session, 0, now);
	test_publish(&session, 1, now);
	used = session.pos[0] + session.pos[1];
	while (next(1000) > 0)
		ringtap_capture_release(cap);
	ringtap_capture_stats(cap, &stats);
	assert_int_equal(stats.buffer_most_used, used); /* it does not shrink */
}

/* Two pauses with losses: the one with more counts. A pause with few packets means nothing. */
static void test_the_worst_pause_is_noted(void **state)
{
	static const struct {
		unsigned kib, lost, pause_kib, pause_lost;
	} looks[] = {{64, 5, 64, 5}, {48, 9, 48, 9}, {32, 3, 48, 9}, {1, 30, 48, 9}};
	struct ringtap_ring r = {.size = sizeof(r)};
	uint64_t kib = RINGS * session.ring_size / 256;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t from = session.pos[0];

		next(0);
		while (session.pos[0] - from < looks[i].kib * kib)
			test_put(&session, 0, test_now(&session), 0, 60);
		session.counts[0].lost[RT_LOSS_RING_FULL] += looks[i].lost;
		test_publish(&session, 0, test_now(&session));
		while (next(1000) > 0 && session.pos[0] != session.tails[0].tail)
			ringtap_capture_release(cap);
		ringtap_capture_release(cap);
		assert_int_equal(ringtap_capture_ring(cap, 0, &r), 0);
		assert_int_equal(r.pause_lost, looks[i].pause_lost);
		assert_in_range(
			r.pause_written, looks[i].pause_kib * kib, looks[i].pause_kib * kib + 200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		before_attach(test_layout_without_memory_is_refused),
		before_attach(test_memory_without_a_segment_is_refused),
		before_attach(test_error_of_the_probe_is_returned),
		before_attach(test_probe_that_dies_while_attaching_is_an_error),
		before_attach(test_probe_that_never_opens_times_out),
		before_attach(test_clock_that_was_never_finished_fails),
		before_attach(test_failed_attach_leaves_no_descriptor),
		before_attach(test_capture_goes_on_after_a_failed_attach),
		before_attach(test_number_of_targets_is_bounded),
		before_attach(test_excess_targets_are_not_read),
		before_attach(test_filters_are_bounded),
		before_attach(test_port_name_is_bounded),
		started(test_next_returns_after_its_timeout),
		started(test_break_wakes_next),
		started(test_break_wakes_next_from_another_thread),
		started(test_tail_moves_only_with_release),
		started(test_clock_that_dies_later_does_not_stop_the_capture),
		started(test_stopped_capture_is_drained_to_the_end),
		started(test_killed_application_is_drained),
		before_attach(test_application_that_dies_before_it_starts_is_drained),
		started(test_application_that_dies_while_stopping_is_drained),
		started(test_unresponsive_probe_is_drained),
		before_attach(test_reason_of_a_disconnect_is_returned),
		started(test_counts_are_summed_over_threads),
		started(test_use_of_the_buffer_is_noted),
		started(test_the_worst_pause_is_noted),
		started(test_tap_of_an_unknown_interface_is_not_listed),
		started(test_control_characters_in_port_names_are_replaced),
		started(test_target_of_an_interface_is_in_range),
		started(test_fill_of_a_ring_never_exceeds_it),
		before_attach(test_two_applications_are_merged_and_renumbered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
