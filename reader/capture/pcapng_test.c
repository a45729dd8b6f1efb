/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks around packets, of a capture of one application and of two. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"
#include "common/pcapng.h"
#include "reader/test_peer.h"

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session sessions[2];
static struct test_peer peers[2];
static struct ringtap_capture *cap;
static uint8_t buf[4096];

static int set_up(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		test_session_make(&sessions[i], 1, TEST_RING);
		peers[i] = (struct test_peer){.session = &sessions[i]};
		test_peer_start(&peers[i], true);
	}
	return ringtap_capture_create(&cap, NULL) ||
	       ringtap_capture_attach(cap, peers[0].dir, &all, 1, NULL);
}

static int tear_down(void **state)
{
	ringtap_capture_close(cap);
	for (unsigned i = 0; i < 2; i++) {
		test_peer_stop(&peers[i]);
		test_session_free(&sessions[i]);
	}
	return 0;
}

/* The value of the nth option with this code; NULL: there is none. */
static const uint8_t *find(size_t off, uint16_t code, unsigned nth, uint16_t *len)
{
	uint16_t option[2];

	for (;; off += 4 + ((option[1] + 3u) & ~3u)) {
		memcpy(option, buf + off, 4);
		if (!option[0])
			return NULL;
		if (option[0] == code && !nth--) {
			*len = option[1];
			return buf + off + 4;
		}
	}
}

static void assert_text(size_t off, uint16_t code, unsigned nth, const char *text)
{
	uint16_t len;
	const uint8_t *v = find(off, code, nth, &len);

	assert_non_null(v);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(v, text, len);
}

static void assert_number(size_t off, uint16_t code, uint64_t number)
{
	uint16_t len = 0;
	const uint8_t *at = find(off, code, 0, &len);
	uint64_t v;

	assert_int_equal(len, sizeof(v));
	memcpy(&v, at, sizeof(v));
	assert_int_equal(v, number);
}

static void test_length_is_known_before_the_block(void **state)
{
	uint8_t guarded[4096];
	int len = ringtap_pcapng_section(NULL, 0, NULL);

	assert_in_range(len, 28, sizeof(buf));
	assert_int_equal(ringtap_pcapng_section(buf, (size_t)len, NULL), len);
	memset(guarded, 0xa5, sizeof(guarded));
	assert_int_equal(ringtap_pcapng_section(guarded, (size_t)len - 4, NULL), len);
	assert_int_equal(guarded[len - 4], 0xa5);
	assert_int_equal(ringtap_pcapng_interface(cap, 0, NULL, 0, NULL),
		ringtap_pcapng_interface(cap, 0, buf, sizeof(buf), NULL));
	assert_int_equal(ringtap_pcapng_statistics(cap, 0, NULL, 0, NULL),
		ringtap_pcapng_statistics(cap, 0, buf, sizeof(buf), NULL));
}

static void test_texts_of_a_section(void **state)
{
	struct ringtap_pcapng_section_options o = {.size = sizeof(o), .comment = "a comment"};
	uint16_t len;

	ringtap_pcapng_section(buf, sizeof(buf), NULL);
	assert_text(24, 4, 0, "libringtap " RINGTAP_VERSION);
	assert_null(find(24, 1, 0, &len));
	o.application = "";
	ringtap_pcapng_section(buf, sizeof(buf), &o);
	assert_null(find(24, 4, 0, &len));
	assert_text(24, 1, 0, "a comment");
}

static void test_texts_of_an_interface(void **state)
{
	struct ringtap_pcapng_interface_options o = {
		.size = sizeof(o), .name = "uplink", .filter = "udp", .comment = "clock"};
	uint16_t len;

	assert_true(ringtap_pcapng_interface(cap, 1, buf, sizeof(buf), NULL) > 0);
	assert_text(16, 2, 0, "port1");
	assert_text(16, 3, 0, "port 1 of DPDK application test");
	assert_null(find(16, 11, 0, &len));
	assert_null(find(16, 1, 0, &len));
	assert_true(ringtap_pcapng_interface(cap, 1, buf, sizeof(buf), &o) > 0);
	assert_text(16, 2, 0, "uplink");
	assert_memory_equal(find(16, 11, 0, &len), "\0udp", 4);
	assert_text(16, 1, 0, "clock");
	assert_int_equal(ringtap_pcapng_interface(cap, 2, buf, sizeof(buf), &o), -ENOENT);
}

static void test_interfaces_of_two_applications(void **state)
{
	struct ringtap_interface i = {.size = sizeof(i)};
	char name[80];

	assert_int_equal(ringtap_capture_attach(cap, peers[1].dir, &all, 1, NULL), 0);
	assert_true(ringtap_pcapng_interface(cap, 3, buf, sizeof(buf), NULL) > 0);
	/* Two applications with one file-prefix: their process ids tell them apart. */
	assert_int_equal(ringtap_capture_interface(cap, 3, &i), 0);
	assert_string_not_equal(i.app_name, "test");
	assert_memory_equal(i.app_name, "test~", 5);
	snprintf(name, sizeof(name), "%s:port1", i.app_name);
	assert_text(16, 2, 0, name);
}

static void test_statistics_are_of_one_interface(void **state)
{
	struct ringtap_pcapng_statistics_options o = {.size = sizeof(o),
		.start_ns = 5ull << 32,
		.end_ns = 6ull << 32,
		.has_delivered = true,
		.delivered = 2,
		.comment = "ended",
		.clock = "clock"};
	uint16_t len;

	sessions[0].counts[0] = (struct rt_seg_count){.seen = 10,
		.captured = 4,
		.filtered = 3,
		.lost = {[RT_LOSS_RING_FULL] = 1, [4] = 2}};
	sessions[0].counts[1] = (struct rt_seg_count){.seen = 1000};
	sessions[0].ifs[0].imissed = 7;
	sessions[0].ifs[0].rx_nombuf = 8;
	sessions[0].ifs[0].nic_ns = 1;
	assert_true(ringtap_pcapng_statistics(cap, 0, buf, sizeof(buf), &o) > 0);
	assert_number(20, 2, 5);
	assert_number(20, 3, 6);
	assert_number(20, 4, 10);
	assert_number(20, 5, 15);
	assert_number(20, 6, 7);
	assert_number(20, 7, 3);
	assert_number(20, 8, 2);
	assert_text(20, 1, 0,
		"NIC: missed=7 rx_errors=0 no_mbuf=8 rx_packets=0 tx_packets=0 tx_errors=0");
	assert_text(20, 1, 1, "ended");
	assert_text(20, 1, 2, "clock");
	/* While it goes on, and of what the library cannot know. */
	assert_true(ringtap_pcapng_statistics(cap, 1, buf, sizeof(buf), NULL) > 0);
	assert_number(20, 4, 1000);
	assert_null(find(20, 2, 0, &len));
	assert_null(find(20, 3, 0, &len));
	assert_null(find(20, 8, 0, &len));
	assert_null(find(20, 1, 0, &len)); /* its driver was not read */
	assert_int_equal(ringtap_pcapng_statistics(cap, 2, buf, sizeof(buf), NULL), -ENOENT);
}

/* A thread has counted a burst between the readings of its counters. */
static void test_counters_that_are_read_in_the_middle_of_a_burst(void **state)
{
	sessions[0].counts[0] = (struct rt_seg_count){.seen = 1000, .filtered = 1032};
	assert_true(ringtap_pcapng_statistics(cap, 0, buf, sizeof(buf), NULL) > 0);
	assert_number(20, 4, 1000);
	assert_number(20, 6, 0);
}

static void test_texts_that_are_too_long(void **state)
{
	static char longest[RT_PCAPNG_TEXT_MAX + 2];
	const struct ringtap_pcapng_section_options s = {.size = sizeof(s), .comment = longest};
	const struct ringtap_pcapng_interface_options i = {.size = sizeof(i), .filter = longest};

	memset(longest, 'x', sizeof(longest) - 1);
	assert_int_equal(ringtap_pcapng_section(NULL, 0, &s), -EMSGSIZE);
	assert_int_equal(ringtap_pcapng_interface(cap, 0, NULL, 0, &i), -EMSGSIZE);
}

static void test_options_of_other_versions(void **state)
{
	struct {
		struct ringtap_pcapng_section_options o;
		uint64_t later;
	} o = {.later = 1};

	assert_int_equal(ringtap_pcapng_section(NULL, 0, &o.o), -EINVAL);
	o.o.size = sizeof(o);
	assert_int_equal(ringtap_pcapng_section(NULL, 0, &o.o), -E2BIG);
	o.later = 0;
	assert_true(ringtap_pcapng_section(NULL, 0, &o.o) > 0);
	assert_int_equal(ringtap_pcapng_interface(cap, 0, NULL, 0,
				 &(struct ringtap_pcapng_interface_options){.size = 1}),
		-EINVAL);
	assert_int_equal(ringtap_pcapng_statistics(cap, 0, NULL, 0,
				 &(struct ringtap_pcapng_statistics_options){.size = 1}),
		-EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_length_is_known_before_the_block),
		TEST(test_texts_of_a_section),
		TEST(test_texts_of_an_interface),
		TEST(test_interfaces_of_two_applications),
		TEST(test_statistics_are_of_one_interface),
		TEST(test_counters_that_are_read_in_the_middle_of_a_burst),
		TEST(test_texts_that_are_too_long),
		TEST(test_options_of_other_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
