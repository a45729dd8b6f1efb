/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages about packets that were lost: why, and what helps on this machine. */
#include <sys/resource.h>

#include "common/test_pages.h"
#include "test_record.h"

#define GIB_KIB (1024u * 1024u)

static int begin(void **state)
{
	test_available(8 * GIB_KIB);
	return setup(state);
}

static int end(void **state)
{
	test_available_end();
	return teardown(state);
}

/* Each application has a buffer of its own: the size that would have held the losses of one. */
static void losses_are_explained_by_application(void **state)
{
	static const struct fake_run both[] = {{0, 0, 600, 60}, {1, 0, 600, 60}};

	fake = (struct fake){.apps = 2, .runs = both, .run_count = 2};
	fake.buffer_size = fake.buffer_most_used = 16 << 20;
	fake.written = 600 << 10;
	fake.longest_pause_ns = 20000000000;
	fake.lost[0] = fake.lost[1] = fake.pause_lost = 64 << 10; /* packets of 1 KiB each */
	assert_int_equal(record("-i app0 -i app1 -w f"), STATUS_OK);
	assert_non_null(strstr(message_last(), "131,072 packets were lost"));
	assert_non_null(strstr(message_last(), "--buffer 256M would have held them"));
}

/* Neither the sum of all pauses nor the average rate says what one pause needs. */
static void losses_are_those_of_one_pause(void **state)
{
	static const struct fake_run one[] = {{0, 0, 600, 60}};

	for (unsigned written = 0; written <= 16; written += 16) {
		fake = (struct fake){.apps = 1, .runs = one, .run_count = 1};
		fake.buffer_size = fake.buffer_most_used = 16 << 20;
		fake.written = 600 << 10;
		fake.longest_pause_ns = written ? 20000000000 : 3600000000000;
		fake.lost[0] = 64 << 10; /* packets of 1 KiB each */
		fake.pause_written = (uint64_t)written << 20;
		fake.pause_lost = written ? 8 << 10 : 0;
		assert_int_equal(record("-w f"), STATUS_OK);
		assert_non_null(strstr(
			message_last(), written ? "up to 20 s; --buffer 64M would have held them"
						: "packets come faster"));
	}
}

/* Nobody can start the traffic later, and a larger buffer would be wrong. */
static void losses_while_the_buffer_grows(void **state)
{
	static const struct fake_run one[] = {{0, 0, 600, 60}};

	for (unsigned most = 0; most < 2; most++) {
		fake = (struct fake){.apps = 1, .runs = one, .run_count = 1};
		fake.buffer_size = fake.buffer_most_used = 16 << 20;
		fake.written = 600 << 10;
		fake.lost[0] = 2000;
		fake.growing_lost = most ? 1500 : 500;
		fake.growing_ns = 410000000;
		assert_int_equal(record("-w f"), STATUS_OK);
		assert_non_null(strstr(message_last(),
			most ? "ring_full 2,000; 1,500 of them in the first 410 ms, until all of "
			       "the buffer was there: such losses end by themselves; a CPU for "
			       "the recorder alone, -s or a filter make them fewer"
			     : "; 500 of them in the first 410 ms, until all of the buffer was "
			       "there; packets come faster than"));
	}
}

static void a_buffer_that_stays_small_is_reported(void **state)
{
	static const struct fake_run one[] = {{0, 0, 600, 60}};

	fake = (struct fake){.apps = 1, .runs = one, .run_count = 1};
	fake.buffer_error = "not enough memory";
	assert_int_equal(record("-w f"), STATUS_OK);
	assert_string_equal(message_last(),
		"record: the buffer stayed smaller than requested: not enough memory");
}

static const struct fake_run one[] = {{0, 0, 600, 60}};

/* A pause of 20 s, in which 64 MiB came: a buffer of 256 MiB would do. */
static void pause_of_64_mib(void)
{
	fake = (struct fake){.apps = 1, .runs = one, .run_count = 1};
	fake.buffer_size = fake.buffer_most_used = 16 << 20;
	fake.written = 600 << 10;
	fake.longest_pause_ns = 20000000000;
	fake.lost[0] = fake.pause_lost = 64 << 10;
}

static void a_buffer_that_the_machine_has_not_is_not_advised(void **state)
{
	pause_of_64_mib();
	test_available(512 << 10);
	assert_int_equal(record("-w f"), STATUS_OK);
	assert_non_null(strstr(message_last(), "; --buffer 256M would have held them"));
	/* Half of what is available, with the buffer that there is. */
	test_available(400 << 10);
	assert_int_equal(record("-w f"), STATUS_OK);
	assert_null(strstr(message_last(), "--buffer"));
	assert_non_null(strstr(message_last(),
		"paused for up to 20 s; a buffer can have 208 MiB here, which is too little: try a "
		"faster output, --compress, -s or a filter"));
}

/* Each application would have one. */
static void applications_share_the_memory(void **state)
{
	static const struct fake_run both[] = {{0, 0, 600, 60}, {1, 0, 600, 60}};

	pause_of_64_mib();
	fake.apps = 2;
	fake.runs = both;
	fake.run_count = 2;
	test_available(700 << 10);
	assert_int_equal(record("-i app0 -i app1 -w f"), STATUS_OK);
	assert_null(strstr(message_last(), "--buffer"));
	assert_non_null(strstr(message_last(), "a buffer can have 244 MiB here"));
}

/* Shared memory counts as a file. */
static void the_limit_of_file_sizes_is_one_of_buffers(void **state)
{
	struct rlimit before, low;

	pause_of_64_mib();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = 100 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(record("-w f"), STATUS_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(message_last(), "a buffer can have 100 MiB here"));
}

/* For whatever reason, such as the application's limit of address space. */
static void a_buffer_that_stayed_small_would_again(void **state)
{
	pause_of_64_mib();
	fake.buffer_error = "it has no address space for it";
	assert_int_equal(record("-w f"), STATUS_OK);
	assert_non_null(strstr(message_last(), "a buffer can have 16 MiB here"));
}

#define LOSS_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		LOSS_TEST(losses_are_explained_by_application),
		LOSS_TEST(losses_are_those_of_one_pause),
		LOSS_TEST(losses_while_the_buffer_grows),
		LOSS_TEST(a_buffer_that_stays_small_is_reported),
		LOSS_TEST(a_buffer_that_the_machine_has_not_is_not_advised),
		LOSS_TEST(applications_share_the_memory),
		LOSS_TEST(the_limit_of_file_sizes_is_one_of_buffers),
		LOSS_TEST(a_buffer_that_stayed_small_would_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
