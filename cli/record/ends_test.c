/* SPDX-License-Identifier: BSD-3-Clause */
/* How a recording ends, what signals do, and what failures say. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "packet/blocks.h"
#include "test_record.h"

static void death_of_the_application_is_no_failure(void **state)
{
	assert_int_equal(record("-q -w f"), STATUS_OK);
	assert_non_null(strstr(message_last(), "'app0' has ended: the capture is complete"));
	assert_true(test_blocks_read("f").ended[0]);
}

static void corruption_saves_what_was_good(void **state)
{
	fake.end = -EBADMSG;
	assert_int_equal(record("-q -w f"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "fake error"));
	assert_int_equal(test_pcap_read("f").packets, TOTAL);
	/* Counts are not known to be final. */
	assert_false(test_blocks_read("f").ended[0]);
}

static void signals_end_the_capture(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < 3; i++) {
		fake.wait_for_stop = true;
		fake.signal_at_end = signals[i];
		assert_int_equal(record("-q -w f"), STATUS_OK);
		assert_int_equal(fake.stops, i + 1);
		assert_int_equal(test_pcap_read("f").packets, TOTAL);
		assert_true(test_blocks_read("f").ended[1]);
	}
}

/* It printed "writing f: Connection timed out" where the application was stopped. */
static void silent_application_is_not_the_outputs_fault(void **state)
{
	fake.end = -ETIMEDOUT;
	assert_int_equal(record("-q -w f"), STATUS_FAILED);
	assert_non_null(
		strstr(message_last(), "ending the capture: application 'app0': fake error"));
	assert_null(strstr(message_last(), "writing"));
	assert_int_equal(test_pcap_read("f").packets, TOTAL);
}

static char *read_file(const char *name)
{
	static char text[8192];
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return text;
}

/* Both ended the process. */
static void signals_for_counts_and_the_next_file(void **state)
{
	size_t count;
	char **name, *text;
	int err, ret;

	fake.wait_for_stop = true;
	fake.signal_at_end = SIGUSR1;
	err = dup(STDERR_FILENO);
	assert_true(err >= 0 && dup2(creat("err", 0600), STDERR_FILENO) >= 0);
	ret = record("-q -w f -a duration:0.01");
	fflush(stderr);
	assert_true(dup2(err, STDERR_FILENO) >= 0);
	assert_int_equal(ret, STATUS_OK);
	text = read_file("err");
	assert_non_null(strstr(text, "so far, in "));
	assert_non_null(strstr(text, "captured"));
	assert_int_equal(test_pcap_read("f").packets, TOTAL);

	fake.signal_at_end = SIGUSR2;
	assert_int_equal(record("-q -w n -a duration:0.01 -b packets:1000000 -b printname:names"),
		STATUS_OK);
	name = names("n_*", &count);
	assert_int_equal(count, 2);
	assert_int_equal(test_pcap_read(name[0]).packets, TOTAL);
	text = read_file("names");
	assert_int_equal(strncmp(text, name[0], strlen(name[0])), 0);
	assert_non_null(strstr(text, name[1]));
	fake.signal_at_end = SIGUSR2;
	assert_int_equal(record("-q -w one -a duration:0.01"), STATUS_OK);
	assert_int_equal(test_pcap_read("one").packets, TOTAL);
}

/* The first was lost. */
static void comments_are_all_kept(void **state)
{
	assert_int_equal(record("-q -w f --capture-comment ticket-4711 --capture-comment upgrade"),
		STATUS_OK);
	assert_int_equal(system("grep -aq ticket-4711 f && grep -aq upgrade f"), 0);
}

/* libpcap reads no packet of a file whose interfaces differ in it. */
static void interfaces_have_one_snapshot_length(void **state)
{
	uint32_t lengths[4], n = 0;
	struct blocks b = {0};
	struct block block;
	int fd, kind;

	assert_int_equal(record("-q -w f -i p0 -s 64 -i p1"), STATUS_OK);
	fd = open("f", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(window_open(&b.w, fd), 0);
	while ((kind = blocks_next(&b, &block)) > 0)
		if (kind == BLOCK_INTERFACE && n < 4)
			lengths[n++] = b.ifs[block.local].snaplen;
	blocks_close(&b);
	close(fd);
	assert_int_equal(n, 2);
	assert_int_equal(lengths[0], RINGTAP_SNAPLEN_MAX);
	assert_int_equal(lengths[1], RINGTAP_SNAPLEN_MAX);
}

static void duration_ends_the_capture(void **state)
{
	fake.wait_for_stop = true;
	assert_int_equal(record("-q -w f -a duration:0.001"), STATUS_OK);
	assert_int_equal(fake.stops, 1);
	assert_int_equal(test_pcap_read("f").packets, TOTAL);
}

static void failed_output_names_file_and_cause(void **state)
{
	struct rlimit old, now;
	struct test_pcap t;

	assert_int_equal(record("-w /dev/full"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "/dev/full"));
	assert_non_null(strstr(message_last(), "No space left"));
	assert_int_equal(fake.stops, 1);
	assert_int_equal(record("-w none/f"), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "cannot write 'none/f': No such file"));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	now = (struct rlimit){20000, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(record("-w f --no-direct"), STATUS_FAILED);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(message_last(), "writing f: the limit of file sizes is reached"));
	t = test_pcap_read("f");
	assert_true(t.packets > 100 && t.packets < TOTAL);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(test_blocks_read("f").epb, t.packets);
}

static void failure_is_in_the_json(void **state)
{
	const char *text;
	json_t *j;

	test_stdout_begin();
	assert_int_equal(record("-q --json -w /dev/full"), STATUS_FAILED);
	text = test_stdout_end();
	j = json_loads(text, 0, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "error")), message_last());
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORD_TEST(death_of_the_application_is_no_failure),
		RECORD_TEST(corruption_saves_what_was_good),
		RECORD_TEST(signals_end_the_capture),
		RECORD_TEST(silent_application_is_not_the_outputs_fault),
		RECORD_TEST(signals_for_counts_and_the_next_file),
		RECORD_TEST(comments_are_all_kept),
		RECORD_TEST(interfaces_have_one_snapshot_length),
		RECORD_TEST(duration_ends_the_capture),
		RECORD_TEST(failed_output_names_file_and_cause),
		RECORD_TEST(failure_is_in_the_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
