/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "faults.h"
#include "judge/examination.h"

/* The place of an application's fault: its own, or the oldest one. */
static unsigned place(const struct faults *f, const char *app)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < FAULTS; i++) {
		if (f->list[i].ns && !strcmp(f->list[i].app, app))
			return i;
		if (f->list[i].ns < f->list[oldest].ns)
			oldest = i;
	}
	return oldest;
}

static void judge(struct faults *f, const struct watched *a, struct diagnosis *d)
{
	char app[sizeof(f->list[0].app)];
	const struct verdict *worst = &d->verdict[0];
	struct readings readings = {0};
	struct examination e;
	unsigned i;

	d->count = 0;
	readings_add(&readings, a);
	if (examination_make(&e, a, &readings))
		diagnose(&e, d);
	readings_free(&readings);
	if (!d->count || worst->grade != GRADE_FAULT)
		return;
	i = place(f, printable(app, sizeof(app), a->name));
	f->list[i].ns = now_ns(CLOCK_MONOTONIC);
	strcpy(f->list[i].app, app);
	snprintf(f->list[i].line, sizeof(f->list[i].line), "%s: %s%s%s; %s", app,
		verdict_titles[worst->id], *worst->where ? ": " : "", worst->where,
		worst->evidence[0]);
}

void faults_find(struct faults *f, const struct watch *w)
{
	struct diagnosis *d = calloc(1, sizeof(*d));

	for (size_t i = 0; d && i < w->count; i++)
		if (w->list[i]->now && !w->list[i]->ended)
			judge(f, w->list[i], d);
	free(d);
}
