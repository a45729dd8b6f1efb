/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "controls.h"
#include "test_util.h"

#define OUT "controls-test-output"

static void check(const char *text, const char *shown)
{
	char all[128], parts[128];
	struct controls c = {0};

	strcpy(all, text);
	controls_replace(&c, all, strlen(all));
	assert_string_equal(all, shown);
	/* Byte by byte: of a C1 character in UTF-8 only the second one can be replaced. */
	c = (struct controls){0};
	strcpy(parts, text);
	for (size_t i = 0; parts[i]; i++)
		controls_replace(&c, parts + i, 1);
	for (size_t i = 0; parts[i]; i++)
		assert_true(parts[i] == shown[i] || (parts[i] == '\xc2' && shown[i] == '?'));
}

static void controls_become_question_marks(void **state)
{
	check("plain\ttext\n", "plain\ttext\n");
	check("\x1b]0;owned\x07", "?]0;owned?");
	check("a\rb\bc\x7f", "a?b?c?");
	check("\x9b"
	      "31m",
		"?31m");
	check("\xc2\x9b"
	      "31m",
		"??31m");
	check("ä – … \u00a0 \U0001f600", "ä – … \u00a0 \U0001f600");
	check("\xe2\x80\x93\x9b", "\xe2\x80\x93?");
	check("\xe2\x1b\x93", "\xe2??");
}

static void standard_output_is_guarded(void **state)
{
	int out = dup(STDOUT_FILENO), fd = open(OUT, O_RDWR | O_CREAT | O_TRUNC, 0600);
	FILE *before = stdout;
	uint8_t *data;
	size_t len;

	fflush(stdout);
	assert_true(dup2(fd, STDOUT_FILENO) >= 0);
	controls_guard_stdout();
	assert_ptr_equal(controls_terminal(), before);
	printf("\x1b[31m%8000s–\n", "\x1b");
	fflush(stdout);
	assert_int_equal(ferror(stdout), 0);
	fclose(stdout);
	stdout = before;
	dup2(out, STDOUT_FILENO);
	close(out);
	close(fd);
	data = test_read(OUT, &len);
	unlink(OUT);
	assert_int_equal(len, 5 + 8000 + 4);
	assert_memory_equal(data, "?[31m ", 6);
	assert_memory_equal(data + len - 5, "?–\n", 5);
	free(data);
}

static void errors_of_standard_output_are_reported(void **state)
{
	int out = dup(STDOUT_FILENO), fd = open("/dev/full", O_WRONLY);
	FILE *before = stdout;
	int ret;

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	controls_guard_stdout();
	printf("text");
	ret = fflush(stdout);
	fclose(stdout);
	stdout = before;
	dup2(out, STDOUT_FILENO);
	close(out);
	close(fd);
	assert_int_equal(ret, EOF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(controls_become_question_marks),
		cmocka_unit_test(standard_output_is_guarded),
		cmocka_unit_test(errors_of_standard_output_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
