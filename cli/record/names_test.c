/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of files: what they promise, and how they are printed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/test_command.h"
#include "test_record.h"

static void a_name_that_promises_another_format_is_reported(void **state)
{
	static const struct {
		const char *args, *says; /* NULL: nothing */
	} rows[] = {
		{"-w x.pcap", "'x.pcap' is pcapng; add -P for pcap, or choose another name"},
		{"-P -w x.pcapng", "'x.pcapng' is pcap; leave out -P"},
		{"-P -w x.pcap", NULL},
		{"-w x.pcapng", NULL},
		{"-w x", NULL},
		{"-w .pcap", NULL},
		{"-q -w x.pcap", NULL},
		{"-w x.pcap --compress zstd", "'x.pcap' is pcapng"},
		{"-w x.pcapng --compress zstd",
			"'x.pcapng' is compressed by zstd; choose a name that ends in .zst"},
		{"-w x.pcapng.lz4 --compress lz4", NULL},
		{"-w x.pcapng.zst", "'x.pcapng.zst' is not compressed by zstd; add --compress"},
		{"-w x.pcap.lz4 --compress lz4", "'x.pcap.lz4' is pcapng"},
		{"-w x.pcap -b packets:5000", "'x.pcap' is pcapng"},
		{"-w - --compress zstd", NULL},
		{"-w /dev/null --compress zstd", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct test_output o;
		bool right;

		message_print("nothing");
		test_output_begin();
		record(rows[i].args);
		test_output_end(&o);
		right = rows[i].says ? !!strstr(o.err, rows[i].says)
				     : !strstr(message_last(), "choose");
		if (!right)
			fail_msg("'%s' printed: %s", rows[i].args, o.err);
		test_output_free(&o);
	}
}

/* It is printed to a terminal. */
static void names_in_the_summary_have_no_control_characters(void **state)
{
	struct test_output o;

	(void)state;
	test_output_begin();
	assert_int_equal(record("-w a\033[2J\nb.pcapng"), STATUS_OK);
	test_output_end(&o);
	assert_non_null(strstr(o.err, "\na?[2J b.pcapng: "));
	assert_null(strchr(o.err, '\033'));
	test_output_free(&o);
	assert_int_equal(access("a\033[2J\nb.pcapng", F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORD_TEST(a_name_that_promises_another_format_is_reported),
		RECORD_TEST(names_in_the_summary_have_no_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
