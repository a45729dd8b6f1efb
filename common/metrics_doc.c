/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the tables of metrics of docs/statistics.md, between two comments. */
#include <stdio.h>

#include "metrics.h"

static const struct {
	const char *title, *labels;
} objects[] = {
	[RT_OBJECT_APP] = {"Applications", NULL},
	[RT_OBJECT_PORT] = {"Ports", "`port`"},
	[RT_OBJECT_DRIVER] = {"Ports: the driver's counters, in JSON per second, as "
			      "`driver_per_second`",
		"`port`"},
	[RT_OBJECT_CALLS] = {"Ports, as `rx` and `tx`, and queues: the probe's counters",
		"`port`, `queue`, `direction`"},
	[RT_OBJECT_QUEUE] = {"Queues, by thread", NULL},
	[RT_OBJECT_THREAD] = {"Threads", "`thread`"},
	[RT_OBJECT_POOL] = {"Mempools", "`pool`"},
	[RT_OBJECT_RING] = {"Rings", "`ring`"},
	[RT_OBJECT_XSTAT] = {"Extended statistics of drivers (collector `xstats`)",
		"`port`, `xstat`"},
	[RT_OBJECT_DEVICE] = {"Event, crypto and DMA devices (collector `devices`), as `devices`",
		"`kind`, `device`, `id`, `part`, `stat`"},
	[RT_OBJECT_LCORE] = {"Lcores, as the application counts them (collector `busy`)",
		"`lcore`"},
	[RT_OBJECT_PAIR] = {"Latency", "`rx_port`, `tx_port`"},
	[RT_OBJECT_GAP] = {"Polling gaps and microbursts, as `gaps` and `microbursts` of threads",
		NULL},
	[RT_OBJECT_RECORDER] = {"Flight recorders (`ringtap flight top --json`)", "`folder`"},
	[RT_OBJECT_KEPT] = {"Flight recorders, as `ports`: what is kept", NULL},
	[RT_OBJECT_CONDITION] = {"Flight recorders, as `conditions`", "`folder`, `condition`"},
};

static const char *const types[] = {"gauge", "counter", "histogram", "info"};
static const char *const suffixes[] = {"", "_total", "", "_info"};
static const char *const units[] = {
	[RT_UNIT_TEXT] = "text",
	[RT_UNIT_BOOL] = "true or false",
	[RT_UNIT_COUNT] = "number",
	[RT_UNIT_RATE] = "per second",
	[RT_UNIT_SHARE] = "0 … 1",
	[RT_UNIT_MEAN] = "mean",
	[RT_UNIT_NS] = "ns",
	[RT_UNIT_CYCLES] = "cycles",
	[RT_UNIT_BYTES] = "bytes",
	[RT_UNIT_MBPS] = "Mbit/s",
	[RT_UNIT_CLOCK] = "ns since the epoch",
	[RT_UNIT_BARS] = "calls by packets",
};

static void print_row(const struct rt_metric *m)
{
	char key[128] = "", prometheus[128] = "";

	if (m->key)
		snprintf(key, sizeof(key), "`%s`, %s", m->key, units[m->unit]);
	if (m->prometheus)
		snprintf(prometheus, sizeof(prometheus), "`ringtap_%s%s`, %s", m->prometheus,
			suffixes[m->type], types[m->type]);
	printf("| %s | %s | %s |\n", m->key ? key : "–", m->prometheus ? prometheus : "–", m->help);
}

int main(void)
{
	puts("<!-- metrics: begin, made by devtools/metrics-table.sh -->");
	for (unsigned o = 0; o < sizeof(objects) / sizeof(objects[0]); o++) {
		printf("\n### %s\n\n", objects[o].title);
		if (objects[o].labels)
			printf("Labels besides `app`: %s.\n\n", objects[o].labels);
		puts("| JSON, telemetry | Prometheus | meaning |\n|---|---|---|");
		for (unsigned i = 0; i < RT_M_COUNT; i++)
			if (rt_metrics[i].object == o &&
				(rt_metrics[i].key || rt_metrics[i].prometheus))
				print_row(&rt_metrics[i]);
	}
	puts("\n<!-- metrics: end -->");
	return 0;
}
