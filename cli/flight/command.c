/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/util.h"
#include "target/attach_app.h"
#include "target/which_app.h"
#include "cli/commands.h"
#include "measure/collectors.h"
#include "common/pages.h"
#include "flight.h"
#include "folder.h"

#define BEFORE_NS        (2 * NS_PER_S)
#define AFTER_NS         (NS_PER_S / 2)
#define COOLDOWN_NS      (10 * NS_PER_S)
#define BUFFER_DEFAULT   (UINT64_C(256) << 20)
#define BUFFER_LEAST     (UINT64_C(16) << 20)
#define TRIGGER_TIME_MAX (3600 * NS_PER_S)
#define SPARE            (UINT64_C(256) << 20) /* beside twice of that, in a limit that is enough */

enum {
	OPT_DIRECTION = 1,
	OPT_ON,
	OPT_NAME,
	OPT_BEFORE,
	OPT_AFTER,
	OPT_COOLDOWN,
	OPT_COLLECTORS,
};

#define TO(field) OPTION_TO(struct flight_config, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to keep"},
	{TO(filter), OPTION_TEXT, 'f', "filter", "FILTER", NULL, 0, 0,
		"Only packets that match this libpcap expression, see pcap-filter(7)"},
	TAGS_OPTION(struct flight_config, tags),
	INNER_OPTION(struct flight_config, inner),
	{TO(snaplen), OPTION_BYTES, 's', "snapshot-length", "BYTES", NULL, 0, RINGTAP_SNAPLEN_MAX,
		"Keep at most BYTES of each packet (default: 0, all)"},
	{OPTION_SET(OPT_DIRECTION), OPTION_CHOICE, 0, "direction", "rx|tx|both", "rx|tx|both", 0, 0,
		"Received packets, sent packets, or both (the default)"},
	{TO(queue), OPTION_NUMBER, 0, "queue", "N", NULL, 0, 65535,
		"Only this queue of the ports (default: all)"},
	{TO(buffer), OPTION_SIZE, 0, "buffer", "SIZE", NULL, BUFFER_LEAST, BUFFER_MAX,
		"Memory of the recorder for packets (default: 256M). A sixteenth of it, at least 64M, "
		"is left free for packets that come; it may take half of the memory that is available"},
	{TO(keep_ns), OPTION_TIME, 0, "keep", "TIME", NULL, NS_PER_S / 10, TIME_MAX,
		"Discard packets that are older than TIME and the time to notice events, even if there "
		"is room for them. If --buffer is full earlier, less is kept, and incidents report "
		"that (default: what --buffer holds)"},
	SAMPLE_OPTION(struct flight_config, sample),
	{TO(ids), OPTION_FLAG, 0, "ids", NULL, NULL, 0, 0,
		"Give received packets an id, which records of sent ones have as well (epb_packetid): "
		"the page names the slow packets and those that were not sent, and ringtap explain "
		"reads the incident (the default where --on has a latency)"},
	{TO(fates), OPTION_FLAG, 0, "fates", NULL, NULL, 0, 0,
		"Write what became of received packets, too: whether the application passed them to a "
		"TX function, freed them, or still has them a second after the incident. The page "
		"names those that were not sent (implies --ids)"},
	{.kind = OPTION_HEADING, .help = "When to write an incident"},
	{OPTION_SET(OPT_ON), OPTION_TEXT, 0, "on", "CONDITION", TRIGGER_NAMES, 0, 0,
		"Write an incident when this happens; may be given several times. Packets that "
		"ports lost or refused, per reading: 'missed', 'no-mbuf', 'refused', 'errors', or "
		"'missed > 100', 'missed > 1000/s'. Time in the application: 'latency > 200us' (of "
		"one packet), 'p50', 'p90', 'p99' or 'p999 > 50us'. Of these, up to here, 'over 5s' "
		"behind it takes all of the last 5 seconds (1s to 100s). Time between two polls: "
		"'gap > "
		"50us' where there was work, 'idle-gap > 1ms' where there was none. A thread's busy "
		"period: 'burst > 10000' packets. A mempool: 'pool < 10%', 'pool < 512'. A ring, by "
		"its name or any: 'ring NAME > 80%', 'ring > 512'. An extended statistic of a "
		"driver, by its name: 'xstat NAME > 10/s', also with 'over 5s'. In the same way one "
		"of an event, crypto or DMA device: 'device NAME STATISTIC > 10/s'. A fault that "
		"ringtap "
		"doctor finds: 'doctor', 'doctor: pool_exhausted'. A packet that matches a libpcap "
		"expression: 'packet: tcp[tcpflags] & tcp-rst != 0'. A USDT event "
		"of the application or one of its libraries: 'usdt: PROVIDER:NAME'. The end of the "
		"application, however it comes: 'exit'. SIGUSR1, 'ringtap flight trigger' and, if "
		"allowed, a request to ringtap export always write one"},
	{OPTION_SET(OPT_NAME), OPTION_TEXT, 0, "name", "NAME", NULL, 0, 0,
		"Name of the incidents of the --on before it (default: the condition's first word)"},
	{OPTION_SET(OPT_BEFORE), OPTION_TIME, 0, "before", "TIME", NULL, 0, TRIGGER_TIME_MAX,
		"How much to write from before the event, up to 1h (default: 2s). This option "
		"and the next two apply to all --on if they stand before the first, else to the --on "
		"before them"},
	{OPTION_SET(OPT_AFTER), OPTION_TIME, 0, "after", "TIME", NULL, 0, TRIGGER_TIME_MAX,
		"How much to write from after the event (default: 500ms)"},
	{OPTION_SET(OPT_COOLDOWN), OPTION_TIME, 0, "cooldown", "TIME", NULL, 0, TRIGGER_TIME_MAX,
		"Write no other incident of the same --on for TIME (default: 10s)"},
	{OPTION_SET(OPT_COLLECTORS), OPTION_TEXT, 0, "collectors", "LIST", "all|" COLLECTOR_NAMES,
		0, 0,
		"What the application counts for metrics.json and doctor.txt, beside what "
		"conditions need, separated by commas: polls, bytes, busy, gaps, latency, pools, "
		"xstats, devices, or all (default: pools)"},
	LATENCY_SAMPLE_OPTION(struct flight_config, latency_every),
	{.kind = OPTION_HEADING, .help = "Where to write"},
	{TO(folder), OPTION_FILE, 'w', "write", "DIR", NULL, 0, 0,
		"The folder of the incidents (default: incidents)"},
	{TO(max_incidents), OPTION_NUMBER, 0, "max-incidents", "N", NULL, 1, UINT32_MAX,
		"Remove the oldest incidents beyond N (default: 0, none)"},
	{TO(max_disk), OPTION_SIZE, 0, "max-disk", "SIZE", NULL, 1 << 20, SIZE_LIMIT,
		"Remove the oldest incidents beyond SIZE in all, and end an incident there (default: "
		"no limit)"},
	{.kind = OPTION_HEADING, .help = "Attaching"},
	ATTACH_OPTION(struct flight_config, attach),
	{TO(wait), OPTION_FLAG, 0, "wait", NULL, NULL, 0, 0,
		"Wait until the application runs and can be attached to; after a failure try again "
		"in 1 s, then in twice as much, up to a minute (default: end with an error)"},
	{.kind = OPTION_HEADING, .help = "Stopping and messages"},
	{TO(duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME of recording, and finish the current incidents (default: until "
		"Ctrl-C)"},
	{TO(quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0, "Print only errors"},
};
/* clang-format on */

static int add_trigger(struct flight_config *c, const char *text)
{
	struct trigger *t = &c->triggers[c->trigger_count];
	static char names[FLIGHT_TRIGGERS_MAX][16];

	if (c->trigger_count == FLIGHT_TRIGGERS_MAX)
		return message_fail(-EINVAL,
			"flight: --on '%s': more than %d conditions; give fewer", text,
			FLIGHT_TRIGGERS_MAX);
	*t = c->defaults;
	if (trigger_parse(t, text))
		return -EINVAL;
	snprintf(names[c->trigger_count], sizeof(names[0]), "%.*s", (int)strcspn(text, " <>:"),
		text);
	t->name = names[c->trigger_count++];
	return 0;
}

/* The limit of a systemd unit does not follow --buffer. Before the application is touched, and not
 * at each attempt of --wait: what is more than this can never be had. */
static int check_limit(const struct flight_config *c)
{
	char size[FORMAT_LEN], half[FORMAT_LEN];
	uint64_t limit = rt_pages_limit();

	if (c->buffer <= limit / 2)
		return 0;
	return message_fail(-EINVAL,
		"flight: --buffer: %s may not be more than half of the memory limit of the "
		"recorder's cgroup, %s; raise that by MemoryMax=%lluM in a drop-in of its systemd "
		"unit, by 'systemctl edit', or give a smaller --buffer",
		format_bytes(size, (double)c->buffer), format_bytes(half, (double)limit),
		(unsigned long long)(2 * c->buffer + SPARE) >> 20);
}

static int check_keep(const struct flight_config *c)
{
	for (unsigned i = 0; i < c->trigger_count && c->keep_ns; i++) {
		if (c->triggers[i].before_ns + c->triggers[i].over_ns <= c->keep_ns)
			continue;
		return message_fail(-EINVAL,
			"flight: --on '%s': --before reaches back beyond --keep; give a "
			"longer one",
			c->triggers[i].text);
	}
	return 0;
}

/* The --on that an option belongs to, or all later ones. */
static struct trigger *current(struct flight_config *c)
{
	return c->trigger_count ? &c->triggers[c->trigger_count - 1] : &c->defaults;
}

/* A part of a file name. */
static int set_name(struct flight_config *c, const char *text)
{
	if (!c->trigger_count || !*text || strlen(text) > 24 ||
		text[strspn(text, INCIDENT_NAME_CHARS)])
		return message_fail(-EINVAL,
			"flight: --name '%s': give 1 to 24 letters, digits, - or _, behind an "
			"--on",
			text);
	current(c)->name = text;
	return 0;
}

static int set(void *ctx, int id, const struct option_value *v)
{
	static const unsigned directions[] = {RINGTAP_RX, RINGTAP_TX, RINGTAP_RX | RINGTAP_TX};
	struct flight_config *c = ctx;

	switch (id) {
	case OPT_DIRECTION: c->directions = directions[v->number]; return 0;
	case OPT_ON: return add_trigger(c, v->text);
	case OPT_NAME: return set_name(c, v->text);
	case OPT_BEFORE: current(c)->before_ns = v->number; return 0;
	case OPT_AFTER: current(c)->after_ns = v->number; return 0;
	case OPT_COOLDOWN: current(c)->cooldown_ns = v->number; return 0;
	default: c->collectors = collectors_parse("flight", v->text);
	}
	return c->collectors ? 0 : -EINVAL;
}

static int operand(void *ctx, const char *text)
{
	struct flight_config *c = ctx;

	if (c->word_count == CAPTURE_IFACES_MAX || !*text)
		return message_fail(
			-EINVAL, "flight: '%s': empty, or one too many; see 'ringtap list'", text);
	c->words[c->word_count++] = text;
	return 0;
}

static bool requests_ids(const struct flight_config *c)
{
	bool ids = c->ids || c->fates;

	/* Received packets get them. */
	for (unsigned i = 0; i < c->trigger_count && c->directions == (RINGTAP_RX | RINGTAP_TX);
		i++)
		ids |= c->triggers[i].kind >= TRIGGER_LATENCY &&
		       c->triggers[i].kind <= TRIGGER_P999;
	return ids;
}

static int configure(struct capture_config *r, const struct flight_config *c)
{
	if ((c->ids || c->fates) && !(c->directions & RINGTAP_RX))
		return message_fail(-EINVAL,
			"flight: %s: packets get their ids when they are received; leave "
			"out --direction tx",
			c->fates ? "--fates" : "--ids");
	if (c->fates && c->sample > 1)
		return message_fail(
			-EINVAL, "flight: --fates: covers all packets; leave out --sample");
	capture_config_init(r, "flight");
	r->attach = c->attach;
	r->options.buffer_size = c->buffer;
	r->options.sample = c->sample;
	r->defaults.filter = c->filter;
	r->tags = c->tags;
	r->inner = c->inner;
	r->options.ids = requests_ids(c) ? RINGTAP_IDS : 0;
	r->defaults.snaplen = c->snaplen ? c->snaplen : RINGTAP_SNAPLEN_MAX;
	r->defaults.directions = c->directions;
	r->defaults.queue = c->queue;
	for (unsigned i = 0; i < c->word_count; i++) {
		r->ifaces[i] = r->defaults;
		r->ifaces[i].spec = c->words[i];
		r->iface_count++;
	}
	return capture_config_check(r);
}

/* Once --tags is known, which may stand behind --on. */
static int compile_triggers(struct flight_config *c)
{
	int ret = 0;

	for (unsigned i = 0; i < c->trigger_count && !ret; i++)
		ret = trigger_compile(&c->triggers[i], c->inner, c->tags);
	return ret;
}

static void add_command_trigger(struct flight_config *c)
{
	struct trigger *t = &c->triggers[c->trigger_count++];

	*t = c->defaults;
	t->kind = TRIGGER_COMMAND;
	t->text = t->name = "command";
}

static int start(struct flight_config *c)
{
	struct flight *f = calloc(1, sizeof(*f));
	struct capture_config capture = {.iface_count = 0};
	int ret = STATUS_USAGE;

	if (!f)
		return STATUS_FAILED;
	add_command_trigger(c);
	f->cfg = c;
	f->capture = &capture;
	if (!check_keep(c) && !compile_triggers(c) && !configure(&capture, c) && !check_limit(c))
		ret = flight_run(f);
	capture_config_free(&capture);
	for (unsigned i = 0; i < c->trigger_count; i++)
		filter_free(&c->triggers[i].filter);
	free(f);
	return ret;
}

/* The only word, which no application has, and which is nearly a command below this one. */
static bool is_mistyped(const char *word)
{
	struct ringtap_apps *apps;
	struct nearest n;
	const char *port, *advice;
	bool unknown;

	nearest_begin(&n, word, strlen(word));
	for (unsigned i = 0; folder_commands[i]; i++) {
		const char *name = strrchr(folder_commands[i]->name, ' ') + 1;

		nearest_offer(&n, name, strlen(name));
	}
	advice = nearest_advice(&n, NULL);
	if (!advice || ringtap_apps_find(&apps))
		return false;
	unknown = target_word(apps, word, &port, NULL) == -ENOENT;
	ringtap_apps_free(apps);
	if (unknown)
		message_print("flight: '%s': no command and no application is called that; %s",
			word, advice);
	return unknown;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct flight_config c = {.directions = RINGTAP_RX | RINGTAP_TX,
		.queue = -1,
		.buffer = BUFFER_DEFAULT,
		.defaults = {.before_ns = BEFORE_NS,
			.after_ns = AFTER_NS,
			.cooldown_ns = COOLDOWN_NS},
		.collectors = RINGTAP_POOLS,
		.latency_every = 1,
		.folder = "incidents"};
	const struct command *below = argc > 1 ? command_find(folder_commands, argv[1]) : NULL;
	int ret;

	if (below)
		return below->run(below, argc - 1, argv + 1);
	if (argc == 2 && *argv[1] != '-' && is_mistyped(argv[1]))
		return STATUS_USAGE;
	ret = options_parse(self, argc, argv, &c);
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	return start(&c);
}

const struct command cmd_flight = {
	.name = "flight",
	.summary = "keep the last packets, and write them when something happens",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.commands = folder_commands,
	.listed = LIST_TARGETS,
	.operand = operand,
	.set = set,
	.run = run,
};
