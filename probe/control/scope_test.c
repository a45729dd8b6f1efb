/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe in a program that has no DPDK in its global scope. This test is not linked with it. */
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/loaded.h"
#include "scope.h"

static void *load(const char *path)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!object)
		fail_msg("%s", dlerror());
	return object;
}

static void copy_of(const char *path, char out[PATH_MAX])
{
	char buf[65536];
	FILE *from = fopen(path, "r"), *to;
	size_t n;

	snprintf(out, PATH_MAX, "/tmp/ringtap-scope-XXXXXX");
	to = fdopen(mkstemp(out), "w");
	assert_non_null(from);
	assert_non_null(to);
	while ((n = fread(buf, 1, sizeof(buf), from)))
		assert_int_equal(fwrite(buf, 1, n, to), n);
	fclose(from);
	fclose(to);
}

static void test_one_of_two_libraries_is_not_chosen(void **state)
{
	const char *path = getenv("RINGTAP_LIBRARY");
	struct rt_scope s = {.count = 0};
	char copy[PATH_MAX];
	void *one = load(path), *two;
	bool several;

	assert_ptr_equal(
		rt_scope_find(&s, "ringtap_version", &several), dlsym(one, "ringtap_version"));
	assert_int_equal(s.count, 1);
	assert_string_equal(s.files[0], path);
	copy_of(path, copy);
	two = load(copy);
	s.count = 0;
	assert_null(rt_scope_find(&s, "ringtap_version", &several));
	assert_true(several);
	assert_string_equal(s.files[0], path);
	assert_string_equal(s.files[1], copy);
	dlclose(one);
	assert_non_null(rt_scope_find(&s, "ringtap_version", &several));
	assert_false(several);
	dlclose(two);
	assert_null(rt_scope_find(&s, "ringtap_version", &several));
	assert_false(several);
	unlink(copy);
}

/* Their rte_version() is inline. */
static void test_releases_before_21_11_are_named(void **state)
{
	void *old = load(getenv("RINGTAP_OLD_EAL")), *probe = load(getenv("RINGTAP_PROBE"));
	const struct rt_loaded *loaded = dlsym(probe, RT_LOADED_SYMBOL);

	assert_non_null(loaded);
	assert_true(loaded->status < 0);
	assert_non_null(strstr(loaded->text, "old_eal.so contains a DPDK older than 21.11"));
	dlclose(probe);
	dlclose(old);
}

/* A plugin with a DPDK of its own that is loaded later would bind to the one that is global. */
static void test_dpdk_of_local_scope_serves_and_stays_local(void **state)
{
	const struct rt_loaded *loaded;
	void *probe;

	load(getenv("RINGTAP_ETHDEV"));
	assert_null(dlsym(RTLD_DEFAULT, "rte_eal_init"));
	probe = load(getenv("RINGTAP_PROBE"));
	loaded = dlsym(probe, RT_LOADED_SYMBOL);
	assert_non_null(loaded);
	assert_string_equal(loaded->text, "");
	assert_int_equal(loaded->status, 0);
	assert_null(dlsym(RTLD_DEFAULT, "rte_eal_init"));
	assert_null(dlsym(RTLD_DEFAULT, "rte_eth_dev_count_avail"));
	assert_null(dlsym(RTLD_DEFAULT, "rte_bpf_load"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_of_two_libraries_is_not_chosen),
		cmocka_unit_test(test_releases_before_21_11_are_named),
		cmocka_unit_test(test_dpdk_of_local_scope_serves_and_stays_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
