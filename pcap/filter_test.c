/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters and directions, by the application or here. */
#include <errno.h>

#include "test_app.h"

static void set_filter(const char *expression, int expected)
{
	struct bpf_program prog;

	assert_int_equal(pcap_compile(handle, &prog, expression, 1, PCAP_NETMASK_UNKNOWN), 0);
	assert_int_equal(pcap_setfilter(handle, &prog), expected);
	pcap_freecode(&prog);
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		opened(test_filter_applies_to_packets_in_the_ring),
		opened(test_refused_filter_runs_in_the_library),
		opened(test_failed_filter_keeps_the_old_one),
		opened(test_filter_that_only_the_kernel_can_run),
		opened(test_filter_applies_to_fetched_packets),
		opened(test_filter_and_direction_set_in_a_callback),
		opened(test_null_removes_the_filter),
		opened(test_record_without_direction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
