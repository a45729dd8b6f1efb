/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/json.h"
#include "examination.h"

static void print_verdict(FILE *f, const struct verdict *v)
{
	text_wrapf(f, 4, "  %s: %s%s%s", grade_names[v->grade], verdict_titles[v->id],
		*v->where ? ": " : "", v->where);
	for (unsigned i = 0; i < v->evidence_count; i++)
		text_wrapf(f, 6, "    - %s", v->evidence[i]);
	if (v->grade != GRADE_OK)
		text_wrapf(f, 10, "    next: %s", v->advice);
}

void diagnosis_print(FILE *f, const struct examination *e, const struct diagnosis *d)
{
	char name[64];

	text_wrapf(f, 2, "%s, watched for %.1f s:", printable(name, sizeof(name), e->app->name),
		e->span.seconds);
	for (unsigned i = 0; i < d->count; i++)
		print_verdict(f, &d->verdict[i]);
}

void diagnosis_view(struct view *v, const struct diagnosis *d, const char *app)
{
	for (unsigned k = 0; k < d->count; k++) {
		const struct verdict *w = &d->verdict[k];
		json_t *evidence;
		char title[256];

		snprintf(title, sizeof(title), "%s%s%s%s%s", app ? app : "", app ? ": " : "",
			verdict_titles[w->id], *w->where ? ": " : "", w->where);
		evidence = view_finding(
			v, grade_names[w->grade], title, w->grade == GRADE_OK ? NULL : w->advice);
		for (unsigned n = 0; n < w->evidence_count; n++)
			json_array_append_new(evidence, json_text(w->evidence[n]));
	}
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

json_t *diagnosis_json(const struct examination *e, const struct diagnosis *d)
{
	const struct watched *a = e->app;
	json_t *j = json_application(a->name, a->info.pid, a->info.program);
	json_t *verdicts = json_array();

	json_put(j, "duration_ns", json_ns(e->span.seconds * 1e9));
	for (unsigned i = 0; i < d->count; i++)
		json_array_append_new(verdicts, verdict_json(&d->verdict[i]));
	json_object_set_new(j, "verdicts", verdicts);
	return j;
}
