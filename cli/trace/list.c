/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of an application, and the tracers that are installed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/monitor/rates.h"
#include "trace.h"

#define PROVIDER_FILE "libringtap-lttng.so"
#define ARGUMENTS_MAX 8
#define WIDTH         80
#define INDENT        16

/* As in docs/tracing.md. */
static const struct {
	const char *event, *arguments[ARGUMENTS_MAX];
} known[] = {
	{"rx_burst", {"port", "queue", "nb_pkts", "nb_rx"}},
	{"empty_poll", {"port", "queue", "nb_pkts"}},
	{"tx_burst", {"port", "queue", "nb_pkts", "nb_tx"}},
	{"tx_refused", {"port", "queue", "packets"}},
	{"drop", {"port", "queue", "packets", "reason"}},
	{"session_open", {"session", "reader"}},
	{"session_close", {"session", "reader"}},
	{"ring_full", {"session", "port", "queue", "packets"}},
	{"latency", {"port", "queue", "packets", "sum_cycles", "max_cycles"}},
};

static const char *argument_name(const char *event, size_t i)
{
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (!strcmp(known[k].event, event) && i < ARGUMENTS_MAX)
			return known[k].arguments[i];
	return NULL;
}

/* "2@%di -4@8(%rsp)": size in bytes (negative: signed) and place of each argument. */
static json_t *arguments_json(const struct trace_event *e)
{
	json_t *list = json_array();
	const char *p = e->arguments + strspn(e->arguments, " ");

	for (size_t i = 0; *p; i++) {
		int size = atoi(p);
		char type[16];

		snprintf(type, sizeof(type), "%sint%d", size < 0 ? "" : "u", 8 * abs(size));
		json_array_append_new(
			list, json_pack("{s:o,s:s}", "name", json_text(argument_name(e->name, i)),
				      "type", type));
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
	return list;
}

static json_t *event_json(const struct trace_event *e, const char *file)
{
	json_t *j = json_object();
	char probe[4200];

	snprintf(probe, sizeof(probe), "usdt:%s:ringtap:%s", file, e->name);
	json_object_set_new(j, "name", json_text(e->name));
	json_object_set_new(j, "arguments", arguments_json(e));
	json_object_set_new(j, "places", json_count(e->count));
	json_object_set_new(j, "file", json_text(file));
	json_object_set_new(j, "probe", json_text(probe));
	return j;
}

static void add_file(const struct trace *t, json_t *list, const char *file, const char *range)
{
	struct trace_events events = {0};
	char path[4200];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)t->pid, file);
	ret = elf_events(path, &events);
	if (ret == -ENOENT) { /* deleted since */
		snprintf(path, sizeof(path), "/proc/%d/map_files/%s", (int)t->pid, range);
		ret = elf_events(path, &events);
	}
	for (size_t i = 0; i < events.count && !ret; i++)
		json_array_append_new(list, event_json(&events.list[i], file));
	elf_events_free(&events);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Events of all files with mapped code. */
static int add_files(const struct trace *t, json_t *list, bool *lttng)
{
	char path[64], line[4352], range[64], rights[8], last[4096] = "";
	FILE *f;
	int at;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->pid);
	f = fopen(path, "r");
	if (!f) {
		message_print("trace: %s: %s: %s; run it as its user or as root", t->app.name, path,
			strerror(errno));
		return -errno;
	}
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%63s %7s %*s %*s %*s %n", range, rights, &at) < 2 ||
			!strchr(rights, 'x') || line[at] != '/' || !strcmp(last, line + at))
			continue;
		snprintf(last, sizeof(last), "%s", line + at);
		*lttng |= !strcmp(base_name(last), PROVIDER_FILE);
		add_file(t, list, last, range);
	}
	fclose(f);
	return 0;
}

static json_t *document(const struct trace *t, json_t *events, bool lttng)
{
	json_t *answer = trace_query(t->app.dir, "");
	bool rte_trace = json_is_object(answer);

	json_decref(answer);
	return json_pack("{s:o,s:o,s:o,s:i,s:o,s:{s:b,s:b,s:b,s:b}}", "trace", json_text("list"),
		"application", json_text(t->app.name), "program", json_text(t->info.program), "pid",
		(int)t->pid, "events", events, "tools", "bpftrace", child_found("bpftrace"),
		"lttng", child_found("lttng"), "lttng_provider_loaded", lttng, "rte_trace",
		rte_trace);
}

static void print_event(const json_t *e)
{
	const json_t *arguments = json_object_get(e, "arguments"), *a;
	int column = printf("  %-14s", json_string_value(json_object_get(e, "name")));
	size_t i, count = json_array_size(arguments);

	json_array_foreach(arguments, i, a)
	{
		const char *name = json_string_value(json_object_get(a, "name"));
		char text[96];
		int len = snprintf(text, sizeof(text), " %s arg%zu%s%s%s",
			json_string_value(json_object_get(a, "type")), i, name ? "=" : "",
			name ? name : "", i + 1 < count ? "," : "");

		if (column + len > WIDTH)
			column = printf("\n%*s", INDENT, "") - 1;
		column += printf("%s", text);
	}
	putchar('\n');
}

static void print_tool(const json_t *tools, const char *key, const char *yes, const char *no)
{
	printf("  %s\n", json_is_true(json_object_get(tools, key)) ? yes : no);
}

static void print(const json_t *doc)
{
	const json_t *events = json_object_get(doc, "events"), *e;
	const json_t *tools = json_object_get(doc, "tools");
	const char *file, *last = "";
	char shown[4096];
	size_t i;

	json_array_foreach(events, i, e)
	{
		file = json_string_value(json_object_get(e, "file"));
		if (strcmp(file, last))
			printf("%s%s\n", i ? "\n" : "", printable(shown, sizeof(shown), file));
		last = file;
		print_event(e);
	}
	if (!json_array_size(events))
		printf("No events: the probe was built without sys/sdt.h\n");
	printf("\ntools\n");
	print_tool(tools, "bpftrace", "bpftrace", "bpftrace is missing: apt install bpftrace");
	print_tool(tools, "lttng", "lttng", "lttng is missing: apt install lttng-tools");
	print_tool(tools, "lttng_provider_loaded", "LTTng provider is loaded",
		"LTTng provider is not loaded; 'ringtap trace lttng' loads it");
	print_tool(tools, "rte_trace", "DPDK's own tracing",
		"DPDK's own tracing: this probe has none");
}

int trace_list(struct trace *t)
{
	json_t *events = json_array();
	bool lttng = false;
	int ret = add_files(t, events, &lttng);

	if (ret) {
		json_decref(events);
		return STATUS_FAILED;
	}
	return trace_report(t, document(t, events, lttng), print);
}
