/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "target/attach_app.h"
#include "cli/commands.h"
#include "base/json.h"
#include "base/out_file.h"
#include "base/signals.h"
#include "base/util.h"
#include "view.h"
#include "watch.h"
#include "web/page.h"

struct doctor_run {
	struct watch watch; /* first, for watch_name() */
	uint64_t duration_ns;
	const char *html;
	bool json, no_packets;
	struct out_file page;
	struct doctor_view view;
	/* Results of all applications. */
	json_t *array;
	unsigned examined;
	bool faults;
};

static const struct option_def options[] = {
	{OPTION_TO(struct doctor_run, duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL,
		DOCTOR_MIN_NS, 3600 * NS_PER_S,
		"How long to watch, 1s to 1h (default: 5s), or until Ctrl-C; addresses of buffers "
		"are sampled for one more second"},
	{OPTION_TO(struct doctor_run, no_packets), OPTION_FLAG, 0, "no-packets", NULL, NULL, 0, 0,
		"If the use of a mempool grows, do not follow received packets to find out which "
		"of them the application holds"},
	{OPTION_TO(struct doctor_run, json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print JSON"},
	{OPTION_TO(struct doctor_run, html), OPTION_FILE, 0, "html", "FILE", NULL, 0, 0,
		"Write the report as a page that needs nothing else, with tables of threads and "
		"ports"},
	ATTACH_OPTION(struct doctor_run, watch.attach),
};

static void take(void *ctx, const struct examination *e, const struct diagnosis *d)
{
	struct doctor_run *c = ctx;

	c->examined++;
	for (unsigned i = 0; i < d->count; i++)
		c->faults |= d->verdict[i].grade == GRADE_FAULT;
	if (c->page.f)
		doctor_view_add(&c->view, e, d);
	if (c->json)
		json_array_append_new(c->array, diagnosis_json(e, d));
	else
		diagnosis_print(stdout, e, d);
}

/* Returns enum status. */
static int watch(struct doctor_run *c)
{
	int ret = stop_catch_first();

	if (ret)
		return message_fail(
			STATUS_FAILED, "doctor: cannot wait for signals: %s", strerror(-ret));
	switch (doctor_watch(&c->watch, c->duration_ns, !c->no_packets, take, c)) {
	case DOCTOR_WHOLE: return STATUS_OK;
	case DOCTOR_CUT:
		message_print(
			"doctor: interrupted: the verdicts are those until then, without a look at "
			"buffer addresses");
		return STATUS_OK;
	case DOCTOR_TOO_SHORT:
		message_print("doctor: interrupted before it had watched for a second: no verdict");
		break;
	case DOCTOR_FAILED: message_print("doctor: not enough memory"); break;
	}
	return STATUS_FAILED;
}

/* 0, or -errno after a message. Without an application there is no page. */
static int write_page(struct doctor_run *c)
{
	if (!c->view.view.document)
		return 0;
	return out_file_close(&c->page, "doctor", web_page_write(c->view.view.document, c->page.f));
}

static int examine(struct doctor_run *c)
{
	int ret = watch(c);

	if (ret != STATUS_OK)
		return ret;
	watch_explain(&c->watch);
	ret = c->json ? json_print(json_document("doctor", json_incref(c->array)), stdout) : 0;
	ret = output_end("doctor", ret);
	if (write_page(c) || ret != STATUS_OK)
		return STATUS_FAILED;
	if (!c->examined || c->examined < watch_named(&c->watch))
		return STATUS_FAILED;
	return c->faults ? STATUS_FAULT : STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct doctor_run c = {.duration_ns = 5 * NS_PER_S,
		.watch = {.command = "doctor", .collectors = JUDGE_COLLECTORS, .latency_every = 1}};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (out_file_open(&c.page, "doctor", c.html))
		return STATUS_FAILED;
	watch_init(&c.watch);
	c.array = json_array();
	ret = watch_find(&c.watch);
	if (ret == STATUS_OK)
		ret = examine(&c);
	out_file_close(&c.page, "doctor", 0);
	json_decref(c.array);
	watch_free(&c.watch);
	return ret;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "list faults of running DPDK applications, and remedies",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = watch_name,
	.run = run,
};
