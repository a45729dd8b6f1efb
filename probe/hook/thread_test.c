/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots, and when memory that polling threads may read can be freed. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "thread.h"

static uint32_t used_slots(void)
{
	uint32_t n = 0;

	for (int i = 0; i < RT_MAX_THREADS; i++)
		n += rt_load(&rt_threads[i].used) != 0;
	return n;
}

/* A thread that executes one command at a time. */
enum order { ORDER_NONE, ORDER_CLAIM, ORDER_ENTER, ORDER_EXIT, ORDER_END };

struct worker {
	pthread_t thread;
	uint32_t order, done;
	struct rt_thread *slot;
};

static void *execute(void *arg)
{
	struct worker *p = arg;

	for (;;) {
		uint32_t order = rt_load_acquire(&p->order);

		if (order == p->done) {
			sched_yield();
			continue;
		}
		if (order % 8 == ORDER_CLAIM)
			p->slot = rt_thread_claim(order);
		else if (order % 8 == ORDER_ENTER)
			rt_thread_enter(p->slot);
		else if (order % 8 == ORDER_EXIT)
			rt_thread_exit(p->slot);
		rt_store_release(&p->done, order);
		if (order % 8 == ORDER_END)
			return NULL;
	}
}

static void command(struct worker *p, enum order what)
{
	uint32_t order = (p->order / 8 + 1) * 8 + what;

	rt_store_release(&p->order, order);
	while (rt_load_acquire(&p->done) != order)
		sched_yield();
}

static void start_worker(struct worker *p)
{
	memset(p, 0, sizeof(*p));
	assert_int_equal(pthread_create(&p->thread, NULL, execute, p), 0);
	command(p, ORDER_CLAIM);
}

static void stop_worker(struct worker *p)
{
	command(p, ORDER_END);
	pthread_join(p->thread, NULL);
}

static void test_ending_thread_frees_its_slot(void **state)
{
	struct worker p;
	uint32_t before = used_slots(), index;

	start_worker(&p);
	assert_int_equal(used_slots(), before + 1);
	index = p.slot->index;
	stop_worker(&p);
	assert_int_equal(used_slots(), before);
	start_worker(&p);
	assert_int_equal(p.slot->index, index);
	stop_worker(&p);
}

static void test_more_threads_than_slots_get_none(void **state)
{
	static struct worker p[RT_MAX_THREADS + 3];
	struct rt_thread_set seen = {0};
	uint64_t searches;

	for (int i = 0; i < RT_MAX_THREADS + 3; i++)
		start_worker(&p[i]);
	for (int i = 0; i < RT_MAX_THREADS; i++) {
		assert_non_null(p[i].slot);
		assert_false(rt_thread_set_has(&seen, p[i].slot->index));
		rt_thread_set_add(&seen, p[i].slot->index);
	}
	for (int i = RT_MAX_THREADS; i < RT_MAX_THREADS + 3; i++)
		assert_null(p[i].slot);
	assert_int_equal(rt_thread_set_count(&seen), RT_MAX_THREADS);
	assert_int_equal(rt_threads_top(), RT_MAX_THREADS);
	/* Each thread has searched once; it searches again only after a slot was freed. */
	searches = rt_load(&rt_thread_searches);
	for (int i = RT_MAX_THREADS; i < RT_MAX_THREADS + 3; i++) {
		command(&p[i], ORDER_CLAIM);
		assert_null(p[i].slot);
	}
	assert_int_equal(rt_load(&rt_thread_searches), searches);
	/* The next thread that ends frees its slot. */
	stop_worker(&p[7]);
	command(&p[RT_MAX_THREADS], ORDER_CLAIM);
	assert_non_null(p[RT_MAX_THREADS].slot);
	for (int i = 0; i < RT_MAX_THREADS + 3; i++) {
		if (i != 7)
			stop_worker(&p[i]);
	}
	assert_int_equal(used_slots(), 0);
}

static void test_thread_in_a_hook_is_waited_for(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	command(&p, ORDER_ENTER);
	rt_grace_begin(&g);
	assert_false(rt_grace_over(&g));
	command(&p, ORDER_EXIT);
	assert_true(rt_grace_over(&g));
	/* The thread cannot reach an unlinked object by entering again. */
	command(&p, ORDER_ENTER);
	assert_true(rt_grace_over(&g));
	command(&p, ORDER_EXIT);
	stop_worker(&p);
}

static void test_thread_outside_of_a_hook_is_not_waited_for(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	rt_grace_begin(&g);
	assert_true(rt_grace_over(&g));
	command(&p, ORDER_ENTER);
	assert_true(rt_grace_over(&g));
	command(&p, ORDER_EXIT);
	stop_worker(&p);
}

/* A thread that is outside may have loaded the removed callback: its next visit is in it. */
static void test_callback_lists_wait_for_a_whole_visit_and_another(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	rt_grace_begin(&g);
	assert_false(rt_grace_passed(&g));
	command(&p, ORDER_ENTER);
	assert_false(rt_grace_passed(&g));
	command(&p, ORDER_EXIT);
	assert_false(rt_grace_passed(&g));
	command(&p, ORDER_ENTER);
	assert_true(rt_grace_passed(&g));
	command(&p, ORDER_EXIT);
	assert_true(rt_grace_passed(&g));
	stop_worker(&p);
}

/* A thread that was in a hook may still read the callback list after it leaves. */
static void test_callback_lists_wait_for_a_further_visit(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	command(&p, ORDER_ENTER);
	rt_grace_begin(&g);
	assert_false(rt_grace_passed(&g));
	command(&p, ORDER_EXIT);
	assert_false(rt_grace_passed(&g));
	command(&p, ORDER_ENTER);
	assert_true(rt_grace_passed(&g));
	command(&p, ORDER_EXIT);
	stop_worker(&p);
}

static void test_callback_lists_do_not_wait_for_dead_threads(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	rt_grace_begin(&g);
	assert_false(rt_grace_passed(&g));
	stop_worker(&p);
	assert_true(rt_grace_passed(&g));
}

static void test_epoch_is_set_not_toggled(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	command(&p, ORDER_ENTER);
	rt_grace_begin(&g);
	/* As after a jump out of the hook: the earlier visit has ended, this one has not. */
	command(&p, ORDER_ENTER);
	assert_true(rt_grace_over(&g));
	rt_grace_begin(&g);
	assert_false(rt_grace_over(&g));
	command(&p, ORDER_EXIT);
	assert_true(rt_grace_over(&g));
	command(&p, ORDER_EXIT);
	rt_grace_begin(&g);
	assert_true(rt_grace_over(&g));
	stop_worker(&p);
}

static void test_slot_of_a_thread_that_ended_inside_is_even(void **state)
{
	struct rt_grace g;
	struct worker p;

	start_worker(&p);
	command(&p, ORDER_ENTER);
	rt_grace_begin(&g);
	stop_worker(&p);
	assert_true(rt_grace_over(&g));
	start_worker(&p);
	rt_grace_begin(&g);
	assert_true(rt_grace_over(&g));
	command(&p, ORDER_ENTER);
	rt_grace_begin(&g);
	assert_false(rt_grace_over(&g));
	command(&p, ORDER_EXIT);
	stop_worker(&p);
}

static void test_jumps_and_nested_calls_are_distinguished(void **state)
{
	struct rt_thread t = {.epoch = 7, .stack = 0x7fff00000000};

	assert_true(rt_thread_jumped(&t, t.stack));
	assert_true(rt_thread_jumped(&t, t.stack + 4096));
	/* Hooks have frames of different sizes. */
	assert_true(rt_thread_jumped(&t, t.stack - 64));
	/* The frame of a signal handler, and an alternate stack. */
	assert_false(rt_thread_jumped(&t, t.stack - 1024));
	assert_false(rt_thread_jumped(&t, t.stack - (1ull << 30)));
	assert_false(rt_thread_jumped(&t, t.stack + (1ull << 30)));
}

/* A thread that always polls from a deeper frame after a jump. */
static void test_nested_calls_are_bounded(void **state)
{
	struct rt_thread t = {.epoch = 7, .stack = 0x7fff00000000};
	uint64_t calls = 0;

	while (!rt_thread_jumped(&t, t.stack - 4096))
		assert_in_range(++calls, 1, 100000);
	assert_in_range(calls, 100, 100000);
	/* The count restarts with another visit. */
	t.epoch += 2;
	assert_false(rt_thread_jumped(&t, t.stack - 4096));
}

/* ---- stress ---- */

#define THREADS 4u
#define SWAPS   400u

struct object {
	uint64_t value, same;
};

static struct object *current;
static uint32_t quit;

static void *poll_flat_out(void *arg)
{
	struct rt_thread *t = rt_thread_claim(0);
	uint64_t *bad = arg;

	for (unsigned n = 0; !rt_load(&quit); n++) {
		struct object *o;

		/* Otherwise, on few CPUs, its time slice always ends in the hook. */
		if (n % 64 == 0)
			sched_yield();

		rt_thread_enter(t);
		o = rt_load_acquire(&current); /* pairs with the release in swap_and_free() */
		if (o && (o->value ^ o->same) != UINT64_MAX)
			(*bad)++;
		rt_thread_exit(t);
	}
	return NULL;
}

/* Starts and ends repeatedly, so that slots change owners meanwhile. */
static void *come_and_go(void *arg)
{
	while (!rt_load(&quit)) {
		struct worker p;

		start_worker(&p);
		if (p.slot) {
			command(&p, ORDER_ENTER);
			command(&p, ORDER_EXIT);
		}
		stop_worker(&p);
	}
	return NULL;
}

/* Freed memory is poisoned, so that a sanitizer detects late accesses. */
static void swap_and_free(uint64_t i)
{
	struct object *next = i % 5 ? malloc(sizeof(*next)) : NULL, *old = current;
	struct rt_grace g;

	if (next)
		*next = (struct object){.value = i, .same = ~i};
	rt_store_release(&current, next);
	rt_grace_begin(&g);
	while (!rt_grace_over(&g))
		sched_yield();
	if (old)
		memset(old, 0, sizeof(*old));
	free(old);
}

static void stress(void)
{
	uint64_t bad[THREADS] = {0};
	pthread_t t[THREADS], changing;

	rt_store(&quit, 0);
	current = NULL;
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, poll_flat_out, &bad[i]), 0);
	assert_int_equal(pthread_create(&changing, NULL, come_and_go, NULL), 0);
	for (uint64_t i = 1; i <= SWAPS; i++)
		swap_and_free(i);
	rt_store(&quit, 1);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(bad[i], 0);
	}
	pthread_join(changing, NULL);
	free(current);
}

static void test_freed_memory_is_not_accessed(void **state)
{
	stress();
}

/* In this thread, and in those that it starts. False: not possible here. */
static bool refuse_membarrier(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {.len = sizeof(f) / sizeof(f[0]), .filter = f};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

/* The last test, as nothing undoes this. */
static void test_freed_memory_is_not_accessed_once_membarrier_is_refused(void **state)
{
	struct rt_grace g;

#ifdef __SANITIZE_THREAD__
	print_message("skipped: ThreadSanitizer knows no fences\n");
	skip();
#endif
	assert_false(rt_thread_fence);
	if (!refuse_membarrier()) {
		print_message("skipped: the kernel refuses filters of seccomp\n");
		skip();
	}
	rt_grace_begin(&g);
	assert_true(rt_thread_fence);
	stress();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ending_thread_frees_its_slot),
		cmocka_unit_test(test_more_threads_than_slots_get_none),
		cmocka_unit_test(test_thread_in_a_hook_is_waited_for),
		cmocka_unit_test(test_thread_outside_of_a_hook_is_not_waited_for),
		cmocka_unit_test(test_callback_lists_wait_for_a_whole_visit_and_another),
		cmocka_unit_test(test_callback_lists_wait_for_a_further_visit),
		cmocka_unit_test(test_callback_lists_do_not_wait_for_dead_threads),
		cmocka_unit_test(test_epoch_is_set_not_toggled),
		cmocka_unit_test(test_slot_of_a_thread_that_ended_inside_is_even),
		cmocka_unit_test(test_jumps_and_nested_calls_are_distinguished),
		cmocka_unit_test(test_nested_calls_are_bounded),
		cmocka_unit_test(test_freed_memory_is_not_accessed),
		cmocka_unit_test(test_freed_memory_is_not_accessed_once_membarrier_is_refused),
	};

	if (rt_threads_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
