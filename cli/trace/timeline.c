/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture of one byte of each packet has every burst: its packets lie one behind the other in the
 * ring of the thread, with one time. So polling threads do nothing that they do not do for any
 * recording, and nothing for a poll without packets but what statistics of gaps do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/out_file.h"
#include "base/signals.h"
#include "measure/kernel.h"
#include "target/which_app.h"
#include "timeline.h"
#include "timeline_page.h"
#include "trace.h"
#include "tracers.h"
#include "web/page.h"

#define COLLECTORS (RINGTAP_BUSY | RINGTAP_GAPS | RINGTAP_POOLS | RINGTAP_INTERVALS)
#define SNAPLEN    1
#define RUNS_MAX   64
#define TURN_MS    10
/* A thread keeps 8192 intervals of 10 us or more: 82 ms. */
#define READ_NS   (NS_PER_S / 20)
#define FILE_ROOM (1u << 20)

struct session {
	struct trace *t;
	struct timeline l;
	struct out_file file, html;
	struct ringtap_capture *cap, *fates; /* fates NULL: not requested, or over */
	struct ringtap_packets *walk;
	uint64_t read_ns;            /* CLOCK_MONOTONIC, of the last statistics */
	uint64_t began_ns, ended_ns; /* since the epoch: when all was attached, and the end */
	bool full;                   /* the file is; without one, the page */
	bool no_switches;            /* and this was printed */
	uint64_t lost, fates_lost;   /* packets */
};

/* ---- attaching */

static bool wants_ids(const struct trace *t)
{
	return t->cfg->latency || t->cfg->fates;
}

/* 0 where it is not known. */
static uint16_t linktype_of(const char *dir, const char *port)
{
	struct ringtap_list *list = target_ports(dir);
	uint16_t linktype = 0;

	for (size_t i = 0; list && i < list->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(list, i);

		if (target_port_matches(p->name, p->device, p->port_id, port))
			linktype = p->linktype;
	}
	ringtap_list_free(list);
	return linktype;
}

static int attach(struct session *s, struct ringtap_capture *cap, bool fates)
{
	const struct trace *t = s->t;
	const struct ringtap_target ethernet = {
		.port = t->app.port_count && !fates ? t->app.ports[0] : NULL,
		.queue = -1,
		.directions = RINGTAP_RX | RINGTAP_TX,
		.snaplen = SNAPLEN};
	/* A target that names a port must be of its link type. */
	struct ringtap_target targets[] = {ethernet, ethernet};
	unsigned count = ethernet.port ? 1 : 2;
	const struct ringtap_capture_options o = {.size = sizeof(o),
		.buffer_size = t->cfg->buffer_bytes,
		.fates = fates,
		.fate_ids = fates,
		.ids = wants_ids(t) && !fates ? RINGTAP_IDS : RINGTAP_NO_IDS};
	int ret;

	targets[count - 1].linktype =
		ethernet.port ? linktype_of(t->app.dir, ethernet.port) : RINGTAP_LINKTYPE_RAW;
	ringtap_break_fd(stop_fd());
	ret = ringtap_capture_attach(cap, t->app.dir, targets, count, &o);
	if (!ret)
		ret = ringtap_capture_start(cap);
	ringtap_break_fd(-1);
	if (ret)
		print_not_attached("trace timeline", t->app.name, ret, ringtap_capture_error(cap));
	return ret;
}

static int open_captures(struct session *s)
{
	int ret = ringtap_capture_create(&s->cap, NULL);

	if (!ret && s->t->cfg->fates)
		ret = ringtap_capture_create(&s->fates, NULL);
	if (!ret)
		ret = ringtap_packets_create(&s->walk);
	if (ret)
		return message_fail(ret, "trace timeline: starting: %s", strerror(-ret));
	ringtap_packets_fields(s->walk, RINGTAP_FIELDS_ALL);
	if (s->fates)
		ret = attach(s, s->fates, true);
	return ret ? ret : attach(s, s->cap, false);
}

/* 0 or -errno, after printing why; then the file is empty. */
static int begin(struct session *s)
{
	const struct trace *t = s->t;
	struct timeline *l = &s->l;
	int ret = open_captures(s);

	if (ret)
		return ret;
	l->out.f = s->file.f;
	l->pid = (uint32_t)t->pid;
	l->name = t->app.name;
	l->trace = t;
	l->cap = s->cap;
	l->fates_cap = s->fates;
	ret = timeline_begin(l, wants_ids(t), t->cfg->fates);
	return ret ? message_fail(ret, "trace timeline: starting: %s", strerror(-ret)) : 0;
}

/* ---- packets */

static struct timeline_thread *thread_of(struct session *s, const struct ringtap_run *run)
{
	struct ringtap_ring ring = {.size = sizeof(ring)};
	char name[16] = "";

	if (ringtap_capture_ring(s->cap, run->ring, &ring))
		ring.tid = 0;
	if (ring.tid && !timeline_has_thread(&s->l, ring.tid))
		kernel_thread_name(name, s->t->pid, ring.tid);
	return timeline_thread(&s->l, ring.tid, run->ring, ring.lcore, name);
}

static bool port_included(const struct session *s, uint32_t interface)
{
	const struct one_app *app = &s->t->app;
	struct ringtap_interface i = {.size = sizeof(i)};

	return !app->port_count ||
	       (!ringtap_capture_interface(s->fates, interface, &i) &&
		       target_port_matches(i.name, i.device, i.port_id, app->ports[0]));
}

static bool is_full(const struct session *s)
{
	const struct perfetto *out = &s->l.out;

	return out->bytes >= s->t->cfg->max_bytes || (!out->f && timeline_page_full_ns(out->page));
}

static int take_run(struct session *s, const struct ringtap_run *run, bool fates)
{
	struct timeline_thread *t = fates ? NULL : thread_of(s, run);
	const struct ringtap_packet *p;

	ringtap_packets_start(s->walk, run);
	while ((p = ringtap_packet_next(s->walk))) {
		if (fates && port_included(s, p->interface))
			timeline_fate(&s->l, p);
		else if (t)
			timeline_packet(&s->l, t, p);
		else if (!fates)
			s->lost++;
		s->full = is_full(s);
		if (s->full)
			return 0;
	}
	return ringtap_packets_error(s->walk);
}

/* 0; 1: it is over; -errno after printing why. */
static int take(struct session *s, struct ringtap_capture *cap, int timeout_ms)
{
	struct ringtap_run runs[RUNS_MAX];
	int n = ringtap_capture_next(cap, runs, RUNS_MAX, timeout_ms), ret = n < 0 ? n : 0;

	for (int i = 0; i < n && !ret && !s->full; i++) {
		ret = take_run(s, &runs[i], cap == s->fates);
		if (cap == s->cap)
			timeline_fates_until(&s->l, runs[i].first_ns);
	}
	ringtap_capture_release(cap);
	if (ret == -EPIPE)
		return 1;
	if (ret)
		message_print("trace timeline: reading %s: %s; what came before is in the file",
			s->t->app.name,
			*ringtap_capture_error(cap) ? ringtap_capture_error(cap) : strerror(-ret));
	return ret;
}

/* ---- statistics */

static const char *switches_remedy(int error)
{
	switch (error) {
	case ENOENT: return "mount -t tracefs tracefs /sys/kernel/tracing";
	case EMFILE: return "raise the limit of open files (ulimit -n)";
	default: return "run ringtap as root, on the host";
	}
}

/* Once. */
static void print_no_switches(struct session *s)
{
	const int error = -s->l.off.refused;
	bool known = s->no_switches;

	s->no_switches = error != 0;
	if (error && !known && !s->t->cfg->quiet)
		message_print("trace timeline: without switches of the scheduler: %s; %s",
			strerror(error), switches_remedy(error));
}

/* 0, or -errno: the application has ended, or its statistics are corrupt. */
static int read_states(struct session *s)
{
	struct trace *t = s->t;
	struct timeline *l = &s->l;
	struct ringtap_snapshot *now;
	uint64_t lost = 0;
	int ret = ringtap_monitor_read(t->mon, &now);

	if (!now)
		return ret;
	ringtap_snapshot_free(t->stats);
	l->stats = t->stats = now;
	s->read_ns = now_ns(CLOCK_MONOTONIC);
	timeline_counters(l, now);
	if (ringtap_monitor_intervals(t->mon, timeline_interval, l, &lost))
		lost++;
	l->intervals_lost += lost;
	off_cpu_step(&l->off, now, (uint32_t)t->pid);
	timeline_switches(l, now);
	print_no_switches(s);
	return ret;
}

/* ---- the trace */

static bool goes_on(struct session *s)
{
	struct trace *t = s->t;

	s->full |= is_full(s);
	if (s->full || s->l.out.error)
		t->end = TRACE_BY_SIZE;
	else if (stop_wait(0))
		t->end = TRACE_BY_SIGNAL;
	else if (now_ns(CLOCK_MONOTONIC) - t->start_ns >= t->cfg->duration_ns)
		t->end = TRACE_BY_LIMIT;
	else
		return true;
	return false;
}

/* 0 or -errno after printing why. */
static int follow(struct session *s)
{
	int ret = 0;

	while (!ret && goes_on(s)) {
		ret = take(s, s->cap, TURN_MS);
		if (!ret && s->fates)
			ret = take(s, s->fates, 0);
		if (!ret && now_ns(CLOCK_MONOTONIC) - s->read_ns >= READ_NS)
			ret = read_states(s) ? 1 : 0;
	}
	if (ret == 1)
		s->t->end = TRACE_BY_APPLICATION;
	return ret < 0 ? ret : 0;
}

/* Takes what threads have captured so far. */
static int drain(struct session *s, struct ringtap_capture *cap)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};
	int ret = s->full ? 1 : 0;

	if (!cap)
		return 0;
	if (!ret)
		(void)ringtap_capture_stop(cap); /* the next call reports it */
	while (!ret && !s->full)
		ret = take(s, cap, -1);
	if (!ringtap_capture_stats(cap, &stats))
		for (unsigned i = 0; i < RINGTAP_LOST_MAX; i++)
			*(cap == s->fates ? &s->fates_lost : &s->lost) += stats.total.lost[i];
	return ret < 0 ? ret : 0;
}

/* enum status */
static int finish(struct session *s, int error)
{
	struct timeline *l = &s->l;
	uint64_t ended_ns = now_ns(CLOCK_MONOTONIC);
	int ret;

	if (!error)
		error = drain(s, s->cap);
	if (!error)
		error = drain(s, s->fates);
	(void)read_states(s); /* the next call reports it */
	ret = trace_detach(s->t);
	s->t->end_ns = ended_ns; /* the rest was behind it */
	l->stats = s->t->stats;
	if (ret == STATUS_OK)
		timeline_open_gaps(l, l->stats);
	s->ended_ns = now_ns(CLOCK_REALTIME);
	timeline_end(l, s->ended_ns);
	return error ? STATUS_FAILED : ret;
}

/* ---- the report */

static json_t *calls_json(const struct timeline *l, enum timeline_kind kind)
{
	return json_pack("{s:o,s:o}", "bursts", json_count(l->bursts[kind]), "packets",
		json_count(l->packets[kind]));
}

static json_t *document(const struct session *s)
{
	const struct timeline *l = &s->l;
	const struct trace_config *cfg = s->t->cfg;
	json_t *doc = trace_document(s->t);

	json_put(doc, "file", json_text(cfg->output));
	json_put(doc, "page", json_text(cfg->html));
	json_put(doc, "bytes", json_count(l->out.bytes));
	json_put(doc, "threads", json_count(l->thread_count));
	json_put(doc, "received", calls_json(l, TIMELINE_RX));
	json_put(doc, "sent", calls_json(l, TIMELINE_TX));
	json_put(doc, "lost", json_count(s->lost + l->untracked));
	json_put(doc, "timed", wants_ids(s->t) ? json_count(l->timed) : json_null());
	json_put(doc, "not_offered", cfg->fates ? json_count(l->not_offered) : json_null());
	json_put(doc, "unknown", cfg->fates ? json_count(l->unknown) : json_null());
	json_put(doc, "fates_lost", cfg->fates ? json_count(s->fates_lost) : json_null());
	json_put(doc, "gaps", json_count(l->gaps));
	json_put(doc, "busy_periods", json_count(l->busy));
	json_put(doc, "intervals_lost", json_count(l->intervals_lost));
	json_put(doc, "switches",
		l->off.since_ns || l->switches ? json_count(l->switches) : json_null());
	json_put(doc, "tracks_missing", json_count(l->out.beyond));
	return doc;
}

static void print_calls(const json_t *doc, const char *key, const char *what)
{
	const json_t *calls = json_object_get(doc, key);
	char bursts[FORMAT_LEN], packets[FORMAT_LEN];

	printf("  %-18s %15s  of %s packets\n", what,
		format_count(
			bursts, (uint64_t)json_integer_value(json_object_get(calls, "bursts"))),
		format_count(
			packets, (uint64_t)json_integer_value(json_object_get(calls, "packets"))));
}

static const char *const counts[][2] = {{"timed", "packets timed"},
	{"not_offered", "packets not offered"}, {"unknown", "fate unknown"},
	{"gaps", "polling gaps"}, {"busy_periods", "busy periods"},
	{"switches", "scheduler switches"}, {"lost", "packets lost"}, {"fates_lost", "fates lost"},
	{"intervals_lost", "gaps, periods lost"}, {"tracks_missing", "tracks missing"}};

static void print_file(const json_t *doc)
{
	char name[RINGTAP_NAME_LEN], path[4096], text[FORMAT_LEN];
	const char *file = json_string_value(json_object_get(doc, "file"));

	printf("%s: %.1f s in ",
		printable(name, sizeof(name), json_string_value(json_object_get(doc, "name"))),
		trace_seconds(doc));
	if (file)
		printf("%s (%s)\n", printable(path, sizeof(path), file),
			format_bytes(text, json_number_value(json_object_get(doc, "bytes"))));
	else
		printf("%s\n", printable(path, sizeof(path),
				       json_string_value(json_object_get(doc, "page"))));
}

static void print(const json_t *doc)
{
	char text[FORMAT_LEN];

	print_file(doc);
	print_calls(doc, "received", "bursts received");
	print_calls(doc, "sent", "bursts sent");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const json_int_t n = json_integer_value(json_object_get(doc, counts[i][0]));

		if (n)
			printf("  %-18s %15s\n", counts[i][1], format_count(text, (uint64_t)n));
	}
	if (json_is_string(json_object_get(doc, "file")))
		printf("Open the file in https://ui.perfetto.dev\n");
}

/* ---- the page */

static void add_facts(struct view *v, const struct session *s)
{
	const struct ringtap_app_info *app = &s->t->info;
	json_t *doc = document(s);
	char text[FORMAT_LEN];

	view_application(v, s->t->app.name, (uint32_t)s->t->pid, app->program);
	view_fact(v, "application", s->t->app.name, app->program);
	view_fact(v, "host", json_string_value(json_object_get(v->document, "host")), NULL);
	view_time_fact(v, "begin", s->began_ns);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		json_int_t n = json_integer_value(json_object_get(doc, counts[i][0]));

		if (n)
			view_fact(v, counts[i][1], format_count(text, (uint64_t)n),
				"in all of the trace");
	}
	json_decref(doc);
}

static void add_notes(struct view *v, const struct session *s, bool full)
{
	char text[512], bars[FORMAT_LEN];

	if (s->l.off.refused) {
		snprintf(text, sizeof(text), "The scheduler is not shown: %s; %s.",
			strerror(-s->l.off.refused), switches_remedy(-s->l.off.refused));
		view_note(v, text);
	}
	if (!full)
		return;
	snprintf(text, sizeof(text), "The page ends after %s bars%s.",
		format_count(bars, TIMELINE_BARS), s->t->cfg->output ? "; the file goes on" : "");
	view_note(v, text);
}

/* 0 or -errno. */
static int write_page(const struct session *s)
{
	const struct perfetto *out = &s->l.out;
	uint64_t full_ns = timeline_page_full_ns(out->page);
	uint64_t to_ns = full_ns > s->began_ns ? full_ns : s->ended_ns;
	char title[RINGTAP_NAME_LEN + 32];
	struct view v;

	snprintf(title, sizeof(title), "Timeline of %s", s->t->app.name);
	view_begin(&v, "trace", title, s->began_ns, to_ns);
	add_facts(&v, s);
	add_notes(&v, s, full_ns);
	timeline_page_view(out->page, &v, s->began_ns, to_ns);
	return web_page_write(v.document, s->html.f);
}

/* ---- the report */

static void print_full(const struct session *s)
{
	const struct trace *t = s->t;
	char size[FORMAT_LEN];

	if (!s->full || t->cfg->quiet)
		return;
	if (t->cfg->output)
		message_print(
			"trace timeline: %s is full at %s (--max-file): the timeline ends there",
			t->cfg->output, write_size(size, t->cfg->max_bytes));
	else
		message_print("trace timeline: %s is full at %s bars: the timeline ends there; -w "
			      "FILE has room for millions",
			t->cfg->html, format_count(size, TIMELINE_BARS));
}

/* The numbers in it are those at the end. */
static int report(const struct session *s)
{
	const struct trace *t = s->t;

	print_full(s);
	if (s->l.switches_lost && !t->cfg->quiet)
		message_print(
			"trace timeline: some switches of the scheduler are missing: there were "
			"too many, or a thread was new");
	return trace_report(t, document(s), print);
}

static void free_session(struct session *s)
{
	timeline_page_free(s->l.out.page);
	timeline_free(&s->l);
	ringtap_packets_free(s->walk);
	ringtap_capture_close(s->cap);
	ringtap_capture_close(s->fates);
}

static int open_files(struct session *s)
{
	const struct trace_config *cfg = s->t->cfg;

	if (cfg->output && out_file_open(&s->file, "trace timeline", cfg->output))
		return STATUS_FAILED;
	if (s->file.f)
		setvbuf(s->file.f, NULL, _IOFBF, FILE_ROOM);
	if (!cfg->html)
		return STATUS_OK;
	if (out_file_open(&s->html, "trace timeline", cfg->html))
		return STATUS_FAILED;
	s->l.out.page = timeline_page_new();
	return s->l.out.page ? STATUS_OK
			     : message_fail(STATUS_FAILED, "trace timeline: %s", strerror(ENOMEM));
}

/* enum status */
static int close_files(struct session *s, int status)
{
	int error = status == STATUS_OK && s->html.f ? write_page(s) : 0;

	if (out_file_close(&s->file, "trace timeline", s->l.out.error))
		status = STATUS_FAILED;
	if (out_file_close(&s->html, "trace timeline", error))
		status = STATUS_FAILED;
	return status;
}

int trace_timeline(struct trace *t)
{
	struct session s = {.t = t};
	int ret = open_files(&s);

	s.l.out.start_ns = now_ns(CLOCK_REALTIME);
	s.l.out.boot_ns = now_ns(CLOCK_BOOTTIME);
	if (ret == STATUS_OK)
		ret = trace_attach(t, COLLECTORS);
	if (ret == STATUS_OK && begin(&s))
		ret = STATUS_FAILED;
	if (ret == STATUS_OK) {
		s.began_ns = now_ns(CLOCK_REALTIME);
		(void)read_states(&s); /* the first values of counters; an end is noticed below */
		trace_started(t);
		ret = finish(&s, follow(&s));
	}
	ret = close_files(&s, ret);
	if (ret == STATUS_OK)
		ret = report(&s);
	free_session(&s);
	return ret;
}
