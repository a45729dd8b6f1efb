/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nearest.h"

#define OTHERWISE "see the list"

static const char *advice(const char *word, const char *names)
{
	static struct nearest n;

	nearest_begin(&n, word, strlen(word));
	nearest_offer_all(&n, names);
	return nearest_advice(&n, OTHERWISE);
}

struct near_case {
	const char *word, *names, *best;
};

/* clang-format off: one line, one case */
static const struct near_case near[] = {
	{"etxract", "list|extract|run", "extract"},  /* two letters swapped */
	{"fltr_ab", "rnng_ab|fltra_ab", "fltra_ab"}, /* one left out */
	{"exxtract", "list|extract|run", "extract"}, /* one too many */
	{"axtract", "list|extract|run", "extract"},  /* a wrong one */
	{"RX", "rx|tx|both", "rx"},                  /* case */
	{"Both", "rx|tx|both", "both"}, {"directoin", "direction|duration", "direction"},
	{"dir", "duration|direction", "direction"}, /* a beginning */
	{"li", "list|light", "list"},               /* the first of two beginnings */
	{"lst", "last|list", "last"},               /* the first of two at one distance */
	{"tpo", "tmp|top", "top"},                  /* swapped is one change, not two */
	{"top", "tops|top", "top"},                 /* the same word is nearer than its beginning */
	{"abcdefghi", "abcdefxyz", "abcdefxyz"},    /* three of nine are wrong */
};

static const struct near_case far[] = {
	{"moon", "rx|tx|both", NULL},
	{"xy", "rx|tx", NULL},            /* one letter of two */
	{"rxx", "tx|", NULL},             /* two of three; and no name is not near */
	{"abcdefghi", "abcdewxyz", NULL}, /* four of nine */
	{"", "a|ab", NULL},
	{"a", "ab", NULL}, /* the beginning of too many */
	{"x", "", NULL},
};
/* clang-format on */

static void near_words(void **state)
{
	char expected[128] = "";

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		strcat(strcat(strcpy(expected, "did you mean '"), near[i].best), "'?");
		assert_string_equal(advice(near[i].word, near[i].names), expected);
	}
}

static void words_that_are_near_to_nothing(void **state)
{
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
		assert_string_equal(advice(far[i].word, far[i].names), OTHERWISE);
}

/* The key of KEY:VALUE. */
static void only_a_part_of_the_word_counts(void **state)
{
	struct nearest n;

	nearest_begin(&n, "duratoin:10", strlen("duratoin"));
	nearest_offer_all(&n, "files|duration");
	assert_string_equal(nearest_advice(&n, OTHERWISE), "did you mean 'duration'?");
}

/* The longest that are compared, and one more. */
static void long_words(void **state)
{
	char word[NEAREST_LEN + 1], name[NEAREST_LEN + 1];

	memset(word, 'a', sizeof(word));
	memset(name, 'a', sizeof(name));
	name[0] = 'b';
	word[NEAREST_LEN - 1] = name[NEAREST_LEN - 1] = '\0';
	assert_string_not_equal(advice(word, name), OTHERWISE);
	word[NEAREST_LEN - 1] = 'a';
	word[NEAREST_LEN] = '\0';
	assert_string_equal(advice(word, name), OTHERWISE);
	assert_string_equal(advice(name, word), OTHERWISE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_words),
		cmocka_unit_test(words_that_are_near_to_nothing),
		cmocka_unit_test(only_a_part_of_the_word_counts),
		cmocka_unit_test(long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
