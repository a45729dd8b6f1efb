/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents. That of the newest step has the same panels, whose series have one value each. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "incident.h"
#include "making.h"

/* ---- panels along the time */

json_t *step_edges(const struct making *m)
{
	const struct history *h = &m->all->history;
	json_t *edges = json_array();

	json_array_append_new(edges, json_count(history_from(h, m->first)));
	for (uint64_t i = m->first; i < h->steps; i++)
		json_array_append_new(edges, json_count(history_to(h, i)));
	return edges;
}

static json_t *levels(struct making *m, const char *id, const char *title, const char *unit)
{
	json_t *panel = view_panel(&m->v, "levels", id, title);

	json_put(panel, "unit", json_text(unit));
	json_put(panel, "edges_ns", step_edges(m));
	return panel;
}

static bool is_there(const struct series *s, const struct place *p)
{
	return (!*p->port || !*s->port || !strcmp(s->port, p->port)) &&
	       (!*p->thread || !*s->thread || !strcmp(s->thread, p->thread));
}

#define CURVES 16

/* A curve for each series of a group, or of the two that go together. */
static void curves(struct making *m, const struct app *a, const char *id, const char *title,
	const char *unit, enum series_group group, enum series_group second)
{
	json_t *panel = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < a->series.count; i++) {
		const struct series *s = a->series.list[i];
		char name[2 * SERIES_NAME];

		if ((s->group != group && s->group != second) || !is_there(s, m->place))
			continue;
		if (n == CURVES) {
			view_panel_note(panel, "There are more, which the tables have.");
			break;
		}
		if (!panel)
			panel = levels(m, id, title, unit);
		snprintf(name, sizeof(name), "%s%s", s->name,
			group == second     ? ""
			: s->group == group ? ", received"
					    : ", sent");
		put_values(m, view_series(panel, name, (enum view_colour)(n++ % 7)), s);
	}
}

/* ---- the overview */

static json_t *worst_verdict(const struct app *a)
{
	return json_array_get(json_object_get(a->diagnosis, "verdicts"), 0);
}

static void put_verdict(json_t *row, const struct app *a)
{
	static const char *const states[] = {"running", "no statistics", "gone"};
	const json_t *v = worst_verdict(a);
	const char *where = text_of(v, "where");
	char line[400];

	if (v)
		snprintf(line, sizeof(line), "%s: %s%s%s", text_of(v, "grade"), text_of(v, "title"),
			where ? ": " : "", where ? where : "");
	else
		snprintf(line, sizeof(line), "%s%s%s", states[a->state], *a->why ? ": " : "",
			a->why);
	put_text(row, line);
}

static double busiest(const struct app *a, const char *list, const char *key)
{
	const json_t *one;
	double most = NAN;
	size_t i;

	json_array_foreach(json_object_get(a->metrics, list), i, one) most =
		fmax(most, metric_of(one, NULL, key));
	return most;
}

static double app_lost(const struct app *a, const struct history *h)
{
	const struct series *s = series_of(a, SERIES_APP_LOST, "lost");

	return s && h->steps ? series_at(s, h, h->steps - 1) : NAN;
}

static void overview_table(struct making *m)
{
	json_t *t = view_panel(&m->v, "table", "applications", "Applications");

	view_column(t, "application", "text");
	view_column(t, "received", "/s");
	view_column(t, "sent", "/s");
	view_column(t, "lost", "/s");
	view_column(t, "busiest thread", "share");
	view_column(t, "p99", "ns");
	spark_column(t, "received, 10 min", VIEW_BLUE);
	spark_column(t, "lost, 10 min", VIEW_RED);
	view_column(t, "verdict of the last seconds", "text");
	json_put(t, "rows", json_array());
	for (size_t i = 0; i < m->all->count; i++) {
		const struct app *a = m->all->list[i];
		json_t *row = view_row(t);

		put_link(row, a->label, a->label, NULL, NULL);
		view_append(row, metric_sum(a->metrics, "rx", "packets_per_second"));
		view_append(row, metric_sum(a->metrics, "tx", "packets_per_second"));
		view_append(row, app_lost(a, &m->all->history));
		view_append(row, busiest(a, "threads", "busy_share"));
		view_append(row, busiest(a, "latency", "p99_ns"));
		put_spark(m, row, a, SERIES_APP_RECEIVED, "received");
		put_spark(m, row, a, SERIES_APP_LOST, "lost");
		put_verdict(row, a);
	}
}

static void overview_curves(struct making *m, const char *id, const char *title,
	enum series_group group, const char *name)
{
	json_t *panel = NULL;

	for (size_t i = 0; i < m->all->count && i < CURVES; i++) {
		const struct app *a = m->all->list[i];
		const struct series *s = series_of(a, group, name);

		if (!s)
			continue;
		if (!panel)
			panel = levels(m, id, title, "/s");
		put_values(m, view_series(panel, a->label, (enum view_colour)(i % 7)), s);
	}
}

static void overview(struct making *m, struct watch *w)
{
	char line[WATCH_REASON_LEN];

	for (size_t i = 0; w && watch_reason(w, i, line); i++)
		view_note(&m->v, line);
	if (m->all->left_out)
		view_note(&m->v, "There are more applications than this page shows; name some.");
	if (!m->all->count)
		view_note(&m->v, "No DPDK application with statistics is running; those that "
				 "start appear here.");
	overview_table(m);
	overview_curves(m, "received", "Packets received", SERIES_APP_RECEIVED, "received");
	overview_curves(m, "lost", "Packets lost", SERIES_APP_LOST, "lost");
}

/* ---- an application */

static void facts(struct making *m, const struct app *a)
{
	char text[128];

	snprintf(text, sizeof(text), "%s, pid %u", a->info.program, a->info.pid);
	view_fact(&m->v, "application", a->label, NULL);
	view_fact(&m->v, "program", *a->info.program ? text : NULL, NULL);
	view_fact(&m->v, "DPDK", *a->info.dpdk ? a->info.dpdk : NULL, NULL);
	view_fact(&m->v, "state", *a->why ? a->why : "running", NULL);
	if (*m->place->port)
		view_fact(&m->v, "port", m->place->port, NULL);
	if (*m->place->thread)
		view_fact(&m->v, "thread", m->place->thread, NULL);
}

static void findings(struct making *m, const struct app *a)
{
	const json_t *verdict, *line;
	size_t i, k;

	json_array_foreach(json_object_get(a->diagnosis, "verdicts"), i, verdict)
	{
		const char *where = text_of(verdict, "where");
		char title[300];
		json_t *evidence;

		snprintf(title, sizeof(title), "%s%s%s", text_of(verdict, "title"),
			where ? ": " : "", where ? where : "");
		evidence = view_finding(
			&m->v, text_of(verdict, "grade"), title, text_of(verdict, "advice"));
		json_array_foreach(json_object_get(verdict, "evidence"), k, line)
			json_array_append(evidence, (json_t *)line);
	}
}

static void application(struct making *m, const struct app *a)
{
	view_application(&m->v, a->name, a->info.pid, a->info.program);
	facts(m, a);
	findings(m, a);
	pipeline_add(&m->v, a, m->place, &m->all->history);
	if (!*m->place->thread) {
		curves(m, a, "rates", "Packets", "/s", SERIES_RECEIVED, SERIES_SENT);
		curves(m, a, "lost", "Packets lost", "/s", SERIES_LOST, SERIES_LOST);
	}
	if (*m->place->port || *m->place->thread)
		curves(m, a, "queue-rates", "Packets of queues", "/s", SERIES_QUEUE, SERIES_QUEUE);
	if (!*m->place->port) {
		gap_lanes(m, a);
		curves(m, a, "busy", "Busy", "share", SERIES_BUSY, SERIES_BUSY);
		curves(m, a, "latency", "Latency", "ns", SERIES_LATENCY, SERIES_LATENCY);
		curves(m, a, "pool-use", "Mempools in use", "share", SERIES_POOL, SERIES_POOL);
		curves(m, a, "ring-use", "Rings", "share", SERIES_RING, SERIES_RING);
	}
	if (!*m->place->port && !*m->place->thread)
		latency_heat(m, a);
	if (!*m->place->port && !*m->place->thread)
		incident_table(&m->v, a);
	if (!*m->place->thread)
		ports_table(m, a);
	queues_table(m, a);
	if (!*m->place->port && !*m->place->thread)
		flows_table(m, a);
	if (!*m->place->port)
		threads_table(m, a);
	if (!*m->place->port && !*m->place->thread)
		pools_table(m, a);
	if (!*m->place->port && !*m->place->thread)
		rings_table(m, a);
	if (!*m->place->thread)
		xstats_table(m, a);
	if (!*m->place->port && !*m->place->thread)
		devices_table(m, a);
}

/* ---- documents */

static void title_of(const struct place *p, char *title, size_t size)
{
	char host[64] = "";

	gethostname(host, sizeof(host) - 1);
	if (!*p->app)
		snprintf(title, size, "DPDK applications of %s", host);
	else
		snprintf(title, size, "%s%s%s of %s", p->app, *p->port || *p->thread ? ", " : "",
			*p->port ? p->port : p->thread, host);
}

json_t *views_document(const struct apps *all, struct watch *w, const struct place *p, bool newest)
{
	const struct history *h = &all->history;
	const struct app *a = apps_find(all, p->app);
	struct making m = {.all = all,
		.place = p,
		.first = newest && h->steps ? h->steps - 1 : history_first(h)};
	uint64_t to = h->steps ? history_to(h, h->steps - 1) : 0;
	char title[512];

	title_of(p, title, sizeof(title));
	view_begin(&m.v, "web", title, h->origin_ns, h->origin_ns + to);
	/* All documents of a history have its origin. */
	json_put(json_object_get(m.v.document, "range"), "from_ns",
		json_count(history_from(h, history_first(h))));
	if (!*p->app) {
		overview(&m, w);
	} else if (a) {
		application(&m, a);
	} else {
		view_note(&m.v, "No application of this name has been here in the last ten "
				"minutes.");
	}
	return m.v.document;
}
