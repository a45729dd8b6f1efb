/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "base/json.h"
#include "base/out_file.h"
#include "base/util.h"
#include "cli/commands.h"
#include "report.h"
#include "system.h"

#define NAMES_MAX 64

struct bug_report_options {
	const char *names[NAMES_MAX + 1]; /* names or numbers of applications; none: all */
	size_t name_count;
	const char *duration, *path;
	bool json;
};

static const struct option_def options[] = {
	{OPTION_SET(1), OPTION_TIME, 0, "duration", "TIME", NULL, NS_PER_S, 3600 * NS_PER_S,
		"How long the doctor watches the applications, 1s to 1h (default: 2s)"},
	{OPTION_TO(struct bug_report_options, json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print JSON"},
	{OPTION_TO(struct bug_report_options, path), OPTION_FILE, 'w', "write", "FILE", NULL, 0, 0,
		"Write the report to FILE instead of to standard output"},
};

static int set(void *ctx, int id, const struct option_value *v)
{
	((struct bug_report_options *)ctx)->duration = v->text;
	return 0;
}

static int operand(void *ctx, const char *text)
{
	struct bug_report_options *c = ctx;

	if (c->name_count == NAMES_MAX) {
		message_print("bug-report: %s: more than %d applications; name fewer, or none for "
			      "all",
			text, NAMES_MAX);
		return -EINVAL;
	}
	c->names[c->name_count++] = text;
	return 0;
}

/* Output of a command about the applications; a problem is added to the report. */
static char *ask(const struct bug_report_options *c, struct bug_report *r, const char *const *words,
	size_t count)
{
	const char *all[NAMES_MAX + 8] = {NULL};
	char problem[ASK_PROBLEM], *text;

	for (size_t i = 0; i < count; i++)
		all[i] = words[i];
	for (size_t i = 0; i < c->name_count && count > 1; i++)
		all[count + i] = c->names[i];
	text = bug_report_ask(all, problem);
	if (*problem)
		json_array_append_new(r->problems, json_text(text_one_line(problem)));
	return text;
}

static json_t *ask_json(const struct bug_report_options *c, struct bug_report *r,
	const char *const *words, size_t count)
{
	char *text = ask(c, r, words, count);
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	return j;
}

static bool any_probe(const json_t *list)
{
	json_t *app;
	size_t i;

	json_array_foreach(json_object_get(list, "applications"), i,
		app) if (json_is_string(json_object_get(app, "probe"))) return true;
	return false;
}

static json_t *collect(const struct bug_report_options *c)
{
	const char *const versions[] = {"--version"}, *const list[] = {"list", "--json"};
	/* Packets that it followed would be in the report. */
	const char *const doctor[] = {
		"doctor", "--json", "--no-packets", "--duration", c->duration};
	struct bug_report r = {
		.system = system_json(), .problems = json_array(), .asked = c->names};
	char *text = ask(c, &r, versions, 1);
	json_t *j;

	r.versions = text;
	r.list = ask_json(c, &r, list, 2);
	if (any_probe(r.list))
		r.doctor = ask_json(c, &r, doctor, 5);
	j = bug_report_json(&r);
	free(text);
	json_decref(r.list);
	json_decref(r.doctor);
	json_decref(r.problems);
	return j;
}

static int write_report(json_t *j, bool json, FILE *f)
{
	if (json)
		return json_print(j, f);
	bug_report_print(f, j);
	json_decref(j);
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct bug_report_options c = {.duration = "2s"};
	int ret = options_parse(self, argc, argv, &c);
	struct out_file file;
	json_t *j;

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (out_file_open(&file, "bug-report", c.path))
		return STATUS_FAILED;
	j = collect(&c);
	if (!j)
		message_print("bug-report: not enough memory");
	ret = j ? write_report(j, c.json, c.path ? file.f : stdout) : -ENOMEM;
	if (!c.path)
		return output_end("bug-report", ret);
	return out_file_close(&file, "bug-report", ret) ? STATUS_FAILED : STATUS_OK;
}

const struct command cmd_bug_report = {
	.name = "bug-report",
	.summary = "write what a bug report needs, without names and addresses",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP]...",
	.listed = LIST_APPS,
	.operand = operand,
	.set = set,
	.run = run,
};
