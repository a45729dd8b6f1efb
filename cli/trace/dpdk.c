/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's own tracing: the application keeps events in its memory and saves them on request. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "measure/rates.h"
#include "base/signals.h"
#include "common/foreign.h"
#include "common/in_root.h"
#include "telemetry.h"
#include "trace.h"
#include "tracers.h"
#include "undo.h"

#define COPY_AT_ONCE (1u << 20)
#define COPY_MAX     (8ull << 30) /* bytes of a trace; threads have 1 MiB each by default */
#define ASK_MS       5000
#define OFF_NS       (8 * NS_PER_S)

static bool is_there(int error)
{
	return error != -ENOENT && error != -ECONNREFUSED && error != -EPROTONOSUPPORT;
}

/* A stopped application answers when it continues, or never. One that was restarted has no trace
 * point on. */
static int switch_off(void *ctx)
{
	const struct trace *t = ctx;
	json_t *answer = NULL;
	bool done = false;

	while (!done) {
		uint32_t pid;
		int ret = !ringtap_telemetry(t->app.dir, NULL, ASK_MS, NULL, &pid) && pid &&
					  (pid_t)pid != t->pid
				  ? -ENOENT
				  : trace_query_within(t->app.dir, "off", ASK_MS, &answer);

		done = !ret || !is_there(ret);
		if (!done)
			rt_sleep_ns(NS_PER_S);
	}
	json_decref(answer);
	return 0;
}

/* room: bytes that may still be copied; a file with holes may have any size. */
static int copy_file(int from_dir, const char *name, const char *to_dir, uint64_t *room)
{
	char path[8192];
	struct stat st;
	int from = rt_foreign_open(from_dir, name, O_NOFOLLOW, &st), to;
	ssize_t n = 1;
	off_t left;

	if (from < 0)
		return from == -EPERM ? 0 : from;
	if ((uint64_t)st.st_size > *room) {
		close(from);
		return -EFBIG;
	}
	*room -= (uint64_t)st.st_size;
	snprintf(path, sizeof(path), "%s/%s", to_dir, name);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	left = st.st_size; /* its size now: it may grow */
	while (to >= 0 && n > 0 && left > 0 && !stop_wait(0)) {
		n = sendfile(to, from, NULL, left < COPY_AT_ONCE ? (size_t)left : COPY_AT_ONCE);
		left -= n > 0 ? n : 0;
	}
	n = to < 0 || n < 0 ? -errno : stop_wait(0) ? -EINTR : 0;
	close(from);
	if (to >= 0 && close(to) && !n)
		n = -errno;
	return (int)n;
}

/* The application names the folder and is not trusted: only files of a trace are copied. */
static bool of_trace(const char *name)
{
	return !strcmp(name, "metadata") ||
	       (!strncmp(name, "channel0_", 9) && !name[9 + strspn(name + 9, "0123456789")]);
}

/* The application's working directory, in its own mount namespace. */
static int working_directory(pid_t pid, char cwd[PATH_MAX])
{
	char link[64], root[PATH_MAX];
	ssize_t n, root_len;

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	root_len = readlink(link, root, sizeof(root));
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	n = readlink(link, cwd, PATH_MAX - 1);
	if (n < 0 || root_len < 0)
		return -errno;
	cwd[n] = '\0';
	/* The kernel shows the link in our mount namespace. */
	if (root_len > 1 && n >= root_len && !memcmp(cwd, root, (size_t)root_len))
		memmove(cwd, cwd + root_len, (size_t)(n - root_len) + 1);
	return 0;
}

/* The path is resolved below the application's root: it must not lead to files outside of it. */
static int open_reported(pid_t pid, const char *reported)
{
	char root[64], cwd[PATH_MAX] = "", path[2 * PATH_MAX];
	int fd, top, ret = *reported == '/' ? 0 : working_directory(pid, cwd);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/%s", cwd, reported);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	fd = rt_open_in_root(top, path, O_RDONLY | O_DIRECTORY);
	close(top);
	return fd;
}

/* The number of files, or -errno. */
static int copy_trace(const struct trace *t, const char *directory, const char *to)
{
	int fd = open_reported(t->pid, directory), ret = fd < 0 ? fd : 0, files = 0;
	uint64_t room = COPY_MAX;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (fd >= 0 && !d) {
		ret = -errno;
		close(fd);
	}
	while (d && !ret && (e = readdir(d))) {
		if (!of_trace(e->d_name))
			continue;
		ret = copy_file(dirfd(d), e->d_name, to, &room);
		files++;
	}
	if (d)
		closedir(d);
	if (ret)
		message_print("trace: copying the application's %s to %s: %s", directory, to,
			strerror(-ret));
	return ret ? ret : files;
}

static json_int_t count_of(const json_t *state, const char *kind, const char *event)
{
	return json_integer_value(json_object_get(json_object_get(state, kind), event));
}

static json_int_t increase(
	const json_t *before, const json_t *after, const char *kind, const char *event)
{
	return count_of(after, kind, event) - count_of(before, kind, event);
}

/* Adds the events of this trace, and how many of them it lost. Events of an earlier trace, which it
 * has overwritten, are not counted. */
static void add_events(json_t *doc, const json_t *before, const json_t *after)
{
	json_t *events = json_object(), *lost = json_object(), *n;
	const char *event;

	json_object_foreach(json_object_get(after, "emitted"), event, n)
	{
		json_int_t emitted = increase(before, after, "emitted", event);
		json_int_t gone = increase(before, after, "lost", event) -
				  increase(before, after, "lost_earlier", event);

		if (emitted > 0)
			json_object_set_new(events, event, json_integer(emitted));
		if (emitted > 0 && gone > 0)
			json_object_set_new(
				lost, event, json_integer(gone < emitted ? gone : emitted));
	}
	json_object_set_new(doc, "events", events);
	json_object_set_new(doc, "lost", lost);
}

static void print(const json_t *doc)
{
	const json_t *lost = json_object_get(doc, "lost"), *n;
	const char *saved_to = json_string_value(json_object_get(doc, "saved_to"));
	char count[FORMAT_LEN], path[PATH_MAX], name[RINGTAP_NAME_LEN];
	const char *event;

	printf("%s: %.1f s, ",
		printable(name, sizeof(name), json_string_value(json_object_get(doc, "name"))),
		trace_seconds(doc));
	if (saved_to)
		printf("in %s; the application saved it to %s\n",
			json_string_value(json_object_get(doc, "directory")),
			printable(path, sizeof(path), saved_to));
	else
		printf("and no event: there is no trace\n");
	json_object_foreach((json_t *)json_object_get(doc, "events"), event, n)
	{
		json_int_t gone = json_integer_value(json_object_get(lost, event));

		printf("  %-14s %15s\n", printable(name, sizeof(name), event),
			format_count(count, (uint64_t)json_integer_value(n)));
		if (gone)
			printf("    of which %s are not in the trace: its buffers were full\n",
				format_count(count, (uint64_t)gone));
	}
	if (json_object_size(lost))
		printf("Larger buffers: start the application with EAL's --trace-bufsz=64M\n");
}

static int report(const struct trace *t, const char *to, const json_t *before, const json_t *after)
{
	json_t *doc = trace_document(t);

	json_object_set_new(doc, "directory", json_text(to));
	json_object_set(doc, "saved_to", json_object_get(after, "directory"));
	add_events(doc, before, after);
	json_object_set(doc, "buffer_bytes", json_object_get(after, "buffer_bytes"));
	json_object_set(doc, "mode", json_object_get(after, "mode"));
	return trace_report(t, doc, print);
}

/* The number of trace points that are on; -1: no answer. */
static json_int_t points_on(const struct trace *t)
{
	json_t *state;
	json_int_t n;

	if (trace_query_within(t->app.dir, "", ASK_MS, &state))
		return -1;
	n = json_integer_value(json_object_get(state, "points_on"));
	json_decref(state);
	return n;
}

/* enum status. *blind: another process switched points off meanwhile. They are off on return, so
 * that nothing is overwritten while it is saved. */
static int wait_and_switch_off(
	struct trace *t, const json_t *on, struct trace_undo *undo, bool *blind)
{
	uint64_t duration = t->cfg->duration_ns;
	char why[TRACE_WHY_LEN];
	json_int_t at_end;
	int off, ret;

	if (!trace_bursts_are(t, true) && !stop_wait(0))
		message_print(
			"trace: %s: DPDK's tracing is not on yet: the application answers slowly",
			t->app.name);
	trace_started(t);
	t->end = trace_wait(t, NULL, duration ? t->start_ns + duration : UINT64_MAX);
	at_end = points_on(t);
	*blind = at_end >= 0 && at_end < json_integer_value(json_object_get(on, "points_on"));
	off = trace_undo_now(undo, OFF_NS);
	ret = trace_detach(t);
	if (ret != STATUS_OK)
		return ret;
	if (t->end == TRACE_BY_APPLICATION)
		message_print(
			"trace: %s: it ended, and the trace in its memory is lost", t->app.name);
	else if (off)
		message_print(
			"trace: %s: %s; its trace points are switched off when it answers, and there "
			"is not a trace",
			t->app.name, trace_why_silent(t, why));
	return off || t->end == TRACE_BY_APPLICATION ? STATUS_FAILED : STATUS_OK;
}

static int save(struct trace *t, const char *to, const json_t *before)
{
	json_t *saved = trace_command(t, "save");
	const char *directory = json_string_value(json_object_get(saved, "directory"));
	int ret;

	if (!saved)
		return STATUS_FAILED;
	stop_forget(); /* another Ctrl-C ends the copying */
	/* Nothing is saved as long as no thread has had an event. */
	ret = directory && *directory ? copy_trace(t, directory, to) : 0;
	if (ret == 0)
		json_object_set_new(saved, "directory", json_null());
	ret = ret < 0 ? STATUS_FAILED : report(t, to, before, saved);
	json_decref(saved);
	return ret;
}

static int record(struct trace *t, const char *to, const json_t *before, const json_t *on,
	struct trace_undo *undo)
{
	bool blind;
	int ret = wait_and_switch_off(t, on, undo, &blind);

	if (ret == STATUS_OK)
		ret = save(t, to, before);
	if (ret != STATUS_OK || !blind)
		return ret;
	return message_fail(STATUS_FAILED,
		"trace: %s: another process switched DPDK's tracing off: the trace is incomplete",
		t->app.name);
}

/* Points that are on already, as by --trace, are kept as they are: telemetry switches all or none.
 * If all are, that only marks where this trace begins. The state once they are on, or NULL. */
static json_t *switch_on(struct trace *t, json_t *before, struct trace_undo *undo)
{
	json_int_t n = json_integer_value(json_object_get(before, "points_on"));
	size_t all = json_object_size(json_object_get(before, "emitted"));

	if (!n)
		return trace_undo_start(undo, switch_off, t) ? NULL : trace_command(t, "on");
	if ((size_t)n >= all)
		return trace_command(t, "on");
	message_print("trace: %s: %lld of %zu trace points were on already: these are traced",
		t->app.name, (long long)n, all);
	return json_incref(before);
}

int trace_dpdk(struct trace *t, unsigned collectors)
{
	struct trace_undo undo = {.fd = -1};
	json_t *before = trace_command(t, ""), *on = NULL;
	int ret = before ? STATUS_OK : STATUS_FAILED;
	char to[4096];

	if (ret == STATUS_OK && trace_folder(t->cfg->output, to))
		ret = STATUS_FAILED;
	if (ret == STATUS_OK)
		ret = trace_attach(t, collectors);
	if (ret == STATUS_OK) {
		on = switch_on(t, before, &undo);
		ret = on ? record(t, to, before, on, &undo) : STATUS_FAILED;
	}
	(void)trace_undo_now(&undo, OFF_NS);
	json_decref(before);
	json_decref(on);
	return ret;
}
