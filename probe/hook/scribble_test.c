/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reader with a writable mapping of all its memory, made before the seals, overwrites it
 * continuously. The test is both the polling thread and the control thread.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "hook.h"
#include "probe/capture/fate.h"
#include "probe/capture/request.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

#define BURST  32u
#define ROUNDS 100u

static uint16_t port;

/* Sends and receives a burst: frames of the fast copy path, and some of the slow one. */
static void poll_once(uint32_t seed)
{
	struct rte_mbuf *m[BURST];
	uint16_t n;

	for (uint32_t i = 0; i < BURST; i++) {
		m[i] = test_frame(seed + i, 60 + (seed * 7 + i * 13) % 700);
		if (i % 8 == 3) {
			m[i]->ol_flags |= RTE_MBUF_F_TX_VLAN;
			m[i]->vlan_tci = (uint16_t)seed;
		}
	}
	n = rte_eth_tx_burst(port, 0, m, BURST);
	rte_pktmbuf_free_bulk(m + n, BURST - n);
	n = rte_eth_rx_burst(port, 0, m, BURST);
	rte_pktmbuf_free_bulk(m, n);
}

/* ---- sessions ---- */

static struct rt_session *open_session(uint32_t ids)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 600,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.buffer_size = TEST_RING, .ids = ids};
	struct rt_session *s = test_session_open(&open, &target, NULL);

	poll_once(0);
	test_session_arm(s, test_clock());
	return s;
}

/* As a correct reader does: releases all published records. */
static void release(struct rt_session *s)
{
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++)
		rt_store_release(&s->shm.tails[i].tail, s->rings[i].head);
}

/* ---- the reader ---- */

struct scribbler {
	pthread_t thread;
	const struct rt_shm *shm;
	bool tails;
	uint32_t quit;
	uint64_t rounds, random;
};

static void scribble_over(struct scribbler *w, void *p, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes / 8; i++) {
		w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
		rt_store((uint64_t *)p + i, w->random >> 62 ? w->random : 0);
	}
}

static void *scribble(void *arg)
{
	struct scribbler *w = arg;

	while (!rt_load(&w->quit)) {
		scribble_over(w, w->shm->header, w->shm->bytes[RT_FD_SEGMENT]);
		scribble_over(w, w->shm->data, w->shm->bytes[RT_FD_DATA]);
		if (w->tails)
			scribble_over(w, w->shm->tails, w->shm->bytes[RT_FD_TAILS]);
		rt_store_release(&w->rounds, w->rounds + 1);
		sched_yield();
	}
	return NULL;
}

/* The work of the control thread, under a reader that overwrites what it sees. */
static void tend(struct rt_session *bad)
{
	char err[RT_TEXT_LEN];

	rt_session_rescan(bad);
	rt_session_refresh(bad, 0);
	rt_session_tick(bad, rt_now_ms());
	if (bad->fates) {
		while (!rt_fates_walk_last(bad))
			;
		assert_int_equal(test_set_filter(bad, NULL, err), -EINVAL);
	} else {
		assert_int_equal(test_set_filter(bad, NULL, err), 0);
		while (!rt_session_filter_settled(bad))
			sched_yield();
	}
	rt_clock_publish(bad->shm.clock, test_clock());
}

static void run(bool tails, uint32_t ids)
{
	struct rt_session *good = open_session(0), *bad = open_session(ids);
	struct scribbler w = {.shm = &bad->shm, .tails = tails};
	const struct rt_seg_count *c = good->shm.counts;
	uint64_t polls = 0;

	assert_int_equal(pthread_create(&w.thread, NULL, scribble, &w), 0);
	for (; rt_load_acquire(&w.rounds) < ROUNDS || polls < ROUNDS; polls++) {
		poll_once((uint32_t)polls);
		release(good);
		if (!tails)
			release(bad);
		tend(bad);
		assert_true(rt_session_sane(good));
		if (!tails)
			assert_true(rt_session_sane(bad));
	}
	assert_int_equal(rt_session_sane(bad), !tails);
	test_session_end(bad);
	assert_int_equal(bad->if_count, 1);
	assert_int_equal(bad->tap_count, 2);
	rt_store(&w.quit, 1);
	pthread_join(w.thread, NULL);
	rt_session_free(bad);
	test_session_end(good);
	/* All packets were received. open_session() of the other session polled once more. */
	polls++;
	for (int tap = 0; tap < 2; tap++) {
		assert_int_equal(c[tap].seen, polls * BURST);
		assert_int_equal(c[tap].captured, polls * BURST);
	}
	rt_session_free(good);
	assert_int_equal(test_port_callbacks(port), 0);
}

static void test_overwritten_segment_and_rings_affect_only_this_session(void **state)
{
	run(false, 0);
}

static void test_overwritten_tails_are_detected(void **state)
{
	run(true, 0);
}

static void test_overwritten_fates_affect_only_this_session(void **state)
{
	run(false, RT_IDS_ON | RT_IDS_FATES);
}

/* The probe reads mbufs of which the table has the addresses. */
static void test_overwritten_addresses_of_mbufs_are_not_followed(void **state)
{
	test_add_history();
	run(false, RT_IDS_ON | RT_IDS_FATES);
}

static void test_overwritten_events_affect_only_this_session(void **state)
{
	run(false, RT_IDS_ON | RT_IDS_FATES | RT_IDS_EVENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overwritten_segment_and_rings_affect_only_this_session),
		cmocka_unit_test(test_overwritten_tails_are_detected),
		cmocka_unit_test(test_overwritten_fates_affect_only_this_session),
		cmocka_unit_test(test_overwritten_events_affect_only_this_session),
		cmocka_unit_test(test_overwritten_addresses_of_mbufs_are_not_followed),
	};
	int failed;

#ifdef __SANITIZE_THREAD__
	return 77; /* skipped: the race with the polling thread is intended */
#endif
	test_stats_start();
	port = test_port_make("net_ring_0");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_port_remove(port);
	return failed;
}
