/* SPDX-License-Identifier: BSD-3-Clause */
/* Producers that run while they are read, as in an application: no loss, no disorder. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "common/ring.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define RINGS   4u
#define RUN_MAX 64u
#define BURSTS  4000u

static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct ringtap_run runs[RUN_MAX];
static struct ringtap_packets *it;

struct producer {
	pthread_t thread;
	struct rt_ring ring;
	uint32_t index;
	uint64_t written, dropped;
};

/* The test's rings have RT_CHUNKS_OF_RING chunks, which they write in turn. */
static bool fits(const struct producer *p)
{
	uint64_t freed = p->ring.tail / RT_CHUNK_MIN * RT_CHUNK_MIN;

	return p->ring.head + 128 <= freed + TEST_RING - RT_CHUNK_GUARD;
}

static bool write_record(struct producer *p, uint64_t ns)
{
	if (!fits(p) && (!rt_ring_refresh(&p->ring) || !fits(p)))
		return false;
	session.pos[p->index] = p->ring.head;
	test_put(&session, p->index, ns, 0, 60);
	p->ring.head = session.pos[p->index];
	return true;
}

static void spin(unsigned n)
{
	while (n--)
		rt_pause();
}

/* The steps of probe/burst/hook_burst.c. Threads differ in rate and burst. */
static void *produce(void *arg)
{
	struct producer *p = arg;
	struct rt_clock_line line;

	if (rt_clock_read(session.clock, &line))
		return NULL;
	for (uint32_t b = 0; b < BURSTS; b++) {
		rt_ring_begin(&p->ring);
		rt_compiler_barrier();
		p->ring.last_ns = rt_clock_ns(&line, rt_tsc());
		if (p->index == 1 && b % 64 == 0)
			spin(20000); /* the time is old when published */
		for (uint32_t i = 0; i < 1 + b % 8; i++) {
			if (write_record(p, p->ring.last_ns))
				p->written++;
			else
				p->dropped++;
		}
		rt_ring_publish(&p->ring);
		rt_ring_end(&p->ring);
		if (p->index == 2)
			spin(2000); /* idle most of the time */
	}
	return NULL;
}

static void start_producer(struct producer *p, uint32_t i)
{
	p->index = i;
	p->ring = (struct rt_ring){.pub = &session.rings[i], .peer = &session.tails[i]};
	assert_int_equal(pthread_create(&p->thread, NULL, produce, p), 0);
}

static uint64_t assert_ordered(int n, uint64_t *last)
{
	uint64_t packets = 0;

	for (int i = 0; i < n; i++) {
		const struct ringtap_packet *p;

		ringtap_packets_start(it, &runs[i]);
		for (; (p = ringtap_packet_next(it)); packets++) {
			assert_true(p->ns >= *last);
			*last = p->ns;
		}
		assert_int_equal(ringtap_packets_error(it), 0);
	}
	return packets;
}

static void test_running_producers_are_merged_in_order(void **state)
{
	struct producer *p = aligned_alloc(128, sizeof(*p) * RINGS);
	uint64_t got = 0, written = 0, dropped = 0, last = 0, saved = rt_reader_limits.hold_ns;
	struct ringtap_stats stats = {.size = sizeof(stats)};
	int n;

	/* On a loaded machine, a thread may wait for a CPU for longer than the default. */
	rt_reader_limits.hold_ns = 60000000000;
	memset(p, 0, sizeof(*p) * RINGS);
	for (uint32_t i = 0; i < RINGS; i++)
		start_producer(&p[i], i);
	for (uint64_t spent = 0; spent < BURSTS; spent++) {
		n = ringtap_capture_next(cap, runs, RUN_MAX, 1);
		got += assert_ordered(n, &last);
		ringtap_capture_release(cap);
	}
	for (uint32_t i = 0; i < RINGS; i++) {
		pthread_join(p[i].thread, NULL);
		written += p[i].written;
		dropped += p[i].dropped;
	}
	assert_int_equal(ringtap_capture_stop(cap), 0);
	while ((n = ringtap_capture_next(cap, runs, RUN_MAX, 5000)) > 0) {
		got += assert_ordered(n, &last);
		ringtap_capture_release(cap);
	}
	assert_int_equal(n, -EPIPE);
	assert_int_equal(got, written);
	assert_int_equal(written + dropped, RINGS * BURSTS / 8 * 36);
	ringtap_capture_stats(cap, &stats);
	assert_int_equal(stats.reordered, 0);
	assert_int_equal(stats.delivered, written);
	rt_reader_limits.hold_ns = saved;
	free(p);
}

static int set_up(void **state)
{
	static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX};

	test_session_make(&session, RINGS, TEST_RING);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	return ringtap_packets_create(&it) || ringtap_capture_create(&cap, NULL) ||
	       ringtap_capture_attach(cap, peer.dir, &all, 1, NULL) || ringtap_capture_start(cap);
}

static int tear_down(void **state)
{
	ringtap_packets_free(it);
	ringtap_capture_close(cap);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_running_producers_are_merged_in_order, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
