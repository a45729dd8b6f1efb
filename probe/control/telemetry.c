/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry commands. No connection exists whose end would switch collectors off: a query takes
 * a lease on those that it needs. */
#include <string.h>

#include <rte_common.h>

#include "probe/dpdk/compat.h"
#include "control.h"
#include "telemetry.h"

struct command {
	const char *name, *help; /* rte_telemetry refuses help texts of 64 characters and more */
	uint32_t collectors;
	const char *what;
	void (*show)(struct rt_stats *f, const char *port, struct rt_tel_list *out);
};

static const struct command commands[] = {
	{"/ringtap/ports", "Ports and their NIC counters. Parameters: port id (optional)", 0,
		"ports", rt_telemetry_ports},
	{"/ringtap/threads", "Polling threads: work, polling gaps. Takes no parameters",
		RT_COLLECT_POLLS | RT_COLLECT_BUSY | RT_COLLECT_GAPS, "threads",
		rt_telemetry_threads},
	{"/ringtap/polling", "Bursts by queue and thread. Parameters: port id (optional)",
		RT_COLLECT_POLLS, "queues", rt_telemetry_polling},
	{"/ringtap/latency", "Latency from RX to TX. Parameters: RX port id (optional)",
		RT_COLLECT_LATENCY, "pairs", rt_telemetry_latency},
	{"/ringtap/mempools", "Mempools and their memory. Takes no parameters", RT_COLLECT_POOLS,
		"mempools", rt_telemetry_mempools},
	{"/ringtap/addresses", "Buffer addresses of received packets. Takes no parameters",
		RT_COLLECT_ADDRESSES | RT_COLLECT_POOLS, "threads", rt_telemetry_addresses},
};

struct query {
	const struct command *command;
	const char *port;
	struct rte_tel_data *out;
};

static void show(struct rt_stats *f, uint64_t collecting_ms, void *arg)
{
	const struct query *q = arg;
	struct rt_tel_list list = {.dict = rte_tel_data_alloc()};

	rte_tel_data_start_dict(q->out);
	rt_compat_tel_uint(q->out, "lease_ms", RT_LEASE_MS);
	rt_compat_tel_uint(q->out, "collecting_ms", collecting_ms);
	if (!list.dict)
		return;
	rte_tel_data_start_dict(list.dict);
	q->command->show(f, q->port, &list);
	if (list.omitted)
		rt_compat_tel_uint(q->out, "omitted", list.omitted);
	if (rte_tel_data_add_dict_container(q->out, q->command->what, list.dict, 0))
		rte_tel_data_free(list.dict);
}

static int on_command(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct query q = {.port = params && params[0] ? params : NULL, .out = d};

	for (size_t i = 0; i < RTE_DIM(commands); i++) {
		if (strcmp(commands[i].name, cmd) == 0)
			q.command = &commands[i];
	}
	return q.command ? rt_control_query(q.command->collectors, show, &q) : -1;
}

void rt_telemetry_register(void)
{
	for (size_t i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, on_command, commands[i].help);
}
