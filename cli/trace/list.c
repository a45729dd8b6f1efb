/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of an application, and the tracers that are installed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "measure/rates.h"
#include "telemetry.h"
#include "trace.h"
#include "tracers.h"
#include "usdt/events.h"
#include "usdt/process_files.h"

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
static json_t *arguments_json(const struct usdt_event *e)
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

static json_t *event_json(const struct usdt_event *e, const char *file)
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

struct listing {
	json_t *list;
	bool lttng; /* its provider is among the files */
};

static int add_file(void *ctx, const char *path, const char *file)
{
	struct listing *l = ctx;
	struct usdt_events events = {0};
	const char *slash = strrchr(file, '/');

	l->lttng |= !strcmp(slash ? slash + 1 : file, PROVIDER_FILE);
	if (elf_events(path, &events))
		events.count = 0;
	for (size_t i = 0; i < events.count; i++)
		json_array_append_new(l->list, event_json(&events.list[i], file));
	elf_events_free(&events);
	return 0;
}

static json_t *document(const struct trace *t, json_t *events, bool lttng)
{
	json_t *answer = trace_query(t->app.dir, "");
	bool rte_trace = json_is_object(answer);
	json_t *j;

	json_decref(answer);
	j = json_application(t->app.name, (uint32_t)t->pid, t->info.program);
	json_put(j, "events", events);
	json_put(j, "tools",
		json_pack("{s:b,s:b,s:b,s:b}", "bpftrace", child_found("bpftrace"), "lttng",
			child_found("lttng"), "lttng_provider_loaded", lttng, "rte_trace",
			rte_trace));
	return j;
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
	struct listing l = {.list = json_array()};
	int ret = process_files_each(t->pid, add_file, &l);

	if (ret) {
		message_print("trace: %s: its files: %s; run it as its user or as root",
			t->app.name, strerror(-ret));
		json_decref(l.list);
		return STATUS_FAILED;
	}
	return trace_report(t, document(t, l.list, l.lttng), print);
}
