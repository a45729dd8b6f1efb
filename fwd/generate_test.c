/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "test_plane.h"
#include "common/clock.h"

/* Lets time pass for the generator. Not beyond what is sent late in a stage: TSCs begin at 0. */
static void passes(uint64_t ticks)
{
	struct generator *g = r.generator;

	g->clock.start -= ticks;
	g->clock.times.start -= ticks;
	g->sending.start -= ticks;
	g->end -= ticks;
	g->late_end -= ticks;
}

/* A generator that began seconds ago. */
static void generates(uint64_t seconds)
{
	r.kind = ROLE_GENERATE;
	if (!config.rtt)
		r.from = NULL;
	assert_int_equal(generate_init(&r, 0), 0);
	if (config.pcap)
		unlink(config.pcap);
	run.start_tsc = rt_tsc();
	generate_start(&r);
	passes(seconds * HZ);
}

static void stage(unsigned i, uint64_t rate, uint64_t seconds)
{
	config.stages[i] = (struct stage){.rate = rate, .ns = seconds * 1000000000};
	config.stage_count = i + 1;
}

static void what_is_due_is_sent_in_bursts(void **state)
{
	(void)state;
	stage(0, 10, 1000);
	generates(2);
	polls(5);
	assert_int_equal(out_end, 21); /* one at the beginning, 10 in each second */
	assert_int_equal(tx_calls, 3);
	assert_int_equal(r.counters[0].tx_packets, 21);
	assert_int_equal(r.generator->max_backlog, 21);
	for (unsigned i = 0; i < out_end; i++)
		assert_int_equal(sent_number(i), i);
	assert_false(r.generator->done);
}

static void packets_that_are_refused_or_have_no_buffer(void **state)
{
	struct rte_mbuf *rest[POOL];

	(void)state;
	stage(0, 10, 1000);
	generates(2);
	accepts = 5;
	polls(3);
	assert_int_equal(r.counters[0].tx_packets, 5);
	assert_int_equal(r.counters[0].tx_refused, 16);
	accepts = POOL;
	take_buffers(rest, free_count());
	r.generator->settled = 5; /* 16 are due again; of 8, as refused frames stay built */
	polls(2);
	assert_int_equal(r.counters[0].tx_packets, 13);
	assert_int_equal(r.counters[0].tx_nombuf, 8);
	for (unsigned i = 0; i < out_end; i++)
		assert_int_equal(sent_number(i), i); /* a refused packet's number is not lost */
}

static void each_stage_has_its_own_counts(void **state)
{
	(void)state;
	stage(0, 10, 1);
	stage(1, 0, 1);
	stage(2, 20, 2);
	generates(1);
	passes(HZ / 50);
	r.burst = 64;
	polls(2);
	assert_int_equal(run.stage, 1);
	assert_int_equal(r.counters[0].tx_packets, 0);
	assert_int_equal(r.counters[0].tx_expired, 10);
	passes(HZ - HZ / 50);
	polls(1);
	assert_int_equal(run.stage, 2);
	assert_int_equal(r.counters[1].tx_expired, 0);
	passes(HZ);
	polls(2);
	assert_int_equal(r.counters[2].tx_packets, 21);
	assert_false(r.generator->done);
	passes(HZ + HZ / 50);
	polls(1);
	assert_true(r.generator->done);
	assert_int_equal(r.counters[2].tx_expired, 19);
	polls(3);
	assert_int_equal(out_end, 21);
}

static void due_packets_are_sent_shortly_after_the_end(void **state)
{
	(void)state;
	stage(0, 10, 2);
	generates(2);
	r.burst = 64;
	polls(2);
	assert_int_equal(out_end, 20); /* the packet at the end itself belongs to the next stage */
	assert_int_equal(r.counters[0].tx_expired, 0);
	assert_true(r.generator->done);
}

static void count_ends_the_generator(void **state)
{
	(void)state;
	stage(0, RATE_UNLIMITED, 0);
	config.count = 21;
	generates(0);
	accepts = 10;
	polls(4);
	assert_int_equal(r.counters[0].tx_packets, 10);
	assert_int_equal(r.counters[0].tx_refused, 0); /* at an unlimited rate none is due */
	accepts = POOL;
	polls(4);
	assert_int_equal(out_end, 21);
	assert_true(r.generator->done);
	role_stop(&r);
	assert_int_equal(free_count(), POOL - 21);
}

static void random_times_are_repeatable(void **state)
{
	uint64_t due[3];

	for (unsigned i = 0; i < 3; i++) {
		setup(state);
		config.poisson = true;
		config.seed = 1 + i / 2;
		stage(0, 100, 1000);
		generates(10);
		accepts_once = accepts = 0;
		r.burst = 255;
		polls(10);
		due[i] = r.counters[0].tx_refused + r.counters[0].tx_nombuf;
		assert_in_range(due[i], 850, 1150); /* the deviation is the root of 1000 */
		teardown(state);
		r.generator = NULL;
	}
	assert_int_equal(due[0], due[1]);
	assert_int_not_equal(due[0], due[2]);
}

/* Sends frame i back. */
static void reply(unsigned i)
{
	in_end = in_first;
	incoming[in_end++] = outgoing[i];
}

static void one_packet_is_in_flight(void **state)
{
	(void)state;
	config.rtt = true;
	config.outstanding = 1;
	stage(0, RATE_UNLIMITED, 0);
	config.count = 3;
	generates(0);
	polls(5);
	assert_int_equal(out_end, 1);
	for (unsigned i = 0; i < 2; i++) {
		reply(i);
		polls(3);
		assert_int_equal(out_end, i + 2);
	}
	assert_true(r.generator->done);
	reply(2); /* received although nothing is sent any more */
	polls(1);
	assert_int_equal(r.generator->replies.unique, 3);
	assert_int_equal(r.generator->rtt.count, 3);
	assert_int_equal(r.generator->timeouts, 0);
}

static void late_reply_frees_no_place(void **state)
{
	(void)state;
	config.rtt = true;
	config.outstanding = 1;
	stage(0, RATE_UNLIMITED, 0);
	generates(0);
	polls(2);
	r.generator->last_sent -= r.generator->timeout + HZ;
	polls(2);
	assert_int_equal(out_end, 2); /* the first one has timed out */
	assert_int_equal(r.generator->timeouts, 1);
	reply(0);
	polls(2);
	assert_int_equal(out_end, 2);
	assert_int_equal(r.generator->replies.unique, 1);
	reply(1);
	polls(1);
	assert_int_equal(out_end, 3);
}

static void new_stage_keeps_packets_in_flight(void **state)
{
	(void)state;
	config.rtt = true;
	config.outstanding = 1;
	stage(0, RATE_UNLIMITED, 10);
	stage(1, RATE_UNLIMITED, 1000);
	generates(0);
	polls(1);
	assert_int_equal(out_end, 1);
	r.generator->end = r.generator->late_end = rt_tsc();
	polls(3);
	assert_int_equal(run.stage, 1);
	assert_int_equal(out_end, 1);
	reply(0);
	polls(1);
	assert_int_equal(out_end, 2);
	assert_int_equal(r.generator->timeouts, 0);
}

static void replies_are_those_of_its_own_frames(void **state)
{
	(void)state;
	config.rtt = true;
	config.count = 4;
	stage(0, RATE_UNLIMITED, 0);
	generates(0);
	polls(1);
	receives(0, 2, 0); /* replies */
	receives(1, 1, 0); /* a duplicate */
	receives(2, 1, 7); /* another stream */
	receives(4, 1, 0); /* has not been sent */
	polls(1);
	assert_int_equal(r.generator->replies.received, 3);
	assert_int_equal(r.generator->replies.unique, 2);
	assert_int_equal(r.generator->replies.duplicated, 1);
	assert_int_equal(r.generator->rtt.count, 2);
	assert_int_equal(r.generator->flying, 2);
	assert_int_equal(r.counters[0].rx_packets, 5);
	assert_int_equal(free_count(), POOL - 4);
}

/* Makes it send a file whose frames have these times in seconds. */
static void replays(const time_t *times, unsigned count)
{
	static char path[32]; /* until generates() has read it */
	pcap_t *p = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *d;
	uint8_t data[60] = {0};

	strcpy(path, "fwd-times-XXXXXX");
	d = pcap_dump_fopen(p, fdopen(mkstemp(path), "w"));
	assert_non_null(d);
	for (unsigned i = 0; i < count; i++) {
		const struct pcap_pkthdr h = {.ts.tv_sec = times[i], .caplen = 60, .len = 60};

		data[0] = (uint8_t)i;
		pcap_dump((u_char *)d, &h, data);
	}
	pcap_dump_close(d);
	pcap_close(p);
	config.pcap = path;
	config.timing = true;
}

static void frames_of_a_file_are_sent_at_its_times(void **state)
{
	(void)state;
	replays((time_t[]){1000, 1001, 1001, 1100}, 4);
	generates(0);
	polls(2);
	assert_int_equal(out_end, 1);
	passes(HZ / 2);
	polls(2);
	assert_int_equal(out_end, 1);
	passes(2 * HZ);
	polls(2);
	assert_int_equal(out_end, 3);
	assert_int_equal(r.generator->late.count, 3);
	assert_in_range(r.generator->late.max, HZ * 3 / 2, HZ * 10);
	assert_false(r.generator->done);
	passes(100 * HZ);
	polls(1);
	assert_int_equal(out_end, 4);
	assert_true(r.generator->done);
	assert_int_equal(r.counters[0].tx_packets, 4);
}

static void frames_whose_time_is_over_are_not_sent_later(void **state)
{
	struct rte_mbuf *rest[POOL];
	unsigned n;

	(void)state;
	replays((time_t[]){1000, 1000, 1001, 1001, 1002}, 5);
	generates(0);
	accepts = 1;
	polls(1);
	assert_int_equal(r.counters[0].tx_refused, 1);
	accepts = POOL;
	n = free_count();
	assert_int_equal(n, POOL - 1);
	assert_int_equal(take_buffers(rest, n), n);
	passes(HZ);
	polls(1);
	assert_int_equal(r.counters[0].tx_nombuf, 2);
	assert_false(r.generator->done);
	link_free(PLANE_PACKET, rest, (uint16_t)n);
	passes(HZ);
	polls(1);
	assert_int_equal(out_end, 2);
	assert_int_equal(sent_frame(0)[0], 0);
	assert_int_equal(sent_frame(1)[0], 4);
	assert_int_equal(r.generator->late.count, 2);
	assert_true(r.generator->done);
}

/* The next round begins 33 s after the last frame. */
static void a_file_is_sent_again_where_packets_are_to_come(void **state)
{
	(void)state;
	replays((time_t[]){1000, 1001, 1001, 1100}, 4);
	config.count = 6;
	generates(120);
	polls(2);
	assert_int_equal(out_end, 4);
	passes(14 * HZ);
	polls(2);
	assert_int_equal(out_end, 5);
	passes(HZ);
	polls(2);
	assert_int_equal(out_end, 6);
	assert_true(r.generator->done);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_due_is_sent_in_bursts),
		TEST(packets_that_are_refused_or_have_no_buffer),
		TEST(each_stage_has_its_own_counts),
		TEST(due_packets_are_sent_shortly_after_the_end),
		TEST(count_ends_the_generator),
		TEST(random_times_are_repeatable),
		TEST(one_packet_is_in_flight),
		TEST(late_reply_frees_no_place),
		TEST(new_stage_keeps_packets_in_flight),
		TEST(replies_are_those_of_its_own_frames),
		TEST(frames_of_a_file_are_sent_at_its_times),
		TEST(frames_whose_time_is_over_are_not_sent_later),
		TEST(a_file_is_sent_again_where_packets_are_to_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
