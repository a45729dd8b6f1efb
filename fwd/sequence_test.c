/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rate.h"
#include "sequence.h"

static struct sequence s;

static int clear(void **state)
{
	memset(&s, 0, sizeof(s));
	return 0;
}

static void add_all(const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sequence_add(&s, numbers[i]);
}
#define ADD(...) add_all((uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)

static void expect(uint64_t lost, uint64_t duplicated, uint64_t reordered, uint64_t stale)
{
	assert_int_equal(sequence_lost(&s), lost);
	assert_int_equal(s.duplicated, duplicated);
	assert_int_equal(s.reordered, reordered);
	assert_int_equal(s.stale, stale);
}

static void in_order(void **state)
{
	for (uint64_t i = 0; i < 3 * SEQUENCE_WINDOW + 5; i++)
		sequence_add(&s, i);
	expect(0, 0, 0, 0);
	assert_int_equal(s.unique, 3 * SEQUENCE_WINDOW + 5);
}

static void each_fault_alone(void **state)
{
	ADD(0, 1, 3, 4);
	expect(1, 0, 0, 0);
	ADD(4);
	expect(1, 1, 0, 0);
	ADD(2); /* late, not lost */
	expect(0, 1, 1, 0);
	assert_int_equal(s.extent, 2);
	ADD(2, 0);
	expect(0, 3, 1, 0);
	ADD(5);
	expect(0, 3, 1, 0);
}

static void the_first_ones_missing(void **state)
{
	ADD(3);
	expect(3, 0, 0, 0);
	assert_int_equal(s.first, 3);
	ADD(0, 0);
	expect(2, 1, 1, 0);
}

static void nothing_and_only_zero(void **state)
{
	expect(0, 0, 0, 0);
	ADD(0);
	expect(0, 0, 0, 0);
	ADD(0, 0);
	expect(0, 2, 0, 0);
}

static void edges_of_the_window(void **state)
{
	const uint64_t far = 10 * SEQUENCE_WINDOW;

	ADD(0, far);
	expect(far - 1, 0, 0, 0);
	ADD(far + 1 - SEQUENCE_WINDOW); /* the lowest number in the window */
	expect(far - 2, 0, 1, 0);
	ADD(far + 1 - SEQUENCE_WINDOW);
	expect(far - 2, 1, 1, 0);
	ADD(far - SEQUENCE_WINDOW); /* below the window */
	expect(far - 2, 1, 1, 1);
	/* A jump of less than the window clears the bits that it reuses. */
	ADD(far + SEQUENCE_WINDOW - 10);
	ADD(far + 5);
	assert_int_equal(s.reordered, 2);
	assert_int_equal(s.duplicated, 1);
}

static void jumps_of_any_size_are_bounded(void **state)
{
	ADD(0, (UINT64_C(1) << 40) - 1, 5);
	expect((UINT64_C(1) << 40) - 2, 0, 0, 1);
}

/* A known number of faults, injected at random places. */
static void injected_at_random(void **state)
{
	enum { COUNT = 200000, DELAY = 50 };
	uint64_t lost = 0, duplicated = 0, late = 0, random = 42;
	uint64_t held = UINT64_MAX, held_until = 0;

	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t dice = random_next(&random) % 1000;

		if (held != UINT64_MAX && i >= held_until) {
			sequence_add(&s, held);
			held = UINT64_MAX;
			late++;
		}
		if (dice < 10 && i + 1 < COUNT) {
			lost++;
		} else if (dice < 30) {
			sequence_add(&s, i);
			sequence_add(&s, i);
			duplicated++;
		} else if (dice < 50 && held == UINT64_MAX && i + 2 * DELAY < COUNT) {
			held = i;
			/* At least one number in between is not lost. */
			held_until = i + DELAY;
		} else {
			sequence_add(&s, i);
		}
	}
	assert_true(lost > 1000 && duplicated > 1000 && late > 1000);
	expect(lost, duplicated, late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(in_order, clear),
		cmocka_unit_test_setup(each_fault_alone, clear),
		cmocka_unit_test_setup(the_first_ones_missing, clear),
		cmocka_unit_test_setup(nothing_and_only_zero, clear),
		cmocka_unit_test_setup(edges_of_the_window, clear),
		cmocka_unit_test_setup(jumps_of_any_size_are_bounded, clear),
		cmocka_unit_test_setup(injected_at_random, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
