/* SPDX-License-Identifier: BSD-3-Clause */
/* Incidents on disk, and the commands for them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/json.h"
#include "base/util.h"
#include "common/foreign.h"
#include "recorder/incidents.h"
#include "recorder/request.h"
#include "target/capture_config.h"
#include "extract.h"
#include "folder.h"
#include "live.h"

/* Files of an incident: no other file is ever removed. */
static const char *const parts[] = {FLIGHT_PACKETS, FLIGHT_METRICS, FLIGHT_DOCTOR, FLIGHT_PAGE,
	FLIGHT_TRACE, FLIGHT_UNFINISHED, FLIGHT_INCIDENT};
#define PARTS      (sizeof(parts) / sizeof(parts[0]))
#define TEXT_MAX   (1u << 20) /* limit for FLIGHT_INCIDENT and FLIGHT_DOCTOR, which have some KiB */
#define REQUEST_MS 10000 /* a recorder reads requests every 100 ms, and makes folders meanwhile */

char *folder_path(const char *folder, const char *name, const char *part)
{
	char *path;

	return asprintf(&path, "%s/%s%s%s", folder, name, part ? "/" : "", part ? part : "") < 0
		       ? NULL
		       : path;
}

int folder_check(const char *command, const char *folder)
{
	struct stat st;
	int error = stat(folder, &st) ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;

	if (!error)
		return 0;
	return message_fail(STATUS_FAILED,
		"flight %s: %s: %s; give the folder of the recorder's incidents by --folder",
		command, folder, strerror(error));
}

/* ---- what there is */

static uint64_t size_of(int incident)
{
	uint64_t sum = 0;
	struct stat st;

	for (size_t i = 0; i < PARTS; i++)
		if (!fstatat(incident, parts[i], &st, AT_SYMLINK_NOFOLLOW))
			sum += (uint64_t)st.st_size;
	return sum;
}

/* A text file of an incident, and its length. The caller frees. */
static char *read_part(const char *folder, const char *name, const char *part, size_t *len)
{
	int fd = incident_open(folder, name);
	char *text = NULL;
	ssize_t n = fd < 0 ? -1 : rt_foreign_read(fd, part, O_NOFOLLOW, TEXT_MAX, &text);

	if (fd >= 0)
		close(fd);
	*len = n < 0 ? 0 : (size_t)n;
	return text;
}

/* Its file; NULL: it is being written, or its recorder was killed. The caller decrefs. */
static json_t *load(const char *folder, const char *name)
{
	size_t len;
	char *text = read_part(folder, name, FLIGHT_INCIDENT, &len);
	json_t *j = text ? json_loadb(text, len, 0, NULL) : NULL;

	free(text);
	return j;
}

/* ---- pruning */

static void remove_parts(const char *folder, const char *name, int incident)
{
	char *path = folder_path(folder, name, NULL);

	for (size_t i = 0; i < PARTS; i++)
		unlinkat(incident, parts[i], 0);
	if (path)
		rmdir(path);
	free(path);
}

void folder_remove(const char *folder, const char *name)
{
	int fd = incident_open(folder, name);

	if (fd < 0)
		return;
	remove_parts(folder, name, fd);
	close(fd);
}

/* One without FLIGHT_INCIDENT, of a recorder that was killed, is not. */
static bool is_being_written(int incident)
{
	return flock(incident, LOCK_SH | LOCK_NB);
}

unsigned folder_prune(const char *path, uint64_t count, uint64_t bytes)
{
	struct incidents l;
	uint64_t sum = 0;
	unsigned removed = 0;

	if ((!count && !bytes) || incidents_list(&l, path))
		return 0;
	for (int i = l.count - 1; i >= 0; i--) {
		const char *name = l.list[i]->d_name;
		int fd = incident_open(path, name);

		if (fd < 0)
			continue;
		sum += size_of(fd);
		if (i < l.count - 1 && !is_being_written(fd) &&
			((count && (uint64_t)(l.count - i) > count) || (bytes && sum > bytes))) {
			remove_parts(path, name, fd);
			removed++;
		}
		close(fd);
	}
	incidents_free(&l);
	return removed;
}

/* ---- commands */

struct folder_options {
	const char *folder;
	bool by_default; /* no folder was given */
	const char *name, *comment;
	char *found; /* a folder or a name, freed at the end */
	uint64_t max_incidents, max_disk;
	bool json;
	struct extract extract;
	struct live live;
};

#define TO(field) OPTION_TO(struct folder_options, field)

static const struct option_def list_options[] = {
	{TO(folder), OPTION_FILE, 0, "folder", "DIR", NULL, 0, 0,
		"The folder of the incidents (default: incidents)"},
	{TO(json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print JSON"},
};

static const struct option_def top_options[] = {
	{TO(live.interval_ns), OPTION_TIME, 0, "interval", "TIME", NULL, INTERVAL_TIME,
		"Time between two updates, 100ms to 1h (default: 1s)"},
	{TO(live.updates), OPTION_NUMBER, 0, "updates", "N", NULL, 1, UINT32_MAX,
		"Stop after N intervals"},
	{TO(live.duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: at a signal, or q on a terminal)"},
	{TO(live.once), OPTION_FLAG, '1', "once", NULL, NULL, 0, 0, "Print the state once"},
	{TO(live.json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print JSON: a line each interval, or one document with --once"},
};
static const struct option_def extract_options[] = {
	{TO(folder), OPTION_FILE, 0, "folder", "DIR", NULL, 0, 0,
		"The folder of the incidents (default: incidents)"},
	{TO(extract.filter), OPTION_TEXT, 'f', "filter", "FILTER", NULL, 0, 0,
		"Only packets that match this libpcap expression, see pcap-filter(7)"},
	TAGS_OPTION(struct folder_options, extract.tags),
	INNER_OPTION(struct folder_options, extract.inner),
	{TO(extract.output), OPTION_FILE, 'w', "write", "FILE", NULL, 0, 0,
		"The file to write (default: -, standard output)"},
};
static const struct option_def trigger_options[] = {
	{TO(folder), OPTION_FILE, 0, "folder", "DIR", NULL, 0, 0,
		"The folder of the incidents (default: incidents)"},
	{TO(comment), OPTION_TEXT, 0, "comment", "TEXT", NULL, 0, 0,
		"Text for the incident's packets and its page, up to 199 characters"},
};
static const struct option_def prune_options[] = {
	{TO(folder), OPTION_FILE, 0, "folder", "DIR", NULL, 0, 0,
		"The folder of the incidents (default: incidents)"},
	{TO(max_incidents), OPTION_NUMBER, 0, "max-incidents", "N", NULL, 1, UINT32_MAX,
		"Remove the oldest incidents beyond N"},
	{TO(max_disk), OPTION_SIZE, 0, "max-disk", "SIZE", NULL, 1, SIZE_LIMIT,
		"Remove the oldest incidents beyond SIZE in all"},
};

static const char *text_of(json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

static bool is_whole(json_t *j)
{
	return json_is_null(json_object_get(j, "error")) &&
	       !json_array_size(json_object_get(j, "not_written"));
}

/* A text of the file in one line, behind what comes before it; nothing, if it is empty. */
static void put_text(const char *before, const char *text)
{
	for (fputs(*text ? before : "", stdout); *text; text++)
		putchar(*text == '\n' ? ' ' : *text);
}

static void print_line(const char *name, json_t *j)
{
	json_t *t = json_object_get(j, "trigger");
	json_int_t missing = json_integer_value(json_object_get(j, "missing_ns"));
	char packets[FORMAT_LEN], bytes[FORMAT_LEN], time[FORMAT_LEN];

	if (!j) {
		printf("%-48s  incomplete\n", name);
		return;
	}
	printf("%-48s  %12s packets  %9s", name,
		format_count(packets, (uint64_t)json_integer_value(json_object_get(j, "packets"))),
		format_bytes(bytes, (double)json_integer_value(json_object_get(j, "bytes"))));
	put_text("  ", text_of(t, "condition"));
	put_text(": ", text_of(t, "value"));
	put_text("; ", text_of(t, "comment"));
	if (missing > 0)
		printf("; not kept: the first %s", format_ns(time, (double)missing));
	puts(is_whole(j) ? "" : " (not all of it)");
}

static int list(struct folder_options *c)
{
	json_t *all = json_array(), *j;
	struct incidents l;
	int ret = incidents_list(&l, c->folder);

	if (ret) {
		message_print("flight list: %s: %s; give the folder by --folder", c->folder,
			strerror(-ret));
		json_decref(all);
		return STATUS_FAILED;
	}
	for (int i = 0; i < l.count; i++) {
		j = load(c->folder, l.list[i]->d_name);
		if (!c->json)
			print_line(l.list[i]->d_name, j);
		else if (j)
			json_array_append(all, j);
		json_decref(j);
	}
	incidents_free(&l);
	if (!c->json) {
		json_decref(all);
		return output_end("flight list", 0);
	}
	j = json_document("flight list", NULL);
	json_put(j, "incidents", all);
	return output_end("flight list", json_print(j, stdout));
}

static void print_missing_files(json_t *j)
{
	json_t *missing = json_object_get(j, "not_written"), *name;
	size_t i;

	json_array_foreach(missing, i, name)
		put_text(i ? ", " : "not written: ", json_string_value(name) ?: "?");
	if (json_array_size(missing))
		putchar('\n');
}

static void print_incident(json_t *j)
{
	json_t *t = json_object_get(j, "trigger");
	double missing = json_number_value(json_object_get(j, "missing_ns"));
	char time[FORMAT_LEN], packets[FORMAT_LEN], lost[FORMAT_LEN];

	put_text("application: ",
		text_of(json_array_get(json_object_get(j, "applications"), 0), "name"));
	put_text("\ntrigger: ", text_of(t, "condition"));
	put_text(", at ", text_of(t, "where"));
	put_text(", value ", text_of(t, "value"));
	put_text("\ncomment: ", text_of(t, "comment"));
	printf("\nwindow: %s, %s packets, %s lost by the capture\n",
		format_ns(time, json_number_value(json_object_get(j, "window_ns"))),
		format_count(packets, (uint64_t)json_integer_value(json_object_get(j, "packets"))),
		format_count(lost, (uint64_t)json_integer_value(json_object_get(j, "lost"))));
	if (missing > 0 && *text_of(j, "error"))
		printf("not written: the first %s\n", format_ns(time, missing));
	else if (missing > 0)
		printf("not kept: the first %s; " FLIGHT_PAGE " has the reason\n",
			format_ns(time, missing));
	put_text("not complete: ", text_of(j, "error"));
	if (*text_of(j, "error"))
		putchar('\n');
	print_missing_files(j);
}

/* The name of the newest complete one. NULL: there is none. */
static char *newest(const char *folder)
{
	struct incidents l;
	char *name = NULL;

	if (incidents_list(&l, folder))
		return NULL;
	for (int k = l.count - 1; k >= 0 && !name; k--) {
		json_t *j = load(folder, l.list[k]->d_name);

		if (j)
			name = strdup(l.list[k]->d_name);
		json_decref(j);
	}
	incidents_free(&l);
	return name;
}

/* Without a name the newest one is meant; a path has the folder. */
static void locate(struct folder_options *c)
{
	char *slash;

	if (!c->name) {
		c->name = c->found = newest(c->folder);
		return;
	}
	if (!strchr(c->name, '/'))
		return;
	c->found = strdup(c->name);
	while (c->found && (slash = strrchr(c->found, '/')) && !slash[1] && slash > c->found)
		*slash = '\0';
	slash = c->found ? strrchr(c->found, '/') : NULL;
	if (!slash)
		return;
	*slash = '\0';
	c->folder = *c->found ? c->found : "/";
	c->name = slash + 1;
}

/* No name is given, and there is no newest one. */
static int no_incident(const char *command, const char *folder)
{
	if (folder_check(command, folder))
		return STATUS_FAILED;
	return message_fail(STATUS_FAILED,
		"flight %s: no complete incident in %s; give the folder by --folder, or the path "
		"of an incident",
		command, folder);
}

static int show(struct folder_options *c)
{
	json_t *j;
	char *doctor;
	size_t len;

	locate(c);
	if (!c->name)
		return no_incident("show", c->folder);
	j = load(c->folder, c->name);
	if (!j && !c->found && folder_check("show", c->folder))
		return STATUS_FAILED;
	if (!j)
		return message_fail(STATUS_FAILED,
			"flight show: %s: no complete incident of that name in %s; 'ringtap "
			"flight list' shows what there is",
			c->name, c->folder);
	if (c->json) {
		json_print(json_incref(j), stdout);
	} else {
		print_incident(j);
		doctor = read_part(c->folder, c->name, FLIGHT_DOCTOR, &len);
		if (doctor)
			fwrite(doctor, 1, len, stdout);
		free(doctor);
	}
	json_decref(j);
	return output_end("flight show", 0);
}

static int prune(struct folder_options *c)
{
	if (!c->max_incidents && !c->max_disk)
		return message_fail(
			STATUS_USAGE, "flight prune: no limit; give --max-incidents or --max-disk");
	printf("Incidents removed: %u\n", folder_prune(c->folder, c->max_incidents, c->max_disk));
	return output_end("flight prune", 0);
}

/* The folder of the only recorder that runs. NULL: none or several do. */
static char *only_recorder(void)
{
	json_t *document = live_ask(NULL, LIVE_TIMEOUT_MS, NULL);
	const json_t *app, *one, *found = NULL;
	unsigned count = 0;
	char *folder = NULL;
	size_t i, k;

	json_array_foreach(json_object_get(document, "applications"), i, app)
	{
		json_array_foreach(json_object_get(app, "recorders"), k, one)
		{
			found = json_object_get(one, "folder");
			count++;
		}
	}
	if (count == 1 && json_is_string(found))
		folder = strdup(json_string_value(found));
	json_decref(document);
	return folder;
}

static int trigger(struct folder_options *c)
{
	char why[REQUEST_WHY_MAX];
	int ret = request_send_within(c->folder, c->comment, REQUEST_MS, why);

	if (ret == -ESRCH && c->by_default && (c->found = only_recorder())) {
		c->folder = c->found;
		ret = request_send_within(c->folder, c->comment, REQUEST_MS, why);
	}

	if (ret == -ESRCH)
		message_print(
			"flight trigger: no recorder writes to %s; give its folder by --folder",
			c->folder);
	else if (ret == -ECANCELED)
		message_print("flight trigger: %s: the recorder reports: %s", c->folder, why);
	else if (ret == -ETIMEDOUT)
		message_print("flight trigger: %s: its recorder has not taken the request; it may "
			      "wait for its application",
			c->folder);
	else if (ret)
		message_print(
			"flight trigger: %s: %s; run it as the recorder's user or as root, in "
			"a folder that is the recorder's own",
			c->folder, strerror(-ret));
	return ret ? STATUS_FAILED : STATUS_OK;
}

static int operand(void *ctx, const char *text)
{
	struct folder_options *c = ctx;

	c->name = text;
	return 0;
}

static int extract(struct folder_options *c)
{
	c->extract.folder = c->folder;
	if (!c->extract.count && (c->found = newest(c->folder)))
		c->extract.names[c->extract.count++] = c->found;
	return c->extract.count ? extract_run(&c->extract) : no_incident("extract", c->folder);
}

static int top(struct folder_options *c)
{
	return live_run(&c->live);
}

static int top_operand(void *ctx, const char *text)
{
	struct live *v = &((struct folder_options *)ctx)->live;

	if (v->app)
		return message_fail(-EINVAL,
			"flight top: %s: a second application; give one, or none for all", text);
	v->app = text;
	return 0;
}

static int extract_operand(void *ctx, const char *text)
{
	struct extract *e = &((struct folder_options *)ctx)->extract;

	if (e->count == EXTRACT_MAX)
		return message_fail(-EINVAL,
			"flight extract: %s: more than %d incidents; give fewer", text,
			EXTRACT_MAX);
	e->names[e->count++] = text;
	return 0;
}

struct folder_command {
	struct command command;
	int (*run)(struct folder_options *c);
};

static int run(const struct command *self, int argc, char **argv)
{
	const struct folder_command *mine = (const struct folder_command *)(const void *)self;
	struct folder_options c = {.extract = {.output = "-"}, .live = {.interval_ns = NS_PER_S}};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	c.by_default = !c.folder;
	if (c.by_default)
		c.folder = "incidents";
	ret = mine->run(&c);
	free(c.found);
	return ret;
}

#define OPTIONS(table) .options = table, .option_count = sizeof(table) / sizeof((table)[0])

static const struct folder_command flight_list = {
	{.name = "flight list", .summary = "list the incidents", OPTIONS(list_options), .run = run},
	list};

static const struct folder_command flight_show = {
	{.name = "flight show",
		.summary = "print what an incident is about",
		OPTIONS(list_options),
		.operands = "[INCIDENT]",
		.listed = LIST_INCIDENTS,
		.operand = operand,
		.run = run},
	show};

static const struct folder_command flight_top = {
	{.name = "flight top",
		.summary = "show what recorders keep, and their conditions",
		OPTIONS(top_options),
		.operands = "[APP]",
		.listed = LIST_APPS,
		.operand = top_operand,
		.run = run},
	top};

static const struct folder_command flight_extract = {
	{.name = "flight extract",
		.summary = "write the packets of incidents, of one filter or all",
		OPTIONS(extract_options),
		.operands = "[INCIDENT]...",
		.listed = LIST_INCIDENTS,
		.operand = extract_operand,
		.run = run},
	extract};

static const struct folder_command flight_prune = {{.name = "flight prune",
							   .summary = "delete the oldest incidents",
							   OPTIONS(prune_options),
							   .run = run},
	prune};

static const struct folder_command flight_trigger = {
	{.name = "flight trigger",
		.summary = "let a recorder write an incident now",
		OPTIONS(trigger_options),
		.run = run},
	trigger};

const struct command *const folder_commands[] = {&flight_trigger.command, &flight_top.command,
	&flight_list.command, &flight_show.command, &flight_extract.command, &flight_prune.command,
	NULL};
