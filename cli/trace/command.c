/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/attach_app.h"
#include "cli/commands.h"
#include "base/json.h"
#include "measure/rates.h"
#include "reports.h"
#include "trace.h"
#include "tracers.h"

#define DEFAULT_NS      (10 * NS_PER_S)
#define DEFAULT_LONG_NS 100000
#define DEFAULT_BUFFER  (16u << 20) /* lttng's */
#define DEFAULT_FILE    (256u << 20)
#define FILE_MIN        (64u << 10)
#define FILE_MAX        (UINT64_C(1) << 40)
#define BUFFER_MIN      (64u << 10)
#define BUFFER_MAX      (1u << 30)
#define WORDS_MAX       2

enum {
	OPT_PROGRAM = 1,
	OPT_DURATION,
	OPT_EMPTY,
	OPT_OFF_CPU,
	OPT_LONG,
	OPT_LATENCY,
	OPT_FATES,
	OPT_MAX_FILE,
	OPT_WRITE,
	OPT_HTML,
	OPT_BUFFER,
};

struct trace_options {
	struct trace_config cfg;
	const char *words[WORDS_MAX]; /* operands */
	unsigned word_count;
	unsigned given; /* options that not all traces have, by bit */
};

#define TO(field) OPTION_TO(struct trace_options, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{OPTION_SET(OPT_PROGRAM), OPTION_TEXT, 'e', "program", "TEXT", NULL, 0, 0,
		"Run this bpftrace program; ringtap:EVENT stands for the event's probe"},
	{OPTION_SET(OPT_DURATION), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: 10s; lttng, dpdk and -e run until Ctrl-C)"},
	{OPTION_SET(OPT_EMPTY), OPTION_FLAG, 0, "empty", NULL, NULL, 0, 0,
		"burst: count empty polls as well, which slows down an idle application"},
	{OPTION_SET(OPT_OFF_CPU), OPTION_FLAG, 0, "off-cpu", NULL, NULL, 0, 0,
		"gaps: only the time without the CPU, and the tasks that took it; costs the "
		"application nothing"},
	{OPTION_SET(OPT_LONG), OPTION_TIME, 0, "long", "TIME", NULL, 1000, 1000 * NS_PER_S,
		"gaps: name the tasks that had the CPU in gaps of at least TIME (default: 100us)"},
	{OPTION_SET(OPT_LATENCY), OPTION_FLAG, 0, "latency", NULL, NULL, 0, 0,
		"lttng, dpdk, -e: time packets, for the event latency; timeline: also times of "
		"packets from receive to send, by ids in their mbufs"},
	{OPTION_SET(OPT_FATES), OPTION_FLAG, 0, "fates", NULL, NULL, 0, 0,
		"timeline: also packets that were received and not offered to any port; includes "
		"--latency"},
	{OPTION_SET(OPT_MAX_FILE), OPTION_SIZE, 0, "max-file", "SIZE", NULL, FILE_MIN, FILE_MAX,
		"timeline: stop when the file has SIZE (default: 256M, some 7 million bursts)"},
	{OPTION_SET(OPT_WRITE), OPTION_FILE, 'w', "write", "FILE|DIR", NULL, 0, 0,
		"timeline: file for Perfetto; lttng, dpdk: folder for the trace, which is created; "
		"CTF, for babeltrace2 and Trace Compass"},
	{OPTION_SET(OPT_HTML), OPTION_FILE, 0, "html", "FILE", NULL, 0, 0,
		"timeline: page with the first 100,000 bars, which needs nothing else; without -w "
		"the timeline ends with it"},
	{OPTION_SET(OPT_BUFFER), OPTION_SIZE, 0, "buffer", "SIZE", NULL, BUFFER_MIN, BUFFER_MAX,
		"lttng: buffer for events on each CPU (default: 16M, half a "
		"million bursts); timeline: memory for packets that wait to be read (default: "
		"256M)"},
	{TO(cfg.json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print JSON"},
	{TO(cfg.quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0,
		"Print errors only on standard error"},
	ATTACH_OPTION(struct trace_options, cfg.attach),
};
/* clang-format on */
#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

static int set(void *ctx, int id, const struct option_value *v)
{
	struct trace_options *c = ctx;
	struct trace_config *cfg = &c->cfg;

	c->given |= 1u << id;
	switch (id) {
	case OPT_PROGRAM: cfg->program = v->text; break;
	case OPT_EMPTY: cfg->empty = true; break;
	case OPT_OFF_CPU: cfg->off_cpu = true; break;
	case OPT_LONG: cfg->long_ns = v->number; break;
	case OPT_LATENCY: cfg->latency = true; break;
	case OPT_FATES: cfg->fates = true; break;
	case OPT_MAX_FILE: cfg->max_bytes = v->number; break;
	case OPT_WRITE: cfg->output = v->text; break;
	case OPT_HTML: cfg->html = v->text; break;
	case OPT_BUFFER: cfg->buffer_bytes = v->number; break;
	default: cfg->duration_ns = v->number; break;
	}
	return 0;
}

/* WHAT APP; with -e, which may follow it, APP. */
static int operand(void *ctx, const char *text)
{
	struct trace_options *c = ctx;

	if (c->word_count < WORDS_MAX) {
		c->words[c->word_count++] = text;
		return 0;
	}
	return message_fail(
		-EINVAL, "trace: %s: one application at a time; see 'ringtap trace --help'", text);
}

static int find_what(struct trace_options *c)
{
	const char *word = c->words[0];
	int i = word ? choice_index(TRACE_NAMES, word, strlen(word)) : -1;

	if (c->cfg.program && c->word_count < WORDS_MAX) {
		c->cfg.what = TRACE_PROGRAM;
		c->cfg.name = word;
		return 0;
	}
	if (c->cfg.program)
		message_print("trace: %s: with -e, give an application only", c->words[1]);
	else if (!word)
		message_print(
			"trace: nothing to trace; choose from %s, or give -e PROGRAM", TRACE_NAMES);
	else if (i < 0)
		message_print("trace: %s: unknown; %s", word,
			choice_advice(TRACE_NAMES, word, strlen(word),
				"choose from " TRACE_NAMES ", or give -e PROGRAM"));
	if (c->cfg.program || i < 0)
		return -EINVAL;
	c->cfg.what = (enum trace_what)i;
	c->cfg.word = word;
	c->cfg.name = c->words[1];
	return 0;
}

static const struct option_use uses[] = {
	{OPT_PROGRAM, "-e"},
	{OPT_DURATION, "burst|latency|drops|gaps|timeline|lttng|dpdk|-e"},
	{OPT_EMPTY, "burst"},
	{OPT_OFF_CPU, "gaps"},
	{OPT_LONG, "gaps"},
	{OPT_LATENCY, "timeline|lttng|dpdk|-e"},
	{OPT_FATES, "timeline"},
	{OPT_MAX_FILE, "timeline"},
	{OPT_WRITE, "timeline|lttng|dpdk"},
	{OPT_HTML, "timeline"},
	{OPT_BUFFER, "timeline|lttng"},
	{0, NULL},
};

/* An option that does not belong to the trace would silently do nothing. */
static int check_uses(const struct trace_options *c)
{
	const char *word = c->cfg.what == TRACE_PROGRAM ? "-e" : c->cfg.word;

	for (const struct option_def *o = options; o < options + OPTION_COUNT; o++) {
		const char *with = o->id ? option_with(&cmd_trace, o->id) : NULL;

		if (!with || !(c->given & 1u << o->id) ||
			choice_index(with, word, strlen(word)) >= 0)
			continue;
		return message_fail(-EINVAL, "trace: --%s: only with %s", o->name, with);
	}
	return 0;
}

/* Signals to end the trace wait while a pipe's reader does not read. */
static int check_pipe(const char *option, const char *path)
{
	struct stat st;

	if (path && !stat(path, &st) && S_ISFIFO(st.st_mode))
		return message_fail(
			-EINVAL, "trace: %s %s: that is a pipe; give a file", option, path);
	return 0;
}

static int check_output(const struct trace_config *cfg)
{

	if ((cfg->what == TRACE_LTTNG || cfg->what == TRACE_DPDK) && !cfg->output)
		return message_fail(-EINVAL, "trace: -w DIR is missing: a folder for the trace");
	if (cfg->what != TRACE_TIMELINE)
		return 0;
	if (!cfg->output && !cfg->html)
		return message_fail(
			-EINVAL, "trace: give -w FILE for Perfetto, or --html FILE for a page");
	if (cfg->html && cfg->output && !strcmp(cfg->html, cfg->output))
		return message_fail(-EINVAL, "trace: --html %s: that is the file of -w", cfg->html);
	return check_pipe("-w", cfg->output) || check_pipe("--html", cfg->html) ? -EINVAL : 0;
}

static int check(struct trace_options *c)
{
	struct trace_config *cfg = &c->cfg;

	if (find_what(c) || check_uses(c))
		return -EINVAL;
	if (cfg->off_cpu && c->given & 1u << OPT_LONG)
		return message_fail(-EINVAL,
			"trace: --long: cannot be combined with --off-cpu, which covers all "
			"preemptions");
	if (check_output(cfg))
		return -EINVAL;
	if (cfg->what == TRACE_LTTNG && !cfg->buffer_bytes)
		cfg->buffer_bytes = DEFAULT_BUFFER;
	if (!cfg->duration_ns && cfg->what >= TRACE_BURST && cfg->what <= TRACE_TIMELINE)
		cfg->duration_ns = DEFAULT_NS;
	return 0;
}

static const struct {
	void (*document)(const struct trace *t, json_t *maps, json_t *doc);
	void (*print)(const json_t *doc);
} canned[] = {
	[TRACE_BURST] = {burst_document, burst_print},
	[TRACE_LATENCY] = {latency_document, latency_bursts_print},
	[TRACE_DROPS] = {drops_document, drops_print},
	[TRACE_GAPS] = {gaps_document, gaps_print},
};

static int report(const struct trace *t, json_t *maps)
{
	enum trace_what what = t->cfg->what;
	bool off_cpu = t->cfg->off_cpu;
	char name[RINGTAP_NAME_LEN];
	json_t *doc = trace_document(t);

	(off_cpu ? off_cpu_document : canned[what].document)(t, maps, doc);
	if (!t->cfg->json)
		printf("%s: %.1f s\n", printable(name, sizeof(name), t->app.name),
			trace_seconds(doc));
	return trace_report(t, doc, off_cpu ? off_cpu_print : canned[what].print);
}

static int trace_by_bpf(struct trace *t, unsigned collectors)
{
	json_t *maps = NULL;
	int ret = trace_bpf(t, collectors, &maps);

	if (ret == STATUS_OK && maps)
		ret = report(t, maps);
	json_decref(maps);
	return ret;
}

static bool have_program(const char *program, const char *package)
{
	if (child_found(program))
		return true;
	return message_fail(
		false, "trace: %s is not installed; on Debian: apt install %s", program, package);
}

/* Before anything is touched. */
static int check_tools(const struct trace_config *cfg)
{
	if (cfg->what == TRACE_LIST || cfg->what == TRACE_DPDK || cfg->what == TRACE_TIMELINE)
		return STATUS_OK;
	if (cfg->what == TRACE_LTTNG)
		return have_program("lttng", "lttng-tools") ? STATUS_OK : STATUS_FAILED;
	if (geteuid())
		return message_fail(STATUS_FAILED, "trace: bpftrace needs root; run it by sudo");
	return have_program("bpftrace", "bpftrace") ? STATUS_OK : STATUS_FAILED;
}

static int trace_all(struct trace *t, unsigned collectors)
{
	int ret = trace_meet(t);

	if (ret != STATUS_OK)
		return ret;
	switch (t->cfg->what) {
	case TRACE_LIST: return trace_list(t);
	case TRACE_TIMELINE: return trace_timeline(t);
	case TRACE_LTTNG: return trace_lttng(t, collectors);
	case TRACE_DPDK: return trace_dpdk(t, collectors);
	default: return trace_by_bpf(t, collectors);
	}
}

static int run(const struct command *self, int argc, char **argv)
{
	struct trace_options c = {.cfg = {.long_ns = DEFAULT_LONG_NS, .max_bytes = DEFAULT_FILE}};
	struct trace t = {.cfg = &c.cfg};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (check(&c))
		return STATUS_USAGE;
	ret = check_tools(&c.cfg);
	if (ret != STATUS_OK)
		return ret;
	setlocale(LC_CTYPE, "");
	ret = trace_all(
		&t, RINGTAP_POLLS |
			    (c.cfg.latency || c.cfg.what == TRACE_LATENCY ? RINGTAP_LATENCY : 0));
	trace_free(&t);
	return ret;
}

#define BELOW(word, text)                                                               \
	&(const struct command)                                                         \
	{                                                                               \
		.name = "trace " word, .summary = text, .options = options,             \
		.option_count = OPTION_COUNT, .uses = uses, .operands = "[APP[:PORT]]", \
		.listed = LIST_TARGETS, .operand = operand                              \
	}

/* In the order of TRACE_NAMES. Their words are those of cmd_trace, which runs them. */
static const struct command *const below[] = {
	BELOW("list", "list the events of the application, and installed tracers"),
	BELOW("burst", "histogram of burst sizes, by port, queue and direction"),
	BELOW("latency", "time of packets in the application, by burst"),
	BELOW("drops", "lost packets by port, queue, thread and reason"),
	BELOW("gaps", "polling gaps, and the tasks that had the CPU in long ones"),
	BELOW("timeline", "all bursts, gaps, switches and drops, for Perfetto or as a page"),
	BELOW("lttng", "record all events with LTTng"),
	BELOW("dpdk", "record all events with DPDK's own tracing"),
	NULL,
};

const struct command cmd_trace = {
	.name = "trace",
	.summary = "trace events with bpftrace, LTTng or DPDK's own tracing; timelines",
	.options = options,
	.option_count = OPTION_COUNT,
	.uses = uses,
	.operands = "WHAT [APP[:PORT]]",
	.listed = LIST_TARGETS,
	.commands = below,
	.operand = operand,
	.set = set,
	.run = run,
};
