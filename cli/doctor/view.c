/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/json.h"
#include "base/util.h"
#include "view.h"

static json_t *begin_table(struct view *v, const char *id, const char *title,
	const char *const (*columns)[2], size_t count)
{
	json_t *table = view_panel(v, "table", id, title);

	for (size_t i = 0; i < count; i++)
		view_column(table, columns[i][0], columns[i][1]);
	json_object_set_new(table, "rows", json_array());
	return table;
}

static void begin(struct doctor_view *w, const struct span *s)
{
	static const char *const threads[][2] = {{"application", "text"}, {"thread", "text"},
		{"received", "/s"}, {"busy", "share"}, {"CPU", "share"}, {"wait", "share"},
		{"gap with work", "ns"}, {"idle gap", "ns"}, {"largest burst", "count"}};
	static const char *const ports[][2] = {{"application", "text"}, {"port", "text"},
		{"received", "/s"}, {"sent", "/s"}, {"missed", "/s"}, {"no mbuf", "/s"},
		{"refused", "/s"}, {"errors", "/s"}};

	view_begin(&w->view, "doctor", "doctor", s->from->taken_ns, s->to->taken_ns);
	view_fact(&w->view, "host", json_string_value(json_object_get(w->view.document, "host")),
		NULL);
	view_time_fact(&w->view, "begin", s->from->taken_ns);
	w->threads = begin_table(&w->view, "threads", "Polling threads", threads,
		sizeof(threads) / sizeof(*threads));
	w->ports = begin_table(&w->view, "ports", "Ports", ports, sizeof(ports) / sizeof(*ports));
	view_panel_note(w->ports, "As drivers count; between two readings of them.");
}

static void add_threads(json_t *table, const struct examination *e)
{
	for (uint32_t k = 0; k < e->span.to->thread_count; k++) {
		struct thread_rates r;
		char name[THREAD_NAME_LEN];
		json_t *row;

		rates_thread(&e->span, k, &r);
		if (!(r.polls > 0))
			continue;
		row = view_row(table);
		json_array_append_new(row, json_text(e->app->name));
		json_array_append_new(
			row, json_text(thread_name(name, ringtap_snapshot_thread(e->span.to, k))));
		for (size_t i = 0; i < 7; i++)
			view_append(row,
				(const double[]){r.packets, r.busy, r.cpu, r.wait, r.worst_gap_ns,
					r.worst_idle_gap_ns, (double)r.largest_microburst}[i]);
	}
}

static void add_ports(json_t *table, const struct examination *e)
{
	for (uint32_t k = 0; k < e->span.to->port_count; k++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(e->span.to, k);
		struct driver_counts c;
		json_t *row;

		if (p->gone)
			continue;
		driver_counts(&e->span, k, &c);
		row = view_row(table);
		json_array_append_new(row, json_text(e->app->name));
		json_array_append_new(row, json_text(p->name));
		for (size_t i = 0; i < 6; i++)
			view_append(row, (const double[]){c.ipackets, c.opackets, c.imissed,
						 c.rx_nombuf, c.unsent, c.errors}[i] /
						 c.seconds);
	}
}

void doctor_view_add(struct doctor_view *w, const struct examination *e, const struct diagnosis *d)
{
	char text[FORMAT_LEN];

	if (!w->view.document)
		begin(w, &e->span);
	view_application(&w->view, e->app->name, e->app->info.pid, e->app->info.program);
	view_fact(&w->view, e->app->name, e->app->info.program,
		*e->app->info.dpdk ? e->app->info.dpdk : NULL);
	view_fact(&w->view, "watched for", format_ns(text, e->span.seconds * 1e9), NULL);
	diagnosis_view(&w->view, d, e->app->name);
	add_threads(w->threads, e);
	add_ports(w->ports, e);
}
