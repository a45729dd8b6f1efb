/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "packet/plain.h"

#define JOIN_SLOTS (1u << 16) /* receptions */
#define JOIN_WAYS  4u         /* places of an id: a newer reception takes that of the oldest */
/* Classes of entries by packets, in ledger_forget(): a class is within 1 % of its packets. */
#define COUNT_BITS    7
#define COUNT_CLASSES RT_LOG_BUCKETS(COUNT_BITS, 64)

static_assert(offsetof(struct ledger_flow, in) < FLOW_PREFETCH, "a reception waits for no more");

enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

struct ledger_join {
	uint64_t id, ns;
	uint32_t index; /* finds the entry */
	struct ledger_place in;
};

int ledger_init(struct ledger *t, enum ledger_view view, uint32_t most, bool ids)
{
	size_t size = sizeof(struct ledger_flow) + (ids ? sizeof(struct ledger_latency) : 0);
	int ret;

	*t = (struct ledger){.view = view, .ids = ids, .mark = 1};
	ret = flow_table_init(&t->table, size, most);
	if (!ret && ids) {
		t->join = calloc(JOIN_SLOTS, sizeof(*t->join));
		ret = t->join ? 0 : -ENOMEM;
	}
	return ret;
}

/* Makes entries larger; *at is where. */
static int extend(struct ledger *t, size_t bytes, size_t *at)
{
	const uint32_t most = t->table.max;

	*at = t->table.size;
	flow_table_free(&t->table);
	return flow_table_init(&t->table, *at + bytes, most);
}

int ledger_report(struct ledger *t)
{
	return extend(t, sizeof(struct ledger_unreported), &t->unreported_at);
}

int ledger_follow(struct ledger *t)
{
	return extend(t, sizeof(struct ledger_segments), &t->segments_at);
}

void ledger_free(struct ledger *t)
{
	flow_table_free(&t->table);
	free(t->join);
}

/* ---- keys ---- */

static void put_tunnel(struct flow_key *k, uint32_t vni)
{
	k->zero[0] = (uint8_t)(vni >> 16);
	k->zero[1] = (uint8_t)(vni >> 8);
	k->zero[2] = (uint8_t)vni;
}

/* An address alone, whatever the packet is. */
static void put_host(struct flow_key *k, const struct headers *h, bool dst)
{
	if (h->flags & (HAS_IP | HAS_ARP)) {
		k->flags = HAS_IP;
		k->version = h->flags & HAS_IP ? h->version : 4;
		memcpy(k->src, dst ? h->dst : h->src, sizeof(k->src));
	} else {
		k->flags = h->flags & HAS_MAC;
		memcpy(k->src, dst ? h->dst_mac : h->src_mac, sizeof(h->src_mac));
	}
}

static void put_pair(struct flow_key *k, const struct headers *h)
{
	struct flow_key other = {.vlan = 0};

	put_host(k, h, false);
	put_host(&other, h, true);
	memcpy(k->dst, other.src, sizeof(k->dst));
	if (memcmp(k->src, k->dst, sizeof(k->src)) <= 0)
		return;
	memcpy(k->dst, k->src, sizeof(k->dst));
	memcpy(k->src, other.src, sizeof(k->src));
}

/* The service is on the lower port, as a rule. */
static void put_port(struct flow_key *k, const struct headers *h)
{
	k->flags = h->flags & (HAS_IP | HAS_PORTS | HAS_TYPE);
	k->type = h->flags & HAS_IP ? 0 : h->type;
	k->protocol = h->protocol;
	if (h->flags & HAS_PORTS)
		k->src_port = h->src_port < h->dst_port ? h->src_port : h->dst_port;
}

static void make_key(const struct ledger *t, struct flow_key *k, const struct headers *h,
	const struct ringtap_packet *p)
{
	*k = (struct flow_key){.flags = 0};
	switch (t->view) {
	case LEDGER_5_TUPLE:
	case LEDGER_INNER: flow_key_of(k, 0, h); break;
	case LEDGER_HOST: put_host(k, h, false); break;
	case LEDGER_PAIR: put_pair(k, h); break;
	case LEDGER_PORT: put_port(k, h); break;
	case LEDGER_PROTOCOL:
		k->flags = h->flags & (HAS_IP | HAS_TYPE);
		k->type = h->flags & HAS_IP ? 0 : h->type;
		k->protocol = h->protocol;
		k->version = h->version;
		break;
	case LEDGER_VLAN: k->vlan = h->vlans ? h->tci[0] & 4095 : FLOW_NO_VLAN; break;
	case LEDGER_DSCP:
		k->flags = h->flags & HAS_IP;
		k->protocol = h->tos >> 2;
		break;
	case LEDGER_MAC:
		k->flags = h->flags & HAS_MAC;
		memcpy(k->src, h->src_mac, sizeof(h->src_mac));
		memcpy(k->dst, h->dst_mac, sizeof(h->dst_mac));
		break;
	case LEDGER_QUEUE:
		k->port = (uint16_t)p->interface;
		k->src_port = (uint16_t)p->queue;
		k->protocol = p->direction;
		break;
	case LEDGER_THREAD:
		memcpy(k->src, &t->thread, sizeof(t->thread));
		k->protocol = p->direction;
		break;
	case LEDGER_VNI: break;
	}
}

/* The keys of the entries in which a packet counts; returns how many: 1 or 2. */
static unsigned keys_of(const struct ledger *t, const struct ringtap_packet *p, uint16_t linktype,
	struct headers *h, struct flow_key k[2])
{
	uint32_t vni = 0;

	if (t->view == LEDGER_VNI || t->view == LEDGER_INNER) {
		if (!headers_inner(h, &vni, linktype, p->data, p->caplen) && t->view == LEDGER_VNI)
			vni = UINT32_MAX >> 8; /* no tunnel */
	} else {
		headers_read(h, linktype, p->data, p->caplen);
	}
	make_key(t, &k[0], h, p);
	if (t->view == LEDGER_VNI || t->view == LEDGER_INNER)
		put_tunnel(&k[0], vni);
	if (t->view != LEDGER_HOST)
		return 1;
	k[1] = (struct flow_key){.flags = 0};
	put_host(&k[1], h, true);
	return memcmp(&k[0], &k[1], sizeof(k[0])) ? 2 : 1; /* both hosts may be one */
}

/* ---- entries ---- */

static uint32_t class_of(const struct ledger_flow *f)
{
	return rt_log_bucket(f->packets, COUNT_BITS);
}

struct forget {
	const struct ledger *t;
	uint32_t most; /* class; what is above stays */
};

static bool stays(const void *ctx, const void *flow)
{
	const struct forget *forget = ctx;
	const struct ledger *t = forget->t;

	if (class_of(flow) > forget->most)
		return true;
	if (t->forgotten)
		t->forgotten(t->ctx, flow);
	return false;
}

/* Removes at least half of the entries, those with the fewest packets: what one of them had, or
 * less, an entry that comes back lacks. */
static void ledger_forget(struct ledger *t)
{
	uint32_t of[COUNT_CLASSES] = {0}, before = t->table.count, sum = 0;
	struct forget forget = {t, 0};
	uint64_t low, width;

	for (uint32_t i = 0; i < before; i++)
		of[class_of(flow_table_at(&t->table, i))]++;
	while (sum += of[forget.most], sum < before - before / 2)
		forget.most++;
	flow_table_filter(&t->table, stays, &forget);
	t->evicted += before - t->table.count;
	low = rt_log_bucket_low(forget.most, COUNT_BITS, &width);
	t->error += low + width - 1;
	if (t->join) /* indices have changed */
		memset(t->join, 0, JOIN_SLOTS * sizeof(*t->join));
}

static struct ledger_flow *entry(
	struct ledger *t, const struct flow_key *k, uint32_t hash, uint32_t hint, uint32_t *index)
{
	uint32_t before = t->table.count;

	*index = flow_table_get_hashed(&t->table, k, hash, hint);
	if (*index == FLOW_NONE) {
		ledger_forget(t);
		before = t->table.count;
		*index = flow_table_get_hashed(&t->table, k, hash, hint);
	}
	if (*index == FLOW_NONE) { /* no memory for the first ones */
		t->error++;
		return NULL;
	}
	t->fresh += t->table.count > before;
	return flow_table_at(&t->table, *index);
}

static void count(struct ledger *t, struct ledger_flow *f, const struct ringtap_packet *p)
{
	double length = p->length;

	if (!f->packets || p->ns < f->first_ns)
		f->first_ns = p->ns;
	if (p->ns > f->last_ns)
		f->last_ns = p->ns;
	f->packets++;
	f->bytes += p->length;
	f->squares += length * length;
	if (p->direction == RINGTAP_TX)
		f->own++;
	if (f->mark != t->mark) {
		f->mark = t->mark;
		f->recent_packets = f->recent_bytes = 0;
		f->recent_squares = 0;
	}
	f->recent_packets++;
	f->recent_bytes += p->length;
	f->recent_squares += length * length;
}

/* Ethernet pads short packets. */
static uint64_t ip_bytes(const struct headers *h, const struct ringtap_packet *p)
{
	const uint32_t link = 14 + 4u * h->vlans, rest = p->length > link ? p->length - link : 0;

	return h->ip_bytes && h->ip_bytes < rest ? h->ip_bytes : rest;
}

static void count_unreported(
	struct ledger_unreported *u, const struct headers *h, const struct ringtap_packet *p)
{
	if (!u->packets) {
		*u = (struct ledger_unreported){.first_ns = p->ns, .tos = h->tos};
	} else if (p->ns < u->first_ns) {
		u->first_ns = p->ns;
	}
	u->packets++;
	u->ip_bytes += ip_bytes(h, p);
	u->frame_bytes += p->length;
	u->tcp_flags |= h->tcp_flags;
}

static void count_flags(struct ledger_flow *f, const struct headers *h)
{
	if (!(h->tcp_flags & (SYN | RST)))
		return;
	f->syn += (h->tcp_flags & (SYN | ACK)) == SYN;
	f->syn_ack += (h->tcp_flags & (SYN | ACK)) == (SYN | ACK);
	f->rst += (h->tcp_flags & RST) != 0;
}

/* Bytes from..to may fill a hole, or a part of it. */
static bool fill(struct ledger_segments *o, uint32_t from, uint32_t to)
{
	for (unsigned i = 0; i < LEDGER_HOLES; i++) {
		uint32_t low = o->holes[i].from, high = o->holes[i].to;

		if (low == high || (int32_t)(from - low) < 0 || (int32_t)(high - to) < 0)
			continue;
		/* In its middle: what is before it stays a hole, the rest is forgotten. */
		o->holes[i].from = from == low ? to : low;
		o->holes[i].to = from == low ? high : from;
		return true;
	}
	return false;
}

/* SYN and FIN take a number each. */
static void count_segments(struct ledger_segments *o, const struct headers *h)
{
	const uint32_t from = h->tcp_seq,
		       to = from + h->tcp_payload + !!(h->tcp_flags & SYN) + !!(h->tcp_flags & FIN);
	const int32_t ahead = (int32_t)(from - o->next);

	if (h->protocol != IPPROTO_TCP || !h->tcp_flags || from == to || h->tcp_flags & RST)
		return;
	if (!o->known || h->tcp_flags & SYN) {
		o->again += o->known && to == o->next;
		if (!o->known || to != o->next) /* a connection with the ports of an older one */
			memset(o->holes, 0, sizeof(o->holes));
		o->known = true;
		o->next = to;
		return;
	}
	if (ahead >= 0) {
		if (ahead) {
			o->newest = (o->newest + 1) % LEDGER_HOLES;
			o->holes[o->newest].from = o->next;
			o->holes[o->newest].to = from;
		}
	} else if (fill(o, from, to)) {
		o->late++;
	} else {
		o->again++;
	}
	if ((int32_t)(to - o->next) > 0)
		o->next = to;
}

/* The first of the places. */
static struct ledger_join *join_of(const struct ledger *t, uint64_t id)
{
	return &t->join[hash_number(&t->table.secret, id, 0) % (JOIN_SLOTS / JOIN_WAYS) *
			JOIN_WAYS];
}

/* NULL: its reception is not known. */
static const struct ledger_join *find_join(const struct ledger *t, uint64_t id)
{
	const struct ledger_join *j = join_of(t, id);

	for (unsigned i = 0; i < JOIN_WAYS; i++)
		if (j[i].id == id)
			return &j[i];
	return NULL;
}

static void put_join(struct ledger *t, const struct ringtap_packet *p, uint32_t index)
{
	struct ledger_join *j = join_of(t, p->id), *oldest = j;

	for (unsigned i = 1; i < JOIN_WAYS; i++)
		if (j[i].ns < oldest->ns)
			oldest = &j[i];
	*oldest = (struct ledger_join){
		.id = p->id, .ns = p->ns, .index = index, .in = {p->interface + 1, p->queue}};
}

static void add_latency(struct ledger_latency *l, uint64_t ns)
{
	if (!l->count || ns < l->min)
		l->min = ns;
	if (ns > l->max)
		l->max = ns;
	l->count++;
	l->bucket[rt_log_bucket(ns < LATENCY_MAX ? ns : LATENCY_MAX, LEDGER_BITS)]++;
}

/* A packet, read: its headers, and the entries in which it counts. */
struct parsed {
	struct headers h;
	struct flow_key k[2];
	uint32_t hash[2], hint[2];
	unsigned count;
};

static inline void put_hash(const struct ledger *t, struct parsed *d, unsigned i, uint32_t hash)
{
	d->hash[i] = hash;
	flow_table_prefetch_slot(&t->table, hash);
}

static void parse(
	const struct ledger *t, struct parsed *d, const struct ringtap_packet *p, uint16_t linktype)
{
	struct flow_words w;

	if (t->view == LEDGER_5_TUPLE && linktype == LINKTYPE_ETHERNET &&
		plain_read(&d->h, &d->k[0], &w, p->data, p->caplen)) {
		d->count = 1;
		put_hash(t, d, 0, flow_words_hash(&t->table.secret, w));
	} else {
		d->count = keys_of(t, p, linktype, &d->h, d->k);
		for (unsigned i = 0; i < d->count; i++)
			put_hash(t, d, i, flow_table_hash(&t->table, &d->k[i]));
	}
	if (t->join && p->id)
		__builtin_prefetch(join_of(t, p->id), 1);
}

/* A sending of a received packet, which has been counted then. */
static bool take_sending(struct ledger *t, const struct ringtap_packet *p, const struct parsed *d)
{
	const struct ledger_join *j;
	struct ledger_flow *f;

	if (!t->join || !p->id || p->direction != RINGTAP_TX)
		return false;
	j = find_join(t, p->id);
	if (!j)
		return false;
	f = flow_table_at(&t->table, j->index);
	f->sent++;
	f->forwarded = true;
	t->all.sent++;
	f->in = j->in; /* both of one packet */
	f->out = (struct ledger_place){p->interface + 1, p->queue};
	add_latency(ledger_latency(f), p->ns > j->ns ? p->ns - j->ns : 0);
	if ((t->view == LEDGER_5_TUPLE || t->view == LEDGER_INNER) && d->k[0].flags &&
		memcmp(&d->k[0], &f->key, sizeof(d->k[0])))
		ledger_latency(f)->became = d->k[0];
	return true;
}

static bool add_to(struct ledger *t, const struct parsed *d, unsigned which,
	const struct ringtap_packet *p, uint32_t *index)
{
	struct ledger_flow *f = entry(t, &d->k[which], d->hash[which], d->hint[which], index);

	if (!f)
		return false;
	count(t, f, p);
	count_flags(f, &d->h);
	if (t->segments_at)
		count_segments(ledger_segments_of(t, f), &d->h);
	if (t->unreported_at)
		count_unreported(ledger_unreported(t, f), &d->h, p);
	if (p->direction == RINGTAP_TX)
		f->out = (struct ledger_place){p->interface + 1, p->queue};
	else if (!f->forwarded)
		f->in = (struct ledger_place){p->interface + 1, p->queue};
	return true;
}

static bool add_parsed(struct ledger *t, const struct ringtap_packet *p, const struct parsed *d)
{
	uint32_t index = 0;

	if (take_sending(t, p, d))
		return false;
	count(t, &t->all, p);
	if (add_to(t, d, 0, p, &index) && t->join && p->id && p->direction == RINGTAP_RX)
		put_join(t, p, index);
	if (d->count > 1)
		add_to(t, d, 1, p, &index);
	return true;
}

void ledger_add_batch(struct ledger *t, const struct ringtap_packet *p, const uint16_t *linktypes,
	unsigned n, bool *counted)
{
	struct parsed d[LEDGER_BATCH];

	for (unsigned i = 0; i < n; i++)
		parse(t, &d[i], &p[i], linktypes[i]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < d[i].count; k++)
			d[i].hint[k] = flow_table_prefetch_item(&t->table, d[i].hash[k]);
	for (unsigned i = 0; i < n; i++)
		counted[i] = add_parsed(t, &p[i], &d[i]);
}

bool ledger_add(struct ledger *t, const struct ringtap_packet *p, uint16_t linktype)
{
	bool counted;

	ledger_add_batch(t, p, &linktype, 1, &counted);
	return counted;
}

bool ledger_belongs(const struct ledger *t, const struct ringtap_packet *p, uint16_t linktype,
	const struct flow_key *key)
{
	struct flow_key k[2];
	struct headers h;
	unsigned n = keys_of(t, p, linktype, &h, k);

	return !memcmp(&k[0], key, sizeof(*key)) || (n > 1 && !memcmp(&k[1], key, sizeof(*key)));
}

static void count_not_offered(struct ledger_flow *f, uint8_t reason)
{
	if (!f->not_offered++)
		f->reason = reason;
	f->more_reasons |= f->reason != reason;
}

void ledger_not_offered(struct ledger *t, const struct ringtap_packet *p, uint16_t linktype)
{
	struct flow_key k[2];
	struct headers h;
	unsigned n = keys_of(t, p, linktype, &h, k);

	t->all.not_offered++;
	for (unsigned i = 0; i < n; i++) {
		/* It may be read before the packet itself. */
		uint32_t index = flow_table_get(&t->table, &k[i]);

		if (index != FLOW_NONE)
			count_not_offered(flow_table_at(&t->table, index), p->reason);
	}
}

void ledger_mark(struct ledger *t)
{
	t->mark++;
	t->fresh = 0;
	t->all.recent_packets = t->all.recent_bytes = 0;
	t->all.recent_squares = 0;
	t->all.mark = t->mark;
}
