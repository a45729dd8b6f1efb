/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching a monitor, and the end of its application. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ipc.h"
#include "reader/test_monitor.h"

static void assert_refused(int code, const char *text)
{
	assert_int_equal(attach(), code);
	assert_null(mon);
	assert_non_null(strstr(err, text));
}

/* ---- attaching ---- */

static void test_requested_collectors_reach_the_probe(void **state)
{
	struct ringtap_app_info info = {.size = sizeof(info)};

	must_attach();
	assert_int_equal(peer.request.collectors, RT_COLLECT_ALL);
	assert_int_equal(peer.request.latency_every, 16);
	assert_int_equal(switch_to(RINGTAP_POLLS), 0);
	assert_int_equal(peer.request.collectors, RT_COLLECT_POLLS);
	assert_int_equal(ringtap_monitor_app(mon, &info), 0);
	assert_string_equal(info.prefix, "test");
}

/* It would refuse the whole request. */
static void test_an_earlier_probe_is_not_asked_for_intervals(void **state)
{
	stats.h->log_offset = 0;
	must_attach();
	assert_int_equal(peer.request.collectors, RT_COLLECT_ALL & ~RT_COLLECT_INTERVALS);
	assert_int_equal(switch_to(RINGTAP_GAPS | RINGTAP_INTERVALS), 0);
	assert_int_equal(peer.request.collectors, RT_COLLECT_GAPS);
}

static void test_an_earlier_probe_is_not_asked_for_xstats(void **state)
{
	stats.h->xstat_offset = 0;
	must_attach();
	assert_int_equal(peer.request.collectors, RT_COLLECT_ALL & ~RT_COLLECT_XSTATS);
	assert_int_equal(switch_to(RINGTAP_POOLS | RINGTAP_XSTATS), 0);
	assert_int_equal(peer.request.collectors, RT_COLLECT_POOLS);
}

static void test_an_earlier_probe_is_not_asked_for_devices(void **state)
{
	stats.h->device_offset = 0;
	must_attach();
	assert_int_equal(peer.request.collectors, RT_COLLECT_ALL & ~RT_COLLECT_DEVICES);
}

static void test_unknown_collectors_are_refused(void **state)
{
	must_attach();
	assert_int_equal(switch_to(1u << 20), -EINVAL);
	assert_int_equal(ringtap_monitor_switch(mon, &(struct ringtap_monitor_options){0}, NULL, 0),
		-EINVAL);
	assert_int_equal(take_snapshot(), 0);
}

static bool answer_error(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -EPROTO, .text = "unknown message"};

	if (type == RT_MSG_HELLO)
		return test_peer_answer(p, sock, type);
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	(void)rt_msg_send(sock, &m.h, NULL, 0);
	return false;
}

static void test_old_probe_has_its_own_error(void **state)
{
	peer.answer = answer_error;
	assert_refused(-EOPNOTSUPP, "restart it");
}

static bool answer_without_memory(struct test_peer *p, int sock, uint16_t type)
{
	if (type == RT_MSG_HELLO)
		return test_peer_answer(p, sock, type);
	test_peer_send(sock, RT_MSG_MONITORING, NULL, 0);
	return true;
}

static void test_missing_memory_is_refused(void **state)
{
	peer.answer = answer_without_memory;
	assert_refused(-EPROTO, "no statistics");
}

static void test_impossible_headers_are_refused(void **state)
{
	const struct rt_stat_header good = *stats.h;
	uint64_t *const offsets[] = {&stats.h->clock_offset, &stats.h->port_offset,
		&stats.h->thread_offset, &stats.h->hook_offset, &stats.h->pair_offset,
		&stats.h->pool_offset, &stats.h->sampler_offset, &stats.h->log_offset,
		&stats.h->ring_offset, &stats.h->xstat_offset, &stats.h->device_offset,
		&stats.h->lcore_offset};
	const uint64_t bad[] = {0, 8, sizeof(good) + 8, stats.size - 64 + 8, stats.size, UINT64_MAX,
		UINT64_MAX - 63};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			if (!bad[k] && i >= 7)
				continue; /* an earlier probe */
			*offsets[i] = bad[k];
			assert_refused(-EBADMSG, "outside");
			*stats.h = good;
		}
	}
	stats.h->segment_size = stats.size + 4096;
	assert_refused(-EBADMSG, "shorter");
	*stats.h = good;
	stats.h->magic[6] = 'X';
	assert_refused(-EBADMSG, "magic");
	*stats.h = good;
	stats.h->tsc_hz = 0;
	assert_refused(-EBADMSG, "frequency");
	*stats.h = good;
	stats.h->version++;
	assert_refused(-EPROTOTYPE, "version");
	*stats.h = good;
	stats.clock->seq = 1;
	assert_refused(-EBADMSG, "clock");
	stats.clock->seq = 2;
	must_attach();
}

static void test_memory_that_may_shrink_is_refused(void **state)
{
	peer.stats_fd = test_memfd(stats.size, F_SEAL_GROW);
	assert_refused(-EBADMSG, "sealed");
	close(peer.stats_fd);
	peer.stats_fd = test_memfd(100, F_SEAL_SHRINK);
	assert_refused(-EBADMSG, "short");
	close(peer.stats_fd);
}

/* A hole in it would be SIGBUS. */
static void test_memory_of_huge_pages_is_refused(void **state)
{
	peer.stats_fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (peer.stats_fd < 0)
		skip(); /* a kernel without hugetlbfs */
	assert_int_equal(ftruncate(peer.stats_fd, 64 << 20), 0);
	assert_int_equal(fcntl(peer.stats_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_refused(-EBADMSG, "ordinary pages");
	close(peer.stats_fd);
}

/* ---- the end ---- */

static void test_a_dead_applications_last_snapshot(void **state)
{
	struct pollfd p;

	test_hook(&stats, 3, 0, 0, RT_DIR_RX)->burst[2] = 5;
	must_attach();
	p = (struct pollfd){.fd = ringtap_monitor_fd(mon), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	test_peer_die(&peer);
	assert_int_equal(poll(&p, 1, 5000), 1);
	stats.hooks[0].burst[2] = 6;
	assert_int_equal(take_snapshot(), -EPIPE);
	assert_non_null(f);
	assert_int_equal(ringtap_snapshot_queue(f, 0)->packets, 12);
	assert_false(ringtap_snapshot_thread(f, 0)->alive);
	assert_true(ringtap_snapshot_port(f, 0)->gone);
	assert_int_equal(switch_to(RINGTAP_POLLS), -ECONNRESET);
	assert_int_equal(take_snapshot(), -EPIPE);
	test_peer_bury(&peer);
	test_peer_start(&peer, true); /* for the tear-down */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MONITOR_TEST(test_requested_collectors_reach_the_probe),
		MONITOR_TEST(test_an_earlier_probe_is_not_asked_for_intervals),
		MONITOR_TEST(test_an_earlier_probe_is_not_asked_for_xstats),
		MONITOR_TEST(test_an_earlier_probe_is_not_asked_for_devices),
		MONITOR_TEST(test_unknown_collectors_are_refused),
		MONITOR_TEST(test_old_probe_has_its_own_error),
		MONITOR_TEST(test_missing_memory_is_refused),
		MONITOR_TEST(test_impossible_headers_are_refused),
		MONITOR_TEST(test_memory_that_may_shrink_is_refused),
		MONITOR_TEST(test_memory_of_huge_pages_is_refused),
		MONITOR_TEST(test_a_dead_applications_last_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
