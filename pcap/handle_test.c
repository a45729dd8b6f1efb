/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of ours and of the system's libpcap, and names. */
#include <errno.h>
#include <time.h>

#include "reader/conn/conn.h"
#include "test_app.h"
#include "reader/tunables.h"

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
	if (pcap_findalldevs(&list, err))
		fail_msg("%s", err);
	clock_gettime(CLOCK_MONOTONIC, &b);
	for (pcap_if_t *d = list; d; d = d->next)
		assert_string_not_equal(d->name, "ringtap:app:0");
	pcap_freealldevs(list);
	assert_in_range(b.tv_sec - a.tv_sec, 0, rt_reader_limits.answer_ms / 1000 - 2);
}

/* ---- a secondary process */

static struct test_session other_session;
static struct test_peer other;
static int refused_with; /* 0: it accepts */

/* It has port 1 only. */
static bool answer_as_secondary(struct test_peer *p, int sock, uint16_t type)
{
	struct {
		struct rt_msg_header h;
		struct rt_msg_port port;
	} ports = {.port = {.name = "net_null1", .port_id = 1}};
	struct rt_msg_error e = {.code = refused_with, .text = "not today"};
	uint64_t none[2] = {0};

	if (type == RT_MSG_LIST) {
		rt_msg_init(&ports.h, RT_MSG_PORTS, sizeof(ports));
		rt_msg_init((struct rt_msg_header *)none, RT_MSG_SESSIONS, sizeof(none));
		return !rt_msg_send(sock, &ports.h, NULL, 0) &&
		       !rt_msg_send(sock, (struct rt_msg_header *)none, NULL, 0);
	}
	if (type != RT_MSG_OPEN || !refused_with)
		return test_peer_answer(p, sock, type);
	rt_msg_init(&e.h, RT_MSG_ERROR, sizeof(e));
	(void)rt_msg_send(sock, &e.h, NULL, 0);
	return false;
}

static int set_up_secondary(void **state)
{
	char from[160], to[160];
	int ret = set_up(state);

	refused_with = 0;
	test_session_make(&other_session, 2, TEST_RING);
	other = (struct test_peer){.session = &other_session, .answer = answer_as_secondary};
	test_peer_start(&other, true);
	snprintf(from, sizeof(from), "%s/" RT_SOCKET_NAME, other.dir);
	snprintf(to, sizeof(to), "%s/" RT_SOCKET_SECONDARY "7", peer.dir);
	return ret ? ret : link(from, to);
}

static int tear_down_secondary(void **state)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/" RT_SOCKET_SECONDARY "7", peer.dir);
	unlink(path);
	test_peer_stop(&other);
	test_session_free(&other_session);
	return tear_down(state);
}

static void test_secondary_is_captured_on_the_ports_that_it_has(void **state)
{
	char err[PCAP_ERRBUF_SIZE] = "";

	handle = pcap_open_live("ringtap:app:0+1", 0, 1, 20, err);
	if (!handle)
		fail_msg("%s", err);
	assert_int_equal(peer.open.target_count, 2);
	assert_int_equal(other.open.target_count, 1);
	pcap_close(handle);
	other.open.target_count = 0;
	handle = pcap_open_live("ringtap:app:0", 0, 1, 20, err);
	assert_non_null(handle);
	assert_int_equal(other.open.target_count, 0);
}

static void test_secondary_that_cannot_be_captured_is_an_error(void **state)
{
	char err[PCAP_ERRBUF_SIZE] = "";

	refused_with = -ENOMEM;
	assert_null(pcap_open_live("ringtap:app:1", 0, 1, 20, err));
	assert_non_null(strstr(err, "app/7: not today"));
	refused_with = -ENODEV; /* the port has gone */
	handle = pcap_open_live("ringtap:app:1", 0, 1, 20, err);
	assert_non_null(handle);
}

#define paired(f) cmocka_unit_test_setup_teardown(f, set_up_secondary, tear_down_secondary)

int main(void)
{
	const struct CMUnitTest tests[] = {
		closed(test_handles_of_libpcap_are_distinguished),
		closed(test_handles_are_found_again_and_bounded),
		closed(test_concurrent_close),
		closed(test_names_of_ports_are_distinguished),
		closed(test_names_of_ports),
		closed(test_list_does_not_wait_for_a_stopped_application),
		paired(test_secondary_is_captured_on_the_ports_that_it_has),
		paired(test_secondary_that_cannot_be_captured_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
