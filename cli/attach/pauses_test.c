/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads are files that the tests write. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_util.h"
#include "pauses.h"

static void put(int tid, const char *name, char state, unsigned sleeps, unsigned long long wait_ns)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "task/%d", tid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "task/%d/comm", tid);
	snprintf(text, sizeof(text), "%s\n", name);
	test_write(path, text, strlen(text));
	snprintf(path, sizeof(path), "task/%d/schedstat", tid);
	snprintf(text, sizeof(text), "123456 %llu 78\n", wait_ns);
	test_write(path, text, strlen(text));
	snprintf(path, sizeof(path), "task/%d/status", tid);
	snprintf(text, sizeof(text),
		"Name:\t%s\nState:\t%c (x)\nvoluntary_ctxt_switches:\t%u\n"
		"nonvoluntary_ctxt_switches:\t9\n",
		name, state, sleeps);
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
		CASE(no_thread_polls),
		CASE(nothing_is_known),
		CASE(damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
