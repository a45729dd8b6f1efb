/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets by libpcap's functions, also from a session that is corrupted meanwhile. */
#include <errno.h>

#include "test_app.h"

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
	assert_true(session.pos[0] > 10 * TEST_RING);
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
		test_session_make(&session, 2, TEST_RING);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		opened(test_packets_are_not_copied),
		closed(test_packet_beyond_the_snapshot_length),
		closed(test_copies_can_be_written),
		closed(test_nanoseconds),
		opened(test_rings_wrap_around),
		opened(test_lengths_that_change_meanwhile),
		opened(test_closed_in_its_callback),
		opened(test_callback_that_reads),
		opened(test_broken_from_another_thread),
		closed(test_dump_has_snapshot_length_and_precision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
