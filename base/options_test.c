/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about options that are refused, as all programs print them. */
#include "command.h"
#include "numbers.h"
#include "test_command.h"
#include "util.h"

struct values {
	uint64_t time_ns, size, count, few;
	unsigned choice;
	const char *text;
	bool flag;
};

#define TO(field) OPTION_TO(struct values, field)

static const struct option_def options[] = {
	{TO(time_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME, "Time"},
	{TO(size), OPTION_SIZE, 0, "buffer", "SIZE", NULL, 1 << 20, SIZE_LIMIT, "Size"},
	{TO(count), OPTION_NUMBER, 'c', "packets", "N", NULL, 1, UINT64_MAX, "Count"},
	{TO(few), OPTION_NUMBER, 0, "limit", "N", NULL, 1, 1000, "Some"},
	{TO(size), OPTION_BYTES, 's', "snapshot-length", "BYTES", NULL, 0, 262144, "Bytes"},
	{TO(choice), OPTION_CHOICE, 0, "direction", "rx|tx", "rx|tx", 0, 0, "One of two"},
	{TO(count), OPTION_NUMBER, 0, "sample", "N", NULL, 1, 1024, "One of N"},
};

static const struct option_def options_below[] = {
	{TO(flag), OPTION_FLAG, '1', "once", NULL, NULL, 0, 0, "Once"},
};

static int operand(void *ctx, const char *text)
{
	((struct values *)ctx)->text = text;
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = {0};
	int ret = options_parse(self, argc, argv, &v);

	return ret > 0 ? STATUS_FAILED : ret ? STATUS_USAGE : STATUS_OK;
}

static const struct command below = {.name = "test top",
	.summary = "below another one",
	.options = options_below,
	.option_count = sizeof(options_below) / sizeof(options_below[0]),
	.run = run};

static const struct command *const commands[] = {&below, NULL};

static const struct command command = {.name = "test",
	.summary = "a command",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.commands = commands,
	.operands = "[APP]",
	.operand = operand,
	.run = run};

static const struct test_refusal rows[] = {
	/* a limit that no user meets is not named */
	{"--duration|0", STATUS_USAGE, "--duration 0: out of range; give 1ns or more\n"},
	{"--buffer|5K", STATUS_USAGE, "--buffer 5K: out of range; give 1M or more\n"},
	{"-c|0", STATUS_USAGE, "--packets 0: out of range; give 1 or more\n"},
	{"-c|99999999999999999999", STATUS_USAGE, "give 1 to 18446744073709551615\n"},
	{"--limit|0", STATUS_USAGE, "--limit 0: out of range; give 1 to 1000\n"},
	/* an empty value */
	{"--duration=", STATUS_USAGE, "--duration '': not a time; give a number with ns,"},
	{"--direction=", STATUS_USAGE, "--direction '': unknown; choose from rx|tx\n"},
	/* names of other tools, and of earlier versions */
	{"--snaplen|5", STATUS_USAGE,
		"--snaplen: unknown option; did you mean '--snapshot-length'?\n"},
	{"--seconds=5", STATUS_USAGE, "--seconds: unknown option; did you mean '--duration'?\n"},
	{"--count|5", STATUS_USAGE, "--count: unknown option; did you mean '--packets'?\n"},
	{"--every|5", STATUS_USAGE, "--every: unknown option; did you mean '--sample'?\n"},
	{"--rows|5", STATUS_USAGE, "--rows: unknown option; did you mean '--limit'?\n"},
	{"--sort|5", STATUS_USAGE, "--sort: unknown option; see 'ringtap test --help'\n"},
	/* a mistyped command, with an option that it would have */
	{"tpo|--once", STATUS_USAGE, "test: tpo: unknown command; did you mean 'top'?\n"},
	{"tpo|-1", STATUS_USAGE, "test: tpo: unknown command; did you mean 'top'?\n"},
	{"my-app|--once", STATUS_USAGE, "test: --once: unknown option; see 'ringtap test --help'"},
	{"--once|tpo", STATUS_USAGE, "test: --once: unknown option; see 'ringtap test --help'"},
};

int main(void)
{
	return test_refusals(&command, rows, sizeof(rows) / sizeof(rows[0]));
}
