/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of an application over an interval, and what they add up to, from a source that the test
 * plays. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "common/test_now.h"
#include "past.h"

static const char *const all_names[] = {"meter", "acl", "upcall"};
static uint64_t now[3], of_thread;
static int error;
static unsigned readings;

static int read_fake(struct counted *c, int within_ms)
{
	readings++;
	if (error) {
		snprintf(c->why, sizeof(c->why), "fake error");
		return error;
	}
	if (c->threads)
		for (unsigned i = 0; i < COUNTED_OF_THREAD; i++)
			c->threads->list[0].end[i] = of_thread + i;
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
	struct counted c = {.source = &fake,
		.pid = 1,
		.list = calloc(COUNTED_MAX, sizeof(struct counted_value))};

	assert_non_null(c.list);
	error = 0;
	readings = 0;
	now[0] = a;
	now[1] = b;
	now[2] = d;
	of_thread = 0;
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

/* One that has refused packets, too, counts where the sum is exact only. */
static void test_mixed_counters(void **state)
{
	struct counted c = begin(10, 20, 0);

	set(15, 24, 0);
	assert_int_equal(read_fake(&c, 0), 0);
	c.list[1].mixed = true;
	assert_match(&c, 9, 9, "ma");
	assert_match(&c, 10, 5, "m-");
	assert_match(&c, 5, 5, "m-");
	assert_match(&c, 4, 4, "-a");
	assert_match(&c, 3, 0, "--");
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

static const char *print_plain(const struct counted *c)
{
	return print(c, 0, false);
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
		"{\"source\":\"Fake\",\"error\":null,\"from\":null,\"to\":null,\"counters\":["
		"{\"name\":\"meter\",\"meaning\":\"by a meter\",\"begin\":100,\"end\":112,"
		"\"packets\":12},"
		"{\"name\":\"acl\",\"meaning\":null,\"begin\":0,\"end\":6,\"packets\":6}],"
		"\"threads\":[],"
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

static void add_later(void *arg)
{
	set(103, 0, 0);
	of_thread = 9000;
}

/* Their counters are not late: a second reading at the end is for the others. */
static void test_threads(void **state)
{
	struct counted c = begin(100, 0, 0);
	json_t *j, *list;
	char *text;

	c.threads = calloc(1, sizeof(*c.threads));
	assert_non_null(c.threads);
	c.threads->count = 2; /* the second one passes no packets */
	strcpy(c.threads->list[0].name, "pmd 3");
	strcpy(c.threads->list[1].name, "pmd 4");
	of_thread = 1200;
	counted_read(&c);
	assert_string_equal(print(&c, 7, true),
		"Fake counted no dropped packet in the same time.\n"
		"\nIts threads in the same time\n"
		"  thread  received   sent  upcalls  lost upcalls\n"
		"  pmd 3      1,200  1,201    1,202         1,203\n");
	set(101, 0, 0);
	of_thread = 1500;
	test_now_after(500, add_later, NULL);
	counted_end(&c, 3);
	assert_match(&c, 3, 3, "m");
	j = counted_json(&c, (struct counted_fates){3, 0, true});
	list = json_object_get(j, "threads");
	assert_int_equal(json_array_size(list), 2);
	text = json_dumps(json_array_get(list, 0), JSON_COMPACT);
	assert_string_equal(text, "{\"name\":\"pmd 3\",\"received\":1500,\"sent\":1501,"
				  "\"upcalls\":1502,\"lost_upcalls\":1503}");
	free(text);
	json_decref(j);
	counted_free(&c);
}

/* ---- the past ---- */

static void set_seconds(uint64_t seconds)
{
	test_now_set((1000 + seconds) * NS_PER_S, (1000 + seconds) * NS_PER_S);
}

/* Every five seconds, the first one at 1000 s. */
static void past_begin(struct counted_past *p)
{
	set_seconds(0);
	*p = (struct counted_past){.c = begin(100, 0, 0)};
	p->c.begun = false;
	counted_past_start(p);
}

static void past_go(struct counted_past *p, uint64_t a, uint64_t b, uint64_t seconds)
{
	set(a, b, 0);
	set_seconds(seconds);
	counted_past_read(p, false);
}

static void assert_past(const struct counted_past *p, uint64_t second, const char *expected)
{
	struct counted c;

	assert_true(counted_past_since(p, (1000 + second) * NS_PER_S, &c));
	assert_string_equal(print_plain(&c), expected);
	counted_free(&c);
}

static void test_the_past_of_an_interval(void **state)
{
	struct counted_past p;

	past_begin(&p);
	past_go(&p, 110, 0, 2); /* not read */
	assert_int_equal(readings, 2);
	past_go(&p, 120, 0, 5);
	past_go(&p, 140, 9, 10);
	assert_past(&p, 7,
		"\nFake counted from 1970-01-01T00:16:45.000000000Z to "
		"1970-01-01T00:16:50.000000000Z\n"
		"  counter  packets  dropped\n"
		"  meter         20  by a meter\n"
		"  acl            9\nA note.\n");
	/* Before the first reading: since then. */
	assert_past(&p, 0,
		"\nFake counted from 1970-01-01T00:16:40.000000000Z to "
		"1970-01-01T00:16:50.000000000Z\n"
		"  counter  packets  dropped\n"
		"  meter         40  by a meter\n"
		"  acl            9\nA note.\n");
	past_go(&p, 140, 9, 15);
	assert_past(&p, 12,
		"Fake counted no dropped packet from 1970-01-01T00:16:50.000000000Z to\n"
		"  1970-01-01T00:16:55.000000000Z.\n");
	/* The last readings stay when the application has ended. */
	error = -ESRCH;
	past_go(&p, 0, 0, 20);
	past_go(&p, 0, 0, 40);
	assert_int_equal(readings, 6);
	assert_past(&p, 12,
		"Fake counted no dropped packet from 1970-01-01T00:16:50.000000000Z to\n"
		"  1970-01-01T00:16:55.000000000Z.\n");
	counted_past_free(&p);
}

static void test_old_readings_are_replaced(void **state)
{
	struct counted_past p;
	struct counted c;

	past_begin(&p);
	for (unsigned i = 1; i < 100; i++)
		past_go(&p, 100 + i, 0, 5 * i);
	assert_true(counted_past_since(&p, 0, &c));
	assert_int_equal(counted_since(&c.list[0]), COUNTED_PAST - 1);
	counted_free(&c);
	counted_past_free(&p);
}

/* As an incident's file has it, which anybody may have written. */
static void test_documents_are_read_again(void **state)
{
	static const char good[] =
		"{\"source\":\"VPP\",\"from\":\"2026-01-01T00:00:00Z\",\"to\":\"now\","
		"\"error\":null,\"counters\":["
		"{\"name\":\"acl\",\"meaning\":\"a rule\",\"begin\":5,\"end\":12},"
		"{\"name\":\"a\\u001bb\",\"begin\":0,\"end\":12},"
		"{\"name\":\"ttl\",\"meaning\":\"\\u001b[2J\",\"begin\":-5,\"end\":1},"
		"{\"name\":7},{\"begin\":1},8]}";
	static const char *const bad[] = {"[]", "7", "{}", "{\"source\":7}",
		"{\"source\":\"Another\"}", "{\"source\":\"Open vSwitch\",\"counters\":7}"};
	struct counted c;
	json_t *j = json_loads(good, 0, NULL);

	assert_non_null(j);
	assert_true(counted_from_json(&c, j));
	assert_true(strstr(print_plain(&c), "\nVPP counted from 2026-01-01T00:00:00Z to now\n"
					    "  counter  packets  dropped\n"
					    "  acl            7  a rule\n"
					    "  ttl            1\n") != NULL);
	counted_free(&c);
	json_decref(j);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		j = json_loads(bad[i], 0, NULL);
		assert_int_equal(counted_from_json(&c, j), i == 5);
		assert_int_equal(c.count, 0);
		counted_free(&c);
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_without_a_source),
		cmocka_unit_test(test_all_counters_account_for_packets_unless_they_are_more),
		cmocka_unit_test(test_the_only_subset_with_the_sum),
		cmocka_unit_test(test_mixed_counters),
		cmocka_unit_test(test_hostile_counters),
		cmocka_unit_test(test_late_counts_are_waited_for),
		cmocka_unit_test(test_later_counts_that_are_too_many_are_left_out),
		cmocka_unit_test(test_a_slow_application_is_read_again_at_the_end_only),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_the_past_of_an_interval),
		cmocka_unit_test(test_old_readings_are_replaced),
		cmocka_unit_test(test_documents_are_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
