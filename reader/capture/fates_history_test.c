/* SPDX-License-Identifier: BSD-3-Clause */
/* Histories of mbufs, in tables that the test writes as a probe does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "capture.h"
#include "ringtap/fates.h"
#include "reader/test_peer.h"

#define PACKETS 3

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static const struct ringtap_capture_options fates = {.size = sizeof(fates), .fates = true};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;

static int set_up(void **state)
{
	test_session_make_fates(&session, 1, TEST_RING);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	return ringtap_capture_create(&cap, NULL);
}

static int tear_down(void **state)
{
	return test_capture_close(&session, &peer, cap);
}

static int attach(void)
{
	return ringtap_capture_attach(cap, peer.dir, &all, 1, &fates);
}

/* Packets 1, 2 and 3, each behind the history of packet 2, in bytes that no packet may have. */
static void put_packets(void)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct rt_seg_fate *f = test_fate(&session, i);

		*f = (struct rt_seg_fate){.mbuf = 64 * (i + 1),
			.id = i + 1,
			.tsc = rt_tsc(),
			.len = 100,
			.cap = TEST_SNAP};
		*(struct rt_seg_history *)(f + 1) = (struct rt_seg_history){.id = 2, .ops = 0x1474};
		rt_store_release(&f->state, RT_FATE_OPEN);
	}
}

/* Whether packet has_one is the only one with a history; 0: none has. */
static void assert_history(uint32_t has_one, uint32_t caplen)
{
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;

	assert_int_equal(attach(), 0);
	put_packets();
	assert_int_equal(ringtap_open_packets_create(&it, cap, 0), 0);
	for (uint32_t i = 1; i <= PACKETS; i++) {
		p = ringtap_open_packets_next(it);
		assert_non_null(p);
		assert_int_equal(p->mbuf, 64 * i);
		assert_int_equal(p->caplen, caplen);
		assert_int_equal(p->has_history, i == has_one);
		assert_int_equal(p->history, i == has_one ? 0x1474 : 0);
	}
	ringtap_open_packets_free(it);
}

/* Operations that the probe has read with an mbuf's earlier packet are not this packet's. */
static void test_histories_are_those_of_their_packets(void **state)
{
	session.h->fate_history = sizeof(struct rt_seg_fate) + TEST_SNAP - RT_FATE_HISTORY;
	assert_history(2, TEST_SNAP - RT_FATE_HISTORY);
}

static void test_older_probes_have_none(void **state)
{
	assert_history(0, TEST_SNAP);
}

static void test_places_outside_of_the_entry_are_refused(void **state)
{
	const uint32_t stride = session.h->fate_stride;
	const uint32_t bad[] = {
		1, 8, stride - RT_FATE_HISTORY + 8, stride, UINT32_MAX - RT_FATE_HISTORY + 1};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		session.h->fate_history = bad[i];
		assert_int_equal(attach(), -EBADMSG);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_histories_are_those_of_their_packets),
		TEST(test_older_probes_have_none),
		TEST(test_places_outside_of_the_entry_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
