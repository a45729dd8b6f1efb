/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens, and where a request comes from. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "token.h"

static const char file[] = "token";

static int begin(void **state)
{
	test_folder_enter();
	return 0;
}

static int end(void **state)
{
	test_folder_leave();
	return 0;
}

static void write_file(const char *text, mode_t mode)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(file, mode), 0);
}

static void two_tokens_are_different(void **state)
{
	struct token a = {0}, b = {0};

	assert_int_equal(token_make(&a, NULL), 0);
	assert_int_equal(token_make(&b, NULL), 0);
	assert_int_equal(strlen(a.text), 48);
	assert_string_not_equal(a.text, b.text);
}

static void a_file_is_made_for_its_owner_only(void **state)
{
	struct token a = {0}, b = {0};
	struct stat st;

	assert_int_equal(token_make(&a, file), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(token_make(&b, file), 0);
	assert_string_equal(a.text, b.text);
}

static void files_that_are_refused(void **state)
{
	static const struct {
		const char *text;
		mode_t mode;
		int ret;
	} rows[] = {{"0123456789abcdef\n", 0644, -EACCES}, {"0123456789abcdef\n", 0640, -EACCES},
		{"0123456789abcde\n", 0600, -EINVAL}, {"", 0600, -EINVAL},
		{"0123456789abcdef;x\n", 0600, -EINVAL}, {"0123456789abcdef\r\n", 0600, -EINVAL},
		{"0123456789abcdef", 0600, 0}, {"0123456789abcdef\nmore", 0400, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct token t = {0};

		write_file(rows[i].text, rows[i].mode);
		assert_int_equal(token_make(&t, file), rows[i].ret);
		assert_string_equal(t.text, rows[i].ret ? "" : "0123456789abcdef");
	}
}

static void a_file_of_another_user_is_refused(void **state)
{
	struct token t = {0};

	if (geteuid())
		skip();
	write_file("0123456789abcdef\n", 0600);
	assert_int_equal(chown(file, 1, (gid_t)-1), 0);
	assert_int_equal(token_make(&t, file), -EPERM);
	assert_string_equal(t.text, "");
}

/* As on a full disk. */
static void a_file_that_cannot_be_written_is_removed(void **state)
{
	struct rlimit old, none;
	struct token t = {0};
	int ret;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	ret = token_make(&t, file);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(ret, -EFBIG);
	assert_int_equal(access(file, F_OK), -1);
}

static void a_long_token_is_refused(void **state)
{
	char text[TOKEN_MAX + 2];
	struct token t = {0};

	memset(text, 'a', sizeof(text));
	text[TOKEN_MAX + 1] = '\0';
	write_file(text, 0600);
	assert_int_equal(token_make(&t, file), -EINVAL);
	text[TOKEN_MAX] = '\0';
	write_file(text, 0600);
	assert_int_equal(token_make(&t, file), 0);
}

static void only_the_token_is_the_token(void **state)
{
	static const char *const others[] = {NULL, "", "0", "0123456789abcde", "0123456789abcdeg",
		"0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdef0123456789abcdef"};
	struct token t = {.text = "0123456789abcdef"}, none = {0};

	assert_true(token_is(&t, "0123456789abcdef"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(token_is(&t, others[i]));
	assert_false(token_is(&none, ""));
	assert_false(token_is(&none, NULL));
}

static void origins(void **state)
{
	static const struct {
		const char *origin, *host;
		bool cookie, same;
	} rows[] = {
		{"http://127.0.0.1:9475", "127.0.0.1:9475", true, true},
		{"http://localhost:8000", "localhost:8000", true, true},
		{"http://Localhost:8000", "localhost:8000", true, true},
		{"http://[::1]:9475", "[::1]:9475", true, true},
		{"http://127.0.0.1:9475", "127.0.0.1:9475", false, true},
		{"http://127.0.0.1", "127.0.0.1:9475", true, false},
		{"http://127.0.0.1:9476", "127.0.0.1:9475", true, false},
		{"http://127.0.0.1:9475.evil.example", "127.0.0.1:9475", true, false},
		{"https://host.example", "host.example", true, true},
		{"https://host.example:9475", "host.example", true, false},
		{"https://evil.example", "host.example", true, false},
		{"ftp://host.example", "host.example", true, false},
		{"http://evil.example", "127.0.0.1:9475", true, false},
		{"http://evil.example", "127.0.0.1:9475", false, false},
		{"null", "127.0.0.1:9475", true, false},
		{"", "", true, false},
		{"http://127.0.0.1:9475", NULL, true, false},
		{NULL, "127.0.0.1:9475", true, false},
		{NULL, "127.0.0.1:9475", false, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (token_same_origin(rows[i].origin, rows[i].host, rows[i].cookie) != rows[i].same)
			fail_msg("%s of %s", rows[i].origin, rows[i].host);
}

static void the_cookie_is_for_this_server_only(void **state)
{
	struct token t = {.text = "0123456789abcdef"};
	char text[128];

	token_set_port(&t, 9475);
	token_header(&t, text, sizeof(text));
	assert_string_equal(
		text, "ringtap-9475=0123456789abcdef; HttpOnly; SameSite=Strict; Path=/");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(two_tokens_are_different),
		CASE(a_file_is_made_for_its_owner_only),
		CASE(files_that_are_refused),
		CASE(a_file_of_another_user_is_refused),
		CASE(a_file_that_cannot_be_written_is_removed),
		CASE(a_long_token_is_refused),
		CASE(only_the_token_is_the_token),
		CASE(origins),
		CASE(the_cookie_is_for_this_server_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
