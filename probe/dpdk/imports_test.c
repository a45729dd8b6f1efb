/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/atomics.h"
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

/* Calls of mprotect() until one is refused; -1: none is. */
static int granted = -1;

int __real_mprotect(void *at, size_t size, int protection);
int __wrap_mprotect(void *at, size_t size, int protection);

int __wrap_mprotect(void *at, size_t size, int protection)
{
	assert_false(protection & PROT_EXEC); /* for which SELinux has execmod and execmem */
	if (!granted) {
		errno = EACCES;
		return -1;
	}
	granted -= granted > 0;
	return __real_mprotect(at, size, protection);
}

TEST_EXPORT void *rte_eth_dev_allocate(const char *name)
{
	return NULL;
}

static const struct rt_import answer = {"test_answer", (uintptr_t)test_answer, (uintptr_t)two};

static void test_calls_are_diverted_and_restored(void **state)
{
	static char before[1 << 14], after[1 << 14];
	const char *name = *state;
	struct library l;

	load(&l, name, strstr(name, "lazy") ? RTLD_LAZY : RTLD_NOW);
	protections(name, before, sizeof(before));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rt_imports_divert(&answer), 2);
		assert_int_equal(rt_imports_divert(&answer), 0);
		assert_int_equal(l.call(), 2); /* for a lazy library, its first call */
		assert_int_equal(l.call_by_address(), 2);
		assert_int_equal(rt_imports_restore(&answer), 2);
		assert_int_equal(rt_imports_restore(&answer), 0);
		assert_int_equal(l.call(), 1);
		assert_int_equal(l.call_by_address(), 1);
		protections(name, after, sizeof(after));
		assert_string_equal(before, after);
	}
	dlclose(l.handle);
}

#ifndef PR_SET_MDWE /* Linux 6.3 */
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* The kernel refuses what SELinux checks as execmod and execmem. */
static void test_nothing_becomes_executable(void **state)
{
	struct library l;
	int status = 1;
	pid_t child;

	load(&l, "libtest-now.so", RTLD_NOW);
	child = fork();
	if (!child) {
		if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0))
			_exit(77);
		if (!__real_mprotect((void *)((uintptr_t)&granted & -4096ul), 1, PROT_EXEC))
			_exit(2);
		status = rt_imports_divert(&answer) != 2 || l.call() != 2;
		status |= rt_imports_restore(&answer) != 2 || l.call() != 1;
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	dlclose(l.handle);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static void test_drivers_keep_their_calls(void **state)
{
	struct library l, driver;

	load(&driver, "libtest-driver.so", RTLD_NOW);
	load(&l, "libtest-now.so", RTLD_NOW);
	assert_int_equal(rt_imports_divert(&answer), 2);
	assert_int_equal(driver.call(), 1);
	assert_int_equal(driver.call_by_address(), 1);
	assert_int_equal(l.call(), 2);
	assert_int_equal(rt_imports_restore(&answer), 2);
	dlclose(l.handle);
	dlclose(driver.handle);
}

static void test_objects_come_and_go_meanwhile(void **state)
{
	struct library now, lazy;
	uint64_t loads;

	load(&now, "libtest-now.so", RTLD_NOW);
	assert_int_equal(rt_imports_divert(&answer), 2);
	loads = rt_imports_loads();
	assert_int_equal(rt_imports_loads(), loads);
	load(&lazy, "libtest-lazy.so", RTLD_LAZY);
	assert_int_not_equal(rt_imports_loads(), loads);
	assert_int_equal(lazy.call_by_address(), 1);
	assert_int_equal(rt_imports_divert(&answer), 2);
	assert_int_equal(lazy.call_by_address(), 2);
	dlclose(now.handle);
	assert_int_equal(rt_imports_restore(&answer), 2);
	assert_int_equal(lazy.call(), 1);
	load(&now, "libtest-now.so", RTLD_NOW);
	assert_int_equal(now.call(), 1);
	dlclose(now.handle);
	dlclose(lazy.handle);
}

/* Writable slots are changed. */
static void test_refused_protections(void **state)
{
	static char before[1 << 14], after[1 << 14];
	struct library l;

	load(&l, "libtest-now.so", RTLD_NOW);
	protections("libtest-now.so", before, sizeof(before));
	granted = 0;
	assert_int_equal(rt_imports_divert(&answer), -EACCES);
	assert_int_equal(l.call(), 1);
	assert_int_equal(rt_imports_restore(&answer), 1); /* in memory that is writable */
	assert_int_equal(l.call_by_address(), 1);
	granted = -1;
	protections("libtest-now.so", after, sizeof(after));
	assert_string_equal(before, after);

	assert_int_equal(rt_imports_divert(&answer), 2);
	granted = 0;
	assert_int_equal(rt_imports_restore(&answer), -EACCES);
	assert_int_equal(l.call(), 2); /* still works */
	assert_int_equal(l.call_by_address(), 1);
	granted = -1;
	assert_int_equal(rt_imports_restore(&answer), 1);
	protections("libtest-now.so", after, sizeof(after));
	assert_string_equal(before, after);
	dlclose(l.handle);
}

/* Pages that the loader has not protected yet: it may have slots to fill there. */
static void test_pages_that_the_loader_fills_are_left_to_it(void **state)
{
	struct {
		uintptr_t at[4], end[4];
		int n;
	} sealed = {.n = 0};
	struct library l;
	char line[4600];
	FILE *f;

	load(&l, "libtest-now.so", RTLD_NOW);
	f = fopen("/proc/self/maps", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sealed.n < 4) {
		unsigned long begin, end;
		char p[5];

		/* Behind the code. */
		if (strstr(line, "libtest-now.so") &&
			sscanf(line, "%lx-%lx %4s", &begin, &end, p) == 3 && !strcmp(p, "r--p") &&
			begin > (uintptr_t)l.call) {
			sealed.at[sealed.n] = begin;
			sealed.end[sealed.n++] = end;
		}
	}
	fclose(f);
	assert_true(sealed.n > 0);
	for (int i = 0; i < sealed.n; i++)
		assert_false(mprotect((void *)sealed.at[i], sealed.end[i] - sealed.at[i],
			PROT_READ | PROT_WRITE));
	granted = 0;
	assert_int_equal(rt_imports_divert(&answer), 1); /* outside of them */
	assert_int_equal(l.call(), 1);
	granted = -1;
	for (int i = 0; i < sealed.n; i++)
		assert_false(
			mprotect((void *)sealed.at[i], sealed.end[i] - sealed.at[i], PROT_READ));
	assert_int_equal(rt_imports_divert(&answer), 1);
	assert_int_equal(l.call(), 2);
	assert_int_equal(rt_imports_restore(&answer), 2);
	dlclose(l.handle);
}

static int three(void)
{
	return 3;
}

/* By the program, or by another tool. */
static void test_slots_with_another_function_are_left_alone(void **state)
{
	struct rt_import other = {"test_answer", (uintptr_t)three, (uintptr_t)two};
	struct library l;

	load(&l, "libtest-now.so", RTLD_NOW);
	assert_int_equal(rt_imports_divert(&other), 0);
	assert_true(rt_imports_replace("test_answer", (uintptr_t)three) >= 2);
	assert_int_equal(rt_imports_divert(&answer), 0);
	assert_int_equal(rt_imports_restore(&answer), 0);
	assert_int_equal(l.call(), 3);
	dlclose(l.handle);
}

struct caller {
	struct library l;
	uint64_t calls, wrong;
	uint32_t stop;
};

static void *keep_calling(void *arg)
{
	struct caller *c = arg;

	while (!rt_load(&c->stop)) {
		int a = c->l.call(), b = c->l.call_by_address();

		c->wrong += (a != 1 && a != 2) || (b != 1 && b != 2);
		rt_store(&c->calls, c->calls + 1);
	}
	return NULL;
}

static void test_a_thread_calls_meanwhile(void **state)
{
	const char *name = *state;
	struct caller c = {.calls = 0};
	pthread_t thread;

	load(&c.l, name, strstr(name, "lazy") ? RTLD_LAZY : RTLD_NOW);
	assert_int_equal(c.l.call(), 1);
	assert_false(pthread_create(&thread, NULL, keep_calling, &c));
	for (int i = 0; i < 200; i++) {
		uint64_t calls = rt_load(&c.calls);

		assert_int_equal(rt_imports_divert(&answer), 2);
		while (rt_load(&c.calls) == calls)
			;
		assert_int_equal(rt_imports_restore(&answer), 2);
	}
	rt_store(&c.stop, 1);
	pthread_join(thread, NULL);
	assert_int_equal(c.wrong, 0);
	dlclose(c.l.handle);
}

int main(void)
{
	static char path[4096];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_calls_are_replaced, "libtest-now.so"),
		cmocka_unit_test_prestate(test_calls_are_replaced, "libtest-lazy.so"),
		cmocka_unit_test(test_the_object_with_the_address_keeps_its_calls),
		cmocka_unit_test(test_a_function_that_nobody_imports),
		cmocka_unit_test_prestate(test_calls_are_diverted_and_restored, "libtest-now.so"),
		cmocka_unit_test_prestate(test_calls_are_diverted_and_restored, "libtest-lazy.so"),
		cmocka_unit_test(test_nothing_becomes_executable),
		cmocka_unit_test(test_drivers_keep_their_calls),
		cmocka_unit_test(test_objects_come_and_go_meanwhile),
		cmocka_unit_test(test_refused_protections),
		cmocka_unit_test(test_pages_that_the_loader_fills_are_left_to_it),
		cmocka_unit_test(test_slots_with_another_function_are_left_alone),
		cmocka_unit_test_prestate(test_a_thread_calls_meanwhile, "libtest-now.so"),
		cmocka_unit_test_prestate(test_a_thread_calls_meanwhile, "libtest-lazy.so"),
	};

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0)
		return 1;
	*strrchr(path, '/') = '\0';
	programs_folder = path;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
