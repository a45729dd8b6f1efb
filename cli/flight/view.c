/* SPDX-License-Identifier: BSD-3-Clause */
/* Head of an incident's page: the event, the window as requested and as kept,
 * the application, verdicts, what to do next. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "flight.h"
#include "flow_report.h"
#include "folder.h"
#include "history.h"
#include "packet_rows.h"
#include "passages.h"
#include "view.h"

/* The next step depends on the condition. */
static const char *const *next_steps(enum trigger_kind kind)
{
	static const char *const loss[] = {
		"Compare the panels before the event: a burst (more packets), or a thread that did "
		"not poll (a gap)?",
		NULL};
	static const char *const pool[] = {
		"See how the mempool fell: at once is a burst, or a queue that nothing empties; "
		"slowly is a leak.",
		"ringtap held shows which packets an application holds, by mempool, queue and age.",
		NULL};
	static const char *const ring[] = {
		"A ring fills while packets enter it faster than a thread takes them: compare the "
		"panels before the event: a burst, or a gap or a wait of that thread?",
		FLIGHT_METRICS " has the levels of all rings for each second.", NULL};
	static const char *const xstat[] = {FLIGHT_METRICS
		" has the extended statistics of all drivers for each second: which others grew?",
		"Compare the panels before the event: a burst (more packets), or a thread that did "
		"not poll (a gap)?",
		NULL};
	static const char *const device[] = {FLIGHT_METRICS
		" has the statistics of all devices for each second.",
		"Compare the panels before the event: a burst (more packets), or a thread that did "
		"not poll (a gap)?",
		NULL};
	static const char *const refused[] = {
		"Look at the link and the peer of the port: " FLIGHT_METRICS
		" has its counters and its link for each second.",
		"The largest flows show which traffic filled it.", NULL};
	static const char *const gap[] = {
		"Compare the lanes: did other threads stop at the same time? " FLIGHT_TRACE
		" shows them in Perfetto (ui.perfetto.dev).",
		"See what ran on the thread's CPU: ringtap trace gaps --off-cpu.", NULL};
	static const char *const latency[] = {
		"Compare gaps and latency: a gap delays all packets, a full queue those of one "
		"port.",
		"Packets that were received before the event, and sent at it, are the slow ones: "
		"both are in " FLIGHT_PACKETS ".",
		NULL};
	static const char *const burst[] = {
		"The largest flows show which traffic the burst consists of.", NULL};
	static const char *const packet[] = {
		"The packet that matched has the comment (tshark -Y frame.comment); if -f leaves "
		"it out, the next one has.",
		"ringtap flight extract -f FILTER writes the packets of its conversation to a file "
		"of their own.",
		NULL};
	static const char *const usdt[] = {
		"The thread of the event is above: its lane shows what it did before.",
		"The packets around the event are marked by a comment (tshark -Y frame.comment).",
		NULL};
	static const char *const end[] = {
		"The last packets of " FLIGHT_PACKETS
		" are those before the end: one of them may be its cause.",
		"A crash has a line in the kernel's log: journalctl -k.", NULL};
	static const char *const other[] = {"Look at the packets at the event: the comment marks "
					    "the first one (tshark -Y frame.comment).",
		NULL};

	switch (kind) {
	case TRIGGER_MISSED:
	case TRIGGER_NO_MBUF:
	case TRIGGER_DOCTOR: return loss;
	case TRIGGER_POOL: return pool;
	case TRIGGER_RING: return ring;
	case TRIGGER_XSTAT: return xstat;
	case TRIGGER_DEVICE: return device;
	case TRIGGER_REFUSED:
	case TRIGGER_ERRORS: return refused;
	case TRIGGER_GAP:
	case TRIGGER_IDLE_GAP: return gap;
	case TRIGGER_LATENCY:
	case TRIGGER_P50:
	case TRIGGER_P90:
	case TRIGGER_P99:
	case TRIGGER_P999: return latency;
	case TRIGGER_BURST: return burst;
	case TRIGGER_PACKET: return packet;
	case TRIGGER_USDT: return usdt;
	case TRIGGER_EXIT: return end;
	default: return other;
	}
}

/* ---- facts */

__attribute__((format(printf, 4, 5))) static void fact(
	struct view *v, const char *name, const char *note, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	view_fact(v, name, text, note);
}

static void add_window(struct view *v, const struct incident *i)
{
	char before[FORMAT_LEN], after[FORMAT_LEN], missing[FORMAT_LEN];
	uint64_t missing_ns = incident_missing_ns(i);

	format_ns(before, (double)(i->event.from_ns - i->from_ns));
	format_ns(after, (double)(i->to_ns - i->event.to_ns));
	fact(v, "window", NULL, "%s before to %s after the event", before, after);
	format_ns(missing, (double)missing_ns);
	fact(v, "kept", NULL, missing_ns ? "all but the first %s" : "all of it", missing);
}

/* The words of a command, as /proc has them, without the folder of the program. */
static void add_command_line(struct view *v, const char *name, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *folder;
	char text[4096];
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	folder = strrchr(text, '/');
	for (ssize_t k = 0; k + 1 < n; k++)
		if (!text[k])
			text[k] = ' ';
	view_fact(v, name, folder ? folder + 1 : text, NULL);
}

static void add_application(struct view *v, const struct incident *i)
{
	const struct ringtap_app_info *app = &i->f->app.info;
	char path[64];

	view_application(v, i->f->app.name, app->host_pid ? app->host_pid : app->pid, app->program);
	fact(v, "application", NULL, "%s (%s, %u)", i->f->app.name, app->program,
		app->host_pid ? app->host_pid : app->pid);
	view_fact(v, "host", json_string_value(json_object_get(v->document, "host")), NULL);
	fact(v, "versions", NULL, "ringtap %s, probe %s, %s", RINGTAP_VERSION, app->probe,
		app->dpdk);
	add_command_line(v, "recorder", "/proc/self/cmdline");
	if (!app->host_pid)
		return;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", app->host_pid);
	add_command_line(v, "command line", path);
}

static void add_facts(struct view *v, const struct incident *i)
{
	char value[64], limit[64], text[FORMAT_LEN];

	trigger_value(i->trigger, i->event.value, value, sizeof(value));
	trigger_value(i->trigger, i->trigger->threshold, limit, sizeof(limit));
	view_fact(v, "condition", i->trigger->text, NULL);
	view_fact(v, "where", *i->event.where ? i->event.where : "the application", NULL);
	if (*value)
		view_fact(v, "value", value, NULL);
	if (*limit)
		view_fact(v, "threshold", limit, NULL);
	if (*i->event.comment)
		view_fact(v, "comment", i->event.comment, NULL);
	view_time_fact(v, "event", i->event.to_ns);
	add_window(v, i);
	view_fact(v, "packets", format_count(text, i->packets), FLIGHT_PACKETS);
	view_fact(v, "lost", format_count(text, i->lost),
		i->lost ? "the recorder's memory was full; the packet after them is marked" : NULL);
	add_application(v, i);
}

/* ---- verdicts */

/* Note about the verdicts' worth; NULL: none. */
static const char *about_verdicts(const struct diagnosis *d)
{
	if (d->count && d->verdict[0].grade == GRADE_FAULT)
		return "The verdicts, also in " FLIGHT_DOCTOR
		       ", name the thread, port or mempool to change.";
	for (unsigned k = 0; k < d->count; k++)
		if (d->verdict[k].id == VERDICT_NOT_COUNTED)
			return "The condition needs no counts of polls, so there is no verdict on "
			       "threads: let the recorder count them "
			       "(--collectors polls,busy,gaps,pools).";
	return NULL;
}

static void add_findings(struct view *v, const struct incident *i, const struct diagnosis *d)
{
	json_t *evidence;

	if (d)
		diagnosis_view(v, d, NULL);
	evidence = view_finding(v, "note", "What to look at next", NULL);
	if (d && about_verdicts(d))
		json_array_append_new(evidence, json_text(about_verdicts(d)));
	for (const char *const *step = next_steps(i->trigger->kind); *step; step++)
		json_array_append_new(evidence, json_text(*step));
}

/* ---- time that is not there */

static void add_missing(struct view *v, const struct incident *i)
{
	uint64_t from = i->from_ns, began = i->f->start_ns,
		 end = i->last_ns ? i->last_ns : i->from_ns;

	if (began > from) {
		view_missing(v, from, began < i->to_ns ? began : i->to_ns,
			"the recorder had just begun");
		from = began;
	}
	view_missing(v, from, i->since_ns < i->to_ns ? i->since_ns : i->to_ns,
		"the recorder's memory is too small for all of the window: a larger --buffer, or "
		"fewer bytes of each packet, -s");
	if (i->error)
		view_missing(v, end, i->to_ns,
			i->error == -EFBIG ? "more than --max-disk" : strerror(-i->error));
}

static void add_event(struct view *v, const struct incident *i)
{
	char value[64], text[512];

	trigger_value(i->trigger, i->event.value, value, sizeof(value));
	snprintf(text, sizeof(text), "%s%s%s%s%s", i->trigger->text, *value ? ": " : "", value,
		*i->event.where ? ", " : "", i->event.where);
	view_event(v, i->event.from_ns, i->event.to_ns, text);
	json_object_set_new(v->document, "zero_ns", view_at(v, i->event.to_ns));
}

static void add_counted(struct view *v, const struct incident *i)
{
	struct counted c;

	if (!counted_past_since(&i->f->counted, i->from_ns, &c))
		return;
	counted_view(&c, v);
	counted_free(&c);
}

json_t *incident_view(
	const struct incident *i, unsigned first, unsigned last, const struct diagnosis *d)
{
	struct lane_bars bars = {0};
	struct view v;

	view_begin(&v, "flight", i->name, i->from_ns, i->to_ns);
	add_facts(&v, i);
	add_event(&v, i);
	add_missing(&v, i);
	add_findings(&v, i, d);
	if (first < last)
		view_threads(&v, i, first, last, &bars);
	view_packets(&v, i);
	if (first < last) {
		view_ports(&v, i, first, last);
		view_latency(&v, i, first, last);
		view_pools(&v, i, first, last);
		view_rings(&v, i, first, last);
		view_statistic(&v, i, first, last);
	}
	add_counted(&v, i);
	passages_view(i, first < last ? i->f->history[last] : NULL, &v, &bars);
	free(bars.by_thread);
	flow_report_view(i, &v);
	packet_rows_view(i->rows, &v);
	return v.document;
}
