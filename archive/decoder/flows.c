/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/pcapng.h"
#include "common/pcapng_read.h"
#include "flows.h"
#include "spill.h"

#define SLOTS_FIRST 4096u

int flows_open(struct flows *t)
{
	*t = (struct flows){.max = FLOWS_MAX, .slots = SLOTS_FIRST};
	secret_make(&t->secret);
	t->slot = calloc(t->slots, sizeof(*t->slot));
	t->chunk = calloc(FLOWS_MAX / FLOW_CHUNK, sizeof(*t->chunk));
	t->tcp_chunk = calloc(FLOWS_MAX / FLOW_CHUNK, sizeof(*t->tcp_chunk));
	return t->slot && t->chunk && t->tcp_chunk ? 0 : -ENOMEM;
}

void flows_empty(struct flows *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		sketch_free(flows_at(t, i)->latency);
	t->count = t->tcp_count = 0;
	t->bytes = 0;
	if (t->slot)
		memset(t->slot, 0, t->slots * sizeof(*t->slot));
	/* They name flows. What was received before and is sent later is not timed. */
	ids_clear(&t->ids);
}

void flows_clear(struct flows *t)
{
	flows_empty(t);
	spill_close(t->spill);
	t->spill = NULL;
	t->fates = (struct fates){.present = t->fates.present, .begun = t->fates.begun};
	t->taken = t->offered;
}

void flows_close(struct flows *t)
{
	flows_clear(t);
	for (uint32_t i = 0; t->chunk && i < FLOWS_MAX / FLOW_CHUNK; i++)
		free(t->chunk[i]);
	for (uint32_t i = 0; t->tcp_chunk && i < FLOWS_MAX / FLOW_CHUNK; i++)
		free(t->tcp_chunk[i]);
	free(t->chunk);
	free(t->tcp_chunk);
	free(t->slot);
	ids_close(&t->ids);
}

/* ---- table ---- */

static uint64_t hash_end(const struct flows *t, const uint8_t address[16], uint16_t port)
{
	uint64_t w[2];

	memcpy(w, address, sizeof(w));
	return hash_mix(w[0] ^ t->secret.word[0], w[1] ^ t->secret.word[1] ^ (uint64_t)port << 32);
}

/* The same in both directions. Not flow_id, which is not secret: packets could be made that meet in
 * one slot. */
static uint32_t hash_ends(const struct flows *t, const struct ends *e)
{
	uint64_t h = hash_end(t, e->src, e->src_port) + hash_end(t, e->dst, e->dst_port);

	return (uint32_t)(hash_number(&t->secret, h, e->protocol) >> 32);
}

/* 0: from a to b; 1: from b to a; -1: another flow. */
static int direction(const struct ends *a, const struct ends *b)
{
	if (a->protocol != b->protocol)
		return -1;
	if (a->src_port == b->src_port && a->dst_port == b->dst_port && !memcmp(a->src, b->src, 32))
		return 0;
	if (a->src_port == b->dst_port && a->dst_port == b->src_port &&
		!memcmp(a->src, b->dst, 16) && !memcmp(a->dst, b->src, 16))
		return 1;
	return -1;
}
static_assert(offsetof(struct ends, dst) == 16, "both addresses are compared at once");

static int grow(struct flows *t)
{
	uint32_t slots = 2 * t->slots;
	uint64_t *slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->slots; i++) {
		uint32_t at = (uint32_t)(t->slot[i] >> 32);

		if (!t->slot[i])
			continue;
		while (slot[at & (slots - 1)])
			at++;
		slot[at & (slots - 1)] = t->slot[i];
	}
	free(t->slot);
	t->slot = slot;
	t->slots = slots;
	return 0;
}

static struct tcp *new_tcp(struct flows *t)
{
	struct tcp **chunk = &t->tcp_chunk[t->tcp_count / FLOW_CHUNK];

	if (!*chunk)
		*chunk = malloc(FLOW_CHUNK * sizeof(**chunk));
	if (!*chunk)
		return NULL;
	tcp_begin(&(*chunk)[t->tcp_count % FLOW_CHUNK]);
	return &(*chunk)[t->tcp_count++ % FLOW_CHUNK];
}

/* The flow that this packet is the first of; NULL: no memory. */
static struct flow *new_flow(struct flows *t, const struct row *r)
{
	struct flow **chunk = &t->chunk[t->count / FLOW_CHUNK];
	struct flow *f;

	if (!*chunk)
		*chunk = malloc(FLOW_CHUNK * sizeof(**chunk));
	if (!*chunk)
		return NULL;
	f = &(*chunk)[t->count % FLOW_CHUNK];
	*f = (struct flow){.sum = {.ends = r->outer,
				   .id = r->flow_id,
				   .first_ns = r->time_ns,
				   .last_ns = r->time_ns,
				   .rtt_ns = -1,
				   .has_ports = r->has & HAS(COL_SRC_PORT),
				   .is_tcp = r->outer.protocol == IPPROTO_TCP}};
	if (f->sum.is_tcp) {
		f->tcp = new_tcp(t);
		if (!f->tcp)
			return NULL;
	}
	t->count++;
	return f;
}

/* The packet's flow, and the direction of the packet in it. */
static int find(struct flows *t, const struct row *r, uint32_t h, uint32_t *number, int *end)
{
	uint64_t n;
	uint32_t at;

	for (at = h; (n = t->slot[at & (t->slots - 1)]); at++) {
		if (n >> 32 != h)
			continue;
		*number = (uint32_t)n - 1;
		*end = direction(&flows_at(t, *number)->sum.ends, &r->outer);
		if (*end >= 0)
			return 0;
	}
	if (!new_flow(t, r))
		return -ENOMEM;
	*end = 0;
	*number = t->count - 1;
	t->slot[at & (t->slots - 1)] = (uint64_t)h << 32 | t->count;
	return t->count > t->slots / 2 ? grow(t) : 0;
}

/* ---- packets ---- */

/* Ids are those of an application. */
static uint64_t key_of(uint64_t application, uint64_t id)
{
	return id ? (id ^ application ?: 1) : 0;
}

static void let_go(struct flows *t, const struct id_entry *e)
{
	if (id_waits(e))
		flows_at(t, e->flow)->sum.let_go++;
}

void flows_let_go(struct flows *t)
{
	const struct id_entry *e;

	for (uint64_t i = 0; t->ids.used && (e = ids_at(&t->ids, i)); i++)
		let_go(t, e);
}

static int take_received(struct flows *t, const struct row *r, uint32_t number)
{
	uint64_t id = r->has & HAS(COL_PACKET_ID) ? (uint64_t)r->packet_id : 0;
	struct flow_sum *s = &flows_at(t, number)->sum;
	struct id_entry gone = {0};
	int ret = id ? ids_put(&t->ids, key_of(r->application, id), r->time_ns, number, &gone) : 0;

	s->received++;
	s->without_id += !id;
	let_go(t, &gone);
	return ret;
}

/* Latency is that of the first time that the packet is sent, by whatever: a packet that was not
 * offered may have been copied. */
static int take_sent(struct flows *t, const struct row *r)
{
	uint64_t id = r->has & HAS(COL_PACKET_ID) ? (uint64_t)r->packet_id : 0;
	struct id_entry *e = ids_find(&t->ids, key_of(r->application, id));
	struct flow *f;

	if (!e || e->sent)
		return 0;
	f = flows_at(t, e->flow);
	e->sent = true;
	t->learned++;
	f->sum.sent += !e->judged;
	if (r->time_ns < e->ns)
		return 0;
	return sketch_add(&f->latency, (uint64_t)r->time_ns - (uint64_t)e->ns, &t->bytes);
}

static int make_room(struct flows *t)
{
	if (t->count < t->max && t->bytes <= FLOWS_BYTES)
		return 0;
	flows_let_go(t);
	return spill_flows(t);
}

/* A packet from this end of this flow. */
static int add(struct flows *t, const struct row *r, uint32_t number, int end)
{
	struct flow *f = flows_at(t, number);

	f->sum.packets[end]++;
	f->sum.bytes[end] += r->length;
	if (r->time_ns > f->sum.last_ns)
		f->sum.last_ns = r->time_ns;
	if (r->time_ns < f->sum.first_ns)
		f->sum.first_ns = r->time_ns;
	if (f->tcp && r->has & HAS(COL_TCP_FLAGS)) {
		f->sum.tcp_flags |= r->tcp_flags;
		tcp_segment(f->tcp, r, (unsigned)end,
			(uint32_t)r->interface << 2 |
				(r->has & HAS(COL_DIRECTION) ? 1u + r->direction : 0));
	}
	if (!(r->has & HAS(COL_DIRECTION)))
		return 0;
	return r->direction ? take_sent(t, r) : take_received(t, r, number);
}

static int take(struct flows *t, const struct row *r, uint32_t hash)
{
	uint32_t number;
	int end, ret = make_room(t);

	if (ret || !(r->has & HAS(COL_FLOW_ID)))
		return ret ? ret : take_sent(t, r);
	ret = find(t, r, hash, &number, &end);
	return ret ? ret : add(t, r, number, end);
}

int flows_packet(struct flows *t, const struct row *r)
{
	return take(t, r, hash_ends(t, &r->outer));
}

static int take_oldest(struct flows *t)
{
	const struct waiting *w = &t->ahead[t->taken++ % FLOWS_AHEAD];

	return take(t, &w->row, w->hash);
}

/* The likely flow of a packet: the first that its slot names. */
static void prefetch_flow(const struct flows *t, uint32_t hash)
{
	uint32_t n = (uint32_t)t->slot[hash & (t->slots - 1)];
	const char *f;

	if (!n)
		return;
	f = (const char *)flows_at(t, n - 1);
	for (size_t i = 0; i < sizeof(struct flow_sum); i += 64)
		__builtin_prefetch(f + i, 1);
}

int flows_offer(struct flows *t, const struct row *r)
{
	int ret = t->offered - t->taken == FLOWS_AHEAD ? take_oldest(t) : 0;
	struct waiting *w = &t->ahead[t->offered++ % FLOWS_AHEAD];

	w->row = *r;
	w->hash = hash_ends(t, &r->outer);
	__builtin_prefetch(&t->slot[w->hash & (t->slots - 1)]);
	if (t->offered - t->taken > FLOWS_AHEAD / 2)
		prefetch_flow(t, t->ahead[(t->offered - FLOWS_AHEAD / 2 - 1) % FLOWS_AHEAD].hash);
	return ret;
}

int flows_follow(struct flows *t, const struct row *r, uint32_t *flow)
{
	int end = *flow == NO_FLOW ? -1 : direction(&flows_at(t, *flow)->sum.ends, &r->outer);
	int ret = end < 0 ? make_room(t) : 0;

	if (end < 0 && !ret)
		ret = find(t, r, hash_ends(t, &r->outer), flow, &end);
	return ret ? ret : add(t, r, *flow, end);
}

void flows_ahead(const struct flows *t, const struct row *far, const struct row *near)
{
	if (far)
		__builtin_prefetch(&t->slot[hash_ends(t, &far->outer) & (t->slots - 1)]);
	if (near)
		prefetch_flow(t, hash_ends(t, &near->outer));
}

int flows_settle(struct flows *t)
{
	int ret = 0;

	while (!ret && t->taken != t->offered)
		ret = take_oldest(t);
	return ret;
}

/* ---- fates ---- */

/* A later version may have other reasons. */
static void count_reason(struct flow_sum *s, uint8_t why)
{
	s->unseen += why == RT_FATES_WHY_UNSEEN;
	s->stopped += why == RT_FATES_WHY_STOPPED;
}

/* p: an entry of a block. The fate counts, also of a packet that was sent: that was a copy. */
static void take_fate(struct flows *t, const uint8_t *p, const struct walk *w)
{
	uint64_t id = rt_pcapng_get64(p, w->b.swapped);
	uint32_t local =
		rt_pcapng_get32(p + offsetof(struct rt_fates_packet, interface), w->b.swapped);
	uint8_t fate = p[offsetof(struct rt_fates_packet, fate)];
	struct id_entry *e;
	struct flow_sum *s;

	if (local >= w->count - w->base || !fate || fate > RT_FATES_OPEN)
		return;
	e = ids_find(&t->ids, key_of(walk_iface(w, local)->application, id));
	if (!e || e->judged)
		return;
	e->judged = true;
	t->learned++;
	s = &flows_at(t, e->flow)->sum;
	s->sent -= e->sent;
	switch (fate) {
	case RT_FATES_NOT_OFFERED: s->not_offered++; break;
	case RT_FATES_OPEN: s->open++; break;
	default: s->unknown++;
	}
	if (fate == RT_FATES_UNKNOWN)
		count_reason(s, p[offsetof(struct rt_fates_packet, why)]);
}

void flows_fates(struct flows *t, const struct walk *w)
{
	const struct block_fates *f = &w->b.fates;
	const uint8_t *p = f->entries;

	switch (f->kind) {
	case RT_FATES_BEGIN:
		t->fates.present = true;
		t->fates.begun = f->ns;
		return;
	case RT_FATES_PACKETS:
		for (uint32_t i = 0; i < f->count; i++)
			take_fate(t, p + i * sizeof(struct rt_fates_packet), w);
		return;
	case RT_FATES_END:
		t->fates.ended = true;
		for (uint32_t i = 0; i < f->count; i++, p += sizeof(struct rt_fates_queue))
			if (rt_pcapng_get64(
				    p + offsetof(struct rt_fates_queue, lost), w->b.swapped))
				t->fates.lost++;
	}
}

static void sent_later(struct flows *t, const struct block *f, const struct walk *w)
{
	struct row r = {.has = HAS(COL_PACKET_ID),
		.time_ns = f->ns,
		.application = walk_iface(w, f->local)->application,
		.packet_id = (int64_t)f->id};

	/* Without memory the latency is missing. */
	if (f->has_id && f->direction == 2)
		(void)take_sent(t, &r);
}

int flows_later(struct flows *t, struct walk *w, int64_t until_ns)
{
	bool same = true;
	struct block f;
	int kind;

	while ((kind = walk_next(w, &f)) > 0) {
		if (kind == BLOCK_FATES && w->b.fates.kind == RT_FATES_BEGIN)
			same = t->fates.begun == w->b.fates.ns;
		if (kind == BLOCK_PACKET && (f.ns > until_ns || !same || !w->fates_begun))
			return 1;
		if (kind == BLOCK_PACKET)
			sent_later(t, &f, w);
		else if (kind == BLOCK_FATES && same && w->fates_begun)
			flows_fates(t, w);
	}
	return kind == -ENOMEM ? kind : 0;
}
