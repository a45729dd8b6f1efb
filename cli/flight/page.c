/* SPDX-License-Identifier: BSD-3-Clause */
/* index.html and plot.svg of an incident: rates, gaps, latency and pools around the event. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/html.h"
#include "base/util.h"
#include "measure/plot.h"
#include "flight.h"
#include "flow_report.h"
#include "folder.h"
#include "history.h"
#include "page.h"

static double seconds_from_event(const struct incident *i, double ns)
{
	return (ns - (double)i->event.to_ns) / 1e9;
}

/* ---- plot.svg */

struct curves {
	double at[INCIDENT_SLICES], rate[2][INCIDENT_SLICES], most_rate;
	double time[FLIGHT_HISTORY], gap[FLIGHT_HISTORY], p99[FLIGHT_HISTORY], pool[FLIGHT_HISTORY],
		most_ns;
	size_t seconds;
};

static void take_rates(const struct incident *i, struct curves *c)
{
	double slice = (double)(i->to_ns - i->from_ns + 1) / INCIDENT_SLICES;

	for (unsigned k = 0; k < INCIDENT_SLICES; k++) {
		c->at[k] = seconds_from_event(i, (double)i->from_ns + (k + 0.5) * slice);
		for (int d = 0; d < 2; d++) {
			c->rate[d][k] = (double)i->slices[d][k] / slice * 1e9;
			c->most_rate = fmax(c->most_rate, c->rate[d][k]);
		}
	}
}

/* A gap counts where it ends: one that went on when a snapshot was taken began before the next
 * interval, and is the reason why many of these pages are read. */
static double longest_gap(const struct span *s, const struct ringtap_thread_stats *t)
{
	double longest = 0;

	for (uint32_t i = 0; i < t->gap_count; i++) {
		const struct ringtap_gap *g = ringtap_thread_gap(t, i);
		uint64_t end = g->start_ns + g->ns;

		if (end > s->from->taken_ns && end <= s->to->taken_ns)
			longest = fmax(longest, (double)g->ns);
	}
	return longest;
}

static double longest_gap_of(const struct incident *i, unsigned first, unsigned last)
{
	double longest = 0;

	for (unsigned n = first; n < last; n++) {
		const struct span s = history_span(i->f, n, n + 1);

		for (uint32_t k = 0; k < s.to->thread_count; k++)
			longest = fmax(longest, longest_gap(&s, ringtap_snapshot_thread(s.to, k)));
	}
	return longest;
}

static void take_second(const struct incident *i, struct curves *c, const struct span *s)
{
	size_t n = c->seconds++;

	c->time[n] = seconds_from_event(i, (double)s->to->taken_ns);
	c->gap[n] = c->p99[n] = c->pool[n] = NAN;
	for (uint32_t k = 0; k < s->to->thread_count; k++) {
		struct thread_rates r;

		rates_thread(s, k, &r);
		if (s->to->collectors & RINGTAP_GAPS)
			c->gap[n] = fmax(fmax(c->gap[n], r.worst_gap_ns),
				longest_gap(s, ringtap_snapshot_thread(s->to, k)));
	}
	for (uint32_t k = 0; k < s->to->pair_count; k++) {
		struct latency_rates r;

		rates_latency(s, k, &r);
		c->p99[n] = fmax(c->p99[n], r.p99_ns);
	}
	for (uint32_t k = 0; k < s->to->pool_count; k++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s->to, k);

		if (p->size && !p->gone && p->available != UINT32_MAX)
			c->pool[n] = fmin(c->pool[n], (double)p->available / p->size);
	}
	c->gap[n] /= 1e9;
	c->p99[n] /= 1e9;
	c->most_ns = fmax(c->most_ns, fmax(c->gap[n], c->p99[n]));
}

int page_plot(const struct incident *i, unsigned first, unsigned last, FILE *f)
{
	static const double event[] = {0};
	struct curves c = {.most_rate = 1, .most_ns = 1e-9};
	double from, to;

	take_rates(i, &c);
	for (unsigned k = first; k < last; k++) {
		const struct span s = history_span(i->f, k, k + 1);

		if (s.seconds > 0)
			take_second(i, &c, &s);
	}
	from = fmin(c.at[0], c.seconds ? c.time[0] : 0) - 1e-9;
	to = fmax(c.at[INCIDENT_SLICES - 1], c.seconds ? c.time[c.seconds - 1] : 0) + 1e-9;
	{
		const struct plot_series rates[] = {
			{"received", c.at, c.rate[0], INCIDENT_SLICES, false, 0},
			{"sent", c.at, c.rate[1], INCIDENT_SLICES, false, 1}};
		const struct plot_series times[] = {
			{"longest polling gap", c.time, c.gap, c.seconds, false, 0},
			{"99 % of latencies", c.time, c.p99, c.seconds, false, 1}};
		const struct plot_series pools[] = {
			{"fullest mempool: free", c.time, c.pool, c.seconds, false, 2}};
		const struct plot_axis x = {
			.label = "time from the event", .unit = "s", .min = from, .max = to};
		const struct plot_panel panels[] = {
			{"Packets a second", x,
				{.label = "packets/s", .unit = "", .max = 1.1 * c.most_rate}, rates,
				2, event, 1, NULL, 0, NULL},
			{"Gaps and latency, of each second", x,
				{.label = "time", .unit = "s", .max = 1.1 * c.most_ns}, times, 2,
				event, 1, NULL, 0, NULL},
			{"Mempools, of each second", x,
				{.label = "free buffers", .percent = true, .max = 1.05}, pools, 1,
				event, 1, NULL, 0, NULL}};

		return plot_write(f, PLOT_SVG, i->name, panels, c.seconds ? 3 : 1);
	}
}

/* ---- index.html */

/* What to do with it depends on the condition; a line each, of HTML. */
static const char *next_steps(enum trigger_kind kind)
{
	switch (kind) {
	case TRIGGER_MISSED:
	case TRIGGER_NOMBUF:
	case TRIGGER_POOL:
	case TRIGGER_DOCTOR:
		return "<li>Read <a href=\"" FLIGHT_DOCTOR "\">" FLIGHT_DOCTOR "</a>: it names the "
		       "thread or mempool to change.</li>\n"
		       "<li>Look at the plot: was there a burst before the event (more packets), or "
		       "a thread that did not poll (a gap)?</li>\n";
	case TRIGGER_UNSENT:
	case TRIGGER_ERRORS:
		return "<li>Look at the link and the peer of the port: <a href=\"" FLIGHT_METRICS
		       "\">" FLIGHT_METRICS "</a> has its counters and its link for each "
		       "second.</li>\n"
		       "<li>The top flows show which traffic filled it.</li>\n";
	case TRIGGER_GAP:
	case TRIGGER_IDLE_GAP:
		return "<li>Open <a href=\"" FLIGHT_TRACE "\">" FLIGHT_TRACE "</a> in Perfetto "
		       "(ui.perfetto.dev): did other threads stop at the same time?</li>\n"
		       "<li>See what ran on the thread's CPU: <code>ringtap trace gaps "
		       "--off-cpu</code>.</li>\n";
	case TRIGGER_LATENCY:
	case TRIGGER_P50:
	case TRIGGER_P90:
	case TRIGGER_P99:
	case TRIGGER_P999:
		return "<li>Compare gaps and latency in the plot: a gap delays all packets, a full "
		       "queue those of one port.</li>\n"
		       "<li>Packets that were received before the event, and sent at it, are the "
		       "slow ones: both are in <a href=\"" FLIGHT_PACKETS "\">" FLIGHT_PACKETS
		       "</a>.</li>\n";
	case TRIGGER_BURST:
		return "<li>The top flows show which traffic the burst consists of.</li>\n";
	case TRIGGER_PACKET:
		return "<li>The packet that matched has the comment (<code>tshark -Y "
		       "frame.comment</code>); if -f leaves it out, the next one has.</li>\n"
		       "<li><code>ringtap flight extract -f FILTER</code> writes the packets of its "
		       "conversation to a file of their own.</li>\n";
	case TRIGGER_USDT:
		return "<li>The thread of the event is above: see in <a href=\"" FLIGHT_TRACE
		       "\">" FLIGHT_TRACE "</a> what it did before.</li>\n"
		       "<li>The packets around the event are marked by a comment (<code>tshark -Y "
		       "frame.comment</code>).</li>\n";
	case TRIGGER_EXIT:
		return "<li>The last packets of <a href=\"" FLIGHT_PACKETS "\">" FLIGHT_PACKETS
		       "</a> are those before the end: one of them may be its cause.</li>\n"
		       "<li>A crash has a line in the kernel's log: <code>journalctl -k</code>."
		       "</li>\n";
	default:
		return "<li>Look at the packets at the event: the comment marks the first one "
		       "(<code>tshark -Y frame.comment</code>).</li>\n";
	}
}

static void put_row(FILE *f, const char *name, const char *value)
{
	fprintf(f, "<tr><th>%s</th><td>", name);
	html_text(f, value);
	fputs("</td></tr>\n", f);
}

void page_write(const struct incident *i, bool plot, unsigned first, unsigned last, FILE *f)
{
	char value[64], text[FORMAT_LEN];

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
	html_text(f, i->name);
	fputs("</title><style>body{font-family:sans-serif;max-width:60em;margin:2em auto}"
	      "th{text-align:left;padding-right:2em}img{max-width:100%}"
	      ".flows td:not(:first-child){text-align:right;padding-right:2em}"
	      "</style></head><body>\n<h1>",
		f);
	html_text(f, i->name);
	fputs("</h1>\n<table>\n", f);
	put_row(f, "application", i->f->app.name);
	put_row(f, "condition", i->trigger->text);
	put_row(f, "where", *i->event.where ? i->event.where : "the application");
	trigger_value(i->trigger, i->event.value, value, sizeof(value));
	put_row(f, "value", *value ? value : "–");
	if (*i->event.comment)
		put_row(f, "comment", i->event.comment);
	format_unit(value, longest_gap_of(i, first, last) / 1e9, 3, "s");
	if (first < last && i->f->history[last]->collectors & RINGTAP_GAPS)
		put_row(f, "longest polling gap", value);
	put_row(f, "packets", format_count(text, i->packets));
	put_row(f, "lost by the capture", format_count(text, i->lost));
	fputs("</table>\n", f);
	if (plot)
		fputs("<p><img src=\"" FLIGHT_PLOT "\" alt=\"rates, gaps, latency and mempools\">"
		      "</p>\n",
			f);
	fprintf(f, "<h2>What to look at next</h2>\n<ul>\n%s</ul>\n", next_steps(i->trigger->kind));
	flow_report_page(i, f);
	fputs("<h2>Files</h2>\n<ul>\n"
	      "<li><a href=\"" FLIGHT_PACKETS "\">" FLIGHT_PACKETS "</a>: all packets</li>\n"
	      "<li><a href=\"" FLIGHT_DOCTOR "\">" FLIGHT_DOCTOR "</a>: verdicts</li>\n"
	      "<li><a href=\"" FLIGHT_METRICS "\">" FLIGHT_METRICS "</a>: statistics</li>\n"
	      "<li><a href=\"" FLIGHT_TRACE "\">" FLIGHT_TRACE "</a>: gaps and busy periods of "
	      "the threads, for Perfetto</li>\n"
	      "<li><a href=\"" FLIGHT_INCIDENT "\">" FLIGHT_INCIDENT "</a>: the numbers of this "
	      "page</li>\n"
	      "</ul>\n</body></html>\n",
		f);
}
