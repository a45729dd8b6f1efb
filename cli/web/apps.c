/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "base/util.h"
#include "judge/examination.h"
#include "measure/metrics.h"
#include "measure/rates.h"

/* ---- values of metrics */

double metric_of(const json_t *object, const char *part, const char *key)
{
	const json_t *v = json_object_get(part ? json_object_get(object, part) : object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void add(double *sum, double n)
{
	if (!isnan(n))
		*sum = isnan(*sum) ? n : *sum + n;
}

double metric_sum(const json_t *metrics, const char *part, const char *key)
{
	double sum = NAN;
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(metrics, "ports"), i, port)
		add(&sum, metric_of(port, part, key));
	return sum;
}

double lost_of(const json_t *port)
{
	static const char *const keys[] = {
		"missed", "no_mbuf", "rx_errors", "tx_errors", "refused"};
	double sum = NAN;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		add(&sum, metric_of(port, "driver_per_second", keys[i]));
	return sum;
}

const char *thread_of(const json_t *thread, char buf[SERIES_NAME])
{
	const json_t *lcore = json_object_get(thread, "lcore");
	const char *name = json_string_value(json_object_get(thread, "name"));
	uint32_t tid = (uint32_t)json_integer_value(json_object_get(thread, "tid"));

	if (json_is_integer(lcore))
		snprintf(buf, SERIES_NAME, "lcore %d", (int)json_integer_value(lcore));
	else
		thread_text(buf, UINT32_MAX, name ? name : "", tid);
	return buf;
}

const char *name_of(const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "name"));

	return name && *name ? name : "(no name)";
}

/* ---- a second's values */

static void set_ports(struct app *a, const struct history *h)
{
	double lost = NAN;
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(a->metrics, "ports"), i, port)
	{
		static const struct {
			enum series_group group;
			const char *part, *key;
		} rows[] = {{SERIES_RECEIVED, "rx", "packets_per_second"},
			{SERIES_SENT, "tx", "packets_per_second"}, {SERIES_LOST, NULL, NULL}};

		if (json_is_true(json_object_get(port, "removed")))
			continue;
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			double v = rows[k].key ? metric_of(port, rows[k].part, rows[k].key)
					       : lost_of(port);
			struct series *s =
				series_set(&a->series, h, rows[k].group, name_of(port), v);

			if (s)
				snprintf(s->port, sizeof(s->port), "%s", name_of(port));
		}
		add(&lost, lost_of(port));
	}
	series_set(&a->series, h, SERIES_APP_LOST, "lost", lost);
	series_set(&a->series, h, SERIES_APP_RECEIVED, "received",
		metric_sum(a->metrics, "rx", "packets_per_second"));
}

static void set_threads(struct app *a, const struct history *h)
{
	const json_t *thread;
	size_t i;

	json_array_foreach(json_object_get(a->metrics, "threads"), i, thread)
	{
		char name[SERIES_NAME];
		struct series *s;

		if (!json_is_true(json_object_get(thread, "alive")))
			continue;
		s = series_set(&a->series, h, SERIES_BUSY, thread_of(thread, name),
			metric_of(thread, NULL, "busy_share"));
		if (s)
			snprintf(s->thread, sizeof(s->thread), "%s", name);
	}
}

static void set_queues(struct app *a, const struct history *h)
{
	const json_t *queue;
	size_t i;

	json_array_foreach(json_object_get(a->metrics, "queues"), i, queue)
	{
		const char *port = name_of(json_object_get(queue, "port"));
		const char *direction = json_string_value(json_object_get(queue, "direction"));
		char name[2 * SERIES_NAME], thread[SERIES_NAME];
		struct series *s;

		thread_of(json_object_get(queue, "thread"), thread);
		snprintf(name, sizeof(name), "%s %s %d, %s", port, direction ? direction : "",
			(int)metric_of(queue, NULL, "queue"), thread);
		s = series_set(&a->series, h, SERIES_QUEUE, name,
			metric_of(queue, NULL, "packets_per_second"));
		if (!s)
			continue;
		snprintf(s->port, sizeof(s->port), "%s", port);
		snprintf(s->thread, sizeof(s->thread), "%s", thread);
	}
}

static void set_rest(struct app *a, const struct history *h)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(a->metrics, "pools"), i,
		one) if (!json_is_true(json_object_get(one, "removed"))) series_set(&a->series, h,
		SERIES_POOL, name_of(one), metric_of(one, NULL, "in_use_share"));
	json_array_foreach(json_object_get(a->metrics, "rings"), i,
		one) if (!json_is_true(json_object_get(one, "removed"))) series_set(&a->series, h,
		SERIES_RING, name_of(one), metric_of(one, NULL, "max_used_share"));
	json_array_foreach(json_object_get(a->metrics, "latency"), i, one)
	{
		char name[2 * SERIES_NAME];

		if (!json_is_object(json_object_get(one, "rx_port")))
			continue;
		snprintf(name, sizeof(name), "p99, %s to %s",
			name_of(json_object_get(one, "rx_port")),
			name_of(json_object_get(one, "tx_port")));
		series_set(&a->series, h, SERIES_LATENCY, name, metric_of(one, NULL, "p99_ns"));
	}
}

/* ---- verdicts */

static void keep(struct app *a, struct ringtap_snapshot *f)
{
	if (a->trail_count == APP_TRAIL) {
		ringtap_snapshot_free(a->trail[0]);
		memmove(a->trail, a->trail + 1, --a->trail_count * sizeof(a->trail[0]));
	}
	a->trail[a->trail_count++] = f;
}

static void forget_trail(struct app *a)
{
	for (unsigned i = 0; i < a->trail_count; i++)
		ringtap_snapshot_free(a->trail[i]);
	a->trail_count = 0;
}

static void judge(struct app *a, const struct watched *now)
{
	struct diagnosis *d = calloc(1, sizeof(*d));
	struct readings readings = {0};
	struct watched seen = *now;
	struct examination e;

	json_decref(a->diagnosis);
	a->diagnosis = NULL;
	seen.mark = a->trail[0];
	for (unsigned i = 1; i <= a->trail_count; i++) {
		seen.now = i < a->trail_count ? a->trail[i] : now->now;
		readings_add(&readings, &seen);
	}
	if (d && examination_make(&e, &seen, &readings)) {
		examination_read_kernel(&e);
		diagnose(&e, d);
		a->diagnosis = diagnosis_json(&e, d);
		free(e.kernel);
	}
	readings_free(&readings);
	free(d);
}

/* ---- applications */

struct app *apps_find(const struct apps *all, const char *label)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->list[i]->label, label))
			return all->list[i];
	return NULL;
}

static struct app *find_dir(const struct apps *all, const char *dir)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->list[i]->dir, dir))
			return all->list[i];
	return NULL;
}

static void clear(struct app *a)
{
	json_decref(a->metrics);
	json_decref(a->diagnosis);
	a->metrics = a->diagnosis = NULL;
	forget_trail(a);
}

static void app_free(struct app *a)
{
	clear(a);
	json_decref(a->recorders);
	series_free(&a->series);
	gaps_free(&a->gaps);
	heat_free(&a->heat);
	free(a->label);
	free(a->name);
	free(a->dir);
	free(a);
}

static struct app *app_add(struct apps *all, const struct watched *w)
{
	struct app *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->name = strdup(w->name);
	a->dir = strdup(w->dir);
	a->label = strdup(apps_find(all, w->name) ? w->dir : w->name);
	if (!a->name || !a->dir || !a->label) {
		app_free(a);
		return NULL;
	}
	all->list[all->count++] = a;
	return a;
}

/* The interval's beginning, which the watch does not need any more: the next one begins. */
static struct ringtap_snapshot *take_mark(struct watched *w)
{
	struct ringtap_snapshot *mark = w->mark;

	w->mark = w->now;
	return mark;
}

static void take(struct apps *all, struct app *a, struct watched *w)
{
	const struct history *h = &all->history;
	bool shown = w->now && !w->ended;
	struct span span;

	a->last = h->steps;
	a->info = w->info;
	a->state = shown ? APP_SHOWN : w->ended ? APP_GONE : APP_WAITED;
	snprintf(a->why, sizeof(a->why), "%s", shown ? "" : w->why);
	if (!shown || (a->trail_count && w->mark == w->now)) {
		clear(a);
		return;
	}
	a->collectors = w->now->collectors;
	if (!span_of(w, &span))
		return;
	json_decref(a->metrics);
	a->metrics = json_object();
	metrics_json_all(a->metrics, &span);
	set_ports(a, h);
	set_threads(a, h);
	set_queues(a, h);
	set_rest(a, h);
	gaps_add(&a->gaps, h, w->now);
	heat_add(&a->heat, h, &span);
	keep(a, take_mark(w));
	judge(a, w);
}

static void forget_old(struct apps *all)
{
	size_t left = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct app *a = all->list[i];

		if (a->last < all->history.steps && a->state != APP_GONE) {
			clear(a);
			a->state = APP_GONE;
			snprintf(a->why, sizeof(a->why), "the application has ended");
		}
		series_prune(&a->series, &all->history);
		if (a->last > history_first(&all->history))
			all->list[left++] = a;
		else
			app_free(a);
	}
	all->count = left;
}

/* Where there is no room for one, that of which nothing came for longest is forgotten. */
static void make_room(struct apps *all)
{
	size_t oldest = all->count;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->state == APP_GONE &&
			(oldest == all->count || all->list[i]->last < all->list[oldest]->last))
			oldest = i;
	if (all->count < APPS_MAX || oldest == all->count)
		return;
	app_free(all->list[oldest]);
	all->count--;
	memmove(&all->list[oldest], &all->list[oldest + 1],
		(all->count - oldest) * sizeof(all->list[0]));
}

void apps_step(struct apps *all, struct watch *w)
{
	all->snapshots++;
	all->left_out = 0;
	watch_lock(w);
	watch_step(w);
	history_step(&all->history);
	for (size_t i = 0; i < w->count; i++) {
		struct app *a = find_dir(all, w->list[i]->dir);

		if (!a && !w->list[i]->ended)
			make_room(all);
		if (!a && all->count < APPS_MAX)
			a = app_add(all, w->list[i]);
		if (a)
			take(all, a, w->list[i]);
		else
			all->left_out++;
	}
	watch_unlock(w);
	forget_old(all);
}

void apps_free(struct apps *all)
{
	for (size_t i = 0; i < all->count; i++)
		app_free(all->list[i]);
	all->count = 0;
}
