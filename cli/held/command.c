/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/util.h"
#include "cli/commands.h"
#include "report.h"

static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to show"},
	FATES_OPTION_ATTACH,
	{OPTION_TO(struct held, older_ns), OPTION_TIME, 0, "older", "TIME", NULL, ANY_TIME,
		"Show packets that were received longer ago than TIME (default: 1s)"},
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

static int run(const struct command *self, int argc, char **argv)
{
	struct held *h = held_new("held");
	int ret;

	if (!h)
		return message_fail(STATUS_FAILED, "held: not enough memory");
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
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = fates_operand,
	.run = run,
};
