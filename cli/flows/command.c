/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "cli/commands.h"
#include "common/array.h"
#include "common/proto.h"
#include "flows.h"
#include "packet/inner.h"
#include "target/capture_config.h"

#define ROWS_DEFAULT   20
#define FLOWS_DEFAULT  (1u << 20)
#define SNAPLEN        128 /* bytes: headers, with tags and options */
#define SNAPLEN_TUNNEL 256
#define EXPORT_TIME    NS_PER_S, 3600 * NS_PER_S

enum { OPT_DIRECTION = 1 };

#define TO(field) OPTION_TO(struct flows_command, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to show"},
	FATES_OPTION_ATTACH,
	{TO(by), OPTION_CHOICE, 0, "view", "WHAT", LEDGER_VIEWS, 0, 0,
		"Count packets by WHAT they have in common: 5-tuple (the default: addresses, ports, "
		"protocol and VLAN, in one direction), host, pair (of hosts), port (the lower one), "
		"protocol, vlan, vni (of VXLAN, GENEVE and GRE), inner (the 5-tuple inside of "
		"tunnels), dscp, mac, queue, or thread (that received or sent them)"},
	{TO(order), OPTION_CHOICE, 0, "by", "packets|bytes|latency", LEDGER_ORDERS, 0, 0,
		"Order of the table (default: packets); latency needs --ids"},
	{TO(rows), OPTION_NUMBER, 0, "limit", "N", NULL, 0, FLOWS_ROWS_MAX,
		"Show the N largest; 0: 1000 (default: 20)"},
	{TO(request.expression), OPTION_TEXT, 'f', "filter", "FILTER", NULL, 0, 0,
		"Only packets that match this libpcap expression, see pcap-filter(7); it runs in "
		"the application"},
	TAGS_OPTION(struct flows_command, request.tags),
	INNER_OPTION(struct flows_command, inner),
	{OPTION_SET(OPT_DIRECTION), OPTION_CHOICE, 0, "direction", "rx|tx|both", "rx|tx|both", 0, 0,
		"Received packets (the default), sent packets, or both: without --ids, a packet that "
		"is forwarded counts twice then"},
	{TO(request.ids), OPTION_FLAG, 0, "ids", NULL, NULL, 0, 0,
		"Give received packets ids, so that a forwarded packet counts once, with its way and "
		"its latency; both directions by default"},
	{TO(fates), OPTION_FLAG, 0, "fates", NULL, NULL, 0, 0,
		"Count the received packets of each flow that the application does not offer to any "
		"port; of all packets, so with --sample 1"},
	{.kind = OPTION_HEADING, .help = "How to capture"},
	{TO(request.sample), OPTION_NUMBER, 0, "sample", "N", NULL, 1, RT_SAMPLE_MAX,
		"Count one of N packets, N a power of two, at random and before the filter; 1: all "
		"(default: by the rate, so that at most 500,000 packets/s are copied)"},
	{TO(most), OPTION_NUMBER, 0, "max-flows", "N", NULL, 16, 1u << 26,
		"Keep at most N entries, then forget those with the fewest packets (default: 1M)"},
	FATES_OPTION_BUFFER,
	{.kind = OPTION_HEADING, .help = "To collectors"},
	{TO(export.sflow), OPTION_TEXT, 0, "sflow", "HOST[:PORT]", NULL, 0, 0,
		"Send headers of packets (2,000 a second, about) and counters of ports to this "
		"collector as sFlow version 5 over UDP (default: port 6343)"},
	{TO(export.ipfix), OPTION_TEXT, 0, "ipfix", "[tcp:]HOST[:PORT]", NULL, 0, 0,
		"Send flows to this collector as IPFIX, over UDP or TCP (default: port 4739)"},
	{TO(export.pen), OPTION_NUMBER, 0, "pen", "N", NULL, 1, UINT32_MAX,
		"Add elements of this private enterprise number to IPFIX: 1 and 2, median and 99th "
		"percentile of the latency in ns; 3, packets that were not offered"},
	{TO(export.active_ns), OPTION_TIME, 0, "active-timeout", "TIME", NULL, EXPORT_TIME,
		"Report a flow that goes on each TIME (default: 60s)"},
	{TO(export.idle_ns), OPTION_TIME, 0, "idle-timeout", "TIME", NULL, EXPORT_TIME,
		"Report a flow that has had no packet for TIME (default: 15s)"},
	FATES_OPTIONS_WHEN,
	FATES_OPTION_JSON,
	{TO(view.quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0,
		"Print errors only: for a service that sends to a collector"},
};
/* clang-format on */

static int set(void *ctx, int id, const struct option_value *v)
{
	static const unsigned directions[] = {RINGTAP_RX, RINGTAP_TX, RINGTAP_RX | RINGTAP_TX};

	((struct flows_command *)ctx)->request.directions = directions[v->number];
	return 0;
}

static uint16_t linktype(struct flows_command *c, uint32_t interface)
{
	struct ringtap_interface info = {.size = sizeof(info)};

	while (c->linktype_count <= interface) {
		uint16_t *next = rt_array_add(c->linktypes, c->linktype_count);

		if (!next)
			return 0;
		*next = 0;
	}
	if (!c->linktypes[interface] && !ringtap_capture_interface(c->view.s.cap, interface, &info))
		c->linktypes[interface] = info.linktype;
	return c->linktypes[interface];
}

static void count(void *ctx)
{
	struct flows_command *c = ctx;
	bool counted[LEDGER_BATCH];

	ledger_add_batch(&c->ledger, c->batch, c->batch_types, c->waiting, counted);
	for (unsigned i = 0; i < c->waiting; i++)
		if (counted[i])
			exports_packet(&c->exports, &c->batch[i]);
	c->waiting = 0;
}

static void take(void *ctx, const struct ringtap_packet *p)
{
	struct flows_command *c = ctx;
	const uint16_t type = linktype(c, p->interface);

	if (c->detail.open)
		flows_detail_take(&c->detail, &c->ledger, p, type);
	c->batch[c->waiting] = *p;
	c->batch_types[c->waiting] = type;
	if (++c->waiting == LEDGER_BATCH)
		count(c);
}

/* Entries of what waits are those of its thread. */
static void from(void *ctx, const struct ringtap_ring *ring)
{
	struct flows_command *c = ctx;

	if (c->by == LEDGER_THREAD)
		count(c);
	c->ledger.thread = (struct ledger_thread){ring->lcore, ring->tid};
}

static int attach(struct fates_session *s)
{
	struct flows_command *c = s->ctx;
	int ret = c->fates ? dropped_begin(&c->dropped, s, &c->request) : 0;

	if (!ret)
		ret = flows_attach(s, &c->request);
	if (ret)
		return ret;
	if (c->request.sample == 1 && (c->by == LEDGER_5_TUPLE || c->by == LEDGER_INNER))
		ret = ledger_follow(&c->ledger);
	if (ret)
		return message_fail(ret, "flows: not enough memory");
	ret = exports_begin(
		&c->exports, s->cap, s->app.dir, s->app.name, c->request.sample, &c->ledger);
	return ret ? message_fail(ret, "flows: not enough memory") : 0;
}

static int reading(void *ctx, bool final)
{
	struct flows_command *c = ctx;

	c->final = final;
	dropped_take(&c->dropped, &c->ledger, final);
	if (final)
		exports_turn(&c->exports, true);
	return 0;
}

static void turn(void *ctx)
{
	struct flows_command *c = ctx;

	dropped_take(&c->dropped, &c->ledger, false);
	exports_turn(&c->exports, false);
}

/* Row of the screen; -1: none. */
static void open_row(void *ctx, int row)
{
	struct flows_command *c = ctx;
	const bool shown = row >= 0 && (unsigned)row < c->shown_count;

	flows_detail_open(&c->detail, shown ? &c->shown[row] : NULL);
}

static void mark(void *ctx)
{
	ledger_mark(&((struct flows_command *)ctx)->ledger);
}

static int begin(struct flows_command *c)
{
	char err[256];

	if (sample_check("flows", c->request.sample))
		return STATUS_USAGE;
	if (c->order == LEDGER_BY_LATENCY && !c->request.ids)
		return message_fail(
			STATUS_USAGE, "flows: --by latency: latencies need ids; add --ids");
	if (c->fates && c->request.sample != 1)
		return message_fail(STATUS_USAGE,
			"flows: --fates: a sample has not all packets; add --sample 1");
	if (c->fates && c->by == LEDGER_THREAD)
		return message_fail(STATUS_USAGE,
			"flows: --fates: the thread of a packet that is not offered is not known; "
			"use another --view");
	if (c->export.ipfix && c->by != LEDGER_5_TUPLE)
		return message_fail(
			STATUS_USAGE, "flows: --ipfix: its flows are 5-tuples; leave out --view");
	if (filter_compile_inner(&c->request.filter, c->inner, c->request.expression,
		    c->request.tags, RINGTAP_LINKTYPE_ETHERNET, err, sizeof(err)))
		return message_fail(STATUS_USAGE, "flows: filter '%s': %s; see pcap-filter(7)",
			c->request.expression, err);
	c->view.s.snaplen = c->by == LEDGER_VNI || c->by == LEDGER_INNER ? SNAPLEN_TUNNEL : SNAPLEN;
	if (ledger_init(&c->ledger, c->by, c->most, c->request.ids))
		return message_fail(STATUS_FAILED, "flows: not enough memory");
	switch (exports_open(&c->exports, "flows", &c->export)) {
	case 0: return STATUS_OK;
	case -EINVAL: return STATUS_USAGE;
	default: return STATUS_FAILED;
	}
}

static int run(const struct command *self, int argc, char **argv)
{
	static struct flows_command c; /* large */
	int ret;

	c = (struct flows_command){.view = {.s = {.command = "flows",
						    .take = take,
						    .release = count,
						    .from = from,
						    .attach = attach,
						    .ctx = &c},
					   .reading = reading,
					   .text = flows_text,
					   .document = flows_json,
					   .mark = mark,
					   .turn = turn,
					   .open = open_row,
					   .ctx = &c},
		.rows = ROWS_DEFAULT,
		.most = FLOWS_DEFAULT,
		.export = {.active_ns = 60 * NS_PER_S, .idle_ns = 15 * NS_PER_S}};
	ret = options_parse(self, argc, argv, &c);
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	c.rows = c.rows ? c.rows : FLOWS_ROWS_MAX;
	ret = begin(&c);
	if (ret == STATUS_OK)
		ret = fates_run(&c.view);
	dropped_free(&c.dropped);
	fates_free(&c.view.s);
	exports_close(&c.exports);
	ledger_free(&c.ledger);
	filter_free(&c.request.filter);
	free(c.linktypes);
	return ret;
}

const struct command cmd_flows = {
	.name = "flows",
	.summary = "show flows: who sends what, how fast, and how late",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = fates_operand,
	.set = set,
	.run = run,
};
