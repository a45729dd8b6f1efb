/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "counted.h"
#include "show/sheet.h"

#define TITLE 128

/* "a + b + c", as far as there is room. */
static const char *names(const struct counted *c, const struct counted_match *m, char text[512])
{
	size_t len = 0;

	text[0] = 0;
	for (size_t i = 0; i < c->count && len < 512; i++)
		if (m->used[i])
			len += (size_t)snprintf(
				text + len, 512 - len, "%s%s", len ? " + " : "", c->list[i].name);
	return text;
}

/* The packets among which those that the application has dropped are. */
static uint64_t among(const struct counted *c, const struct counted_fates *fates)
{
	return fates->not_offered + (c->source->frees_unseen ? fates->open : 0);
}

static void print_match(const struct counted *c, uint64_t packets, FILE *f)
{
	const struct counted_match m = counted_match(c, packets);
	const char *fate = c->source->frees_unseen ? "not offered or open" : "not offered";
	char a[FORMAT_LEN], b[FORMAT_LEN], rest[FORMAT_LEN], text[512];

	if (!m.packets && !c->source->has_others)
		text_wrapf(f, 2, "These numbers do not add up to the %s packets %s.",
			format_count(a, packets), fate);
	else if (m.packets == packets)
		text_wrapf(f, 2, "%s of %s %s = %s", format_count(a, m.packets),
			format_count(b, packets), fate, names(c, &m, text));
	else if (m.packets)
		text_wrapf(f, 2, "%s of %s %s = %s; for %s no counter has a reason",
			format_count(a, m.packets), format_count(b, packets), fate,
			names(c, &m, text), format_count(rest, packets - m.packets));
}

/* title: of TITLE bytes, which must outlive it. */
static int make_sheet(struct sheet *t, const struct counted *c, char title[TITLE])
{
	int ret = 0;

	*t = (struct sheet){.title = title,
		.heads = {"counter", "packets", "dropped"},
		.columns = 3,
		.wide = true};
	if (*c->from)
		snprintf(title, TITLE, "%s counted from %s to %s", c->source->name, c->from, c->to);
	else
		snprintf(title, TITLE, "%s counted in the same time", c->source->name);
	for (size_t i = 0; i < c->count && !ret; i++) {
		const struct counted_value *v = &c->list[i];

		if (!counted_since(v))
			continue;
		ret = sheet_row(t);
		if (ret)
			break;
		sheet_put(t, 0, "%s", v->name);
		sheet_put_count(t, 1, counted_since(v));
		if (v->meaning)
			sheet_put(t, 2, "%s", v->meaning);
	}
	return ret;
}

/* Also where nothing was dropped. */
static int print_threads(const struct counted *c, FILE *f)
{
	struct sheet t = {.title = "Its threads in the same time",
		.heads = {"thread", "received", "sent", "upcalls", "lost upcalls"},
		.columns = 1 + COUNTED_OF_THREAD};
	int ret = 0;

	for (size_t i = 0; c->threads && i < c->threads->count && !ret; i++) {
		const struct counted_thread *one = &c->threads->list[i];
		uint64_t any = 0;

		for (unsigned k = 0; k < COUNTED_OF_THREAD; k++)
			any |= counted_thread_since(one, k);
		ret = any ? sheet_row(&t) : 0;
		if (!any || ret)
			continue;
		sheet_put(&t, 0, "%s", one->name);
		for (unsigned k = 0; k < COUNTED_OF_THREAD; k++)
			sheet_put_count(&t, 1 + k, counted_thread_since(one, k));
	}
	return sheet_end(&t, ret, f);
}

static bool is_known(const struct counted *c)
{
	return c->begun && !c->why[0];
}

int counted_print(const struct counted *c, struct counted_fates fates, FILE *f)
{
	char title[TITLE];
	struct sheet t;
	bool any;
	int ret;

	if (!c->source)
		return 0;
	if (!is_known(c)) {
		text_wrapf(
			f, 2, "Why %s dropped packets is not known: %s.", c->source->name, c->why);
		return 0;
	}
	ret = make_sheet(&t, c, title);
	if (!ret && !t.rows && *c->from)
		text_wrapf(f, 2, "%s counted no dropped packet from %s to %s.", c->source->name,
			c->from, c->to);
	else if (!ret && !t.rows)
		text_wrapf(f, 2, "%s counted no dropped packet in the same time.", c->source->name);
	any = t.rows;
	ret = sheet_end(&t, ret, f);
	if (!ret && any && fates.whole && among(c, &fates))
		print_match(c, among(c, &fates), f);
	if (!ret && any)
		text_wrapf(f, 0, "%s", c->source->note);
	return ret ? ret : print_threads(c, f);
}

void counted_view(const struct counted *c, struct view *v)
{
	char title[TITLE];
	struct sheet t;

	if (!c->source || !is_known(c))
		return;
	if (!make_sheet(&t, c, title))
		sheet_view(&t, v);
	sheet_free(&t);
}

static json_t *threads_json(const struct counted *c)
{
	static const char *const keys[] = {
		[COUNTED_RECEIVED] = "received", "sent", "upcalls", "lost_upcalls"};
	json_t *list = json_array();

	for (size_t i = 0; c->threads && i < c->threads->count; i++) {
		const struct counted_thread *one = &c->threads->list[i];
		json_t *j = json_object();

		json_put(j, "name", json_text(one->name));
		for (unsigned k = 0; k < COUNTED_OF_THREAD; k++)
			json_put(j, keys[k], json_count(counted_thread_since(one, k)));
		json_array_append_new(list, j);
	}
	return list;
}

json_t *counted_json(const struct counted *c, struct counted_fates fates)
{
	bool known = is_known(c);
	const struct counted_match m = known && fates.whole ? counted_match(c, among(c, &fates))
							    : (struct counted_match){0};
	json_t *j, *list, *used;

	if (!c->source)
		return json_null();
	j = json_object();
	list = json_array();
	used = json_array();
	for (size_t i = 0; known && i < c->count; i++) {
		const struct counted_value *v = &c->list[i];
		json_t *one = json_object();

		json_put(one, "name", json_text(v->name));
		json_put(one, "meaning", json_text(v->meaning));
		json_put(one, "begin", json_count(v->begin));
		json_put(one, "end", json_count(v->end));
		json_put(one, "packets", json_count(counted_since(v)));
		json_array_append_new(list, one);
		if (m.used[i])
			json_array_append_new(used, json_text(v->name));
	}
	json_put(j, "source", json_text(c->source->name));
	json_put(j, "error", known ? json_null() : json_text(c->why));
	json_put(j, "from", *c->from ? json_text(c->from) : json_null());
	json_put(j, "to", *c->from ? json_text(c->to) : json_null());
	json_put(j, "counters", list);
	json_put(j, "threads", known ? threads_json(c) : json_array());
	json_put(j, "of_not_offered", json_count(m.packets));
	json_put(j, "equal_to", used);
	return j;
}
