/* SPDX-License-Identifier: BSD-3-Clause */
#include "test_command.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test_util.h"

#define ARGS_MAX 128

static int saved[2], memory[2];

void test_output_begin(void)
{
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		saved[i] = dup(1 + i);
		memory[i] = memfd_create("output", MFD_CLOEXEC);
		assert_true(saved[i] >= 0 && memory[i] >= 0);
		assert_int_equal(dup2(memory[i], 1 + i), 1 + i);
	}
}

static char *content(int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)len + 1);

	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)len, 0), len);
	return text;
}

void test_output_end(struct test_output *o)
{
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		*(i ? &o->err : &o->out) = content(memory[i]);
		dup2(saved[i], 1 + i);
		close(saved[i]);
		close(memory[i]);
	}
}

void test_output_free(struct test_output *o)
{
	free(o->out);
	free(o->err);
}

struct test_output test_command(const struct command *c, const char *args)
{
	char *copy = strdup(args), *rest = copy, *word;
	char *argv[ARGS_MAX + 1] = {(char *)c->name};
	struct test_output o;
	int argc = 1;

	while (*args && (word = strsep(&rest, "|"))) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	test_output_begin();
	o.status = c->run(c, argc, argv);
	test_output_end(&o);
	free(copy);
	return o;
}

struct refused {
	const struct command *command;
	const struct test_refusal *row;
};

static unsigned files_here(void)
{
	DIR *d = opendir(".");
	unsigned n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void test_refused(void **state)
{
	const struct refused *r = *state;
	struct test_output o = test_command(r->command, r->row->args);

	if (o.status != r->row->status || !strstr(o.err, r->row->says))
		fail_msg("status %d: %s", o.status, o.err);
	assert_string_equal(o.out, "");
	assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
	assert_int_equal(files_here(), 0);
	test_output_free(&o);
}

static int enter(void **state)
{
	test_folder_enter();
	return 0;
}

static int leave(void **state)
{
	test_folder_leave();
	return 0;
}

int test_refusals(const struct command *c, const struct test_refusal *rows, size_t count)
{
	struct CMUnitTest *tests = calloc(count, sizeof(*tests));
	struct refused *refused = calloc(count, sizeof(*refused));
	int failed;

	for (size_t i = 0; i < count; i++) {
		refused[i] = (struct refused){c, &rows[i]};
		tests[i] =
			(struct CMUnitTest){.name = *rows[i].args ? rows[i].args : "no arguments",
				.test_func = test_refused,
				.initial_state = &refused[i]};
	}
	/* Not cmocka_run_group_tests(): it takes the size of an array. */
	failed = _cmocka_run_group_tests("refusals", tests, count, enter, leave);
	free(refused);
	free(tests);
	return failed;
}

/* ---- golden files */

void test_golden_text(const char *folder, const char *file, const char *text)
{
	const char *mode = getenv("RINGTAP_GOLDEN");
	char path[512], *golden;
	uint8_t *data;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (mode && !strcmp(mode, "write"))
		test_write(path, text, strlen(text));
	data = test_read(path, &len);
	golden = (char *)data;
	golden[len] = '\0';
	if (strcmp(golden, text))
		fail_msg("not as in %s:\n%s", path, text);
	free(data);
}

struct golden {
	const struct command *command;
	const char *folder;
	const struct test_golden *row;
	int (*begin)(void **state), (*end)(void **state);
};

static void test_one_golden(void **state)
{
	const struct golden *g = *state;
	struct test_output o;

	assert_int_equal(g->begin(NULL), 0);
	if (g->row->prepare)
		g->row->prepare();
	o = test_command(g->command, g->row->args);
	if (o.status != g->row->status)
		fail_msg("status %d: %s", o.status, o.err);
	test_golden_text(g->folder, g->row->file, o.out);
	test_output_free(&o);
	assert_int_equal(g->end(NULL), 0);
}

int test_goldens(const struct command *c, const char *folder, const struct test_golden *rows,
	size_t count, int (*begin)(void **state), int (*end)(void **state))
{
	struct CMUnitTest *tests = calloc(count, sizeof(*tests));
	struct golden *goldens = calloc(count, sizeof(*goldens));
	int failed;

	for (size_t i = 0; i < count; i++) {
		goldens[i] = (struct golden){c, folder, &rows[i], begin, end};
		tests[i] = (struct CMUnitTest){.name = rows[i].file,
			.test_func = test_one_golden,
			.initial_state = &goldens[i]};
	}
	failed = _cmocka_run_group_tests("goldens", tests, count, NULL, NULL);
	free(goldens);
	free(tests);
	return failed;
}
