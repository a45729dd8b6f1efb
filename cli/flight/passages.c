/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "common/hash.h"
#include "common/pcapng.h"
#include "fates/kept.h"
#include "flight.h"
#include "passages.h"

#define OPEN_MAX   (1u << 16) /* packets that were received and not sent yet */
#define SLOTS      (2 * OPEN_MAX)
#define ORDER      (2 * OPEN_MAX)
#define SLOW_MAX   1000 /* packets above the threshold */
#define SLOW_SHOWN 100  /* without a threshold */
#define UNSENT_MAX 1000
#define COLUMNS    200
#define ROWS       112 /* quarters of an octave */
#define LEAST_LOG2 6   /* 64 ns, to 17 s */

struct passage {
	uint64_t id; /* 0: the slot is empty */
	uint64_t ns, frame, sent_ns, sent_frame;
	uint32_t local, queue; /* that received it */
	uint8_t fate;          /* enum rt_fates_fate; 0: none is known */
	uint8_t reason;        /* index in passages.reasons */
	uint64_t noticed_ns;   /* when it became known */
	struct headers headers;
};

struct passages {
	uint64_t from_ns, to_ns;
	struct secret secret;
	struct passage *slots; /* the open ones, by id */
	uint32_t open;
	/* Each open one once, and some that have been sent; the oldest first. */
	struct {
		uint64_t id, frame;
	} * order;
	uint64_t first, end;           /* numbers in order, modulo ORDER */
	struct passage slow[SLOW_MAX]; /* unsorted */
	uint32_t slow_count, quickest; /* index of the quickest of slow */
	uint64_t sent, beyond;         /* beyond: gave their slot to later ones */
	uint32_t cells[COLUMNS][ROWS];
	char reasons[256][RINGTAP_NAME_LEN]; /* texts of those of packets, by number */
};

struct passages *passages_new(uint64_t from_ns, uint64_t to_ns)
{
	struct passages *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->from_ns = from_ns;
	p->to_ns = to_ns;
	p->slots = calloc(SLOTS, sizeof(*p->slots));
	p->order = calloc(ORDER, sizeof(*p->order));
	secret_make(&p->secret);
	if (p->slots && p->order)
		return p;
	passages_free(p);
	return NULL;
}

void passages_free(struct passages *p)
{
	if (!p)
		return;
	free(p->slots);
	free(p->order);
	free(p);
}

/* ---- open packets */

static uint32_t home(const struct passages *p, uint64_t id)
{
	return hash_short(hash_number(&p->secret, id, 0)) % SLOTS;
}

/* The slot of an id, or the empty one where it would be. */
static uint32_t find(const struct passages *p, uint64_t id)
{
	uint32_t k = home(p, id);

	while (p->slots[k].id && p->slots[k].id != id)
		k = (k + 1) % SLOTS;
	return k;
}

/* Entries behind it move up, if they are not before their home then. */
static void leave(struct passages *p, uint32_t k)
{
	uint32_t hole = k;

	for (k = (k + 1) % SLOTS; p->slots[k].id; k = (k + 1) % SLOTS) {
		uint32_t from_home = (k - home(p, p->slots[k].id)) % SLOTS;

		if (from_home < (k - hole) % SLOTS)
			continue;
		p->slots[hole] = p->slots[k];
		hole = k;
	}
	p->slots[hole].id = 0;
	p->open--;
}

static void enqueue(struct passages *p, uint64_t id, uint64_t frame)
{
	p->order[p->end % ORDER].id = id;
	p->order[p->end++ % ORDER].frame = frame;
}

/* The slot of the packet at a place of the order; SLOTS: it has left. */
static uint32_t slot_at(const struct passages *p, uint64_t place)
{
	uint32_t k = find(p, p->order[place % ORDER].id);

	return p->slots[k].id && p->slots[k].frame == p->order[place % ORDER].frame ? k : SLOTS;
}

/* For one more. Packets that are received and never sent leave, the oldest first, or those after
 * them would have no latency. */
static void make_room(struct passages *p)
{
	uint64_t kept = p->first;

	if (p->end - p->first == ORDER) { /* at most half of them are still open */
		for (uint64_t n = p->first; n < p->end; n++)
			if (slot_at(p, n) != SLOTS)
				p->order[kept++ % ORDER] = p->order[n % ORDER];
		p->end = kept;
	}
	while (p->open == OPEN_MAX) {
		uint32_t k = slot_at(p, p->first++);

		if (k == SLOTS)
			continue;
		leave(p, k);
		p->beyond++;
	}
}

/* ---- latencies */

static uint64_t took(const struct passage *g)
{
	return g->sent_ns > g->ns ? g->sent_ns - g->ns : 0;
}

static unsigned row_of(uint64_t ns)
{
	double row = ns ? 4 * (log2((double)ns) - LEAST_LOG2) : 0;

	return row < 0 ? 0 : row >= ROWS ? ROWS - 1 : (unsigned)row;
}

static double row_ns(unsigned row)
{
	return exp2(LEAST_LOG2 + row / 4.0);
}

static unsigned column_of(const struct passages *p, uint64_t ns)
{
	double share = ns < p->from_ns
			       ? 0
			       : (double)(ns - p->from_ns) / (double)(p->to_ns - p->from_ns + 1);

	return share >= 1 ? COLUMNS - 1 : (unsigned)(share * COLUMNS);
}

static void keep_slow(struct passages *p, const struct passage *g)
{
	if (p->slow_count < SLOW_MAX)
		p->slow[p->slow_count++] = *g;
	else if (took(g) > took(&p->slow[p->quickest]))
		p->slow[p->quickest] = *g;
	else
		return;
	for (uint32_t k = p->quickest = 0; k < p->slow_count; k++)
		if (took(&p->slow[k]) < took(&p->slow[p->quickest]))
			p->quickest = k;
}

void passages_add(
	struct passages *p, const struct block *b, const struct headers *h, uint64_t frame)
{
	uint64_t ns = (uint64_t)b->ns;
	uint32_t k;

	if (!p || !b->has_id || !b->id)
		return;
	k = find(p, b->id);
	if (b->direction == DIRECTION_TX) {
		/* Received before the window; or sent again. */
		if (!p->slots[k].id)
			return;
		p->slots[k].sent_ns = ns;
		p->slots[k].sent_frame = frame;
		p->sent++;
		p->cells[column_of(p, ns)][row_of(took(&p->slots[k]))]++;
		if (p->slow_count < SLOW_MAX || took(&p->slots[k]) > took(&p->slow[p->quickest]))
			keep_slow(p, &p->slots[k]);
		leave(p, k);
		return;
	}
	if (p->slots[k].id)
		leave(p, k);
	make_room(p);
	k = find(p, b->id);
	p->open++;
	enqueue(p, b->id, frame);
	p->slots[k] = (struct passage){.id = b->id,
		.ns = ns,
		.frame = frame,
		.local = b->local,
		.queue = b->queue,
		.headers = *h};
}

void passages_fate(struct passages *p, const struct rt_fates_packet *e, const char *reason)
{
	struct passage *g = p ? &p->slots[find(p, e->id)] : NULL;

	if (!g || !g->id)
		return;
	g->fate = e->fate;
	g->noticed_ns = fate_noticed_ns(e);
	if (e->fate != RT_FATES_NOT_OFFERED)
		return;
	g->reason = e->why;
	snprintf(p->reasons[e->why], sizeof(p->reasons[0]), "%s", reason);
}

/* ---- the heat map */

static void quantiles(const uint32_t *cells, double *p50, double *p99)
{
	uint64_t all = 0, sum = 0;

	*p50 = *p99 = NAN;
	for (unsigned r = 0; r < ROWS; r++)
		all += cells[r];
	for (unsigned r = 0; r < ROWS; r++) {
		sum += cells[r];
		if (isnan(*p50) && all && 2 * sum >= all)
			*p50 = round(row_ns(r) * exp2(0.125));
		if (isnan(*p99) && all && 100 * sum >= 99 * all)
			*p99 = round(row_ns(r) * exp2(0.125));
	}
}

/* The rows that have packets. */
static void rows_used(const struct passages *p, unsigned *first, unsigned *last)
{
	*first = ROWS;
	*last = 0;
	for (unsigned c = 0; c < COLUMNS; c++) {
		for (unsigned r = 0; r < ROWS; r++) {
			if (!p->cells[c][r])
				continue;
			*first = r < *first ? r : *first;
			*last = r > *last ? r : *last;
		}
	}
}

static bool has_threshold(const struct incident *i)
{
	return i->trigger->kind >= TRIGGER_LATENCY && i->trigger->kind <= TRIGGER_P999;
}

static bool is_slow(const struct incident *i, const struct passage *g)
{
	return !has_threshold(i) || (double)took(g) > i->trigger->threshold;
}

static void add_points(json_t *panel, const struct incident *i, const struct view *v)
{
	const struct passages *p = i->passages;
	json_t *points = json_array();

	for (uint32_t k = 0; has_threshold(i) && k < p->slow_count; k++)
		if (is_slow(i, &p->slow[k]))
			json_array_append_new(
				points, json_pack("[o, o]", view_at(v, p->slow[k].sent_ns),
						json_count(took(&p->slow[k]))));
	json_object_set_new(panel, "points", points);
}

static void add_heat(const struct incident *i, struct view *v)
{
	const struct passages *p = i->passages;
	json_t *panel = view_panel(v, "heat", "passages", "Latency of each packet"),
	       *edges = json_array(), *y = json_array(), *counts = json_array();
	json_t *p50 = view_series(panel, "50 %", VIEW_GREEN),
	       *p99 = view_series(panel, "99 %", VIEW_RED);
	unsigned first, last;

	rows_used(p, &first, &last);
	for (unsigned r = first; r <= last + 1; r++)
		view_append(y, row_ns(r));
	for (unsigned c = 0; c <= COLUMNS; c++)
		json_array_append_new(
			edges, view_at(v, p->from_ns + (p->to_ns - p->from_ns + 1) * c / COLUMNS));
	for (unsigned c = 0; c < COLUMNS; c++) {
		json_t *column = json_array();
		double half, most;

		view_append_counts(column, &p->cells[c][first], last - first + 1);
		json_array_append_new(counts, column);
		quantiles(p->cells[c], &half, &most);
		view_append(p50, half);
		view_append(p99, most);
	}
	json_object_set_new(panel, "name", json_string("packets sent"));
	json_object_set_new(panel, "unit", json_string("ns"));
	json_object_set_new(panel, "log", json_true());
	json_object_set_new(panel, "edges_ns", edges);
	json_object_set_new(panel, "y_edges", y);
	json_object_set_new(panel, "counts", counts);
	view_panel_note(panel,
		"From receiving to the first sending, at the time of the sending, by packet ids. 50 % and 99 % are those of a column, within 9 %.");
	add_points(panel, i, v);
	if (has_threshold(i))
		view_limit(panel, i->trigger->text, i->trigger->threshold);
}

/* ---- tables */

/* By the last gap behind a poll of this queue, where bursts are not counted. */
static uint32_t thread_of_gaps(
	const struct flight *f, const struct ringtap_snapshot *s, uint32_t port, uint32_t queue)
{
	const struct intervals *all = &f->intervals;

	for (uint64_t n = all->count; n-- > 0 && all->count - n <= INTERVALS_KEPT;) {
		const struct ringtap_interval *v = &all->kept[n % INTERVALS_KEPT];

		if (v->kind == RINGTAP_INTERVAL_GAP && v->port == port && v->queue == queue &&
			v->thread < s->thread_count)
			return v->thread;
	}
	return RINGTAP_NO_INDEX;
}

/* The thread that polls a queue; RINGTAP_NO_INDEX: unknown. */
static uint32_t thread_of(const struct flight *f, const struct ringtap_snapshot *s,
	const char *device, const struct passage *g)
{
	for (uint32_t k = 0; s && k < s->queue_count; k++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s, k);

		if (q->direction == RINGTAP_RX && q->queue == g->queue && q->packets &&
			!strcmp(ringtap_snapshot_port(s, q->port)->device, device))
			return q->thread;
	}
	for (uint32_t k = 0; s && k < s->port_count; k++)
		if (!strcmp(ringtap_snapshot_port(s, k)->device, device))
			return thread_of_gaps(f, s, k, g->queue);
	return RINGTAP_NO_INDEX;
}

/* The longest of the bars that are not low and touch a time; NULL: there is none. */
static json_t *longest_bar(
	const struct lane_bars *bars, uint32_t thread, json_int_t from, json_int_t to)
{
	json_t *bar, *found = NULL;
	json_int_t most = 0;
	size_t k;

	json_array_foreach(thread < bars->count ? bars->by_thread[thread] : NULL, k, bar)
	{
		json_int_t a = json_integer_value(json_array_get(bar, 0));
		json_int_t b = a + json_integer_value(json_array_get(bar, 1));

		a = a > from ? a : from;
		b = b < to ? b : to;
		if (b - a <= most ||
			json_is_true(json_object_get(
				json_array_get(bars->states,
					(size_t)json_integer_value(json_array_get(bar, 2))),
				"low")))
			continue;
		most = b - a;
		found = bar;
	}
	return found;
}

/* State of the thread meanwhile: "gap: slept of 36 ms, after a poll …". */
static json_t *meanwhile(const struct lane_bars *bars, uint32_t thread, uint64_t from_ns,
	uint64_t to_ns, const struct view *v)
{
	json_t *bar, *state, *text;
	char ns[FORMAT_LEN], all[512];

	if (thread >= bars->count || !bars->by_thread)
		return json_null();
	bar = longest_bar(bars, thread, (json_int_t)(from_ns - v->origin_ns),
		(json_int_t)(to_ns - v->origin_ns));
	if (!bar)
		return json_string("it polled: no gap of 10 us and more");
	state = json_array_get(bars->states, (size_t)json_integer_value(json_array_get(bar, 2)));
	text = json_array_get(bar, 3);
	snprintf(all, sizeof(all), "%s, %s%s%s", json_string_value(json_object_get(state, "name")),
		format_ns(ns, (double)json_integer_value(json_array_get(bar, 1))), text ? ", " : "",
		text ? json_string_value(text) : "");
	return json_text(all);
}

struct table {
	const struct incident *i;
	const struct ringtap_snapshot *last;
	struct view *v;
	const struct lane_bars *bars;
	json_t *panel;
	/* The last receiving queue, and its thread. */
	uint32_t local, queue, thread;
	struct ringtap_interface port;
};

static void meet(struct table *t, const struct passage *g)
{
	if (t->local == g->local && t->queue == g->queue)
		return;
	t->local = g->local;
	t->queue = g->queue;
	t->thread = RINGTAP_NO_INDEX;
	t->port = (struct ringtap_interface){.size = sizeof(t->port)};
	if (t->i->f->cap && !ringtap_capture_interface(t->i->f->cap, g->local, &t->port))
		t->thread = thread_of(t->i->f, t->last, t->port.device, g);
}

#define FATE_TEXT 160

/* Fate of a packet that was not sent in the window. Returns buf or a constant. */
static const char *became(const struct incident *i, const struct passage *g, char buf[FATE_TEXT])
{
	const char *reason;
	char ns[FORMAT_LEN];

	switch (g->fate) {
	case RT_FATES_NOT_OFFERED:
		reason = i->passages->reasons[g->reason];
		snprintf(buf, FATE_TEXT, "not sent: %s%sfreed, noticed after %s", reason,
			*reason ? ", " : "",
			format_ns(ns, g->noticed_ns > g->ns ? (double)(g->noticed_ns - g->ns) : 0));
		return buf;
	case RT_FATES_OPEN: return "open: the application still had it";
	case RT_FATES_INFERRED: return "unknown, likely sent";
	case RT_FATES_UNKNOWN: return "unknown";
	default: return "unknown: its fate is lost";
	}
}

static void put(struct table *t, const struct passage *g, uint64_t to_ns)
{
	char text[HEADERS_TEXT], name[THREAD_NAME_LEN], fate[FATE_TEXT];
	json_t *row = view_row(t->panel);
	meet(t, g);

	json_array_append_new(row, json_count(g->frame));
	if (g->sent_frame) {
		json_array_append_new(row, json_count(g->sent_frame));
		json_array_append_new(row, json_count(took(g)));
	}
	json_array_append_new(row, view_at(t->v, g->ns));
	json_array_append_new(row, *t->port.name ? json_text(t->port.name) : json_null());
	json_array_append_new(row, g->queue == NO_QUEUE ? json_null() : json_count(g->queue));
	json_array_append_new(row, t->thread == RINGTAP_NO_INDEX
					   ? json_null()
					   : json_text(thread_name(name,
						     ringtap_snapshot_thread(t->last, t->thread))));
	json_array_append_new(row, json_text(headers_text(&g->headers, text)));
	if (!g->sent_frame && t->i->followed)
		json_array_append_new(row, json_text(became(t->i, g, fate)));
	json_array_append_new(row, meanwhile(t->bars, t->thread, g->ns, to_ns, t->v));
}

static void begin_table(struct table *t, const char *id, const char *title, bool sent)
{
	static const struct {
		const char *name, *kind;
	} columns[] = {{"frame", "frame"}, {"frame sent", "frame"}, {"latency", "ns"},
		{"time", "time"}, {"port", "text"}, {"queue", "count"}, {"thread", "text"},
		{"packet", "text"}, {"what became of it", "text"}, {"meanwhile", "text"}};

	t->panel = view_panel(t->v, "table", id, title);
	for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
		if (k == 8 ? !sent && t->i->followed : sent || k < 1 || k > 2)
			view_column(t->panel, columns[k].name, columns[k].kind);
	json_object_set_new(t->panel, "rows", json_array());
}

static int slower_first(const void *a, const void *b)
{
	uint64_t x = took(a), y = took(b);

	return (x < y) - (x > y);
}

static void add_slow(struct table *t)
{
	struct passages *p = t->i->passages;
	uint32_t n = 0;

	qsort(p->slow, p->slow_count, sizeof(*p->slow), slower_first);
	begin_table(t, "slow",
		has_threshold(t->i) ? "Packets above the threshold" : "The slowest packets", true);
	for (; n < p->slow_count && is_slow(t->i, &p->slow[n]); n++)
		if (has_threshold(t->i) || n < SLOW_SHOWN)
			put(t, &p->slow[n], p->slow[n].sent_ns);
	if (!n && p->beyond)
		view_panel_note(t->panel,
			"More packets were not sent yet than this page can follow: of the earliest "
			"ones the latency is not known. ringtap explain has it.");
	else if (!n && t->i->trigger->kind == TRIGGER_LATENCY)
		view_panel_note(t->panel,
			"No packet of the file took as long: the slow one was not sent yet, or "
			"the file does not have both its reception and its sending.");
	if (n == SLOW_MAX && has_threshold(t->i))
		view_panel_note(t->panel, "The 1000 slowest of them.");
}

static int older_first(const void *a, const void *b)
{
	uint64_t x = (*(const struct passage *const *)a)->frame,
		 y = (*(const struct passage *const *)b)->frame;

	return (x > y) - (x < y);
}

/* All others have a fate, unless some are lost. */
static bool is_sent_later(const struct incident *i, const struct passage *g)
{
	return i->followed && !i->fates_lost && !g->fate;
}

/* Received, and not sent until the end of the window. */
static void add_unsent(struct table *t)
{
	const struct passages *p = t->i->passages;
	const struct passage **open = calloc(p->open + 1, sizeof(*open));
	char text[160], a[FORMAT_LEN];
	uint32_t n = 0;

	begin_table(t, "unsent",
		t->i->followed ? "Not sent" : "Received and not sent in the window", false);
	for (uint32_t k = 0; open && k < SLOTS; k++)
		if (p->slots[k].id && !is_sent_later(t->i, &p->slots[k]))
			open[n++] = &p->slots[k];
	if (open)
		qsort(open, n, sizeof(*open), older_first);
	for (uint32_t k = 0; k < n && k < UNSENT_MAX; k++)
		put(t, open[k], t->i->to_ns);
	free(open);
	view_panel_note(t->panel,
		t->i->followed
			? "What became of them was read a second after the window; what was sent until then is not here."
			: "Those that were received at the end may have been sent after it; the others were held, dropped, or sent without their id. --fates tells them apart.");
	if (n > UNSENT_MAX || p->beyond) {
		snprintf(text, sizeof(text), "%s%d of %s%s.", p->beyond ? "" : "The first ",
			n < UNSENT_MAX ? (int)n : UNSENT_MAX, format_count(a, n + p->beyond),
			p->beyond ? " at most, without the earliest" : "");
		view_panel_note(t->panel, text);
	}
}

void passages_view(const struct incident *i, const struct ringtap_snapshot *last, struct view *v,
	const struct lane_bars *bars)
{
	struct table t = {.i = i, .last = last, .v = v, .bars = bars, .local = UINT32_MAX};

	if (!i->passages || (!i->passages->sent && !i->passages->open && !i->passages->beyond))
		return;
	if (i->passages->sent) {
		add_heat(i, v);
		add_slow(&t);
	}
	if (i->passages->open || i->passages->beyond)
		add_unsent(&t);
}
