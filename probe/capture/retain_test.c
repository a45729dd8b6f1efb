/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeping packets and reading windows of them, against the probe's own chunks: what a ring finds
 * free is what the reader has left to it. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chunks.h"
#include "reader/capture/retain.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define RINGS     3u
#define OF_RING   32u /* chunks for each ring */
#define COUNT     (RINGS * OF_RING)
#define PER_CHUNK 4u
#define LEN       1000u
#define STEP_NS   1000u /* from packet to packet */
/* A quarter of the COUNT chunks is for windows of rings, a quarter is a margin. */
#define KEPT (COUNT / 2)

static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct rt_chunks chunks;
static struct rt_ring ring[RINGS];
static uint64_t ns, begin_ns; /* times of the next packet and of the first one */
static uint64_t refused;      /* chunks that a ring did not get */
static bool waits;            /* rings wait for their chunks */
static bool dead;             /* the application has ended */

static int set_up(void **state)
{
	static const int32_t node[RINGS] = {RT_NODE_UNKNOWN, RT_NODE_UNKNOWN, RT_NODE_UNKNOWN};

	test_session_make(&session, RINGS, (uint64_t)OF_RING * RT_CHUNK_MIN);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir,
				 &(struct ringtap_target){
					 .queue = -1, .directions = RINGTAP_RX | RINGTAP_TX},
				 1, NULL),
		0);
	assert_int_equal(rt_chunks_init(&chunks, ring, session.data, RT_CHUNK_MIN, COUNT,
				 session.h->order_count),
		0);
	rt_chunks_share(&chunks, RINGS, node);
	session.h->window = chunks.window;
	session.h->reserve = chunks.reserve;
	for (uint32_t i = 0; i < RINGS; i++) {
		ring[i] = (struct rt_ring){.index = (uint16_t)i,
			.pub = &session.rings[i],
			.peer = &session.tails[i],
			.pub_order = &session.orders[i * session.h->order_count]};
		rt_chunks_empty(&chunks, &ring[i]);
		rt_chunks_use(&chunks, &ring[i], RT_NODE_UNKNOWN);
		assert_true(rt_chunks_next(&ring[i]));
	}
	refused = 0;
	waits = dead = false;
	rt_reader_limits.still_ns = RT_FOREVER; /* there is no control thread */
	ns = begin_ns = test_now(&session) - 1000000000ull;
	return 0;
}

static int tear_down(void **state)
{
	rt_chunks_free(&chunks);
	if (!dead)
		return test_capture_close(&session, &peer, cap);
	ringtap_capture_close(cap);
	test_peer_bury(&peer);
	test_session_free(&session);
	return 0;
}

/* ---- the application ---- */

static void put_packet(struct rt_ring *r)
{
	uint32_t total = RT_EPB_HEADER + LEN + 8, trailer[2] = {0, total};
	struct rt_epb e = {.type = RT_EPB_TYPE,
		.total_len = total,
		.if_index = r->index % 2,
		.ts_high = (uint32_t)(ns >> 32),
		.ts_low = (uint32_t)ns,
		.cap_len = LEN,
		.orig_len = LEN};
	uint8_t *at = r->chunk + (r->head & r->mask);

	memcpy(at, &e, sizeof(e));
	memcpy(at + total - sizeof(trailer), trailer, sizeof(trailer));
	r->head += total;
	r->last_ns = ns;
	ns += STEP_NS;
	rt_ring_publish(r);
}

/* A chunk's packets, and the next chunk. A ring that gets none loses them. */
static void write_chunk(uint32_t i)
{
	struct rt_ring *r = &ring[i];

	for (unsigned n = 0; n < PER_CHUNK; n++)
		put_packet(r);
	do {
		assert_true(rt_ring_refresh(r));
		if (rt_chunks_next(r)) {
			rt_ring_publish(r);
			return;
		}
	} while (waits && !sched_yield());
	refused++;
	r->head -= PER_CHUNK * (RT_EPB_HEADER + LEN + 8);
	ns -= PER_CHUNK * STEP_NS;
}

static void die(void)
{
	dead = true;
	test_peer_die(&peer);
}

static uint64_t newest(void)
{
	struct ringtap_kept k = {.size = sizeof(k)};

	assert_int_equal(ringtap_capture_kept(cap, &k), 0);
	return k.newest_ns;
}

static void look(void)
{
	assert_int_equal(ringtap_capture_keep(cap, 0), 0);
}

static uint64_t kept_since(void)
{
	struct ringtap_kept k = {.size = sizeof(k)};

	assert_int_equal(ringtap_capture_kept(cap, &k), 0);
	return k.since_ns;
}

/* Reads a window to its end; the packets must follow each other without a gap. Returns their
 * number. */
static uint64_t read_window(struct ringtap_capture *w, uint64_t first_ns, bool release)
{
	struct ringtap_run runs[16];
	struct ringtap_packets *it;
	const struct ringtap_packet *p;
	uint64_t count = 0;
	int n;

	assert_int_equal(ringtap_packets_create(&it), 0);
	while ((n = ringtap_capture_next(w, runs, 16, 1000)) > 0) {
		for (int i = 0; i < n; i++) {
			ringtap_packets_start(it, &runs[i]);
			while ((p = ringtap_packet_next(it))) {
				assert_int_equal(p->ns, first_ns + count * STEP_NS);
				count++;
			}
			assert_int_equal(ringtap_packets_error(it), 0);
		}
		if (release)
			ringtap_capture_release(w);
	}
	assert_int_equal(n, -EPIPE);
	ringtap_packets_free(it);
	return count;
}

static uint64_t window_packets(uint64_t from, uint64_t to, uint64_t first_ns)
{
	struct ringtap_capture *w;
	uint64_t n;

	assert_int_equal(ringtap_capture_window(cap, from, to, &w), 0);
	n = read_window(w, first_ns, true);
	ringtap_capture_close(w);
	return n;
}

/* ---- tests ---- */

static void test_packets_are_kept_until_the_buffer_fills(void **state)
{
	for (unsigned i = 0; i < KEPT - 2 * RINGS; i++) {
		write_chunk(i % RINGS);
		look();
	}
	assert_int_equal(kept_since(), 0);
	assert_int_equal(window_packets(0, ns, begin_ns), (KEPT - 2 * RINGS) * PER_CHUNK);
}

static void test_the_oldest_go_first_and_no_ring_waits(void **state)
{
	for (unsigned i = 0; i < 20 * COUNT; i++) {
		write_chunk(i % RINGS);
		look();
	}
	assert_int_equal(refused, 0);
	/* All that is limited to is there, but what rings have begun. */
	assert_in_range(
		(ns - kept_since()) / STEP_NS, (KEPT - 3 * RINGS) * PER_CHUNK, KEPT * PER_CHUNK);
	assert_int_equal(
		window_packets(kept_since(), ns, kept_since()), (ns - kept_since()) / STEP_NS);
	assert_int_equal(newest(), ns - STEP_NS);
}

/* A burst that is lost has a time, too. */
static void test_the_newest_packet_is_one_that_is_kept(void **state)
{
	uint64_t last;

	write_chunk(0);
	put_packet(&ring[1]);
	put_packet(&ring[1]);
	last = ns - STEP_NS;
	ring[1].last_ns = ns + 100 * STEP_NS;
	rt_ring_publish(&ring[1]);
	look();
	assert_int_equal(newest(), last);
}

/* In whole chunks; the buffer would hold them all. */
static void test_what_is_older_than_the_limit_goes(void **state)
{
	const uint64_t pause = 20000000, turn = (RINGS + 1) * pause; /* a chunk of each ring */
	struct ringtap_capture *w;
	uint64_t limit, before;

	for (unsigned i = 0; i < KEPT - 2 * RINGS; i++) {
		write_chunk(i % RINGS);
		ns += pause;
	}
	limit = test_now(&session) - (begin_ns + ns) / 2;
	look();
	assert_int_equal(kept_since(), 0);
	/* A window holds it. */
	assert_int_equal(ringtap_capture_window(cap, begin_ns, ns, &w), 0);
	ringtap_capture_keep_for(cap, limit);
	look();
	assert_int_equal(kept_since(), 0);
	ringtap_capture_close(w);
	before = test_now(&session) - limit;
	look();
	assert_in_range(kept_since(), before - turn, test_now(&session) - limit);
	/* No limit: nothing else goes. */
	ringtap_capture_keep_for(cap, 0);
	before = kept_since();
	look();
	assert_int_equal(kept_since(), before);
}

static void test_one_ring_may_have_nearly_all(void **state)
{
	for (unsigned i = 0; i < 20 * COUNT; i++) {
		write_chunk(1);
		look();
	}
	assert_int_equal(refused, 0);
	assert_in_range(
		(ns - kept_since()) / STEP_NS, (KEPT - 3 * RINGS) * PER_CHUNK, KEPT * PER_CHUNK);
}

/* Its chunks do not come back, as it begins no other one. */
static void test_a_ring_that_falls_silent_stops_no_other(void **state)
{
	for (unsigned i = 0; i < COUNT; i++) {
		write_chunk(0);
		look();
	}
	for (unsigned i = 0; i < 10 * COUNT; i++) {
		write_chunk(2);
		look();
	}
	assert_int_equal(refused, 0);
	assert_true(kept_since() > begin_ns);
	/* It wakes up: they are used again, by both. */
	for (unsigned i = 0; i < 10 * COUNT; i++) {
		write_chunk(i % 2 * 2);
		look();
	}
	assert_int_equal(refused, 0);
	assert_in_range(
		(ns - kept_since()) / STEP_NS, (KEPT - 3 * RINGS) * PER_CHUNK, KEPT * PER_CHUNK);
}

static void test_the_others_get_what_a_silent_ring_had(void **state)
{
	rt_reader_limits.still_ns = 0;
	for (unsigned i = 0; i < COUNT; i++) {
		write_chunk(0);
		look();
	}
	for (unsigned i = 0; i < 10 * COUNT; i++) {
		write_chunk(2);
		look();
		rt_chunks_tick(&chunks);
		rt_chunks_tick(&chunks); /* a ring stands still from one to the next */
		look();
	}
	assert_int_equal(refused, 0);
	assert_in_range(
		(ns - kept_since()) / STEP_NS, (KEPT - 3 * RINGS) * PER_CHUNK, KEPT * PER_CHUNK);
}

static void test_a_reader_that_is_late_loses_nothing(void **state)
{
	for (unsigned i = 0; i < 20 * COUNT; i++) {
		write_chunk(i % RINGS);
		if (i % 6 == 0) /* a quarter of the margin */
			look();
	}
	assert_int_equal(refused, 0);
}

static void test_a_window_has_exactly_its_packets(void **state)
{
	uint64_t from, to;

	for (unsigned i = 0; i < KEPT / 2; i++)
		write_chunk(i % RINGS);
	look();
	from = begin_ns + 7 * STEP_NS;
	to = begin_ns + 29 * STEP_NS;
	assert_int_equal(window_packets(from, to, from), 23);
	assert_int_equal(window_packets(from + 1, to - 1, from + STEP_NS), 21);
	assert_int_equal(window_packets(from, from, from), 1);
	assert_int_equal(window_packets(from + 1, from + 2, 0), 0);
	assert_int_equal(window_packets(to, from, 0), 0);
}

static void test_a_window_waits_for_its_end(void **state)
{
	uint64_t to = test_now(&session) + 100000000;
	struct ringtap_capture *w;
	struct ringtap_run run;

	write_chunk(0);
	look();
	assert_int_equal(ringtap_capture_window(cap, begin_ns, to, &w), 0);
	assert_int_equal(ringtap_capture_next(w, &run, 1, 0), 1);
	assert_int_equal(run.packets, PER_CHUNK);
	assert_int_equal(ringtap_capture_next(w, &run, 1, 0), 0);
	write_chunk(1);
	assert_int_equal(ringtap_capture_next(w, &run, 1, 0), 1);
	assert_int_equal(run.packets, PER_CHUNK);
	assert_int_equal(ringtap_capture_next(w, &run, 1, -1), -EPIPE);
	assert_true(test_now(&session) > to);
	ringtap_capture_close(w);
}

/* A thread that polls its first packets while a window waits: the keeper has not seen it yet. */
static void test_a_window_has_the_packets_of_a_thread_that_begins(void **state)
{
	uint64_t to = test_now(&session) + 100000000;
	struct ringtap_capture *w;
	struct ringtap_run run;

	rt_store(&session.h->used[0], 1);
	cap->sources[0].rings[0] = 1;
	cap->in_count = 1;
	write_chunk(0);
	look();
	assert_int_equal(ringtap_capture_window(cap, begin_ns, to, &w), 0);
	assert_int_equal(ringtap_capture_next(w, &run, 1, 0), 1);
	write_chunk(2);
	rt_fetch_or(&session.h->used[0], 4);
	assert_int_equal(ringtap_capture_next(w, &run, 1, 0), 1);
	assert_int_equal(run.packets, PER_CHUNK);
	assert_int_equal(run.first_ns, begin_ns + PER_CHUNK * STEP_NS);
	look();
	assert_int_equal(ringtap_capture_ring_count(cap), 2);
	/* They are kept, and go, as those of others. */
	for (unsigned i = 0; i < 3 * COUNT; i++) {
		write_chunk(i % 2 * 2);
		look();
	}
	assert_true(refused > 0); /* the window has released nothing */
	ringtap_capture_close(w);
	look();
	refused = 0;
	for (unsigned i = 0; i < 3 * COUNT; i++) {
		write_chunk(i % 2 * 2);
		look();
	}
	assert_int_equal(refused, 0);
	assert_true(kept_since() > begin_ns);
}

/* The application goes on until it finds no chunk; what is lost is the newest. */
static void test_what_a_window_has_not_released_stays(void **state)
{
	struct ringtap_capture *w, *other;
	uint64_t to;

	for (unsigned i = 0; i < KEPT / 2; i++)
		write_chunk(i % RINGS);
	look();
	to = ns - STEP_NS;
	assert_int_equal(ringtap_capture_window(cap, begin_ns, to, &w), 0);
	assert_int_equal(ringtap_capture_window(cap, begin_ns, to, &other), 0);
	for (unsigned i = 0; i < 4 * COUNT; i++) {
		write_chunk(i % RINGS);
		look();
	}
	assert_true(refused > 0);
	assert_int_equal(read_window(w, begin_ns, false), KEPT / 2 * PER_CHUNK);
	assert_int_equal(read_window(other, begin_ns, true), KEPT / 2 * PER_CHUNK);
	ringtap_capture_close(other);
	look();
	assert_int_equal(kept_since(), 0);
	ringtap_capture_close(w);
	refused = 0;
	look();
	for (unsigned i = 0; i < 4 * COUNT; i++) {
		write_chunk(i % RINGS);
		look();
	}
	assert_int_equal(refused, 0);
}

static void test_the_end_of_the_application_ends_windows(void **state)
{
	uint64_t to = ns + 3600000000000ull;
	struct ringtap_capture *w;

	for (unsigned i = 0; i < KEPT / 2; i++)
		write_chunk(i % RINGS);
	look();
	assert_int_equal(ringtap_capture_window(cap, begin_ns, to, &w), 0);
	write_chunk(0);
	die();
	assert_int_equal(ringtap_capture_keep(cap, -1), -EPIPE);
	assert_int_equal(read_window(w, begin_ns, true), (KEPT / 2 + 1) * PER_CHUNK);
	ringtap_capture_close(w);
	/* Everything is still there. */
	assert_int_equal(window_packets(begin_ns, to, begin_ns), (KEPT / 2 + 1) * PER_CHUNK);
}

static void test_a_window_describes_new_interfaces(void **state)
{
	struct ringtap_capture *w;

	write_chunk(0);
	look();
	assert_int_equal(ringtap_capture_window(cap, begin_ns, RT_FOREVER, &w), 0);
	assert_int_equal(ringtap_capture_interface_count(w), 2);
	session.ifs[2] = session.ifs[0];
	memcpy(session.ifs[2].name, "port2", 6);
	rt_store_release(&session.h->if_count, 3); /* pairs with rt_segment_if_count() */
	ring[0].index = 2;
	{
		uint8_t *at = ring[0].chunk + (ring[0].head & ring[0].mask);
		struct ringtap_interface i = {.size = sizeof(i)};
		struct ringtap_run runs[2];

		put_packet(&ring[0]);
		((struct rt_epb *)(void *)at)->if_index = 2;
		assert_int_equal(ringtap_capture_next(w, runs, 2, -1), 2);
		assert_int_equal(ringtap_capture_interface_count(w), 3);
		assert_int_equal(ringtap_capture_interface(w, 2, &i), 0);
		assert_string_equal(i.name, "port2");
		assert_int_equal(ringtap_capture_interface_count(cap), 3);
	}
	ringtap_capture_close(w);
}

static void test_a_chunk_without_a_packet_ends_the_capture(void **state)
{
	struct ringtap_capture *w;
	struct ringtap_run run;

	write_chunk(0);
	look();
	assert_int_equal(ringtap_capture_window(cap, 0, RT_FOREVER, &w), 0);
	memset(ring[0].chunk, 0xff, 64);
	ring[0].head += 64;
	rt_ring_publish(&ring[0]);
	assert_int_equal(ringtap_capture_keep(cap, 1000), -EBADMSG);
	assert_non_null(strstr(ringtap_capture_error(cap), "does not begin with a packet"));
	/* The bytes before are valid. */
	assert_int_equal(ringtap_capture_next(w, &run, 1, 1000), 1);
	assert_int_equal(run.packets, PER_CHUNK);
	assert_int_equal(ringtap_capture_next(w, &run, 1, 1000), -EBADMSG);
	ringtap_capture_close(w);
}

static void test_calls_that_do_not_fit_are_refused(void **state)
{
	struct ringtap_kept k = {.size = sizeof(k)};
	struct ringtap_capture *w;
	struct ringtap_run run;

	assert_int_equal(ringtap_capture_kept(cap, &k), -EINVAL);
	assert_int_equal(ringtap_capture_window(cap, 0, 1, &w), -EINVAL);
	assert_null(w);
	look();
	assert_int_equal(ringtap_capture_next(cap, &run, 1, 0), -EINVAL);
	assert_int_equal(ringtap_capture_fd(cap, false), -EINVAL);
	assert_int_equal(ringtap_capture_window(cap, 0, 1, &w), 0);
	assert_int_equal(ringtap_capture_keep(w, 0), -EINVAL);
	assert_int_equal(ringtap_capture_stop(w), -EINVAL);
	assert_int_equal(ringtap_capture_filter(w, NULL, 0), -EINVAL);
	ringtap_capture_detach(w);
	ringtap_capture_close(w);
	look(); /* the connection is still there */
}

/* ---- at the same time ---- */

static void *keep_on(void *arg)
{
	while (ringtap_capture_keep(cap, 1) == 0)
		;
	return NULL;
}

static void test_windows_are_read_while_packets_come(void **state)
{
	pthread_t thread;

	waits = true;
	write_chunk(0);
	look();
	assert_int_equal(pthread_create(&thread, NULL, keep_on, NULL), 0);
	for (unsigned k = 0; k < 50; k++) {
		struct ringtap_capture *w;
		uint64_t first;

		/* Its time is behind the clock: the packets of the window are complete. */
		for (unsigned i = 0; i < KEPT / 8; i++)
			write_chunk(i % RINGS);
		first = ns - KEPT / 8 * PER_CHUNK * STEP_NS;
		assert_int_equal(ringtap_capture_window(cap, first, ns - STEP_NS, &w), 0);
		read_window(w, first, true);
		ringtap_capture_close(w);
	}
	die();
	pthread_join(thread, NULL);
}

int main(void)
{
#define with_app(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		with_app(test_packets_are_kept_until_the_buffer_fills),
		with_app(test_the_oldest_go_first_and_no_ring_waits),
		with_app(test_the_newest_packet_is_one_that_is_kept),
		with_app(test_what_is_older_than_the_limit_goes),
		with_app(test_one_ring_may_have_nearly_all),
		with_app(test_a_ring_that_falls_silent_stops_no_other),
		with_app(test_the_others_get_what_a_silent_ring_had),
		with_app(test_a_reader_that_is_late_loses_nothing),
		with_app(test_a_window_has_exactly_its_packets),
		with_app(test_a_window_waits_for_its_end),
		with_app(test_a_window_has_the_packets_of_a_thread_that_begins),
		with_app(test_what_a_window_has_not_released_stays),
		with_app(test_the_end_of_the_application_ends_windows),
		with_app(test_a_window_describes_new_interfaces),
		with_app(test_a_chunk_without_a_packet_ends_the_capture),
		with_app(test_calls_that_do_not_fit_are_refused),
		with_app(test_windows_are_read_while_packets_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
