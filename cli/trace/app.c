/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "measure/kernel.h"
#include "measure/rates.h"
#include "target/which_app.h"
#include "base/signals.h"
#include "trace.h"

/* PROC_PID_INIT_INO of Linux, a stable number. */
#define PID_NS_FIRST 0xEFFFFFFC

#define TICK_NS (NS_PER_S / 5)

static int trace_find(struct trace *t)
{
	const struct trace_config *cfg = t->cfg;
	const struct one_app_words words = {.list = {cfg->name}, .count = cfg->name != NULL};
	char command[64];
	int ret;

	snprintf(command, sizeof(command), "trace %s",
		cfg->what == TRACE_PROGRAM ? "-e PROGRAM" : cfg->word);
	t->app.attach = cfg->attach;
	ret = one_app_resolve(&t->app, command, &words);
	if (!ret && t->app.port_count &&
		!(cfg->what >= TRACE_BURST && cfg->what <= TRACE_TIMELINE)) {
		message_print("%s: %s: its events are those of all ports; give an application only",
			command, t->cfg->name);
		ret = -EINVAL;
	}
	return !ret ? STATUS_OK : ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

static int print_refused(const struct trace *t, int error, const char *err)
{
	print_not_attached("trace", t->app.name, error, err);
	return STATUS_FAILED;
}

/* False after printing that the application has no such port. */
static bool has_port(const struct trace *t, struct ringtap_conn *conn)
{
	struct ringtap_list *list;
	bool found;

	if (ringtap_conn_list(conn, &list))
		return true; /* the next step reports it */
	found = target_has_port(list, t->app.ports[0]);
	if (!found)
		print_no_port("trace", t->app.name, t->info.host_pid, t->app.ports[0], list);
	ringtap_list_free(list);
	return found;
}

int trace_meet(struct trace *t)
{
	struct ringtap_conn *conn;
	char err[512];
	int ret = trace_find(t);

	if (ret != STATUS_OK)
		return ret;
	ret = ringtap_conn_open(&conn, t->app.dir, NULL, err, sizeof(err));
	if (ret)
		return print_refused(t, ret, err);
	t->info.size = sizeof(t->info);
	ret = ringtap_conn_app(conn, &t->info);
	if (!ret && t->app.port_count && !has_port(t, conn)) {
		ringtap_conn_close(conn);
		return STATUS_FAILED;
	}
	t->pid = (pid_t)t->info.host_pid;
	ringtap_conn_close(conn);
	if (ret || t->pid <= 0)
		return message_fail(STATUS_FAILED,
			"trace: %s: its process is not visible here, in this PID namespace; run "
			"ringtap on the host, or share the PID namespace",
			t->app.name);
	if (!stop_catch())
		return STATUS_OK;
	return message_fail(STATUS_FAILED, "trace: %s", strerror(errno));
}

int trace_attach(struct trace *t, unsigned collectors)
{
	char err[512];
	const struct ringtap_monitor_options opts = {
		.size = sizeof(opts), .collectors = collectors, .latency_every = 1};
	struct ringtap_app_info now = {.size = sizeof(now)};
	int ret;

	ringtap_break_fd(stop_fd());
	ret = ringtap_monitor_open(&t->mon, t->app.dir, &opts, err, sizeof(err));
	ringtap_break_fd(-1);
	if (ret)
		return print_refused(t, ret, err);
	/* The monitor belongs to one process from here on: check that it is the tracer's. */
	if (!ringtap_monitor_app(t->mon, &now) && (pid_t)now.host_pid == t->pid)
		return STATUS_OK;
	return message_fail(STATUS_FAILED,
		"trace: %s: it ended or was restarted meanwhile; try again", t->app.name);
}

bool trace_in_first_pid_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == PID_NS_FIRST;
}

void trace_started(struct trace *t)
{
	char name[RINGTAP_NAME_LEN], program[RINGTAP_NAME_LEN];

	t->start_ns = now_ns(CLOCK_MONOTONIC);
	if (!t->cfg->quiet)
		fprintf(stderr, "Tracing %s (%s, pid %d)\n",
			printable(name, sizeof(name), t->app.name),
			printable(program, sizeof(program), t->info.program), (int)t->pid);
}

enum trace_end trace_wait(struct trace *t, struct child *c, uint64_t until_ns)
{
	struct child none = CHILD_NONE;
	int app = t->mon ? ringtap_monitor_fd(t->mon) : -1;
	uint64_t now;

	if (!c)
		c = &none;
	for (;;) {
		struct pollfd p = {.fd = app, .events = POLLIN};

		now = now_ns(CLOCK_MONOTONIC);
		if (stop_wait(0))
			return TRACE_BY_SIGNAL;
		if (c->ended)
			return TRACE_BY_ITSELF;
		if (poll(&p, 1, 0) > 0)
			return TRACE_BY_APPLICATION;
		if (now >= until_ns)
			return TRACE_BY_LIMIT;
		child_watch(c, stop_fd(), app, until_ns - now < TICK_NS ? until_ns - now : TICK_NS);
	}
}

static bool any_newer(const struct ringtap_snapshot *s, uint64_t ns)
{
	for (uint32_t i = 0; i < s->port_count; i++) {
		if (ringtap_snapshot_port(s, i)->read_ns > ns)
			return true;
	}
	return false;
}

/* A snapshot that is newer than the probe's last reading of the drivers' counters (twice a second):
 * what they lost before is among the events. Ports are read one after the other, and not while they
 * are stopped: those behind the first newer one get another tick. */
static int last_snapshot(struct trace *t)
{
	uint64_t now = now_ns(CLOCK_REALTIME), until = now_ns(CLOCK_MONOTONIC) + 2 * NS_PER_S;
	bool last = t->cfg->what != TRACE_DROPS;
	int ret;

	for (;;) {
		ringtap_snapshot_free(t->stats);
		ret = ringtap_monitor_read(t->mon, &t->stats);
		if (ret || last)
			return ret;
		last = any_newer(t->stats, now) || now_ns(CLOCK_MONOTONIC) >= until;
		/* Not stop_wait(): often a signal has ended the trace. */
		rt_sleep_ns(NS_PER_S / 100);
	}
}

int trace_detach(struct trace *t)
{
	int ret = last_snapshot(t);

	ringtap_monitor_close(t->mon);
	t->mon = NULL;
	t->end_ns = now_ns(CLOCK_MONOTONIC);
	if (ret == -EPIPE)
		t->end = TRACE_BY_APPLICATION;
	else if (ret)
		return message_fail(
			STATUS_FAILED, "trace: %s: its statistics are corrupt", t->app.name);
	/* DPDK's trace is in the application's memory: it is lost. */
	if (t->end == TRACE_BY_APPLICATION && !t->cfg->quiet && t->cfg->what != TRACE_DPDK)
		message_print(
			"trace: %s ended; the result covers the time until then", t->app.name);
	return STATUS_OK;
}

void trace_free(struct trace *t)
{
	ringtap_monitor_close(t->mon);
	ringtap_snapshot_free(t->stats);
	one_app_free(&t->app);
}

/* Port numbers are reused: the last port with this one counts. RINGTAP_NO_INDEX: there is none. */
static uint32_t index_of(const struct trace *t, uint64_t port)
{
	uint32_t found = RINGTAP_NO_INDEX;

	for (uint32_t i = 0; i < t->stats->port_count; i++)
		if (ringtap_snapshot_port(t->stats, i)->port_id == port)
			found = i;
	return found;
}

bool trace_wants_port(const struct trace *t, uint64_t port)
{
	return one_app_includes(&t->app, t->stats, index_of(t, port));
}

bool trace_wants_thread(const struct trace *t, uint64_t tid)
{
	bool wants = !t->app.port_count;

	for (uint32_t i = 0; i < t->stats->queue_count && !wants; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(t->stats, i);

		wants = one_app_includes(&t->app, t->stats, q->port) &&
			trace_our_tid(t, ringtap_snapshot_thread(t->stats, q->thread)->tid) == tid;
	}
	return wants;
}

/* The name of a port; NULL: unknown. Lives as long as the stats. */
static const char *trace_port(const struct trace *t, uint64_t port)
{
	uint32_t i = index_of(t, port);

	return i == RINGTAP_NO_INDEX ? NULL : ringtap_snapshot_port(t->stats, i)->name;
}

json_t *trace_port_json(const struct trace *t, uint64_t port)
{
	return json_port((uint32_t)port, trace_port(t, port));
}

uint64_t trace_our_tid(const struct trace *t, uint64_t tid)
{
	char path[64];
	struct dirent *e;
	uint64_t ours = 0;
	DIR *d;

	if (t->info.pid == (uint32_t)t->pid)
		return tid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	d = opendir(path);
	while (d && !ours && (e = readdir(d)))
		if (kernel_own_tid(e->d_name) == tid)
			ours = strtoull(e->d_name, NULL, 10);
	if (d)
		closedir(d);
	return ours;
}

json_t *trace_thread_json(const struct trace *t, uint64_t tid, const char *name)
{
	uint32_t lcore = UINT32_MAX;

	for (uint32_t i = 0; i < t->stats->thread_count; i++) {
		const struct ringtap_thread_stats *f = ringtap_snapshot_thread(t->stats, i);

		if (f->tid && f->lcore != UINT32_MAX && trace_our_tid(t, f->tid) == tid)
			lcore = f->lcore;
	}
	return json_thread(lcore, name, (uint32_t)tid);
}

char *trace_thread_text(char buf[THREAD_NAME_LEN], const json_t *thread)
{
	const json_t *lcore = json_object_get(thread, "lcore");
	const char *name = json_string_value(json_object_get(thread, "name"));

	return thread_text(buf,
		lcore && json_is_integer(lcore) ? (uint32_t)json_integer_value(lcore) : UINT32_MAX,
		name ? name : "", (uint32_t)json_integer_value(json_object_get(thread, "tid")));
}

json_t *trace_document(const struct trace *t)
{
	json_t *j = json_application(t->app.name, (uint32_t)t->pid, t->info.program);

	json_put(j, "duration_ns", json_count(t->end_ns - t->start_ns));
	return j;
}

double trace_seconds(const json_t *doc)
{
	return json_number_value(json_object_get(doc, "duration_ns")) / NS_PER_S;
}

int trace_report(const struct trace *t, json_t *doc, void (*print)(const json_t *doc))
{
	static const char *const ends[] = {"duration", "signal", "application", "program", "size"};
	char command[32];
	int ret = 0;

	if (t->cfg->json) {
		snprintf(command, sizeof(command), "trace %s", t->cfg->word);
		doc = json_document(command, doc);
		if (t->end_ns)
			json_put(doc, "ended_by", json_text(ends[t->end]));
		ret = json_print(doc, stdout);
	} else {
		print(doc);
		json_decref(doc);
	}
	return output_end("trace", ret);
}
