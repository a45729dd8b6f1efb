/* SPDX-License-Identifier: BSD-3-Clause */
/* Which DPDK a process has, if several files define one. This process loads them, and is judged. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "judge.h"

#define OBJECTS_MAX 4

static struct {
	void *list[OBJECTS_MAX];
	unsigned count;
} loaded;
static char why[512];

static void load(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", getenv("RINGTAP_OBJECTS"), name);
	assert_true(loaded.count < OBJECTS_MAX);
	loaded.list[loaded.count] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!loaded.list[loaded.count])
		fail_msg("%s", dlerror());
	loaded.count++;
}

static int unload_all(void **state)
{
	while (loaded.count)
		dlclose(loaded.list[--loaded.count]);
	return prctl(PR_SET_NAME, "judge_test");
}

/* The file of the probe is what is looked for next. */
static int judged(void)
{
	const struct rt_inject_options opts = {.probe = "/nonexistent"};
	struct rt_process p;
	int ret;

	assert_int_equal(rt_process_open(&p, getpid()), 0);
	ret = rt_judge(&p, &opts, why, sizeof(why));
	rt_process_close(&p);
	return ret;
}

static void assert_served(void)
{
	assert_int_equal(judged(), -ENOENT);
	assert_non_null(strstr(why, "/nonexistent is missing"));
}

static void one_plugin_is_served(void **state)
{
	assert_int_equal(judged(), -ENOEXEC);
	load("one_plugin.so");
	assert_served();
}

static void two_plugins_are_refused(void **state)
{
	load("one_plugin.so");
	load("other_plugin.so");
	assert_int_equal(judged(), -ENOTSUP);
	assert_non_null(strstr(why, "one_plugin.so"));
	assert_non_null(strstr(why, "other_plugin.so"));
	assert_non_null(strstr(why, "contain a DPDK each; the probe serves only one"));
}

/* The loader in the process knows whether it is global. */
static void a_shared_dpdk_beside_a_plugin_is_left_to_the_loader(void **state)
{
	load("one_plugin.so");
	load("librte_eal.so.99");
	assert_served();
}

static void the_library_of_the_probe_is_not_a_second_one(void **state)
{
	load("preloaded.so");
	assert_int_equal(judged(), -ENOEXEC);
	load("one_plugin.so");
	assert_served();
}

static void hidden_symbols_are_named(void **state)
{
	load("hidden_plugin.so");
	assert_int_equal(judged(), -ENOEXEC);
	/* A thread of EAL shows that there is one. */
	prctl(PR_SET_NAME, "eal-intr-thread");
	assert_int_equal(judged(), -ENOTSUP);
	assert_non_null(strstr(why, "a DPDK whose symbols are hidden"));
	assert_non_null(strstr(why, "a plugin without -Wl,--exclude-libs"));
}

static void a_hidden_one_does_not_hide_another(void **state)
{
	load("hidden_plugin.so");
	load("other_plugin.so");
	prctl(PR_SET_NAME, "eal-intr-thread");
	assert_served();
}

int main(void)
{
#define CASE(test) cmocka_unit_test_teardown(test, unload_all)
	const struct CMUnitTest tests[] = {
		CASE(one_plugin_is_served),
		CASE(two_plugins_are_refused),
		CASE(a_shared_dpdk_beside_a_plugin_is_left_to_the_loader),
		CASE(the_library_of_the_probe_is_not_a_second_one),
		CASE(hidden_symbols_are_named),
		CASE(a_hidden_one_does_not_hide_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
