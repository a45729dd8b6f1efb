/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of JSON documents, and what every document begins with. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/test_now.h"
#include "json.h"
#include "test_util.h"

/* Owns j. */
static void assert_printed(json_t *j, const char *text)
{
	char *printed = NULL;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	assert_int_equal(json_print_line(json_pack("[o]", j), f), 0);
	fclose(f);
	printed[strcspn(printed, "\n")] = '\0';
	assert_string_equal(printed, text);
	free(printed);
}

static void texts_that_are_not_utf8_keep_what_is(void **state)
{
	assert_printed(json_text("p\xc3\xa4p"), "[\"p\xc3\xa4p\"]");
	assert_printed(json_text("a\xff"
				 "b\xc3"),
		"[\"a\xef\xbf\xbd"
		"b\xef\xbf\xbd\"]");
	assert_printed(json_text("\xe2\x82"
				 "x"),
		"[\"\xef\xbf\xbd\xef\xbf\xbdx\"]");
	assert_printed(json_text("\xed\xa0\x80"), "[\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]");
	assert_printed(json_text(""), "[\"\"]");
	assert_printed(json_text(NULL), "[null]");
}

static void numbers_survive_a_double(void **state)
{
	assert_printed(json_count(0), "[0]");
	assert_printed(json_count(UINT64_C(1) << 53), "[9007199254740992]");
	assert_printed(json_count((UINT64_C(1) << 53) + 1), "[\"9007199254740993\"]");
	assert_printed(json_count(UINT64_MAX), "[\"18446744073709551615\"]");
	assert_printed(json_hex(0x7f00deadbeef), "[\"0x7f00deadbeef\"]");
	assert_printed(json_number(1.0 / 3), "[0.333333333]");
	assert_printed(json_number(64e6), "[64000000.0]");
	assert_printed(json_number(NAN), "[null]");
	assert_printed(json_number(INFINITY), "[null]");
	assert_printed(json_ns(1.5), "[2]");
	assert_printed(json_ns(-1), "[0]");
	assert_printed(json_ns(NAN), "[null]");
	assert_printed(json_ns(DBL_MAX), "[\"10000000000000000000\"]");
}

static void times_have_all_nanoseconds(void **state)
{
	assert_printed(
		json_time(UINT64_C(1700000000123456789)), "[\"2023-11-14T22:13:20.123456789Z\"]");
	assert_printed(json_time(1), "[\"1970-01-01T00:00:00.000000001Z\"]");
	assert_printed(json_time(UINT64_MAX), "[\"2554-07-21T23:34:33.709551615Z\"]");
	assert_printed(json_time(0), "[null]");
}

static void ports_threads_and_applications(void **state)
{
	assert_printed(json_port(7, "p7"), "[{\"index\":7,\"name\":\"p7\"}]");
	assert_printed(json_port(7, NULL), "[{\"index\":7,\"name\":null}]");
	assert_printed(json_thread(1, "rte-worker-1", 24772),
		"[{\"lcore\":1,\"name\":\"rte-worker-1\",\"tid\":24772}]");
	assert_printed(
		json_thread(UINT32_MAX, "", 0), "[{\"lcore\":null,\"name\":null,\"tid\":null}]");
	assert_printed(json_application("app", 4711, "dpdk-testpmd"),
		"[{\"name\":\"app\",\"pid\":4711,\"program\":\"dpdk-testpmd\"}]");
	assert_printed(json_application("app", 0, ""),
		"[{\"name\":\"app\",\"pid\":null,\"program\":null}]");
}

#define BEGIN                                                                              \
	"[{\"schema\":1,\"ringtap\":\"" RINGTAP_VERSION "\",\"command\":\"x y\",\"time\":" \
	"\"2023-11-14T22:13:20.000000000Z\",\"host\":\"host\",\"applications\":"

static void documents_begin_alike(void **state)
{
	test_now_set(1, UINT64_C(1700000000000000000));
	assert_printed(json_document("x y", NULL), BEGIN "[]}]");
	assert_printed(json_document("x y", json_object()), BEGIN "[{}]}]");
	assert_printed(json_document("x y", json_pack("[i,i]", 1, 2)), BEGIN "[1,2]}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_that_are_not_utf8_keep_what_is),
		cmocka_unit_test(numbers_survive_a_double),
		cmocka_unit_test(times_have_all_nanoseconds),
		cmocka_unit_test(ports_threads_and_applications),
		cmocka_unit_test(documents_begin_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
