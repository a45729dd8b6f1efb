/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "ipfix.h"

enum { VERSION = 10, SET_HEAD = 4 };
enum { SET_TEMPLATES = 2, SET_OPTIONS = 3 };
enum {
	FLOW_IPV4 = 256,
	FLOW_IPV6,
	FLOW_ETHERNET,
	OPTIONS_SAMPLING,
	OPTIONS_INTERVAL,
	OPTIONS_INTERFACE
};
enum { END_IDLE = 1, END_ACTIVE, END_SEEN, END_FORCED, END_NO_ROOM }; /* flowEndReason */
enum { RANDOM_SELECTION = 3 };                                        /* RFC 5477, 8.2.2 */
enum { FIN = 1, RST = 4 };
#define VARIABLE   65535u /* length */
#define SLICE      4096u  /* entries that a turn reads, at least */
#define TURNS      10u    /* a second, at least */
#define STEPS      50u    /* in a second, for the pace */
#define DRAIN_MS   1000   /* at the end, for a message */
#define RECORD_MAX 160u   /* bytes; one of an interface has a name */

/* Information elements and their bytes: the order of the fields in put_flow(). */
struct field {
	uint16_t element, bytes;
};
#define FIELDS_COMMON                                                                \
	{10, 4}, {14, 4},           /* ingressInterface, egressInterface */          \
		{58, 2},            /* vlanId */                                     \
		{2, 8},             /* packetDeltaCount */                           \
		{352, 8},           /* layer2OctetDeltaCount */                      \
		{152, 8}, {153, 8}, /* flowStartMilliseconds, flowEndMilliseconds */ \
		{136, 1},           /* flowEndReason */                              \
	{                                                                            \
		302, 1                                                               \
	} /* selectorId */
#define FIELDS_IP                                                                    \
	{4, 1}, {5, 1},          /* protocolIdentifier, ipClassOfService */          \
		{7, 2}, {11, 2}, /* sourceTransportPort, destinationTransportPort */ \
		{6, 1},          /* tcpControlBits */                                \
	{                                                                            \
		1, 8                                                                 \
	} /* octetDeltaCount */

static const struct field flow_ipv4[] = {{8, 4}, {12, 4}, FIELDS_IP, FIELDS_COMMON};
static const struct field flow_ipv6[] = {{27, 16}, {28, 16}, FIELDS_IP, FIELDS_COMMON};
/* sourceMacAddress, destinationMacAddress, ethernetType */
static const struct field flow_ethernet[] = {{56, 6}, {80, 6}, {256, 2}, FIELDS_COMMON};
/* selectorId, selectorAlgorithm, samplingPacketInterval, samplingPacketSpace */
static const struct field sampling[] = {{302, 1}, {304, 2}, {305, 4}, {306, 4}};
/* observationDomainId, samplingInterval: for collectors that do not know the elements above */
static const struct field interval[] = {{149, 4}, {34, 4}};
/* ingressInterface, interfaceName */
static const struct field interface[] = {{10, 4}, {82, VARIABLE}};

/* Elements of the enterprise, 8 bytes each, behind the others: median and 99th percentile of the
 * latency in ns, packets that were not offered; all since the entry began, 0 where they are not
 * known. */
enum { OWN_P50 = 1, OWN_P99, OWN_NOT_OFFERED, OWN_FIELDS = OWN_NOT_OFFERED };
#define ENTERPRISE 0x8000u

void ipfix_begin(struct ipfix *x, uint32_t domain, uint32_t sample)
{
	x->domain = domain;
	x->sample = sample;
}

/* ---- messages ---- */

static void close_set(struct ipfix *x)
{
	if (x->set)
		wire_set(&x->w, x->set_at + 2, x->w.len - x->set_at, 2);
	x->set = 0;
}

static void flush(struct ipfix *x)
{
	if (!x->w.len)
		return;
	close_set(x);
	wire_set(&x->w, 2, x->w.len, 2);
	collector_send(&x->to, &x->w);
	x->sequence += x->in_message;
	x->in_message = 0;
	x->w.len = 0;
}

/* Begins a message where there is none, and a set where the last one is another. bytes: those that
 * follow. */
static struct wire *open_set(struct ipfix *x, uint16_t set, size_t bytes)
{
	if (x->w.len + SET_HEAD + bytes > WIRE_BYTES)
		flush(x);
	if (!x->w.len) {
		wire_put(&x->w, VERSION, 2);
		wire_put(&x->w, 0, 2);
		wire_put(&x->w, now_ns(CLOCK_REALTIME) / NS_PER_S, 4);
		wire_put(&x->w, x->sequence, 4);
		wire_put(&x->w, x->domain, 4);
	}
	if (x->set != set) {
		close_set(x);
		x->set = set;
		x->set_at = x->w.len;
		wire_put(&x->w, set, 2);
		wire_put(&x->w, 0, 2);
	}
	return &x->w;
}

/* ---- templates ---- */

static void put_template(
	struct ipfix *x, uint16_t id, const struct field *f, unsigned count, bool options)
{
	const unsigned own = x->pen && !options ? OWN_FIELDS : 0;
	struct wire *w =
		open_set(x, options ? SET_OPTIONS : SET_TEMPLATES, 6 + 4 * count + 8 * own);

	wire_put(w, id, 2);
	wire_put(w, count + own, 2);
	if (options)
		wire_put(w, 1, 2); /* fields of the scope */
	for (unsigned i = 0; i < count; i++) {
		wire_put(w, f[i].element, 2);
		wire_put(w, f[i].bytes, 2);
	}
	for (unsigned i = 1; i <= own; i++) {
		wire_put(w, ENTERPRISE | i, 2);
		wire_put(w, 8, 2);
		wire_put(w, x->pen, 4);
	}
	close_set(x); /* some collectors read one template of options in a set */
}

#define COUNT(fields)                    (sizeof(fields) / sizeof((fields)[0]))
#define TEMPLATE(x, id, fields, options) put_template(x, id, fields, COUNT(fields), options)

static void put_interface(struct ipfix *x, const struct export_port *port)
{
	const size_t len = strnlen(port->info.name, sizeof(port->info.name));
	struct wire *w = open_set(x, OPTIONS_INTERFACE, 5 + len);

	wire_put(w, port->index, 4);
	wire_put(w, len, 1);
	wire_bytes(w, port->info.name, len);
	x->in_message++;
}

/* A message that explains those to come. */
static void describe(struct ipfix *x, const struct export_port *ports, uint32_t port_count)
{
	struct wire *w;

	flush(x);
	TEMPLATE(x, FLOW_IPV4, flow_ipv4, false);
	TEMPLATE(x, FLOW_IPV6, flow_ipv6, false);
	TEMPLATE(x, FLOW_ETHERNET, flow_ethernet, false);
	TEMPLATE(x, OPTIONS_SAMPLING, sampling, true);
	TEMPLATE(x, OPTIONS_INTERVAL, interval, true);
	TEMPLATE(x, OPTIONS_INTERFACE, interface, true);
	w = open_set(x, OPTIONS_SAMPLING, 11);
	wire_put(w, 1, 1);
	wire_put(w, RANDOM_SELECTION, 2);
	wire_put(w, 1, 4);
	wire_put(w, x->sample - 1, 4);
	w = open_set(x, OPTIONS_INTERVAL, 8);
	wire_put(w, x->domain, 4);
	wire_put(w, x->sample, 4);
	x->in_message += 2;
	for (uint32_t i = 0; i < port_count; i++)
		if (ports[i].index)
			put_interface(x, &ports[i]);
	flush(x);
}

/* Over UDP again and again, over TCP once a connection; also for more ports. */
static void describe_if_due(struct ipfix *x, const struct export_port *ports, uint32_t port_count)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	const bool again = !x->to.stream && now - x->templates_ns >= IPFIX_TEMPLATES_NS;

	if (!collector_ready(&x->to))
		return;
	if (x->described == x->to.connections && x->described_ports == port_count && !again)
		return;
	describe(x, ports, port_count);
	x->described_ports = port_count;
	x->described = x->to.connections;
	x->templates_ns = now;
}

/* ---- flows ---- */

static uint32_t index_of(
	const struct ledger_place *p, const struct export_port *ports, uint32_t port_count)
{
	return p->interface && p->interface <= port_count ? ports[p->interface - 1].index : 0;
}

static uint16_t template_of(const struct flow_key *k)
{
	if (!(k->flags & HAS_IP))
		return FLOW_ETHERNET;
	return k->version == 6 ? FLOW_IPV6 : FLOW_IPV4;
}

static void put_key(struct wire *w, const struct flow_key *k, const struct ledger_unreported *u)
{
	const size_t bytes = !(k->flags & HAS_IP) ? 6 : k->version == 6 ? 16 : 4;

	wire_bytes(w, k->src, bytes);
	wire_bytes(w, k->dst, bytes);
	if (!(k->flags & HAS_IP)) {
		wire_put(w, k->type, 2);
		return;
	}
	wire_put(w, k->protocol, 1);
	wire_put(w, u->tos, 1);
	wire_put(w, k->src_port, 2);
	wire_put(w, k->dst_port, 2);
	wire_put(w, u->tcp_flags, 1);
	wire_put(w, u->ip_bytes, 8);
}

static uint64_t latency_of(const struct ledger *t, const struct ledger_flow *f, double share)
{
	const double ns = t->ids ? ledger_quantile(f, share) : NAN;

	return isnan(ns) ? 0 : (uint64_t)ns;
}

static void put_flow(struct ipfix *x, const struct ledger *t, const struct ledger_flow *f,
	struct ledger_unreported *u, const struct export_port *ports, uint32_t port_count,
	uint8_t reason)
{
	struct wire *w = open_set(x, template_of(&f->key), RECORD_MAX);

	put_key(w, &f->key, u);
	wire_put(w, index_of(&f->in, ports, port_count), 4);
	wire_put(w, index_of(&f->out, ports, port_count), 4);
	wire_put(w, f->key.vlan == FLOW_NO_VLAN ? 0 : f->key.vlan & 4095, 2);
	wire_put(w, u->packets, 8);
	wire_put(w, u->frame_bytes, 8);
	wire_put(w, u->first_ns / 1000000, 8);
	wire_put(w, f->last_ns / 1000000, 8);
	wire_put(w, reason, 1);
	wire_put(w, 1, 1);
	if (x->pen) {
		wire_put(w, latency_of(t, f, 0.5), 8);
		wire_put(w, latency_of(t, f, 0.99), 8);
		wire_put(w, f->not_offered, 8);
	}
	x->in_message++;
	x->records++;
	x->paced++;
	u->packets = 0;
}

/* Why a flow is reported now; 0: it is not. */
static uint8_t reason_of(const struct ipfix *x, const struct ledger_flow *f,
	const struct ledger_unreported *u, uint64_t time_ns, bool final)
{
	if (!u->packets)
		return 0;
	if (u->tcp_flags & (FIN | RST))
		return END_SEEN;
	if (time_ns > f->last_ns && time_ns - f->last_ns >= x->idle_ns)
		return END_IDLE;
	if (time_ns > u->first_ns && time_ns - u->first_ns >= x->active_ns)
		return END_ACTIVE;
	return final ? END_FORCED : 0;
}

/* Whether flows have to stay in the ledger for now: the second has no room for more records, or the
 * collector takes none. At the end it waits for the next second. */
static bool has_to_wait(struct ipfix *x, bool final)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC), step = NS_PER_S / STEPS;

	if (now - x->pace_ns >= step) {
		x->pace_ns = now;
		x->paced = 0;
	}
	if (final && x->to.rest_len && !x->stuck) {
		collector_drain(&x->to, DRAIN_MS);
		x->stuck = x->to.rest_len;
	}
	if (!final && (x->to.fd < 0 || x->to.connecting || x->to.rest_len))
		return true;
	if (x->paced < IPFIX_PER_SECOND / STEPS)
		return false;
	if (!final)
		return true;
	rt_sleep_ns(step - (now - x->pace_ns));
	x->paced = 0;
	return false;
}

void ipfix_turn(struct ipfix *x, const struct ledger *t, const struct export_port *ports,
	uint32_t port_count, uint64_t time_ns, bool final)
{
	const uint32_t part = t->table.count / TURNS, slice = part > SLICE ? part : SLICE;
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint32_t left = final ? t->table.count : slice;

	describe_if_due(x, ports, port_count);
	if (final)
		x->next = 0;
	else if (!x->next && now - x->pass_ns < NS_PER_S)
		return;
	if (!x->next)
		x->pass_ns = now;
	for (; left && x->next < t->table.count && !has_to_wait(x, final); left--, x->next++) {
		const struct ledger_flow *f = flow_table_at(&t->table, x->next);
		struct ledger_unreported *u = ledger_unreported(t, f);
		const uint8_t reason = reason_of(x, f, u, time_ns, final);

		if (reason)
			put_flow(x, t, f, u, ports, port_count, reason);
	}
	if (x->next >= t->table.count || final) {
		x->next = 0;
		flush(x);
	}
	if (final)
		collector_drain(&x->to, DRAIN_MS);
}

void ipfix_forgotten(struct ipfix *x, const struct ledger *t, const struct export_port *ports,
	uint32_t port_count, const struct ledger_flow *f)
{
	struct ledger_unreported *u = ledger_unreported(t, f);

	if (u->packets)
		put_flow(x, t, f, u, ports, port_count, END_NO_ROOM);
}
