/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "base/json.h"

#define WIDTH 80

/* With line breaks, behind an indent. */
static void print_wrapped(const char *lead, const char *text)
{
	int indent = (int)strlen(lead), column = indent;

	fputs(lead, stdout);
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > indent && column + 1 + len > WIDTH) {
			printf("\n%*s", indent, "");
			column = indent;
		}
		column += printf("%s%.*s", column > indent ? " " : "", len, text);
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_verdict(const struct verdict *v)
{
	printf("  %s: %s%s%s\n", grade_names[v->grade], verdict_titles[v->id],
		*v->where ? ": " : "", v->where);
	for (unsigned i = 0; i < v->evidence_count; i++)
		print_wrapped("    - ", v->evidence[i]);
	if (v->grade != GRADE_OK)
		print_wrapped("    next: ", v->advice);
}

void doctor_print(const struct examination *e, const struct diagnosis *d)
{
	char name[64];

	printf("%s, watched for %.1f s:\n", printable(name, sizeof(name), e->app->name),
		e->span.seconds);
	for (unsigned i = 0; i < d->count; i++)
		print_verdict(&d->verdict[i]);
}

static json_t *verdict_json(const struct verdict *v)
{
	json_t *j = json_object(), *evidence = json_array();

	json_object_set_new(j, "verdict", json_text(verdict_names[v->id]));
	json_object_set_new(j, "grade", json_text(grade_names[v->grade]));
	json_object_set_new(j, "title", json_text(verdict_titles[v->id]));
	json_object_set_new(j, "where", *v->where ? json_text(v->where) : json_null());
	for (unsigned i = 0; i < v->evidence_count; i++)
		json_array_append_new(evidence, json_text(v->evidence[i]));
	json_object_set_new(j, "evidence", evidence);
	json_object_set_new(j, "advice", json_text(v->advice));
	return j;
}

json_t *doctor_json(const struct examination *e, const struct diagnosis *d)
{
	json_t *j = json_object(), *verdicts = json_array();

	json_object_set_new(j, "name", json_text(e->app->name));
	json_object_set_new(j, "pid", json_count(e->app->info.pid));
	json_object_set_new(j, "duration_s", json_real(e->span.seconds));
	for (unsigned i = 0; i < d->count; i++)
		json_array_append_new(verdicts, verdict_json(&d->verdict[i]));
	json_object_set_new(j, "verdicts", verdicts);
	return j;
}
