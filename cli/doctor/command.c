/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "doctor.h"
#include "base/json.h"
#include "base/util.h"

#define DURATION_MIN_NS NS_PER_S
#define DURATION_MAX_NS (3600 * NS_PER_S)

enum { OPT_DURATION = 1, OPT_JSON };

static const struct option_def options[] = {
	{OPT_DURATION, OPTION_TEXT, 'd', "duration", "SECONDS", NULL, 0, 0,
		"How long to watch, 1 to 3600 (default 5); addresses of buffers are sampled for "
		"one more second"},
	{OPT_JSON, OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print JSON"},
};

/* clang-format off: it would break the texts at odd places */
static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap doctor watches running DPDK applications for some seconds and prints "
		"what is wrong with them, with the evidence and what to try next. Of several "
		"verdicts the gravest is the first. Without APP it examines all applications of "
		"the host that have the probe.\n"},
	{"VERDICTS",
		"pool_exhausted: packets found no buffer (rx_nombuf), or the pool had less than "
		"a burst.\n\n"
		"too_slow: the NIC's queue was full (imissed), and the threads that poll it work "
		"all the time or find full bursts.\n\n"
		"tx_refused: packets that were handed to TX were not sent.\n\n"
		"preempted: a polling thread had no CPU, or was held up though it had no work.\n"
		"\n"
		"small_bursts: a thread has no time left, and a few packets a poll only.\n\n"
		"uneven_queues: one queue has far more than its share. A note only, as long as "
		"its thread has time left.\n\n"
		"scattered_buffers: received packets lie on so many pages that translations "
		"miss.\n\n"
		"rx_overflow: the NIC's queue was full, but the threads that poll it had time "
		"left.\n\n"
		"saturated (a note): a thread works all the time and its bursts are full, but no "
		"loss is known. With drivers that create packets on demand this is always so.\n\n"
		"unpolled_queues (a note): a port has RX queues that no thread polls.\n\n"
		"not_polling (a note), idle, healthy: no fault.\n\n"
		"docs/statistics.md has the thresholds.\n"},
	{"EXIT STATUS", "0: nothing is wrong; notes do not count.\n\n"
			"1: no application could be examined, or the output failed.\n\n"
			"2: the command line is wrong.\n\n"
			"4: there are faults.\n"},
};
/* clang-format on */

struct context {
	uint64_t duration_ns;
	bool json;
	struct watch watch;
	/* Of all applications. */
	json_t *array;
	unsigned examined;
	bool faults;
};

static int set(void *ctx, int id, const struct option_value *v)
{
	struct context *c = ctx;

	if (id == OPT_JSON) {
		c->json = true;
		return 0;
	}
	if (!parse_seconds(v->text, &c->duration_ns) && c->duration_ns >= DURATION_MIN_NS &&
		c->duration_ns <= DURATION_MAX_NS)
		return 0;
	message_print("doctor: --duration %s: out of range; give seconds from 1 to 3600", v->text);
	return -EINVAL;
}

static int operand(void *ctx, const char *text)
{
	return watch_name(&((struct context *)ctx)->watch, "doctor", text);
}

static void take(void *ctx, const struct examination *e, const struct diagnosis *d)
{
	struct context *c = ctx;

	c->examined++;
	for (unsigned i = 0; i < d->count; i++)
		c->faults |= d->verdict[i].grade == GRADE_FAULT;
	if (c->json)
		json_array_append_new(c->array, doctor_json(e, d));
	else
		doctor_print(e, d);
}

static int examine(struct context *c)
{
	int ret;

	if (!doctor_watch(&c->watch, c->duration_ns, take, c)) {
		message_print("doctor: interrupted");
		return STATUS_FAILED;
	}
	watch_explain(&c->watch, "doctor");
	ret = c->json ? json_print(json_pack("{s:O}", "applications", c->array), stdout) : 0;
	if (ret || fflush(stdout) || ferror(stdout)) {
		message_print("doctor: cannot write to standard output: %s", strerror(errno));
		return STATUS_FAILED;
	}
	if (!c->examined || c->examined < c->watch.name_count)
		return STATUS_FAILED;
	return c->faults ? STATUS_FAULT : STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct context c = {.duration_ns = 5 * NS_PER_S,
		.watch = {.collectors = DOCTOR_COLLECTORS, .latency_every = 1}};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	watch_init(&c.watch);
	c.array = json_array();
	ret = watch_find(&c.watch, "doctor");
	if (ret == STATUS_OK)
		ret = examine(&c);
	json_decref(c.array);
	watch_free(&c.watch);
	return ret;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "list faults of running DPDK applications, and remedies",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP]...",
	.listed = LIST_APPS,
	.operand = operand,
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = set,
	.run = run,
};
