/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of fates share: a session with fates on ports of this process, packets as a driver
 * delivers them, and what this program does with them, which it counts itself.
 */
#ifndef RINGTAP_PROBE_TEST_FATES_H
#define RINGTAP_PROBE_TEST_FATES_H

#include "probe/capture/fate.h"

#define SITES     3u   /* ports, each with one queue */
#define TEST_SNAP 100u /* bytes; the table has 128 */
#define PACKETS   (1u << 20)

extern struct rt_session *session;
extern struct rt_seg_count truth[SITES];
extern struct rte_mempool *pool;

/* cmocka's set-up and tear-down: ports and session, armed. */
int test_fates_begin(void **state);
/* Events instead of records, of packets that begin with an even byte. */
int test_fates_begin_events(void **state);
int test_fates_end(void **state);

/* The tap of a port. */
const struct rt_tap *test_tap(uint32_t site, enum rt_direction dir);
/* The sum of all rows. */
struct rt_seg_count test_count(uint32_t site, enum rt_direction dir);
uint64_t test_open(uint32_t site);
/* All counters are those of the plan, and records and counters agree. */
void test_check(void);
/* The entry of an mbuf; NULL: it has none. */
struct rt_seg_fate *test_entry(const void *mbuf);

/* Another id. */
void test_stamp(struct rte_mbuf *m);
/* As a driver does it, and rt_ids_stamp(). NULL: the pool is empty. */
struct rte_mbuf *test_arrive(void);
/* The same, and the rest of the RX hook: what is not set here is of the mbuf's last use. The packet
 * begins with its number. NULL: the pool is empty. */
struct rte_mbuf *test_receive(uint32_t site);
/* As the TX hook and a driver do it. */
void test_offer(struct rte_mbuf *m);
/* A whole walk, as at the end. */
void test_walk(void);
/* The packet in m: frees it, so it is not offered. */
void test_give_up(struct rte_mbuf *m, uint32_t site);

/* Reads the records of a ring, and checks them against what test_give_up() and test_expect() have
 * said. */
void test_expect(const struct rte_mbuf *m, uint32_t site);
void test_drain(void);
/* The next record of the ring. False: there is none. */
struct test_record;
bool test_next_record(struct test_record *r);

#endif
