/* SPDX-License-Identifier: BSD-3-Clause */
/* Fates of packets against a plan: what this program does with each, it counts itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fate.h"
#include "ids.h"
#include "probe/core/test_eal.h"

#define SITES 3u
#define MBUFS 2047u

static struct rt_fates fates;
static struct rt_fate_count row[SITES], truth[SITES];
static struct rt_thread self; /* for ids */
static struct rte_mempool *pool;

static int set_up(void **state)
{
	char err[RT_TEXT_LEN];

	memset(row, 0, sizeof(row));
	memset(truth, 0, sizeof(truth));
	pool = test_pool();
	assert_int_equal(rt_ids_register(err), 0);
	return rt_fates_make(&fates, MBUFS);
}

static int tear_down(void **state)
{
	assert_int_equal(rte_mempool_avail_count(pool), MBUFS);
	rt_fates_free(&fates);
	return 0;
}

static uint64_t open_of(const struct rt_fate_count *c)
{
	return c->seen - c->offered - c->not_offered - c->unknown;
}

/* As a driver and the RX hook do it: what is not set here is of the mbuf's last use. */
static struct rte_mbuf *receive(uint32_t site)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(pool);

	if (!m)
		return NULL;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->nb_segs = 1;
	m->next = NULL;
	m->ol_flags = 0;
	m->port = 7;
	m->pkt_len = m->data_len = 60;
	rt_ids_stamp(&self, 7, &m, 1);
	rt_fate_received(&fates, row, site, &m, 1, 1);
	truth[site].seen++;
	return m;
}

/* As the TX hook and a driver do it. */
static void offer(struct rte_mbuf *m)
{
	rt_fate_offered(&fates, row, &m, 1);
	rte_pktmbuf_free(m);
}

/* All mbufs of the pool are received again, so that all that was freed is known. */
static void flush(void)
{
	static struct rte_mbuf *all[MBUFS];
	unsigned n = 0;

	while ((all[n] = rte_mbuf_raw_alloc(pool)))
		n++;
	for (unsigned i = 0; i < n; i++)
		rte_mbuf_raw_free(all[i]);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = receive(0);

		assert_non_null(m);
		offer(m);
		truth[0].offered++;
	}
}

static void check(void)
{
	for (unsigned i = 0; i < SITES; i++) {
		assert_int_equal(row[i].seen, truth[i].seen);
		assert_int_equal(row[i].offered, truth[i].offered);
		assert_int_equal(row[i].not_offered, truth[i].not_offered);
		assert_int_equal(row[i].unknown, truth[i].unknown);
		assert_int_equal(row[i].inferred, truth[i].inferred);
	}
}

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
	WHATS
};

static void send_clones(struct rte_mbuf *m, uint32_t site, enum what what)
{
	struct rte_mbuf *c = rte_pktmbuf_clone(m, pool);

	if (!c) {
		offer(m);
		truth[site].offered++;
		return;
	}
	if (what == CLONES) {
		offer(c);
		offer(m);
	} else if (what == CLONE_ONLY) {
		rte_pktmbuf_free(m);
		offer(c);
	} else {
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(c);
	}
	if (what == CLONE_LOST)
		truth[site].not_offered++;
	else
		truth[site].offered++;
}

static void send_made(struct rte_mbuf *next)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (!m) {
		offer(next);
		return;
	}
	m->next = next;
	m->nb_segs = next ? 2 : 1;
	offer(m);
}

static void treat(struct rte_mbuf *m, uint32_t site, enum what what)
{
	struct rte_mbuf *copy;

	switch (what) {
	case DROP:
		rte_pktmbuf_free(m);
		truth[site].not_offered++;
		return;
	case CLONES:
	case CLONE_ONLY:
	case CLONE_LOST: send_clones(m, site, what); return;
	case COPY:
		copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
		rte_pktmbuf_free(m);
		truth[site].not_offered++;
		if (copy)
			offer(copy);
		return;
	case TWICE:
		rte_mbuf_refcnt_update(m, 1);
		offer(m);
		break;
	case HEADER:
		send_made(m);
		truth[site].offered++;
		return;
	case RESET:
		m->ol_flags = 0;
		offer(m);
		truth[site].unknown++;
		truth[site].inferred++;
		return;
	case MAKE:
		rte_pktmbuf_free(m);
		truth[site].not_offered++;
		m = rte_pktmbuf_alloc(pool);
		if (m)
			offer(m);
		return;
	default: break;
	}
	offer(m);
	truth[site].offered++;
}

static void test_fates_are_those_of_the_plan(void **state)
{
	static struct {
		struct rte_mbuf *m;
		uint32_t site;
	} held[500];
	unsigned count = 0;

	for (unsigned i = 0; i < 300000; i++) {
		uint32_t site = test_random() % SITES;
		enum what what = test_random() % WHATS;
		struct rte_mbuf *m = receive(site);

		assert_non_null(m);
		if (what != HOLD || count == RTE_DIM(held)) {
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
	}
	flush();
	check();
	assert_int_equal(open_of(&row[0]) + open_of(&row[1]) + open_of(&row[2]), count);
	while (count--)
		treat(held[count].m, held[count].site, DROP);
	flush();
	check();
	for (unsigned i = 0; i < SITES; i++)
		assert_int_equal(open_of(&row[i]), 0);
}

static void test_shared_packets_are_unknown(void **state)
{
	struct rte_mbuf *m = receive(1);

	offer(m);
	m = rte_mbuf_raw_alloc(pool);
	rte_mbuf_refcnt_set(m, 2);
	rt_fate_received(&fates, row, 2, &m, 1, 1);
	assert_int_equal(row[2].unknown, 1);
	assert_int_equal(row[1].offered, 1);
	rte_mbuf_refcnt_set(m, 1);
	rte_mbuf_raw_free(m);
}

static void test_mbufs_without_room_are_unknown(void **state)
{
	static struct rte_mbuf *all[MBUFS];

	rt_fates_free(&fates);
	assert_int_equal(rt_fates_make(&fates, 1), 0);
	for (unsigned i = 0; i < MBUFS; i++)
		assert_non_null(all[i] = receive(0));
	assert_in_range(row[0].unknown, MBUFS - 1024, MBUFS - 2);
	for (unsigned i = 0; i < MBUFS; i++)
		offer(all[i]);
	assert_int_equal(open_of(&row[0]), 0);
	assert_int_equal(row[0].offered, MBUFS - row[0].unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_fates_are_those_of_the_plan, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_shared_packets_are_unknown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_mbufs_without_room_are_unknown, set_up, tear_down),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
