/* SPDX-License-Identifier: BSD-3-Clause */
/* Valid and invalid requests of readers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "request.h"

#define TARGETS 2
#define INSNS   5

struct message {
	struct rt_msg_open open;
	struct rt_msg_target target[TARGETS];
	struct rt_insn insn[INSNS];
};

static struct message good(void)
{
	struct message m = {
		.open = {.target_count = TARGETS, .insn_count = INSNS, .buffer_size = 1 << 20},
		.target = {{.port = "net_null0",
				   .queue = RT_QUEUE_ALL,
				   .directions = RT_TARGET_RX | RT_TARGET_TX,
				   .snaplen = 262144,
				   .insn_first = RT_NO_FILTER},
			{.queue = 3,
				.directions = RT_TARGET_TX,
				.snaplen = 1,
				.insn_first = 2,
				.insn_count = 3}}};

	for (uint32_t i = 0; i < INSNS; i++)
		m.insn[i].k = i;
	return m;
}

static struct rt_request req;

static int parse_len(const struct message *m, size_t len)
{
	char err[RT_TEXT_LEN] = "";
	/* Allocated with this exact size, so that a sanitizer detects reads beyond it. */
	void *copy = malloc(len ? len : 1);
	int ret;

	memcpy(copy, m, len);
	ret = rt_request_parse(&req, copy, len, err);
	free(copy);
	if (ret == -EINVAL)
		assert_true(strlen(err) > 20);
	return ret;
}

static int parse(const struct message *m)
{
	int ret = parse_len(m, sizeof(*m));

	rt_request_free(&req);
	return ret;
}

static void test_valid_request_is_copied(void **state)
{
	struct message m = good();

	assert_int_equal(parse_len(&m, sizeof(m)), 0);
	assert_int_equal(req.open.buffer_size, 1 << 20);
	assert_memory_equal(req.targets, m.target, sizeof(m.target));
	assert_memory_equal(req.insns, m.insn, sizeof(m.insn));
	rt_request_free(&req);
	assert_null(req.targets);
	assert_null(req.insns);
}

static void test_every_other_length_is_refused(void **state)
{
	struct message m[2] = {good()};

	for (size_t len = 0; len < sizeof(m[0]) + 40; len++) {
		if (len == sizeof(m[0]))
			continue;
		assert_int_equal(parse_len(&m[0], len), -EINVAL);
		rt_request_free(&req);
	}
}

static void test_number_of_targets_is_bounded(void **state)
{
	static const uint32_t bad[] = {0, 1, 3, RT_MAX_TARGETS + 1, UINT32_MAX, 0x2000000};
	struct message m = good();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.open.target_count = bad[i];
		assert_int_equal(parse(&m), -EINVAL);
	}
}

static void test_number_of_instructions_is_bounded(void **state)
{
	static const uint32_t bad[] = {0, 4, 6, 1u << 29, UINT32_MAX, RT_MSG_MAX};
	struct message m = good();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.open.insn_count = bad[i];
		assert_int_equal(parse(&m), -EINVAL);
	}
}

static void test_options_are_checked(void **state)
{
	struct message m = good();

	m.open.on_full = RT_ON_FULL_WAIT + 1;
	assert_int_equal(parse(&m), -EINVAL);
	m = good();
	m.open.timestamp = RT_TIMESTAMP_NIC + 1;
	assert_int_equal(parse(&m), -EINVAL);
	m = good();
	m.open.buffer_size = RT_BUFFER_MAX + 1;
	assert_int_equal(parse(&m), -EINVAL);
	m.open.buffer_size = RT_BUFFER_MAX;
	assert_int_equal(parse(&m), 0);
}

/* In a message of their own type only: earlier probes would ignore them in the other. */
static void test_ids_are_checked(void **state)
{
	static const uint32_t bad[] = {RT_IDS_INFER, RT_IDS_FATES, RT_IDS_ON | RT_IDS_EVENTS,
		RT_IDS_ON | 16, RT_IDS_ON | 16u << RT_IDS_SOURCE_SHIFT};
	struct message m = good();

	m.open.ids = RT_IDS_ON | RT_IDS_INFER | 15u << RT_IDS_SOURCE_SHIFT;
	m.open.h.type = RT_MSG_OPEN;
	assert_int_equal(parse(&m), -EINVAL);
	m.open.h.type = RT_MSG_OPEN_IDS;
	assert_int_equal(parse(&m), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.open.ids = bad[i];
		assert_int_equal(parse(&m), -EINVAL);
	}
	m.open.ids = 0;
	assert_int_equal(parse(&m), -EINVAL);
}

static struct message with_fates(void)
{
	struct message m = good();

	m.open.h.type = RT_MSG_OPEN_IDS;
	m.open.ids = RT_IDS_ON | RT_IDS_FATES;
	m.open.on_full = RT_ON_FULL_DROP;
	m.open.timestamp = RT_TIMESTAMP_TSC;
	for (int i = 0; i < 2; i++) {
		m.target[i].queue = RT_QUEUE_ALL;
		m.target[i].directions = RT_TARGET_RX | RT_TARGET_TX;
		m.target[i].insn_first = RT_NO_FILTER;
	}
	return m;
}

static void test_fates_are_of_all_packets(void **state)
{
	struct message m = with_fates();

	assert_int_equal(parse(&m), 0);
	m.open.on_full = RT_ON_FULL_WAIT;
	assert_int_equal(parse(&m), -EINVAL);
	m = with_fates();
	m.open.timestamp = RT_TIMESTAMP_NIC;
	assert_int_equal(parse(&m), -EINVAL);
	m = with_fates();
	m.target[1].queue = 0;
	assert_int_equal(parse(&m), -EINVAL);
	m = with_fates();
	m.target[1].directions = RT_TARGET_RX;
	assert_int_equal(parse(&m), -EINVAL);
	m = with_fates();
	m.target[1].insn_first = 0;
	m.target[1].insn_count = 1;
	assert_int_equal(parse(&m), -EINVAL);
	m.open.ids |= RT_IDS_EVENTS; /* then it only decides which have records */
	assert_int_equal(parse(&m), 0);
	m.target[1].directions = RT_TARGET_RX;
	assert_int_equal(parse(&m), -EINVAL);
}

struct sampled {
	struct message m;
	struct rt_msg_sample s;
};

static int parse_sampled(const struct sampled *m)
{
	int ret;

	static_assert(sizeof(*m) == sizeof(m->m) + sizeof(m->s), "no gap, as in the message");
	ret = parse_len(&m->m, sizeof(*m));
	rt_request_free(&req);
	return ret;
}

static void test_a_sample_is_one_of_a_power_of_two(void **state)
{
	static const uint32_t fine[] = {2, 4, 1024, RT_SAMPLE_MAX},
			      bad[] = {0, 1, 3, 1000, RT_SAMPLE_MAX * 2, UINT32_MAX};
	struct sampled m = {good(), {.secret = {1, 2}}};

	m.m.open.flags = RT_OPEN_SAMPLE | RT_OPEN_GROWS;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		m.s.every = fine[i];
		assert_int_equal(parse_sampled(&m), 0);
		assert_memory_equal(&req.sample, &m.s, sizeof(m.s));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.s.every = bad[i];
		assert_int_equal(parse_sampled(&m), -EINVAL);
	}
	m.s.every = 2;
	m.s.reserved = 1;
	assert_int_equal(parse_sampled(&m), -EINVAL);
	m.s.reserved = 0;
	m.m.open.flags = RT_OPEN_GROWS; /* then it is too long */
	assert_int_equal(parse_sampled(&m), -EINVAL);
	m.m.open.flags = RT_OPEN_SAMPLE;
	assert_int_equal(parse(&m.m), -EINVAL); /* too short */
}

static void test_fates_are_not_of_a_sample(void **state)
{
	struct sampled m = {with_fates(), {.secret = {1, 2}, .every = 2}};

	m.m.open.flags = RT_OPEN_SAMPLE;
	assert_int_equal(parse_sampled(&m), -EINVAL);
	m.m.open.ids = RT_IDS_ON;
	assert_int_equal(parse_sampled(&m), 0);
}

struct limited {
	struct message m;
	struct rt_msg_sample s;
	struct rt_msg_first f;
};

static int parse_limited(const struct limited *m)
{
	int ret;

	static_assert(sizeof(*m) == sizeof(m->m) + sizeof(m->s) + sizeof(m->f), "no gap");
	ret = parse_len(&m->m, sizeof(*m));
	rt_request_free(&req);
	return ret;
}

static void test_limits_of_flows_are_checked(void **state)
{
	static const struct rt_msg_first fine[] = {{1, 0, 0, 8, 0}, {RT_FIRST_MAX, 1, 1, 14, 0}},
					 bad[] = {{0, 0, 0, 8, 0}, {RT_FIRST_MAX + 1, 0, 0, 8, 0},
						 {1, 2, 0, 8, 0}, {1, 0, 2, 8, 0}, {1, 0, 0, 7, 0},
						 {1, 0, 0, 15, 0}, {1, 0, 0, 8, 1}};
	struct limited m = {good(), {.secret = {1, 2}, .every = 4}, fine[0]};

	m.m.open.flags = RT_OPEN_SAMPLE | RT_OPEN_FIRST;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		m.f = fine[i];
		assert_int_equal(parse_limited(&m), 0);
		assert_memory_equal(&req.first, &m.f, sizeof(m.f));
		assert_int_equal(req.sample.every, 4);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.f = bad[i];
		assert_int_equal(parse_limited(&m), -EINVAL);
	}
	m.f = fine[0];
	m.m.open.flags = RT_OPEN_SAMPLE; /* then it is too long */
	assert_int_equal(parse_limited(&m), -EINVAL);
	m.m = with_fates();
	m.m.open.flags = RT_OPEN_SAMPLE | RT_OPEN_FIRST;
	assert_int_equal(parse_limited(&m), -EINVAL);
	m.m.open.ids = RT_IDS_ON;
	assert_int_equal(parse_limited(&m), 0);
}

static void test_fates_have_no_mbufs_and_lengths(void **state)
{
	static const uint16_t flags[] = {RT_OPEN_MBUFS, RT_OPEN_LENGTHS, RT_OPEN_ALL + 1};
	struct message fates = with_fates(), plain = good();

	assert_int_equal(parse(&fates), 0);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		fates.open.flags = plain.open.flags = flags[i];
		assert_int_equal(parse(&fates), -EINVAL);
		assert_int_equal(parse(&plain), i < 2 ? 0 : -EINVAL);
	}
}

static void test_unterminated_port_name_is_refused(void **state)
{
	struct message m = good();

	memset(m.target[0].port, 'p', sizeof(m.target[0].port));
	assert_int_equal(parse(&m), -EINVAL);
}

static void test_directions_are_checked(void **state)
{
	static const uint32_t bad[] = {0, 4, 7, UINT32_MAX};
	struct message m = good();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.target[1].directions = bad[i];
		assert_int_equal(parse(&m), -EINVAL);
	}
}

static void test_queue_is_checked(void **state)
{
	struct message m = good();

	m.target[0].queue = 65536;
	assert_int_equal(parse(&m), -EINVAL);
	m.target[0].queue = 65535;
	assert_int_equal(parse(&m), 0);
}

static void test_snaplen_is_checked(void **state)
{
	struct message m = good();

	m.target[1].snaplen = 0;
	assert_int_equal(parse(&m), -EINVAL);
	m.target[1].snaplen = 262145;
	assert_int_equal(parse(&m), -EINVAL);
}

static void test_filter_must_lie_inside_of_the_message(void **state)
{
	static const uint32_t bad[][2] = {{0, 0}, {0, INSNS + 1}, {INSNS, 1}, {4, 2},
		{UINT32_MAX - 1, 3}, {3, UINT32_MAX - 1}, {INSNS + 1, UINT32_MAX},
		{0, RT_MAX_INSNS + 1}};
	struct message m = good();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.target[1].insn_first = bad[i][0];
		m.target[1].insn_count = bad[i][1];
		assert_int_equal(parse(&m), -EINVAL);
	}
}

/* ---- another filter ---- */

struct filter_message {
	struct rt_msg_filter m;
	struct rt_insn insns[INSNS];
};

static int parse_filter(const struct filter_message *m, size_t len, uint32_t *count)
{
	char err[RT_TEXT_LEN] = "";
	struct rt_insn *insns;
	int ret = rt_request_filter(m, len, &insns, count, err);

	assert_int_equal(insns != NULL, ret == 0 && *count > 0);
	if (insns)
		assert_memory_equal(insns, m->insns, *count * sizeof(*insns));
	if (ret)
		assert_true(err[0] != 0);
	free(insns);
	return ret;
}

static void test_filter_is_as_long_as_its_message(void **state)
{
	struct filter_message m = {.m.insn_count = INSNS, .insns[0].k = 7};
	uint32_t count;

	assert_int_equal(parse_filter(&m, sizeof(m), &count), 0);
	assert_int_equal(count, INSNS);
	for (size_t len = 0; len < sizeof(m); len++)
		assert_int_equal(parse_filter(&m, len, &count), -EINVAL);
	m.m.insn_count = UINT32_MAX;
	assert_int_equal(parse_filter(&m, sizeof(m), &count), -EINVAL);
	m.m.insn_count = RT_MAX_INSNS + 1;
	assert_int_equal(parse_filter(&m, sizeof(m), &count), -EINVAL);
	m.m.insn_count = 0;
	assert_int_equal(parse_filter(&m, sizeof(m.m), &count), 0);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_request_is_copied),
		cmocka_unit_test(test_every_other_length_is_refused),
		cmocka_unit_test(test_number_of_targets_is_bounded),
		cmocka_unit_test(test_number_of_instructions_is_bounded),
		cmocka_unit_test(test_options_are_checked),
		cmocka_unit_test(test_ids_are_checked),
		cmocka_unit_test(test_fates_are_of_all_packets),
		cmocka_unit_test(test_a_sample_is_one_of_a_power_of_two),
		cmocka_unit_test(test_fates_are_not_of_a_sample),
		cmocka_unit_test(test_limits_of_flows_are_checked),
		cmocka_unit_test(test_fates_have_no_mbufs_and_lengths),
		cmocka_unit_test(test_unterminated_port_name_is_refused),
		cmocka_unit_test(test_directions_are_checked),
		cmocka_unit_test(test_queue_is_checked),
		cmocka_unit_test(test_snaplen_is_checked),
		cmocka_unit_test(test_filter_must_lie_inside_of_the_message),
		cmocka_unit_test(test_filter_is_as_long_as_its_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
