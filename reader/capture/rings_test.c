/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings that threads begin to use when the capture runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "reader/test_peer.h"

#define SLOTS   64u /* rings that there may be */
#define RUN_MAX 64u

static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct ringtap_run runs[RUN_MAX];

/* No thread has polled yet. */
static int set_up(void **state)
{
	static const struct ringtap_target all = {
		.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};

	test_session_make(&session, SLOTS, TEST_RING);
	memset(session.h->used, 0, sizeof(session.h->used));
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	ringtap_capture_close(cap);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

/* Packets of runs that follow each other in time. */
static uint64_t packets(unsigned n, uint64_t *last)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		assert_true(runs[i].last_ns >= *last);
		*last = runs[i].last_ns;
		sum += runs[i].packets;
	}
	return sum;
}

/* A thread that begins when the capture has begun: its slot is any. */
static void begin_ring(uint32_t ring, uint64_t ns)
{
	test_put(&session, ring, ns, 0, 60);
	test_publish(&session, ring, ns);
	rt_fetch_or(&session.h->used[ring / 64], 1ull << ring % 64);
}

/* The merge does as much as rings are in its list. */
static void test_rings_that_no_thread_uses_cost_nothing(void **state)
{
	const uint64_t now = test_now(&session) - 1000000;
	uint64_t last = 0;
	int n;

	assert_int_equal(ringtap_capture_next(cap, runs, RUN_MAX, 0), 0);
	assert_int_equal(cap->in_count, 0);
	begin_ring(SLOTS - 1, now);
	n = ringtap_capture_next(cap, runs, RUN_MAX, 0);
	assert_int_equal(cap->in_count, 1);
	assert_int_equal(packets((unsigned)n, &last), 1);
	begin_ring(5, now + 2);
	begin_ring(9, now + 1);
	assert_true(rt_rings_due(cap));
	n = ringtap_capture_next(cap, runs, RUN_MAX, 0);
	assert_false(rt_rings_due(cap));
	assert_int_equal(cap->in_count, 3);
	assert_int_equal(ringtap_capture_ring_count(cap), 3);
	assert_int_equal(packets((unsigned)n, &last), 2);
	ringtap_capture_release(cap);
	assert_true(
		session.tails[SLOTS - 1].tail && session.tails[5].tail && session.tails[9].tail);
	/* An application can say what it likes. */
	memset(session.h->used, 0, sizeof(session.h->used));
	assert_int_equal(ringtap_capture_next(cap, runs, RUN_MAX, 0), 0);
	assert_int_equal(cap->in_count, 3);
	memset(session.h->used, 0xff, sizeof(session.h->used));
	assert_int_equal(ringtap_capture_next(cap, runs, RUN_MAX, 0), 0);
	assert_int_equal(cap->in_count, SLOTS);
}

static void test_a_run_has_the_thread_of_its_ring(void **state)
{
	struct ringtap_ring ring = {.size = sizeof(ring)};
	const uint64_t now = test_now(&session) - 1000000;

	for (uint32_t r = 9; r > 6; r--) {
		rt_store(&session.rings[r].lcore, r);
		rt_store(&session.rings[r].tid, 4700 + r);
		begin_ring(r, now + r);
	}
	assert_int_equal(ringtap_capture_next(cap, runs, RUN_MAX, 0), 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(ringtap_capture_ring(cap, runs[i].ring, &ring), 0);
		assert_int_equal(ring.lcore, 7 + i);
		assert_int_equal(ring.tid, 4707 + i);
	}
}

/* Threads that begin before its end may have packets for it. */
static void test_a_window_without_rings_waits_for_its_end(void **state)
{
	uint64_t from = test_now(&session) - 1000000, to = from + 200000000;
	struct ringtap_capture *w;

	assert_int_equal(ringtap_capture_keep(cap, 0), 0);
	assert_int_equal(ringtap_capture_window(cap, from, to, &w), 0);
	assert_int_equal(ringtap_capture_next(w, runs, RUN_MAX, 0), 0);
	begin_ring(7, from + 1);
	assert_int_equal(ringtap_capture_next(w, runs, RUN_MAX, 0), 1);
	ringtap_capture_release(w);
	assert_int_equal(ringtap_capture_next(w, runs, RUN_MAX, -1), -EPIPE);
	assert_true(test_now(&session) > to);
	ringtap_capture_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_rings_that_no_thread_uses_cost_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_run_has_the_thread_of_its_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_window_without_rings_waits_for_its_end, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
