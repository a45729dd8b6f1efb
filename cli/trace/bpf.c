/* SPDX-License-Identifier: BSD-3-Clause */
/* bpftrace, on one application. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/json.h"
#include "target/probe_path.h"
#include "maps.h"
#include "trace.h"
#include "tracers.h"
#include "usdt/deleted_probe.h"

#define NAME      "ringtap:"
#define PREFIX    "usdt:*:"
#define ATTACH_NS (60 * NS_PER_S)
/* Time to detach, after SIGTERM: a second SIGINT would kill bpftrace. */
#define PATIENCE_NS (20 * NS_PER_S)
#define ARGS_MAX    16
/* Entries of a map, by port, queue and burst size. bpftrace's default, 4096, covers seven queues.
 */
#define KEYS_MAX 65536u
/* Made for bpftrace's own tests: it prints a line when all probes are attached. */
#define NOTIFY "__BPFTRACE_NOTIFY_PROBES_ATTACHED"
/* BEGIN runs when all probes are attached. */
#define READY_PROBE "\nBEGIN { printf(\"ready\"); }\n"
#define READY       "\"printf\""

/* Length of the comment or string that begins here; 0: none does. */
static size_t opaque(const char *p)
{
	const char *end;

	if (!strncmp(p, "/*", 2)) {
		end = strstr(p + 2, "*/");
		return end ? (size_t)(end - p) + 2 : strlen(p);
	}
	if (!strncmp(p, "//", 2))
		return strcspn(p, "\n");
	if (*p != '"')
		return 0;
	for (end = p + 1; *end && *end != '"'; end++)
		end += *end == '\\' && end[1];
	return (size_t)(end - p) + (*end == '"');
}

char *trace_probe_names(const char *program)
{
	char *out = NULL, last = ' ';
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	while (*program) {
		size_t n = opaque(program);
		bool comment = n && *program == '/';

		if (!n && !strncmp(program, NAME, strlen(NAME)) && !isalnum((unsigned char)last) &&
			!strchr("_:$@.*/-", last)) {
			fputs(PREFIX, f);
			n = strlen(NAME);
		}
		n = n ? n : 1;
		fwrite(program, 1, n, f);
		program += n;
		last = comment ? ' ' : program[-1];
	}
	if (fclose(f)) {
		free(out);
		return NULL;
	}
	return out;
}

static int add_file(FILE *to, const char *name)
{
	char path[4096], data[4096];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s.bt", trace_dir(), name);
	f = fopen(path, "r");
	if (!f)
		return message_fail(
			-ENOENT, "trace: %s: %s; install ringtap", path, strerror(errno));
	while ((n = fread(data, 1, sizeof(data), f)) > 0)
		fwrite(data, 1, n, to);
	fclose(f);
	return 0;
}

/* The program for bpftrace; the caller frees. */
static char *program_text(const struct trace_config *cfg)
{
	static const char *const names[] = {[TRACE_BURST] = "burst",
		[TRACE_LATENCY] = "latency",
		[TRACE_DROPS] = "drops",
		[TRACE_GAPS] = "gaps"};
	char *text = NULL;
	size_t len = 0;
	FILE *f;
	int ret;

	if (cfg->what == TRACE_PROGRAM)
		return trace_probe_names(cfg->program);
	f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	ret = add_file(f, cfg->off_cpu ? "offcpu" : names[cfg->what]);
	if (!ret && cfg->empty)
		ret = add_file(f, "polls");
	fputs(READY_PROBE, f);
	if (!fclose(f) && !ret)
		return text;
	free(text);
	return NULL;
}

/* bpftrace reads the tracepoints' formats there, and fails where tracefs is not mounted. Only the
 * child has the mount, so it is gone with it. */
static void mount_tracefs(void)
{
	if (!access("/sys/kernel/tracing/events", F_OK) ||
		!access("/sys/kernel/debug/tracing/events", F_OK))
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	(void)mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
}

/* bpftrace 0.20 renamed the variable. With the old name, it prints a warning or ignores it. */
static const char *keys_variable(void)
{
	FILE *f = popen("bpftrace --version 2>/dev/null", "re");
	unsigned major = 0, minor = 0;
	bool renamed;

	renamed = f && fscanf(f, "bpftrace v%u.%u", &major, &minor) == 2 && (major || minor >= 20);
	if (f)
		pclose(f);
	return renamed ? "BPFTRACE_MAX_MAP_KEYS" : "BPFTRACE_MAP_KEYS_MAX";
}

/* With -p, bpftrace does not find the probe of a file that is gone. */
static int start(struct trace *t, struct child *c, const char *text, bool by_pid)
{
	const struct trace_config *cfg = t->cfg;
	bool own = cfg->what == TRACE_PROGRAM;
	const char *argv[ARGS_MAX];
	char pid[16], number[24], keys[16];
	unsigned n = 0;
	int ret;

	snprintf(pid, sizeof(pid), "%d", (int)t->pid);
	snprintf(
		number, sizeof(number), "%" PRIu64, cfg->off_cpu ? (uint64_t)t->pid : cfg->long_ns);
	argv[n++] = "bpftrace";
	if (!own || cfg->json) {
		argv[n++] = "-f";
		argv[n++] = "json";
	}
	if (!own) {
		argv[n++] = "-B";
		argv[n++] = "none";
	}
	if (by_pid) {
		argv[n++] = "-p";
		argv[n++] = pid;
	}
	argv[n++] = "-e";
	argv[n++] = text;
	if (cfg->what == TRACE_GAPS)
		argv[n++] = number;
	argv[n] = NULL;
	snprintf(keys, sizeof(keys), "%u", KEYS_MAX);
	setenv(keys_variable(), keys, !own);
	if (own)
		setenv(NOTIFY, "1", 1);
	ret = child_start(c, argv,
		&(struct child_config){.flags = CHILD_REPEAT_STOP | CHILD_READ_ERR |
						CHILD_READ_OUT |
						(own ? CHILD_PASS_ERR | CHILD_PASS_OUT : 0),
			.prepare = mount_tracefs});
	c->notice = own ? NOTIFY : NULL;
	if (ret)
		message_print("trace: cannot start bpftrace: %s", start_error(ret));
	return ret;
}

/* Prints bpftrace's first message that is neither a warning nor about RLIMIT_MEMLOCK. */
static void print_failure(const struct child *c)
{
	const char *p = c->text[1].data ? c->text[1].data : "";

	for (; *p; p += *p == '\n') {
		size_t len = strcspn(p, "\n");

		/* Older versions print the latter as an error; newer kernels do not need it. */
		if (len && strncmp(p, "WARNING", 7) && !memmem(p, len, "RLIMIT_MEMLOCK", 14)) {
			message_print("trace: bpftrace: %.*s", (int)len, p);
			return;
		}
		p += len;
	}
	message_print("trace: bpftrace failed without a message");
}

static bool is_ready(const struct trace *t, const struct child *c)
{
	if (t->cfg->what == TRACE_PROGRAM)
		return !c->notice;
	return c->text[0].data && strstr(c->text[0].data, READY);
}

/* Waits until all probes are attached. False: they are not; t->end has the reason. */
static bool wait_ready(struct trace *t, struct child *c)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + ATTACH_NS, now = 0;

	t->end = TRACE_BY_LIMIT;
	while (t->end == TRACE_BY_LIMIT && now < until && !is_ready(t, c)) {
		now = now_ns(CLOCK_MONOTONIC);
		t->end = trace_wait(t, c, now + NS_PER_S / 100);
	}
	return is_ready(t, c) && t->end != TRACE_BY_SIGNAL;
}

/* The counts are valid only if bpftrace ended by itself. */
static int judge(const struct child *c, bool in_time)
{
	char end[CHILD_END_LEN];

	if (!in_time)
		message_print(
			"trace: bpftrace did not end within %d s and was killed: its counts are lost",
			(int)(PATIENCE_NS / NS_PER_S));
	else if (WIFSIGNALED(c->status))
		message_print(
			"trace: bpftrace was killed by %s: its counts are lost", child_end(c, end));
	else if (c->status && c->cfg.flags & CHILD_PASS_ERR)
		message_print("trace: bpftrace ended with %s", child_end(c, end));
	else if (c->status)
		print_failure(c);
	else
		return STATUS_OK;
	return STATUS_FAILED;
}

static void trace_until_end(struct trace *t, struct child *c)
{
	uint64_t duration = t->cfg->duration_ns;

	trace_started(t);
	t->end = trace_wait(t, c, duration ? t->start_ns + duration : UINT64_MAX);
}

/* Nothing was traced. */
static int print_not_ready(struct trace *t, struct child *c)
{
	if (t->end == TRACE_BY_SIGNAL)
		message_print("trace: interrupted before bpftrace had attached");
	else if (t->end == TRACE_BY_LIMIT)
		message_print(
			"trace: bpftrace did not attach within %d s", (int)(ATTACH_NS / NS_PER_S));
	else if (judge(c, true) == STATUS_OK)
		message_print("trace: %s: it ended before bpftrace had attached", t->app.name);
	return STATUS_FAILED;
}

static int run_canned(struct trace *t, struct child *c, unsigned collectors)
{
	int ret;

	if (!wait_ready(t, c))
		return print_not_ready(t, c);
	ret = trace_attach(t, collectors);
	if (ret != STATUS_OK)
		return ret;
	trace_until_end(t, c);
	ret = trace_detach(t);
	return ret == STATUS_OK ? judge(c, child_stop(c, SIGTERM, PATIENCE_NS)) : ret;
}

static int run_own(struct trace *t, struct child *c)
{
	bool in_time;
	int ret;

	if (!wait_ready(t, c))
		return print_not_ready(t, c);
	trace_until_end(t, c);
	in_time = child_stop(c, SIGTERM, PATIENCE_NS);
	ret = trace_detach(t);
	return ret == STATUS_OK ? judge(c, in_time) : ret;
}

/* The program, whose events are those of a removed file if the probe's is. It frees text. */
static char *reach_deleted(struct deleted_probe *d, char *text)
{
	char *names = deleted_probe_names(d, text);
	int ret = names ? deleted_probe_raise(d, names) : -ENOMEM;

	free(text);
	if (!ret)
		return names;
	message_print(
		"trace: the probe's file is gone, and its events cannot be reached in %s: %s; "
		"run ringtap as root, on the host",
		d->path, strerror(-ret));
	free(names);
	return NULL;
}

/* bpftrace drops entries beyond a full map without a message. */
static void print_full_maps(json_t *maps)
{
	const char *name;
	json_t *map;

	json_object_foreach(maps, name, map)
	{
		if (maps_size(map) >= KEYS_MAX)
			message_print("trace: %s is full at %u entries; later ones are missing",
				name, KEYS_MAX);
	}
}

int trace_bpf(struct trace *t, unsigned collectors, json_t **maps)
{
	struct child c = CHILD_NONE;
	bool own = t->cfg->what == TRACE_PROGRAM;
	struct deleted_probe deleted;
	char *text;
	int ret;

	if (t->cfg->what == TRACE_GAPS && !trace_in_first_pid_namespace())
		return message_fail(STATUS_FAILED,
			"trace: gaps: the kernel's thread numbers are not those of this PID "
			"namespace; run ringtap outside of containers");
	text = program_text(t->cfg);
	deleted_probe_find(&deleted, t->pid);
	if (text && *deleted.path)
		text = reach_deleted(&deleted, text);
	ret = text ? STATUS_OK : STATUS_FAILED;
	if (ret == STATUS_OK && own)
		ret = trace_attach(t, collectors);
	if (ret == STATUS_OK && start(t, &c, text, !*deleted.path))
		ret = STATUS_FAILED;
	if (ret == STATUS_OK)
		ret = own ? run_own(t, &c) : run_canned(t, &c, collectors);
	if (ret == STATUS_OK && !own) {
		*maps = maps_read(c.text[0].data ? c.text[0].data : "");
		print_full_maps(*maps);
	}
	child_free(&c);
	deleted_probe_close(&deleted);
	free(text);
	return ret;
}
