/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <assert.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flows.h"

#define TYPE_QINQ           0x88a8
#define VLANS_MAX           4
#define IPV6_EXTENSIONS_MAX 8

static_assert(sizeof(struct flow_key) == 44, "no padding: keys are compared byte by byte");

/* ---- keys */

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_UDPLITE || protocol == IPPROTO_DCCP;
}

static void take_ports(struct flow_key *k, const uint8_t *p, uint32_t left)
{
	if (!has_ports(k->protocol) || left < 4)
		return;
	k->source_port = be16(p);
	k->target_port = be16(p + 2);
}

static void take_ipv4(struct flow_key *k, const uint8_t *p, uint32_t left)
{
	uint32_t header;

	if (left < 20)
		return;
	memcpy(k->source, p + 12, 4);
	memcpy(k->target, p + 16, 4);
	k->protocol = p[9];
	header = (p[0] & 0xfu) * 4;
	/* Later fragments have no ports. */
	if (header >= 20 && header < left && !(be16(p + 6) & 0x1fff))
		take_ports(k, p + header, left - header);
}

static bool is_extension(uint8_t protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_FRAGMENT;
}

static void take_ipv6(struct flow_key *k, const uint8_t *p, uint32_t left)
{
	uint32_t at = 40;

	if (left < 40)
		return;
	memcpy(k->source, p + 8, 16);
	memcpy(k->target, p + 24, 16);
	k->protocol = p[6];
	for (int i = 0; i < IPV6_EXTENSIONS_MAX && is_extension(k->protocol); i++) {
		bool fragment = k->protocol == IPPROTO_FRAGMENT;

		if (left - at < 8)
			return;
		k->protocol = p[at];
		if (fragment && be16(p + at + 2) & 0xfff8)
			return;
		at += fragment ? 8 : 8u * (p[at + 1] + 1u);
		if (at > left)
			return;
	}
	take_ports(k, p + at, left - at);
}

void flow_key_of(struct flow_key *k, const uint8_t *data, uint32_t caplen)
{
	uint32_t at = 12;

	*k = (struct flow_key){.vlan = FLOW_NO_VLAN};
	if (caplen < 14)
		return;
	k->ethertype = be16(data + at);
	for (int i = 0; i < VLANS_MAX && caplen >= at + 6 &&
			(k->ethertype == ETHERTYPE_VLAN || k->ethertype == TYPE_QINQ);
		i++) {
		if (k->vlan == FLOW_NO_VLAN)
			k->vlan = be16(data + at + 2) & 0xfff;
		at += 4;
		k->ethertype = be16(data + at);
	}
	at += 2;
	if (k->ethertype == ETHERTYPE_IP) {
		take_ipv4(k, data + at, caplen - at);
	} else if (k->ethertype == ETHERTYPE_IPV6) {
		take_ipv6(k, data + at, caplen - at);
	} else {
		memcpy(k->target, data, 6);
		memcpy(k->source, data + 6, 6);
	}
}

const char *flow_protocol(char buf[16], const struct flow_key *k)
{
	static const struct {
		uint8_t number;
		const char *name;
	} names[] = {{IPPROTO_TCP, "tcp"}, {IPPROTO_UDP, "udp"}, {IPPROTO_ICMP, "icmp"},
		{IPPROTO_ICMPV6, "icmp6"}, {IPPROTO_SCTP, "sctp"}, {IPPROTO_GRE, "gre"},
		{IPPROTO_ESP, "esp"}};

	if (k->ethertype != ETHERTYPE_IP && k->ethertype != ETHERTYPE_IPV6) {
		snprintf(buf, 16, "0x%04x", k->ethertype);
		return buf;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == k->protocol)
			return names[i].name;
	snprintf(buf, 16, "%u", k->protocol);
	return buf;
}

char *flow_address(char buf[FLOW_TEXT_LEN], const struct flow_key *k, const uint8_t *address)
{
	if (k->ethertype == ETHERTYPE_IP || k->ethertype == ETHERTYPE_IPV6)
		inet_ntop(k->ethertype == ETHERTYPE_IP ? AF_INET : AF_INET6, address, buf,
			FLOW_TEXT_LEN);
	else
		snprintf(buf, FLOW_TEXT_LEN, "%02x:%02x:%02x:%02x:%02x:%02x", address[0],
			address[1], address[2], address[3], address[4], address[5]);
	return buf;
}

static void end_text(char *buf, size_t size, const struct flow_key *k, bool target)
{
	char address[FLOW_TEXT_LEN];
	bool six = k->ethertype == ETHERTYPE_IPV6, ports = k->source_port || k->target_port;

	flow_address(address, k, target ? k->target : k->source);
	if (ports)
		snprintf(buf, size, "%s%.46s%s:%u", six ? "[" : "", address, six ? "]" : "",
			target ? k->target_port : k->source_port);
	else
		snprintf(buf, size, "%.46s", address);
}

char *flow_text(char buf[FLOW_TEXT_LEN], const struct flow_key *k)
{
	char from[60], to[60], protocol[16], vlan[16] = "";

	end_text(from, sizeof(from), k, false);
	end_text(to, sizeof(to), k, true);
	if (k->vlan != FLOW_NO_VLAN)
		snprintf(vlan, sizeof(vlan), " vlan %u", k->vlan);
	snprintf(buf, FLOW_TEXT_LEN, "%s > %s %s%s", from, to, flow_protocol(protocol, k), vlan);
	return buf;
}

/* ---- the table: open addressing, at most half full */

struct flows {
	struct flow *slots;
	size_t mask, used, max;
	uint64_t error;
	const struct flow **sorted; /* of max */
	struct flow *kept;          /* of max / 2, for forget_half() */
	uint64_t seed;
};

struct flows *flows_new(size_t max)
{
	struct flows *f = calloc(1, sizeof(*f));
	size_t size = 2;

	while (size < 2 * max)
		size *= 2;
	if (!f)
		return NULL;
	f->max = max;
	f->mask = size - 1;
	f->slots = calloc(size, sizeof(*f->slots));
	f->sorted = calloc(max, sizeof(*f->sorted));
	f->kept = calloc(max / 2 + 1, sizeof(*f->kept));
	/* A sender of packets must not be able to choose the slots. */
	f->seed = (uint64_t)(uintptr_t)f->slots * UINT64_C(0x9e3779b97f4a7c15);
	if (f->slots && f->sorted && f->kept)
		return f;
	flows_free(f);
	return NULL;
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	free(f->slots);
	free(f->sorted);
	free(f->kept);
	free(f);
}

static uint64_t total(const struct flow *w)
{
	return w->packets[0] + w->packets[1];
}

static uint64_t hash(const struct flows *f, const struct flow_key *k)
{
	const uint8_t *p = (const uint8_t *)k;
	uint64_t h = f->seed, word;
	uint32_t last;

	for (size_t i = 0; i + 8 <= sizeof(*k); i += 8) {
		memcpy(&word, p + i, 8);
		h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	memcpy(&last, p + sizeof(*k) - 4, 4);
	h = (h ^ last) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 29;
}

/* The flow's slot, or the empty one for it. */
static struct flow *find(const struct flows *f, const struct flow_key *k)
{
	size_t i = hash(f, k) & f->mask;

	while (total(&f->slots[i]) && memcmp(&f->slots[i].key, k, sizeof(*k)) != 0)
		i = (i + 1) & f->mask;
	return &f->slots[i];
}

static int by_packets(const void *a, const void *b)
{
	uint64_t x = total(*(const struct flow *const *)a),
		 y = total(*(const struct flow *const *)b);

	return (x < y) - (x > y);
}

static int by_bytes(const void *a, const void *b)
{
	uint64_t x = (*(const struct flow *const *)a)->bytes,
		 y = (*(const struct flow *const *)b)->bytes;

	return (x < y) - (x > y);
}

static size_t sort(struct flows *f, enum flow_order order)
{
	size_t n = 0;

	for (size_t i = 0; i <= f->mask; i++)
		if (total(&f->slots[i]))
			f->sorted[n++] = &f->slots[i];
	qsort(f->sorted, n, sizeof(*f->sorted), order == FLOWS_BY_BYTES ? by_bytes : by_packets);
	return n;
}

/* Keeps the larger half. A flow that is forgotten may come back: it lacks what it had. */
static void forget_half(struct flows *f)
{
	size_t n = sort(f, FLOWS_BY_PACKETS), keep = n / 2;

	f->error += total(f->sorted[keep]);
	for (size_t i = 0; i < keep; i++)
		f->kept[i] = *f->sorted[i];
	memset(f->slots, 0, (f->mask + 1) * sizeof(*f->slots));
	for (size_t i = 0; i < keep; i++)
		*find(f, &f->kept[i].key) = f->kept[i];
	f->used = keep;
}

void flows_add_key(struct flows *f, const struct flow_key *k, uint32_t length, int sent)
{
	struct flow *w = find(f, k);

	if (!total(w)) {
		if (f->used == f->max) {
			forget_half(f);
			w = find(f, k);
		}
		w->key = *k;
		f->used++;
	}
	w->packets[sent != 0]++;
	w->bytes += length;
}

void flows_add(struct flows *f, const uint8_t *data, uint32_t caplen, uint32_t length, int sent)
{
	struct flow_key k;

	flow_key_of(&k, data, caplen);
	flows_add_key(f, &k, length, sent);
}

size_t flows_top(struct flows *f, enum flow_order order, const struct flow **out, size_t max)
{
	size_t n = sort(f, order);

	n = n < max ? n : max;
	memcpy(out, f->sorted, n * sizeof(*out));
	return n;
}

size_t flows_count(const struct flows *f)
{
	return f->used;
}

uint64_t flows_error(const struct flows *f)
{
	return f->error;
}
