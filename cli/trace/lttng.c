/* SPDX-License-Identifier: BSD-3-Clause */
/* An LTTng session, by the lttng command: it has time limits, which liblttng-ctl's calls lack. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "common/pages.h"
#include "measure/rates.h"
#include "base/signals.h"
#include "telemetry.h"
#include "trace.h"
#include "tracers.h"
#include "undo.h"

#define CHANNEL     "ringtap"
#define SUBBUFFERS  8 /* per CPU */
#define DAEMON_NS   (15 * NS_PER_S)
#define DESTROY_NS  (40 * NS_PER_S)
#define COUNT_NS    (30 * NS_PER_S)
#define COMMAND_NS  (30 * NS_PER_S)
#define SESSION_MAX 256
#define ARGS_MAX    20

struct lttng {
	struct trace *t;
	char session[64], folder[4096];
	char previous[SESSION_MAX]; /* the user's own, "": none */
	struct child daemon;        /* ours, where there was none */
	struct trace_undo undo;
	int64_t discarded, lost_packets, recorded; /* events, packets, events; -1: unknown */
};

/* Runs a program to its end, at most patience_ns. quiet: without messages, and until a signal
 * comes. out: its standard output; NULL: not wanted. 0 if it ended with status 0. */
static int run_tool(
	const char *const argv[], uint64_t patience_ns, bool quiet, struct child_text *out)
{
	const struct child_config cfg = {.flags = CHILD_READ_OUT | CHILD_READ_ERR};
	uint64_t until = now_ns(CLOCK_MONOTONIC) + patience_ns;
	const char *why = "failed";
	struct child c;
	int ret = child_start(&c, argv, &cfg);

	while (!ret && !c.ended && now_ns(CLOCK_MONOTONIC) < until && !(quiet && stop_wait(0)))
		child_watch(&c, quiet ? stop_fd() : -1, -1, NS_PER_S / 10);
	if (ret)
		why = strerror(-ret);
	else if (!c.ended)
		why = "does not end";
	else if (c.status && (c.text[0].len || c.text[1].len))
		why = c.text[c.text[1].len ? 1 : 0].data;
	why += strspn(why, "\r\n ");
	ret = ret || !c.ended || c.status ? -ECHILD : 0;
	if (ret && !quiet)
		message_print("trace: %s: %.*s", argv[0], (int)strcspn(why, "\r\n"), why);
	if (!ret && out) {
		*out = c.text[0];
		c.text[0] = (struct child_text){0};
	}
	child_free(&c);
	return ret;
}

static bool quietly(const char *const argv[], uint64_t patience_ns, struct child_text *out)
{
	return !run_tool(argv, patience_ns, true, out);
}

/* Runs lttng, which must not start a daemon: nothing would end it. The last argument is NULL. */
static int command(struct child_text *out, const char *const words[])
{
	const char *argv[ARGS_MAX + 1] = {"lttng", "--no-sessiond"};
	unsigned n = 2;

	if (out) {
		argv[n++] = "--mi";
		argv[n++] = "xml";
	}
	while (*words && n < ARGS_MAX)
		argv[n++] = *words++;
	return run_tool(argv, COMMAND_NS, false, out);
}

#define LTTNG(...) command(NULL, (const char *const[]){__VA_ARGS__, NULL})

static bool daemon_runs(void)
{
	return quietly(
		(const char *const[]){"lttng", "--no-sessiond", "list", NULL}, DAEMON_NS, NULL);
}

static int start_daemon(struct lttng *l)
{
	const char *const argv[] = {"lttng-sessiond", "--no-kernel", NULL};
	uint64_t until = now_ns(CLOCK_MONOTONIC) + DAEMON_NS;
	const char *why = "does not answer";
	int ret;

	if (daemon_runs())
		return 0;
	ret = child_start(&l->daemon, argv,
		&(struct child_config){
			.flags = CHILD_READ_OUT | CHILD_READ_ERR, .death_signal = SIGTERM});
	while (!ret && !l->daemon.ended && now_ns(CLOCK_MONOTONIC) < until && !stop_wait(0)) {
		if (daemon_runs())
			return 0;
		child_watch(&l->daemon, stop_fd(), -1, NS_PER_S / 20);
	}
	if (ret)
		why = strerror(-ret);
	else if (stop_wait(0))
		why = "interrupted before it answered";
	else if (l->daemon.text[1].len)
		why = l->daemon.text[1].data;
	return message_fail(-ECHILD, "trace: lttng-sessiond: %.*s", (int)strcspn(why, "\n"), why);
}

/* The user's current session, which the lttng command keeps in a file; "": none. */
static void current_session(char name[SESSION_MAX])
{
	const char *home = getenv("LTTNG_HOME");
	char path[4096];
	FILE *f;

	if (!home)
		home = getenv("HOME");
	snprintf(path, sizeof(path), "%s/.lttngrc", home ? home : "");
	f = fopen(path, "re");
	if (!f || fscanf(f, "session=%255s", name) != 1)
		name[0] = '\0';
	if (f)
		fclose(f);
}

/* Runs in a process of its own: also if this one is killed. */
static int destroy(void *ctx)
{
	const struct lttng *l = ctx;
	char current[SESSION_MAX];
	int ret;

	current_session(current);
	ret = LTTNG("destroy", l->session);
	if (l->previous[0] && !strcmp(current, l->session))
		(void)LTTNG("set-session", l->previous);
	return ret;
}

/* Buffers of each CPU: SUBBUFFERS parts, each a power of two. */
static int add_channel(const struct lttng *l)
{
	uint64_t part = 1;
	char size[24], count[8];

	while (part * 2 * SUBBUFFERS <= l->t->cfg->buffer_bytes)
		part *= 2;
	snprintf(size, sizeof(size), "%" PRIu64, part);
	snprintf(count, sizeof(count), "%d", SUBBUFFERS);
	return LTTNG("enable-channel", "--userspace", "--session", l->session, "--subbuf-size",
		size, "--num-subbuf", count, CHANNEL);
}

static int create(struct lttng *l)
{
	char pid[16];
	int ret;

	snprintf(pid, sizeof(pid), "%" PRIu32, l->t->info.pid);
	snprintf(l->session, sizeof(l->session), "ringtap-%d-%lld", (int)getpid(),
		(long long)(now_ns(CLOCK_REALTIME) / NS_PER_S));
	current_session(l->previous);
	if (trace_undo_start(&l->undo, destroy, l))
		return -ECHILD;
	ret = LTTNG("create", l->session, "--output", l->folder);
	/* 'lttng create' makes the new session the current one. */
	if (!ret && l->previous[0])
		(void)quietly((const char *const[]){"lttng", "--no-sessiond", "set-session",
				      l->previous, NULL},
			DAEMON_NS, NULL);
	if (!ret)
		ret = add_channel(l);
	/* Leaves other applications out. */
	if (!ret)
		ret = LTTNG("track", "--userspace", "--session", l->session, "--vpid", pid);
	if (!ret)
		ret = LTTNG("enable-event", "--userspace", "--session", l->session, "--channel",
			CHANNEL, "ringtap:*");
	return ret;
}

/* Sum of the numbers in all elements of that name. */
static int64_t sum_of(const char *xml, const char *element)
{
	char tag[64];
	int64_t sum = 0;

	snprintf(tag, sizeof(tag), "<%s>", element);
	for (const char *p = xml; (p = strstr(p, tag)); p += strlen(tag))
		sum += strtoll(p + strlen(tag), NULL, 10);
	return sum;
}

static void ask_losses(struct lttng *l)
{
	struct child_text xml = {0};

	l->discarded = l->lost_packets = -1;
	if (command(&xml, (const char *const[]){"list", l->session, NULL}) || !xml.data)
		return;
	l->discarded = sum_of(xml.data, "discarded_events");
	l->lost_packets = sum_of(xml.data, "lost_packets");
	child_text_free(&xml);
}

/* Counts events by babeltrace2. Unknown if that is not installed, takes long, or a signal comes
 * (but the one that ended the trace). False: it cannot read the trace. */
static bool count_recorded(struct lttng *l)
{
	/* step=+0: no progress messages. */
	const char *const argv[] = {"babeltrace2", l->folder, "--component=sink.utils.counter",
		"--params=step=+0", NULL};
	uint64_t until = now_ns(CLOCK_MONOTONIC) + COUNT_NS;
	struct child_text out = {0};
	const char *p;

	l->recorded = -1;
	if (!child_found("babeltrace2"))
		return true;
	stop_forget();
	if (!quietly(argv, COUNT_NS, &out))
		return stop_wait(0) || now_ns(CLOCK_MONOTONIC) >= until;
	p = out.data ? strstr(out.data, " Event message") : NULL;
	while (p && p > out.data && p[-1] != '\n')
		p--;
	l->recorded = p ? strtoll(p, NULL, 10) : -1;
	child_text_free(&out);
	return true;
}

/* Buffers of this size for each CPU, if they fit. */
static void print_advice(uint64_t bytes)
{
	char size[FORMAT_LEN];

	if (bytes * (uint64_t)sysconf(_SC_NPROCESSORS_CONF) <= rt_pages_available() / 2)
		printf("The buffers were full: try --buffer %s\n", write_size(size, bytes));
	else
		printf("The buffers were full, and there is no memory for larger ones of each CPU: "
		       "trace fewer events\n");
}

static void print(const json_t *doc, const struct lttng *l)
{
	char count[FORMAT_LEN], name[RINGTAP_NAME_LEN];

	printf("%s: %.1f s, in %s\n", printable(name, sizeof(name), l->t->app.name),
		trace_seconds(doc), l->folder);
	if (l->recorded >= 0)
		printf("  recorded  %15s events\n", format_count(count, (uint64_t)l->recorded));
	if (l->discarded >= 0)
		printf("  discarded %15s events\n", format_count(count, (uint64_t)l->discarded));
	else
		printf("  discarded         unknown\n");
	if (l->lost_packets > 0)
		printf("  lost      %15s packets of events\n",
			format_count(count, (uint64_t)l->lost_packets));
	if (l->discarded > 0)
		print_advice(4 * l->t->cfg->buffer_bytes);
}

static json_t *known(int64_t n)
{
	return n < 0 ? json_null() : json_integer(n);
}

static void print_nothing(const json_t *doc)
{
}

static int report(const struct lttng *l)
{
	json_t *doc = trace_document(l->t);

	json_object_set_new(doc, "directory", json_text(l->folder));
	json_object_set_new(doc, "events", known(l->recorded));
	json_object_set_new(doc, "discarded", known(l->discarded));
	json_object_set_new(doc, "lost_packets", known(l->lost_packets));
	if (!l->t->cfg->json)
		print(doc, l);
	return trace_report(l->t, doc, print_nothing);
}

static int record(struct lttng *l, unsigned collectors)
{
	struct trace *t = l->t;
	uint64_t duration = t->cfg->duration_ns;
	json_t *loaded = trace_command(t, "lttng");
	int ret;

	if (!loaded)
		return STATUS_FAILED;
	json_decref(loaded);
	if (LTTNG("start", l->session))
		return STATUS_FAILED;
	ret = trace_attach(t, collectors);
	if (ret != STATUS_OK)
		return ret;
	if (!trace_bursts_are(t, true) && !stop_wait(0))
		return message_fail(STATUS_FAILED,
			"trace: %s: it is not connected to LTTng; run ringtap as its user, or add "
			"that user to the group tracing",
			t->app.name);
	trace_started(t);
	t->end = trace_wait(t, l->daemon.pid ? &l->daemon : NULL,
		duration ? t->start_ns + duration : UINT64_MAX);
	ret = trace_detach(t);
	if (ret == STATUS_OK && t->end == TRACE_BY_ITSELF)
		return message_fail(STATUS_FAILED,
			"trace: lttng-sessiond ended: the trace in %s is incomplete", l->folder);
	if (ret == STATUS_OK && LTTNG("stop", l->session))
		ret = STATUS_FAILED;
	return ret;
}

static int run(struct lttng *l, unsigned collectors)
{
	bool ready = !trace_folder(l->t->cfg->output, l->folder) && !start_daemon(l) && !create(l);
	int destroyed, ret = ready ? record(l, collectors) : STATUS_FAILED;

	if (ret == STATUS_OK)
		ask_losses(l);
	destroyed = trace_undo_now(&l->undo, DESTROY_NS);
	if (l->daemon.pid && !child_stop(&l->daemon, SIGTERM, DAEMON_NS))
		message_print("trace: lttng-sessiond did not end within %d s and was killed",
			(int)(DAEMON_NS / NS_PER_S));
	if (ret != STATUS_OK)
		return ret;
	if (!destroyed && count_recorded(l))
		return report(l);
	return message_fail(STATUS_FAILED,
		"trace: the trace in %s is incomplete: %s; is the disk full?", l->folder,
		destroyed ? "LTTng could not end it" : "babeltrace2 cannot read it");
}

int trace_lttng(struct trace *t, unsigned collectors)
{
	struct lttng *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return message_fail(STATUS_FAILED, "trace: %s", strerror(errno));
	l->t = t;
	l->undo.fd = -1;
	l->daemon = (struct child)CHILD_NONE;
	ret = run(l, collectors);
	child_free(&l->daemon);
	free(l);
	return ret;
}
