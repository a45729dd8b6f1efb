/* SPDX-License-Identifier: BSD-3-Clause */
/* Fates, of tables that the test writes as a probe does, and as a lying one does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "common/ipc.h"
#include "common/test_pages.h"
#include "ringtap/fates.h"
#include "reader/test_peer.h"

#define SECOND 1000000000ull

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static const struct ringtap_capture_options fates = {.size = sizeof(fates), .fates = true};
static const struct ringtap_capture_options events = {
	.size = sizeof(events), .fates = true, .fate_ids = true};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct rt_clock_line line;
static uint64_t now_ns;

static int attach(void)
{
	return ringtap_capture_attach(cap, peer.dir, &all, 1, &fates);
}

/* Not attached. */
static int set_up(void **state)
{
	test_session_make_fates(&session, 1, TEST_RING);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	now_ns = test_now(&session);
	return ringtap_capture_create(&cap, NULL) || rt_clock_read(session.clock, &line);
}

static int set_up_attached(void **state)
{
	return set_up(state) || attach();
}

static int tear_down(void **state)
{
	test_available_end();
	return test_capture_close(&session, &peer, cap);
}

/* The counter ns ago. */
static uint64_t ago(uint64_t ns)
{
	return rt_tsc() - (uint64_t)(((unsigned __int128)ns << RT_CLOCK_SHIFT) / line.mult);
}

/* An open packet of 100 bytes that was received so long ago, of which 4 are kept. */
static struct rt_seg_fate *put(uint32_t i, uint32_t tap, uint64_t ns)
{
	struct rt_seg_fate *f = test_fate(&session, i);

	*f = (struct rt_seg_fate){.mbuf = 64 * (i + 1),
		.id = i + 1,
		.tsc = ago(ns),
		.tap = tap,
		.len = 100,
		.cap = 4,
		.pool = 1};
	memcpy(f + 1, &i, sizeof(i));
	rt_store_release(&f->state, RT_FATE_OPEN);
	return f;
}

static void walk(uint32_t number, uint64_t ns)
{
	rt_store(&session.h->fate_walk_ns, now_ns - ns);
	rt_store_release(&session.h->fate_walk, number);
}

static void add_pool(const char *name)
{
	struct rt_seg_fate_pool *p = &session.pools[session.h->fate_pools];

	strcpy(p->name, name);
	p->size = 1000;
	p->walked = 1;
	rt_store_release(&session.h->fate_pools, session.h->fate_pools + 1);
}

static struct ringtap_fates *read_fates(void)
{
	struct ringtap_fates *f;

	assert_int_equal(ringtap_fates_read(cap, 0, &f), 0);
	return f;
}

static unsigned count_packets(void)
{
	struct ringtap_open_packets *it;
	unsigned n = 0;

	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	while (ringtap_open_packets_next(it))
		n++;
	ringtap_open_packets_free(it);
	return n;
}

static void test_counts_of_all_threads_add_up(void **state)
{
	struct rt_seg_count *first = &session.counts[1], *other = &session.counts[TEST_TAPS + 1];
	const struct ringtap_fate_queue *q;
	struct ringtap_fates *f;

	*first = (struct rt_seg_count){.received = 100, .not_offered = 7, .unknown = 5};
	*other = (struct rt_seg_count){
		.offered = 80,
		.inferred = 4,
	};
	first->unseen = 2;
	other->stopped = 1;
	session.taps[0].direction = RT_DIR_TX;
	session.counts[TEST_TAPS].rest_offered = 2;
	put(0, 1, SECOND)->walk = 1;
	put(1, 1, SECOND);
	walk(1, SECOND / 2);
	session.h->fate_pools_beyond = 3;
	f = read_fates();
	assert_int_equal(f->pools_beyond, 3);
	assert_int_equal(f->queue_count, 1);
	q = ringtap_fates_queue(f, 0);
	assert_int_equal(q->interface, 1);
	assert_int_equal(q->queue, 3);
	assert_int_equal(q->received, 100);
	assert_int_equal(q->offered, 80);
	assert_int_equal(q->not_offered, 7);
	assert_int_equal(q->unknown, 5);
	assert_int_equal(q->inferred, 4);
	assert_int_equal(q->unseen, 2);
	assert_int_equal(q->stopped, 1);
	assert_int_equal(f->rest_offered, 2);
	assert_int_equal(q->free, 1);
	assert_int_equal(q->open, 7);
	assert_int_equal(f->free, 1);
	assert_int_equal(f->open, 1);
	assert_int_equal(f->walks, 1);
	ringtap_fates_free(f);
}

/* They are free, and a hook would not have counted them as not offered. */
static void test_free_packets_that_may_have_been_sent_are_unknown(void **state)
{
	static const enum ringtap_fate due[] = {RINGTAP_FATE_STOPPED, RINGTAP_FATE_UNSEEN,
		RINGTAP_FATE_NOT_OFFERED, RINGTAP_FATE_UNKNOWN, RINGTAP_FATE_NONE};
	const struct ringtap_open_packet *p;
	const struct ringtap_fate_queue *q;
	struct ringtap_open_packets *it;
	struct ringtap_fates *f;

	session.counts[0].received = sizeof(due) / sizeof(due[0]);
	session.h->fate_stopped_tsc = ago(3 * SECOND);
	session.h->fate_unseen_tsc = ago(2 * SECOND);
	for (uint32_t i = 0; i < 4; i++)
		put(i, 0, 4 * SECOND)->walk = 1;
	put(1, 0, 5 * SECOND / 2)->walk = 1;
	put(2, 0, SECOND)->walk = 1;
	test_fate(&session, 3)->external = 1;
	put(4, 0, 4 * SECOND); /* held */
	walk(1, SECOND / 2);
	f = read_fates();
	q = ringtap_fates_queue(f, 0);
	assert_int_equal(q->free, 1);
	assert_int_equal(q->open, 1);
	assert_int_equal(q->unknown, 3);
	assert_int_equal(q->unseen, 1);
	assert_int_equal(q->stopped, 1);
	assert_int_equal(f->free, 1);
	assert_int_equal(f->open, 1);
	ringtap_fates_free(f);
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	for (uint32_t i = 0; (p = ringtap_open_packets_next(it)); i++) {
		assert_int_equal(p->fate, due[i]);
		assert_int_equal(p->free, i < 4);
	}
	ringtap_open_packets_free(it);
}

/* A counter that runs ahead of another, or a lie. */
static void test_more_known_than_received_is_nothing_open(void **state)
{
	struct ringtap_fates *f;

	session.counts[0] = (struct rt_seg_count){.received = 10, .offered = 11};
	put(0, 0, SECOND)->walk = 1;
	walk(1, SECOND / 2);
	f = read_fates();
	assert_int_equal(ringtap_fates_queue(f, 0)->open, 0);
	assert_int_equal(ringtap_fates_queue(f, 0)->free, 0);
	ringtap_fates_free(f);
}

static void test_taps_that_send_have_no_fates(void **state)
{
	struct ringtap_fates *f;

	session.taps[0].direction = RT_DIR_TX;
	put(0, 0, SECOND);
	f = read_fates();
	assert_int_equal(f->queue_count, 1);
	assert_int_equal(ringtap_fates_queue(f, 0)->interface, 1);
	assert_int_equal(f->open, 0);
	ringtap_fates_free(f);
	assert_int_equal(count_packets(), 0);
}

static void test_packets_are_read_with_their_bytes(void **state)
{
	struct ringtap_open_packets *it;
	const struct ringtap_open_packet *p;
	uint32_t i = 5;

	put(i, 1, 2 * SECOND);
	test_fate(&session, 6)->mbuf = 64;
	test_fate(&session, 6)->state = RT_FATE_SETTLED;
	add_pool("mb_pool_0");
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	p = ringtap_open_packets_next(it);
	assert_non_null(p);
	assert_int_equal(p->interface, 1);
	assert_int_equal(p->queue, 3);
	assert_int_equal(p->length, 100);
	assert_int_equal(p->caplen, 4);
	assert_memory_equal(p->data, &i, sizeof(i));
	assert_int_equal(p->pool, 0);
	assert_false(p->free);
	assert_in_range(p->ns, now_ns - 3 * SECOND, now_ns - SECOND);
	assert_null(ringtap_open_packets_next(it));
	assert_null(ringtap_open_packets_next(it));
	ringtap_open_packets_free(it);
}

static uint64_t free_packets(void)
{
	struct ringtap_fates *f = read_fates();
	uint64_t n = f->free;

	ringtap_fates_free(f);
	return n;
}

static void test_marks_of_the_last_walk_and_of_the_next_are_free(void **state)
{
	put(0, 0, 9 * SECOND)->walk = 2; /* taken from its pool since */
	put(1, 0, 9 * SECOND)->walk = 3;
	put(2, 0, 9 * SECOND)->walk = 4; /* the walk in progress */
	put(3, 0, 9 * SECOND)->walk = 5; /* nonsense */
	put(4, 0, 9 * SECOND);
	assert_int_equal(free_packets(), 0); /* no walk has ended */
	walk(3, 5 * SECOND);
	assert_int_equal(free_packets(), 2);
}

static void test_pools_have_their_packets(void **state)
{
	const struct ringtap_fate_pool *p;
	struct ringtap_fates *f;

	add_pool("one");
	add_pool("bad\x1b[31m");
	session.pools[1].walked = 0;
	put(0, 0, SECOND);
	put(1, 0, SECOND)->pool = 2;
	put(2, 0, SECOND)->pool = 2;
	test_fate(&session, 2)->walk = 1;
	put(3, 0, SECOND)->pool = 0;
	walk(1, SECOND / 2);
	f = read_fates();
	assert_int_equal(f->pool_count, 2);
	p = ringtap_fates_pool(f, 0);
	assert_string_equal(p->name, "one");
	assert_int_equal(p->size, 1000);
	assert_true(p->walked);
	assert_int_equal(p->open, 1);
	p = ringtap_fates_pool(f, 1);
	assert_null(strchr(p->name, 0x1b));
	assert_false(p->walked);
	assert_int_equal(p->open, 1);
	assert_int_equal(p->free, 1);
	ringtap_fates_free(f);
}

/* ---- lies ---- */

static void test_entries_with_nonsense_are_harmless(void **state)
{
	struct ringtap_open_packets *it;
	const struct ringtap_open_packet *p;
	struct rt_seg_fate *f;

	put(0, TEST_TAPS, SECOND);  /* a tap that there is not */
	put(1, UINT32_MAX, SECOND); /* far away */
	f = put(2, 0, SECOND);
	f->cap = UINT32_MAX;
	f->len = 1;
	f->pool = UINT32_MAX;
	f->tsc = UINT64_MAX / 2; /* in the future */
	add_pool("one");
	rt_store(&session.h->fate_pools, UINT32_MAX);
	session.taps[1].if_index = UINT32_MAX;
	put(3, 1, SECOND);
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	p = ringtap_open_packets_next(it);
	assert_non_null(p);
	assert_int_equal(p->caplen, TEST_SNAP);
	assert_int_equal(p->length, TEST_SNAP);
	assert_int_equal(p->pool, RINGTAP_NO_INDEX);
	assert_in_range(p->ns, 0, test_now(&session));
	assert_null(ringtap_open_packets_next(it));
	ringtap_open_packets_free(it);
	assert_int_equal(free_packets(), 0);
}

static void refused(void)
{
	assert_int_equal(attach(), -EBADMSG);
	assert_non_null(strstr(ringtap_capture_error(cap), "lies outside"));
}

static void test_tables_outside_of_the_segment_are_refused(void **state)
{
	const struct rt_seg_header good = *session.h;

	session.h->fate_bits = 31;
	refused();
	session.h->fate_bits = 64;
	refused();
	*session.h = good;
	session.h->fate_offset = good.segment_size - 64;
	refused();
	*session.h = good;
	session.h->fate_pool_offset = UINT64_MAX - 63;
	refused();
	*session.h = good;
	session.h->fate_reason_offset = good.segment_size - 64;
	refused();
	*session.h = good;
	session.h->fate_stride = 0;
	refused();
	*session.h = good;
	session.h->fate_snap = 0;
	session.h->fate_stride = sizeof(struct rt_seg_fate);
	assert_int_equal(attach(), -EBADMSG); /* it is for events only */
	*session.h = good;
	session.h->fate_snap = 2 * RT_FATE_SNAP_MAX;
	session.h->fate_stride = sizeof(struct rt_seg_fate) + 2 * RT_FATE_SNAP_MAX;
	refused();
	*session.h = good;
	assert_int_equal(attach(), 0);
}

/* ---- reasons ---- */

static const char *reason_text(uint32_t app, unsigned number, bool expected)
{
	static char text[RINGTAP_NAME_LEN];

	assert_int_equal(ringtap_capture_reason(cap, app, number, text), expected);
	return text;
}

/* In place of the last bytes of the segment. */
static void test_texts_of_reasons_are_checked(void **state)
{
	const uint64_t at = session.h->segment_size - RT_FATE_REASONS * RT_NAME_LEN;
	char(*texts)[RT_NAME_LEN] = (void *)((uint8_t *)session.h + at);
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;

	assert_int_equal(at % 64, 0);
	session.h->fate_reason_offset = at;
	assert_int_equal(attach(), 0);
	strcpy(texts[0], "acl");
	memset(texts[1], 'x', RT_NAME_LEN);
	strcpy(texts[2], "\033[2J");
	texts[3][0] = 0;
	put(0, 0, SECOND)->reason = 1;
	put(1, 0, SECOND)->reason = 0xffffff00;
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		p = ringtap_open_packets_next(it);
		assert_non_null(p);
		assert_int_equal(p->reason, i ? 0 : 1);
	}
	ringtap_open_packets_free(it);
	assert_string_equal(reason_text(0, 1, true), "acl");
	assert_int_equal(strlen(reason_text(0, 2, true)), RINGTAP_NAME_LEN - 1);
	assert_string_equal(reason_text(0, 3, true), "?[2J");
	assert_string_equal(reason_text(0, 4, true), "?");
	assert_string_equal(reason_text(0, RINGTAP_REASON_OTHERS, true), "other reasons");
	assert_string_equal(reason_text(0, 0, false), "?");
	assert_string_equal(reason_text(0, RINGTAP_REASON_OTHERS + 1, false), "?");
	assert_string_equal(reason_text(1, 1, false), "?");
}

static void test_older_probes_have_no_reasons(void **state)
{
	assert_string_equal(reason_text(0, 1, false), "?");
}

/* ---- what does not fit ---- */

static void forget_fates(void)
{
	session.h->fate_offset = session.h->fate_pool_offset = 0;
	session.h->fate_bits = session.h->fate_stride = session.h->fate_snap = 0;
}

static void test_probe_without_fates_is_refused(void **state)
{
	forget_fates();
	assert_int_equal(attach(), -ENOTSUP);
	assert_non_null(strstr(ringtap_capture_error(cap), "older than fates"));
}

static void test_capture_without_fates_has_none(void **state)
{
	struct ringtap_open_packets *it = NULL;
	struct ringtap_fates *f;

	forget_fates();
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), 0);
	assert_int_equal(ringtap_fates_read(cap, 0, &f), -ENODATA);
	assert_null(f);
	assert_int_equal(ringtap_fates_read(cap, 1, &f), -ENOENT);
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), -ENODATA);
	assert_null(it);
}

/* ---- events ---- */

static void attach_events(void)
{
	session.h->fate_snap = 0;
	session.h->fate_stride = sizeof(struct rt_seg_fate);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, &events), 0);
	assert_int_equal(peer.open.ids, RT_IDS_ON | RT_IDS_FATES | RT_IDS_EVENTS);
}

static struct rt_seg_fate *put_event(uint32_t i, uint64_t id, uint32_t outside)
{
	struct rt_seg_fate *f = (void *)(session.fates + i * sizeof(*f));

	*f = (struct rt_seg_fate){
		.mbuf = 64 * (i + 1), .id = id, .tsc = ago(SECOND), .len = 100, .outside = outside};
	rt_store_release(&f->state, RT_FATE_OPEN);
	return f;
}

/* Packets that a filter has refused are counted, and not listed. */
static void test_open_packets_have_ids(void **state)
{
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;
	struct ringtap_fates *f;

	attach_events();
	put_event(3, 77, 0);
	put_event(4, 78, 1);
	put_event(5, 0, 0);
	assert_int_equal(ringtap_fates_read(cap, 0, &f), 0);
	assert_int_equal(f->open, 3);
	ringtap_fates_free(f);
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	p = ringtap_open_packets_next(it);
	assert_non_null(p);
	assert_int_equal(p->id, 77);
	assert_int_equal(p->caplen, 0);
	p = ringtap_open_packets_next(it);
	assert_non_null(p);
	assert_int_equal(p->id, 0);
	assert_null(ringtap_open_packets_next(it));
	ringtap_open_packets_free(it);
}

static void test_events_may_have_filters(void **state)
{
	const struct ringtap_insn accept = {.code = 6, .k = 96};
	struct ringtap_capture_options o = events;
	struct ringtap_target t = all;

	t.filter = &accept;
	t.filter_len = 1;
	session.h->fate_snap = 0;
	session.h->fate_stride = sizeof(struct rt_seg_fate);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &t, 1, &events), 0);
	t.directions = RINGTAP_RX;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &t, 1, &events), -EINVAL);
	o.fates = false;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, &o), -EINVAL);
}

static void test_events_with_bytes_are_refused(void **state)
{
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, &events), -EBADMSG);
}

static void test_filters_and_single_directions_are_refused(void **state)
{
	const struct ringtap_insn accept = {.code = 6, .k = 96};
	struct ringtap_target t = all;
	struct ringtap_capture_options o = fates;

	t.directions = RINGTAP_RX;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &t, 1, &fates), -EINVAL);
	t = all;
	t.filter = &accept;
	t.filter_len = 1;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &t, 1, &fates), -EINVAL);
	o.on_full = RINGTAP_WAIT;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, &o), -EINVAL);
}

/* A large buffer leaves less for the table, and a small one does not let it be refused. */
static void test_buffer_and_table_fit_what_is_available(void **state)
{
	const uint64_t mib = 1 << 20;
	const struct {
		uint64_t buffer, table; /* MiB; 0: any size */
	} cases[] = {{0, 960}, {256, 1664}, {1024, 896}, {1792, 128}};
	struct ringtap_capture_options o = fates;

	test_available(4 << 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o.buffer_size = cases[i].buffer * mib;
		assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, &o), 0);
		assert_true(peer.open.ids & RT_IDS_FATES);
		assert_int_equal(peer.open.buffer_most, cases[i].table * mib);
	}
}

static void test_buffer_that_leaves_no_memory_for_a_table(void **state)
{
	struct ringtap_capture_options o = fates;

	test_available(4 << 20);
	o.buffer_size = 1920ull << 20;
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, &o), 0);
	assert_int_equal(peer.open.buffer_most, 1);
}

#define TEST(f)          cmocka_unit_test_setup_teardown(f, set_up_attached, tear_down)
#define TEST_DETACHED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_counts_of_all_threads_add_up),
		TEST(test_free_packets_that_may_have_been_sent_are_unknown),
		TEST(test_more_known_than_received_is_nothing_open),
		TEST(test_taps_that_send_have_no_fates),
		TEST(test_packets_are_read_with_their_bytes),
		TEST(test_marks_of_the_last_walk_and_of_the_next_are_free),
		TEST(test_pools_have_their_packets),
		TEST(test_entries_with_nonsense_are_harmless),
		TEST_DETACHED(test_tables_outside_of_the_segment_are_refused),
		TEST_DETACHED(test_texts_of_reasons_are_checked),
		TEST(test_older_probes_have_no_reasons),
		TEST_DETACHED(test_probe_without_fates_is_refused),
		TEST_DETACHED(test_capture_without_fates_has_none),
		TEST_DETACHED(test_buffer_and_table_fit_what_is_available),
		TEST_DETACHED(test_buffer_that_leaves_no_memory_for_a_table),
		TEST_DETACHED(test_filters_and_single_directions_are_refused),
		TEST_DETACHED(test_open_packets_have_ids),
		TEST_DETACHED(test_events_may_have_filters),
		TEST_DETACHED(test_events_with_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
