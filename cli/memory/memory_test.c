/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples out of snapshots, and patterns out of samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report.h"

#define OBJECT 1000u

static struct ringtap_sample sample[4][100];
static struct ringtap_sample_run runs[4];
static struct ringtap_pool_stats pools[3];
static struct ringtap_port_stats port = {.name = "port0"};
static struct ringtap_thread_stats threads[2];
static struct one_app app;
static struct memory_samples samples;
static struct memory_patterns patterns;
static struct ringtap_snapshot f, first;

static int set_up(void **state)
{
	memset(pools, 0, sizeof(pools));
	f = (struct ringtap_snapshot){.tsc_hz = 1000000000,
		.port_count = 1,
		.thread_count = 2,
		.pool_count = 1,
		.ports = {&port, sizeof(port)},
		.threads = {threads, sizeof(threads[0])},
		.pools = {pools, sizeof(pools[0])},
		.sample_runs = {runs, sizeof(runs[0])}};
	pools[0] = (struct ringtap_pool_stats){
		.name = "pool0", .object_bytes = OBJECT, .base = 100000, .span = 100000};
	samples = (struct memory_samples){.app = &app};
	memset(&patterns, 0, sizeof(patterns));
	return 0;
}

static int tear_down(void **state)
{
	memory_samples_free(&samples);
	memory_patterns_free(&patterns);
	return 0;
}

/* Appends a run of count buffers, each so far behind the one before. */
static struct ringtap_sample *add(
	uint32_t thread, uint64_t number, uint64_t count, uint64_t from, uint64_t step)
{
	uint32_t at = f.sample_run_count++;

	for (uint64_t i = 0; i < count; i++)
		sample[at][i] = (struct ringtap_sample){.address = from + i * step,
			.iova = from + i * step,
			.tsc = (uint32_t)i * 10};
	runs[at] = (struct ringtap_sample_run){.thread = thread,
		.number = number,
		.start_ns = 5000,
		.count = count,
		.samples = {sample[at], sizeof(sample[at][0])}};
	return sample[at];
}

static void find(void)
{
	memory_samples_take(&samples, &first, &f);
	assert_int_equal(memory_patterns_find(&patterns, &samples, &f), 0);
}

static void each_run_is_taken_once(void **state)
{
	struct ringtap_snapshot before = f;

	add(1, 7, 10, 100000, OBJECT);
	before.sample_run_count = f.sample_run_count; /* another monitor's */
	add(0, 3, 20, 100000, OBJECT);
	assert_int_equal(memory_samples_take(&samples, &before, &f), 20);
	assert_int_equal(memory_samples_take(&samples, &before, &f), 20);
	add(1, 8, 30, 100000, OBJECT);
	assert_int_equal(memory_samples_take(&samples, &before, &f), 50);
	assert_int_equal(samples.runs, 2);
	assert_int_equal(samples.list[49].thread, 1);
}

static void times_go_on_when_the_counter_wraps(void **state)
{
	struct ringtap_sample *s = add(0, 1, 3, 100000, OBJECT);

	s[0].tsc = UINT32_MAX - 99;
	s[1].tsc = 100;
	s[2].tsc = 100;
	memory_samples_take(&samples, &first, &f);
	assert_int_equal(samples.list[0].ns, 5000);
	assert_int_equal(samples.list[1].ns, 5200);
	assert_int_equal(samples.list[2].ns, 5200);
}

static void buffers_belong_to_the_smallest_pool_around(void **state)
{
	pools[1] = (struct ringtap_pool_stats){.base = 0, .span = 10000000};
	pools[2] = (struct ringtap_pool_stats){.base = 100000, .span = 500, .gone = true};
	f.pool_count = 3;
	add(0, 1, 1, 100010, 0);
	add(0, 2, 1, 99999, 0);
	add(0, 3, 1, 10000000, 0);
	memory_samples_take(&samples, &first, &f);
	assert_int_equal(samples.list[0].pool, 0);
	assert_int_equal(samples.list[1].pool, 1);
	assert_int_equal(samples.list[2].pool, RINGTAP_NO_INDEX);
	/* Unless there is one whose buffers are elsewhere. */
	pools[2] = (struct ringtap_pool_stats){.pinned_external = true};
	add(0, 4, 1, 10000000, 0);
	memory_samples_take(&samples, &first, &f);
	assert_int_equal(samples.list[3].pool, 2);
}

static void neighbours_are_sequential(void **state)
{
	struct ringtap_sample *s = add(0, 1, 6, 100000, 0);
	const uint64_t steps[] = {0, OBJECT, 2 * OBJECT - 1, OBJECT - 1, 2 * OBJECT, 0};

	for (int i = 1; i < 6; i++)
		s[i].address = s[i - 1].address + steps[i];
	add(0, 2, 10, 150000, -(uint64_t)OBJECT); /* downwards; no step from run to run */
	find();
	assert_int_equal(patterns.count, 1);
	assert_int_equal(patterns.list[0].count, 16);
	assert_int_equal(patterns.list[0].steps, 5 + 9);
	assert_int_equal(patterns.list[0].sequential, 2 + 9);
	assert_int_equal(patterns.list[0].same, 1);
	assert_int_equal(patterns.list[0].distance[9], 11); /* 512 … 1023 */
}

static void queues_and_pools_stand_apart(void **state)
{
	struct ringtap_sample *s = add(0, 1, 100, 100000, OBJECT);

	pools[1] =
		(struct ringtap_pool_stats){.base = 150000, .span = 50000, .object_bytes = OBJECT};
	f.pool_count = 2;
	for (int i = 0; i < 100; i += 2)
		s[i].queue = 1;
	find();
	assert_int_equal(patterns.count, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(patterns.list[i].count, 25);
		assert_int_equal(patterns.list[i].queue, i / 2);
		assert_int_equal(patterns.list[i].pool, i % 2);
		assert_int_equal(patterns.list[i].sequential, 0);
	}
	assert_int_equal(patterns.all.count, 100);
	assert_int_equal(patterns.all.sequential, 98); /* not from pool to pool */
}

static void devices_see_iovas_where_there_are_any(void **state)
{
	const struct memory_sample s[] = {{.address = 5, .iova = 6}, {.address = 5, .iova = 0},
		{.address = 5, .iova = UINT64_MAX}};

	assert_int_equal(memory_device_address(&s[0]), 6);
	assert_int_equal(memory_device_address(&s[1]), 5);
	assert_int_equal(memory_device_address(&s[2]), 5);
}

static void nothing_is_no_error(void **state)
{
	find();
	assert_int_equal(patterns.count, 0);
	assert_int_equal(patterns.all.count, 0);
	assert_true(isnan(patterns.all.pages[0]));
}

static void what_pcm_prints(void **state)
{
	char good[] = "Socket,Name,Part,IOTLB Miss,x,IOTLB Lookup\n"
		      "Socket0,a,Total,3,9,40\nSocket1,a,Total,4,9,50\n"
		      "Socket,Name,Part,IOTLB Miss,x,IOTLB Lookup\nSocket0,a,Total,1,1\n";
	char other[] = "Socket,Name,Part,IB write\nSocket0,a,Part0,77\n";
	char hits[] = "Part,IOTLB Hit,IOTLB Miss\nTotal,10,5\n,,\n";
	char empty[] = "";
	struct pcm_iio p = {0};

	assert_true(pcm_iio_parse(&p, good));
	assert_int_equal(p.misses, 8);
	assert_int_equal(p.lookups, 90);
	assert_true(pcm_iio_parse(&p, hits));
	assert_int_equal(p.misses, 5);
	assert_int_equal(p.lookups, 15);
	assert_false(pcm_iio_parse(&p, other));
	assert_false(pcm_iio_parse(&p, empty));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_run_is_taken_once),
		TEST(times_go_on_when_the_counter_wraps),
		TEST(buffers_belong_to_the_smallest_pool_around),
		TEST(neighbours_are_sequential),
		TEST(queues_and_pools_stand_apart),
		TEST(devices_see_iovas_where_there_are_any),
		TEST(nothing_is_no_error),
		cmocka_unit_test(what_pcm_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
