/* SPDX-License-Identifier: BSD-3-Clause */
/* Families of counters and gauges. docs/statistics.md lists them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

/* ---- what is one */

bool same_port(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	return !strcmp(ringtap_snapshot_port(f, a)->name, ringtap_snapshot_port(f, b)->name);
}

bool first_port(const struct ringtap_snapshot *f, uint32_t port)
{
	for (uint32_t i = 0; i < port; i++)
		if (same_port(f, i, port))
			return false;
	return true;
}

bool same_thread(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	char left[THREAD_NAME_LEN], right[THREAD_NAME_LEN];

	return !strcmp(thread_name(left, ringtap_snapshot_thread(f, a)),
		thread_name(right, ringtap_snapshot_thread(f, b)));
}

bool first_thread(const struct ringtap_snapshot *f, uint32_t thread)
{
	for (uint32_t i = 0; i < thread; i++)
		if (same_thread(f, i, thread))
			return false;
	return true;
}

static bool same_queue(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	const struct ringtap_queue_stats *x = ringtap_snapshot_queue(f, a),
					 *y = ringtap_snapshot_queue(f, b);

	return x->queue == y->queue && x->direction == y->direction &&
	       same_port(f, x->port, y->port);
}

bool queue_sum(const struct ringtap_snapshot *f, uint32_t i, struct tally *t)
{
	static const struct ringtap_snapshot nothing;
	const struct span s = {.from = &nothing, .to = f, .seconds = 1};

	for (uint32_t k = 0; k < i; k++)
		if (same_queue(f, k, i))
			return false;
	memset(t, 0, sizeof(*t));
	for (uint32_t k = i; k < f->queue_count; k++)
		if (same_queue(f, k, i))
			tally_add(t, &s, k);
	return true;
}

char *queue_labels(char buf[LABELS_LEN], const struct exported *x, uint32_t i)
{
	const struct ringtap_queue_stats *q = ringtap_snapshot_queue(x->f, i);
	char queue[16];

	snprintf(queue, sizeof(queue), "%u", q->queue);
	return export_labels(buf, "app", x->label, "port",
		ringtap_snapshot_port(x->f, q->port)->name, "queue", queue, "direction",
		q->direction == RINGTAP_TX ? "tx" : "rx", NULL);
}

char *thread_labels(char buf[LABELS_LEN], const struct exported *x, uint32_t i)
{
	char name[THREAD_NAME_LEN];

	return export_labels(buf, "app", x->label, "thread",
		thread_name(name, ringtap_snapshot_thread(x->f, i)), NULL);
}

/* ---- ports */

static void export_port_info(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN], id[16];

	export_family(t, "ringtap_port", "info", "Ports, with their driver and number.");
	for (; count--; x++) {
		for (uint32_t i = 0; i < x->f->port_count; i++) {
			const struct ringtap_port_stats *p = ringtap_snapshot_port(x->f, i);

			if (p->gone)
				continue;
			snprintf(id, sizeof(id), "%u", p->port_id);
			export_number(t, "",
				export_labels(labels, "app", x->label, "port", p->name, "id", id,
					"driver", p->driver, NULL),
				1);
		}
	}
}

static void export_links(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];

	for (int speed = 0; speed < 2; speed++) {
		export_family(t, speed ? "ringtap_port_speed_bytes" : "ringtap_port_link_up",
			"gauge",
			speed ? "Link speed in bytes per second, as far as it is known."
			      : "1 if the link is up.");
		for (size_t n = 0; n < count; n++) {
			for (uint32_t i = 0; i < x[n].f->port_count; i++) {
				const struct ringtap_port_stats *p =
					ringtap_snapshot_port(x[n].f, i);

				if (p->gone || (speed && !p->link_mbps))
					continue;
				export_labels(labels, "app", x[n].label, "port", p->name, NULL);
				export_number(t, "", labels,
					speed ? p->link_mbps * 125000.0 : p->link_up);
			}
		}
	}
}

static const struct {
	const char *name, *help;
	size_t offset;
} port_counters[] = {
#define COUNTER(name, field, help)                                                     \
	{                                                                              \
		"ringtap_port_" name, help, offsetof(struct ringtap_port_stats, field) \
	}
	COUNTER("rx_packets", ipackets, "Packets received, as the driver counts them."),
	COUNTER("tx_packets", opackets, "Packets sent, as the driver counts them."),
	COUNTER("rx_bytes", ibytes, "Bytes received, if the driver counts them."),
	COUNTER("tx_bytes", obytes, "Bytes sent, if the driver counts them."),
	COUNTER("rx_missed_packets", imissed,
		"Packets that the NIC dropped as its queue was full (imissed)."),
	COUNTER("rx_nombuf_packets", rx_nombuf, "Packets for which there was no buffer."),
	COUNTER("rx_errors", ierrors, "Packets received broken."),
	COUNTER("tx_errors", oerrors, "Packets that the driver failed to send."),
#undef COUNTER
};

static uint64_t port_counter(const struct ringtap_port_stats *p, size_t c)
{
	return *(const uint64_t *)((const char *)p + port_counters[c].offset);
}

static void export_ports(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];

	export_port_info(t, x, count);
	export_links(t, x, count);
	for (size_t c = 0; c < sizeof(port_counters) / sizeof(port_counters[0]); c++) {
		export_family(t, port_counters[c].name, "counter", port_counters[c].help);
		for (size_t n = 0; n < count; n++) {
			const struct ringtap_snapshot *f = x[n].f;

			for (uint32_t i = 0; i < f->port_count; i++) {
				uint64_t sum = 0;
				bool asked = false;

				if (!first_port(f, i))
					continue;
				for (uint32_t k = i; k < f->port_count; k++)
					asked |= same_port(f, i, k) &&
						 ringtap_snapshot_port(f, k)->read_ns;
				/* Not known yet is not nothing. */
				if (!asked)
					continue;
				for (uint32_t k = i; k < f->port_count; k++)
					if (same_port(f, i, k))
						sum += port_counter(ringtap_snapshot_port(f, k), c);
				export_labels(labels, "app", x[n].label, "port",
					ringtap_snapshot_port(f, i)->name, NULL);
				export_count(t, "", labels, sum);
			}
		}
	}
}

/* ---- queues */

static void export_queues(struct export_text *t, const struct exported *x, size_t count)
{
	static const char *const names[] = {"ringtap_queue_packets", "ringtap_queue_bytes",
		"ringtap_queue_calls", "ringtap_queue_empty_calls"};
	static const char *const help[] = {
		"Packets received from, or handed over to, the driver, as the probe counts them.",
		"Bytes of them, without frame check sequence.", "RX polls, or calls of TX.",
		"Of them, those without packets."};
	char labels[LABELS_LEN];
	struct tally y;

	for (size_t c = 0; c < sizeof(names) / sizeof(names[0]); c++) {
		export_family(t, names[c], "counter", help[c]);
		for (size_t n = 0; n < count; n++) {
			for (uint32_t i = 0; i < x[n].f->queue_count; i++) {
				uint64_t v;

				if (!queue_sum(x[n].f, i, &y))
					continue;
				/* Not counted is not nothing. */
				if (c == 1 && !y.byte_packets &&
					!(x[n].f->collectors & RINGTAP_BYTES))
					continue;
				v = c == 0   ? y.packets
				    : c == 1 ? y.bytes
				    : c == 2 ? y.calls
					     : y.empty;
				export_count(t, "", queue_labels(labels, &x[n], i), v);
			}
		}
	}
}

/* ---- threads */

/* Cycles become seconds by the frequency of the first snapshot: a counter must not go back when the
 * frequency is measured better. */
static double busy_seconds(const struct exported *x, const struct ringtap_thread_stats *t)
{
	return (double)t->busy_cycles / x->app->tsc_hz;
}

static double idle_seconds(const struct exported *x, const struct ringtap_thread_stats *t)
{
	return (double)t->idle_cycles / x->app->tsc_hz;
}

static double cpu_seconds(const struct exported *x, const struct ringtap_thread_stats *t)
{
	return (double)t->cpu_ns / 1e9;
}

static double wait_seconds(const struct exported *x, const struct ringtap_thread_stats *t)
{
	return (double)t->wait_ns / 1e9;
}

static double preemptions(const struct exported *x, const struct ringtap_thread_stats *t)
{
	return (double)t->preempted;
}

static double microbursts(const struct exported *x, const struct ringtap_thread_stats *t)
{
	return (double)t->busy_periods;
}

static const struct {
	const char *name, *help;
	double (*value)(const struct exported *x, const struct ringtap_thread_stats *t);
	bool kernel; /* not known before it was asked */
} thread_counters[] = {
	{"ringtap_thread_busy_seconds",
		"Time from polls that brought packets to the thread's next poll.", busy_seconds,
		false},
	{"ringtap_thread_idle_seconds", "Time from empty polls to the thread's next poll.",
		idle_seconds, false},
	{"ringtap_thread_cpu_seconds", "Time on a CPU, as the kernel counts it.", cpu_seconds,
		true},
	{"ringtap_thread_wait_seconds", "Time ready to run, but without a CPU.", wait_seconds,
		true},
	{"ringtap_thread_preemptions", "Involuntary context switches.", preemptions, true},
	{"ringtap_thread_busy_stretches", "Stretches of polls that all brought packets.",
		microbursts, false},
};

static void export_worst_gaps(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];

	export_family(t, "ringtap_thread_worst_gap_seconds", "gauge",
		"Longest time between two polls, of about the last 16 seconds.");
	for (; count--; x++) {
		for (uint32_t i = 0; i < x->f->thread_count; i++) {
			const struct ringtap_thread_stats *th = ringtap_snapshot_thread(x->f, i);
			double worst = 0;

			if (!first_thread(x->f, i) || !(x->f->collectors & RINGTAP_GAPS))
				continue;
			for (uint32_t k = i; k < x->f->thread_count; k++)
				if (same_thread(x->f, i, k) &&
					ringtap_snapshot_thread(x->f, k)->gap_count)
					worst = fmax(
						worst, (double)ringtap_thread_gap(
							       ringtap_snapshot_thread(x->f, k), 0)
								       ->ns /
							       1e9);
			if (th->gap_count || worst > 0)
				export_number(t, "", thread_labels(labels, x, i), worst);
		}
	}
}

/* Over all threads of the labels of thread i. False: the kernel was not asked yet. */
static bool thread_sum(const struct exported *x, uint32_t i, size_t counter, double *sum)
{
	bool known = !thread_counters[counter].kernel;

	*sum = 0;
	for (uint32_t k = i; k < x->f->thread_count; k++) {
		if (!same_thread(x->f, i, k))
			continue;
		known |= ringtap_snapshot_thread(x->f, k)->read_ns > 0;
		*sum += thread_counters[counter].value(x, ringtap_snapshot_thread(x->f, k));
	}
	return known;
}

static void export_threads(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];
	double sum;

	for (size_t c = 0; c < sizeof(thread_counters) / sizeof(thread_counters[0]); c++) {
		export_family(t, thread_counters[c].name, "counter", thread_counters[c].help);
		for (size_t n = 0; n < count; n++)
			for (uint32_t i = 0; i < x[n].f->thread_count; i++)
				if (first_thread(x[n].f, i) && thread_sum(&x[n], i, c, &sum))
					export_number(t, "", thread_labels(labels, &x[n], i), sum);
	}
	export_worst_gaps(t, x, count);
}

/* ---- mempools */

static const struct {
	const char *name, *help;
	size_t offset;
} pool_gauges[] = {
#define GAUGE(name, field, help)                                                          \
	{                                                                                 \
		"ringtap_mempool_" name, help, offsetof(struct ringtap_pool_stats, field) \
	}
	GAUGE("objects", size, "Objects of the mempool."),
	GAUGE("available_objects", available, "Objects in the mempool and its caches."),
	GAUGE("cached_objects", in_caches, "Of them, those in caches of lcores."),
	GAUGE("lowest_available_objects", lowest, "Fewest available objects that were seen."),
	GAUGE("object_bytes", object_bytes, "Size of an object with all that belongs to it."),
#undef GAUGE
};

static bool first_pool(const struct ringtap_snapshot *f, uint32_t pool)
{
	for (uint32_t i = 0; i < pool; i++)
		if (!ringtap_snapshot_pool(f, i)->gone &&
			!strcmp(ringtap_snapshot_pool(f, i)->name,
				ringtap_snapshot_pool(f, pool)->name))
			return false;
	return !ringtap_snapshot_pool(f, pool)->gone;
}

static void export_pools(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];

	for (size_t g = 0; g < sizeof(pool_gauges) / sizeof(pool_gauges[0]); g++) {
		export_family(t, pool_gauges[g].name, "gauge", pool_gauges[g].help);
		for (size_t n = 0; n < count; n++) {
			for (uint32_t i = 0; i < x[n].f->pool_count; i++) {
				const struct ringtap_pool_stats *p =
					ringtap_snapshot_pool(x[n].f, i);

				if (!first_pool(x[n].f, i))
					continue;
				export_labels(labels, "app", x[n].label, "pool", p->name, NULL);
				export_count(t, "", labels,
					*(const uint32_t *)((const char *)p +
							    pool_gauges[g].offset));
			}
		}
	}
}

/* ---- applications */

static void export_uncounted(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];

	export_family(t, "ringtap_uncounted_polls", "counter",
		"Calls of threads and queues beyond what there is room for.");
	for (size_t n = 0; n < count; n++)
		if (x[n].f)
			export_count(t, "", export_labels(labels, "app", x[n].label, NULL),
				x[n].f->no_thread_polls + x[n].f->no_block_polls);
	export_family(
		t, "ringtap_uncounted_ports", "gauge", "Ports beyond what there is room for.");
	for (size_t n = 0; n < count; n++)
		if (x[n].f)
			export_number(t, "", export_labels(labels, "app", x[n].label, NULL),
				x[n].f->ports_beyond);
	export_family(t, "ringtap_uncounted_mempools", "gauge",
		"Mempools beyond what there is room for.");
	for (size_t n = 0; n < count; n++)
		if (x[n].f)
			export_number(t, "", export_labels(labels, "app", x[n].label, NULL),
				x[n].f->pools_beyond);
}

static void export_apps(
	struct export_text *t, const struct watch *w, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];

	export_family(t, "ringtap_up", "gauge",
		"1 if the application shows statistics, 0 if it cannot be attached to.");
	for (size_t n = 0; n < count; n++)
		export_count(t, "", export_labels(labels, "app", x[n].label, NULL), x[n].f != NULL);
	export_family(t, "ringtap_application", "info", "Applications, with their versions.");
	for (size_t n = 0; n < count; n++)
		if (x[n].f)
			export_number(t, "",
				export_labels(labels, "app", x[n].label, "program",
					x[n].app->info.program, "dpdk", x[n].app->info.dpdk,
					"probe", x[n].app->info.probe, NULL),
				1);
	export_uncounted(t, x, count);
}

/* Two of one name in different runtime folders (of different users) must not be one. */
static void name_app(const struct watch *w, size_t i, struct exported *x)
{
	const struct watched *a = w->list[i];
	bool taken = false;

	for (size_t k = 0; k < i; k++)
		taken |= !strcmp(w->list[k]->name, a->name);
	snprintf(x->label, sizeof(x->label), "%s", taken ? a->dir : a->name);
	x->app = a;
	x->f = a->ended ? NULL : a->now;
}

void export_all(struct export_text *t, const struct watch *w)
{
	struct exported *x = calloc(w->count + 1, sizeof(*x));
	size_t shown = 0;

	if (!x) {
		t->failed = true;
		return;
	}
	for (size_t i = 0; i < w->count; i++)
		name_app(w, i, &x[i]);
	export_apps(t, w, x, w->count);
	for (size_t i = 0; i < w->count; i++)
		if (x[i].f)
			x[shown++] = x[i];
	export_ports(t, x, shown);
	export_queues(t, x, shown);
	export_threads(t, x, shown);
	export_pools(t, x, shown);
	export_histograms(t, x, shown);
	export_end(t);
	free(x);
}
