/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of ringtap top. Columns and cells stand in the same order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "top.h"
#include "base/util.h"

#define ALL RINGTAP_NO_INDEX

static void set_text(struct cell *cell, const char *text)
{
	printable(cell->text, sizeof(cell->text), text);
}

static void set_bars(struct cell *cell, const struct tally *t)
{
	uint64_t classes[BURST_CLASSES], most = 0;

	tally_classes(t, classes);
	for (unsigned i = 0; i < BURST_CLASSES; i++)
		most = classes[i] > most ? classes[i] : most;
	for (unsigned i = 0; most && i < BURST_CLASSES; i++)
		cell->bar[i] = (float)classes[i] / (float)most;
	cell->number = tally_mean_busy(t);
}

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : NAN;
}

/* Exact bits of the hooks, else the driver's, if it counts them. */
static double bits(const struct tally *t, double seconds, double driver)
{
	double bytes = tally_bytes(t) / seconds;

	if (isnan(bytes) && driver > 0)
		bytes = driver;
	return 8 * bytes;
}

/* ---- ports */

static const struct column port_columns[] = {
	{"APP", 8, 1, CELL_TEXT, false, "application, by its file-prefix"},
	{"PORT", 9, 0, CELL_TEXT, false, "name of the port"},
	{"ID", 2, 12, CELL_COUNT, false, "DPDK's number of it"},
	{"RXPPS", 6, 0, CELL_SI, false, "packets received a second"},
	{"RXBIT/s", 7, 2, CELL_SI, false, "bits received a second, without frame check sequence"},
	{"TXPPS", 6, 0, CELL_SI, false, "packets handed to TX a second"},
	{"TXBIT/s", 7, 3, CELL_SI, false, "bits handed to TX a second"},
	{"POLLS", 6, 5, CELL_SI, false, "RX polls a second"},
	{"BUSY/s", 6, 11, CELL_SI, false, "RX polls a second that brought packets"},
	{"PKT/P", 5, 10, CELL_MEAN, false, "packets an RX poll"},
	{"PKT/B", 5, 6, CELL_MEAN, false, "packets an RX poll that brought any"},
	{"BURSTS", 11, 9, CELL_BARS, false,
		"RX polls by packets: 0, 1, 2+, 4+, 8+, 16+, 32+, 64+, 128+, 256+, 512+"},
	{"MISSED", 6, 4, CELL_SI, true,
		"packets a second that the NIC dropped, its queue was full"},
	{"NOMBUF", 6, 8, CELL_SI, true, "packets a second for which there was no buffer"},
	{"ERR", 5, 13, CELL_SI, true,
		"broken packets a second, and those the driver failed to send"},
	{"UNSENT", 6, 7, CELL_SI, true, "packets a second handed to TX that were not sent"},
};

static void fill_ports(struct table *t, const struct watched *a, const struct span *s)
{
	for (uint32_t i = 0; i < s->to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(s->to, i);
		struct tally rx, tx;
		struct driver_rates d;
		struct row *r;

		if (p->gone)
			continue;
		r = table_add(t);
		if (!r)
			return;
		tally_sum(&rx, s, i, ALL, RINGTAP_RX);
		tally_sum(&tx, s, i, ALL, RINGTAP_TX);
		rates_driver(a, i, &d);
		set_text(&r->cell[0], a->name);
		set_text(&r->cell[1], p->name);
		r->cell[2].number = p->port_id;
		r->cell[3].number = (double)rx.packets / s->seconds;
		r->cell[4].number = bits(&rx, s->seconds, d.ibytes);
		r->cell[5].number = (double)tx.packets / s->seconds;
		r->cell[6].number = bits(&tx, s->seconds, d.obytes);
		r->cell[7].number = (double)rx.calls / s->seconds;
		r->cell[8].number = (double)(rx.calls - rx.empty) / s->seconds;
		r->cell[9].number = tally_mean(&rx);
		r->cell[10].number = tally_mean_busy(&rx);
		set_bars(&r->cell[11], &rx);
		r->cell[12].number = d.imissed;
		r->cell[13].number = d.rx_nombuf;
		r->cell[14].number = d.ierrors + d.oerrors;
		r->cell[15].number = d.unsent;
	}
}

/* ---- queues */

static const struct column queue_columns[] = {
	{"APP", 8, 1, CELL_TEXT, false, "application"},
	{"PORT", 9, 0, CELL_TEXT, false, "name of the port"},
	{"Q", 3, 0, CELL_COUNT, false, "queue"},
	{"DIR", 3, 0, CELL_TEXT, false, "direction"},
	{"THREAD", 8, 2, CELL_TEXT, false, "polling thread"},
	{"PPS", 6, 0, CELL_SI, false, "packets a second"},
	{"BIT/s", 6, 3, CELL_SI, false, "bits a second, without frame check sequence"},
	{"CALLS", 6, 4, CELL_SI, false, "calls of the driver a second"},
	{"BUSY%", 5, 7, CELL_PERCENT, false, "calls that had packets"},
	{"PKT/C", 5, 8, CELL_MEAN, false, "packets a call"},
	{"PKT/B", 5, 5, CELL_MEAN, false, "packets a call that had any"},
	{"P50", 4, 10, CELL_COUNT, false, "median burst of the calls that had packets"},
	{"P99", 4, 11, CELL_COUNT, false, "99th percentile of them"},
	{"MAX", 4, 9, CELL_COUNT, false, "largest burst that was asked for"},
	{"BURSTS", 11, 6, CELL_BARS, false,
		"calls by packets: 0, 1, 2+, 4+, 8+, 16+, 32+, 64+, 128+, 256+, 512+"},
};

static void fill_queue(struct table *t, const struct watched *a, const struct span *s, uint32_t i)
{
	const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s->to, i);
	struct row *r = table_add(t);
	char name[THREAD_NAME_LEN];
	struct tally y = {0};

	if (!r)
		return;
	tally_add(&y, s, i);
	set_text(&r->cell[0], a->name);
	set_text(&r->cell[1], ringtap_snapshot_port(s->to, q->port)->name);
	r->cell[2].number = q->queue;
	set_text(&r->cell[3], q->direction == RINGTAP_TX ? "tx" : "rx");
	set_text(&r->cell[4], thread_name(name, ringtap_snapshot_thread(s->to, q->thread)));
	r->cell[5].number = (double)y.packets / s->seconds;
	r->cell[6].number = bits(&y, s->seconds, NAN);
	r->cell[7].number = (double)y.calls / s->seconds;
	r->cell[8].number = share(y.calls - y.empty, y.calls);
	r->cell[9].number = tally_mean(&y);
	r->cell[10].number = tally_mean_busy(&y);
	if (y.packets) {
		r->cell[11].number = tally_quantile(&y, 0.5);
		r->cell[12].number = tally_quantile(&y, 0.99);
	}
	if (q->direction == RINGTAP_RX)
		r->cell[13].number = q->max_burst;
	set_bars(&r->cell[14], &y);
}

/* Threads met their queues in any order. */
static uint64_t queue_place(const struct ringtap_queue_stats *q)
{
	return (uint64_t)q->port << 32 | (uint64_t)q->queue << 16 |
	       (uint64_t)(q->direction == RINGTAP_TX) << 8 | (q->thread & 0xff);
}

static void fill_queues(struct table *t, const struct watched *a, const struct span *s)
{
	const struct ringtap_snapshot *f = s->to;
	uint64_t last = 0;

	for (uint32_t n = 0; n < f->queue_count; n++) {
		uint32_t next = ALL;

		for (uint32_t i = 0; i < f->queue_count; i++)
			if ((!n || queue_place(ringtap_snapshot_queue(f, i)) > last) &&
				(next == ALL ||
					queue_place(ringtap_snapshot_queue(f, i)) <
						queue_place(ringtap_snapshot_queue(f, next))))
				next = i;
		if (next == ALL)
			return;
		last = queue_place(ringtap_snapshot_queue(f, next));
		if (!ringtap_snapshot_port(f, ringtap_snapshot_queue(f, next)->port)->gone)
			fill_queue(t, a, s, next);
	}
}

/* ---- threads */

static const struct column thread_columns[] = {
	{"APP", 8, 1, CELL_TEXT, false, "application"},
	{"THREAD", 8, 0, CELL_TEXT, false, "polling thread"},
	{"TID", 7, 10, CELL_COUNT, false, "the kernel's number of it, as the application sees it"},
	{"CPU", 3, 4, CELL_COUNT, false, "CPU that it ran on last"},
	{"BUSY%", 5, 0, CELL_PERCENT, false,
		"time from a poll that brought packets to the next poll"},
	{"CYC/PKT", 7, 2, CELL_SI, false, "busy cycles a packet received"},
	{"PPS", 6, 0, CELL_SI, false, "packets received a second"},
	{"POLLS", 6, 3, CELL_SI, false, "RX polls a second"},
	{"RUN%", 5, 9, CELL_PERCENT, false, "time on a CPU, as the kernel says"},
	{"WAIT%", 5, 5, CELL_PERCENT, true, "time that it wanted to run but had no CPU"},
	{"PREEMPT", 7, 8, CELL_SI, true, "involuntary context switches a second"},
	{"WORST", 7, 6, CELL_NS, false, "longest time between two RX polls"},
	{"IDLEGAP", 7, 11, CELL_NS, false, "longest of them without work"},
	{"MICROB", 6, 7, CELL_SI, false, "packets of the largest microburst"},
};

static void fill_threads(struct table *t, const struct watched *a, const struct span *s)
{
	for (uint32_t i = 0; i < s->to->thread_count; i++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s->to, i);
		char name[THREAD_NAME_LEN];
		struct thread_rates x;
		struct row *r;

		if (!th->alive)
			continue;
		r = table_add(t);
		if (!r)
			return;
		rates_thread(a, s, i, &x);
		set_text(&r->cell[0], a->name);
		set_text(&r->cell[1], thread_name(name, th));
		r->cell[2].number = th->tid ? th->tid : NAN;
		r->cell[3].number = th->tid ? th->cpu : NAN;
		r->cell[4].number = x.busy;
		r->cell[5].number = x.cycles_per_packet;
		r->cell[6].number = x.packets;
		r->cell[7].number = x.polls;
		r->cell[8].number = x.cpu;
		r->cell[9].number = x.wait;
		r->cell[10].number = x.preempted;
		r->cell[11].number = x.worst_gap_ns > 0 ? x.worst_gap_ns : NAN;
		r->cell[12].number = x.worst_idle_gap_ns > 0 ? x.worst_idle_gap_ns : NAN;
		r->cell[13].number = x.largest_microburst ? (double)x.largest_microburst : NAN;
	}
}

/* ---- pools */

static const struct column pool_columns[] = {
	{"APP", 8, 1, CELL_TEXT, false, "application"},
	{"POOL", 14, 0, CELL_TEXT, false, "name of the mempool"},
	{"SIZE", 7, 0, CELL_COUNT, false, "objects"},
	{"IN USE", 7, 0, CELL_COUNT, false, "objects that the application or its NICs have"},
	{"USE%", 5, 0, CELL_PERCENT, false, "share of them"},
	{"FREE", 7, 3, CELL_COUNT, false, "objects in the pool and its caches"},
	{"CACHED", 6, 4, CELL_COUNT, false,
		"of them in caches of lcores: no other lcore gets them"},
	{"LOWEST", 7, 2, CELL_COUNT, false, "fewest free ones that were seen"},
	{"OBJECT", 6, 7, CELL_COUNT, false, "bytes of an object with all that belongs to it"},
	{"OPS", 9, 6, CELL_TEXT, false, "how the pool is kept"},
	{"PAGE", 4, 5, CELL_BYTES, false, "size of the memory's pages"},
	{"MEMORY", 8, 8, CELL_TEXT, false, "where it is from"},
};

static const char *memory_name(enum ringtap_memory m)
{
	return m == RINGTAP_MEMORY_DPDK ? "dpdk" : m == RINGTAP_MEMORY_EXTERNAL ? "external" : "?";
}

static void fill_pools(struct table *t, const struct watched *a, const struct span *s)
{
	for (uint32_t i = 0; i < s->to->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s->to, i);
		double used = p->available < p->size ? p->size - p->available : 0;
		struct row *r;

		if (p->gone)
			continue;
		r = table_add(t);
		if (!r)
			return;
		set_text(&r->cell[0], a->name);
		set_text(&r->cell[1], p->name);
		r->cell[2].number = p->size;
		r->cell[3].number = used;
		r->cell[4].number = p->size ? used / p->size : NAN;
		r->cell[5].number = p->available;
		r->cell[6].number = p->in_caches;
		r->cell[7].number = p->lowest;
		r->cell[8].number = p->object_bytes;
		set_text(&r->cell[9], p->ops);
		r->cell[10].number = p->page_bytes ? (double)p->page_bytes : NAN;
		set_text(&r->cell[11], p->pinned_external ? "external" : memory_name(p->memory));
	}
}

/* ---- latency */

static const struct column latency_columns[] = {
	{"APP", 8, 1, CELL_TEXT, false, "application"},
	{"RXPORT", 9, 0, CELL_TEXT, false, "port that received"},
	{"TXPORT", 9, 0, CELL_TEXT, false, "port that sent"},
	{"THREAD", 8, 5, CELL_TEXT, false, "thread that sent"},
	{"SURE", 8, 0, CELL_TEXT, false, "certain, or inferred: the mark was lost"},
	{"TIMED/s", 7, 3, CELL_SI, false, "packets timed a second"},
	{"MEAN", 7, 2, CELL_NS, false, "from receive to send, mean"},
	{"P50", 7, 0, CELL_NS, false, "median"},
	{"P90", 7, 6, CELL_NS, false, "90th percentile"},
	{"P99", 7, 0, CELL_NS, false, "99th percentile"},
	{"P99.9", 7, 4, CELL_NS, false, "99.9th percentile"},
	{"MAX", 7, 1, CELL_NS, false, "largest since the collector is on"},
};

static void fill_latency(struct table *t, const struct watched *a, const struct span *s)
{
	for (uint32_t i = 0; i < s->to->pair_count; i++) {
		const struct ringtap_pair_stats *p = ringtap_snapshot_pair(s->to, i);
		struct latency_rates l;
		char name[THREAD_NAME_LEN];
		struct row *r;

		if (p->rx_port == RINGTAP_NO_INDEX ||
			ringtap_snapshot_port(s->to, p->rx_port)->gone ||
			ringtap_snapshot_port(s->to, p->tx_port)->gone)
			continue;
		r = table_add(t);
		if (!r)
			return;
		rates_latency(a, s, i, &l);
		set_text(&r->cell[0], a->name);
		set_text(&r->cell[1], ringtap_snapshot_port(s->to, p->rx_port)->name);
		set_text(&r->cell[2], ringtap_snapshot_port(s->to, p->tx_port)->name);
		set_text(&r->cell[3], thread_name(name, ringtap_snapshot_thread(s->to, p->thread)));
		set_text(&r->cell[4], p->inferred ? "inferred" : "certain");
		r->cell[5].number = (double)l.count / s->seconds;
		r->cell[6].number = l.mean_ns;
		r->cell[7].number = l.p50_ns;
		r->cell[8].number = l.p90_ns;
		r->cell[9].number = l.p99_ns;
		r->cell[10].number = l.p999_ns;
		r->cell[11].number = l.max_ns;
	}
}

/* ---- gaps and microbursts */

static const struct column gap_columns[] = {
	{"APP", 8, 1, CELL_TEXT, false, "application"},
	{"THREAD", 8, 0, CELL_TEXT, false, "polling thread"},
	{"WHAT", 10, 0, CELL_TEXT, false,
		"idle gap: nothing to do between two polls; busy gap: packets to work on; "
		"microburst: "
		"polls that all brought packets"},
	{"BEGAN", 15, 0, CELL_CLOCK, false, "local time"},
	{"LENGTH", 7, 0, CELL_NS, false, "how long it took"},
	{"PACKETS", 8, 0, CELL_COUNT, false, "of the poll before it, or of the microburst"},
	{"PORT", 9, 2, CELL_TEXT, false, "port of the poll before it"},
	{"Q", 3, 3, CELL_COUNT, false, "its queue"},
};

/* The longest since a while ago are still of interest: not only of the interval. */
static void fill_thread_gaps(struct table *t, const struct watched *a,
	const struct ringtap_snapshot *f, const struct ringtap_thread_stats *th)
{
	char name[THREAD_NAME_LEN];
	struct row *r;

	thread_name(name, th);
	for (uint32_t i = 0; i < th->gap_count + th->microburst_count; i++) {
		const struct ringtap_gap *g = i < th->gap_count ? ringtap_thread_gap(th, i) : NULL;
		const struct ringtap_microburst *m =
			g ? NULL : ringtap_thread_microburst(th, i - th->gap_count);

		r = table_add(t);
		if (!r)
			return;
		set_text(&r->cell[0], a->name);
		set_text(&r->cell[1], name);
		set_text(&r->cell[2], m ? "microburst" : g->packets ? "busy gap" : "idle gap");
		r->cell[3].number = (double)(m ? m->start_ns : g->start_ns);
		r->cell[4].number = (double)(m ? m->ns : g->ns);
		r->cell[5].number = (double)(m ? m->packets : g->packets);
		if (g && g->port != RINGTAP_NO_INDEX) {
			set_text(&r->cell[6], ringtap_snapshot_port(f, g->port)->name);
			r->cell[7].number = g->queue;
		}
	}
}

static void fill_gaps(struct table *t, const struct watched *a, const struct span *s)
{
	for (uint32_t i = 0; i < s->to->thread_count; i++)
		if (ringtap_snapshot_thread(s->to, i)->alive)
			fill_thread_gaps(t, a, s->to, ringtap_snapshot_thread(s->to, i));
}

#define COLUMNS(c) c, sizeof(c) / sizeof((c)[0])

const struct view views[VIEW_COUNT] = {
	[VIEW_PORTS] = {"ports", COLUMNS(port_columns), "no ports", RINGTAP_POLLS, 16, fill_ports},
	[VIEW_QUEUES] = {"queues", COLUMNS(queue_columns), "no thread polls any queue",
		RINGTAP_POLLS, 15, fill_queues},
	[VIEW_THREADS] = {"threads", COLUMNS(thread_columns), "no thread polls any queue",
		RINGTAP_BUSY, 14, fill_threads},
	[VIEW_POOLS] = {"pools", COLUMNS(pool_columns), "no mempools", RINGTAP_POOLS, 12,
		fill_pools},
	[VIEW_LATENCY] = {"latency", COLUMNS(latency_columns),
		"no packet was received and sent again", RINGTAP_LATENCY, 12, fill_latency},
	[VIEW_GAPS] = {"gaps", COLUMNS(gap_columns), "no gaps yet", RINGTAP_GAPS, 4, fill_gaps},
};

void view_fill(enum top_view view, struct table *t, const struct watch *w)
{
	t->columns = views[view].columns;
	t->column_count = views[view].column_count;
	table_clear(t);
	for (size_t i = 0; i < w->count; i++) {
		struct span s;

		if (!w->list[i]->ended && span_of(w->list[i], &s))
			views[view].fill(t, w->list[i], &s);
	}
}
