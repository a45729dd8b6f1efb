/* SPDX-License-Identifier: BSD-3-Clause */
/* Events compared with the calls of this thread, for a tracer and for DPDK's tracing. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_trace.h>
#include <rte_trace_point.h>

#include "common/segment.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/given.h"
#include "probe/dpdk/ports.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "trace.h"
#include "points.h"

#define POLL_BYTES  16 /* an event of four 16-bit numbers */
#define RING_FRAMES 2000

static uint16_t port;

/* Arguments of the tracer below. */
static struct {
	bool on;
	unsigned calls[RT_TRACE_EVENTS];
	uint64_t nb_rx, nb_pkts; /* sums of rx_burst's */
	struct {
		uint16_t port, queue;
		uint64_t packets;
		uint32_t reason;
	} loss; /* the last drop or tx_refused */
	uint64_t timed, cycles;
} traced;

static bool enabled(void)
{
	return traced.on;
}

static void on_rx_burst(uint16_t p, uint16_t queue, uint16_t nb_pkts, uint16_t nb_rx)
{
	traced.calls[RT_TRACE_rx_burst]++;
	traced.nb_rx += nb_rx;
	traced.nb_pkts += nb_pkts;
}

static void on_empty_poll(uint16_t p, uint16_t queue, uint16_t nb_pkts)
{
	traced.calls[RT_TRACE_empty_poll]++;
}

static void on_tx_burst(uint16_t p, uint16_t queue, uint16_t nb_pkts, uint16_t nb_tx)
{
	traced.calls[RT_TRACE_tx_burst]++;
}

static void on_tx_refused(uint16_t p, uint16_t queue, uint64_t packets)
{
	traced.calls[RT_TRACE_tx_refused]++;
	traced.loss.port = p;
	traced.loss.queue = queue;
	traced.loss.packets = packets;
}

static void on_drop(uint16_t p, uint16_t queue, uint64_t packets, uint32_t reason)
{
	traced.calls[RT_TRACE_drop]++;
	traced.loss.port = p;
	traced.loss.queue = queue;
	traced.loss.packets = packets;
	traced.loss.reason = reason;
}

static void on_session(uint32_t session, uint32_t reader)
{
}

static void on_ring_full(uint32_t session, uint16_t p, uint16_t queue, uint32_t packets)
{
}

static void on_latency(
	uint16_t p, uint16_t queue, uint32_t packets, uint64_t sum_cycles, uint64_t max_cycles)
{
	traced.calls[RT_TRACE_latency]++;
	traced.timed += packets;
	traced.cycles += sum_cycles;
}

static const struct rt_tracer tracer = {
	.version = RT_TRACER_VERSION,
	.size = sizeof(tracer),
	.enabled = enabled,
	.rx_burst = on_rx_burst,
	.empty_poll = on_empty_poll,
	.tx_burst = on_tx_burst,
	.tx_refused = on_tx_refused,
	.drop = on_drop,
	.session_open = on_session,
	.session_close = on_session,
	.ring_full = on_ring_full,
	.latency = on_latency,
};

static int make_port(void **state)
{
	port = test_port_make("net_ring_0");
	memset(&traced, 0, sizeof(traced));
	rt_trace_set_tracer(&tracer);
	return 0;
}

static int remove_port(void **state)
{
	test_monitors_drop();
	rte_trace_pattern("ringtap.*", false);
	rte_trace_mode_set(RTE_TRACE_MODE_OVERWRITE);
	test_port_remove(port);
	return 0;
}

/* 32, 32, 6 packets and three empty polls. */
static void traffic(void)
{
	test_port_send(port, 70);
	while (test_port_poll(port, 32))
		;
	test_port_poll(port, 32);
	test_port_poll(port, 32);
}

static void check_traffic(void)
{
	assert_int_equal(traced.calls[RT_TRACE_rx_burst], 3);
	assert_int_equal(traced.calls[RT_TRACE_empty_poll], 3);
	assert_int_equal(traced.calls[RT_TRACE_tx_burst], 1);
	assert_int_equal(traced.nb_rx, 70);
	assert_int_equal(traced.nb_pkts, 3 * 32);
}

static void test_events_of_a_tracer_match_the_counters(void **state)
{
	static struct rt_monitor m;

	traced.on = true;
	test_monitor(&m, RT_COLLECT_POLLS, 1);
	traffic();
	check_traffic();
	assert_int_equal(test_block(port, RT_DIR_RX)->burst[32], 2);
	test_monitor_end(&m);
	traffic();
	check_traffic();
}

static void test_no_events_without_a_tracer(void **state)
{
	static struct rt_monitor m;

	test_monitor(&m, RT_COLLECT_POLLS, 1);
	traffic();
	assert_int_equal(traced.calls[RT_TRACE_rx_burst] + traced.calls[RT_TRACE_tx_burst], 0);
	assert_false(rt_stat_mode.state & RT_COLLECT_TRACE);
	test_monitor_end(&m);
}

/* The fast path of a hook is disabled and enabled again. */
static void test_tracer_is_attached_and_detached(void **state)
{
	static struct rt_monitor m;

	test_monitor(&m, RT_COLLECT_POLLS | RT_COLLECT_BUSY, 1);
	traffic();
	traffic();
	traced.on = true;
	test_stats_tick();
	traffic();
	check_traffic();
	traced.on = false;
	test_stats_tick();
	traffic();
	check_traffic();
	assert_int_equal(test_block(port, RT_DIR_RX)->burst[32], 8);
	test_monitor_end(&m);
}

static struct rt_trace_count count_of(enum rt_trace_event event)
{
	struct rt_trace_count counts[RT_TRACE_EVENTS];

	rt_trace_counts(counts);
	return counts[event];
}

static void test_events_of_dpdk_match_the_counters(void **state)
{
	struct rt_trace_count before = count_of(RT_TRACE_rx_burst);
	static struct rt_monitor m;

	assert_int_equal(rt_trace_points_on(), 0);
	assert_int_equal(rte_trace_pattern("ringtap.*", true), 1);
	assert_int_equal(rt_trace_points_on(), RT_TRACE_EVENTS);
	test_monitor(&m, RT_COLLECT_POLLS, 1);
	traffic();
	assert_int_equal(count_of(RT_TRACE_rx_burst).emitted - before.emitted, 3);
	assert_int_equal(rte_trace_pattern("ringtap.rx_burst", false), 1);
	traffic();
	assert_int_equal(count_of(RT_TRACE_rx_burst).emitted - before.emitted, 3);
	assert_int_equal(count_of(RT_TRACE_rx_burst).lost, 0);
	test_monitor_end(&m);
}

/* The trace buffer of this thread in DPDK. */
static const struct __rte_trace_header *buffer(void)
{
	return RTE_PER_LCORE(trace_mem);
}

static void polls(unsigned n)
{
	while (n--)
		rt_trace_burst(RT_DIR_RX, port, 0, 32, 32);
}

static void fill(uint64_t *emitted, uint64_t *lost, unsigned n)
{
	struct rt_trace_count before = count_of(RT_TRACE_rx_burst), after;

	polls(n);
	after = count_of(RT_TRACE_rx_burst);
	*emitted = after.emitted - before.emitted;
	*lost = after.lost - before.lost;
}

static void test_overwritten_events_are_lost(void **state)
{
	uint64_t emitted, lost;
	unsigned room;

	rte_trace_pattern("ringtap.rx_burst", true);
	polls(1);
	room = (buffer()->len - buffer()->offset) / POLL_BYTES;
	fill(&emitted, &lost, room - 1);
	assert_int_equal(emitted, room - 1);
	assert_int_equal(lost, 0);
	fill(&emitted, &lost, 2); /* the last one starts at the beginning again */
	assert_true(lost >= room);
	assert_in_range(buffer()->offset / POLL_BYTES, 1, 2);
	fill(&emitted, &lost, 2 * (buffer()->len / POLL_BYTES));
	assert_true(lost < emitted && emitted - lost <= buffer()->len / POLL_BYTES);
}

/* With less than a buffer of its own, tracing overwrites what was there before. */
static void test_earlier_events_are_counted_apart(void **state)
{
	struct rt_trace_count before, after;
	unsigned kept;

	rte_trace_pattern("ringtap.rx_burst", true);
	polls(2 * (buffer()->len / POLL_BYTES));
	while (buffer()->offset + 2 * POLL_BYTES <= buffer()->len)
		polls(1);
	before = count_of(RT_TRACE_rx_burst);
	kept = before.emitted - before.lost;
	rt_trace_mark();
	assert_int_equal(count_of(RT_TRACE_rx_burst).lost_earlier, before.lost_earlier);
	polls(kept / 2);
	after = count_of(RT_TRACE_rx_burst);
	assert_true(after.lost - before.lost >= kept);
	assert_int_equal(after.lost_earlier - before.lost_earlier, kept);
	assert_in_range(after.lost - before.lost - kept, 0, 2);
	polls(kept + 2); /* a whole buffer of its own is overwritten */
	assert_int_equal(count_of(RT_TRACE_rx_burst).lost_earlier, after.lost_earlier);
	assert_in_range(count_of(RT_TRACE_rx_burst).lost - after.lost, kept, kept + 2);
}

static bool emitting;

static void *emit_without_a_buffer(void *arg)
{
	test_any_cpu();
	while (__atomic_load_n(&emitting, __ATOMIC_RELAXED)) {
		rt_trace_burst(RT_DIR_RX, port, 0, 32, 32);
		rt_trace_burst(RT_DIR_RX, port, 0, 32, 0);
		rt_trace_burst(RT_DIR_TX, port, 0, 32, 32);
		rt_trace_tx_refused(port, 0, 1);
		rt_trace_drop(port, 0, 1, RT_DROP_IMISSED);
		rt_trace_session_open(1, 1);
		rt_trace_session_close(1, 1);
		rt_trace_ring_full(1, port, 0, 1);
		rt_trace_latency(port, 0, 1, 1, 1);
	}
	return NULL;
}

/* Each of the thread's events is lost, and some event's counts are in two cache lines. */
static void test_no_more_are_lost_than_emitted(void **state)
{
	struct rt_trace_count now[RT_TRACE_EVENTS];
	pthread_t thread;
	unsigned more = 0;

	rte_trace_pattern("ringtap.*", true);
	emitting = true;
	assert_int_equal(pthread_create(&thread, NULL, emit_without_a_buffer, NULL), 0);
	for (unsigned i = 0; i < 1000000; i++) {
		rt_trace_counts(now);
		for (unsigned e = 0; e < RT_TRACE_EVENTS; e++)
			more += now[e].lost > now[e].emitted;
	}
	__atomic_store_n(&emitting, false, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(more, 0);
}

static void test_discarded_events_are_lost(void **state)
{
	uint64_t emitted, lost;
	unsigned room;

	rte_trace_mode_set(RTE_TRACE_MODE_DISCARD);
	rte_trace_pattern("ringtap.rx_burst", true);
	polls(1);
	room = (buffer()->len - buffer()->offset - 1) / POLL_BYTES;
	fill(&emitted, &lost, room + 1000);
	assert_int_equal(emitted, room + 1000);
	assert_int_equal(lost, 1000);
	fill(&emitted, &lost, 10);
	assert_int_equal(lost, 10);
}

/* While DPDK saves the trace, after that, and after the lcore id was released with its buffer. */
static struct {
	bool holds[2];
	uint64_t lost[3];
} thread_results;

static void *emit_in_a_thread(void *registered)
{
	uint64_t emitted;

	/* Before tracing is on: otherwise it gets a buffer at once. */
	if (registered && rte_thread_register())
		return NULL;
	rte_trace_pattern("ringtap.rx_burst", true);
	for (unsigned i = 0; i < 2; i++) {
		rt_trace_saving(i == 0);
		fill(&emitted, &thread_results.lost[i], 1);
		thread_results.holds[i] = rt_trace_holds_buffer();
	}
	if (registered)
		rte_thread_unregister();
	fill(&emitted, &thread_results.lost[2], 1);
	return &thread_results;
}

/* No thread waits for DPDK's lock, and no buffer is leaked. */
static void test_threads_that_get_a_trace_buffer(void **state)
{
	for (int registered = 0; registered < 2; registered++) {
		pthread_t thread;
		void *done;

		rte_trace_pattern("ringtap.*", false);
		assert_false(rte_trace_is_enabled());
		assert_int_equal(pthread_create(&thread, NULL, emit_in_a_thread,
					 registered ? &thread : NULL),
			0);
		assert_int_equal(pthread_join(thread, &done), 0);
		assert_non_null(done);
		assert_false(thread_results.holds[0]);
		assert_int_equal(thread_results.lost[0], 1);
		assert_int_equal(thread_results.holds[1], registered);
		assert_int_equal(thread_results.lost[1], !registered);
		assert_int_equal(thread_results.lost[2], 1);
	}
}

static void test_latency_of_a_burst(void **state)
{
	static struct rt_monitor m;
	struct rte_mbuf *pkts[32];
	unsigned n;

	traced.on = true;
	test_monitor(&m, RT_COLLECT_LATENCY, 1);
	test_port_send(port, 20);
	assert_int_equal(traced.calls[RT_TRACE_latency], 0); /* created, not received */
	n = test_port_receive(port, pkts, 32);
	assert_int_equal(n, 20);
	assert_int_equal(rte_eth_tx_burst(port, 0, pkts, n), n);
	assert_int_equal(traced.calls[RT_TRACE_latency], 1);
	assert_int_equal(traced.timed, 20);
	/* The first pair has the packets without a time. */
	assert_int_equal(rt_stat_current->header->pair_count, 2);
	assert_int_equal(traced.cycles, rt_stat_current->pairs[1].sum);
	test_port_poll(port, 32);
	test_monitor_end(&m);
}

/* Packets that the driver lost before tracing began are not reported, the others once. */
static void test_losses_of_the_driver(void **state)
{
	static struct rt_monitor m;

	assert_int_equal(rt_port_set_missed(port, 100), 0);
	test_monitor(&m, RT_COLLECT_POLLS, 1);
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_drop], 0);
	rt_port_set_missed(port, 107);
	test_stats_tick();
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_drop], 1);
	assert_int_equal(traced.loss.port, port);
	assert_int_equal(traced.loss.queue, RT_TRACE_NO_QUEUE);
	assert_int_equal(traced.loss.packets, 7);
	assert_int_equal(traced.loss.reason, RT_DROP_IMISSED);
	rt_port_set_missed(port, 2); /* reset in between */
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_drop], 2);
	assert_int_equal(traced.loss.packets, 2);
	rt_port_set_missed(port, 0);
	test_monitor_end(&m);
}

/* Sends frames until the port accepts no more; returns how many of 32 further ones it refused. */
static unsigned overflow(void)
{
	struct rte_mbuf *m;
	unsigned refused = 0;

	for (unsigned i = 0; i < RING_FRAMES && refused < 32; i++) {
		m = test_frame(i, 60);
		if (rte_eth_tx_burst(port, 0, &m, 1) == 1)
			continue;
		test_drop(m);
		refused++;
	}
	return refused;
}

static void test_refused_packets(void **state)
{
	static struct rt_monitor m;

	test_monitor(&m, RT_COLLECT_POLLS, 1);
	test_port_send(port, 50);
	assert_int_equal(overflow(), 32);
	assert_int_equal(traced.calls[RT_TRACE_tx_refused], 0);
	test_stats_tick();
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_tx_refused], 1);
	assert_int_equal(traced.loss.packets, 32);
	assert_int_equal(traced.loss.queue, RT_TRACE_NO_QUEUE);
	/* Events while no tracer is attached are not reported. */
	test_monitor(&m, RT_COLLECT_GAPS, 1);
	test_stats_tick();
	assert_int_equal(overflow(), 32);
	test_monitor(&m, RT_COLLECT_POLLS, 1);
	test_stats_tick();
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_tx_refused], 1);
	/* The application resets the counters of the driver. */
	assert_int_equal(rte_eth_stats_reset(port), 0);
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_tx_refused], 1);
	assert_int_equal(overflow(), 32);
	test_stats_tick();
	assert_int_equal(traced.calls[RT_TRACE_tx_refused], 2);
	assert_int_equal(traced.loss.packets, 32);
	while (test_port_poll(port, 32))
		;
	test_monitor_end(&m);
}

/* As registered with DPDK, which starts only if all points have a size: 8 bytes, and the fields. */
static void test_points_are_registered(void **state)
{
#define X(event, parameters) {"ringtap." #event, &__rt_point_##event},
	static const struct {
		const char *name;
		const rte_trace_point_t *point;
	} points[] = {RT_TRACER_EVENTS(X)};
#undef X
	static const unsigned bytes[RT_TRACE_EVENTS] = {[RT_TRACE_rx_burst] = POLL_BYTES,
		[RT_TRACE_empty_poll] = 14,
		[RT_TRACE_tx_burst] = POLL_BYTES,
		[RT_TRACE_tx_refused] = 20,
		[RT_TRACE_drop] = 24,
		[RT_TRACE_session_open] = 16,
		[RT_TRACE_session_close] = 16,
		[RT_TRACE_ring_full] = 20,
		[RT_TRACE_latency] = 32};

	for (unsigned i = 0; i < RT_TRACE_EVENTS; i++) {
		assert_ptr_equal(rte_trace_point_lookup(points[i].name), points[i].point);
		assert_int_equal(*points[i].point & __RTE_TRACE_FIELD_SIZE_MASK, bytes[i]);
	}
}

static rte_trace_point_t empty_point;

static void no_fields(void)
{
}

/* main() has registered it; EAL has started nevertheless, with space for all its fields. */
static void test_point_without_fields(void **state)
{
	assert_ptr_equal(rte_trace_point_lookup("ringtap.empty"), &empty_point);
	assert_true((empty_point & __RTE_TRACE_FIELD_SIZE_MASK) > 32);
}

#define with_port(f) cmocka_unit_test_setup_teardown(f, make_port, remove_port)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_are_registered),
		cmocka_unit_test(test_point_without_fields),
		with_port(test_events_of_a_tracer_match_the_counters),
		with_port(test_no_events_without_a_tracer),
		with_port(test_tracer_is_attached_and_detached),
		with_port(test_events_of_dpdk_match_the_counters),
		with_port(test_overwritten_events_are_lost),
		with_port(test_earlier_events_are_counted_apart),
		with_port(test_no_more_are_lost_than_emitted),
		with_port(test_discarded_events_are_lost),
		with_port(test_threads_that_get_a_trace_buffer),
		with_port(test_latency_of_a_burst),
		with_port(test_losses_of_the_driver),
		with_port(test_refused_packets),
	};

	if (rt_trace_point_register(&empty_point, "ringtap.empty", no_fields))
		return 1;
	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
