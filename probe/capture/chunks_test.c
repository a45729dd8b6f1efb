/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ring has which chunk, without packets: rings write whole chunks. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chunks.h"

#define WINDOW             16u /* chunks */
#define SIZE               (RT_WINDOW / WINDOW)
#define COUNT              80u
#define RINGS              4u /* with less than a buffer in their windows */
#define ORDER              128u
#define FRESH              (COUNT / 16)
#define RESERVE            (COUNT / 4)
#define ALONE              FRESH /* more than a quarter of a window */
#define STRESS             20000u
#define OLDEST(number, id) (((number) << 20 | (id)) << 1) /* as in chunks.c */

static uint8_t *data;
static struct rt_chunks chunks;
static struct rt_ring ring[RINGS];
static struct rt_seg_tail tails[RINGS];
static uint32_t orders[RINGS][ORDER];

static int set_up(void **state)
{
	static const int32_t node[RINGS] = {0, 1, 2, 3};

	data = calloc(COUNT, SIZE);
	assert_int_equal(rt_chunks_init(&chunks, ring, data, SIZE, COUNT, ORDER), 0);
	rt_chunks_share(&chunks, RINGS, node);
	memset(orders, 0, sizeof(orders));
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

static uint64_t number(const struct rt_ring *r)
{
	return r->head / SIZE;
}

static uint64_t owned(const struct rt_ring *r)
{
	uint64_t first;
	uint32_t id;

	return rt_chunks_oldest(r, &first, &id) ? number(r) - first + 1 : 0;
}

/* Writes the chunk, if it has one, and goes on to the next. */
static bool next(struct rt_ring *r)
{
	uint64_t part = owned(r) ? SIZE / 2 : 0;

	r->head += part;
	if (rt_ring_refresh(r) && rt_chunks_next(r))
		return true;
	r->head -= part;
	return false;
}

/* The reader has read all chunks but the one that is being written. */
static void read_all(struct rt_ring *r)
{
	rt_store_release(&tails[r->index].tail, number(r) * SIZE);
}

/* The control thread's calls of two ticks. */
static void two_ticks(void)
{
	rt_chunks_tick(&chunks);
	rt_chunks_tick(&chunks);
}

/* Each chunk has one owner, and the ring's place is where its order says. */
static void assert_sound(void)
{
	unsigned owners[COUNT] = {0};

	for (uint32_t i = 0; i < RINGS; i++) {
		const struct rt_ring *r = &ring[i];
		uint32_t id = orders[i][number(r) % ORDER];
		uint64_t n;

		if (!rt_chunks_oldest(r, &n, &id)) {
			assert_int_equal(r->limit, r->head); /* it writes nowhere */
			continue;
		}
		assert_int_equal(r->oldest & 1, 0);
		for (; n < number(r); n++, id = chunks.next[id]) {
			assert_int_equal(orders[i][n % ORDER], id);
			owners[id]++;
		}
		owners[id]++;
		assert_int_equal(orders[i][n % ORDER], id);
		assert_ptr_equal(r->chunk, data + (uint64_t)id * SIZE);
		assert_int_equal(r->limit, (number(r) + 1) * SIZE - RT_CHUNK_GUARD);
	}
	for (uint32_t id = 0; id < COUNT; id++)
		owners[id] += chunks.free[id / 64] >> id % 64 & 1;
	for (uint32_t id = 0; id < COUNT; id++)
		assert_int_equal(owners[id], 1);
}

/* The first is near the CPUs of its thread. */
static void test_a_ring_takes_its_first_chunk_when_it_writes(void **state)
{
	assert_int_equal(chunks.window, WINDOW);
	assert_int_equal(chunks.free_count, COUNT);
	assert_sound();
	for (uint32_t i = 0; i < RINGS; i++) {
		assert_int_equal(owned(&ring[i]), 0);
		assert_true(next(&ring[i]));
		assert_int_equal(owned(&ring[i]), 1);
		assert_int_equal(ring[i].head, 0);
		assert_int_equal(orders[i][0], i * COUNT / RINGS);
		assert_int_equal(chunks.free_count, COUNT - i - 1);
		assert_sound();
	}
}

/* Not by what could poll: 256 rings cost no more than those of the threads that do. */
static void test_windows_follow_the_rings_that_write(void **state)
{
	static const int32_t node[RT_MAX_RINGS];

	rt_chunks_share(&chunks, RT_MAX_RINGS, node);
	assert_int_equal(chunks.window, RT_CHUNKS_OF_RING);
	for (unsigned i = 0; i < 5; i++)
		assert_true(next(&ring[2]));
	two_ticks();
	assert_int_equal(chunks.window, WINDOW);
	assert_int_equal(chunks.reserve, RESERVE);
	/* One that stands still counts for a second, and for a while only. */
	for (unsigned i = 0; i < 30; i++) {
		read_all(&ring[2]);
		rt_chunks_tick(&chunks);
	}
	assert_int_equal(owned(&ring[2]), 1);
	assert_int_equal(chunks.free_count, COUNT - 1);
	assert_sound();
}

static void test_a_reader_that_keeps_up_meets_the_window(void **state)
{
	uint32_t first[WINDOW];

	for (unsigned i = 0; i < 10 * WINDOW; i++) {
		assert_true(next(&ring[0]));
		read_all(&ring[0]);
		assert_in_range(owned(&ring[0]), 1, WINDOW);
		assert_sound();
	}
	/* In turn: what was freed first is written first. */
	for (unsigned i = 0; i < 3 * WINDOW; i++) {
		uint32_t id = orders[0][number(&ring[0]) % ORDER];

		if (i < WINDOW)
			first[i] = id;
		assert_int_equal(id, first[i % WINDOW]);
		assert_true(next(&ring[0]));
		read_all(&ring[0]);
	}
}

static void test_a_reader_that_stalls_gets_the_depth_of_the_buffer(void **state)
{
	while (next(&ring[1]))
		;
	assert_int_equal(owned(&ring[1]), COUNT - ALONE);
	assert_int_equal(chunks.free_count, ALONE);
	assert_sound();
	/* Another one begins, and has more when the reader has caught up. */
	for (unsigned i = 0; i < RT_CHUNKS_OF_RING; i++)
		assert_true(next(&ring[0]));
	assert_false(next(&ring[0]));
	assert_sound();
	read_all(&ring[1]);
	while (chunks.free_count < RESERVE) {
		assert_true(next(&ring[1]));
		read_all(&ring[1]);
	}
	assert_true(next(&ring[0]));
	assert_sound();
}

static void test_busy_rings_leave_some_chunks_to_each_other(void **state)
{
	assert_true(next(&ring[2])); /* takes a chunk */
	assert_true(next(&ring[2])); /* and is busy */
	while (next(&ring[1]))
		;
	assert_int_equal(owned(&ring[1]), COUNT - 2 - RESERVE);
	assert_int_equal(chunks.free_count, RESERVE);
	assert_sound();
	assert_false(next(&ring[1]));
	/* The rest is for rings below their window, */
	while (next(&ring[0]))
		;
	assert_int_equal(owned(&ring[0]), RESERVE - FRESH);
	assert_int_equal(chunks.free_count, FRESH);
	assert_sound();
	/* and for those that begin. */
	assert_true(next(&ring[3]));
	read_all(&ring[0]);
	assert_true(next(&ring[0]));
}

/* A ring that filled its last chunk long ago leaves the whole depth to another one. */
static void test_a_ring_that_is_busy_no_more_costs_nothing(void **state)
{
	assert_true(next(&ring[2]));
	assert_true(next(&ring[2]));
	read_all(&ring[2]);
	for (unsigned i = 0; i < 3; i++) {
		rt_chunks_tick(&chunks);
		next(&ring[1]);
	}
	while (next(&ring[1]))
		;
	assert_int_equal(owned(&ring[2]), 1);
	assert_int_equal(owned(&ring[1]), COUNT - 1 - ALONE);
	assert_sound();
}

/* The windows of others are full, and nothing is free: the reader has read some of it. */
static void test_a_thread_that_begins_takes_what_others_do_not_need(void **state)
{
	while (next(&ring[0]) | next(&ring[1]))
		;
	memset(chunks.free, 0, (COUNT + 63) / 64 * sizeof(*chunks.free)); /* many have begun */
	chunks.free_count = 0;
	assert_false(next(&ring[2]));
	rt_store_release(&tails[1].tail, 3 * SIZE);
	assert_false(next(&ring[2])); /* it does not search again at once */
	two_ticks();
	assert_true(next(&ring[2]));
	assert_int_equal(orders[2][0], orders[1][0]);
	assert_int_equal(number(&ring[2]), 0);
	two_ticks();
	assert_true(next(&ring[2]));
	assert_int_equal(orders[2][1], orders[1][1]);
}

/* Ticks change nothing as long as both are busy: while they go on, and while they have to wait. */
static void test_rings_stay_busy_from_tick_to_tick(void **state)
{
	for (unsigned i = 0; i < COUNT; i++) {
		next(&ring[1]);
		next(&ring[2]);
		if (i % 3 == 0)
			rt_chunks_tick(&chunks);
	}
	assert_int_equal(chunks.free_count, RESERVE);
	assert_int_equal(chunks.busy, 2);
	for (unsigned i = 0; i < 5; i++) {
		two_ticks();
		assert_false(next(&ring[1]));
		assert_false(next(&ring[2]));
	}
	assert_sound();
	/* One goes on after a pause: it is counted, once. */
	read_all(&ring[1]);
	read_all(&ring[2]);
	two_ticks();
	assert_int_equal(chunks.busy, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(next(&ring[2]));
	assert_int_equal(chunks.busy, 1);
	rt_chunks_tick(&chunks);
	assert_true(next(&ring[2]));
	assert_int_equal(chunks.busy, 1);
}

static void test_depth_that_was_needed_is_given_back(void **state)
{
	while (next(&ring[1]))
		;
	read_all(&ring[1]);
	for (unsigned i = 0; i < 2 * COUNT; i++) {
		assert_true(next(&ring[1]));
		read_all(&ring[1]);
		assert_sound();
	}
	assert_int_equal(owned(&ring[1]), WINDOW);
	assert_int_equal(chunks.free_count, COUNT - WINDOW);
	while (next(&ring[2]))
		;
	assert_int_equal(owned(&ring[2]), COUNT - WINDOW - RESERVE);
}

static void test_the_end_of_a_chunk_is_marked(void **state)
{
	uint8_t *before;
	uint32_t word;

	assert_true(next(&ring[0]));
	before = ring[0].chunk;
	memset(before, 0xff, SIZE);
	assert_true(next(&ring[0]));
	memcpy(&word, before + SIZE / 2, sizeof(word));
	assert_int_equal(word, RT_CHUNK_END);
	assert_int_equal(ring[0].head, SIZE);
}

static void test_small_buffers_have_a_small_window(void **state)
{
	struct rt_chunks small;

	assert_int_equal(rt_chunks_init(&small, ring, data, SIZE, 9, 16), 0);
	assert_int_equal(small.window, 7); /* two are left to rings that begin */
	rt_chunks_free(&small);
}

static void test_an_idle_ring_keeps_the_chunk_that_it_writes(void **state)
{
	while (next(&ring[1]))
		;
	two_ticks();
	assert_int_equal(chunks.free_count, ALONE); /* nothing is read yet */
	rt_store_release(&tails[1].tail, (number(&ring[1]) - 5) * SIZE);
	two_ticks();
	assert_int_equal(owned(&ring[1]), 6);
	assert_sound();
	read_all(&ring[1]);
	two_ticks();
	assert_int_equal(owned(&ring[1]), 1);
	assert_int_equal(chunks.free_count, COUNT - 1);
	assert_sound();
	/* All of it serves another one, and the idle one goes on. */
	for (unsigned i = 0; i < COUNT - 1 - RESERVE; i++)
		assert_true(next(&ring[2]));
	assert_true(next(&ring[1]));
	assert_sound();
}

static void test_a_ring_that_goes_on_keeps_its_window(void **state)
{
	for (unsigned i = 0; i < 3 * WINDOW; i++) {
		assert_true(next(&ring[0]));
		read_all(&ring[0]);
		rt_chunks_tick(&chunks);
	}
	assert_int_equal(owned(&ring[0]), WINDOW);
	assert_sound();
}

/* It spoils its capture. The ring keeps the chunk that it writes. */
static void test_a_reader_that_lies_harms_itself(void **state)
{
	for (unsigned i = 0; i < 9; i++)
		assert_true(next(&ring[0]));
	rt_store(&tails[0].tail, UINT64_MAX);
	two_ticks();
	rt_store(&tails[0].tail, 0); /* it goes back */
	assert_int_equal(owned(&ring[0]), 1);
	assert_sound();
	for (unsigned i = 0; i < WINDOW; i++) {
		next(&ring[0]);
		two_ticks();
		assert_sound();
	}
	rt_store(&tails[1].tail, UINT64_MAX); /* a ring that has never written */
	two_ticks();
	assert_sound();
}

/* As if a signal handler had jumped out between any two steps of rt_chunks_next(), and the control
 * thread had run in between. */
static void test_a_jump_neither_loses_a_chunk_nor_gives_it_twice(void **state)
{
	struct rt_ring *r = &ring[0];

	rt_chunks_mend(r); /* before its first chunk */
	assert_sound();
	for (unsigned step = 0; step < 3; step++) {
		uint64_t first;
		uint32_t id;

		while (owned(r) < WINDOW) {
			assert_true(next(r));
			read_all(r);
		}
		assert_true(rt_ring_refresh(r));
		assert_true(rt_chunks_oldest(r, &first, &id));
		r->reused = id; /* it will be written again */
		r->oldest = OLDEST(first + 1, chunks.next[id]) + 1;
		two_ticks();
		if (step > 0)
			orders[0][(number(r) + 1) % ORDER] = r->id[(number(r) + 1) % 2] =
				chunks.next[r->id[number(r) % 2]] = id;
		if (step > 1)
			r->head = (number(r) + 1) * SIZE;
		rt_chunks_mend(r);
		assert_sound();
		assert_int_equal(owned(r), WINDOW);
		rt_chunks_mend(r); /* once is enough */
		assert_sound();
		two_ticks();
		assert_int_equal(owned(r), step > 1 ? 2 : 1); /* the last one has not been read */
		assert_sound();
	}
}

/* Threads take and give back at once; each writes its mark into its chunk and finds it there. */
static void *write_on(void *arg)
{
	struct rt_ring *r = arg;

	if (!next(r))
		return "there is no first chunk";
	for (uint32_t i = 0; i < STRESS; i++) {
		memset(r->chunk + 64, (int)r->index + 1, 64);
		/* The reader stalls for some forty chunks, and keeps up for as many. */
		if (i / 40 % 2)
			rt_store_release(&tails[r->index].tail, number(r) * SIZE);
		for (unsigned k = 64; k < 128; k++) {
			if (r->chunk[k] != r->index + 1)
				return "another ring wrote into the chunk";
		}
		(void)next(r);
	}
	return NULL;
}

static void *tick_on(void *quit)
{
	while (!rt_load((uint32_t *)quit))
		rt_chunks_tick(&chunks);
	return NULL;
}

static void test_rings_of_running_threads_share_the_chunks(void **state)
{
	pthread_t thread[RINGS], control;
	uint32_t quit = 0;

	assert_int_equal(pthread_create(&control, NULL, tick_on, &quit), 0);

	for (uint32_t i = 0; i < RINGS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_on, &ring[i]), 0);
	for (uint32_t i = 0; i < RINGS; i++) {
		void *why;

		pthread_join(thread[i], &why);
		if (why)
			fail_msg("%s", (const char *)why);
	}
	rt_store(&quit, 1);
	pthread_join(control, NULL);
	assert_sound();
}

int main(void)
{
#define with_rings(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		with_rings(test_a_ring_takes_its_first_chunk_when_it_writes),
		with_rings(test_windows_follow_the_rings_that_write),
		with_rings(test_a_reader_that_keeps_up_meets_the_window),
		with_rings(test_a_reader_that_stalls_gets_the_depth_of_the_buffer),
		with_rings(test_busy_rings_leave_some_chunks_to_each_other),
		with_rings(test_a_ring_that_is_busy_no_more_costs_nothing),
		with_rings(test_a_thread_that_begins_takes_what_others_do_not_need),
		with_rings(test_rings_stay_busy_from_tick_to_tick),
		with_rings(test_depth_that_was_needed_is_given_back),
		with_rings(test_the_end_of_a_chunk_is_marked),
		with_rings(test_small_buffers_have_a_small_window),
		with_rings(test_an_idle_ring_keeps_the_chunk_that_it_writes),
		with_rings(test_a_ring_that_goes_on_keeps_its_window),
		with_rings(test_a_reader_that_lies_harms_itself),
		with_rings(test_a_jump_neither_loses_a_chunk_nor_gives_it_twice),
		with_rings(test_rings_of_running_threads_share_the_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
