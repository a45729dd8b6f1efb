/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets a sample has, with fixed secrets, and that the counters of a session add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "common/record.h"
#include "epb.h"
#include "ids.h"
#include "sample.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define BURST 64u

/* ---- the chooser, without packets ---- */

static struct rt_sampler *make(uint32_t every)
{
	const struct rt_msg_sample m = {
		.secret = {UINT64_C(0x123456789abcdef), UINT64_C(0xfedcba987654321)},
		.every = every};
	struct rt_sampler *s;

	assert_int_equal(rt_sampler_make(&s, &m), 0);
	return s;
}

static struct rte_mbuf *number(uint64_t i)
{
	return (struct rte_mbuf *)(uintptr_t)(i + 1);
}

/* Calls f with the number of each packet that is chosen of those from 0 on, in bursts. */
static void choose(uint32_t every, uint64_t packets, unsigned burst,
	void (*f)(void *ctx, uint64_t i), void *ctx)
{
	const struct rt_tap tap = {.direction = RT_DIR_RX};
	struct rt_sampler *s = make(every);
	struct rte_mbuf *pkts[BURST], *chosen[BURST];

	for (uint64_t at = 0; at < packets; at += burst) {
		unsigned k;

		for (unsigned i = 0; i < burst; i++)
			pkts[i] = number(at + i);
		k = rt_sampler_choose(s, &s->state[3], &tap, pkts, burst, chosen);
		for (unsigned i = 0; i < k; i++)
			f(ctx, (uintptr_t)chosen[i] - 1);
	}
	free(s);
}

struct tally {
	uint64_t count, last, pairs, sum; /* sum: of the numbers, modulo 2^64 */
	uint32_t period, *by_place;
};

static void add(void *ctx, uint64_t i)
{
	struct tally *t = ctx;

	t->pairs += t->count && i == t->last + 1;
	t->count++;
	t->last = i;
	t->sum += i * i;
	if (t->by_place)
		t->by_place[i % t->period]++;
}

/* mean ± 4.5 standard deviations of a binomial distribution. */
static void assert_near(uint64_t count, uint64_t n, double p)
{
	double mean = (double)n * p, off = (double)count - mean;

	if (off * off > 4.5 * 4.5 * mean * (1 - p) + 1)
		fail_msg("%llu of %llu, not about %f", (unsigned long long)count,
			(unsigned long long)n, mean);
}

static void test_one_of_n_packets_is_chosen(void **state)
{
	static const struct {
		uint32_t every;
		uint64_t packets;
	} cases[] = {
		{2, 1 << 22}, {4, 1 << 22}, {64, 1 << 24}, {1024, 1 << 26}, {1 << 16, 1 << 26}};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct tally t = {0};

		choose(cases[i].every, cases[i].packets, BURST, add, &t);
		assert_near(t.count, cases[i].packets, 1.0 / cases[i].every);
	}
}

/* As if each packet tossed a coin: the one behind a chosen packet has the same chance. */
static void test_packets_are_chosen_independently(void **state)
{
	for (uint32_t every = 2; every <= 64; every *= 2) {
		struct tally t = {0};

		choose(every, 1 << 22, BURST, add, &t);
		assert_near(t.pairs, t.count, 1.0 / every);
	}
}

/* chi-square with period - 1 degrees of freedom: mean period - 1, variance twice that. */
static void assert_even(const uint32_t *count, uint32_t period, uint64_t total)
{
	double each = (double)total / period, sum = 0, over;

	for (uint32_t i = 0; i < period; i++)
		sum += (count[i] - each) * (count[i] - each) / each;
	over = sum - period;
	assert_true(over * over < 4.5 * 4.5 * 2 * period);
}

/* A sample of each N-th packet would have one place of a period only. */
static void test_periods_are_no_aliases(void **state)
{
	static const uint32_t periods[] = {16, 64, 128, 100};

	for (size_t i = 0; i < RTE_DIM(periods); i++) {
		uint32_t count[128] = {0};
		struct tally t = {.period = periods[i], .by_place = count};

		choose(64, 1 << 24, 32, add, &t);
		assert_even(count, periods[i], t.count);
	}
}

static void test_the_size_of_bursts_does_not_matter(void **state)
{
	static const unsigned sizes[] = {1, 2, 32, 64};
	struct tally first = {0};

	choose(32, 1 << 20, 16, add, &first);
	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		struct tally t = {0};

		choose(32, 1 << 20, sizes[i], add, &t);
		assert_int_equal(t.count, first.count);
		assert_int_equal(t.sum, first.sum);
	}
}

/* ---- the chooser, by ids ---- */

/* Ids as a thread counts them. */
static uint64_t id_of(uint64_t number)
{
	return UINT64_C(3) << RT_ID_PORT_SHIFT | UINT64_C(5) << 42 | number;
}

static void test_one_of_n_ids_is_chosen_evenly(void **state)
{
	for (uint32_t every = 2; every <= 1024; every *= 8) {
		struct rt_sampler *s = make(every);
		uint32_t place[64] = {0}, together = 0, before = 0, count = 0;

		for (uint64_t i = 0; i < 1 << 22; i++) {
			bool has = rt_sampler_has(s, id_of(i));

			count += has;
			together += has && before;
			before = has;
			place[i % 64] += has;
		}
		assert_near(count, 1 << 22, 1.0 / every);
		assert_near(together, count, 1.0 / every);
		assert_even(place, 64, count);
		free(s);
	}
}

static void test_a_thinner_sample_is_a_part_of_a_thicker_one(void **state)
{
	struct rt_sampler *s[] = {make(2), make(8), make(64), make(1024)};
	unsigned chosen = 0;

	for (uint64_t i = 0; i < 1 << 20; i++) {
		for (size_t k = RTE_DIM(s) - 1; k; k--) {
			if (!rt_sampler_has(s[k], id_of(i)))
				continue;
			chosen++;
			assert_true(rt_sampler_has(s[k - 1], id_of(i)));
		}
	}
	assert_true(chosen > 100000);
	for (size_t k = 0; k < RTE_DIM(s); k++)
		free(s[k]);
}

/* ---- sessions ---- */

static uint16_t in, out;
static struct rte_mbuf *pkts[1024];

static struct rt_session *open_session(uint32_t every, uint32_t ids, const struct rt_insn *insn)
{
	const struct rt_msg_target all = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = insn ? 0 : RT_NO_FILTER,
		.insn_count = insn != NULL};
	const struct rt_msg_open open = {
		.buffer_size = TEST_RING, .ids = ids, .flags = every > 1 ? RT_OPEN_SAMPLE : 0};
	struct rt_session *s;

	test_sample.every = every;
	s = test_session_open(&open, &all, insn);
	test_port_poll(in, 32); /* so that this thread has a ring */
	test_session_arm(s, test_clock());
	return s;
}

static struct rt_seg_count end(struct rt_session *s)
{
	struct rt_seg_count c;
	uint64_t lost = 0;

	test_session_end(s);
	c = test_session_sum(s);
	for (unsigned i = 0; i < RT_LOSS_COUNT; i++)
		lost += c.lost[i];
	assert_int_equal(c.seen, c.captured + c.filtered + c.not_sampled + lost);
	return c;
}

/* In bursts of all sizes from in to out; each packet passes four taps. */
static unsigned forward(void)
{
	unsigned n, all = 0;

	for (n = 1; n <= 200; all += n, n += n < 70 ? 1 : 43) {
		test_port_send(in, n);
		assert_int_equal(test_port_receive(in, pkts, 1024), n);
		for (unsigned i = 0; i < n; i++)
			pkts[i]->port = in;
		assert_int_equal(rte_eth_tx_burst(out, 0, pkts, (uint16_t)n), n);
		assert_int_equal(test_port_receive(out, pkts, 1024), n);
		rte_pktmbuf_free_bulk(pkts, n);
	}
	return all;
}

static void test_counters_of_a_sample_add_up(void **state)
{
	static const uint32_t every[] = {2, 16, 4096};
	static const struct rt_insn none[] = {{.code = 6, .k = 0}}, any[] = {{.code = 6, .k = 64}};

	for (size_t i = 0; i < RTE_DIM(every); i++) {
		for (int filter = 0; filter < 3; filter++) {
			struct rt_session *s = open_session(every[i], 0,
				filter == 0   ? NULL
				: filter == 1 ? none
					      : any);
			uint64_t seen = 4 * (uint64_t)forward();
			struct rt_seg_count c = end(s);

			assert_in_range(c.seen, seen - 4 * 200, seen);
			assert_near(c.seen - c.not_sampled, c.seen, 1.0 / every[i]);
			assert_int_equal(filter == 1 ? c.captured : c.filtered, 0);
			rt_session_free(s);
		}
	}
}

/* The sampled one neither takes from the others, nor takes more beside them. */
/* The ring is busy before the time of the latency is read, although no packet is chosen. */
static void test_no_ring_is_busy_after_a_timed_burst(void **state)
{
	static struct rt_monitor mon;
	struct rt_session *s = open_session(4096, 0, NULL);
	unsigned used = 0;

	test_monitor(&mon, RT_COLLECT_LATENCY, 1);
	forward();
	for (unsigned i = 0; i < RT_MAX_RINGS; i++) {
		if (!s->rings[i].used)
			continue;
		used++;
		assert_int_equal(s->rings[i].pub->busy, 0);
	}
	assert_int_equal(used, 1);
	test_monitor_end(&mon);
	end(s);
	rt_session_free(s);
}

static void test_sessions_of_one_hook_have_their_own_samples(void **state)
{
	struct rt_session *all = open_session(1, 0, NULL), *half = open_session(2, 0, NULL),
			  *few = open_session(64, 0, NULL);
	struct rt_seg_count c[3];

	forward();
	c[0] = end(all);
	c[1] = end(half);
	c[2] = end(few);
	assert_int_equal(c[0].not_sampled, 0);
	assert_int_equal(c[1].seen, c[0].seen);
	assert_near(c[1].captured, c[1].seen, 1.0 / 2);
	assert_near(c[2].captured, c[2].seen, 1.0 / 64);
	rt_session_free(all);
	rt_session_free(half);
	rt_session_free(few);
}

struct ids {
	uint64_t id[4096];
	unsigned count;
};

/* The ids in the records of a port and direction. */
static struct ids ids_at(const struct rt_session *s, uint16_t port, uint32_t flags)
{
	static struct ids ids;

	ids.count = 0;
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++) {
		const struct rt_ring *ring = &s->rings[i];
		const uint8_t *chunk = s->shm.data + ring->pub_order[0] * s->shm.chunk_size;

		assert_in_range(ring->head, 0, s->shm.chunk_size);
		for (uint64_t at = 0; at < ring->head;) {
			struct rt_record r = {0};
			struct rt_options o;

			assert_null(rt_record_read(chunk + at, ring->head - at, &r));
			rt_record_options(chunk + at, &r, &o);
			if (s->ifs[r.if_index].port.port_id == port && o.flags == flags) {
				assert_in_range(ids.count, 0, RTE_DIM(ids.id) - 1);
				ids.id[ids.count++] = o.id;
			}
			at += r.len;
		}
	}
	return ids;
}

static void test_a_reception_and_its_sending_are_chosen_together(void **state)
{
	struct rt_session *s = open_session(16, RT_IDS_ON | 3u << RT_IDS_SOURCE_SHIFT, NULL);
	unsigned n = forward();
	struct ids rx, tx;

	rx = ids_at(s, in, 1);
	tx = ids_at(s, out, 2);
	assert_true(rx.count > n / 32);
	assert_int_equal(rx.count, tx.count);
	for (unsigned i = 0; i < rx.count; i++) {
		assert_int_not_equal(rx.id[i], 0);
		assert_int_equal(rx.id[i], tx.id[i]);
		assert_int_equal(rx.id[i] >> RT_ID_SOURCE_SHIFT, 3);
	}
	end(s);
	rt_session_free(s);
}

/* The number that the reader gives to an application does not choose. */
static void test_the_source_of_ids_does_not_matter(void **state)
{
	struct rt_session *a = open_session(16, RT_IDS_ON | 3u << RT_IDS_SOURCE_SHIFT, NULL),
			  *b = open_session(16, RT_IDS_ON | 9u << RT_IDS_SOURCE_SHIFT, NULL);
	struct ids x, y;

	forward();
	x = ids_at(a, in, 1);
	y = ids_at(b, in, 1);
	assert_true(x.count > 100);
	assert_int_equal(x.count, y.count);
	for (unsigned i = 0; i < x.count; i++)
		assert_int_equal(x.id[i] & RT_ID_MASK, y.id[i] & RT_ID_MASK);
	end(a);
	end(b);
	rt_session_free(a);
	rt_session_free(b);
}

/* Made by the application: by skips. */
static void test_packets_without_ids_are_chosen_too(void **state)
{
	struct rt_session *s = open_session(4, RT_IDS_ON, NULL);
	struct rt_seg_count c;
	unsigned n = 0;

	for (; n < 6400; n += 64) {
		test_port_send(out, 64);
		rte_pktmbuf_free_bulk(pkts, test_port_receive(out, pkts, 64));
	}
	c = end(s);
	assert_int_equal(c.seen, 2 * n);
	assert_near(c.captured, c.seen, 1.0 / 4);
	rt_session_free(s);
}

static void test_a_burst_left_by_a_jump_is_mended(void **state)
{
	struct test_ring t;
	struct rt_seg_count *c;

	test_ring_make(&t, TEST_RING);
	c = &t.ring.counts[0];
	*c = (struct rt_seg_count){.seen = 10, .captured = 1, .filtered = 2, .not_sampled = 4};
	t.ring.open = 1;
	rt_epb_mend(&t.ring, RT_OPEN_SAMPLE);
	assert_int_equal(c->lost[RT_LOSS_NO_RING], 3);
	assert_int_equal(t.ring.open, 0);
	test_ring_free(&t);
}

static int set_up(void **state)
{
	in = test_port_make("net_ring_0");
	out = test_port_make("net_ring_1");
	return 0;
}

static int tear_down(void **state)
{
	test_port_remove(in);
	test_port_remove(out);
	return 0;
}

static int start(void **state)
{
	test_stats_start();
	return 0;
}

#define PORT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_of_n_packets_is_chosen),
		cmocka_unit_test(test_packets_are_chosen_independently),
		cmocka_unit_test(test_periods_are_no_aliases),
		cmocka_unit_test(test_the_size_of_bursts_does_not_matter),
		cmocka_unit_test(test_one_of_n_ids_is_chosen_evenly),
		cmocka_unit_test(test_a_thinner_sample_is_a_part_of_a_thicker_one),
		PORT_TEST(test_counters_of_a_sample_add_up),
		PORT_TEST(test_no_ring_is_busy_after_a_timed_burst),
		PORT_TEST(test_sessions_of_one_hook_have_their_own_samples),
		PORT_TEST(test_a_reception_and_its_sending_are_chosen_together),
		PORT_TEST(test_the_source_of_ids_does_not_matter),
		PORT_TEST(test_packets_without_ids_are_chosen_too),
		cmocka_unit_test(test_a_burst_left_by_a_jump_is_mended),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
