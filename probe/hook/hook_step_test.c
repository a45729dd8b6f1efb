/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal handler that polls, at each instruction of a hook. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/test_eal.h"
#include "probe/above.h"
#include "hook.h"
#include "probe/test_ports.h"
#include "thread.h"

static struct rt_hook *hook, *nested_hook;
static uint32_t steps, inside, ended; /* ended: visits whose epoch a handler has made even */

static void poll_nested(int sig)
{
	uint64_t before = rt_thread_self->epoch;

	rt_hook_rx(0, 0, NULL, 0, 32, nested_hook);
	steps++;
	inside += before & 1;
	ended += (before & 1) && rt_thread_self->epoch != before;
}

/* Sets the trap flag: a SIGTRAP after each instruction. Handlers run without it. */
static void visit_step_by_step(void)
{
#ifdef __x86_64__
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	rt_hook_rx(0, 0, NULL, 0, 32, hook);
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
#endif
}

static void test_no_handler_ends_the_visit_that_it_interrupts(void **state)
{
	struct sigaction act = {.sa_handler = poll_nested};
	uint16_t port = test_port_make("net_ring_0"), other = test_port_make("net_ring_1");

#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
	skip(); /* no trap flag; signals are delayed */
#endif
	hook = rt_hook_get(port, 0, RT_DIR_RX);
	nested_hook = rt_hook_get(other, 0, RT_DIR_RX);
	assert_non_null(hook);
	assert_non_null(nested_hook);
	rt_hook_rx(0, 0, NULL, 0, 32, hook); /* takes the slot */
	assert_int_equal(sigaction(SIGTRAP, &act, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		visit_step_by_step();
	assert_int_equal(ended, 0);
	assert_in_range(inside, 10, steps - 10);
	assert_false(rt_thread_inside(rt_thread_self));
	test_port_remove(port);
	test_port_remove(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_handler_ends_the_visit_that_it_interrupts),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
