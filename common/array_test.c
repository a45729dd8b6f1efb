/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "array.h"

struct item {
	uint32_t number, other;
};

static void test_items_are_added_zeroed(void **state)
{
	struct item *list = NULL;
	unsigned count = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		struct item *added = rt_array_add(list, count);

		assert_non_null(added);
		assert_ptr_equal(added, &list[i]);
		assert_int_equal(added->number, 0);
		assert_int_equal(added->other, 0);
		added->number = added->other = i + 1;
	}
	assert_int_equal(count, 1000);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(list[i].number, i + 1);
	free(list);
}

static void test_items_are_added_after_others_are_removed(void **state)
{
	struct item *list = NULL;
	size_t count = 0;

	(void)state;
	for (size_t most = 1; most < 70; most++) {
		while (count < most)
			rt_array_add(list, count)->number = (uint32_t)count;
		/* From a power of two, and to one. */
		count = most / 3;
	}
	while (count < 70)
		rt_array_add(list, count)->number = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list[i].number, i + 1);
	free(list);
}

static void test_no_item_is_added_without_memory(void **state)
{
	/* Nothing reads the list: what is requested is more than there can be. */
	struct item one = {.number = 7}, *list = &one;
	size_t count = SIZE_MAX / 4 + 1;

	(void)state;
	assert_null(rt_array_add(list, count));
	assert_ptr_equal(list, &one);
	assert_true(count == SIZE_MAX / 4 + 1);
	assert_int_equal(one.number, 7);
}

static void test_room_doubles_until_the_need_fits(void **state)
{
	static const struct {
		size_t room, need, now;
	} cases[] = {{0, 0, 0}, {0, 1, 16}, {0, 16, 16}, {0, 17, 32}, {0, 100, 128}, {16, 16, 16},
		{16, 17, 32}, {16, 33, 64}, {3, 4, 6}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t room = cases[i].room;
		struct item *list = room ? calloc(room, sizeof(*list)) : NULL;

		assert_int_equal(rt_array_room(list, room, cases[i].need), 0);
		assert_int_equal(room, cases[i].now);
		if (room)
			list[room - 1].number = 1;
		free(list);
	}
}

static void test_items_stay_when_the_room_grows(void **state)
{
	uint16_t *list = NULL;
	size_t room = 0;

	(void)state;
	for (size_t count = 0; count < 5000; count++) {
		assert_int_equal(rt_array_room(list, room, count + 1), 0);
		list[count] = (uint16_t)count;
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void test_room_that_cannot_be_is_refused(void **state)
{
	static const size_t cases[] = {
		SIZE_MAX, SIZE_MAX / 2 + 2, SIZE_MAX / sizeof(struct item) + 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t room = 4;
		struct item *list = calloc(room, sizeof(*list)), *before = list;

		list[3].number = 7;
		assert_int_equal(rt_array_room(list, room, cases[i]), -ENOMEM);
		assert_ptr_equal(list, before);
		assert_int_equal(room, 4);
		assert_int_equal(list[3].number, 7);
		free(list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_items_are_added_zeroed),
		cmocka_unit_test(test_items_are_added_after_others_are_removed),
		cmocka_unit_test(test_no_item_is_added_without_memory),
		cmocka_unit_test(test_room_doubles_until_the_need_fits),
		cmocka_unit_test(test_items_stay_when_the_room_grows),
		cmocka_unit_test(test_room_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
