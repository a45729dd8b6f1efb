/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util.h"

static void names_are_shortened_in_their_middle(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
		const char *shown;
	} cases[] = {
		{"net_ring0", 9, "net_ring0"},
		{"net_ring0", 8, "net…ing0"},
		{"0000:03:00.0", 3, "0…0"},
		{"äöüßäöüß", 8, "äöüßäöüß"},
		{"äöüßäöüß", 5, "äö…üß"},
		{"", 5, ""},
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_ptr_equal(
			text_shorten(buf, sizeof(buf), cases[i].text, cases[i].columns), buf);
		assert_string_equal(buf, cases[i].shown);
		assert_true(text_columns(buf) <= cases[i].columns);
	}
}

/* "Resource temporarily unavailable" alone helps nobody. */
static void errors_have_remedies(void **state)
{
	assert_string_equal(start_error(-EAGAIN),
		"the limit of processes is reached (ulimit -u, pids.max); raise it");
	assert_string_equal(start_error(-EXDEV), strerror(EXDEV));
	assert_string_equal(write_advice(-ENOSPC), "; free some space, or choose another disk");
	assert_string_equal(write_advice(-EXDEV), "");
}

static void texts_are_folded_at_blanks(void **state)
{
	static const struct {
		const char *text;
		size_t width;
		const char *folded;
	} cases[] = {
		{"", 3, ""},
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "äöü\nß"},
		{"one two", 3, "one\ntwo"},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 6, "one\ntwo\nthree"},
		{"a bcdefgh", 4, "a\nbcde\nfgh"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *folded = text_fold(cases[i].text, cases[i].width);

		assert_string_equal(folded, cases[i].folded);
		free(folded);
	}
}

static void assert_wrapped(int column, int indent, const char *text, const char *shown)
{
	char *data = NULL;
	size_t len;
	FILE *f = open_memstream(&data, &len);

	text_wrap(f, column, indent, text);
	fclose(f);
	assert_string_equal(data, shown);
	free(data);
}

static void texts_are_broken_at_blanks(void **state)
{
	char word[100] = "", text[300], shown[300];

	assert_wrapped(0, 2, "a b", "a b\n");
	assert_wrapped(0, 2, "  - a  b ", "  - a  b\n");
	assert_wrapped(0, 2, "", "\n");
	/* 80 columns are filled; characters count, not bytes. */
	memset(word, 'x', 78);
	snprintf(text, sizeof(text), "%s ä b", word);
	snprintf(shown, sizeof(shown), "%s ä\n  b\n", word);
	assert_wrapped(0, 2, text, shown);
	snprintf(shown, sizeof(shown), "%s\n  ä b\n", word);
	assert_wrapped(1, 2, text, shown);
	/* A number and its unit stay together, a number and a word do not. */
	memset(word, 'x', 75);
	word[75] = '\0';
	snprintf(text, sizeof(text), "%s 9.91 s; b", word);
	snprintf(shown, sizeof(shown), "%s\n  9.91 s; b\n", word);
	assert_wrapped(0, 2, text, shown);
	snprintf(text, sizeof(text), "%s 9.91 seconds", word);
	snprintf(shown, sizeof(shown), "%s 9.91\n  seconds\n", word);
	assert_wrapped(0, 2, text, shown);
	/* A word longer than a line has a line of its own. */
	memset(word, 'x', 90);
	snprintf(text, sizeof(text), "a %s b", word);
	snprintf(shown, sizeof(shown), "a\n    %s\n    b\n", word);
	assert_wrapped(0, 4, text, shown);
}

static void lists_are_cut_where_they_end(void **state)
{
	char list[8] = "";

	text_list_add(list, sizeof(list), "a");
	assert_string_equal(list, "a");
	text_list_add(list, sizeof(list), "b");
	assert_string_equal(list, "a, b");
	text_list_add(list, sizeof(list), "long");
	assert_string_equal(list, "a, b, l");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_shortened_in_their_middle),
		cmocka_unit_test(errors_have_remedies),
		cmocka_unit_test(texts_are_folded_at_blanks),
		cmocka_unit_test(texts_are_broken_at_blanks),
		cmocka_unit_test(lists_are_cut_where_they_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
