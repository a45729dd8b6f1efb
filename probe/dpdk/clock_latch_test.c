/* SPDX-License-Identifier: BSD-3-Clause */
/* Clock lines that are replaced while threads copy them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock_latch.h"

#define READERS 3
#define LINES   200000u /* lines published while all threads read */

static struct rt_clock_latch latch;
static uint32_t reading, wrong, done;

/* A line whose words show whether they belong together. */
static struct rt_clock_line line_of(uint64_t i)
{
	return (struct rt_clock_line){.tsc_base = i, .ns_base = i * 3 + 1, .mult = i ^ 0x5555555};
}

static bool whole(const struct rt_clock_line *l)
{
	struct rt_clock_line expected = line_of(l->tsc_base);

	return l->ns_base == expected.ns_base && l->mult == expected.mult;
}

static void *read_lines(void *arg)
{
	uint64_t last = 0;

	rt_fetch_add(&reading, 1);
	while (!rt_load(&done)) {
		struct rt_clock_line l = rt_latch_read(&latch);

		if (!whole(&l) || l.tsc_base < last)
			rt_fetch_add(&wrong, 1);
		last = l.tsc_base;
	}
	return NULL;
}

static void test_copied_lines_are_complete_and_in_order(void **state)
{
	struct rt_clock_line line = line_of(1);
	pthread_t reader[READERS];

	rt_latch_publish(&latch, &line);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, read_lines, NULL), 0);
	while (rt_load(&reading) < READERS)
		rt_pause();
	for (uint64_t i = 2; i < LINES; i++) {
		line = line_of(i);
		rt_latch_publish(&latch, &line);
	}
	rt_store(&done, 1);
	for (int i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	assert_int_equal(wrong, 0);
	line = rt_latch_read(&latch);
	assert_int_equal(line.tsc_base, LINES - 1);
}

static void test_line_is_zero_before_the_first(void **state)
{
	static const struct rt_clock_latch fresh;
	struct rt_clock_line l = rt_latch_read(&fresh);

	assert_int_equal(l.tsc_base | l.ns_base | l.mult, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copied_lines_are_complete_and_in_order),
		cmocka_unit_test(test_line_is_zero_before_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
