/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "measure.h"
#include "rates.h"
#include "target/which_app.h"
#include "base/signals.h"
#include "base/util.h"

#define TICK_NS                                                                       \
	(NS_PER_S / 10) /* between snapshots: a run of samples does not stay for ever \
			 */

int measure_operand(void *options, const char *text)
{
	struct measure_options *o = options;

	return one_app_words(&o->words, o->command, text);
}

static int attach(struct measure *m)
{
	const struct ringtap_monitor_options opts = {.size = sizeof(opts),
		.collectors = m->collectors,
		.latency_every = m->latency_every};
	char err[512];
	int ret;

	m->info.size = sizeof(m->info);
	ret = ringtap_monitor_open(&m->mon, m->app.dir, &opts, err, sizeof(err));
	if (ret) {
		print_not_attached(m->options->command, m->app.name, ret, err);
		return STATUS_FAILED;
	}
	return ringtap_monitor_app(m->mon, &m->info) ? STATUS_FAILED : STATUS_OK;
}

static int begin(struct measure *m)
{
	struct ringtap_list *ports;
	const char *missing;
	int ret = ringtap_monitor_read(m->mon, &m->first);

	if (ret)
		return message_fail(STATUS_FAILED, "%s: %s: %s", m->options->command, m->app.name,
			ret == -EPIPE ? "the application has ended" : "its statistics are broken");
	missing = one_app_missing(&m->app, m->first);
	if (missing) {
		ports = target_ports(m->app.dir);
		print_no_port(m->options->command, m->app.name, m->info.host_pid, missing, ports);
		ringtap_list_free(ports);
		return STATUS_FAILED;
	}
	/* Only now: until here there is nothing to print, and a signal may end it all. */
	if (stop_catch())
		return STATUS_FAILED;
	/* From here on it counts: tests and scripts wait for this line. */
	if (!m->options->quiet)
		fprintf(stderr, "Measuring %s (%s, pid %u)\n", m->app.name, m->info.program,
			m->info.pid);
	return STATUS_OK;
}

/* Takes the next snapshot. 0, or -errno. */
static int step(struct measure *m, uint64_t *packets)
{
	struct ringtap_snapshot *f;
	int ret = ringtap_monitor_read(m->mon, &f);

	if (ret == -EPIPE)
		m->end = END_BY_APPLICATION;
	else if (ret)
		return ret;
	ringtap_snapshot_free(m->last);
	m->last = f;
	*packets = m->take(m->ctx, m->first, f);
	return 0;
}

static void show(const struct measure *m, uint64_t ns, uint64_t packets)
{
	char count[FORMAT_LEN];
	int n;

	if (m->options->quiet || !isatty(STDERR_FILENO))
		return;
	n = fprintf(stderr, "\r%.1f s, %s %s ", (double)ns / NS_PER_S, format_count(count, packets),
		m->what);
	message_live_line(n > 0 ? (size_t)n : 0);
}

/* Waits for the next tick, the end of the application, or a signal. True: a signal came. */
static bool nap(const struct measure *m, uint64_t left_ns)
{
	struct pollfd fds[2] = {{.fd = ringtap_monitor_fd(m->mon), .events = POLLIN},
		{.fd = stop_fd(), .events = POLLIN}};
	uint64_t ns = left_ns < TICK_NS ? left_ns : TICK_NS;

	(void)rt_poll_ns(fds, 2, ns);
	return stop_wait(0);
}

static int loop(struct measure *m)
{
	uint64_t start = now_ns(CLOCK_MONOTONIC), packets = 0, age;
	uint64_t duration = m->options->duration_ns ? m->options->duration_ns : UINT64_MAX;
	uint64_t wanted = m->options->packets ? m->options->packets : UINT64_MAX;
	bool over = false, stopped;
	int ret;

	while (!over) {
		age = now_ns(CLOCK_MONOTONIC) - start;
		stopped = nap(m, age < duration ? duration - age : 0);
		age = now_ns(CLOCK_MONOTONIC) - start;
		over = age >= duration || stopped;
		m->end = stopped ? END_BY_SIGNAL : END_BY_LIMIT;
		ret = step(m, &packets);
		if (ret)
			return message_fail(STATUS_FAILED, "%s: %s: its statistics are broken",
				m->options->command, m->app.name);
		show(m, age, packets);
		over |= packets >= wanted || m->end == END_BY_APPLICATION;
	}
	return STATUS_OK;
}

static void tell_end(const struct measure *m)
{
	if (m->options->quiet)
		return;
	if (isatty(STDERR_FILENO)) {
		fputc('\n', stderr);
		message_live_line(0);
	}
	if (m->end == END_BY_APPLICATION)
		message_print("%s: %s has ended; the results are those until then",
			m->options->command, m->app.name);
}

int measure_run(struct measure *m)
{
	const struct measure_options *o = m->options;
	int ret;

	m->app.attach = o->attach;
	ret = one_app_resolve(&m->app, o->command, &o->words);

	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	ret = attach(m);
	if (ret == STATUS_OK)
		ret = begin(m);
	if (ret == STATUS_OK)
		ret = loop(m);
	ringtap_monitor_close(m->mon);
	m->mon = NULL;
	if (ret != STATUS_OK)
		return ret;
	tell_end(m);
	ringtap_snapshot_since(m->last, m->first);
	return STATUS_OK;
}

void measure_free(struct measure *m)
{
	ringtap_monitor_close(m->mon);
	ringtap_snapshot_free(m->first);
	ringtap_snapshot_free(m->last);
	one_app_free(&m->app);
}

void measure_view(struct view *v, const struct measure *m, const char *what)
{
	char title[256], name[RINGTAP_NAME_LEN], text[FORMAT_LEN];
	uint64_t ns = m->last->interval_ns;

	snprintf(title, sizeof(title), "%s: %s", printable(name, sizeof(name), m->app.name), what);
	view_begin(v, m->options->command, title, m->last->taken_ns - ns, m->last->taken_ns);
	view_application(
		v, m->app.name, m->info.host_pid ? m->info.host_pid : m->info.pid, m->info.program);
	view_fact(v, "application", m->info.program, name);
	view_fact(v, "host", json_string_value(json_object_get(v->document, "host")), NULL);
	view_time_fact(v, "begin", m->last->taken_ns - ns);
	format_ns(text, (double)ns);
	view_fact(v, "duration", text,
		m->end == END_BY_APPLICATION ? "until the application ended" : NULL);
}
