/* SPDX-License-Identifier: BSD-3-Clause */
/* Fates of packets against a plan. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "fate_feed.h"
#include "probe/above.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "probe/test_fates.h"

enum what {
	FORWARD,
	DROP,
	HOLD,
	CLONES,
	CLONE_ONLY,
	CLONE_LOST,
	COPY,
	TWICE,
	HEADER,
	RESET,
	MAKE,
	ELSEWHERE,
	DEEDS
};

static void offered(struct rte_mbuf *m, uint32_t site)
{
	truth[site].offered++;
	test_offer(m);
}

static void send_clones(struct rte_mbuf *m, uint32_t site, enum what what)
{
	struct rte_mbuf *c = rte_pktmbuf_clone(m, pool);

	assert_non_null(c);
	if (what == CLONES) {
		test_offer(c);
		offered(m, site);
	} else if (what == CLONE_ONLY) {
		rte_pktmbuf_free(m);
		offered(c, site);
	} else {
		test_give_up(m, site);
		rte_pktmbuf_free(c);
	}
}

static void treat(struct rte_mbuf *m, uint32_t site, enum what what)
{
	struct rte_mbuf *other;

	switch (what) {
	case DROP: test_give_up(m, site); return;
	case CLONES:
	case CLONE_ONLY:
	case CLONE_LOST: send_clones(m, site, what); return;
	case COPY:
		other = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
		assert_non_null(other);
		test_give_up(m, site);
		test_offer(other);
		return;
	case TWICE:
		rte_mbuf_refcnt_update(m, 1);
		test_offer(m);
		break;
	case HEADER:
		other = rte_pktmbuf_alloc(pool);
		assert_non_null(other);
		other->next = m;
		other->nb_segs = 2;
		offered(other, site);
		return;
	case RESET:
		m->ol_flags = 0;
		test_offer(m);
		truth[site].unknown++;
		truth[site].inferred++;
		return;
	case MAKE:
		test_give_up(m, site);
		other = rte_pktmbuf_alloc(pool);
		assert_non_null(other);
		test_offer(other);
		return;
	case ELSEWHERE: /* its mbuf is received by a port without hooks */
		test_expect(m, site);
		m->ol_flags = 0;
		m->port = 3;
		test_offer(m);
		return;
	default: break;
	}
	offered(m, site);
}

/* Mbufs of the pool whose packet is open and which the last walk found free. */
static uint64_t count_free(void)
{
	const struct rt_fates *f = session->fates;
	uint32_t walk = session->shm.header->fate_walk;
	uint64_t n = 0;

	for (uint64_t i = 0; i <= f->mask; i++) {
		const struct rt_seg_fate *e = (const void *)(f->table + i * f->stride);

		n += e->state == RT_FATE_OPEN && e->walk == walk;
	}
	return n;
}

struct held {
	struct rte_mbuf *m;
	uint32_t site;
};

static unsigned run_plan(struct held *held, unsigned room, unsigned packets)
{
	unsigned count = 0;

	for (unsigned i = 0; i < packets; i++) {
		uint32_t site = test_random() % SITES;
		enum what what = test_random() % DEEDS;
		struct rte_mbuf *m = test_receive(site);

		assert_non_null(m);
		if (what != HOLD || count == room) {
			treat(m, site, what == HOLD ? FORWARD : what);
		} else {
			held[count].m = m;
			held[count++].site = site;
		}
		if (count && test_random() % 16 == 0) {
			unsigned k = test_random() % count;

			treat(held[k].m, held[k].site, test_random() % 2 ? FORWARD : DROP);
			held[k] = held[--count];
		}
		if (i % 1024 == 0)
			test_drain();
	}
	return count;
}

/* A packet that is not offered may be unnoticed so far: it is open, and its mbuf free. */
static void check_with_free(unsigned held)
{
	struct rt_seg_count plan[SITES];
	uint64_t open = 0, unnoticed = 0;

	test_drain();
	memcpy(plan, truth, sizeof(plan));
	for (uint32_t i = 0; i < SITES; i++) {
		struct rt_seg_count c = test_count(i, RT_DIR_RX);

		open += test_open(i);
		unnoticed += truth[i].not_offered - c.not_offered;
		truth[i].not_offered = c.not_offered;
	}
	test_check();
	memcpy(truth, plan, sizeof(plan));
	assert_int_equal(open, unnoticed + held);
	assert_int_equal(count_free(), unnoticed);
}

static void test_fates_are_those_of_the_plan(void **state)
{
	static struct held held[500];
	unsigned count = run_plan(held, RTE_DIM(held), 300000);

	test_walk();
	check_with_free(count);
	assert_int_equal(session->shm.header->fate_pools, 1);
	assert_string_equal(session->shm.fate_pools[0].name, "test");
	assert_int_equal(session->shm.fate_pools[0].size, pool->size);
	assert_true(session->shm.fate_pools[0].walked);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(test_entry(held[i].m)->pool, 1);
	while (count--)
		test_give_up(held[count].m, held[count].site);
	test_session_end(session);
	check_with_free(0);
}

/* All mbufs are received again. */
static void test_what_was_freed_is_known_when_its_mbuf_comes_back(void **state)
{
	static struct rte_mbuf *all[4096];
	unsigned n = 0;

	while ((all[n] = test_receive(1)))
		n++;
	for (unsigned i = 0; i < n; i++)
		test_give_up(all[i], 1);
	n = 0;
	while ((all[n] = test_receive(2))) {
		if (++n % 256 == 0)
			test_drain();
	}
	test_check();
	for (unsigned i = 0; i < n; i++)
		offered(all[i], 2);
	test_check();
	assert_int_equal(test_open(1) + test_open(2), 0);
}

static void test_shared_packets_are_unknown(void **state)
{
	struct rte_mbuf *m = test_receive(1);

	offered(m, 1);
	m = rte_mbuf_raw_alloc(pool);
	rte_mbuf_refcnt_set(m, 2);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &m, 1, rt_tsc());
	truth[2].received++;
	truth[2].unknown++;
	test_check();
	rte_mbuf_refcnt_set(m, 1);
	rte_mbuf_raw_free(m);
}

/* As those of pools that are not listed, or not yet. */
static void test_unlisted_pools_are_searched_once(void **state)
{
	struct rt_fates *f = session->fates;
	struct rt_fate_burst *b = &f->bursts[0];
	const struct rte_mempool *listed = pool;
	struct rte_mbuf *m;

	test_walk();
	f->pools[0] = NULL; /* freed */
	offered(m = test_receive(1), 1);
	assert_int_equal(test_entry(m)->pool, 0);
	assert_ptr_equal(b->missed, pool);
	f->pools[0] = listed; /* not seen, as it has the same version */
	offered(m = test_receive(1), 1);
	assert_int_equal(test_entry(m)->pool, 0);
	f->pool_version++;
	offered(m = test_receive(1), 1);
	assert_int_equal(test_entry(m)->pool, 1);
}

static void test_mbufs_without_a_pool_are_of_none(void **state)
{
	struct rte_mbuf *m = test_receive(1);

	test_walk();
	offered(m, 1);
	m = test_arrive();
	m->pool = NULL;
	session->fates->pools[0] = NULL;
	rt_fates_feed(&session->rings[0], test_tap(1, RT_DIR_RX), &m, 1, rt_tsc());
	truth[1].received++;
	assert_int_equal(test_entry(m)->pool, 0);
	m->pool = pool;
	offered(m, 1);
	test_check();
}

/* As bonding: the mbuf passes the RX hooks of two ports. A packet between that only the second port
 * receives is its own. */
static void test_what_a_port_passes_on_counts_at_the_first(void **state)
{
	const struct rt_tap *member = test_tap(1, RT_DIR_RX), *bond = test_tap(2, RT_DIR_RX);
	const struct rt_tap *out = test_tap(0, RT_DIR_TX);
	struct rte_mbuf *m[3];

	for (unsigned i = 0; i < RTE_DIM(m); i++) {
		assert_non_null(m[i] = test_arrive());
		m[i]->ol_flags = 0;
		if (i != 1)
			rt_hook_rx(member->port, 0, &m[i], 1, 1, member->hook);
	}
	rt_hook_rx(bond->port, 0, m, RTE_DIM(m), RTE_DIM(m), bond->hook);
	truth[1].received = 2;
	truth[2].received = 1;
	test_check();
	assert_true(rt_ids_has_port(test_entry(m[0])->id, member->port));
	assert_true(rt_ids_has_port(test_entry(m[1])->id, bond->port));
	rt_hook_tx(out->port, 0, m, RTE_DIM(m), out->hook);
	truth[1].offered = 2;
	truth[2].offered = 1;
	test_check();
	/* Sent, and received by another port, as by net_ring. */
	rt_hook_rx(bond->port, 0, m, RTE_DIM(m), RTE_DIM(m), bond->hook);
	truth[2].received += RTE_DIM(m);
	test_check();
	rt_hook_tx(out->port, 0, m, RTE_DIM(m), out->hook);
	truth[2].offered += RTE_DIM(m);
	test_check();
	rte_pktmbuf_free_bulk(m, RTE_DIM(m));
}

static void test_rest_of_a_chain_is_counted(void **state)
{
	struct rte_mbuf *m = test_receive(1), *rest = test_receive(1);

	/* As if both had been received as one packet. */
	offered(test_receive(1), 1);
	*RTE_MBUF_DYNFIELD(rest, rt_ids.offset, uint64_t *) =
		*RTE_MBUF_DYNFIELD(m, rt_ids.offset, uint64_t *);
	test_expect(rest, 1);
	test_give_up(m, 1);
	test_offer(rest);
	assert_int_equal(test_count(0, RT_DIR_TX).rest_offered, 1);
	m = test_receive(2); /* the ring of the pool is first in, first out: not this one */
	offered(m, 2);
	assert_int_equal(test_count(0, RT_DIR_TX).rest_offered, 1);
}

/* A thread without a ring. */
static void test_packets_of_threads_without_a_ring_count(void **state)
{
	struct rte_mbuf *m = test_receive(1), *again = m;

	test_give_up(m, 1);
	test_stamp(m);
	rt_fates_feed(NULL, test_tap(2, RT_DIR_RX), &again, 1, rt_tsc());
	truth[2].received++;
	test_check();
	assert_int_equal(test_count(1, RT_DIR_RX).lost[RT_LOSS_NO_RING], 1);
	rt_fates_feed(NULL, test_tap(2, RT_DIR_TX), &again, 1, rt_tsc());
	truth[2].offered++;
	test_check();
}

/* One burst, with packets of all kinds and taps. */
static void test_bursts_of_threads_without_a_ring_count(void **state)
{
	struct rte_mbuf *all[3 * SITES];

	for (unsigned i = 0; i < RTE_DIM(all); i++)
		assert_non_null(all[i] = test_receive(i % SITES));
	for (unsigned i = 0; i < RTE_DIM(all); i++) {
		uint32_t site = i % SITES;

		if (i / SITES == 1) {
			all[i]->ol_flags = 0;
			truth[site].unknown++;
			truth[site].inferred++;
		} else if (i / SITES == 2) { /* made by the application, in its mbuf */
			test_expect(all[i], site);
			all[i]->ol_flags = 0;
			all[i]->port = RTE_MBUF_PORT_INVALID;
		} else {
			truth[site].offered++;
		}
	}
	rt_fates_feed(NULL, test_tap(0, RT_DIR_TX), all, RTE_DIM(all), rt_tsc());
	test_check();
	for (uint32_t i = 0; i < SITES; i++)
		assert_int_equal(test_count(i, RT_DIR_RX).lost[RT_LOSS_NO_RING], 1);
	rte_pktmbuf_free_bulk(all, RTE_DIM(all));
}

static void test_burst_that_is_left_by_a_jump_is_unknown(void **state)
{
	struct rte_mbuf *m = test_receive(1);
	uint32_t tap = test_tap(1, RT_DIR_RX)->index;

	/* After the first of five packets. */
	session->fates->bursts[0] = (struct rt_fate_burst){
		.tap = tap + 1, .left = 4, .received = truth[1].received + 4};
	rt_fates_mend(session->fates, &session->rings[0]);
	rt_fates_mend(session->fates, &session->rings[0]);
	truth[1].received += 4;
	truth[1].unknown += 4;
	offered(m, 1);
	test_check();
}

/* ---- jumps ---- */

#define BURST       32u
#define JUMPS       300
#define SHARED_SITE 2u /* others hold what it receives as well: unknown */

static sigjmp_buf outside;
static pthread_t jumper;
static volatile sig_atomic_t inside, jumps;

static void jump(int sig)
{
	/* DPDK's threads get signals, too. */
	if (!pthread_equal(pthread_self(), jumper) || !inside)
		return;
	inside = 0;
	jumps++;
	siglongjmp(outside, 1);
}

/* As a hook does it, whose thread may jump out of it at any instruction. */
static void feed(const struct rt_tap *tap, struct rte_mbuf **m)
{
	static struct rt_thread thread = {.index = 9};
	const struct rt_tapset set = {
		.port = m[0]->port, .only_fates = 1, .tap = {(struct rt_tap *)(uintptr_t)tap}};
	const bool gives_ids = tap->direction == RT_DIR_RX && test_random() % 2;
	struct rt_ring *r = &session->rings[0];
	struct rt_fate_visit v;

	if (r->open) {
		rt_fates_mend(session->fates, r);
		rt_epb_mend(r, 0);
	}
	if (sigsetjmp(outside, 1))
		return;
	inside = 1;
	rt_compiler_barrier();
	if (gives_ids && rt_fates_begin(&v, &set, r, &thread, m, BURST, rt_tsc()))
		rt_fates_end(&v, m, BURST);
	else
		rt_fates_feed(r, tap, m, BURST, rt_tsc());
	rt_compiler_barrier();
	inside = 0;
}

static uint64_t count_open(uint32_t tap)
{
	const struct rt_fates *f = session->fates;
	uint64_t n = 0;

	for (uint64_t i = 0; i <= f->mask; i++) {
		const struct rt_seg_fate *e = (const void *)(f->table + i * f->stride);

		n += e->state == RT_FATE_OPEN && e->tap == tap;
	}
	return n;
}

static void exchange(uint32_t site)
{
	struct rte_mbuf *m[BURST];

	for (unsigned i = 0; i < BURST; i++) {
		assert_non_null(m[i] = test_arrive());
		rte_mbuf_refcnt_update(m[i], site == SHARED_SITE);
	}
	feed(test_tap(site, RT_DIR_RX), m);
	truth[site].received += BURST;
	for (unsigned i = 0; i < BURST; i++)
		rte_mbuf_refcnt_update(m[i], -(site == SHARED_SITE));
	if (test_random() % 2)
		feed(test_tap(site, RT_DIR_TX), m);
	rte_pktmbuf_free_bulk(m, BURST);
}

/* A packet that is being looked at then may stay open for ever, as nobody knows whether it counts
 * already; all others count once. */
static void test_jumps_out_of_hooks_leave_counters_sane(void **state)
{
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
	uint64_t open = 0, entries = 0;

	jumper = pthread_self();
	signal(SIGALRM, jump);
	jumps = 0;
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (unsigned i = 0; jumps < JUMPS; i++)
		exchange(i % SITES);
	setitimer(ITIMER_REAL, &never, NULL);
	exchange(0); /* mends the last one */
	for (uint32_t i = 0; i < SITES; i++) {
		struct rt_seg_count c = test_count(i, RT_DIR_RX);

		/* A jump before anything was counted. */
		assert_in_range(truth[i].received - c.received, 0, (uint64_t)jumps * BURST);
		assert_int_equal(
			c.seen, c.captured + c.lost[RT_LOSS_NO_RING] + c.lost[RT_LOSS_RING_FULL]);
		assert_in_range(test_open(i), 0, c.received);
		open += test_open(i);
		entries += count_open(test_tap(i, RT_DIR_RX)->index);
	}
	assert_in_range(open, entries, entries + (uint64_t)jumps);
}

/* ---- two threads ---- */

#define RACES 2000u

static struct {
	pthread_t thread;
	struct rte_mbuf *m[BURST]; /* to be offered */
	uint32_t round;            /* the round that may begin */
	uint32_t done;             /* rounds */
	bool quit;
} other;

static void *offer_elsewhere(void *arg)
{
	for (unsigned spins = 1; !rt_load(&other.quit); spins++) {
		if (rt_load_acquire(&other.round) == other.done) {
			if (spins % 1024 == 0)
				sched_yield();
			continue;
		}
		rt_fates_feed(&session->rings[1], test_tap(1, RT_DIR_TX), other.m, BURST, rt_tsc());
		rte_pktmbuf_free_bulk(other.m, BURST);
		rt_store_release(&other.done, other.done + 1);
	}
	return NULL;
}

/* Packets, or in every second round clones of them, and other clones for the other thread. */
static void receive_clones(struct rte_mbuf **m, uint32_t round)
{
	for (unsigned i = 0; i < BURST; i++) {
		m[i] = test_receive(round % SITES);
		assert_non_null(m[i]);
		other.m[i] = rte_pktmbuf_clone(m[i], pool);
		assert_non_null(other.m[i]);
		if (round % 2) {
			struct rte_mbuf *c = rte_pktmbuf_clone(m[i], pool);

			rte_pktmbuf_free(m[i]);
			m[i] = c;
		}
	}
}

/* Clones of one packet, or the packet and its clone, are offered by two threads at once. */
static void test_a_packet_is_offered_once_by_two_threads(void **state)
{
	struct rte_mbuf *m[BURST];

	memset(&other, 0, sizeof(other));
	assert_int_equal(pthread_create(&other.thread, NULL, offer_elsewhere, NULL), 0);
	for (uint32_t round = 1; round <= RACES; round++) {
		receive_clones(m, round);
		rt_store_release(&other.round, round);
		/* So that they meet: the other one begins late, by some time. */
		for (uint32_t i = 0; i < round % 64; i++)
			rt_pause();
		rt_fates_feed(&session->rings[0], test_tap(0, RT_DIR_TX), m, BURST, rt_tsc());
		rte_pktmbuf_free_bulk(m, BURST);
		truth[round % SITES].offered += BURST;
		while (rt_load_acquire(&other.done) != round)
			sched_yield();
	}
	rt_store(&other.quit, true);
	pthread_join(other.thread, NULL);
	test_check();
	for (uint32_t i = 0; i < SITES; i++)
		assert_int_equal(test_open(i), 0);
}

/* As a later segment of a chain, an mbuf has another packet as well. */
static void test_mbufs_of_later_segments_are_received_again(void **state)
{
	struct rte_mbuf *old = test_receive(1), *first = test_arrive();

	test_expect(old, 1); /* freed, and filled by the driver again */
	first->next = old;
	first->nb_segs = 2;
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &first, 1, rt_tsc());
	truth[2].received++;
	test_check();
	offered(first, 2);
	test_check();
}

#define with_fates(f) cmocka_unit_test_setup_teardown(f, test_fates_begin, test_fates_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fates(test_fates_are_those_of_the_plan),
		with_fates(test_what_was_freed_is_known_when_its_mbuf_comes_back),
		with_fates(test_mbufs_of_later_segments_are_received_again),
		with_fates(test_shared_packets_are_unknown),
		with_fates(test_what_a_port_passes_on_counts_at_the_first),
		with_fates(test_rest_of_a_chain_is_counted),
		with_fates(test_unlisted_pools_are_searched_once),
		with_fates(test_mbufs_without_a_pool_are_of_none),
		with_fates(test_packets_of_threads_without_a_ring_count),
		with_fates(test_bursts_of_threads_without_a_ring_count),
		with_fates(test_burst_that_is_left_by_a_jump_is_unknown),
		with_fates(test_jumps_out_of_hooks_leave_counters_sane),
		with_fates(test_a_packet_is_offered_once_by_two_threads),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
