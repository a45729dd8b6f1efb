/* SPDX-License-Identifier: BSD-3-Clause */
/* Hooks between a jump of the TSC and the control thread's next tick. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "common/clock.h"
#include "hook.h"
#include "probe/capture/session.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

/* The kernel's timer interrupt: 100 a second at least. */
#define COARSE_NS 20000000u

static struct rt_session *open_session(void)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 96,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = TEST_RING};

	return test_session_open(&open, &target, NULL);
}

static void poll_some(uint16_t port)
{
	test_port_send(port, 4);
	assert_int_equal(test_port_poll(port, 32), 4);
}

static uint64_t stamped_ns(const struct rt_session *s)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < RT_MAX_RINGS; i++)
		ns = s->rings[i].last_ns > ns ? s->rings[i].last_ns : ns;
	return ns;
}

/* Packets have correct times although the base of the line is far away. */
static void record_with_line(int away_s, uint16_t port)
{
	struct rt_session *s = open_session();
	struct rt_clock_point before, after;
	struct rt_clock_line line = *test_clock();

	poll_some(port); /* so that this thread has a ring */
	test_session_arm(s, test_clock());
	rt_clock_take(&before);
	line.tsc_base = before.tsc - (uint64_t)away_s * rte_get_tsc_hz();
	rt_hook_set_clock(&line);
	poll_some(port);
	rt_clock_take(&after);
	assert_in_range(stamped_ns(s), before.real_ns - COARSE_NS, after.real_ns);
	test_session_end(s);
	rt_session_free(s);
	rt_hook_set_clock(test_clock());
}

static void test_hooks_use_the_time_of_the_kernel(void **state)
{
	uint16_t port = test_port_make("net_ring_jump");

	record_with_line(-3600, port); /* it jumped back by an hour */
	record_with_line(-1, port);
	record_with_line(3600, port);
	test_port_remove(port);
}

/* Counters only grow, and no gap is as long as the jump. */
static void test_stats_skip_a_backward_jump(void **state)
{
	static struct rt_monitor m;
	uint16_t port = test_port_make("net_ring_jump");
	const uint64_t hour = 3600 * rte_get_tsc_hz();
	const struct rt_stat_window *w;
	const struct rt_stat_thread *t;
	struct rt_stat_own *o;
	uint64_t idle;

	test_monitor(&m, RT_COLLECT_POLLS | RT_COLLECT_BUSY | RT_COLLECT_GAPS, 1);
	poll_some(port);
	test_port_poll(port, 32); /* idle from here on */
	t = test_thread();
	o = &rt_hook_get(port, 0, RT_DIR_RX)->stats->rows[rt_thread_self->index].own;
	idle = t->idle_cycles;
	o->since_tsc += hour;
	o->last_tsc += hour;
	poll_some(port);
	assert_int_equal(t->idle_cycles, idle);
	assert_int_equal(t->gaps_idle[RT_STAT_GAP_SIZES - 1], 0);
	w = &t->window[o->window % RT_STAT_WINDOWS];
	for (unsigned i = 0; i < RT_STAT_WORST; i++)
		assert_in_range(w->gap[i].cycles, 0, hour);
	test_monitor_end(&m);
	test_port_remove(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hooks_use_the_time_of_the_kernel),
		cmocka_unit_test(test_stats_skip_a_backward_jump),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
