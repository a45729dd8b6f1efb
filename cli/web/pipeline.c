/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of packets: NIC, RX queue, thread, mempool, TX queue, NIC. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "views.h"

enum stage { FROM_NIC, RX_QUEUE, THREAD, POOL, TX_QUEUE, TO_NIC, STAGES };

#define BOXES   24 /* limit for a stage */
#define BOX_LEN 160

struct way {
	json_t *boxes, *lines;
	const struct app *app;
	const struct place *place;
	unsigned count[STAGES];
	bool more;
};

static json_t *find(const json_t *list, const char *id)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (!strcmp(json_string_value(json_object_get(one, "id")), id))
			return one;
	}
	return NULL;
}

/* A box, which is made where it is missing; NULL: there are too many. key, name: of the view that
 * it leads to; NULL: none. */
static json_t *box(struct way *w, enum stage stage, const char *id, const char *name,
	const char *key, const char *target)
{
	json_t *b = find(w->boxes, id);

	if (b)
		return b;
	if (w->count[stage] == BOXES) {
		w->more = true;
		return NULL;
	}
	w->count[stage]++;
	b = json_pack("{s:i, s:o, s:o}", "stage", (int)stage, "id", json_text(id), "name",
		json_text(name));
	if (key)
		json_put(b, "view",
			json_pack("{s:o, s:o}", "app", json_text(w->app->label), key,
				json_text(target)));
	json_array_append_new(w->boxes, b);
	return b;
}

static void set(json_t *b, const char *key, double number)
{
	if (b && !isnan(number))
		view_set(b, key, number);
}

/* Adds a rate to that of a box or line. */
static void add_rate(json_t *b, double rate)
{
	if (b && !isnan(rate))
		view_set(b, "rate", fmax(json_number_value(json_object_get(b, "rate")), 0) + rate);
}

static void add_line(struct way *w, const char *from, const char *to, double rate)
{
	json_t *line;
	size_t i;

	if (!find(w->boxes, from) || !find(w->boxes, to))
		return;
	json_array_foreach(w->lines, i, line)
	{
		if (!strcmp(json_string_value(json_object_get(line, "from")), from) &&
			!strcmp(json_string_value(json_object_get(line, "to")), to)) {
			add_rate(line, rate);
			return;
		}
	}
	line = json_pack("{s:o, s:o}", "from", json_text(from), "to", json_text(to));
	set(line, "rate", rate);
	json_array_append_new(w->lines, line);
}

static void add_lost(json_t *b, const char *name, double rate)
{
	json_t *lost = json_object_get(b, "lost");

	if (!b || isnan(rate) || rate <= 0)
		return;
	if (!lost) {
		lost = json_array();
		json_put(b, "lost", lost);
	}
	json_array_append_new(lost, json_pack("{s:s, s:f}", "name", name, "rate", rate));
}

static const json_t *port_named(const struct app *a, const char *name)
{
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(a->metrics, "ports"), i, port)
	{
		if (!strcmp(name_of(port), name))
			return port;
	}
	return NULL;
}

static const char *nic_id(char id[BOX_LEN], bool tx, const char *port)
{
	snprintf(id, BOX_LEN, "%s %.80s", tx ? "to" : "from", port);
	return id;
}

static void add_nic(struct way *w, bool tx, const char *name)
{
	const json_t *port = port_named(w->app, name);
	char id[BOX_LEN];
	json_t *b;

	nic_id(id, tx, name);
	if (find(w->boxes, id))
		return;
	b = box(w, tx ? TO_NIC : FROM_NIC, id, name, "port", name);
	set(b, "rate", metric_of(port, "driver_per_second", tx ? "tx_packets" : "rx_packets"));
	if (tx) {
		add_lost(b, "refused", metric_of(port, "driver_per_second", "refused"));
		add_lost(b, "errors", metric_of(port, "driver_per_second", "tx_errors"));
	} else {
		add_lost(b, "missed", metric_of(port, "driver_per_second", "missed"));
		add_lost(b, "no mbuf", metric_of(port, "driver_per_second", "no_mbuf"));
		add_lost(b, "errors", metric_of(port, "driver_per_second", "rx_errors"));
	}
}

static void add_thread(struct way *w, const char *name)
{
	const json_t *thread;
	char other[SERIES_NAME];
	size_t i;

	json_array_foreach(json_object_get(w->app->metrics, "threads"), i, thread)
	{
		if (!json_is_true(json_object_get(thread, "alive")) ||
			strcmp(thread_of(thread, other), name))
			continue;
		set(box(w, THREAD, name, name, "thread", name), "share",
			metric_of(thread, NULL, "busy_share"));
		return;
	}
}

/* A thread at a queue. */
static void add_queue(struct way *w, const json_t *q)
{
	const char *port = name_of(json_object_get(q, "port"));
	const char *direction = json_string_value(json_object_get(q, "direction"));
	bool tx = direction && !strcmp(direction, "tx");
	double rate = metric_of(q, NULL, "packets_per_second");
	char thread[SERIES_NAME], id[BOX_LEN], nic[BOX_LEN], name[BOX_LEN];

	thread_of(json_object_get(q, "thread"), thread);
	if (!(metric_of(q, NULL, "calls_per_second") > 0) ||
		(*w->place->port && strcmp(port, w->place->port)) ||
		(*w->place->thread && strcmp(thread, w->place->thread)))
		return;
	snprintf(name, sizeof(name), "%.80s, %d", port, (int)metric_of(q, NULL, "queue"));
	snprintf(id, sizeof(id), "%s %.100s", tx ? "tx" : "rx", name);
	nic_id(nic, tx, port);
	add_nic(w, tx, port);
	add_rate(box(w, tx ? TX_QUEUE : RX_QUEUE, id, name, NULL, NULL), rate);
	add_thread(w, thread);
	add_line(w, tx ? thread : nic, id, rate);
	add_line(w, id, tx ? nic : thread, rate);
}

static void add_pools(struct way *w)
{
	const json_t *pool;
	size_t i;

	json_array_foreach(json_object_get(w->app->metrics, "pools"), i, pool)
	{
		char id[BOX_LEN];

		if (json_is_true(json_object_get(pool, "removed")))
			continue;
		snprintf(id, sizeof(id), "pool %.100s", name_of(pool));
		set(box(w, POOL, id, name_of(pool), NULL, NULL), "share",
			metric_of(pool, NULL, "in_use_share"));
	}
}

#define DIFFERENCE_STEPS 10

/* Packets that the application received and passed to no TX queue: a forwarder loses them. Threads
 * are not read at one moment, so that in a second a few packets differ. */
static void add_difference(json_t *panel, const struct app *a, const struct history *h)
{
	uint64_t first = h->steps > DIFFERENCE_STEPS ? h->steps - DIFFERENCE_STEPS : 0;
	double rx = 0, tx = 0, seconds = 0;
	char text[FORMAT_LEN], line[256];

	for (uint64_t i = first; i < h->steps; i++) {
		double step = (double)(history_to(h, i) - history_from(h, i)) / NS_PER_S;

		seconds += step;
		for (size_t k = 0; k < a->series.count; k++) {
			const struct series *s = a->series.list[k];
			double *sum = s->group == SERIES_RECEIVED ? &rx
				      : s->group == SERIES_SENT   ? &tx
								  : NULL;

			if (sum)
				*sum += step * fmax(series_at(s, h, i), 0);
		}
	}
	if (seconds < DIFFERENCE_STEPS / 2 || !(rx - tx > 0.001 * rx))
		return;
	snprintf(line, sizeof(line),
		"%s packets more were received than passed to TX in the last %.0f s; 'Follow "
		"packets' (with --allow-actions) and 'ringtap drops' show which.",
		format_count(text, (uint64_t)(rx - tx)), seconds);
	view_panel_note(panel, line);
}

void pipeline_add(
	struct view *v, const struct app *a, const struct place *p, const struct history *h)
{
	static const char *const stages[STAGES] = {
		"NIC", "RX queue", "thread", "mempool", "TX queue", "NIC"};
	struct way w = {.app = a, .place = p, .boxes = json_array(), .lines = json_array()};
	json_t *panel = view_panel(v, "pipeline", "pipeline", "The way of packets");
	json_t *names = json_array();
	const json_t *q;
	size_t i;

	for (i = 0; i < STAGES; i++)
		json_array_append_new(names, json_text(stages[i]));
	json_array_foreach(json_object_get(a->metrics, "queues"), i, q) add_queue(&w, q);
	add_pools(&w);
	json_put(panel, "stages", names);
	json_put(panel, "boxes", w.boxes);
	json_put(panel, "lines", w.lines);
	if (w.more)
		view_panel_note(panel, "There are more, which the tables have.");
	if (!*p->port && !*p->thread)
		add_difference(panel, a, h);
}
