/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ether.h>

#include "probe/capture/ids.h"
#include "probe/hook/hook.h"
#include "test_eal.h"
#include "test_ports.h"
#include "test_fates.h"

#define PORT 7 /* port of received packets; their ids have it */

struct rt_session *session;
struct rt_seg_count truth[SITES];
struct rte_mempool *pool;

static struct rt_thread self; /* for ids */
static struct test_ring reader;
static uint64_t number;
static uint8_t expected[PACKETS]; /* by number: 1 + site; 0: no record is due */
static uint64_t records;

/* Once: net_ring does not give its rings back. */
static void make_ports(void)
{
	static bool made;
	char name[32];

	for (uint32_t i = 0; i < SITES && !made; i++) {
		snprintf(name, sizeof(name), "net_ring_%u", i);
		test_port_make(name);
	}
	made = true;
}

static int begin(uint32_t ids, const struct rt_insn *insns, uint32_t count)
{
	const struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = TEST_SNAP,
		.insn_first = count ? 0 : RT_NO_FILTER,
		.insn_count = count};
	const struct rt_msg_open open = {.ids = ids, .insn_count = count, .buffer_size = 4 << 20};

	memset(truth, 0, sizeof(truth));
	memset(expected, 0, sizeof(expected));
	number = records = 0;
	pool = test_pool();
	make_ports();
	session = test_session_open(&open, &target, insns);
	test_session_arm(session, test_clock());
	assert_int_equal(session->tap_count, 2 * SITES);
	for (uint32_t i = 0; i < 2; i++) /* for tests that call rt_fates_feed() */
		assert_true(rt_session_begin_ring(session, &session->rings[i], &rt_threads[i]));
	reader = (struct test_ring){.shm = session->shm};
	return 0;
}

int test_fates_begin(void **state)
{
	return begin(RT_IDS_ON | RT_IDS_FATES, NULL, 0);
}

int test_fates_begin_events(void **state)
{
	static const struct rt_insn even[] = {
		{.code = 0x30 /* ldb [0] */},
		{.code = 0x45 /* jset #1 */, .jf = 1, .k = 1},
		{.code = 0x06 /* ret */, .k = 0},
		{.code = 0x06, .k = 65535},
	};

	return begin(RT_IDS_ON | RT_IDS_FATES | RT_IDS_EVENTS | 5u << RT_IDS_SOURCE_SHIFT, even,
		RTE_DIM(even));
}

bool test_next_record(struct test_record *r)
{
	return test_ring_next(&reader, r);
}

int test_fates_end(void **state)
{
	if (session->state < RT_SESSION_STOPPING)
		test_session_end(session);
	rt_session_free(session);
	assert_int_equal(rte_mempool_avail_count(pool), pool->size);
	return 0;
}

const struct rt_tap *test_tap(uint32_t site, enum rt_direction dir)
{
	const struct rt_tap *t = session->taps[2 * site + dir];

	assert_int_equal(t->direction, dir);
	return t;
}

struct rt_seg_count test_count(uint32_t site, enum rt_direction dir)
{
	struct rt_seg_count sum = {0};

	for (uint32_t r = 0; r <= session->rows; r++) {
		const struct rt_seg_count *c = &test_session_row(session, r)[2 * site + dir];
		const uint64_t *from = (const uint64_t *)c;

		for (unsigned i = 0; i < sizeof(sum) / sizeof(uint64_t); i++)
			((uint64_t *)&sum)[i] += rt_load(&from[i]);
	}
	return sum;
}

uint64_t test_open(uint32_t site)
{
	struct rt_seg_count c = test_count(site, RT_DIR_RX);

	return c.received - c.offered - c.not_offered - c.unknown;
}

void test_check(void)
{
	uint64_t due = 0;

	test_drain();
	for (uint32_t i = 0; i < SITES; i++) {
		struct rt_seg_count c = test_count(i, RT_DIR_RX);

		assert_int_equal(c.received, truth[i].received);
		assert_int_equal(c.offered, truth[i].offered);
		assert_int_equal(c.not_offered, truth[i].not_offered);
		assert_int_equal(c.unknown, truth[i].unknown);
		assert_int_equal(c.inferred, truth[i].inferred);
		assert_int_equal(c.seen, c.not_offered);
		assert_int_equal(c.seen, c.captured + c.lost[RT_LOSS_NO_RING]);
		due += c.captured;
	}
	assert_int_equal(records, due);
}

struct rt_seg_fate *test_entry(const void *mbuf)
{
	const struct rt_fates *f = session->fates;

	for (uint64_t i = 0; i <= f->mask; i++) {
		struct rt_seg_fate *e = (void *)(f->table + i * f->stride);

		if (e->mbuf == (uintptr_t)mbuf)
			return e;
	}
	return NULL;
}

void test_stamp(struct rte_mbuf *m)
{
	rt_ids_stamp(&self, PORT, &m, 1);
}

struct rte_mbuf *test_arrive(void)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(pool);

	if (!m)
		return NULL;
	number = number % (PACKETS - 1) + 1;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->nb_segs = 1;
	m->next = NULL;
	m->ol_flags = number % 3 ? 0 : RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0x123;
	m->port = PORT;
	m->pkt_len = m->data_len = (uint16_t)(60 + number % 200);
	memcpy(rte_pktmbuf_mtod(m, void *), &number, sizeof(number));
	test_stamp(m);
	return m;
}

struct rte_mbuf *test_receive(uint32_t site)
{
	struct rte_mbuf *m = test_arrive();

	if (!m)
		return NULL;
	rt_fates_feed(&session->rings[0], test_tap(site, RT_DIR_RX), &m, 1, rt_tsc());
	truth[site].received++;
	return m;
}

void test_offer(struct rte_mbuf *m)
{
	rt_fates_feed(&session->rings[0], test_tap(0, RT_DIR_TX), &m, 1, rt_tsc());
	rte_pktmbuf_free(m);
}

void test_walk(void)
{
	while (!rt_fates_walk_last(session))
		;
}

void test_expect(const struct rte_mbuf *m, uint32_t site)
{
	uint64_t n = *rte_pktmbuf_mtod(m, const uint64_t *);

	assert_int_equal(expected[n], 0);
	expected[n] = (uint8_t)(site + 1);
	truth[site].not_offered++;
}

void test_give_up(struct rte_mbuf *m, uint32_t site)
{
	test_expect(m, site);
	rte_pktmbuf_free(m);
}

static void check_record(const struct test_record *r)
{
	uint64_t now = rt_clock_ns(test_clock(), rt_tsc()), n;
	uint32_t tag, len;

	memcpy(&n, r->data, sizeof(n));
	assert_in_range(n, 1, PACKETS - 1);
	tag = n % 3 ? 0 : 4;
	len = (uint32_t)(60 + n % 200) + tag;
	assert_int_equal(expected[n], r->if_index + 1);
	expected[n] = UINT8_MAX; /* a second one is wrong */
	assert_int_equal(r->original, len);
	assert_int_equal(r->captured, RTE_MIN(len, 128u));
	if (tag)
		assert_memory_equal(r->data + 12, "\x81\x00\x01\x23", 4);
	assert_int_equal(r->flags, 1);
	assert_true(r->has_id);
	assert_in_range(r->id, now - 3600000000000ull, now);
}

void test_drain(void)
{
	struct test_record r;

	while (test_ring_next(&reader, &r)) {
		check_record(&r);
		records++;
	}
	test_ring_release(&reader);
}
