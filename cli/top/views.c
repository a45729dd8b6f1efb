/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of ringtap top. */
#include <math.h>
#include <stdlib.h>

#include "views.h"

#define APP                                              \
	{                                                \
		"APP", 8, 1, RT_M_APP_NAME, false, false \
	}

#define CURVE(title, rank)                                               \
	{                                                                \
		title, METRIC_BARS, rank, RT_M_LAST_MINUTE, false, false \
	}

static const struct column app_columns[] = {
	{"APP", 16, 0, RT_M_APP_NAME, false, false},
	{"RXPPS", 6, 0, RT_M_PACKET_RATE, false, false},
	{"RXBIT/s", 7, 4, RT_M_BIT_RATE, false, false},
	{"TXPPS", 6, 0, RT_M_PACKET_RATE, true, false},
	{"TXBIT/s", 7, 5, RT_M_BIT_RATE, true, false},
	{"BUSY%", 5, 0, RT_M_BUSY_SHARE, false, false},
	{"WORST", 7, 6, RT_M_MAX_GAP, false, false},
	{"P99", 7, 7, RT_M_P99, false, false},
	{"MISSED", 6, 2, RT_M_IMISSED, false, true},
	{"NO-MBUF", 7, 3, RT_M_NOMBUF, false, true},
	{"ERRORS", 6, 8, RT_M_ERRORS, false, true},
	{"REFUSED", 7, 1, RT_M_UNSENT, false, true},
	CURVE("60 s OF RXPPS", 0),
};

static const struct column port_columns[] = {
	APP,
	{"PORT", 9, 0, RT_M_PORT_NAME, false, false},
	{"ID", 2, 12, RT_M_PORT_ID, false, false},
	{"RXPPS", 6, 0, RT_M_PACKET_RATE, false, false},
	{"RXBIT/s", 7, 2, RT_M_BIT_RATE, false, false},
	{"TXPPS", 6, 0, RT_M_PACKET_RATE, true, false},
	{"TXBIT/s", 7, 3, RT_M_BIT_RATE, true, false},
	{"POLLS", 6, 5, RT_M_CALL_RATE, false, false},
	{"BUSY/s", 6, 11, RT_M_BUSY_RATE, false, false},
	{"PKT/P", 5, 10, RT_M_PER_CALL, false, false},
	{"PKT/B", 5, 6, RT_M_PER_BUSY_CALL, false, false},
	{"BURSTS", 11, 9, RT_M_BURSTS, false, false},
	{"MISSED", 6, 4, RT_M_IMISSED, false, true},
	{"NO-MBUF", 7, 8, RT_M_NOMBUF, false, true},
	{"ERRORS", 6, 13, RT_M_ERRORS, false, true},
	{"REFUSED", 7, 7, RT_M_UNSENT, false, true},
	CURVE("60 s OF RXPPS", 8),
};

static const struct column queue_columns[] = {
	APP,
	{"PORT", 9, 0, RT_M_QUEUE_PORT, false, false},
	{"Q", 3, 0, RT_M_QUEUE_NUMBER, false, false},
	{"DIR", 3, 0, RT_M_QUEUE_DIRECTION, false, false},
	{"THREAD", 8, 2, RT_M_QUEUE_THREAD, false, false},
	{"PPS", 6, 0, RT_M_PACKET_RATE, false, false},
	{"BIT/s", 6, 3, RT_M_BIT_RATE, false, false},
	{"CALLS", 6, 4, RT_M_CALL_RATE, false, false},
	{"BUSY%", 5, 7, RT_M_BUSY_CALLS, false, false},
	{"PKT/C", 5, 8, RT_M_PER_CALL, false, false},
	{"PKT/B", 5, 5, RT_M_PER_BUSY_CALL, false, false},
	{"P50", 4, 10, RT_M_BURST_P50, false, false},
	{"P99", 4, 11, RT_M_BURST_P99, false, false},
	{"MAX", 4, 9, RT_M_MAX_BURST, false, false},
	{"BURSTS", 11, 6, RT_M_BURSTS, false, false},
	CURVE("60 s OF PPS", 9),
};

static const struct column thread_columns[] = {
	APP,
	{"THREAD", 8, 0, RT_M_THREAD_NAME, false, false},
	{"TID", 7, 10, RT_M_TID, false, false},
	{"CPU", 3, 4, RT_M_CPU, false, false},
	{"BUSY%", 5, 0, RT_M_BUSY_SHARE, false, false},
	{"CYC/PKT", 7, 2, RT_M_CYCLES, false, false},
	{"PPS", 6, 0, RT_M_THREAD_PPS, false, false},
	{"POLLS", 6, 3, RT_M_THREAD_POLLS, false, false},
	{"RUN%", 5, 9, RT_M_CPU_SHARE, false, false},
	{"WAIT%", 5, 5, RT_M_WAIT_SHARE, false, true},
	{"PREEMPT", 7, 8, RT_M_PREEMPTION_RATE, false, true},
	{"WORST", 7, 6, RT_M_MAX_GAP, false, false},
	{"IDLEGAP", 7, 11, RT_M_MAX_IDLE_GAP, false, false},
	{"MICROB", 6, 7, RT_M_MAX_MICROBURST, false, false},
	{"USAGE%", 6, 12, RT_M_LCORE_USAGE, false, false},
	CURVE("60 s OF BUSY%", 7),
};

static const struct column pool_columns[] = {
	APP,
	{"POOL", 14, 0, RT_M_POOL_NAME, false, false},
	{"SIZE", 7, 0, RT_M_POOL_SIZE, false, false},
	{"IN USE", 7, 0, RT_M_POOL_USED, false, false},
	{"USE%", 5, 0, RT_M_POOL_SHARE, false, false},
	{"FREE", 7, 3, RT_M_POOL_FREE, false, false},
	{"CACHED", 6, 4, RT_M_POOL_CACHED, false, false},
	{"LOWEST", 7, 2, RT_M_POOL_MIN, false, false},
	{"OBJECT", 6, 7, RT_M_POOL_OBJECT, false, false},
	{"OPS", 9, 6, RT_M_POOL_OPS, false, false},
	{"PAGE", 5, 5, RT_M_POOL_PAGE, false, false},
	{"MEMORY", 8, 8, RT_M_POOL_MEMORY, false, false},
	CURVE("60 s OF USE%", 4),
};

static const struct column ring_columns[] = {
	APP,
	{"RING", 14, 0, RT_M_RING_NAME, false, false},
	{"CAPACITY", 8, 0, RT_M_RING_CAPACITY, false, false},
	{"IN", 7, 0, RT_M_RING_USED, false, false},
	{"FILL%", 5, 0, RT_M_RING_SHARE, false, false},
	{"PEAK", 7, 3, RT_M_RING_PEAK, false, false},
	{"PEAK%", 5, 0, RT_M_RING_PEAK_SHARE, false, false},
	{"HIGHEST", 7, 2, RT_M_RING_HIGHEST, false, false},
	CURVE("60 s OF PEAK%", 1),
};

static const struct column xstat_columns[] = {
	APP,
	{"PORT", 9, 1, RT_M_XSTAT_PORT, false, false},
	{"XSTAT", 24, 0, RT_M_XSTAT_NAME, false, false},
	{"VALUE", 15, 0, RT_M_XSTAT_VALUE, false, false},
	{"RATE/s", 7, 0, RT_M_XSTAT_RATE, false, false},
};

static const struct column device_columns[] = {
	APP,
	{"DEVICE", 13, 0, RT_M_DEVICE_NAME, false, false},
	{"KIND", 9, 3, RT_M_DEVICE_KIND, false, false},
	{"PART", 9, 2, RT_M_DEVICE_PART, false, false},
	{"STAT", 20, 0, RT_M_DEVICE_STAT, false, false},
	{"VALUE", 11, 0, RT_M_DEVICE_VALUE, false, false},
	{"RATE/s", 7, 0, RT_M_DEVICE_RATE, false, false},
};

static const struct column latency_columns[] = {
	APP,
	{"RXPORT", 9, 0, RT_M_RX_PORT, false, false},
	{"TXPORT", 9, 0, RT_M_TX_PORT, false, false},
	{"THREAD", 8, 5, RT_M_TX_THREAD, false, false},
	{"INFERRED", 8, 0, RT_M_INFERRED, false, false},
	{"TIMED/s", 7, 3, RT_M_TIMED_RATE, false, false},
	{"MEAN", 7, 2, RT_M_MEAN, false, false},
	{"P50", 7, 0, RT_M_P50, false, false},
	{"P90", 7, 6, RT_M_P90, false, false},
	{"P99", 7, 0, RT_M_P99, false, false},
	{"P99.9", 7, 4, RT_M_P999, false, false},
	{"MAX", 7, 1, RT_M_MAX, false, false},
	CURVE("60 s OF P99", 4),
};

static const struct column gap_columns[] = {
	APP,
	{"THREAD", 8, 0, RT_M_GAP_THREAD, false, false},
	{"WHAT", 10, 0, RT_M_GAP_KIND, false, false},
	{"BEGAN", 15, 0, RT_M_GAP_START, false, false},
	{"LENGTH", 7, 0, RT_M_GAP_NS, false, false},
	{"PACKETS", 8, 0, RT_M_GAP_PACKETS, false, false},
	{"PORT", 9, 2, RT_M_GAP_PORT, false, false},
	{"Q", 3, 3, RT_M_GAP_QUEUE, false, false},
};

/* Without the curve behind them. */
#define COLUMNS(c) c, sizeof(c) / sizeof((c)[0]) - 1

const struct view views[VIEW_COUNT] = {
	[VIEW_APPS] = {"apps", 'a', RT_OBJECT_APP, COLUMNS(app_columns), 1, "no applications",
		RINGTAP_BUSY, 12},
	[VIEW_PORTS] = {"ports", 'p', RT_OBJECT_PORT, COLUMNS(port_columns), 3, "no ports",
		RINGTAP_POLLS, 16},
	[VIEW_QUEUES] = {"queues", 'u', RT_OBJECT_QUEUE, COLUMNS(queue_columns), 5,
		"no thread polls any queue", RINGTAP_POLLS, 15},
	[VIEW_THREADS] = {"threads", 't', RT_OBJECT_THREAD, COLUMNS(thread_columns), 4,
		"no thread polls any queue", RINGTAP_BUSY, 15},
	[VIEW_POOLS] = {"pools", 'm', RT_OBJECT_POOL, COLUMNS(pool_columns), 4, "no mempools",
		RINGTAP_POOLS, 12},
	[VIEW_RINGS] = {"rings", 'k', RT_OBJECT_RING, COLUMNS(ring_columns), 6,
		"no rings but those of mempools", RINGTAP_POOLS, 8},
	[VIEW_XSTATS] = {"xstats", 'x', RT_OBJECT_XSTAT, COLUMNS(xstat_columns) + 1, 0,
		"no driver has an extended statistic that is not 0", RINGTAP_XSTATS, 5},
	[VIEW_DEVICES] = {"devices", 'd', RT_OBJECT_DEVICE, COLUMNS(device_columns) + 1, 0,
		"no event, crypto or DMA device in use has counted anything", RINGTAP_DEVICES, 7},
	[VIEW_LATENCY] = {"latency", 'l', RT_OBJECT_PAIR, COLUMNS(latency_columns), 9,
		"no packet was received and sent again", RINGTAP_LATENCY, 12},
	[VIEW_GAPS] = {"gaps", 'g', RT_OBJECT_GAP, COLUMNS(gap_columns) + 1, 0, "no gaps yet",
		RINGTAP_GAPS, 4},
	[VIEW_FLOWS] = {"flows", 'f', RT_OBJECT_APP, flow_view_columns, FLOW_VIEW_COLUMNS, 0,
		"no packets yet; the first second of them takes some more", 0, FLOW_VIEW_SORT},
};

static struct row *add_row(struct table *t, const struct watched *a, uint32_t index)
{
	struct row *r = table_add(t);

	if (!r)
		return NULL;
	r->app = a;
	r->index = index;
	r->port = r->thread = RINGTAP_NO_INDEX;
	printable(r->cell[0].text, sizeof(r->cell[0].text), a->name);
	return r;
}

static void add_subject(
	struct table *t, const struct watched *a, const struct subject *x, uint32_t index)
{
	struct row *r = add_row(t, a, index);

	if (r && (x->object == RT_OBJECT_PORT || x->queue))
		r->port = x->queue ? x->queue->port : index;
	if (r && x->thread)
		r->thread = x->queue ? x->queue->thread : x->pair ? x->pair->thread : index;
	for (unsigned i = 1; r && i < t->column_count; i++)
		metric_get(x, t->columns[i].id, t->columns[i].tx, &r->cell[i]);
}

/* The longest since a while ago are still of interest: not only those of the interval. */
static void add_gaps(struct table *t, const struct watched *a, const struct subject *x)
{
	struct span whole = span_total(a);
	struct subject thread = *x, y;

	thread.span = &whole;
	for (uint32_t i = 0; subject_gap(&y, &thread, i); i++)
		add_subject(t, a, &y, x->index);
}

/* Rates are added up; of other values the largest is shown. Unknown ones are left out. */
static void combine(struct metric_value *all, enum rt_unit unit, double v)
{
	if (unit != RT_UNIT_RATE || isnan(all->number))
		all->number = fmax(all->number, v);
	else if (!isnan(v))
		all->number += v;
}

static void add_application(struct table *t, const struct watched *a, const struct span *s)
{
	static const enum rt_metric_object parts[] = {
		RT_OBJECT_PORT, RT_OBJECT_THREAD, RT_OBJECT_PAIR};
	struct row *r = add_row(t, a, 0);
	struct metric_value v;
	struct subject x;

	for (unsigned p = 0; r && p < 3; p++) {
		for (uint32_t i = 0; i < subject_count(s->to, parts[p]); i++) {
			subject_make(&x, s, parts[p], i, true);
			if (subject_gone(&x) || !subject_wanted(s, parts[p], i))
				continue;
			for (unsigned c = 1; c < t->column_count; c++) {
				const struct rt_metric *m = &rt_metrics[t->columns[c].id];
				bool port = m->object == RT_OBJECT_CALLS ||
					    m->object == RT_OBJECT_DRIVER;

				if ((port ? RT_OBJECT_PORT : m->object) != parts[p])
					continue;
				metric_get(&x, t->columns[c].id, t->columns[c].tx, &v);
				combine(&r->cell[c], m->unit, v.number);
			}
		}
	}
}

/* Queues are sorted by port, number and direction; others stand as they are. */
static int by_place(const void *left, const void *right, void *snapshot)
{
	uint64_t place[2];

	for (unsigned i = 0; i < 2; i++) {
		const struct ringtap_queue_stats *q =
			ringtap_snapshot_queue(snapshot, *(const uint32_t *)(i ? right : left));

		place[i] = (uint64_t)q->port << 32 | (uint64_t)q->queue << 16 |
			   (uint64_t)(q->direction == RINGTAP_TX) << 8 | (q->thread & 0xff);
	}
	return (place[0] > place[1]) - (place[0] < place[1]);
}

/* Drivers and devices have hundreds of statistics of what does not happen. */
static bool is_zero(const struct subject *x)
{
	return x->xstat ? !x->xstat->value : x->device && !x->device->value;
}

static void fill(
	const struct view *v, struct table *t, const struct watched *a, const struct span *s)
{
	uint32_t count = subject_count(s->to, v->object);
	uint32_t *order = calloc(count, sizeof(*order));

	for (uint32_t i = 0; order && i < count; i++)
		order[i] = i;
	if (order && v->object == RT_OBJECT_QUEUE)
		qsort_r(order, count, sizeof(*order), by_place, (void *)s->to);
	for (uint32_t i = 0; order && i < count; i++) {
		struct subject x;

		subject_make(&x, s, v->object, order[i], true);
		if (subject_gone(&x) || !subject_wanted(s, v->object, order[i]) || is_zero(&x))
			continue;
		if (v->object == RT_OBJECT_GAP)
			add_gaps(t, a, &x);
		else
			add_subject(t, a, &x, order[i]);
	}
	free(order);
}

static void fill_flows(struct table *t, const struct watched *a, struct flows_live *flows)
{
	if (!flows)
		return;
	flow_view_add(t, a, flows_live_rows(flows, a->dir));
	flows_live_release(flows);
}

void view_fill(enum top_view view, struct table *t, const struct watch *w,
	const struct curves *curves, struct flows_live *flows)
{
	const struct view *v = &views[view];

	t->columns = v->columns;
	t->column_count = v->column_count;
	table_clear(t);
	for (size_t i = 0; i < w->count; i++) {
		struct span s;

		if (w->list[i]->ended || !span_of(w->list[i], &s))
			continue;
		if (view == VIEW_FLOWS)
			fill_flows(t, w->list[i], flows);
		else if (view == VIEW_APPS)
			add_application(t, w->list[i], &s);
		else
			fill(v, t, w->list[i], &s);
	}
	if (!curves || !v->curve)
		return;
	for (size_t i = 0; i < t->row_count; i++)
		curves_get(curves, view, &t->rows[i],
			rt_metrics[v->columns[v->curve].id].unit == RT_UNIT_SHARE,
			&t->rows[i].cell[t->column_count]);
	t->column_count++;
}

const char *view_empty(enum top_view view, const struct watch *w)
{
	for (size_t i = 0; view == VIEW_RINGS && i < w->count; i++) {
		const struct watched *a = w->list[i];

		if (!a->ended && a->now && a->now->rings_beyond)
			return "no ring can be read: the kernel refuses process_vm_readv() to the "
			       "application; allow it in its seccomp profile";
	}
	return views[view].empty;
}
