/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of ours and of the system's libpcap, and names. */
#include <time.h>

#include "reader/conn.h"
#include "test_app.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		closed(test_handles_of_libpcap_are_distinguished),
		closed(test_handles_are_found_again_and_bounded),
		closed(test_concurrent_close),
		closed(test_names_of_ports_are_distinguished),
		closed(test_names_of_ports),
		closed(test_list_does_not_wait_for_a_stopped_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
