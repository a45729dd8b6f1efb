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

/* One with DPDK's symbols. */
static void *load_object(const char *name, int scope)
{
	char path[PATH_MAX];
	void *object;

	snprintf(path, sizeof(path), "%s/%s", getenv("RINGTAP_OBJECTS"), name);
	object = dlopen(path, RTLD_NOW | scope);
	if (!object)
		fail_msg("%s", dlerror());
	return object;
}

/* The probe fails with this sentence. */
static void assert_refused(const char *text)
{
	void *probe = load(getenv("RINGTAP_PROBE"));
	const struct rt_loaded *loaded = dlsym(probe, RT_LOADED_SYMBOL);

	assert_non_null(loaded);
	assert_true(loaded->status < 0);
	if (!strstr(loaded->text, text))
		fail_msg("%s", loaded->text);
	dlclose(probe);
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

static void test_releases_before_21_11_are_named(void **state)
{
	void *old = load_object("old_eal.so", RTLD_LOCAL);

	assert_refused("old_eal.so contains a DPDK older than 21.11");
	dlclose(old);
}

static void test_two_of_local_scope_are_named(void **state)
{
	void *plugin = load_object("one_plugin.so", RTLD_LOCAL);
	void *eal = load_object("librte_eal.so.99", RTLD_LOCAL);

	assert_refused("one_plugin.so and librte_eal.so.99 contain a DPDK each");
	dlclose(eal);
	dlclose(plugin);
}

static void test_hidden_symbols_are_not_found(void **state)
{
	void *hidden = load_object("hidden_plugin.so", RTLD_LOCAL), *plugin;
	struct rt_scope s = {.count = 0};
	bool several;

	assert_refused("no DPDK is visible");
	plugin = load_object("one_plugin.so", RTLD_LOCAL);
	assert_ptr_equal(rt_scope_find(&s, "rte_version", &several), dlsym(plugin, "rte_version"));
	assert_false(several);
	dlclose(plugin);
	dlclose(hidden);
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

/* A plugin that exports its DPDK is bound to it, too. The last test: this program keeps what it has
 * found in the global scope. */
static void test_the_one_of_global_scope_is_chosen(void **state)
{
	void *eal;
	struct rt_scope s = {.count = 0};
	bool several;

	load_object("one_plugin.so", RTLD_LOCAL);
	eal = load_object("librte_eal.so.99", RTLD_GLOBAL);
	assert_ptr_equal(rt_scope_find(&s, "rte_version", &several), dlsym(eal, "rte_version"));
	assert_false(several);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_of_two_libraries_is_not_chosen),
		cmocka_unit_test(test_releases_before_21_11_are_named),
		cmocka_unit_test(test_two_of_local_scope_are_named),
		cmocka_unit_test(test_hidden_symbols_are_not_found),
		cmocka_unit_test(test_dpdk_of_local_scope_serves_and_stays_local),
		cmocka_unit_test(test_the_one_of_global_scope_is_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
