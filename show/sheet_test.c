/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of texts: their width, sides, notes and histograms. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "sheet.h"

static void assert_printed(struct sheet *s, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(sheet_end(s, 0, f), 0);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_texts_are_left_and_numbers_right(void **state)
{
	struct sheet s = {.title = "By flow",
		.heads = {"flow", "packets", "example"},
		.columns = 3,
		.wide = true};

	sheet_add(&s, "äöü", "1,234", "one", NULL);
	sheet_add(&s, "a", "7", NULL);
	s.more = 1000;
	assert_printed(&s, "\nBy flow\n"
			   "  flow  packets  example\n"
			   "  äöü     1,234  one\n"
			   "  a           7\n"
			   "  and 1,000 more\n");
}

static void test_nothing_without_rows(void **state)
{
	struct sheet s = {.title = "none", .heads = {"x"}, .columns = 1};

	assert_printed(&s, "");
}

static void test_texts_without_room_are_folded(void **state)
{
	struct sheet s = {.heads = {"name", "n"}, .columns = 2, .width = 20};

	sheet_add(&s, "some words do not fit", "5", NULL);
	sheet_add(&s, "incomprehensibilities", "6", NULL);
	assert_printed(&s, "  name             n\n"
			   "  some words do    5\n"
			   "  not fit\n"
			   "  incomprehensibi  6\n"
			   "  lities\n");
}

static void test_names_without_room_are_shortened(void **state)
{
	struct sheet s = {.heads = {"n", "name", "up"},
		.columns = 3,
		.numbers = true,
		.left = 1 << 1,
		.cut = 1 << 1,
		.width = 20,
		.dense = true};

	sheet_add(&s, "12", "net_null_representor_17", "no", NULL);
	sheet_add(&s, "1", "ö", "yes", NULL);
	assert_printed(&s, " n name           up\n"
			   "12 net_nu…tor_17  no\n"
			   " 1 ö             yes\n");
}

static void assert_flow_printed(unsigned width, const char *expected)
{
	struct sheet s = {.heads = {"flow", "rate", "all", "way"},
		.columns = 4,
		.cut = 1,
		.spare = 1 << 2 | 1 << 3,
		.width = width};

	sheet_add(&s, "10.0.0.1 > 10.0.0.2", "1 k", "12 M", "0 > 1", NULL);
	assert_printed(&s, expected);
}

static void test_spare_columns_without_room_are_left_out(void **state)
{
	assert_flow_printed(40, "  flow                 rate   all    way\n"
				"  10.0.0.1 > 10.0.0.2   1 k  12 M  0 > 1\n");
	assert_flow_printed(39, "  flow                 rate   all\n"
				"  10.0.0.1 > 10.0.0.2   1 k  12 M\n"
				"  without room: way\n");
	assert_flow_printed(26, "  flow                rate\n"
				"  10.0.0.1… 10.0.0.2   1 k\n"
				"  without room: all, way\n");
}

static void test_notes_are_below_their_rows(void **state)
{
	struct sheet s = {.heads = {"pool", "size"}, .columns = 2};

	sheet_note(&s, "of no row");
	sheet_add(&s, "a", "1", NULL);
	sheet_note(&s, "huge %s", "pages");
	sheet_note(&s, "two");
	sheet_add(&s, "b", "2", NULL);
	sheet_add(&s, "c", "3", NULL);
	sheet_note(&s, "last");
	assert_printed(&s, "  pool  size\n"
			   "  a        1\n"
			   "    huge pages\n"
			   "    two\n"
			   "  b        2\n"
			   "  c        3\n"
			   "    last\n");
}

/* Names come from other processes. */
static void test_control_characters_are_not_printed(void **state)
{
	struct sheet s = {.heads = {"name"}, .columns = 1};

	sheet_add(&s, "a\x1b[31m\xff", NULL);
	assert_printed(&s, "  name\n  a\\x1b[31m\\xff\n");
}

static void test_histograms(void **state)
{
	struct sheet s = sheet_histogram("ns");

	sheet_add_bar(&s, "1", "9", 999, 1000, 999, 1);
	sheet_add_bar(&s, "1,000", NULL, 1, 1000, 999, 1);
	assert_printed(&s, "       ns     packets\n"
			   "      1 -  9      999  99.9 %  ########################\n"
			   "  1,000             1   0.1 %  .\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts_are_left_and_numbers_right),
		cmocka_unit_test(test_nothing_without_rows),
		cmocka_unit_test(test_texts_without_room_are_folded),
		cmocka_unit_test(test_names_without_room_are_shortened),
		cmocka_unit_test(test_spare_columns_without_room_are_left_out),
		cmocka_unit_test(test_notes_are_below_their_rows),
		cmocka_unit_test(test_control_characters_are_not_printed),
		cmocka_unit_test(test_histograms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
