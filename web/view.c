/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/json.h"
#include "base/util.h"
#include "page.h"
#include "view.h"

static json_t *add(json_t *to, const char *key, json_t *value)
{
	json_object_set_new(to, key, value);
	return json_object_get(to, key);
}

/* An element of a list, which is made with its first one. */
static json_t *push(json_t *to, const char *key, json_t *value)
{
	json_t *list = json_object_get(to, key);

	json_array_append_new(list ? list : add(to, key, json_array()), value);
	return value;
}

json_t *view_at(const struct view *v, uint64_t ns)
{
	return json_integer((json_int_t)(ns - v->origin_ns));
}

void view_begin(
	struct view *v, const char *command, const char *title, uint64_t from_ns, uint64_t to_ns)
{
	json_t *d = json_document(command, NULL), *range;

	*v = (struct view){.document = d, .origin_ns = from_ns};
	add(d, "view", json_integer(VIEW_VERSION));
	add(d, "title", json_text(title));
	add(d, "origin", json_time(from_ns));
	range = add(d, "range", json_object());
	add(range, "from_ns", view_at(v, from_ns));
	add(range, "to_ns", view_at(v, to_ns));
	add(d, "panels", json_array());
}

void view_application(struct view *v, const char *name, uint32_t pid, const char *program)
{
	push(v->document, "applications", json_application(name, pid, program));
}

void view_fact(struct view *v, const char *name, const char *value, const char *note)
{
	json_t *fact = push(v->document, "facts",
		json_pack("{s:s, s:o}", "name", name, "value", json_text(value)));

	if (note)
		add(fact, "note", json_text(note));
}

void view_time_fact(struct view *v, const char *name, uint64_t ns)
{
	json_t *time = json_time(ns);

	view_fact(v, name, json_string_value(time), NULL);
	json_decref(time);
}

json_t *view_finding(struct view *v, const char *grade, const char *title, const char *advice)
{
	json_t *finding = push(v->document, "findings",
		json_pack("{s:s, s:o}", "grade", grade, "title", json_text(title)));

	if (advice)
		add(finding, "advice", json_text(advice));
	return add(finding, "evidence", json_array());
}

void view_note(struct view *v, const char *text)
{
	push(v->document, "notes", json_text(text));
}

static json_t *between(const struct view *v, uint64_t from_ns, uint64_t to_ns)
{
	return json_pack("{s:o, s:o}", "from_ns", view_at(v, from_ns), "to_ns", view_at(v, to_ns));
}

void view_missing(struct view *v, uint64_t from_ns, uint64_t to_ns, const char *reason)
{
	if (from_ns < to_ns)
		add(push(v->document, "missing", between(v, from_ns, to_ns)), "reason",
			json_text(reason));
}

void view_event(struct view *v, uint64_t from_ns, uint64_t to_ns, const char *name)
{
	add(push(v->document, "events", between(v, from_ns, to_ns)), "name", json_text(name));
}

json_t *view_panel(struct view *v, const char *kind, const char *id, const char *title)
{
	return push(v->document, "panels",
		json_pack("{s:s, s:s*, s:o}", "kind", kind, "id", id, "title", json_text(title)));
}

void view_panel_note(json_t *panel, const char *text)
{
	push(panel, "notes", json_text(text));
}

json_t *view_counts(struct view *v, const char *id, const char *title, const char *unit,
	uint64_t from_ns, uint64_t step_ns, uint64_t to_ns)
{
	json_t *panel = view_panel(v, "counts", id, title);
	json_t *grid = add(panel, "grid", between(v, from_ns, to_ns));

	add(grid, "step_ns", json_count(step_ns));
	add(panel, "unit", json_text(unit));
	return panel;
}

json_t *view_series(json_t *panel, const char *name, enum view_colour colour)
{
	json_t *series = push(panel, "series",
		json_pack("{s:o, s:i}", "name", json_text(name), "colour", (int)colour));

	return add(series, "values", json_array());
}

static json_t *number_json(double number)
{
	return !isfinite(number)                                ? json_null()
	       : number == floor(number) && fabs(number) < 9e15 ? json_integer((json_int_t)number)
								: json_real(number);
}

void view_append(json_t *values, double number)
{
	json_array_append_new(values, number_json(number));
}

void view_set(json_t *to, const char *key, double number)
{
	add(to, key, number_json(number));
}

void view_append_counts(json_t *values, const uint32_t *counts, uint32_t n)
{
	for (uint32_t i = 0, zeros; i < n; i += zeros + !zeros) {
		for (zeros = 0; i + zeros < n && !counts[i + zeros]; zeros++)
			;
		json_array_append_new(
			values, json_integer(zeros ? -(json_int_t)zeros : (json_int_t)counts[i]));
	}
}

void view_column(json_t *table, const char *name, const char *kind)
{
	push(table, "columns", json_pack("{s:s, s:s}", "name", name, "kind", kind));
}

json_t *view_row(json_t *table)
{
	return push(table, "rows", json_array());
}

void view_limit(json_t *panel, const char *name, double value)
{
	if (panel)
		add(panel, "limit",
			json_pack("{s:o, s:f}", "name", json_text(name), "value", value));
}
