/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `record --fates`: hooks with a session of events and one of records with ids. One session with
 * fates gets its packets in the pass that gives the ids, several in a pass each: both against what
 * this program has done with each packet.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ids.h"
#include "readable.h"
#include "probe/above.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_fates.h"
#include "probe/test_ports.h"

#define MOST   16384u /* packets */
#define ROUNDS 400u
#define BURST  48u /* more than are done together */
#define SOURCE (5ull << RT_ID_SOURCE_SHIFT)

enum deed { FORWARD, DROP, TWICE, CLONE, RESET, DEEDS };

/* By packet. */
static struct {
	uint64_t id; /* 0: none */
	uint32_t site;
	bool shared, passes; /* the filter */
	uint8_t event;       /* that is due */
} packets[MOST];
static unsigned packet_count;

struct outcome {
	struct rt_seg_count counts[SITES];
	uint32_t count;
	struct {
		uint32_t packet, event;
	} events[MOST];
};

static struct rt_session *plain;
static struct test_ring records; /* those of plain */
static struct outcome *out;
static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % below);
}

static struct rt_session *open_plain(void)
{
	const struct rt_msg_target all = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {
		.ids = RT_IDS_ON | 5u << RT_IDS_SOURCE_SHIFT, .buffer_size = 4 << 20};
	struct rt_session *s = test_session_open(&open, &all, NULL);

	test_session_arm(s, test_clock());
	records = (struct test_ring){.shm = s->shm};
	rt_readable_look(5000); /* for clones, whose data are not behind their mbufs */
	return s;
}

static void close_plain(void)
{
	test_session_end(plain);
	rt_session_free(plain);
	rt_readable_forget();
	rt_readable_forget();
}

/* With fates as well, so that none is the only one. */
static struct rt_session *open_rival(void)
{
	const struct rt_msg_target all = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {
		.ids = RT_IDS_ON | RT_IDS_FATES | RT_IDS_EVENTS, .buffer_size = 4 << 20};
	struct rt_session *s = test_session_open(&open, &all, NULL);

	test_session_arm(s, test_clock());
	return s;
}

/* ---- what the hooks have written ---- */

static void take_events(void)
{
	struct test_record r;

	while (test_next_record(&r)) {
		uint32_t i = packet_count;

		assert_true(r.has_id);
		while (i && packets[i - 1].id != r.id)
			i--;
		assert_int_not_equal(i, 0);
		assert_in_range(out->count, 0, MOST - 1);
		assert_int_equal(r.if_index, packets[i - 1].site);
		out->events[out->count].packet = i - 1;
		out->events[out->count++].event = r.flags >> RT_EVENT_SHIFT & RT_EVENT_MASK;
	}
}

/* After each call of a hook: the ring of events was busy only if it got some. */
static void check_ring(uint64_t head, uint64_t last_ns)
{
	const struct rt_seg_ring *pub = &session->shm.rings[0];

	assert_int_equal(pub->busy, 0);
	if (pub->head == head)
		assert_int_equal(pub->last_ns, last_ns);
	else
		assert_in_range(pub->last_ns, last_ns, rt_clock_ns(test_clock(), rt_tsc()));
	take_events();
}

static uint64_t id_of(const struct rte_mbuf *m)
{
	return (*RTE_MBUF_DYNFIELD(m, rt_ids.offset, const uint64_t *) & RT_ID_MASK) | SOURCE;
}

/* Without a flag, that of the next segment: the driver has lent the first one to others as well. */
static uint64_t sent_id(const struct rte_mbuf *m)
{
	if (!(m->ol_flags & rt_ids.flag))
		m = m->next;
	return m && m->ol_flags & rt_ids.flag ? id_of(m) : 0;
}

static void expect_record(uint64_t id, uint32_t direction)
{
	struct test_record r;

	assert_true(test_ring_next(&records, &r));
	assert_int_equal(r.flags & 3u, direction);
	assert_int_equal(r.has_id, id != 0);
	assert_int_equal(r.id, id);
}

/* ---- hooks ---- */

static void send(uint32_t site, struct rte_mbuf **m, unsigned n)
{
	const struct rt_tap *tap = test_tap(site, RT_DIR_TX);
	const struct rt_seg_ring before = session->shm.rings[0];

	rt_hook_tx(tap->port, 0, m, (uint16_t)n, tap->hook);
	check_ring(before.head, before.last_ns);
	for (unsigned i = 0; i < n; i++)
		expect_record(sent_id(m[i]), 2);
	test_ring_release(&records);
}

/* As drivers deliver it: most without flags, some in several mbufs, some that others hold. */
static struct rte_mbuf *arrive(const struct rt_tap *tap)
{
	struct rte_mbuf *m = test_arrive(), *rest = m && !draw(8) ? test_arrive() : NULL;

	if (!m)
		return NULL;
	if (draw(8))
		m->ol_flags &= ~rt_ids.flag;
	m->port = tap->port;
	if (rest) {
		m->next = rest;
		m->nb_segs = 2;
		m->pkt_len += rest->data_len;
	}
	if (!draw(16))
		rte_mbuf_refcnt_set(m, 2);
	return m;
}

static unsigned receive(uint32_t site, struct rte_mbuf **m, unsigned n)
{
	const struct rt_tap *tap = test_tap(site, RT_DIR_RX);
	const struct rt_seg_ring before = session->shm.rings[0];
	uint64_t last = 0;
	unsigned k = 0;

	while (k < n && (m[k] = arrive(tap)))
		k++;
	rt_hook_rx(tap->port, 0, m, (uint16_t)k, (uint16_t)n, tap->hook);
	for (unsigned i = 0; i < k; i++) {
		bool shared = rte_mbuf_refcnt_read(m[i]) == 2;
		uint32_t p = packet_count++;

		assert_in_range(p, 0, MOST - 1);
		packets[p].id = shared ? 0 : id_of(m[i]);
		packets[p].site = site;
		packets[p].shared = shared;
		packets[p].passes = !(*rte_pktmbuf_mtod(m[i], const uint8_t *) & 1);
		packets[p].event = RT_EVENT_NONE;
		expect_record(packets[p].id, 1);
		if (shared)
			continue;
		assert_true(m[i]->ol_flags & rt_ids.flag);
		assert_true(rt_ids_has_port(packets[p].id, tap->port));
		assert_true(packets[p].id > last); /* in order */
		last = packets[p].id;
		if (m[i]->next)
			assert_int_equal(id_of(m[i]->next), packets[p].id);
	}
	test_ring_release(&records);
	check_ring(before.head, before.last_ns);
	return k;
}

/* ---- the application ---- */

static unsigned treat(struct rte_mbuf *m, uint32_t packet, struct rte_mbuf **to)
{
	struct rte_mbuf *clone;
	enum deed deed = draw(DEEDS);

	if (packets[packet].shared) { /* they let it go */
		rte_mbuf_refcnt_set(m, 1);
		deed = DROP;
	} else if (deed == DROP) {
		packets[packet].event = RT_EVENT_NOT_OFFERED;
	} else if (deed == RESET) {
		packets[packet].event = RT_EVENT_INFERRED;
		m->ol_flags = 0;
		if (m->next)
			m->next->ol_flags = 0;
	}
	if (deed == DROP) {
		rte_pktmbuf_free(m);
		return 0;
	}
	if (deed == CLONE && (clone = rte_pktmbuf_clone(m, pool))) {
		rte_pktmbuf_free(m);
		m = clone;
	}
	to[0] = m;
	if (deed != TWICE)
		return 1;
	rte_pktmbuf_refcnt_update(m, 1);
	to[1] = m;
	return 2;
}

static void run_round(void)
{
	struct rte_mbuf *m[BURST], *to[2 * BURST];
	uint32_t first = packet_count, site = draw(SITES);
	unsigned n = receive(site, m, 1 + draw(BURST)), k = 0;

	for (unsigned i = 0; i < n; i++)
		k += treat(m[i], first + i, to + k);
	if (k)
		send(draw(SITES), to, k);
	rte_pktmbuf_free_bulk(to, k);
}

/* All mbufs come back: the hooks notice what was freed. */
static void notice_all(void)
{
	static struct rte_mbuf *m[8192];
	unsigned n = 0, k;

	while ((k = receive(0, m + n, BURST)))
		n += k;
	for (unsigned i = 0; i < n; i++)
		rte_mbuf_refcnt_set(m[i], 1);
	for (unsigned i = 0; i < n; i += BURST)
		send(1, m + i, RTE_MIN(BURST, n - i));
	rte_pktmbuf_free_bulk(m, n);
}

/* ---- the truth ---- */

static void check_counts(void)
{
	struct rt_seg_count truth_of[SITES] = {0};

	for (unsigned i = 0; i < packet_count; i++) {
		struct rt_seg_count *c = &truth_of[packets[i].site];
		bool event = packets[i].event != RT_EVENT_NONE;

		c->received++;
		c->offered += !packets[i].shared && !event;
		c->not_offered += packets[i].event == RT_EVENT_NOT_OFFERED;
		c->inferred += packets[i].event == RT_EVENT_INFERRED;
		c->unknown += packets[i].shared || packets[i].event == RT_EVENT_INFERRED;
		c->captured += event && packets[i].passes;
		c->filtered += event && !packets[i].passes;
	}
	for (uint32_t i = 0; i < SITES; i++) {
		const struct rt_seg_count *c = &out->counts[i];

		assert_int_equal(c->received, truth_of[i].received);
		assert_int_equal(c->offered, truth_of[i].offered);
		assert_int_equal(c->not_offered, truth_of[i].not_offered);
		assert_int_equal(c->unknown, truth_of[i].unknown);
		assert_int_equal(c->inferred, truth_of[i].inferred);
		assert_int_equal(c->captured, truth_of[i].captured);
		assert_int_equal(c->filtered, truth_of[i].filtered);
		assert_int_equal(c->seen, c->captured + c->filtered);
	}
}

static void check_events(void)
{
	static uint8_t noticed[MOST];
	unsigned due = 0;

	memset(noticed, 0, sizeof(noticed));
	for (uint32_t i = 0; i < out->count; i++) {
		uint32_t p = out->events[i].packet;

		assert_int_equal(noticed[p]++, 0);
		assert_true(packets[p].passes);
		assert_int_equal(out->events[i].event, packets[p].event);
	}
	for (unsigned i = 0; i < packet_count; i++)
		due += packets[i].passes && packets[i].event != RT_EVENT_NONE;
	assert_int_equal(out->count, due);
	assert_in_range(due, ROUNDS, MOST);
}

static void run(struct outcome *to, bool alone)
{
	struct rt_session *rival;

	out = to;
	packet_count = 0;
	random_state = 1;
	assert_int_equal(test_fates_begin_events(NULL), 0);
	plain = open_plain();
	rival = alone ? NULL : open_rival();
	assert_int_equal(test_tap(0, RT_DIR_RX)->hook->taps->only_fates != 0, alone);
	assert_int_equal(test_tap(0, RT_DIR_RX)->hook->taps->pair, alone);
	assert_int_equal(test_tap(0, RT_DIR_TX)->hook->taps->pair, alone);
	for (unsigned i = 0; i < ROUNDS; i++)
		run_round();
	notice_all();
	for (uint32_t i = 0; i < SITES; i++)
		out->counts[i] = test_count(i, RT_DIR_RX);
	check_counts();
	check_events();
	if (rival) {
		test_session_end(rival);
		rt_session_free(rival);
	}
	close_plain();
	assert_int_equal(test_fates_end(NULL), 0);
}

static void test_one_pass_finds_what_several_find(void **state)
{
	static struct outcome one, several;

	run(&one, true);
	run(&several, false);
	assert_memory_equal(&one, &several, sizeof(one));
}

static void free_all(struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_mbuf_refcnt_set(m[i], 1);
	rte_pktmbuf_free_bulk(m, n);
}

/* It gives ids to the other session's packets, which do not count. */
static void test_a_session_that_closes_gives_ids(void **state)
{
	struct rte_mbuf *m[4];
	uint64_t received;

	packet_count = 0;
	random_state = 2;
	out = calloc(1, sizeof(*out));
	assert_non_null(out);
	plain = open_plain();
	assert_int_equal(receive(1, m, RTE_DIM(m)), RTE_DIM(m)); /* makes the thread's rings */
	free_all(m, RTE_DIM(m));
	received = test_count(1, RT_DIR_RX).received;
	assert_int_equal(received, RTE_DIM(m));
	rt_session_stop(session);
	assert_int_equal(session->state, RT_SESSION_CLOSING);
	assert_int_equal(receive(1, m, RTE_DIM(m)), RTE_DIM(m));
	assert_int_equal(test_count(1, RT_DIR_RX).received, received);
	free_all(m, RTE_DIM(m));
	free(out);
	while (!rt_session_stopped(session))
		sched_yield();
	close_plain();
}

/* A jump out of the hook while an event is written leaves the ring open and busy. */
static void test_a_ring_that_a_jump_leaves_busy_is_idle_after_the_next_burst(void **state)
{
	const struct rt_tap *tap = test_tap(1, RT_DIR_RX);
	struct rte_mbuf *m = test_arrive();

	m->ol_flags &= ~rt_ids.flag;
	rt_hook_rx(tap->port, 0, &m, 1, 1, tap->hook);
	session->rings[0].open = (uint16_t)(tap->index + 1);
	rt_ring_begin(&session->rings[0]);
	rt_hook_rx(tap->port, 0, &m, 0, 1, tap->hook); /* an empty poll leaves it */
	assert_int_equal(session->shm.rings[0].busy, 1);
	rt_hook_tx(tap->port, 0, &m, 1, test_tap(1, RT_DIR_TX)->hook);
	assert_int_equal(session->rings[0].open, 0);
	assert_int_equal(session->shm.rings[0].busy, 0);
	assert_int_equal(test_count(1, RT_DIR_RX).offered, 1);
	rte_pktmbuf_free(m);
}

#define with_events(f) cmocka_unit_test_setup_teardown(f, test_fates_begin_events, test_fates_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_pass_finds_what_several_find),
		with_events(test_a_session_that_closes_gives_ids),
		with_events(test_a_ring_that_a_jump_leaves_busy_is_idle_after_the_next_burst),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
