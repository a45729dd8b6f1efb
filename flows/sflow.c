/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/util.h"
#include "common/hash.h"
#include "sflow.h"

enum { VERSION = 5, FLOW_SAMPLE = 1, COUNTER_SAMPLE = 2, RAW_HEADER = 1, INTERFACE_COUNTERS = 1 };
enum { HEADER_ETHERNET = 1, HEADER_IPV4 = 11, HEADER_IPV6 = 12 };
enum { ETHERNET_CSMACD = 6, FULL_DUPLEX = 1, UP = 3 };
#define FCS        4u /* bytes: sFlow counts them, NICs have stripped them */
#define HEADER_MAX 128u

void sflow_begin(struct sflow *s, uint32_t sub_agent, uint32_t sample)
{
	struct secret random;

	secret_make(&random);
	s->random = random.word[0];
	s->sub_agent = sub_agent;
	s->sample = sample;
	s->thin = 1;
	s->start_ns = s->window_ns = now_ns(CLOCK_MONOTONIC);
}

/* ---- datagrams ---- */

static void put32(struct wire *w, uint64_t v)
{
	wire_put(w, v, 4);
}

/* The head, of which the number of samples comes last. */
static void head(struct sflow *s)
{
	uint8_t address[16] = {0};
	size_t len = collector_source(&s->to, address);

	s->w.len = 0;
	s->w.full = false;
	s->in_datagram = 0;
	put32(&s->w, VERSION);
	put32(&s->w, len == 16 ? 2 : 1);
	wire_bytes(&s->w, address, len == 16 ? 16 : 4);
	put32(&s->w, s->sub_agent);
	put32(&s->w, ++s->datagrams);
	put32(&s->w, (now_ns(CLOCK_MONOTONIC) - s->start_ns) / 1000000);
	put32(&s->w, 0);
}

static size_t count_at(const struct wire *w)
{
	return w->p[7] == 2 ? 36 : 24; /* behind an address of IPv6, of IPv4 */
}

void sflow_flush(struct sflow *s)
{
	if (s->in_datagram) {
		wire_set(&s->w, count_at(&s->w), s->in_datagram, 4);
		collector_send(&s->to, &s->w);
	}
	s->in_datagram = 0;
	s->w.len = 0;
}

/* Adds a sample by put(), to the next datagram where this one has no room. */
static void add(struct sflow *s, void (*put)(struct sflow *s, void *ctx), void *ctx)
{
	size_t before;

	if (!s->w.len)
		head(s);
	before = s->w.len;
	put(s, ctx);
	if (s->w.full) {
		s->w.len = before;
		sflow_flush(s);
		head(s);
		put(s, ctx);
	}
	s->in_datagram++;
}

/* A structure's format, and its length, which close_structure() sets. */
static size_t open_structure(struct wire *w, uint32_t format)
{
	put32(w, format);
	put32(w, 0);
	return w->len;
}

static void close_structure(struct wire *w, size_t begin)
{
	if (!w->full)
		wire_set(w, begin - 4, w->len - begin, 4);
}

/* ---- packets ---- */

struct packet_sample {
	const struct export_port *port;
	const struct ringtap_packet *p;
};

static uint32_t header_protocol(const struct export_port *port, const struct ringtap_packet *p)
{
	if (port->info.linktype != RINGTAP_LINKTYPE_RAW)
		return HEADER_ETHERNET;
	return p->caplen && p->data[0] >> 4 == 6 ? HEADER_IPV6 : HEADER_IPV4;
}

static void put_packet(struct sflow *s, void *ctx)
{
	const struct packet_sample *one = ctx;
	const struct ringtap_packet *p = one->p;
	const bool sent = p->direction == RINGTAP_TX;
	const uint32_t protocol = header_protocol(one->port, p),
		       fcs = protocol == HEADER_ETHERNET ? FCS : 0,
		       len = p->caplen < HEADER_MAX ? p->caplen : HEADER_MAX;
	const uint64_t rate = (uint64_t)s->sample * s->thin;
	size_t sample = open_structure(&s->w, FLOW_SAMPLE), record;

	put32(&s->w, one->port->flow_samples);
	put32(&s->w, one->port->index);
	put32(&s->w, rate > UINT32_MAX ? UINT32_MAX : rate);
	put32(&s->w, one->port->seen);
	put32(&s->w, one->port->lost);
	put32(&s->w, sent ? 0 : one->port->index); /* 0: unknown */
	put32(&s->w, sent ? one->port->index : 0);
	put32(&s->w, 1);
	record = open_structure(&s->w, RAW_HEADER);
	put32(&s->w, protocol);
	put32(&s->w, (uint64_t)p->length + fcs);
	put32(&s->w, fcs);
	put32(&s->w, len);
	wire_bytes(&s->w, p->data, len);
	wire_align(&s->w);
	close_structure(&s->w, record);
	close_structure(&s->w, sample);
}

/* xorshift64: chosen packets must not keep step with the traffic. */
static uint64_t next_random(struct sflow *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random >> 32;
}

void sflow_packet(struct sflow *s, struct export_port *port, const struct ringtap_packet *p)
{
	struct packet_sample one = {port, p};

	if (next_random(s) & (s->thin - 1))
		return;
	port->flow_samples++;
	s->packets++;
	add(s, put_packet, &one);
	if (++s->taken >= SFLOW_PER_WINDOW && s->thin < 1u << 30) {
		s->thin *= 2;
		s->taken /= 2;
	}
}

void sflow_pace(struct sflow *s)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (now - s->window_ns < NS_PER_S / 10)
		return;
	if (s->taken < SFLOW_PER_WINDOW / 4 && s->thin > 1)
		s->thin /= 2;
	s->taken = 0;
	s->window_ns = now;
}

/* ---- counters ---- */

struct counter_sample {
	const struct export_port *port;
	const struct export_counters *c;
};

static void put_counters(struct sflow *s, void *ctx)
{
	const struct counter_sample *one = ctx;
	const struct export_counters *c = one->c;
	const struct export_port *port = one->port;
	size_t sample = open_structure(&s->w, COUNTER_SAMPLE), record;

	put32(&s->w, port->counter_samples);
	put32(&s->w, port->index);
	put32(&s->w, 1);
	record = open_structure(&s->w, INTERFACE_COUNTERS);
	put32(&s->w, port->index);
	put32(&s->w, ETHERNET_CSMACD);
	wire_put(&s->w, port->info.link_mbps * UINT64_C(1000000), 8);
	put32(&s->w, FULL_DUPLEX);
	put32(&s->w, port->info.gone ? 0 : UP);
	wire_put(&s->w, c->in_bytes, 8);
	put32(&s->w, c->in_packets); /* unicast and others: NICs have one counter */
	put32(&s->w, EXPORT_UNKNOWN);
	put32(&s->w, EXPORT_UNKNOWN);
	put32(&s->w, c->in_discards);
	put32(&s->w, c->in_errors);
	put32(&s->w, EXPORT_UNKNOWN); /* unknown protocols */
	wire_put(&s->w, c->out_bytes, 8);
	put32(&s->w, c->out_packets);
	put32(&s->w, EXPORT_UNKNOWN);
	put32(&s->w, EXPORT_UNKNOWN);
	put32(&s->w, EXPORT_UNKNOWN); /* discards */
	put32(&s->w, c->out_errors);
	put32(&s->w, EXPORT_UNKNOWN); /* promiscuous mode */
	close_structure(&s->w, record);
	close_structure(&s->w, sample);
}

bool sflow_counters_due(struct sflow *s)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (s->counters_ns && now - s->counters_ns < SFLOW_COUNTERS_NS)
		return false;
	s->counters_ns = now;
	return true;
}

void sflow_counters(struct sflow *s, struct export_port *port, const struct export_counters *c)
{
	struct counter_sample one = {port, c};

	port->counter_samples++;
	s->counters++;
	add(s, put_counters, &one);
}
