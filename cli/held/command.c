/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/util.h"
#include "cli/commands.h"
#include "report.h"

enum { OPT_OLDER = FATES_OWN };

static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to show"},
	FATES_OPTION_ATTACH,
	{OPTION_SET(OPT_OLDER), OPTION_TEXT, 0, "older", "SECONDS", NULL, 0, 0,
		"Show packets that were received longer ago than this (default 1)"},
	FATES_OPTIONS_WHEN,
	FATES_OPTION_JSON,
};

static int reading(void *ctx, bool final)
{
	struct held *h = ctx;

	/* Growth over a moment means nothing: the last reading stays. */
	if (final && h->before_ns && now_ns(CLOCK_MONOTONIC) - h->read_ns < h->view.interval_ns / 2)
		return 0;
	return held_read(h);
}

static int set(void *ctx, int id, const struct option_value *v)
{
	struct held *h = ctx;

	if (id != OPT_OLDER)
		return fates_set(ctx, id, v);
	if (!parse_seconds(v->text, &h->older_ns))
		return 0;
	message_print("held: --older %s: give a time, such as 500ms, 10 or 5min", v->text);
	return -EINVAL;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct held *h = held_new("held");
	int ret;

	if (!h) {
		message_print("held: not enough memory");
		return STATUS_FAILED;
	}
	h->view.reading = reading;
	h->view.text = held_text;
	h->view.document = held_json;
	ret = options_parse(self, argc, argv, h);
	if (ret > 0) {
		/* Before that, nothing can be older; a second reading shows growth. */
		h->view.first_ns = h->older_ns + h->older_ns / 8;
		ret = fates_run(&h->view);
	} else {
		ret = ret ? STATUS_USAGE : STATUS_OK;
	}
	held_free(h);
	return ret;
}

const struct command cmd_held = {
	.name = "held",
	.summary = "show received packets that an application holds",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]",
	.listed = LIST_APPS,
	.operand = fates_operand,
	.set = set,
	.run = run,
};
