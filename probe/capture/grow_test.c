/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks whose memory comes while rings write in those that are there. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chunks.h"

#define SIZE   RT_CHUNK_MIN
#define COUNT  96u
#define THERE  32u
#define ORDER  128u
#define RINGS  2u
#define STRESS 20000u

static uint8_t *data;
static struct rt_chunks chunks;
static struct rt_ring ring[RINGS];
static struct rt_seg_tail tails[RINGS];
static uint32_t orders[RINGS][ORDER];

static int set_up(void **state)
{
	static const int32_t node[RINGS] = {0, 1};

	data = calloc(COUNT, SIZE);
	assert_int_equal(rt_chunks_init(&chunks, ring, data, SIZE, COUNT, ORDER), 0);
	rt_chunks_share(&chunks, RINGS, node);
	rt_chunks_withhold(&chunks, THERE);
	memset(tails, 0, sizeof(tails));
	for (uint32_t i = 0; i < RINGS; i++) {
		ring[i] = (struct rt_ring){
			.index = (uint8_t)i, .pub_order = orders[i], .peer = &tails[i]};
		rt_chunks_empty(&chunks, &ring[i]);
		rt_chunks_use(&chunks, &ring[i], node[i]);
	}
	return 0;
}

static int tear_down(void **state)
{
	rt_chunks_free(&chunks);
	free(data);
	return 0;
}

/* Writes the chunk, if it has one, and goes on to the next: where that is in the buffer, or COUNT.
 */
static uint32_t next(struct rt_ring *r)
{
	uint64_t number, part;
	uint32_t id;

	part = rt_chunks_oldest(r, &number, &id) ? SIZE / 2 : 0;
	r->head += part;
	if (rt_ring_refresh(r) && rt_chunks_next(r))
		return (uint32_t)((uint64_t)(r->chunk - data) / SIZE);
	r->head -= part;
	return COUNT;
}

/* Until there is no more. Returns the number of chunks, all of which are before `end`. */
static uint32_t fill(struct rt_ring *r, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t at; (at = next(r)) != COUNT; n++)
		assert_in_range(at, 0, end - 1);
	return n;
}

static void test_rings_have_what_is_there(void **state)
{
	assert_int_equal(chunks.free_count, THERE);
	assert_int_equal(chunks.reserve, THERE / 4);
	/* From the middle on: what is behind the end is not there. */
	assert_int_equal(fill(&ring[1], THERE), THERE - chunks.alone);
	assert_in_range(next(&ring[0]), 0, THERE - 1); /* left to one that begins */
}

static void test_each_share_begins_in_what_is_there(void **state)
{
	assert_int_equal(next(&ring[0]), 0);
	assert_int_equal(next(&ring[1]), THERE / RINGS);
}

static void test_what_comes_is_used(void **state)
{
	uint32_t before = fill(&ring[0], THERE);

	rt_chunks_offer(&chunks, 2 * THERE);
	assert_int_equal(chunks.reserve, 2 * THERE / 4);
	before += fill(&ring[0], 2 * THERE);
	assert_int_equal(before, 2 * THERE - chunks.alone);
	rt_chunks_offer(&chunks, COUNT);
	before += fill(&ring[0], COUNT);
	assert_int_equal(before, COUNT - chunks.alone);
	assert_int_equal(chunks.free_count, chunks.alone);
}

/* Both parts of the buffer have memory of all NUMA nodes. */
static void test_rings_go_on_in_their_share_of_the_rest(void **state)
{
	assert_int_equal(next(&ring[1]), THERE / RINGS);
	rt_chunks_offer(&chunks, COUNT);
	assert_int_equal(next(&ring[1]), THERE + (COUNT - THERE) / RINGS);
	assert_int_equal(next(&ring[0]), THERE); /* it had not begun */
}

static void test_all_at_once_is_as_without(void **state)
{
	struct rt_chunks all;

	assert_int_equal(rt_chunks_init(&all, ring, data, SIZE, COUNT, ORDER), 0);
	rt_chunks_withhold(&all, COUNT);
	assert_int_equal(all.free_count, COUNT);
	assert_int_equal(all.window, COUNT - COUNT / 16);
	rt_chunks_free(&all);
}

/* Threads write while the buffer grows. */
static void *write_on(void *arg)
{
	struct rt_ring *r = arg;

	for (uint32_t i = 0; i < STRESS; i++) {
		if (next(r) == COUNT)
			rt_store_release(&tails[r->index].tail, r->head / SIZE * SIZE);
		memset(r->chunk, (int)r->index + 1, 64);
		if (i / 40 % 2)
			rt_store_release(&tails[r->index].tail, r->head / SIZE * SIZE);
		if (r->chunk[63] != r->index + 1)
			return "another ring wrote into the chunk";
	}
	return NULL;
}

static void test_rings_of_running_threads_take_what_comes(void **state)
{
	pthread_t thread[RINGS];
	uint32_t owned[COUNT] = {0};

	for (uint32_t i = 0; i < RINGS; i++) {
		assert_int_not_equal(next(&ring[i]), COUNT);
		assert_int_equal(pthread_create(&thread[i], NULL, write_on, &ring[i]), 0);
	}
	for (uint32_t there = THERE + 1; there <= COUNT; there++) {
		rt_chunks_offer(&chunks, there);
		rt_chunks_tick(&chunks);
		sched_yield();
	}
	for (uint32_t i = 0; i < RINGS; i++) {
		void *why;

		pthread_join(thread[i], &why);
		if (why)
			fail_msg("%s", (const char *)why);
	}
	/* Each chunk has one owner. */
	for (uint32_t i = 0; i < RINGS; i++) {
		uint64_t n;
		uint32_t id;

		assert_true(rt_chunks_oldest(&ring[i], &n, &id));
		for (; n < ring[i].head / SIZE; n++, id = chunks.next[id])
			owned[id]++;
		owned[id]++;
	}
	for (uint32_t id = 0; id < COUNT; id++)
		assert_int_equal(owned[id] + (chunks.free[id / 64] >> id % 64 & 1), 1);
}

int main(void)
{
#define with_rings(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		with_rings(test_rings_have_what_is_there),
		with_rings(test_each_share_begins_in_what_is_there),
		with_rings(test_what_comes_is_used),
		with_rings(test_rings_go_on_in_their_share_of_the_rest),
		with_rings(test_all_at_once_is_as_without),
		with_rings(test_rings_of_running_threads_take_what_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
