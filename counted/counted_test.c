/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of an application over an interval, and what they add up to, from a source that the test
 * plays. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "common/test_now.h"
#include "counted.h"

static const char *const all_names[] = {"meter", "acl", "upcall"};
static uint64_t now[3];
static int error;
static unsigned readings;

static int read_fake(struct counted *c, int within_ms)
{
	readings++;
	if (error) {
		snprintf(c->why, sizeof(c->why), "fake error");
		return error;
	}
	for (size_t i = 0; i < 3; i++)
		if (now[i])
			counted_put(c, all_names[i], strlen(all_names[i]), i ? NULL : "by a meter",
				now[i]);
	return 0;
}

static struct counted_source fake = {
	.name = "Fake", .program = "fake", .late_ns = 1000, .note = "A note.", .read = read_fake};

static struct counted begin(uint64_t a, uint64_t b, uint64_t d)
{
	struct counted c = {
		.source = &fake, .list = calloc(COUNTED_MAX, sizeof(struct counted_value))};

	assert_non_null(c.list);
	error = 0;
	readings = 0;
	now[0] = a;
	now[1] = b;
	now[2] = d;
	assert_int_equal(read_fake(&c, 0), 0);
	c.begun = true;
	return c;
}

static void set(uint64_t a, uint64_t b, uint64_t d)
{
	now[0] = a;
	now[1] = b;
	now[2] = d;
}

static void set_later(void *arg)
{
	const uint64_t *values = arg;

	set(values[0], values[1], values[2]);
}

static void assert_match(const struct counted *c, uint64_t packets, uint64_t of, const char *used)
{
	struct counted_match m = counted_match(c, packets);
	char letters[4] = {0};

	for (size_t i = 0; i < c->count; i++)
		letters[i] = m.used[i] ? c->list[i].name[0] : '-';
	assert_int_equal(m.packets, of);
	assert_string_equal(letters, used);
}

static void test_programs_without_a_source(void **state)
{
	struct counted c;
	json_t *j;

	counted_begin(&c, "testpmd", 1, 1);
	counted_read(&c);
	counted_end(&c, 5);
	test_stdout_begin();
	assert_int_equal(counted_print(&c, (struct counted_fates){5, 0, true}, stdout), 0);
	assert_string_equal(test_stdout_end(), "");
	j = counted_json(&c, (struct counted_fates){5, 0, true});
	assert_true(json_is_null(j));
	json_decref(j);
	counted_free(&c);
	counted_begin(&c, "ovs-vswitchd-dpdk", 0, 1);
	assert_string_equal(c.why, "its process is not visible from here");
	counted_free(&c);
}

static void test_all_counters_account_for_packets_unless_they_are_more(void **state)
{
	struct counted c = begin(100, 7, 0);

	assert_match(&c, 10, 0, "--");
	set(1304, 7, 0);
	counted_read(&c);
	assert_match(&c, 1210, 1204, "m-");
	assert_match(&c, 1204, 1204, "m-");
	assert_match(&c, 1203, 0, "--");
	assert_match(&c, 0, 0, "--");
	counted_free(&c);
}

static void test_the_only_subset_with_the_sum(void **state)
{
	struct counted c = begin(0, 0, 0);

	set(10, 20, 5);
	counted_read(&c);
	assert_match(&c, 35, 35, "mau");
	assert_match(&c, 30, 30, "ma-");
	assert_match(&c, 25, 25, "-au");
	assert_match(&c, 24, 0, "---");
	set(10, 20, 10);
	counted_read(&c);
	assert_match(&c, 30, 0, "---"); /* two subsets */
	assert_match(&c, 20, 0, "---");
	counted_free(&c);
}

static void test_hostile_counters(void **state)
{
	struct counted c = begin(50, 0, 0);
	char name[200] = {0};

	set(7, 0, 0); /* less than before */
	counted_read(&c);
	assert_int_equal(counted_since(&c.list[0]), 0);
	set(UINT64_MAX, UINT64_MAX, UINT64_MAX);
	counted_read(&c);
	assert_match(&c, 1000, 0, "---");
	memset(name, 'a', sizeof(name) - 1);
	counted_put(&c, name, COUNTED_NAME_LEN, NULL, 1);
	counted_put(&c, "", 0, NULL, 1);
	counted_put(&c, "a\033", 2, NULL, 1);
	assert_int_equal(c.count, 3);
	for (int i = 0; i < 1000; i++)
		counted_put(&c, name, (size_t)snprintf(name, sizeof(name), "n%d", i), NULL, 1);
	assert_int_equal(c.count, COUNTED_MAX);
	assert_int_equal(counted_match(&c, 1).packets, 0);
	counted_free(&c);
}

/* A thread adds what it has counted after the end. */
static void test_late_counts_are_waited_for(void **state)
{
	static uint64_t later[3] = {20, 0, 3};
	struct counted c = begin(5, 0, 0);

	set(18, 0, 0);
	test_now_after(500, set_later, later);
	counted_end(&c, 18);
	assert_int_equal(readings, 3);
	assert_match(&c, 18, 18, "mu");
	counted_free(&c);
}

/* Later counts belong to later packets. */
static void test_later_counts_that_are_too_many_are_left_out(void **state)
{
	static uint64_t later[3] = {20, 0, 3};
	struct counted c = begin(5, 0, 0);

	set(18, 0, 0);
	test_now_after(500, set_later, later);
	counted_end(&c, 17);
	assert_match(&c, 17, 13, "m");
	counted_free(&c);
	c = begin(5, 0, 0);
	set(18, 0, 0);
	counted_end(&c, 13); /* it adds up: there is nothing to wait for */
	assert_int_equal(readings, 2);
	counted_free(&c);
}

/* While packets wait in the rings. */
static void test_a_slow_application_is_read_again_at_the_end_only(void **state)
{
	struct counted c = begin(5, 0, 0);

	error = -ETIMEDOUT;
	counted_read(&c);
	counted_read(&c);
	assert_int_equal(readings, 2);
	assert_string_equal(c.why, "fake error");
	error = 0;
	set(8, 0, 0);
	counted_end(&c, 3);
	assert_string_equal(c.why, "");
	assert_match(&c, 3, 3, "m");
	counted_free(&c);
}

static const char *print(const struct counted *c, uint64_t not_offered, bool whole)
{
	test_stdout_begin();
	assert_int_equal(
		counted_print(c, (struct counted_fates){not_offered, 7, whole}, stdout), 0);
	return test_stdout_end();
}

static void test_texts(void **state)
{
	struct counted c = begin(100, 0, 0);

	assert_string_equal(
		print(&c, 7, true), "Fake counted no dropped packet in the same time.\n");
	set(1304, 6, 0);
	counted_read(&c);
	assert_string_equal(print(&c, 1210, true),
		"\nFake counted in the same time\n"
		"  counter  packets  dropped\n"
		"  meter      1,204  by a meter\n"
		"  acl            6\n"
		"1,210 of 1,210 not offered = meter + acl\nA note.\n");
	assert_non_null(strstr(print(&c, 2000, true),
		"1,210 of 2,000 not offered = meter + acl; for 790 no counter has a reason\n"));
	assert_non_null(strstr(print(&c, 1204, true), "\n1,204 of 1,204 not offered = meter\n"));
	assert_non_null(strstr(print(&c, 1200, true),
		"These numbers do not add up to the 1,200 packets not offered.\n"));
	assert_null(strstr(print(&c, 1210, false), "not offered")); /* only one port */
	fake.frees_unseen = fake.has_others = true;                 /* seven are open */
	assert_non_null(strstr(
		print(&c, 1203, true), "\n1,210 of 1,210 not offered or open = meter + acl\n"));
	assert_non_null(
		strstr(print(&c, 1197, true), "\n1,204 of 1,204 not offered or open = meter\n"));
	assert_null(strstr(print(&c, 1198, true), "not offered"));
	assert_null(strstr(print(&c, 2000, true), "not offered"));
	fake.frees_unseen = fake.has_others = false;
	error = -EPERM;
	counted_read(&c);
	assert_string_equal(
		print(&c, 7, true), "Why Fake dropped packets is not known: fake error.\n");
	counted_free(&c);
}

static void test_json(void **state)
{
	static const char expected[] =
		"{\"source\":\"Fake\",\"error\":null,\"counters\":["
		"{\"name\":\"meter\",\"meaning\":\"by a meter\",\"begin\":100,\"end\":112,"
		"\"packets\":12},"
		"{\"name\":\"acl\",\"meaning\":null,\"begin\":0,\"end\":6,\"packets\":6}],"
		"\"of_not_offered\":12,\"equal_to\":[\"meter\"]}";
	struct counted c = begin(100, 0, 0);
	json_t *j;
	char *text;

	set(112, 6, 0);
	counted_read(&c);
	j = counted_json(&c, (struct counted_fates){12, 0, true});
	text = json_dumps(j, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	json_decref(j);
	error = -EPERM;
	counted_read(&c);
	j = counted_json(&c, (struct counted_fates){12, 0, true});
	assert_string_equal(json_string_value(json_object_get(j, "error")), "fake error");
	assert_int_equal(json_array_size(json_object_get(j, "counters")), 0);
	json_decref(j);
	counted_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_without_a_source),
		cmocka_unit_test(test_all_counters_account_for_packets_unless_they_are_more),
		cmocka_unit_test(test_the_only_subset_with_the_sum),
		cmocka_unit_test(test_hostile_counters),
		cmocka_unit_test(test_late_counts_are_waited_for),
		cmocka_unit_test(test_later_counts_that_are_too_many_are_left_out),
		cmocka_unit_test(test_a_slow_application_is_read_again_at_the_end_only),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
