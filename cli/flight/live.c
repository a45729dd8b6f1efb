/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap flight top: what recorders keep, their conditions and their last incidents. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/ask.h"
#include "base/json.h"
#include "base/signals.h"
#include "base/util.h"
#include "target/which_app.h"
#include "show/table.h"
#include "show/term.h"
#include "show/text_screen.h"
#include "live.h"

/* For the only answer: a recorder that writes an incident on a busy machine takes seconds. */
#define ONCE_TIMEOUT_MS 10000
#define NEAR            0.8 /* share of a threshold that is shown as an alarm */

/* ---- asking */

/* The recorders of an application, which is added if it has some. False: some did not answer. */
static bool ask_app(json_t *list, const struct ringtap_apps *apps, size_t i, int timeout_ms)
{
	const char *name = ringtap_apps_name(apps, i), *program;
	json_t *recorders = json_array(), *app, *first;
	bool all = ask_recorders(recorders, ringtap_apps_dir(apps, i), name, timeout_ms);

	first = json_object_get(json_array_get(recorders, 0), "application");
	program = json_string_value(json_object_get(first, "program"));
	app = json_application(name, ringtap_apps_pid(apps, i), program);
	json_put(app, "recorders", recorders);
	for (size_t k = 0; k < json_array_size(recorders); k++)
		json_object_del(json_array_get(recorders, k), "application");
	if (json_array_size(recorders))
		json_array_append(list, app);
	json_decref(app);
	return all;
}

json_t *live_ask(const char *app, int timeout_ms, bool *late)
{
	struct ringtap_apps *apps;
	json_t *list = json_array();
	bool all = true;
	int found;

	if (late)
		*late = false;
	if (ringtap_apps_find(&apps)) {
		json_decref(list);
		return NULL;
	}
	found = app ? target_app(apps, app, strlen(app), NULL) : 0;
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		if (!app || (int)i == found)
			all &= ask_app(list, apps, i, timeout_ms);
	ringtap_apps_free(apps);
	if (late)
		*late = !all;
	return json_document("flight top", list);
}

/* ---- tables */

static const struct column kept_columns[] = {
	{"PORT", 16, 0, RT_M_KEPT_PORT, false, false},
	{"PACKETS", 10, 0, RT_M_KEPT_PACKETS, false, false},
	{"BYTES", 7, 0, RT_M_KEPT_BYTES, false, false},
};

static const struct column condition_columns[] = {
	{"CONDITION", 16, 0, RT_M_COND_TEXT, false, false},
	{"VALUE", 10, 0, RT_M_COND_VALUE, false, false},
	{"OF", 10, 3, RT_M_COND_THRESHOLD, false, false},
	{"%", 4, 0, RT_M_COND_SHARE, false, true},
	{"WHERE", 9, 2, RT_M_COND_WHERE, false, false},
	{"INCIDENTS", 9, 0, RT_M_COND_INCIDENTS, false, false},
	{"SUPPRESSED", 10, 1, RT_M_COND_SUPPRESSED, false, false},
};

#define COLUMNS_OF(c) .columns = c, .column_count = sizeof(c) / sizeof((c)[0])

/* Rows of an array of objects with the keys of the columns. */
static void fill(struct table *t, const json_t *list)
{
	const json_t *one;
	size_t n;

	json_array_foreach((json_t *)list, n, one)
	{
		struct row *r = table_add(t);

		for (unsigned i = 0; r && i < t->column_count; i++) {
			const json_t *v = json_object_get(one, rt_metrics[t->columns[i].id].key);
			const char *text = json_string_value(v);

			r->cell[i].number = json_is_number(v) ? json_number_value(v) : NAN;
			printable(r->cell[i].text, sizeof(r->cell[i].text), text ? text : "");
		}
	}
}

/* Lines of a text. */
struct lines {
	FILE *f;
	bool marked; /* for a screen: titles and alarms are, and lines are cut */
	unsigned width;
};

static void put(const struct lines *l, const char *line, bool title, bool alarm)
{
	if (l->marked && (title || alarm))
		fputc(title ? TEXT_TITLE : TEXT_ALARM, l->f);
	fprintf(l->f, "%.*s\n", l->marked ? (int)l->width : -1, line);
}

static bool is_alarm(const struct table *t, const struct row *r)
{
	for (unsigned i = 0; i < t->column_count; i++)
		if (t->columns[i].alarm && r->cell[i].number >= NEAR)
			return true;
	return false;
}

static void put_table(const struct lines *l, struct table *t, const json_t *list)
{
	char *text = NULL, *rest = NULL, *line;
	size_t size, i = 0;
	FILE *f = open_memstream(&text, &size);

	fill(t, list);
	if (f) {
		table_print(t, l->width, term_utf8(), f);
		fclose(f);
	}
	/* The titles, and a line for each row. */
	for (line = text ? strtok_r(text, "\n", &rest) : NULL; line;
		line = strtok_r(NULL, "\n", &rest), i++)
		put(l, line, i == 0, i && is_alarm(t, &t->rows[i - 1]));
	free(text);
	table_free(t);
}

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static uint64_t count_of(const json_t *j, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(j, key));
}

static void put_head(const struct lines *l, const char *app, const json_t *r)
{
	char line[512], name[128], folder[256], packets[FORMAT_LEN], bytes[FORMAT_LEN],
		size[FORMAT_LEN];
	const char *where = json_string_value(json_object_get(r, "folder"));
	uint64_t lost = count_of(r, "lost");

	snprintf(line, sizeof(line), "%s: the last %.1f s, %s packets, %s of %s",
		printable(name, sizeof(name), app), number(r, "kept_ns") / 1e9,
		format_count(packets, count_of(r, "kept_packets")),
		format_bytes(bytes, number(r, "kept_bytes")),
		format_bytes(size, number(r, "buffer_bytes")));
	put(l, line, true, false);
	snprintf(line, sizeof(line), "%s packets lost by the capture", format_count(packets, lost));
	put(l, line, false, lost > 0);
	snprintf(line, sizeof(line), "Incidents: %llu being written, %llu failed; they are in",
		(unsigned long long)count_of(r, "writing"),
		(unsigned long long)count_of(r, "failed"));
	put(l, line, false, count_of(r, "failed") > 0);
	put(l, printable(folder, sizeof(folder), where ? where : ""), false, false);
}

static void put_recent(const struct lines *l, const json_t *r)
{
	const json_t *list = json_object_get(r, "recent"), *one;
	char line[512], name[128], packets[FORMAT_LEN], bytes[FORMAT_LEN], late[48];
	size_t i;

	snprintf(line, sizeof(line), "%-48s %14s %9s", "INCIDENT", "PACKETS", "BYTES");
	put(l, line, true, false);
	for (i = json_array_size(list); i-- > 0;) {
		one = json_array_get(list, i);
		late[0] = '\0';
		if (number(one, "missing_ns") > 0)
			snprintf(late, sizeof(late), ", the first %.3f s not kept",
				number(one, "missing_ns") / 1e9);
		snprintf(line, sizeof(line), "%-48s %14s %9s%s%s%s",
			printable(name, sizeof(name),
				json_string_value(json_object_get(one, "name")) ?: ""),
			format_count(packets, count_of(one, "packets")),
			format_bytes(bytes, number(one, "bytes")),
			json_is_true(json_object_get(one, "failed")) ? ", not all of it" : "", late,
			number(one, "lost") > 0 ? ", packets lost" : "");
		put(l, line, false, json_is_true(json_object_get(one, "failed")));
	}
}

static void put_recorder(const struct lines *l, const char *app, const json_t *r)
{
	struct table kept = {COLUMNS_OF(kept_columns)},
		     conditions = {COLUMNS_OF(condition_columns)};

	put_head(l, app, r);
	put(l, "", false, false);
	put_table(l, &kept, json_object_get(r, "ports"));
	put(l, "", false, false);
	put_table(l, &conditions, json_object_get(r, "conditions"));
	put(l, "", false, false);
	put_recent(l, r);
}

static void put_all(const struct lines *l, const json_t *answers)
{
	const json_t *app, *r;
	size_t n, k;

	json_array_foreach(json_object_get(answers, "applications"), n, app)
	{
		json_array_foreach(json_object_get(app, "recorders"), k, r)
		{
			if (n || k)
				put(l, "", false, false);
			put_recorder(l, json_string_value(json_object_get(app, "name")), r);
		}
	}
}

/* ---- as text */

static bool is_none(const json_t *answers)
{
	return !json_array_size(json_object_get(answers, "applications"));
}

/* Frees answers. */
static int show(const struct live *v, json_t *answers)
{
	struct lines l = {.f = stdout, .width = term_width()};
	int ret = 0;

	if (!v->json) {
		if (!v->once)
			term_live_head();
		put_all(&l, answers);
		json_decref(answers);
	} else if (v->once) {
		ret = json_print(answers, stdout);
	} else {
		ret = json_print_line(answers, stdout);
	}
	return output_end("flight top", ret);
}

static void print_none(const struct live *v, bool late)
{
	const char *quote = v->app ? "'" : "", *app = v->app ? v->app : "any application";

	if (late)
		message_print("flight top: the recorder of %s%s%s does not answer: it is stopped, "
			      "or the machine is busy",
			quote, app, quote);
	else
		message_print("flight top: no recorder of %s%s%s answers; 'ringtap flight' starts "
			      "one",
			quote, app, quote);
}

static int text(const struct live *v)
{
	const int timeout_ms = v->once ? ONCE_TIMEOUT_MS : LIVE_TIMEOUT_MS;
	uint64_t left = v->updates ? v->updates : UINT64_MAX;
	bool late;
	int status;

	do {
		json_t *answers = live_ask(v->app, timeout_ms, &late);

		if (is_none(answers)) {
			print_none(v, late);
			json_decref(answers);
			return STATUS_FAILED;
		}
		status = show(v, answers);
	} while (status == STATUS_OK && !v->once && --left && !stop_wait(v->interval_ns));
	return status;
}

/* ---- on a screen */

static int print_screen(void *ctx, FILE *f)
{
	struct lines l = {.f = f, .marked = true, .width = text_screen_width()};
	const struct live *v = ctx;
	json_t *answers = live_ask(v->app, LIVE_TIMEOUT_MS, NULL);

	put(&l, "ringtap flight top", true, false);
	put(&l, "", false, false);
	put_all(&l, answers);
	if (is_none(answers))
		put(&l, "no recorder answers; waiting", false, false);
	json_decref(answers);
	return 0;
}

static int screen(struct live *v)
{
	struct text_screen *s = text_screen_open();
	uint64_t left = v->updates;
	int ret = s ? 0 : -ENODEV;

	if (!s)
		message_print("flight top: the terminal is of an unknown kind; set TERM, or use "
			      "--once or --json");
	while (!ret) {
		struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			{.fd = stop_fd(), .events = POLLIN}};

		if (!text_screen_paused(s))
			ret = text_screen_show(s, print_screen, v);
		(void)rt_poll_ns(p, 2, stop_left(v->interval_ns));
		if (p[1].revents || stop_wait(0) || p[0].revents & (POLLHUP | POLLERR | POLLNVAL) ||
			!text_screen_keys(s) || (left && !--left))
			break;
	}
	text_screen_close(s);
	return ret ? STATUS_FAILED : STATUS_OK;
}

/* A program that several run names none of them. */
static int check_app(const char *app)
{
	struct target_candidates others;
	struct ringtap_apps *apps;
	int ret;

	if (!app || ringtap_apps_find(&apps))
		return 0;
	ret = target_app(apps, app, strlen(app), &others);
	if (ret == -ENOTUNIQ)
		print_no_app("flight top", apps, app, ret, &others);
	ringtap_apps_free(apps);
	return ret == -ENOTUNIQ ? ret : 0;
}

int live_run(struct live *v)
{
	int ret;

	if (check_app(v->app))
		return STATUS_FAILED;
	ret = stop_catch();
	if (ret)
		return message_fail(
			STATUS_FAILED, "flight top: cannot wait for signals: %s", strerror(-ret));
	stop_after(v->duration_ns);
	setlocale(LC_CTYPE, "");
	return term_live(v->once, v->json) == LIVE_SCREEN ? screen(v) : text(v);
}
