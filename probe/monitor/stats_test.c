/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling statistics compared with the calls of this thread. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "probe/hook/hook.h"
#include "probe/dpdk/ports.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define POLLING (RT_COLLECT_POLLS | RT_COLLECT_BUSY)
#define WORK    100000 /* cycles; more than a poll takes, less than a time slice */

static uint16_t port;

static int make_port(void **state)
{
	port = test_port_make("net_ring_0");
	return 0;
}

static int remove_port(void **state)
{
	test_monitors_drop();
	test_port_remove(port);
	return 0;
}

static void poll_sizes(const unsigned *sizes, unsigned count, unsigned nb_pkts)
{
	for (unsigned i = 0; i < count; i++) {
		if (sizes[i])
			test_port_send(port, sizes[i]);
		assert_int_equal(test_port_poll(port, nb_pkts), sizes[i]);
	}
}

static void check_sizes(uint32_t collectors)
{
	static const unsigned sizes[] = {0, 1, 5, 5, 32, 0, 0, 64, 512, 5, 600, 513};
	static struct rt_monitor m;
	const struct rt_stat_hook *rx, *tx;

	test_monitor(&m, collectors, 1);
	poll_sizes(sizes, RTE_DIM(sizes), 700);
	rx = test_block(port, RT_DIR_RX);
	tx = test_block(port, RT_DIR_TX);
	assert_int_equal(rx->burst[0], 3);
	assert_int_equal(tx->burst[0], 0);
	for (int i = 0; i < 2; i++) {
		const struct rt_stat_hook *b = i ? rx : tx;

		assert_int_equal(b->burst[1], 1);
		assert_int_equal(b->burst[5], 3);
		assert_int_equal(b->burst[32], 1);
		assert_int_equal(b->burst[64], 1);
		assert_int_equal(b->burst[512], 1);
		assert_int_equal(test_sum(b->burst + 1, RT_STAT_BURSTS), 7);
		assert_int_equal(b->big_polls, 2);
		assert_int_equal(b->big_packets, 1113);
	}
	assert_int_equal(rx->max_burst, 700);
	assert_int_equal(rx->generation, test_thread()->generation);
	assert_int_equal(rx->byte_packets, 0);
	test_monitor_end(&m);
}

static void test_bursts_are_counted_by_size(void **state)
{
	check_sizes(RT_COLLECT_POLLS);
	check_sizes(POLLING);
	check_sizes(RT_COLLECT_POLLS | RT_COLLECT_GAPS);
	check_sizes(RT_COLLECT_POLLS | RT_COLLECT_LATENCY);
}

/* A burst in two polls: one that requests fewer packets than there are, and one that receives the
 * rest. */
static void test_max_burst_is_the_largest_request(void **state)
{
	static struct rt_monitor m;
	const struct rt_stat_hook *rx;

	test_monitor(&m, POLLING, 1);
	test_port_send(port, 40);
	assert_int_equal(test_port_poll(port, 32), 32);
	rx = test_block(port, RT_DIR_RX);
	assert_int_equal(rx->max_burst, 32);
	assert_int_equal(test_port_poll(port, 16), 8);
	assert_int_equal(rx->max_burst, 32);
	assert_int_equal(test_port_poll(port, 64), 0);
	assert_int_equal(rx->max_burst, 64);
	assert_int_equal(rx->burst[32] + rx->burst[8] + rx->burst[0], 3);
	test_monitor_end(&m);
}

static void test_bytes_are_those_of_the_packets(void **state)
{
	static struct rt_monitor m;
	static const uint16_t cuts[] = {100, 50};
	struct rte_mbuf *p[2];

	test_monitor(&m, RT_COLLECT_BYTES, 1);
	p[0] = test_frame(1, 1000);
	p[1] = test_chain(2, 300, cuts, 2);
	assert_int_equal(rte_eth_tx_burst(port, 0, p, 2), 2);
	assert_int_equal(test_port_poll(port, 32), 2);
	for (int dir = 0; dir < 2; dir++) {
		assert_int_equal(test_block(port, dir)->bytes, 1300);
		assert_int_equal(test_block(port, dir)->byte_packets, 2);
		assert_int_equal(test_sum(test_block(port, dir)->burst, RT_STAT_BURSTS + 1), 0);
	}
	test_monitor_end(&m);
}

/* ---- attached monitors ---- */

static void test_callbacks_exist_only_with_a_monitor(void **state)
{
	static struct rt_monitor a, b;

	test_monitor(&a, RT_COLLECT_POOLS, 1);
	assert_int_equal(test_port_callbacks(port), 0);
	test_monitor(&b, RT_COLLECT_POLLS, 1);
	assert_int_equal(test_port_callbacks(port), 2);
	test_monitor(&a, POLLING, 1);
	assert_int_equal(rt_stat_current->header->collectors, POLLING);
	rt_stats_detach(&b, test_clock());
	assert_int_equal(test_port_callbacks(port), 2);
	test_monitor(&a, 0, 1);
	assert_int_equal(test_port_callbacks(port), 0);
	assert_non_null(rt_stat_current);
	test_monitor_end(&a);
	assert_null(rt_stat_current);
}

static void test_counters_continue_for_other_monitors(void **state)
{
	static struct rt_monitor a, b;
	const struct rt_stat_hook *rx;
	uint32_t switched;

	test_monitor(&a, RT_COLLECT_POLLS, 1);
	test_port_poll(port, 32);
	rx = test_block(port, RT_DIR_RX);
	switched = rt_stat_current->header->switched;
	test_monitor(&b, RT_COLLECT_POLLS | RT_COLLECT_BYTES, 1);
	assert_int_not_equal(rt_stat_current->header->switched, switched);
	test_port_poll(port, 32);
	switched = rt_stat_current->header->switched;
	rt_stats_detach(&b, test_clock());
	assert_int_not_equal(rt_stat_current->header->switched, switched);
	test_port_poll(port, 32);
	assert_ptr_equal(test_block(port, RT_DIR_RX), rx);
	assert_int_equal(rx->burst[0], 3);
	test_monitor_end(&a);
}

static void test_smallest_every_of_all_monitors_applies(void **state)
{
	static struct rt_monitor a, b, c;

	test_monitor(&a, RT_COLLECT_LATENCY, 100);
	assert_int_equal(rt_stat_current->header->latency_every, 100);
	test_monitor(&b, RT_COLLECT_LATENCY, 10);
	assert_int_equal(rt_stat_current->header->latency_every, 10);
	test_monitor(&c, RT_COLLECT_POLLS, 1);
	assert_int_equal(rt_stat_current->header->latency_every, 10);
	rt_stats_detach(&b, test_clock());
	assert_int_equal(rt_stat_current->header->latency_every, 100);
	rt_stats_detach(&a, test_clock());
	test_monitor_end(&c);
}

static void test_unknown_collectors_are_refused(void **state)
{
	static struct rt_monitor m;
	char err[RT_TEXT_LEN] = "";

	assert_int_equal(rt_stats_attach(&m, RT_COLLECT_ALL + 1, 1, test_clock(), err), -EINVAL);
	assert_non_null(strstr(err, "collector"));
	assert_false(m.attached);
	assert_null(rt_stat_current);
}

/* ---- work and idling ---- */

struct moment {
	uint64_t before, after;
};

static struct moment poll_at(unsigned expected)
{
	struct moment m;

	m.before = rt_tsc();
	assert_int_equal(test_port_poll(port, 64), expected);
	m.after = rt_tsc();
	return m;
}

static void assert_between(uint64_t cycles, struct moment from, struct moment to)
{
	assert_in_range(cycles, to.before - from.after, to.after - from.before);
}

static void test_busy_time_lasts_from_a_burst_to_the_next_poll(void **state)
{
	static struct rt_monitor m;
	const struct rt_stat_thread *t;
	struct moment burst, more, empty, again;

	test_monitor(&m, POLLING, 1);
	test_port_send(port, 60);
	burst = poll_at(60);
	t = test_thread();
	assert_int_equal(t->is_busy, 1);
	assert_in_range(t->since_tsc, burst.before, burst.after);
	test_spin(WORK);
	test_port_send(port, 3);
	more = poll_at(3);
	assert_in_range(t->since_tsc, burst.before, burst.after);
	assert_true(more.before - burst.after >= WORK);
	test_spin(WORK);
	empty = poll_at(0);
	assert_between(t->busy_cycles, burst, empty);
	assert_int_equal(t->idle_cycles, 0);
	assert_int_equal(t->is_busy, 0);
	assert_in_range(t->since_tsc, empty.before, empty.after);
	poll_at(0);
	test_spin(WORK / 2);
	test_port_send(port, 1);
	again = poll_at(1);
	assert_between(t->idle_cycles, empty, again);
	assert_between(t->busy_cycles, burst, empty);
	assert_int_equal(t->busy_periods, 1);
	assert_int_equal(t->busy_period_packets[5], 1); /* 63 packets */
	assert_int_equal(test_sum(t->busy_period_packets, 40), 1);
	test_monitor_end(&m);
}

/* Time without an attached monitor is neither busy nor idle. */
static void test_time_without_a_monitor_does_not_count(void **state)
{
	static struct rt_monitor keep, m;
	const struct rt_stat_thread *t;
	struct moment first, last;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	test_monitor(&m, POLLING, 1);
	test_port_send(port, 1);
	first = poll_at(1);
	t = test_thread();
	test_monitor(&m, 0, 1);
	last = poll_at(0);
	assert_between(t->busy_cycles, first, last);
	assert_int_equal(t->since_tsc, 0);
	test_spin(WORK);
	test_monitor(&m, POLLING, 1);
	poll_at(0);
	assert_between(t->busy_cycles, first, last);
	assert_int_equal(t->idle_cycles, 0);
	test_monitor(&m, 0, 1);
	test_monitor(&m, POLLING, 1);
	poll_at(0);
	assert_int_equal(t->idle_cycles, 0);
	/* Switching by another monitor does not interrupt it. */
	first.before = first.after = t->since_tsc;
	test_monitor(&keep, RT_COLLECT_POLLS | RT_COLLECT_BYTES, 1);
	poll_at(0);
	assert_int_equal(t->since_tsc, first.after);
	test_port_send(port, 1);
	last = poll_at(1);
	assert_between(t->idle_cycles, first, last);
	rt_stats_detach(&m, test_clock());
	test_monitor_end(&keep);
}

static const struct rt_stat_window *window(void)
{
	return &test_thread()->window[rt_stat_mode.window % RT_STAT_WINDOWS];
}

static void test_microbursts_are_logged(void **state)
{
	static const unsigned sizes[] = {7, 0, 60, 3, 0, 9, 0};
	static struct rt_monitor m;
	const struct rt_stat_window *w;
	uint64_t packets = 0, before = rt_tsc();

	test_monitor(&m, POLLING, 1);
	test_stats_tick();
	poll_sizes(sizes, RTE_DIM(sizes), 64);
	w = window();
	assert_int_equal(w->number, rt_stat_mode.window);
	for (unsigned i = 0; i < RT_STAT_WORST; i++) {
		packets += w->burst[i].packets;
		assert_true(w->burst[i].packets == 0 || w->burst[i].packets == 7 ||
			    w->burst[i].packets == 63 || w->burst[i].packets == 9);
		if (w->burst[i].packets)
			assert_in_range(w->burst[i].tsc, before, rt_tsc());
		assert_true(w->burst[i].cycles <= rt_tsc() - before);
	}
	assert_int_equal(packets, 79);
	assert_int_equal(test_thread()->busy_periods, 3);
	test_monitor_end(&m);
}

static void test_only_the_largest_bursts_are_kept(void **state)
{
	static struct rt_monitor m;
	uint64_t packets = 0;

	test_monitor(&m, POLLING, 1);
	for (unsigned i = 1; i <= 20; i++)
		poll_sizes((const unsigned[]){i * 7 % 23, 0}, 2, 64); /* 1 … 22, but 9 and 16 */
	for (unsigned i = 0; i < RT_STAT_WORST; i++) {
		assert_in_range(window()->burst[i].packets, 14, 22);
		packets += window()->burst[i].packets;
	}
	assert_int_equal(packets, 14 + 15 + 17 + 18 + 19 + 20 + 21 + 22);
	assert_int_equal(test_thread()->busy_periods, 20);
	test_monitor_end(&m);
}

/* ---- gaps ---- */

static const struct rt_stat_gap *worst(void)
{
	const struct rt_stat_gap *g = &window()->gap[0];

	for (unsigned i = 1; i < RT_STAT_WORST; i++) {
		if (window()->gap[i].cycles > g->cycles)
			g = &window()->gap[i];
	}
	return g;
}

static void test_longest_gap_is_found(void **state)
{
	static struct rt_monitor m;
	struct moment from, to;
	const struct rt_stat_thread *t;

	test_monitor(&m, RT_COLLECT_GAPS, 1);
	test_stats_tick();
	for (unsigned i = 0; i < 100; i++)
		poll_at(0);
	test_port_send(port, 17);
	from = poll_at(17);
	/* Longer than the gaps that the scheduler caused. */
	test_spin(WORK + 2 * (worst()->cycles));
	to = poll_at(0);
	t = test_thread();
	assert_between(worst()->cycles, from, to);
	assert_in_range(worst()->tsc, from.before, from.after);
	assert_int_equal(worst()->packets, 17);
	assert_int_equal(worst()->port_index, test_port_index(port));
	assert_int_equal(worst()->queue, 0);
	assert_int_equal(test_sum(t->gaps_busy, RT_STAT_GAP_SIZES), 1);
	assert_int_equal(t->gaps_busy[63 - __builtin_clzll(worst()->cycles)], 1);
	assert_int_equal(test_sum(t->gaps_idle, RT_STAT_GAP_SIZES), 100);
	test_monitor_end(&m);
}

/* A thread that hangs cannot publish this itself. */
static void test_last_poll_is_published(void **state)
{
	static struct rt_monitor m;
	const struct rt_stat_thread *t;
	struct moment last;

	test_monitor(&m, RT_COLLECT_GAPS, 1);
	test_port_send(port, 17);
	last = poll_at(17);
	test_stats_tick();
	t = test_thread();
	assert_in_range(t->poll_tsc, last.before, last.after);
	assert_true(t->looked_tsc > t->poll_tsc);
	assert_int_equal(t->poll_packets, 17);
	assert_int_equal(t->poll_port, test_port_index(port));
	assert_int_equal(t->poll_holds, 1);
	test_port_send(port, 1);
	test_stats_tick();
	assert_in_range(t->poll_tsc, last.before, last.after);
	assert_int_equal(t->poll_holds, 0);
	test_monitor_end(&m);
	/* A later one has not been observed: it is not the last one. */
	test_monitor(&m, RT_COLLECT_POLLS, 1);
	test_stats_tick();
	assert_int_equal(test_thread()->poll_tsc, 0);
	test_monitor_end(&m);
}

static void test_windows_restart(void **state)
{
	static struct rt_monitor m;
	uint32_t number;
	unsigned used = 0;

	test_monitor(&m, POLLING | RT_COLLECT_GAPS, 1);
	for (unsigned i = 0; i < 2 * RT_STAT_WINDOWS; i++) {
		test_stats_tick();
		number = rt_stat_mode.window;
		poll_at(0);
		poll_at(0);
		assert_int_equal(window()->number, number);
		assert_int_equal(test_thread()->window_next, number + 1);
	}
	for (unsigned i = 0; i < RT_STAT_WORST; i++)
		used += window()->gap[i].cycles != 0;
	assert_int_equal(used, 2);
	for (unsigned i = 0; i < RT_STAT_WINDOWS; i++)
		assert_in_range(
			test_thread()->window[i].number, number - RT_STAT_WINDOWS + 1, number);
	test_monitor_end(&m);
}

static void test_gaps_without_a_monitor_do_not_count(void **state)
{
	static struct rt_monitor m, keep;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	test_monitor(&m, RT_COLLECT_GAPS, 1);
	poll_at(0);
	test_monitor(&m, 0, 1);
	poll_at(0);
	test_monitor(&m, RT_COLLECT_GAPS, 1);
	poll_at(0);
	assert_int_equal(test_sum(test_thread()->gaps_idle, RT_STAT_GAP_SIZES), 0);
	poll_at(0);
	assert_int_equal(test_sum(test_thread()->gaps_idle, RT_STAT_GAP_SIZES), 1);
	rt_stats_detach(&m, test_clock());
	test_monitor_end(&keep);
}

/* ---- logs of intervals ---- */

#define LOGGED (RT_COLLECT_GAPS | RT_COLLECT_BUSY | RT_COLLECT_INTERVALS)

/* Intervals of a kind with that many packets, of least cycles and more. */
static unsigned logged(enum rt_stat_interval_kind kind, uint32_t packets, uint64_t least)
{
	const struct rt_stat_log *l = &rt_stat_current->logs[0];
	unsigned n = 0;

	for (uint64_t i = 0; i < l->head && i < RT_STAT_INTERVALS; i++)
		n += l->interval[i].kind == kind && l->interval[i].packets == packets &&
		     l->interval[i].cycles >= least;
	return n;
}

static void test_each_gap_is_logged_with_its_place(void **state)
{
	uint64_t least = 5 * (rte_get_tsc_hz() / (1000000000 / RT_STAT_INTERVAL_NS));
	static struct rt_monitor m;
	const struct rt_stat_log *l;
	struct moment from, to;

	test_monitor(&m, LOGGED, 1);
	test_stats_tick();
	poll_at(0);
	for (unsigned i = 0; i < 1000; i++) {
		test_port_send(port, 17);
		from = poll_at(17);
		test_spin(least);
		to = poll_at(0);
	}
	l = &rt_stat_current->logs[0];
	assert_int_equal(rt_stat_current->header->log_count, 1);
	assert_int_equal(&rt_stat_current->threads[l->thread], test_thread());
	assert_int_equal(l->generation, test_thread()->generation);
	assert_int_equal(logged(RT_INTERVAL_GAP, 17, least), 1000);
	assert_int_equal(logged(RT_INTERVAL_BUSY, 17, least), 1000);
	/* The poll that ends both. */
	for (uint64_t i = l->head - 2; i < l->head; i++) {
		const struct rt_stat_interval *v = &l->interval[i];
		bool gap = v->kind == RT_INTERVAL_GAP;

		assert_between(v->cycles, from, to);
		assert_in_range(v->tsc, from.before, from.after);
		assert_int_equal(v->port_index, gap ? test_port_index(port) : UINT8_MAX);
	}
	test_monitor_end(&m);
}

static void test_short_intervals_and_those_of_other_monitors_are_not_logged(void **state)
{
	static struct rt_monitor m;

	test_monitor(&m, LOGGED & ~RT_COLLECT_INTERVALS, 1);
	poll_at(0);
	test_spin(10 * WORK);
	poll_at(0);
	assert_int_equal(rt_stat_current->header->log_count, 0);
	test_monitor(&m, LOGGED, 1);
	rt_stat_current->header->interval_cycles = UINT64_MAX / 2;
	test_monitor(&m, LOGGED & ~RT_COLLECT_INTERVALS, 1);
	test_monitor(&m, LOGGED, 1);
	poll_at(0);
	test_spin(10 * WORK);
	poll_at(0);
	assert_int_equal(rt_stat_current->header->log_count, 0);
	test_monitor_end(&m);
}

static void test_intervals_without_a_log_are_counted(void **state)
{
	static struct rt_monitor m;

	test_monitor(&m, LOGGED, 1);
	poll_at(0);
	rt_stat_current->header->log_count = RT_STAT_LOGS;
	test_spin(10 * WORK);
	poll_at(0);
	test_stats_tick();
	assert_int_not_equal(rt_stat_current->header->no_log_intervals, 0);
	rt_stat_current->header->log_count = 0;
	test_monitor_end(&m);
}

/* ---- what the control thread adds ---- */

static void test_kernel_statistics_of_the_thread(void **state)
{
	static struct rt_monitor m;
	const struct rt_stat_thread *t;

	test_monitor(&m, POLLING, 1);
	poll_at(0);
	t = test_thread();
	assert_int_equal(t->generation, rt_thread_self->generation);
	assert_int_equal(t->tid, (uint32_t)syscall(SYS_gettid));
	assert_int_equal(t->lcore, rte_lcore_id());
	test_stats_tick();
	assert_int_equal(t->alive, 1);
	assert_true(t->read_ns > 0);
	assert_true(t->cpu_ns > 0);
	assert_in_range(t->cpu, 0, (uint32_t)sysconf(_SC_NPROCESSORS_CONF) - 1);
	assert_true(t->name[0]);
	test_monitor_end(&m);
}

#define with_port(f) cmocka_unit_test_setup_teardown(f, make_port, remove_port)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_port(test_bursts_are_counted_by_size),
		with_port(test_max_burst_is_the_largest_request),
		with_port(test_bytes_are_those_of_the_packets),
		with_port(test_callbacks_exist_only_with_a_monitor),
		with_port(test_counters_continue_for_other_monitors),
		with_port(test_smallest_every_of_all_monitors_applies),
		with_port(test_unknown_collectors_are_refused),
		with_port(test_busy_time_lasts_from_a_burst_to_the_next_poll),
		with_port(test_time_without_a_monitor_does_not_count),
		with_port(test_microbursts_are_logged),
		with_port(test_only_the_largest_bursts_are_kept),
		with_port(test_longest_gap_is_found),
		with_port(test_last_poll_is_published),
		with_port(test_windows_restart),
		with_port(test_gaps_without_a_monitor_do_not_count),
		with_port(test_each_gap_is_logged_with_its_place),
		with_port(test_short_intervals_and_those_of_other_monitors_are_not_logged),
		with_port(test_intervals_without_a_log_are_counted),
		with_port(test_kernel_statistics_of_the_thread),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
