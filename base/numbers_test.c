/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "numbers.h"

struct row {
	const char *text;
	int ret;
	uint64_t n;
};

#define DAY (86400 * NS_PER_S)

static const struct row times[] = {
	{"0", 0, 0},
	{"0s", 0, 0},
	{"0.0ms", 0, 0},
	{"1ns", 0, 1},
	{"2us", 0, 2000},
	{"2\u00b5s", 0, 2000},
	{"2\u03bcs", 0, 2000},
	{"1.5ms", 0, 1500000},
	{"0.25s", 0, 250000000},
	{"10s", 0, 10 * NS_PER_S},
	{"2m", 0, 120 * NS_PER_S},
	{"2min", 0, 120 * NS_PER_S},
	{"1.5h", 0, 5400 * NS_PER_S},
	{"0.000000001d", 0, 86400},
	{"0.3333333333s", 0, 333333333},
	{"36500d", 0, 36500 * DAY},
	{"36501d", -ERANGE, 0},
	{"9000000000h", -ERANGE, 0},
	{"99999999999999999999s", -ERANGE, 0},
	{"5", -ENODATA, 0},
	{"0.5", -ENODATA, 0},
	{"99999999999999999999", -ENODATA, 0},
	{"0.1ns", -EINVAL, 0},
	{"", -EINVAL, 0},
	{"s", -EINVAL, 0},
	{"1.", -EINVAL, 0},
	{".5s", -EINVAL, 0},
	{"1 s", -EINVAL, 0},
	{" 1s", -EINVAL, 0},
	{"1s ", -EINVAL, 0},
	{"-1s", -EINVAL, 0},
	{"+1s", -EINVAL, 0},
	{"3x", -EINVAL, 0},
	{"1S", -EINVAL, 0},
	{"1e3s", -EINVAL, 0},
	{"0x1s", -EINVAL, 0},
	{"1sec", -EINVAL, 0},
};

static const struct row sizes[] = {
	{"0", 0, 0},
	{"7B", 0, 7},
	{"64K", 0, 65536},
	{"64k", 0, 65536},
	{"3g", 0, UINT64_C(3) << 30},
	{"1.5G", 0, UINT64_C(3) << 29},
	{"2KiB", 0, 2048},
	{"100MB", 0, 100000000},
	{"1kB", 0, 1000},
	{"1TB", 0, UINT64_C(1000000000000)},
	{"2T", 0, UINT64_C(2) << 40},
	{"16777215T", 0, UINT64_C(16777215) << 40},
	{"17179869184G", -ERANGE, 0},
	{"64", -ENODATA, 0},
	{"0.3B", -EINVAL, 0},
	{"1KBx", -EINVAL, 0},
	{"1KB", -EINVAL, 0},
	{"1iB", -EINVAL, 0},
	{"64kb", -EINVAL, 0},
	{"K", -EINVAL, 0},
	{"-1", -EINVAL, 0},
	{"5s", -EINVAL, 0},
};

static const struct row counts[] = {
	{"0", 0, 0},
	{"12", 0, 12},
	{"10k", 0, 10000},
	{"14.880952M", 0, 14880952},
	{"2G", 0, 2000000000},
	{"18446744073709551615", 0, UINT64_MAX},
	{"18446744073709551616", -ERANGE, 0},
	{"18446744073709552k", -ERANGE, 0},
	{"1.5", -EINVAL, 0},
	{"1.0005k", -EINVAL, 0},
	{"10K", -EINVAL, 0},
	{"10m", -EINVAL, 0},
	{"1kk", -EINVAL, 0},
	{"k", -EINVAL, 0},
	{"", -EINVAL, 0},
	{"-1", -EINVAL, 0},
};

static int size_with_a_unit(const char *text, uint64_t *n)
{
	return parse_size(text, 0, n);
}

static int time_with_a_unit(const char *text, uint64_t *n)
{
	return parse_time(text, 0, n);
}

static void check(const struct row *rows, size_t count, int (*parse)(const char *text, uint64_t *n))
{
	for (const struct row *r = rows; r < rows + count; r++) {
		uint64_t n = 0;
		int ret = parse(r->text, &n);

		if (ret != r->ret || (!ret && n != r->n))
			fail_msg("'%s': %d, %llu", r->text, ret, (unsigned long long)n);
	}
}

#define READ(name, parse)                                           \
	static void name##_are_read(void **state)                   \
	{                                                           \
		(void)state;                                        \
		check(name, sizeof(name) / sizeof(name[0]), parse); \
	}
READ(times, time_with_a_unit)
READ(sizes, size_with_a_unit)
READ(counts, parse_count)

static void a_number_may_have_a_unit_of_its_own(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(parse_time("10", NS_PER_S, &n), 0);
	assert_int_equal(n, 10 * NS_PER_S);
	assert_int_equal(parse_time("10ms", NS_PER_S, &n), 0);
	assert_int_equal(n, 10000000);
	assert_int_equal(parse_time("99999999999999999999", NS_PER_S, &n), -ERANGE);
	assert_int_equal(parse_size("64", 1, &n), 0);
	assert_int_equal(n, 64);
	assert_int_equal(parse_size("64", 1000, &n), 0);
	assert_int_equal(n, 64000);
	assert_int_equal(parse_number(" 1", 10, &n), -EINVAL);
	assert_int_equal(parse_number("11", 10, &n), -ERANGE);
}

/* A number that is printed is parsed as the same number. */
static void limits_are_written_as_they_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t n;
	} written[] = {{"0", 0}, {"1ns", 1}, {"1500us", 1500000}, {"100ms", 100000000},
		{"90s", 90 * NS_PER_S}, {"2min", 120 * NS_PER_S}, {"1h", 3600 * NS_PER_S},
		{"36500d", TIME_MAX}};
	char buf[FORMAT_LEN];
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
		assert_string_equal(write_time(buf, written[i].n), written[i].text);
		assert_int_equal(parse_time(buf, 0, &n), 0);
		assert_int_equal(n, written[i].n);
	}
	assert_string_equal(write_size(buf, 65537), "65537B");
	assert_string_equal(write_size(buf, 256 << 20), "256M");
	assert_string_equal(write_size(buf, UINT64_C(64) << 30), "64G");
	assert_string_equal(write_size(buf, UINT64_C(1) << 60), "1048576T");
}

static void counts_have_commas(void **state)
{
	char buf[FORMAT_LEN];

	assert_string_equal(format_count(buf, 0), "0");
	assert_string_equal(format_count(buf, 999), "999");
	assert_string_equal(format_count(buf, 1000), "1,000");
	assert_string_equal(format_count(buf, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void numbers_have_three_digits_and_a_prefix(void **state)
{
	char buf[FORMAT_LEN];

	assert_string_equal(format_si(buf, 0), "0");
	assert_string_equal(format_si(buf, 999.4), "999");
	assert_string_equal(format_si(buf, 999.5), "1 k");
	assert_string_equal(format_si(buf, 99.94e6), "99.9 M");
	assert_string_equal(format_si(buf, 99.96e6), "100 M");
	assert_string_equal(format_si(buf, 5e15), "5000 T");
	assert_string_equal(format_bytes(buf, 0), "0 B");
	assert_string_equal(format_bytes(buf, 1023), "1023 B");
	assert_string_equal(format_bytes(buf, 1024), "1 KiB");
	assert_string_equal(format_bytes(buf, 64 << 20), "64 MiB");
	assert_string_equal(format_bytes(buf, 3 << 29), "1.5 GiB");
	assert_string_equal(format_bytes(buf, 1.1e18), "1000444 TiB");
	assert_string_equal(format_ns(buf, 0), "0 ns");
	assert_string_equal(format_ns(buf, -1234), "-1.23 us");
	assert_string_equal(format_ns(buf, 36.2e6), "36.2 ms");
	assert_string_equal(format_ns(buf, 999.6), "1 us");
	assert_string_equal(format_ns(buf, 331), "331 ns");
	assert_string_equal(format_ns(buf, 12345), "12.3 us");
	assert_string_equal(format_ns(buf, 5e12), "5000 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(counts_are_read),
		cmocka_unit_test(a_number_may_have_a_unit_of_its_own),
		cmocka_unit_test(limits_are_written_as_they_are_read),
		cmocka_unit_test(counts_have_commas),
		cmocka_unit_test(numbers_have_three_digits_and_a_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
