/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "imports.h"
#include "test_imports.h"

static const char *programs_folder;

struct library {
	void *handle;
	int (*call)(void), (*call_by_address)(void);
};

TEST_EXPORT int test_answer(void)
{
	return 1;
}

static int call_of(struct library *l, const char *name, int (**function)(void))
{
	void *symbol = dlsym(l->handle, name);

	memcpy(function, &symbol, sizeof(symbol));
	return !symbol;
}

static void load(struct library *l, const char *name, int mode)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", programs_folder, name);
	l->handle = dlopen(path, mode | RTLD_LOCAL);
	assert_non_null(l->handle);
	assert_false(call_of(l, "test_call", &l->call));
	assert_false(call_of(l, "test_call_by_address", &l->call_by_address));
}

static int two(void)
{
	return 2;
}

/* Lines of /proc/self/maps of this library: address, protection, offset. */
static void protections(const char *name, char *text, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4600];

	assert_non_null(f);
	*text = '\0';
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, name))
			strncat(text, line, size - strlen(text) - 1);
	}
	fclose(f);
	assert_true(*text);
}

static void test_calls_are_replaced(void **state)
{
	const char *name = *state;
	struct library l;
	static char before[1 << 14], after[1 << 14];

	load(&l, name, strstr(name, "lazy") ? RTLD_LAZY : RTLD_NOW);
	protections(name, before, sizeof(before));
	assert_int_equal(l.call_by_address(), 1);
	assert_true(rt_imports_replace("test_answer", (uintptr_t)two) >= 2);
	assert_int_equal(l.call(), 2); /* for a lazy library, its first call */
	assert_int_equal(l.call_by_address(), 2);
	protections(name, after, sizeof(after));
	assert_string_equal(before, after);
	assert_true(rt_imports_replace("test_answer", (uintptr_t)test_answer) >= 2);
	assert_int_equal(l.call(), 1);
	assert_int_equal(l.call_by_address(), 1);
	dlclose(l.handle);
}

static void test_the_object_with_the_address_keeps_its_calls(void **state)
{
	struct library l;

	load(&l, "libtest-now.so", RTLD_NOW);
	assert_int_equal(rt_imports_replace("test_answer", (uintptr_t)l.call), 0);
	assert_int_equal(l.call(), 1);
	dlclose(l.handle);
}

static void test_a_function_that_nobody_imports(void **state)
{
	assert_int_equal(rt_imports_replace("test_no_such_function", (uintptr_t)test_answer), 0);
}

int main(void)
{
	static char path[4096];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_calls_are_replaced, "libtest-now.so"),
		cmocka_unit_test_prestate(test_calls_are_replaced, "libtest-lazy.so"),
		cmocka_unit_test(test_the_object_with_the_address_keeps_its_calls),
		cmocka_unit_test(test_a_function_that_nobody_imports),
	};

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0)
		return 1;
	*strrchr(path, '/') = '\0';
	programs_folder = path;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
