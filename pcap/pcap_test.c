/* SPDX-License-Identifier: BSD-3-Clause */
/* libpcap's functions on a session that a test fills and corrupts, with the system's libpcap. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/ipc.h"
#include "handle.h"
#include "reader/conn.h"
#include "reader/test_peer.h"

static struct test_session session;
static struct test_peer peer;
static char runtime[64], apps[80], app[96];
static pcap_t *handle;
static int filters_refused_with; /* 0: accepted */
static int refusals;             /* number of refusals; later ones are accepted */

/* Accepts or refuses a filter; answers all other messages as a probe does. */
static bool answer(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_filtered m = {.text = "no"};

	if (type != RT_MSG_FILTER)
		return test_peer_answer(p, sock, type);
	if (refusals) {
		refusals--;
		m.code = filters_refused_with;
	}
	rt_msg_init(&m.h, RT_MSG_FILTERED, sizeof(m));
	return rt_msg_send(sock, &m.h, NULL, 0) == 0;
}

/* An application "app" in a runtime folder. */
static int set_up(void **state)
{
	test_session_make(&session, 2, RT_RING_SIZE_MIN);
	peer = (struct test_peer){.session = &session, .answer = answer};
	test_peer_start(&peer, true);
	filters_refused_with = refusals = 0;
	strcpy(runtime, "/tmp/ringtap-test.XXXXXX");
	assert_non_null(mkdtemp(runtime));
	snprintf(apps, sizeof(apps), "%s/dpdk", runtime);
	snprintf(app, sizeof(app), "%s/app", apps);
	assert_int_equal(mkdir(apps, 0700), 0);
	assert_int_equal(symlink(peer.dir, app), 0);
	return setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static int tear_down(void **state)
{
	if (handle)
		pcap_close(handle);
	handle = NULL;
	unlink(app);
	rmdir(apps);
	rmdir(runtime);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

static int set_up_open(void **state)
{
	char err[PCAP_ERRBUF_SIZE] = "";

	if (set_up(state))
		return -1;
	handle = pcap_open_live("ringtap:app:0", 0, 1, 20, err);
	if (!handle)
		fail_msg("%s", err);
	return 0;
}

/* Puts n packets of len bytes into ring 0. Returns their time. */
static uint64_t put(unsigned n, uint32_t len)
{
	uint64_t now = test_now(&session);

	for (unsigned i = 0; i < n; i++)
		test_put(&session, 0, now, 0, len);
	test_publish(&session, 0, now);
	return now;
}

static void count(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	++*(int *)user;
}

static void do_not_wait(void)
{
	char err[PCAP_ERRBUF_SIZE];

	assert_int_equal(pcap_setnonblock(handle, 1, err), 0);
}

static void set_filter(const char *expression, int expected)
{
	struct bpf_program prog;

	assert_int_equal(pcap_compile(handle, &prog, expression, 1, PCAP_NETMASK_UNKNOWN), 0);
	assert_int_equal(pcap_setfilter(handle, &prog), expected);
	pcap_freecode(&prog);
}

/* ---- handles ---- */

static void test_handles_of_libpcap_are_distinguished(void **state)
{
	pcap_t *dead = pcap_open_dead(DLT_RAW, 100);

	assert_null(handle_of(dead));
	assert_int_equal(pcap_datalink(dead), DLT_RAW);
	assert_int_equal(pcap_snapshot(dead), 100);
	assert_int_equal(pcap_dispatch(dead, 1, count, NULL), -1);
	assert_string_equal(
		pcap_geterr(dead), "Packets aren't available from a pcap_open_dead pcap_t");
	pcap_close(dead);
}

static void test_handles_are_found_again_and_bounded(void **state)
{
	static pcap_t *many[2000];
	char err[PCAP_ERRBUF_SIZE] = "";
	int n = 0;

	while (n < 2000 && (many[n] = pcap_create("ringtap:app:0", err)))
		n++;
	assert_int_equal(n, 1024);
	assert_non_null(strstr(err, "1024"));
	for (int i = 0; i < n; i++)
		assert_ptr_equal(handle_of(many[i])->user, many[i]);
	for (int i = 0; i < n; i += 2)
		pcap_close(many[i]);
	for (int i = 1; i < n; i += 2)
		assert_non_null(handle_of(many[i]));
	for (int i = 0; i < n; i += 2)
		assert_non_null(many[i] = pcap_create("ringtap:app:0", err));
	for (int i = 0; i < n; i++)
		pcap_close(many[i]);
	assert_null(handle_of(many[0]));
}

static void *open_and_close(void *arg)
{
	char err[PCAP_ERRBUF_SIZE];

	for (int i = 0; i < 20000; i++) {
		pcap_t *a = pcap_create("ringtap:app:0", err), *b = pcap_create("ringtap:x", err);

		if (!a || !b)
			abort();
		pcap_close(a);
		pcap_close(b);
	}
	rt_store_release((uint32_t *)arg, 1);
	return NULL;
}

/* Searching a handle must not read handles that another thread frees; a sanitizer detects it. */
static void test_concurrent_close(void **state)
{
	pcap_t *dead = pcap_open_dead(DLT_RAW, 100), *mine;
	char err[PCAP_ERRBUF_SIZE];
	uint32_t done = 0;
	pthread_t thread;

	mine = pcap_create("ringtap:app:0", err);
	assert_non_null(mine);
	assert_int_equal(pthread_create(&thread, NULL, open_and_close, &done), 0);
	while (!rt_load_acquire(&done)) {
		assert_int_equal(pcap_datalink(dead), DLT_RAW);
		assert_ptr_equal(handle_of(mine)->user, mine);
	}
	pthread_join(thread, NULL);
	pcap_close(mine);
	pcap_close(dead);
}

static void test_names_of_ports_are_distinguished(void **state)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	static const char *const others[] = {"eth0", "ringtap", "ringtap0", "", "any"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		pcap_t *p = pcap_create(others[i], err);

		assert_null(handle_of(p));
		if (p)
			pcap_close(p);
	}
}

static void test_names_of_ports(void **state)
{
	static const char *const good[] = {"ringtap:app", "ringtap:app:", "ringtap:app:0+1",
		"ringtap:app:0+0000:03:00.1", "ringtap:app:0000:03:00.0+app:1",
		"ringtap:app+app:1"};
	static const char *const bad[] = {
		"ringtap:", "ringtap::0", "ringtap:ap:0", "ringtap:apps:0", "ringtap:+app:0"};
	char err[PCAP_ERRBUF_SIZE] = "";

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		pcap_t *p = pcap_open_live(good[i], 0, 0, 1, err);

		if (!p)
			fail_msg("%s: %s", good[i], err);
		pcap_close(p);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(pcap_open_live(bad[i], 0, 0, 1, err));
		assert_non_null(strstr(err, "No such device exists (no DPDK application"));
	}
	assert_null(pcap_open_live("ringtap:app:0+", 0, 0, 1, err)); /* not all of its ports */
	assert_non_null(strstr(err, "a port is missing after a +"));
	assert_null(pcap_open_live("ringtap:app:0++1", 0, 0, 1, err));
}

static bool says_nothing(struct test_peer *p, int sock, uint16_t type)
{
	return true;
}

static void test_list_does_not_wait_for_a_stopped_application(void **state)
{
	char err[PCAP_ERRBUF_SIZE];
	struct timespec a, b;
	pcap_if_t *list;

	peer.answer = says_nothing;
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(pcap_findalldevs(&list, err), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	for (pcap_if_t *d = list; d; d = d->next)
		assert_string_not_equal(d->name, "ringtap:app:0");
	pcap_freealldevs(list);
	assert_in_range(b.tv_sec - a.tv_sec, 0, rt_answer_ms / 1000 - 2);
}

/* ---- reading ---- */

static void test_packets_are_not_copied(void **state)
{
	struct pcap_pkthdr *h;
	const u_char *data, *before;
	uint64_t ns = put(3, 60);

	assert_int_equal(pcap_next_ex(handle, &h, &data), 1);
	assert_int_equal(h->caplen, 60);
	assert_int_equal(h->len, 60);
	assert_int_equal(h->ts.tv_sec, ns / 1000000000);
	assert_int_equal(h->ts.tv_usec, ns / 1000 % 1000000);
	/* Packets are in the application's memory: changes are visible. */
	test_spoil(&session, 0, RT_EPB_HEADER, 0x44332211);
	assert_memory_equal(data, "\x11\x22\x33\x44", 4);
	before = data;
	assert_int_equal(pcap_next_ex(handle, &h, &data), 1);
	assert_int_equal(data - before, session.pos[0] / 3);
	assert_int_equal(pcap_next_ex(handle, &h, &data), 1);
	/* Nothing has been released: the last packet is still valid. */
	assert_int_equal(rt_load(&session.tails[0].tail), 0);
	do_not_wait();
	assert_int_equal(pcap_next_ex(handle, &h, &data), 0);
	assert_int_equal(rt_load(&session.tails[0].tail), session.pos[0]);
}

static void test_packet_beyond_the_snapshot_length(void **state)
{
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr h;

	handle = pcap_open_live("ringtap:app:0", 50, 0, 20, err);
	put(1, 51);
	assert_null(pcap_next(handle, &h));
	assert_string_equal(pcap_geterr(handle), "the ring is corrupt");
}

static void test_copies_can_be_written(void **state)
{
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data, *first;

	setenv("RINGTAP_PCAP_COPY", "1", 1);
	handle = pcap_open_live("ringtap:app:0", 60, 0, 20, err);
	unsetenv("RINGTAP_PCAP_COPY");
	put(2, 60);
	assert_int_equal(pcap_next_ex(handle, &h, &first), 1);
	memset((u_char *)(uintptr_t)first, 0xee, h->caplen);
	assert_int_equal(pcap_next_ex(handle, &h, &data), 1);
	assert_ptr_equal(data, first);
	assert_int_not_equal(data[0], 0xee);
}

static void test_nanoseconds(void **state)
{
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr h;
	uint64_t ns;

	handle = pcap_create("ringtap:app:0", err);
	assert_int_equal(pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO), 0);
	assert_int_equal(pcap_set_timeout(handle, 20), 0);
	assert_int_equal(pcap_activate(handle), 0);
	ns = put(1, 60);
	assert_non_null(pcap_next(handle, &h));
	assert_int_equal(h.ts.tv_sec, ns / 1000000000);
	assert_int_equal(h.ts.tv_usec, ns % 1000000000);
}

static void test_rings_wrap_around(void **state)
{
	int seen = 0;

	for (int i = 0; i < 500; i++) {
		put(20, 500);
		assert_int_equal(pcap_loop(handle, 20, count, (u_char *)&seen), 0);
	}
	assert_int_equal(seen, 10000);
	assert_true(session.pos[0] > 50 * RT_RING_SIZE_MIN);
}

/* The application overwrites a published record between two reads of it. */
static void spoil_the_next(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	test_spoil(&session, 0, session.pos[0] / 2 + 4, *(uint32_t *)user);
}

static void test_lengths_that_change_meanwhile(void **state)
{
	static const uint32_t lies[] = {0, 4, 28, 33, 96 * 4, UINT32_MAX - 3};
	char err[PCAP_ERRBUF_SIZE];

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint32_t lie = lies[i];

		pcap_close(handle);
		test_session_free(&session);
		test_session_make(&session, 2, RT_RING_SIZE_MIN);
		handle = pcap_open_live("ringtap:app:0", 0, 1, 20, err);
		assert_non_null(handle);
		put(2, 60);
		assert_int_equal(pcap_loop(handle, 2, spoil_the_next, (u_char *)&lie), PCAP_ERROR);
		assert_string_equal(pcap_geterr(handle), "the ring is corrupt");
	}
}

static void close_it(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	pcap_close(handle);
	++*(int *)user;
}

static void test_closed_in_its_callback(void **state)
{
	int seen = 0;

	put(5, 60);
	assert_int_equal(pcap_loop(handle, -1, close_it, (u_char *)&seen), PCAP_ERROR_BREAK);
	assert_int_equal(seen, 1);
	assert_null(handle_of(handle));
	handle = NULL;
}

static void *break_it(void *arg)
{
	pcap_breakloop(handle);
	return NULL;
}

static void test_broken_from_another_thread(void **state)
{
	pthread_t thread;
	int seen = 0;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(pthread_create(&thread, NULL, break_it, NULL), 0);
		if (i % 2)
			put(3, 60);
		assert_int_equal(pcap_loop(handle, -1, count, (u_char *)&seen), PCAP_ERROR_BREAK);
		pthread_join(thread, NULL);
	}
	/* Packets that were not handed out before a break are handed out after it. */
	while (seen < 150)
		assert_true(pcap_dispatch(handle, -1, count, (u_char *)&seen) >= 0);
	assert_int_equal(seen, 150);
}

static void read_on(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct pcap_pkthdr next;

	++*(int *)user;
	if (pcap_next(handle, &next)) {
		++*(int *)user;
		assert_int_equal(next.caplen, 60);
	}
}

static void test_callback_that_reads(void **state)
{
	int seen = 0;

	do_not_wait();
	for (int i = 0; i < 10; i++) {
		put(7, 60); /* odd: the last pcap_next() finds no packet */
		while (seen < 7 * (i + 1))
			assert_true(pcap_dispatch(handle, -1, read_on, (u_char *)&seen) >= 0);
		assert_int_equal(seen, 7 * (i + 1));
	}
}

/* ---- filters ---- */

static void test_filter_applies_to_packets_in_the_ring(void **state)
{
	int seen = 0;

	put(5, 60);
	put(3, 70);
	set_filter("len = 70", 0);
	put(2, 60); /* a probe would filter these: they show that the library does not */
	assert_int_equal(pcap_loop(handle, 5, count, (u_char *)&seen), 0);
	assert_int_equal(seen, 5);
	do_not_wait();
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 0);
}

static void test_refused_filter_runs_in_the_library(void **state)
{
	int seen = 0;

	filters_refused_with = -EINVAL;
	refusals = 1;
	set_filter("len = 70", 0);
	assert_int_equal(refusals, 0);
	put(5, 60);
	put(3, 70);
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 3);
}

static void test_failed_filter_keeps_the_old_one(void **state)
{
	int seen = 0;

	set_filter("len = 60", 0);
	filters_refused_with = -EINVAL;
	refusals = 2; /* the filter, and its removal */
	set_filter("len = 70", PCAP_ERROR);
	assert_string_equal(pcap_geterr(handle), "setfilter: no");
	put(5, 60);
	put(3, 70);
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 5);
	/* The application runs the old filter again: the library need not. */
	assert_false(handle_of(handle)->filter_here);
}

static void test_filter_that_only_the_kernel_can_run(void **state)
{
	set_filter("ifindex 3", PCAP_ERROR);
	assert_non_null(strstr(pcap_geterr(handle), "only the kernel"));
	assert_null(handle_of(handle)->filter.bf_insns);
}

static void test_filter_applies_to_fetched_packets(void **state)
{
	struct pcap_pkthdr h;
	int seen = 0;

	put(5, 60);
	put(3, 70);
	assert_non_null(pcap_next(handle, &h));
	set_filter("len = 70", 0);
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 3);
}

static void change_the_mode(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	if (++*(int *)user == 1)
		set_filter("len = 70", 0);
	else
		assert_int_equal(pcap_setdirection(handle, PCAP_D_IN), 0);
}

/* They apply to the rest of the run, too. Its records have no direction. */
static void test_filter_and_direction_set_in_a_callback(void **state)
{
	int seen = 0, n = 0;

	put(5, 60);
	put(3, 70);
	while (n < 2) /* one call may not have fetched all of them */
		n += pcap_dispatch(handle, -1, change_the_mode, (u_char *)&seen);
	assert_int_equal(n, 2);
}

static void test_null_removes_the_filter(void **state)
{
	int seen = 0;

	put(5, 60);
	set_filter("len = 70", 0);
	set_filter("", 0);
	assert_null(handle_of(handle)->filter.bf_insns);
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 5);
}

/* A record without epb_flags has no direction. */
static void test_record_without_direction(void **state)
{
	int seen = 0;

	put(5, 60);
	assert_int_equal(pcap_setdirection(handle, PCAP_D_IN), 0);
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 0);
	assert_int_equal(pcap_setdirection(handle, PCAP_D_INOUT), 0);
	put(5, 60);
	assert_int_equal(pcap_dispatch(handle, -1, count, (u_char *)&seen), 5);
}

/* ---- savefiles ---- */

static void test_dump_has_snapshot_length_and_precision(void **state)
{
	char err[PCAP_ERRBUF_SIZE], path[128];
	pcap_dumper_t *dumper;
	pcap_t *file;
	FILE *f;

	snprintf(path, sizeof(path), "%s/dump", runtime);
	handle = pcap_create("ringtap:app:0", err);
	pcap_set_snaplen(handle, 77);
	pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO);
	assert_int_equal(pcap_activate(handle), 0);
	dumper = pcap_dump_open(handle, path);
	assert_non_null(dumper);
	put(1, 60);
	assert_int_equal(pcap_loop(handle, 1, pcap_dump, (u_char *)dumper), 0);
	pcap_dump_close(dumper);
	dumper = pcap_dump_open_append(handle, path);
	assert_non_null(dumper);
	put(2, 60);
	assert_int_equal(pcap_loop(handle, 2, pcap_dump, (u_char *)dumper), 0);
	pcap_dump_close(dumper);
	f = fopen(path, "rb");
	assert_int_equal(getc(f), 0x4d); /* the magic of nanoseconds */
	fclose(f);
	file = pcap_open_offline(path, err);
	assert_int_equal(pcap_snapshot(file), 77);
	assert_int_equal(pcap_loop(file, -1, count, (u_char *)&(int){0}), 0);
	pcap_close(file);
	unlink(path);
}

#define closed(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define opened(f) cmocka_unit_test_setup_teardown(f, set_up_open, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		closed(test_handles_of_libpcap_are_distinguished),
		closed(test_handles_are_found_again_and_bounded),
		closed(test_concurrent_close),
		closed(test_names_of_ports_are_distinguished),
		closed(test_names_of_ports),
		closed(test_list_does_not_wait_for_a_stopped_application),
		opened(test_packets_are_not_copied),
		closed(test_packet_beyond_the_snapshot_length),
		closed(test_copies_can_be_written),
		closed(test_nanoseconds),
		opened(test_rings_wrap_around),
		opened(test_lengths_that_change_meanwhile),
		opened(test_closed_in_its_callback),
		opened(test_callback_that_reads),
		opened(test_broken_from_another_thread),
		opened(test_filter_applies_to_packets_in_the_ring),
		opened(test_refused_filter_runs_in_the_library),
		opened(test_failed_filter_keeps_the_old_one),
		opened(test_filter_that_only_the_kernel_can_run),
		opened(test_filter_applies_to_fetched_packets),
		opened(test_filter_and_direction_set_in_a_callback),
		opened(test_null_removes_the_filter),
		opened(test_record_without_direction),
		closed(test_dump_has_snapshot_length_and_precision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
