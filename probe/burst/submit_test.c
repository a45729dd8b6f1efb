/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that an application passes to the vhost library's asynchronous functions. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <linux/filter.h>

#include <cmocka.h>

#include "common/record.h"
#include "probe/capture/copy_bytes.h"
#include "probe/capture/epb.h"
#include "probe/capture/ids.h"
#include "probe/capture/request.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "test_vhost.h"

#define SUBMIT  48 /* packets; more than RECORDS */
#define RECORDS 32 /* that are written before one call */
#define FRAMES  5000

static uint16_t try_poll(int vid)
{
	struct rte_mbuf *m[BURST];
	int flying = -1;
	uint16_t n =
		app->try_dequeue(vid, FROM, test_pool(), m, BURST, &flying, TEST_DMA, TEST_VCHAN);

	assert_int_equal(flying, BURST - n);
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* Frames of `first`, `first` + 1, ..., again and again until the library has taken them. Returns
 * how many were tried. */
static unsigned submit_all(uint32_t first, uint16_t n)
{
	struct rte_mbuf *m[SUBMIT];
	unsigned tried = 0;

	for (uint16_t i = 0; i < n; i++)
		m[i] = test_frame(first + i, 60);
	for (uint16_t i = 0, k; i < n; i += k) {
		lib.most = test_random() % 3 ? (uint16_t)(test_random() % SUBMIT) : 0;
		k = app->submit(1, TO, m + i, n - i, TEST_DMA, TEST_VCHAN);
		rte_pktmbuf_free_bulk(m + i, k);
		tried += n - i;
	}
	return tried;
}

/* The next record of a ring, after *at bytes; NULL: there is none. */
static const uint8_t *next_record(const struct rt_ring *r, uint64_t *at)
{
	const struct rt_chunks *c = r->chunks;
	const uint8_t *p;

	if (*at == rt_load(&r->pub->head))
		return NULL;
	p = c->data + ((uint64_t)r->pub_order[*at >> c->shift] << c->shift) + (*at & r->mask);
	if (!*(const rt_u32 *)p) { /* RT_CHUNK_END */
		*at = (*at | r->mask) + 1;
		if (*at == rt_load(&r->pub->head))
			return NULL;
		p = c->data + ((uint64_t)r->pub_order[*at >> c->shift] << c->shift);
	}
	*at += ((const rt_u32 *)p)[1];
	return p;
}

static void assert_record(const uint8_t *p, uint32_t seed)
{
	assert_non_null(p);
	for (uint32_t k = 0; k < 60; k++)
		assert_int_equal(p[RT_EPB_HEADER + k], test_byte(seed, k));
}

/* The records of this thread's ring are those of frames 0 to n - 1: all, or the odd ones. */
static void assert_records(const struct rt_session *s, uint32_t n, bool odd)
{
	const struct rt_ring *r = &s->rings[rt_thread_self->index];
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!odd || test_byte(i, 0) & 1)
			assert_record(next_record(r, &at), i);
	}
	assert_null(next_record(r, &at));
}

/* Records of all rings; the last one is that of frame `last`. */
static void assert_records_are_counted(const struct rt_session *s, uint32_t last)
{
	struct rt_seg_count sum = test_session_sum(s);
	const uint8_t *p, *end = NULL;
	uint64_t n = 0;

	for (uint32_t i = 0; i < RT_MAX_RINGS; i++) {
		for (uint64_t at = 0; s->rings[i].used && (p = next_record(&s->rings[i], &at)); n++)
			end = p;
	}
	assert_record(end, last);
	assert_int_equal(sum.captured, n);
	assert_int_equal(sum.seen, n);
}

static void test_submitted_packets_are_read_before_and_recorded_once(void **state)
{
	const struct rt_insn odd[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0},
		{BPF_JMP | BPF_JSET | BPF_K, 0, 1, 1}, {BPF_RET | BPF_K, 0, 0, 65535},
		{BPF_RET | BPF_K, 0, 0, 0}};
	struct rt_session *s[2];
	struct rt_seg_count sum;
	uint32_t n = 0;

	lib.path[1] = "/run/vm1";
	assert_int_equal(try_poll(1), BURST); /* makes the port */
	s[0] = test_vhost_capture(&(struct rt_msg_open){.buffer_size = 16 << 20}, NULL);
	s[1] = test_vhost_capture(
		&(struct rt_msg_open){.buffer_size = 16 << 20, .insn_count = 4}, odd);
	for (unsigned burst = 1; n < FRAMES; burst = burst % SUBMIT + 1) {
		submit_all(n, (uint16_t)burst);
		n += burst;
	}
	for (int i = 0; i < 2; i++) {
		sum = test_session_sum(s[i]);
		assert_int_equal(sum.seen, n);
		assert_int_equal(sum.captured + sum.filtered, n);
		assert_true(i ? sum.filtered > n / 4 : !sum.filtered);
		assert_records(s[i], n, i);
	}
	lib.most = 3;
	assert_int_equal(try_poll(1), 3);
	assert_int_equal(test_session_sum(s[0]).captured, n + 3);
	for (int i = 0; i < 2; i++) {
		test_session_end(s[i]);
		rt_session_free(s[i]);
	}
}

static void test_submitted_packets_of_a_session_that_may_wait(void **state)
{
	struct rt_session *s;
	unsigned tried;

	lib.path[1] = "/run/vm1";
	assert_int_equal(try_poll(1), BURST);
	s = test_vhost_capture(
		&(struct rt_msg_open){.buffer_size = 16 << 20, .on_full = RT_ON_FULL_WAIT}, NULL);
	tried = submit_all(0, SUBMIT); /* each try counts */
	assert_true(tried > SUBMIT);
	assert_int_equal(test_session_sum(s).captured, tried);
	assert_records_are_counted(s, SUBMIT - 1);
	test_session_end(s);
	submit_all(0, 1);
	assert_int_equal(test_session_sum(s).captured, tried);
	rt_session_free(s);
}

static uint64_t *id_of(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, rt_ids.offset, uint64_t *);
}

/* Packets of a port, half of them without their flags, and one of a frame that was sent before. */
static void test_refused_packets_keep_their_ids(void **state)
{
	const struct rt_msg_open open = {.buffer_size = 16 << 20, .ids = RT_IDS_ON | RT_IDS_INFER};
	uint64_t at = 0, id[BURST];
	struct rte_mbuf *m[BURST];
	struct rt_session *s;
	const uint8_t *p;

	lib.path[1] = "/run/vm1";
	assert_int_equal(test_vhost_poll(1, FROM), BURST);
	s = test_vhost_capture(&open, NULL);
	assert_int_equal(app->dequeue(1, FROM, test_pool(), m, BURST), BURST);
	for (unsigned i = 0; i < BURST; i++) {
		id[i] = *id_of(m[i]);
		assert_int_not_equal(id[i], 0);
		m[i]->port = RTE_MAX_ETHPORTS;
		m[i]->ol_flags = i % 2 ? m[i]->ol_flags : 0;
	}
	*id_of(m[4]) |= 1ull << 63; /* see ids.c */
	id[4] = 0;
	for (unsigned i = 0; i < BURST;) {
		lib.most = 0;
		assert_int_equal(app->submit(1, TO, m + i, BURST - i, TEST_DMA, TEST_VCHAN), 0);
		lib.most = 3;
		i += app->submit(1, TO, m + i, BURST - i, TEST_DMA, TEST_VCHAN);
	}
	rte_pktmbuf_free_bulk(m, BURST);
	for (unsigned i = 0; i < 2 * BURST; i++) {
		struct rt_record r = {0};
		struct rt_options o;

		p = next_record(&s->rings[rt_thread_self->index], &at);
		assert_non_null(p);
		assert_null(rt_record_read(p, ((const rt_u32 *)p)[1], &r));
		rt_record_options(p, &r, &o);
		if (i >= BURST)
			assert_int_equal(o.id, id[i - BURST]);
	}
	assert_int_equal(test_session_sum(s).captured, 2 * BURST);
	test_session_end(s);
	rt_session_free(s);
}

static void end_thread(void)
{
	pthread_exit(&lib);
}

static sigjmp_buf jump;

static void jump_out(void)
{
	siglongjmp(jump, 1);
}

static void *submit_some(void *arg)
{
	submit_all(0, SUBMIT);
	return NULL;
}

static void test_a_thread_that_ends_in_the_call_leaves_its_records(void **state)
{
	struct rt_session *s;
	pthread_t thread;
	void *ended = NULL;

	lib.path[1] = "/run/vm1";
	assert_int_equal(try_poll(1), BURST);
	s = test_vhost_capture(&(struct rt_msg_open){.buffer_size = TEST_RING}, NULL);
	lib.leaves = end_thread;
	assert_false(pthread_create(&thread, NULL, submit_some, NULL));
	pthread_join(thread, &ended);
	assert_ptr_equal(ended, &lib);
	test_session_end(s);
	assert_records_are_counted(s, RECORDS - 1);
	assert_int_equal(test_session_sum(s).captured, RECORDS);
	rt_session_free(s);
}

static void test_a_thread_that_jumps_out_of_the_call_leaves_its_records(void **state)
{
	struct rt_session *s;

	lib.path[1] = "/run/vm1";
	assert_int_equal(try_poll(1), BURST);
	s = test_vhost_capture(&(struct rt_msg_open){.buffer_size = TEST_RING}, NULL);
	lib.leaves = jump_out;
	if (!sigsetjmp(jump, 0))
		submit_all(0, SUBMIT);
	lib.leaves = NULL;
	assert_int_equal(app->submit(1, TO, NULL, 0, TEST_DMA, TEST_VCHAN), 0);
	lib.leaves = jump_out;
	if (!sigsetjmp(jump, 0))
		submit_all(0, 5);
	lib.leaves = NULL;
	rt_session_stop(s);
	assert_int_equal(app->submit(1, TO, NULL, 0, TEST_DMA, TEST_VCHAN), 0);
	while (!rt_session_stopped(s))
		sched_yield();
	assert_records_are_counted(s, 4);
	assert_int_equal(test_session_sum(s).captured, RECORDS + 5);
	rt_session_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_submitted_packets_are_read_before_and_recorded_once, test_watch,
			test_unwatch),
		cmocka_unit_test_setup_teardown(test_submitted_packets_of_a_session_that_may_wait,
			test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_refused_packets_keep_their_ids, test_watch, test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_thread_that_ends_in_the_call_leaves_its_records, test_watch,
			test_unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_thread_that_jumps_out_of_the_call_leaves_its_records, test_watch,
			test_unwatch),
	};

	test_stats_start();
	return test_load_app() || cmocka_run_group_tests(tests, NULL, NULL);
}
