/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents that the page of web/ draws, while they are made: docs/view.md. */
#ifndef RINGTAP_WEB_VIEW_H
#define RINGTAP_WEB_VIEW_H

#include <jansson.h>
#include <stdint.h>

/* Without memory, parts are missing. Times that are passed are ns since the epoch. */
struct view {
	json_t *document;
	uint64_t origin_ns;
};

/* Colours of the page, which differ for all kinds of sight. */
enum view_colour { VIEW_BLUE, VIEW_RED, VIEW_GREEN, VIEW_PURPLE, VIEW_ORANGE, VIEW_SKY, VIEW_GREY };

/* A document that shows this time. The caller writes it by web_page_write(), or frees it. */
void view_begin(
	struct view *v, const char *command, const char *title, uint64_t from_ns, uint64_t to_ns);
/* The application that it is about. */
void view_application(struct view *v, const char *name, uint32_t pid, const char *program);
/* value NULL: unknown. note, advice NULL: none. */
void view_fact(struct view *v, const char *name, const char *value, const char *note);
/* A point in time. */
void view_time_fact(struct view *v, const char *name, uint64_t ns);
/* A verdict of grade "fault", "ok" or "note". Returns its evidence, to append to. */
json_t *view_finding(struct view *v, const char *grade, const char *title, const char *advice);
/* A sentence about all of it. */
void view_note(struct view *v, const char *text);
/* Time of which nothing was kept; nothing if it is empty. */
void view_missing(struct view *v, uint64_t from_ns, uint64_t to_ns, const char *reason);
void view_event(struct view *v, uint64_t from_ns, uint64_t to_ns, const char *name);
/* A time within the document. */
json_t *view_at(const struct view *v, uint64_t ns);

/* Parts of a document belong to it. */

/* A panel of a kind of docs/view.md. id NULL: none. */
json_t *view_panel(struct view *v, const char *kind, const char *id, const char *title);
/* A sentence about a panel. */
void view_panel_note(json_t *panel, const char *text);
/* Counts, one for each step from from_ns to to_ns; the last step may be shorter. */
json_t *view_counts(struct view *v, const char *id, const char *title, const char *unit,
	uint64_t from_ns, uint64_t step_ns, uint64_t to_ns);
/* Adds a curve to a panel. Returns its values, to append to. */
json_t *view_series(json_t *panel, const char *name, enum view_colour colour);
/* A number of an object. */
void view_set(json_t *to, const char *key, double number);
/* A number, null where it is not finite. */
void view_append(json_t *values, double number);
/* Counts, of which runs of zeros are one number. */
void view_append_counts(json_t *values, const uint32_t *counts, uint32_t n);
void view_column(json_t *table, const char *name, const char *kind);
/* A row, to append to. */
json_t *view_row(json_t *table);
/* A line across a panel of levels; nothing where there is no panel. */
void view_limit(json_t *panel, const char *name, double value);

#endif
