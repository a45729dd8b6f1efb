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

#define WINDOW  16u /* chunks */
#define SIZE    (RT_WINDOW / WINDOW)
#define COUNT   80u
#define RINGS   3u
#define ORDER   128u
#define OWN     RT_CHUNKS_OF_RING
#define FREE    (COUNT - RINGS * OWN)
#define RESERVE (COUNT / 4)
#define ALONE   (WINDOW / 4)
#define STRESS  20000u

static uint8_t *data;
static struct rt_chunks chunks;
static struct rt_ring ring[RINGS];
static struct rt_seg_tail tails[RINGS];
static uint32_t orders[RINGS][ORDER], pub_orders[RINGS][ORDER];

static int set_up(void **state)
{
	data = calloc(COUNT, SIZE);
	assert_int_equal(rt_chunks_init(&chunks, data, SIZE, COUNT, RINGS, ORDER), 0);
	memset(orders, 0, sizeof(orders));
	memset(pub_orders, 0, sizeof(pub_orders));
	memset(tails, 0, sizeof(tails));
	for (uint32_t i = 0; i < RINGS; i++) {
		ring[i] = (struct rt_ring){.index = i,
			.order = orders[i],
			.pub_order = pub_orders[i],
			.peer = &tails[i]};
		rt_chunks_begin(&chunks, &ring[i]);
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
	return number(r) - (uint64_t)(r->oldest >> 1) + 1;
}

/* Writes the chunk and goes on to the next. */
static bool next(struct rt_ring *r)
{
	r->head += SIZE / 2;
	if (rt_ring_refresh(r) && rt_chunks_next(r))
		return true;
	r->head -= SIZE / 2;
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
	rt_chunks_tick(&chunks, ring);
	rt_chunks_tick(&chunks, ring);
}

/* Each chunk has one owner, and the ring's place is where its order says. */
static void assert_sound(void)
{
	unsigned owners[COUNT] = {0};

	for (uint32_t i = 0; i < RINGS; i++) {
		const struct rt_ring *r = &ring[i];
		uint32_t id = orders[i][number(r) % ORDER];

		assert_int_equal(pub_orders[i][number(r) % ORDER], id);
		assert_ptr_equal(r->chunk, data + (uint64_t)id * SIZE);
		assert_int_equal(r->limit, (number(r) + 1) * SIZE - RT_CHUNK_GUARD);
		assert_int_equal(r->oldest & 1, 0);
		for (uint64_t n = (uint64_t)(r->oldest >> 1); n != number(r) + 1; n++)
			owners[orders[i][n % ORDER]]++;
	}
	for (uint32_t id = 0; id < COUNT; id++)
		owners[id] += chunks.free[id / 64] >> id % 64 & 1;
	for (uint32_t id = 0; id < COUNT; id++)
		assert_int_equal(owners[id], 1);
}

static void test_each_ring_begins_with_chunks_of_its_own(void **state)
{
	assert_int_equal(chunks.window, WINDOW);
	assert_int_equal(chunks.free_count, FREE);
	assert_sound();
	for (uint32_t i = 0; i < RINGS; i++) {
		assert_int_equal(owned(&ring[i]), OWN);
		assert_int_equal(orders[i][0], i * COUNT / RINGS);
	}
}

static void test_a_reader_that_keeps_up_meets_the_window(void **state)
{
	uint32_t first[WINDOW];

	for (unsigned i = 0; i < 10 * WINDOW; i++) {
		assert_true(next(&ring[0]));
		read_all(&ring[0]);
		assert_in_range(owned(&ring[0]), OWN, WINDOW);
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
	unsigned n = 0;

	while (next(&ring[1]))
		n++;
	/* It wrote chunk 0 before; its second chunk had not been written yet. */
	assert_int_equal(n, FREE - ALONE + OWN - 1);
	assert_int_equal(chunks.free_count, ALONE);
	assert_sound();
	/* Another one that begins has its own and some, and more when the reader has caught up. */
	for (unsigned i = 0; i < OWN - 1 + ALONE; i++)
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
	unsigned n = 0;

	assert_true(next(&ring[2])); /* takes a chunk */
	while (next(&ring[1]))
		n++;
	assert_int_equal(n, FREE - 1 - RESERVE + OWN - 1);
	assert_int_equal(chunks.free_count, RESERVE);
	assert_sound();
	assert_false(next(&ring[1]));
	/* What is left is for rings below their window. */
	while (next(&ring[0]))
		;
	assert_int_equal(owned(&ring[0]), WINDOW);
	assert_sound();
	read_all(&ring[0]);
	assert_true(next(&ring[0]));
	assert_sound();
}

/* What has filled a chunk long ago leaves the whole depth to another one. */
static void test_a_ring_that_is_busy_no_more_costs_nothing(void **state)
{
	unsigned n = 0;

	assert_true(next(&ring[2]));
	read_all(&ring[2]);
	for (unsigned i = 0; i < 3; i++) {
		rt_chunks_tick(&chunks, ring);
		n += next(&ring[1]);
	}
	while (next(&ring[1]))
		n++;
	assert_int_equal(n, FREE - ALONE + OWN - 1);
	assert_sound();
}

/* Ticks change nothing as long as both are busy: while they go on, and while they have to wait. */
static void test_rings_stay_busy_from_tick_to_tick(void **state)
{
	for (unsigned i = 0; i < COUNT; i++) {
		next(&ring[1]);
		next(&ring[2]);
		if (i % 3 == 0)
			rt_chunks_tick(&chunks, ring);
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
	rt_chunks_tick(&chunks, ring);
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
	assert_int_equal(chunks.free_count, FREE + OWN - WINDOW);
	while (next(&ring[2]))
		;
	assert_int_equal(owned(&ring[2]), FREE + OWN - WINDOW - RESERVE + OWN);
}

static void test_the_end_of_a_chunk_is_marked(void **state)
{
	uint8_t *before = ring[0].chunk;
	uint32_t word;

	memset(before, 0xff, SIZE);
	assert_true(next(&ring[0]));
	memcpy(&word, before + SIZE / 2, sizeof(word));
	assert_int_equal(word, RT_CHUNK_END);
	assert_int_equal(ring[0].head, SIZE);
}

static void test_small_buffers_have_a_small_window(void **state)
{
	struct rt_chunks small;

	assert_int_equal(rt_chunks_init(&small, data, SIZE, 9, RINGS, 16), 0);
	assert_int_equal(small.window, 3);
	rt_chunks_free(&small);
}

static void test_an_idle_ring_keeps_its_own_chunks_only(void **state)
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
	assert_int_equal(owned(&ring[1]), OWN);
	assert_int_equal(chunks.free_count, FREE);
	assert_sound();
	/* All of it serves another one, and the idle one goes on. */
	for (unsigned i = 0; i < FREE - RESERVE; i++)
		assert_true(next(&ring[2]));
	assert_true(next(&ring[1]));
	assert_sound();
}

static void test_a_ring_that_goes_on_keeps_its_window(void **state)
{
	for (unsigned i = 0; i < 3 * WINDOW; i++) {
		assert_true(next(&ring[0]));
		read_all(&ring[0]);
		rt_chunks_tick(&chunks, ring);
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
	assert_int_equal(owned(&ring[0]), OWN);
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

	for (unsigned step = 0; step < 3; step++) {
		uint32_t id;

		while (owned(r) < WINDOW) {
			assert_true(next(r));
			read_all(r);
		}
		assert_true(rt_ring_refresh(r));
		id = orders[0][(uint64_t)(r->oldest >> 1) % ORDER];
		r->oldest += 2 + 1; /* it will be written again */
		two_ticks();
		if (step > 0)
			pub_orders[0][(number(r) + 1) % ORDER] =
				orders[0][(number(r) + 1) % ORDER] = id;
		if (step > 1)
			r->head = (number(r) + 1) * SIZE;
		rt_chunks_mend(r);
		assert_sound();
		assert_int_equal(owned(r), WINDOW);
		rt_chunks_mend(r); /* once is enough */
		assert_sound();
		two_ticks();
		assert_int_equal(owned(r), OWN);
		assert_sound();
	}
}

/* Threads take and give back at once; each writes its mark into its chunk and finds it there. */
static void *write_on(void *arg)
{
	struct rt_ring *r = arg;

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
		rt_chunks_tick(&chunks, ring);
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
		with_rings(test_each_ring_begins_with_chunks_of_its_own),
		with_rings(test_a_reader_that_keeps_up_meets_the_window),
		with_rings(test_a_reader_that_stalls_gets_the_depth_of_the_buffer),
		with_rings(test_busy_rings_leave_some_chunks_to_each_other),
		with_rings(test_a_ring_that_is_busy_no_more_costs_nothing),
		with_rings(test_rings_stay_busy_from_tick_to_tick),
		with_rings(test_depth_that_was_needed_is_given_back),
		with_rings(test_the_end_of_a_chunk_is_marked),
		with_rings(test_small_buffers_have_a_small_window),
		with_rings(test_an_idle_ring_keeps_its_own_chunks_only),
		with_rings(test_a_ring_that_goes_on_keeps_its_window),
		with_rings(test_a_reader_that_lies_harms_itself),
		with_rings(test_a_jump_neither_loses_a_chunk_nor_gives_it_twice),
		with_rings(test_rings_of_running_threads_share_the_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
