/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of threads in a process that has used up the keys whose values need no memory. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "thread.h"

#define KEYS    32u
#define THREADS (RT_MAX_THREADS + 44u)

static uint32_t used_slots(void)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < RT_MAX_THREADS; i++)
		n += rt_load(&rt_threads[i].used) != 0;
	return n;
}

static void *claim(void *arg)
{
	struct rt_thread *t = rt_thread_claim(0);

	if (t)
		rt_thread_enter(t); /* as if it ended in a hook */
	return t;
}

/* The kernel reports the end of a thread some time after pthread_join() has returned. */
static void test_slots_of_ended_threads_are_returned(void **state)
{
	struct rt_thread *own = rt_thread_claim(0);
	struct rt_grace g;

	for (unsigned i = 0; i < THREADS; i++) {
		pthread_t thread;
		void *slot;

		assert_int_equal(pthread_create(&thread, NULL, claim, NULL), 0);
		pthread_join(thread, &slot);
		assert_ptr_equal(slot, &rt_threads[own->index + 1]);
		assert_int_equal(used_slots(), 2);
		rt_grace_begin(&g);
		assert_false(rt_grace_over(&g));
		do {
			sched_yield();
			rt_threads_return();
		} while (used_slots() > 1);
		assert_true(rt_grace_over(&g));
	}
	assert_int_equal(rt_load(&own->used), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_of_ended_threads_are_returned),
	};
	pthread_key_t key;

	for (unsigned i = 0; i < KEYS; i++) {
		if (pthread_key_create(&key, NULL))
			return 1;
	}
	if (rt_threads_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
