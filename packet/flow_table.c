/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow_table.h"

#define CHUNK 1024u /* flows */
#ifndef SLOTS_MIN   /* fuzzers have fewer */
#define SLOTS_MIN 8192u
#endif
#define BYTES_EACH (sizeof(struct flow) + FLOW_BUCKETS * sizeof(uint32_t) + 16)

static_assert(sizeof(struct flow_key) == 48, "hashed by words, so without gaps");

int flow_table_init(struct flows *f, uint64_t memory)
{
	uint64_t max = memory / BYTES_EACH / CHUNK * CHUNK;

	*f = (struct flows){.slot_count = SLOTS_MIN};
	f->max = max < CHUNK ? CHUNK : max > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)max;
	secret_make(&f->secret);
	f->chunks = calloc(f->max / CHUNK + 1, sizeof(*f->chunks));
	f->slots = calloc(f->slot_count, sizeof(*f->slots));
	return f->chunks && f->slots ? 0 : -ENOMEM;
}

struct flow *flow_table_at(const struct flows *f, uint32_t index)
{
	return &f->chunks[index / CHUNK][index % CHUNK];
}

void flow_table_free(struct flows *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		free(flow_table_at(f, i)->bucket);
	for (uint32_t i = 0; i < f->count; i += CHUNK)
		free(f->chunks[i / CHUNK]);
	free(f->chunks);
	free(f->slots);
}

static void key_of(struct flow_key *k, uint16_t port, const struct headers *h)
{
	*k = (struct flow_key){.type = h->type,
		.vlan = h->vlans ? h->tci[0] & 4095 : 4095, /* 4095 is not a valid VLAN */
		.port = port,
		.flags = h->flags};
	if (h->flags & HAS_IP) {
		k->version = h->version;
		k->protocol = h->protocol;
		memcpy(k->src, h->src, sizeof(k->src));
		memcpy(k->dst, h->dst, sizeof(k->dst));
		k->src_port = h->src_port;
		k->dst_port = h->dst_port;
	} else {
		k->flags &= HAS_MAC | HAS_TYPE;
		memcpy(k->src, h->src_mac, sizeof(h->src_mac));
		memcpy(k->dst, h->dst_mac, sizeof(h->dst_mac));
	}
}

static void put_slot(struct flows *f, uint32_t hash, uint32_t index)
{
	uint32_t i = hash & (f->slot_count - 1);

	while (f->slots[i].hash)
		i = (i + 1) & (f->slot_count - 1);
	f->slots[i].hash = hash;
	f->slots[i].index = index;
}

static int grow_slots(struct flows *f)
{
	struct slot32 *slots = calloc(2 * (size_t)f->slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(f->slots);
	f->slots = slots;
	f->slot_count *= 2;
	for (uint32_t i = 0; i < f->count; i++)
		put_slot(f, flow_table_at(f, i)->hash, i);
	return 0;
}

static uint32_t add(struct flows *f, const struct flow_key *k, uint32_t hash)
{
	struct flow **chunk = &f->chunks[f->count / CHUNK];

	if (f->count == f->max || (f->count >= f->slot_count / 2 && grow_slots(f)))
		return FLOW_NONE;
	if (f->count % CHUNK == 0) {
		*chunk = calloc(CHUNK, sizeof(**chunk));
		if (!*chunk)
			return FLOW_NONE;
	}
	flow_table_at(f, f->count)->key = *k;
	flow_table_at(f, f->count)->hash = hash;
	put_slot(f, hash, f->count);
	return f->count++;
}

uint32_t flow_table_get(struct flows *f, uint16_t port, const struct headers *h)
{
	struct flow_key k;
	uint32_t hash, index;

	key_of(&k, port, h);
	hash = hash_short(hash_words(&f->secret, &k, sizeof(k) / 8));
	for (uint32_t i = hash & (f->slot_count - 1); f->slots[i].hash;
		i = (i + 1) & (f->slot_count - 1)) {
		if (f->slots[i].hash == hash &&
			!memcmp(&flow_table_at(f, f->slots[i].index)->key, &k, sizeof(k)))
			return f->slots[i].index;
	}
	index = add(f, &k, hash);
	f->no_room += index == FLOW_NONE;
	return index;
}

/* Which of two packets of the same time stamp came first is only known within a queue: bursts have
 * one time stamp. */
static bool order_known(const struct passage *a, const struct passage *b)
{
	bool rx = a->rx_ns != b->rx_ns || a->rx_queue == b->rx_queue;
	bool same_queue = a->tx_port == b->tx_port && a->tx_queue == b->tx_queue;

	return rx && (a->tx_ns != b->tx_ns || same_queue);
}

bool flow_sent(struct flow *f, uint32_t sequence, const struct passage *p)
{
	uint32_t behind = f->highest - sequence;

	if (!f->sent++ || behind > UINT32_MAX / 2) {
		f->highest = sequence;
		f->passage = *p;
		return false;
	}
	if (!order_known(p, &f->passage))
		return false;
	f->reordered++;
	if (behind > f->most_behind)
		f->most_behind = behind;
	if (p->tx_ns > f->passage.tx_ns && p->tx_ns - f->passage.tx_ns > f->most_late_ns)
		f->most_late_ns = p->tx_ns - f->passage.tx_ns;
	return true;
}

void flow_latency(struct flow *f, uint64_t ns)
{
	if (!f->bucket) {
		f->bucket = calloc(FLOW_BUCKETS, sizeof(*f->bucket));
		f->min = ns;
	}
	if (ns < f->min)
		f->min = ns;
	if (ns > f->max)
		f->max = ns;
	f->sum += ns;
	if (f->bucket)
		f->bucket[rt_log_bucket(ns < LATENCY_MAX ? ns : LATENCY_MAX, FLOW_BITS)]++;
}

char *flow_table_text(const struct flow *f, char buf[HEADERS_TEXT])
{
	const struct flow_key *k = &f->key;
	struct headers h = {.flags = k->flags,
		.type = k->type,
		.version = k->version,
		.protocol = k->protocol,
		.src_port = k->src_port,
		.dst_port = k->dst_port};
	size_t len;

	memcpy(k->flags & HAS_IP ? h.src : h.src_mac, k->src, k->flags & HAS_IP ? 16 : 6);
	memcpy(k->flags & HAS_IP ? h.dst : h.dst_mac, k->dst, k->flags & HAS_IP ? 16 : 6);
	headers_text(&h, buf);
	len = strlen(buf);
	if (k->vlan != 4095)
		snprintf(buf + len, HEADERS_TEXT - len, ", VLAN %u", k->vlan);
	return buf;
}
