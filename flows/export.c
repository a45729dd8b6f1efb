/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/util.h"
#include "common/array.h"
#include "export.h"

#define COUNTS_NS    (NS_PER_S / 10)
#define TURN_NS      (NS_PER_S / 50)
#define TELEMETRY_MS 500

static void *new_one(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		message_print("flows: not enough memory");
	return p;
}

int exports_open(struct exports *e, const char *command, const struct export_request *r)
{
	int ret = 0;

	if (r->sflow) {
		e->sflow = new_one(sizeof(*e->sflow));
		ret = e->sflow ? collector_open(&e->sflow->to, command, "sflow", r->sflow,
					 SFLOW_PORT, false)
			       : -ENOMEM;
	}
	if (!ret && r->ipfix) {
		e->ipfix = new_one(sizeof(*e->ipfix));
		ret = e->ipfix ? collector_open(&e->ipfix->to, command, "ipfix", r->ipfix,
					 IPFIX_PORT, true)
			       : -ENOMEM;
		if (!ret) {
			e->ipfix->active_ns = r->active_ns;
			e->ipfix->idle_ns = r->idle_ns;
			e->ipfix->pen = r->pen;
		}
	}
	return ret;
}

void exports_close(struct exports *e)
{
	if (e->sflow)
		collector_close(&e->sflow->to);
	if (e->ipfix)
		collector_close(&e->ipfix->to);
	free(e->sflow);
	free(e->ipfix);
	free(e->ports);
}

/* FNV-1a: collectors know an application by it, also after a restart. */
static uint32_t number_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static void forgotten(void *ctx, const struct ledger_flow *f)
{
	struct exports *e = ctx;

	ipfix_forgotten(e->ipfix, e->ledger, e->ports, e->port_count, f);
}

/* ---- ports ---- */

/* Interfaces appear while the capture runs. 0 or -ENOMEM. */
static int know_ports(struct exports *e)
{
	const unsigned count = ringtap_capture_interface_count(e->cap);

	while (e->port_count < count) {
		struct export_port *p = rt_array_add(e->ports, e->port_count);

		if (!p)
			return -ENOMEM;
		*p = (struct export_port){.index = 0};
	}
	for (unsigned i = 0; i < e->port_count; i++) {
		struct export_port *p = &e->ports[i];

		p->info.size = sizeof(p->info);
		if (!ringtap_capture_interface(e->cap, i, &p->info))
			p->index = p->info.port_id + 1u;
		p->seen = p->lost = 0;
	}
	return 0;
}

static void read_counts(struct exports *e)
{
	struct ringtap_tap tap = {.size = sizeof(tap)};

	e->counts_ns = now_ns(CLOCK_MONOTONIC);
	if (know_ports(e))
		return;
	for (unsigned i = 0; i < ringtap_capture_tap_count(e->cap); i++) {
		if (ringtap_capture_tap(e->cap, i, &tap) || tap.interface >= e->port_count)
			continue;
		e->ports[tap.interface].seen += tap.counts.seen;
		for (int r = 0; r < RINGTAP_LOST_MAX; r++)
			e->ports[tap.interface].lost += tap.counts.lost[r];
	}
}

static uint64_t member(const json_t *stats, const char *name)
{
	const json_t *v = json_object_get(stats, name);

	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : EXPORT_UNKNOWN;
}

/* DPDK's own counters of a port, since its start. False: its telemetry does not answer. */
static bool ask_counters(
	const struct exports *e, const struct export_port *p, struct export_counters *c)
{
	char command[32], *answer = NULL;
	json_t *j;
	const json_t *s;

	snprintf(command, sizeof(command), "/ethdev/stats,%u", p->info.port_id);
	if (ringtap_telemetry(e->dir, command, TELEMETRY_MS, &answer, NULL))
		return false;
	j = json_loads(answer, 0, NULL);
	free(answer);
	s = json_object_get(j, "/ethdev/stats");
	if (json_is_object(s))
		*c = (struct export_counters){member(s, "ipackets"), member(s, "ibytes"),
			member(s, "imissed"), member(s, "ierrors"), member(s, "opackets"),
			member(s, "obytes"), member(s, "oerrors")};
	json_decref(j);
	return true;
}

/* Without telemetry they are those that the capture knows. It is asked once in vain: packets wait
 * meanwhile. */
static void send_counters(struct exports *e)
{
	bool answers = true;

	for (uint32_t i = 0; i < e->port_count; i++) {
		struct export_port *p = &e->ports[i];
		struct export_counters c = {p->info.nic_ipackets, EXPORT_UNKNOWN,
			p->info.nic_imissed, p->info.nic_ierrors, p->info.nic_opackets,
			EXPORT_UNKNOWN, p->info.nic_oerrors};

		if (answers && !p->info.gone)
			answers = ask_counters(e, p, &c);
		sflow_counters(e->sflow, p, &c);
	}
}

/* ---- from the begin to the end ---- */

int exports_begin(struct exports *e, struct ringtap_capture *cap, const char *dir,
	const char *application, uint32_t sample, struct ledger *t)
{
	const uint32_t number = number_of(application);
	int ret = 0;

	e->cap = cap;
	e->dir = dir;
	e->ledger = t;
	if (e->sflow)
		sflow_begin(e->sflow, number, sample);
	if (e->ipfix) {
		ipfix_begin(e->ipfix, number, sample);
		t->forgotten = forgotten;
		t->ctx = e;
		ret = ledger_report(t);
	}
	if (!ret)
		exports_turn(e, false); /* collectors need templates first */
	return ret;
}

void exports_packet(struct exports *e, const struct ringtap_packet *p)
{
	if (!e->sflow)
		return;
	if (p->interface >= e->port_count)
		read_counts(e);
	if (p->interface < e->port_count)
		sflow_packet(e->sflow, &e->ports[p->interface], p);
}

void exports_turn(struct exports *e, bool final)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct sflow *s = e->sflow;

	if ((!s && !e->ipfix) || (!final && now - e->turn_ns < TURN_NS))
		return;
	e->turn_ns = now;
	if (final || now - e->counts_ns >= COUNTS_NS)
		read_counts(e);
	if (s) {
		sflow_pace(s);
		if (sflow_counters_due(s) || final)
			send_counters(e);
		sflow_flush(s);
	}
	if (e->ipfix)
		ipfix_turn(e->ipfix, e->ledger, e->ports, e->port_count, now_ns(CLOCK_REALTIME),
			final);
}
