/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads are files that the tests write. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_util.h"
#include "common/test_now.h"
#include "pauses.h"

/* Times that it got the CPU; and left it, but for sleeps. */
static unsigned turns = 78;
#define TAKEN 9

static void put(int tid, const char *name, char state, unsigned sleeps, unsigned long long wait_ns)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "task/%d", tid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "task/%d/comm", tid);
	snprintf(text, sizeof(text), "%s\n", name);
	test_write(path, text, strlen(text));
	snprintf(path, sizeof(path), "task/%d/schedstat", tid);
	snprintf(text, sizeof(text), "123456 %llu %u\n", wait_ns, turns);
	test_write(path, text, strlen(text));
	snprintf(path, sizeof(path), "task/%d/status", tid);
	snprintf(text, sizeof(text),
		"Name:\t%s\nState:\t%c (x)\nvoluntary_ctxt_switches:\t%u\n"
		"nonvoluntary_ctxt_switches:\t%d\n",
		name, state, sleeps, TAKEN);
	test_write(path, text, strlen(text));
}

static int begin(void **state)
{
	test_folder_enter();
	return mkdir("task", 0700);
}

static int end(void **state)
{
	test_folder_leave();
	return 0;
}

static const char *text_of(const struct pauses *p)
{
	test_stdout_begin();
	pauses_print(p, stdout);
	return test_stdout_end();
}

/* Threads that never slept are polling threads; their earlier waits do not count. */
static void waits_of_polling_threads(void **state)
{
	struct pauses p;
	json_t *j;

	put(11, "dpdk-testpmd", 'S', 5, 1000);
	put(12, "rte-worker-1", 'R', 3, 7000);
	put(13, "rte-worker-2", 'R', 3, 0);
	put(14, "slept", 'R', 3, 0);
	put(15, "sleeps", 'R', 3, 0);
	put(16, "ends", 'R', 3, 0);
	pauses_begin(&p, "task");
	assert_int_equal(p.count, 6);
	put(11, "dpdk-testpmd", 'R', 5, 90000);
	put(12, "rte-worker-1", 'R', 3, 1507000);
	put(14, "slept", 'R', 4, 4000);
	put(15, "sleeps", 'S', 3, 4000);
	assert_int_equal(rename("task/16", "gone"), 0);
	pauses_end(&p, "task");
	assert_int_equal(p.error, 0);
	assert_int_equal(p.count, 2);
	j = pauses_json(&p);
	assert_int_equal(json_array_size(j), 2);
	json_decref(j);
	if (p.threads[0].tid != 12) { /* in any order */
		struct pause_thread t = p.threads[0];

		p.threads[0] = p.threads[1];
		p.threads[1] = t;
	}
	assert_string_equal(text_of(&p),
		"No polling thread was stopped; off its CPU meanwhile, for at most:\n"
		"     1.5 ms  thread rte-worker-1 (12)\n"
		"       0 ns  thread rte-worker-2 (13)\n");
	pauses_free(&p);
}

static void gets_the_cpu(void *arg)
{
	turns++;
	put(12, "rte-worker-1", 'R', 3, 36000000);
}

/* The kernel counts a wait when it ends. */
static void wait_that_has_not_ended(void **state)
{
	struct pauses p;
	json_t *j;

	turns = 3 + TAKEN + 1;
	put(12, "rte-worker-1", 'R', 3, 1000);
	pauses_begin(&p, "task");
	assert_false(p.threads[0].waits);
	turns = 3 + TAKEN;
	put(12, "rte-worker-1", 'R', 3, 1000);
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	test_now_after(30000000, gets_the_cpu, NULL);
	pauses_end(&p, "task");
	assert_int_equal(p.count, 1);
	assert_int_equal(p.threads[0].wait_ns, 36000000 - 1000);
	assert_false(p.threads[0].waits);
	pauses_free(&p);

	turns = 3 + TAKEN;
	put(12, "rte-worker-1", 'R', 3, 1000);
	pauses_begin(&p, "task");
	pauses_end(&p, "task");
	assert_string_equal(text_of(&p),
		"No polling thread was stopped; off its CPU meanwhile, for at most:\n"
		"        1 s  and more, as it still waits: thread rte-worker-1 (12)\n");
	j = pauses_json(&p);
	assert_true(json_is_null(json_object_get(json_array_get(j, 0), "off_cpu_at_most_ns")));
	json_decref(j);
	pauses_free(&p);
	turns = 78;
}

static void no_thread_polls(void **state)
{
	struct pauses p;
	json_t *j;

	put(11, "dpdk-testpmd", 'S', 5, 1000);
	pauses_begin(&p, "task");
	pauses_end(&p, "task");
	assert_string_equal(text_of(&p), "No polling thread was stopped, and none polled\n");
	j = pauses_json(&p);
	assert_true(json_is_array(j));
	json_decref(j);
	pauses_free(&p);
}

/* A kernel without schedstat, and a process that is not visible. */
static void nothing_is_known(void **state)
{
	const char *const tasks[] = {"task", "none"};

	put(11, "dpdk-testpmd", 'S', 5, 1000);
	assert_int_equal(unlink("task/11/schedstat"), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct pauses p;
		json_t *j;

		pauses_begin(&p, tasks[i]);
		pauses_end(&p, tasks[i]);
		assert_string_equal(text_of(&p),
			"No polling thread was stopped; how long they were off their CPU was not "
			"measured: No such file or directory\n");
		j = pauses_json(&p);
		assert_true(json_is_null(j));
		json_decref(j);
		pauses_free(&p);
	}
}

static void damaged_files(void **state)
{
	struct pauses p;

	put(11, "dpdk-testpmd", 'S', 5, 1000);
	test_write("task/11/schedstat", "x\n", 2);
	pauses_begin(&p, "task");
	assert_true(p.error < 0);
	pauses_end(&p, "task");
	pauses_free(&p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(waits_of_polling_threads),
		CASE(wait_that_has_not_ended),
		CASE(no_thread_polls),
		CASE(nothing_is_known),
		CASE(damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
