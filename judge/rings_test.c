/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of a ring, sampled 20 times a second and read four times a second. */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "limits.h"
#include "rules.h"

#define CAPACITY 1023
#define FULL     (CAPACITY - LIMIT_BURST)
#define EACH     5 /* samples between two readings */

static struct ringtap_ring_stats rings[2];
static struct ringtap_snapshot snapshots[2];
static struct watched app;
static struct readings readings;
static struct diagnosis d;

static int setup(void **state)
{
	for (unsigned k = 0; k < 2; k++) {
		rings[k] = (struct ringtap_ring_stats){
			.name = "rx_to_worker", .capacity = CAPACITY, .samples = 1000};
		snapshots[k] = (struct ringtap_snapshot){
			.ring_count = 1, .rings = {&rings[k], sizeof(rings[k])}};
		for (unsigned i = 0; i < RINGTAP_RING_RECENT; i++)
			rings[k].recent[i] = FULL + (i & 1); /* before the mark: does not count */
	}
	app = (struct watched){
		.name = (char *)"app", .mark = &snapshots[0], .now = &snapshots[1], .tsc_hz = 1};
	readings = (struct readings){0};
	return 0;
}

static int teardown(void **state)
{
	readings_free(&readings);
	return 0;
}

static void sample(uint32_t used)
{
	struct ringtap_ring_stats *s = &rings[1];

	memmove(s->recent + 1, s->recent, sizeof(s->recent) - sizeof(s->recent[0]));
	s->recent[0] = s->used = used;
	s->samples++;
}

/* EACH samples by turns of both levels, then a reading. */
static void read_after(uint32_t a, uint32_t b)
{
	for (unsigned i = 0; i < EACH; i++)
		sample(i & 1 ? b : a);
	readings_add(&readings, &app);
}

static const struct verdict *judge(void)
{
	struct examination e = {.app = &app,
		.span = {.from = &snapshots[0], .to = &snapshots[1], .seconds = 1},
		.rings = readings.rings,
		.ring_count = readings.ring_count};

	memset(&d, 0, sizeof(d));
	rule_rings(&e, &d);
	assert_true(d.count <= 1);
	return d.count ? &d.verdict[0] : NULL;
}

static void test_full_ring_is_a_note(void **state)
{
	const struct verdict *v;

	for (unsigned i = 0; i < 4; i++)
		read_after(FULL, 500);
	v = judge();
	assert_non_null(v);
	assert_string_equal(verdict_names[v->id], "ring_full");
	assert_int_equal(v->grade, GRADE_NOTE);
	assert_string_equal(v->where, "rx_to_worker");
	assert_string_equal(v->evidence[0],
		"in 60 % of 20 samples it had room for 32 objects or fewer, of 1023");
	assert_string_equal(v->evidence[1], "it held 500 to 991 objects");
}

static void test_each_sample_counts_once(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		read_after(FULL, 500);
	readings_add(&readings, &app);
	assert_int_equal(readings.rings[0].samples, 4 * EACH);
	/* More than a snapshot has. */
	for (unsigned i = 0; i < 2 * RINGTAP_RING_RECENT; i++)
		sample(500);
	readings_add(&readings, &app);
	assert_int_equal(readings.rings[0].samples, 4 * EACH + RINGTAP_RING_RECENT);
	assert_int_equal(readings.rings[0].full, 12);
}

static void test_either_side_of_the_limits(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		read_after(FULL - 1, 500);
	assert_null(judge());
	teardown(state);
	setup(state);
	for (unsigned i = 0; i < 3; i++) /* too few samples */
		read_after(FULL, 500);
	assert_null(judge());
	read_after(500, 501);
	assert_non_null(judge());
	for (unsigned i = 0; i < 15; i++) /* nine of 95 */
		read_after(500, 501);
	assert_int_equal(readings.rings[0].full, 9);
	assert_null(judge());
}

static void test_ring_that_nobody_uses_is_none(void **state)
{
	for (unsigned i = 0; i < 8; i++)
		read_after(CAPACITY, CAPACITY);
	assert_null(judge());
	rings[1].gone = true;
	read_after(FULL, 500);
	assert_null(judge());
	rings[1].gone = false;
	assert_non_null(judge());
}

static void test_short_ring(void **state)
{
	rings[1].capacity = 7;
	for (unsigned i = 0; i < 4; i++)
		read_after(6, 1);
	assert_null(judge());
	for (unsigned i = 0; i < 4; i++)
		read_after(7, 1);
	assert_non_null(judge());
}

/* Levels beyond the capacity, and counters that go back. */
static void test_lying_application(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		read_after(UINT32_MAX, 500);
	assert_int_equal(readings.rings[0].most, CAPACITY);
	rings[1].samples = 3;
	readings_add(&readings, &app);
	assert_int_equal(readings.rings[0].samples, 4 * EACH + 3);
	rings[1].capacity = 0;
	rings[1].samples = UINT64_MAX;
	readings_add(&readings, &app);
	assert_int_equal(readings.rings[0].samples, 4 * EACH + 3 + RINGTAP_RING_RECENT);
	judge();
}

#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(test_full_ring_is_a_note),
		RING_TEST(test_each_sample_counts_once),
		RING_TEST(test_either_side_of_the_limits),
		RING_TEST(test_ring_that_nobody_uses_is_none),
		RING_TEST(test_short_ring),
		RING_TEST(test_lying_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
