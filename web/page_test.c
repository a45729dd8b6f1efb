/* SPDX-License-Identifier: BSD-3-Clause */
/* The document in a page: whatever a name is, it stays a string of JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "page.h"

static char *page;
static size_t length;

static int write_page(json_t *document)
{
	FILE *f = open_memstream(&page, &length);
	int ret;

	assert_non_null(f);
	ret = web_page_write(document, f);
	assert_int_equal(fclose(f), 0);
	return ret;
}

static int end(void **state)
{
	free(page);
	page = NULL;
	return 0;
}

/* The document as a browser reads it: up to the first end of a script behind its beginning. */
static json_t *document_of_page(void)
{
	static const char begin[] = "<script type=\"application/json\" id=\"document\">";
	char *from = strstr(page, begin), *to;
	json_t *j;

	assert_non_null(from);
	from += strlen(begin);
	to = strcasestr(from, "</script");
	assert_non_null(to);
	assert_null(memmem(from, (size_t)(to - from), "<", 1));
	j = json_loadb(from, (size_t)(to - from), 0, NULL);
	assert_non_null(j);
	return j;
}

static void a_document_is_in_the_page(void **state)
{
	json_t *j;

	assert_int_equal(write_page(json_pack("{s:i,s:s}", "view", VIEW_VERSION, "title", "x")), 0);
	assert_memory_equal(page, "<!DOCTYPE html>", 15);
	assert_string_equal(page + length - 8, "</html>\n");
	j = document_of_page();
	assert_int_equal(json_integer_value(json_object_get(j, "view")), VIEW_VERSION);
	json_decref(j);
}

static void hostile_names_stay_strings(void **state)
{
	static const char *const names[] = {"</script><script>alert(1)</script>", "<!--<script>",
		"</SCRIPT >", "<", "a<b<c", "\"'&\\\n\x01\x1f\x7f", "]]>"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		json_t *j;

		assert_int_equal(write_page(json_pack("{s:s}", "title", names[i])), 0);
		j = document_of_page();
		assert_string_equal(json_string_value(json_object_get(j, "title")), names[i]);
		json_decref(j);
		end(NULL);
	}
}

static void a_page_asks_for_nothing_else(void **state)
{
	assert_int_equal(write_page(json_object()), 0);
	assert_non_null(strstr(page, "content=\"default-src 'none'; script-src 'sha256-"));
	assert_null(strstr(page, " src="));
	assert_null(strstr(page, "@DOCUMENT@"));
}

static void a_full_disk_is_an_error(void **state)
{
	FILE *f = fopen("/dev/full", "w");

	assert_non_null(f);
	assert_int_equal(web_page_write(json_object(), f), -ENOSPC);
	fclose(f);
}

static void no_document_is_an_error(void **state)
{
	assert_true(write_page(NULL) < 0);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_document_is_in_the_page),
		CASE(hostile_names_stay_strings),
		CASE(a_page_asks_for_nothing_else),
		CASE(a_full_disk_is_an_error),
		CASE(no_document_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
