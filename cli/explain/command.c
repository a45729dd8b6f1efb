/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "annotate.h"
#include "common/array.h"
#include "packet/unpack.h"
#include "cli/commands.h"
#include "base/out_file.h"
#include "incident.h"
#include "base/util.h"
#include "web/page.h"
#include "csv.h"
#include "report.h"

#define MEMORY_MIN     (16u << 20)
#define MEMORY_DEFAULT (UINT64_C(1) << 30)
#define FLOWS_DEFAULT  10

struct explain_options {
	const char **files;
	unsigned file_count;
	uint64_t timeout_ns, memory, flows;
	enum flow_rank order;
	const char *html, *annotate;
	bool json, csv, group_read;
};

#define ORDERS "packets|not-sent|reordered|p99|not-offered"

#define TO(field) OPTION_TO(struct explain_options, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to join"},
	{TO(timeout_ns), OPTION_TIME, 0, "timeout", "TIME", NULL, SOME_TIME,
		"A packet that is not sent within TIME of its reception counts as not sent "
		"(default: 1s)"},
	{TO(memory), OPTION_SIZE, 0, "buffer", "SIZE", NULL, MEMORY_MIN, SIZE_LIMIT,
		"Memory for packets that may still be sent, and for flows (default: 1G)"},
	{.kind = OPTION_HEADING, .help = "Output"},
	{TO(flows), OPTION_NUMBER, 0, "limit", "N", NULL, 0, UINT32_MAX,
		"List N flows; 0: all (default: 10)"},
	{TO(order), OPTION_CHOICE, 0, "by", ORDERS, ORDERS, 0, 0,
		"List the flows with the most packets (the default), the most packets not sent, "
		"reordered or not offered, or the highest latency"},
	{TO(json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print JSON"},
	{TO(csv), OPTION_FLAG, 0, "csv", NULL, NULL, 0, 0,
		"Print comma-separated values: a line for each packet that was sent, and for each "
		"that was not"},
	{TO(html), OPTION_FILE, 0, "html", "FILE", NULL, 0, 0,
		"Write the report as a page that needs nothing else, with plots and tables"},
	{TO(annotate), OPTION_FILE, 0, "annotate", "FILE.pcapng", NULL, 0, 0,
		"Copy the recording, with a comment on each received packet that was not offered, "
		"is open or unknown: for Wireshark, and other programs. It needs 'ringtap record "
		"--fates'"},
	{TO(group_read), OPTION_FLAG, 'g', "group", NULL, NULL, 0, 0,
		"Let the group read the file of --annotate (mode 0640 instead of 0600)"},
};
/* clang-format on */

#define INCIDENT_PACKETS "packets.pcapng"

/* Its allocations live as long as the process. */
static int add_file(void *ctx, const char *text)
{
	struct explain_options *c = ctx;
	const char **added = rt_array_add(c->files, c->file_count);
	struct stat st;
	char *path = NULL;

	/* An incident of ringtap flight. */
	if (!stat(text, &st) && S_ISDIR(st.st_mode) &&
		asprintf(&path, "%s/" INCIDENT_PACKETS, text) < 0)
		added = NULL;
	if (!added)
		return message_fail(-ENOMEM, "explain: no memory");
	*added = path ? path : text;
	return 0;
}

/* ---- reading ---- */

/* One file. Status; damage is what is wrong with it, of which the caller keeps the first. */
static int join_file(struct join *j, struct records *b, const char *path, char damage[256])
{
	struct window in;
	struct record r[JOIN_BATCH];
	int ret = unpack_open(&in, path);

	if (ret) {
		message_print("explain: %s: %s", path, unpack_error(ret));
		window_close(&in);
		return STATUS_FAILED;
	}
	records_start(b, &in);
	j->begins = true;
	j->fates.here = false;
	while ((ret = records_next(b, r, JOIN_BATCH)) > 0)
		join_records(j, r, ret, b);
	if (!ret)
		return STATUS_OK;
	if (!damage[0])
		snprintf(damage, 256, "%.80s, %s", path,
			ret == -EBADMSG ? records_error(b) : unpack_error(ret));
	return message_fail(STATUS_FAILED, "explain: %s: %s", path,
		ret == -EBADMSG ? records_error(b) : unpack_error(ret));
}

static int join_files(
	struct join *j, struct records *b, const struct explain_options *c, char damage[256])
{
	int ret = STATUS_OK;

	for (unsigned i = 0; i < c->file_count; i++) {
		if (join_file(j, b, c->files[i], damage) != STATUS_OK)
			ret = STATUS_FAILED;
	}
	join_end(j);
	return ret;
}

/* Nothing can be said of a file without ids. failed: there was a message that says why. */
static bool check_ids(const struct join *j, bool failed)
{
	if (!j->records && failed)
		return false;
	if (!j->records)
		message_print("explain: there are no packets to explain");
	else if (!j->ids)
		message_print("explain: the packets have no ids; record with 'ringtap record "
			      "--ids', in pcapng");
	else if (!j->received)
		message_print("explain: no received packet has an id; record both directions of "
			      "a port that receives");
	return j->received > 0;
}

/* ---- writing ---- */

struct outputs {
	struct out_file html, annotated;
	struct annotations *notes;
};

static int open_outputs(struct outputs *o, const struct explain_options *c)
{
	*o = (struct outputs){0};
	if (out_file_open(&o->html, "explain", c->html))
		return -EIO;
	return out_file_open_packets(&o->annotated, "explain", c->annotate, c->group_read);
}

/* Removes files that an error has left empty. */
static int close_outputs(struct outputs *o, int html, int annotated)
{
	int ret = out_file_close(&o->html, "explain", html);

	return out_file_close(&o->annotated, "explain", annotated) ?: ret;
}

/* False: there is nothing to write, and a message says why. *error: of writing. */
static bool write_annotated(const struct report *r, struct outputs *o, int *error)
{
	if (!r->j->fates.present)
		message_print("explain: --annotate: the file has no fates of packets; record with "
			      "'ringtap record --fates'");
	else if (o->notes->error)
		message_print("explain: --annotate: too many comments for --buffer; raise it");
	else
		*error = annotate_write(o->notes, r->files, r->file_count, o->annotated.f);
	return r->j->fates.present && !o->notes->error;
}

static int write_report(
	const struct report *r, const struct explain_options *c, struct outputs *o, int status)
{
	int html = 0, annotated = 0, ret = 0;

	if (c->json)
		ret = explain_json(r, stdout);
	else if (!c->csv)
		ret = report_text(r, stdout);
	if (output_end("explain", ret) != STATUS_OK)
		status = STATUS_FAILED;
	if (o->html.f)
		html = web_page_write(report_view(r), o->html.f);
	if (o->annotated.f && !write_annotated(r, o, &annotated))
		status = STATUS_FAILED;
	if (close_outputs(o, html, annotated))
		status = STATUS_FAILED;
	return status;
}

/* With the counters that the recorder of an incident has written beside its packets. */
static int write_with_counted(
	struct report *r, const struct explain_options *c, struct outputs *o, int status)
{
	struct counted counted;
	json_t *document;

	if (incident_counted(c->files[0], &counted, &document) && c->file_count == 1)
		r->counted = &counted;
	status = write_report(r, c, o, status);
	counted_free(&counted);
	json_decref(document);
	return status;
}

static int explain(
	const struct explain_options *c, struct join *j, struct records *b, struct outputs *o)
{
	char damage[256] = "";
	struct report r = {.j = j,
		.records = b,
		.files = c->files,
		.file_count = c->file_count,
		.flows = c->flows ? c->flows : UINT32_MAX,
		.order = c->order};
	struct csv csv = {stdout, b, &j->flows};
	int ret;

	if (c->csv) {
		j->tell = csv_line;
		j->ctx = &csv;
		csv_begin(&csv);
	}
	if (c->annotate) {
		j->tell = annotate_note;
		j->ctx = o->notes;
	}
	ret = join_files(j, b, c, damage);
	r.damage = damage[0] ? damage : NULL;
	return check_ids(j, ret != STATUS_OK) ? write_with_counted(&r, c, o, ret) : STATUS_FAILED;
}

/* An output is none of the files, which opening it would empty. For the copy they are read twice.
 */
static bool check_outputs(const struct explain_options *c)
{
	const char *const outputs[] = {c->annotate, c->html};

	for (unsigned i = 0; i < c->file_count && c->annotate; i++) {
		if (!strcmp(c->files[i], "-"))
			return message_fail(false,
				"explain: --annotate: standard input cannot be read twice; "
				"give a file");
	}
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (out_file_check("explain", outputs[i], c->files, c->file_count))
			return false;
	}
	return true;
}

static bool check(const struct explain_options *c)
{
	if (!c->file_count)
		message_print("explain: no file is given; see 'ringtap explain --help'");
	else if (c->json && c->csv)
		message_print("explain: --json and --csv: choose one");
	else if (c->annotate && c->csv)
		message_print("explain: --annotate and --csv: choose one");
	else
		return check_outputs(c);
	return false;
}

static int run_with(const struct explain_options *c)
{
	struct records *b = NULL;
	struct join *j = NULL;
	struct annotations notes = {.memory = c->memory};
	struct outputs o;
	int ret = STATUS_FAILED;

	if (open_outputs(&o, c)) {
		close_outputs(&o, 0, 0);
		return STATUS_FAILED;
	}
	o.notes = &notes;
	if (records_new(&b) || join_new(&j, c->timeout_ns, c->memory))
		message_print("explain: no memory");
	else
		ret = explain(c, j, b, &o);
	close_outputs(&o, 0, 0);
	join_free(j);
	records_free(b);
	annotate_free(&notes);
	return ret;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct explain_options c = {
		.timeout_ns = NS_PER_S, .memory = MEMORY_DEFAULT, .flows = FLOWS_DEFAULT};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		ret = ret ? STATUS_USAGE : STATUS_OK;
	else
		ret = check(&c) ? run_with(&c) : STATUS_USAGE;
	free(c.files);
	return ret;
}

const struct command cmd_explain = {
	.name = "explain",
	.summary = "explain what became of each packet of a recording",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "FILE...",
	.operand = add_file,
	.run = run,
};
