/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "epb.h"
#include "own_trial.h"
#include "probe/test_eal.h"

#define BURST_BYTES 32768u
#define BOTH        (RT_OWN_SMALL | RT_OWN_LARGE)

/* Runs a trial to its end with these costs of a burst, in cycles, by way. Every odd-th burst of
 * either way takes a thousand times as long; 0: none. Returns the way to go on. */
static bool decided(uint8_t was, uint64_t not_asked, uint64_t asked, unsigned odd)
{
	struct rt_own_trial t = {.was = was};
	uint64_t head = 0;
	bool asks;

	for (unsigned i = 1; i < 1000; i++) {
		uint64_t cycles = t.way ? asked : not_asked;

		if (odd && i % odd == 0)
			cycles *= 1000;
		head += BURST_BYTES;
		if (rt_own_note(&t, head - BURST_BYTES, head, cycles, &asks)) {
			assert_int_equal(t.count[0], RT_OWN_SAMPLES);
			assert_int_equal(t.count[1], RT_OWN_SAMPLES);
			return asks;
		}
	}
	fail();
	return false;
}

static void test_the_cheaper_way_is_kept(void **state)
{
	assert_true(decided(BOTH, 20000, 15000, 0));
	assert_true(decided(RT_OWN_SMALL, 20000, 15000, 0));
	assert_false(decided(BOTH, 15000, 20000, 0));
	assert_false(decided(RT_OWN_SMALL, 15000, 20000, 0));
}

static void test_a_small_difference_changes_nothing(void **state)
{
	assert_true(decided(BOTH, 19800, 20000, 0));
	assert_false(decided(RT_OWN_SMALL, 20000, 19800, 0));
}

static void test_interrupted_bursts_do_not_decide(void **state)
{
	for (unsigned odd = 3; odd < 12; odd++) {
		assert_true(decided(RT_OWN_SMALL, 20000, 15000, odd));
		assert_false(decided(BOTH, 15000, 20000, odd));
	}
}

static void test_costs_are_by_bytes(void **state)
{
	struct rt_own_trial t = {.was = BOTH};
	uint64_t head = 1 << 20;
	bool asks;

	/* Bursts of the one way are twice as long, and cost twice as much less a tenth. */
	for (t.block = head - BURST_BYTES;;) {
		uint64_t bytes = t.way ? 2 * BURST_BYTES : BURST_BYTES;
		uint64_t cycles = t.way ? 36000 : 20000;

		head += bytes;
		if (rt_own_note(&t, head - bytes, head, cycles, &asks))
			break;
	}
	assert_true(asks);
}

static void test_bursts_behind_a_change_and_short_ones_do_not_count(void **state)
{
	struct rt_own_trial t = {.was = BOTH};
	bool asks;

	assert_false(rt_own_note(&t, 0, 4096, 1, &asks));
	assert_false(rt_own_note(&t, 4096, 8192, 1, &asks));
	assert_false(rt_own_note(&t, 32768, 32768, 1, &asks));
	assert_false(rt_own_note(&t, 32768, 33000, 1, &asks));
	assert_int_equal(t.count[0] + t.count[1], 0);
	assert_false(rt_own_note(&t, 33000, 37096, 1, &asks));
	assert_int_equal(t.count[0], 1);
}

/* ---- in a ring ---- */

static struct test_ring t;

static int set_up(void **state)
{
	test_ring_make(&t, 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	test_ring_free(&t);
	return 0;
}

static void push(unsigned bytes, unsigned bursts, uint64_t ns)
{
	struct rte_mbuf *m[8];

	for (unsigned i = 0; i < 8; i++)
		m[i] = test_frame(i, bytes);
	for (unsigned i = 0; i < bursts; i++) {
		test_ring_push(&t, RT_DIR_RX, m, 8, ns);
		rt_store_release(&t.shm.tails[0].tail, t.ring.head);
	}
	for (unsigned i = 0; i < 8; i++)
		rte_pktmbuf_free(m[i]);
}

static void test_a_ring_tries_once_a_second(void **state)
{
	const struct rt_own_trial *trial = &t.ring.chunks->trials[t.ring.index];

	t.ring.own_ahead = BOTH;
	push(1500, 1000, 5000);
	assert_int_equal(t.ring.own_ahead & ~RT_OWN_LARGE, RT_OWN_SMALL);
	assert_int_equal(trial->count[0], RT_OWN_SAMPLES);
	assert_int_equal(trial->next_ns, 1000005000);
	t.ring.own_ahead = BOTH;
	push(1500, 1000, 1000004999);
	assert_int_equal(t.ring.own_ahead, BOTH);
	assert_int_equal(trial->next_ns, 1000005000);
	push(1500, 1000, 1000005000);
	assert_int_equal(trial->next_ns, 2000005000);
}

static void test_small_packets_wait_for_the_end_of_a_trial(void **state)
{
	t.ring.own_ahead = BOTH;
	push(200, 10000, 5000);
	assert_int_equal(t.ring.own_ahead, BOTH | RT_OWN_TRIAL);
	push(1500, 1000, 5000);
	assert_int_equal(t.ring.own_ahead & ~RT_OWN_LARGE, RT_OWN_SMALL);
}

static void test_a_ring_that_stays_in_the_cache_tries_nothing(void **state)
{
	push(1500, 1000, 5000);
	assert_int_equal(t.ring.own_ahead, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_the_cheaper_way_is_kept),
	cmocka_unit_test(test_a_small_difference_changes_nothing),
	cmocka_unit_test(test_interrupted_bursts_do_not_decide),
	cmocka_unit_test(test_costs_are_by_bytes),
	cmocka_unit_test(test_bursts_behind_a_change_and_short_ones_do_not_count),
	cmocka_unit_test_setup_teardown(test_a_ring_tries_once_a_second, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		test_small_packets_wait_for_the_end_of_a_trial, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		test_a_ring_that_stays_in_the_cache_tries_nothing, set_up, tear_down),
};

static int run(const char *group)
{
	return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}

int main(void)
{
	return test_run_both_copies(run);
}
