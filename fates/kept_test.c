/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that had to go are counted for their queue, and for windows that they belong to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "events.h"
#include "kept.h"

#define ROOM 4

static struct kept_fates kept;

static int set_up(void **state)
{
	return kept_fates_init(&kept, ROOM);
}

static int tear_down(void **state)
{
	kept_fates_free(&kept);
	return 0;
}

static void add(uint64_t id, uint64_t second, uint32_t interface, uint32_t queue)
{
	const struct rt_fates_packet e =
		fate_entry(id, second * NS_PER_S, interface, queue, RT_FATES_NOT_OFFERED, 0);

	kept_fates_add(&kept, &e);
}

static uint64_t forgotten(uint32_t interface, uint32_t queue, uint64_t second)
{
	return kept_fates_forgotten(&kept, interface, queue, second * NS_PER_S);
}

static void test_the_newest_are_kept(void **state)
{
	for (uint64_t id = 1; id <= ROOM; id++)
		add(id, id, 0, 0);
	assert_int_equal(kept_fates_first(&kept), 0);
	assert_int_equal(forgotten(0, 0, 0), 0);
	add(ROOM + 1, ROOM + 1, 0, 0);
	assert_int_equal(kept_fates_first(&kept), 1);
	for (uint64_t n = 1; n <= ROOM; n++)
		assert_int_equal(kept_fates_get(&kept, n)->id, n + 1);
	assert_int_equal(forgotten(0, 0, 0), 1);
}

static void test_each_queue_has_its_own(void **state)
{
	for (unsigned n = 0; n < 3; n++)
		add(1, 100, 0, 0);
	add(1, 100, 0, 1);
	for (unsigned n = 0; n < ROOM; n++)
		add(2, 101, 1, 0);
	assert_int_equal(forgotten(0, 0, 100), 3);
	assert_int_equal(forgotten(0, 1, 100), 1);
	assert_int_equal(forgotten(1, 0, 100), 0);
	assert_int_equal(forgotten(1, 1, 100), 0);
}

static void test_only_those_of_the_window_count(void **state)
{
	for (uint64_t second = 100; second < 110; second++)
		add(1, second, 0, 0);
	assert_int_equal(forgotten(0, 0, 100), 6);
	assert_int_equal(forgotten(0, 0, 104), 2);
	assert_int_equal(forgotten(0, 0, 106), 0);
	/* Entries older than the counted time make room. */
	for (uint64_t second = 1000; second < 1000 + 2 * ROOM; second++)
		add(1, second, 0, 0);
	assert_int_equal(forgotten(0, 0, 1000), ROOM);
	assert_true(forgotten(0, 0, 0) >= ROOM);
}

/* More queues than can be counted one by one: it does not say that nothing of
 * them is missing, nor that something is where nothing had to go. */
static void test_queues_beyond_the_room(void **state)
{
	for (uint32_t queue = 0; queue <= KEYED_MAX; queue++)
		assert_int_equal(forgotten(0, queue, 0), 0);
	for (uint32_t queue = 0; queue < KEYED_MAX + ROOM + 1; queue++)
		add(1, 100, 0, queue);
	assert_int_equal(forgotten(0, 0, 100), 1);
	assert_int_equal(forgotten(0, KEYED_MAX, 100), 1);
	assert_int_equal(forgotten(0, KEYED_MAX, 101), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_newest_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_queue_has_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_only_those_of_the_window_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_queues_beyond_the_room, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
