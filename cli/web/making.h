/* SPDX-License-Identifier: BSD-3-Clause */
/* A document while it is made. */
#ifndef RINGTAP_CLI_WEB_MAKING_H
#define RINGTAP_CLI_WEB_MAKING_H

#include "views.h"

struct making {
	struct view v;
	const struct apps *all;
	const struct place *place;
	uint64_t first; /* step */
};

/* ---- cells of a row */

void put_text(json_t *row, const char *text);
/* A text that leads to the view of an application, or of what key is (port, thread); NULL: none. */
void put_link(json_t *row, const char *text, const char *app, const char *key, const char *name);
/* Values of the document's steps. */
void put_values(const struct making *m, json_t *to, const struct series *s);
void put_spark(const struct making *m, json_t *row, const struct app *a, enum series_group group,
	const char *name);
void spark_column(json_t *table, const char *name, enum view_colour colour);
/* NULL: there is none. */
const struct series *series_of(const struct app *a, enum series_group group, const char *name);
const char *text_of(const json_t *j, const char *key);
/* Whether a port and a thread are those of the place; NULL: either. */
bool of_place(const struct making *m, const char *port, const char *thread);

/* ---- panels of an application, in panels.c */

void gap_lanes(struct making *m, const struct app *a);
void latency_heat(struct making *m, const struct app *a);
/* The ends of the document's steps. */
json_t *step_edges(const struct making *m);
void ports_table(struct making *m, const struct app *a);
void queues_table(struct making *m, const struct app *a);
void threads_table(struct making *m, const struct app *a);
void pools_table(struct making *m, const struct app *a);
void rings_table(struct making *m, const struct app *a);
void xstats_table(struct making *m, const struct app *a);
void devices_table(struct making *m, const struct app *a);
/* In flow_panel.c; nothing unless flows are on. */
void flows_table(struct making *m, const struct app *a);

#endif
