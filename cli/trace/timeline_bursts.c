/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of a capture, in the order of each thread, to bursts. */
#include <stdlib.h>
#include <string.h>

#include "measure/rates.h"
#include "timeline.h"

/* ---- latencies */

static struct timeline_passage *set_of(const struct timeline *l, uint64_t id)
{
	/* An application that chooses ids loses latencies of its own. */
	uint64_t set = id * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	return l->passages + set % PASSAGE_SETS * PASSAGE_WAYS;
}

static void receive(struct timeline *l, const struct ringtap_packet *p)
{
	struct timeline_passage *set = set_of(l, p->id), *to = set;

	for (struct timeline_passage *g = set; g < set + PASSAGE_WAYS; g++) {
		if (g->id == p->id) {
			to = g;
			break;
		}
		if (g->ns < to->ns)
			to = g;
	}
	*to = (struct timeline_passage){.id = p->id, .ns = p->ns, .burst = l->burst_count};
}

static void add_flow(struct timeline_burst *b, uint64_t flow)
{
	for (unsigned i = 0; i < b->flow_count; i++)
		if (b->flows[i] == flow)
			return;
	if (b->flow_count < PERFETTO_FLOWS)
		b->flows[b->flow_count++] = flow;
}

/* NULL: it was received before the trace, or has given way. */
static const struct timeline_passage *find(const struct timeline *l, uint64_t id)
{
	const struct timeline_passage *g = set_of(l, id), *end = g + PASSAGE_WAYS;

	while (g < end && g->id != id)
		g++;
	return g < end && id ? g : NULL;
}

/* It stays, as a packet may be sent to several ports. */
static void send(struct timeline *l, struct timeline_burst *b, const struct ringtap_packet *p)
{
	const struct timeline_passage *g = find(l, p->id);
	uint64_t took;

	if (!g)
		return;
	took = p->ns > g->ns ? p->ns - g->ns : 0;
	b->timed++;
	b->sum_ns += took;
	if (took > b->max_ns)
		b->max_ns = took;
	add_flow(b, g->burst);
}

/* ---- bursts */

static const char *place_name(const struct ringtap_capture *cap, const char *what,
	uint32_t interface, uint32_t queue, char text[PERFETTO_TEXT])
{
	struct ringtap_interface i = {.size = sizeof(i)};
	char port[RINGTAP_NAME_LEN] = "?", number[16] = "";

	if (!ringtap_capture_interface(cap, interface, &i))
		printable(port, sizeof(port), i.name);
	if (queue != RINGTAP_NO_INDEX)
		snprintf(number, sizeof(number), ":%u", queue);
	snprintf(text, PERFETTO_TEXT, "%s %s%s", what, port, number);
	return text;
}

static uint64_t burst_key(const struct timeline_burst *b)
{
	return (uint64_t)b->interface << 34 | (uint64_t)b->queue << 2 | (b->direction & 3);
}

void timeline_end_burst(struct timeline *l, struct timeline_thread *t)
{
	if (t->open)
		perfetto_put(&l->out, t->track,
			&(struct perfetto_event){.type = PERFETTO_END, .ns = t->end_ns});
	t->open = false;
}

/* A received burst lasts until the thread's last sending before the next received one. */
static void put_burst(struct timeline *l, struct timeline_thread *t)
{
	const struct timeline_burst *b = &t->burst;
	const bool sent = b->direction == RINGTAP_TX;
	const enum timeline_kind kind = sent ? TIMELINE_TX : TIMELINE_RX;
	struct perfetto_event e = {.type = sent ? PERFETTO_INSTANT : PERFETTO_BEGIN,
		.ns = b->ns,
		.key = burst_key(b),
		.look = sent ? PERFETTO_SENT : PERFETTO_RECEIVED,
		.flows = b->flows,
		.flow_count = b->flow_count};
	char text[PERFETTO_TEXT];

	if (!t->track) {
		l->untracked += b->packets;
		return;
	}
	if (!sent)
		timeline_end_burst(l, t);
	if (!perfetto_knows(t->track, e.key))
		e.name = place_name(l->cap, sent ? "tx" : "rx", b->interface, b->queue, text);
	perfetto_argument(&e, PERFETTO_PACKETS, b->packets);
	perfetto_argument(&e, PERFETTO_BYTES, b->bytes);
	if (b->lost)
		perfetto_argument(&e, PERFETTO_LOST_BEFORE, b->lost);
	if (b->timed) {
		perfetto_argument(&e, PERFETTO_TIMED, b->timed);
		perfetto_argument(&e, PERFETTO_MEAN_NS, b->sum_ns / b->timed);
		perfetto_argument(&e, PERFETTO_MAX_NS, b->max_ns);
	}
	perfetto_put(&l->out, t->track, &e);
	t->open |= !sent;
	t->end_ns = b->ns;
	l->bursts[kind]++;
	l->packets[kind] += b->packets;
	l->timed += b->timed;
}

void timeline_flush(struct timeline *l, struct timeline_thread *t)
{
	if (t->burst.packets)
		put_burst(l, t);
	t->burst = (struct timeline_burst){0};
}

static bool same_burst(const struct timeline_burst *b, const struct ringtap_packet *p)
{
	return b->packets && b->ns == p->ns && b->queue == p->queue &&
	       b->interface == p->interface && b->direction == p->direction;
}

void timeline_packet(struct timeline *l, struct timeline_thread *t, const struct ringtap_packet *p)
{
	struct timeline_burst *b = &t->burst;

	if (!same_burst(b, p)) {
		timeline_flush(l, t);
		*b = (struct timeline_burst){.ns = p->ns,
			.interface = p->interface,
			.queue = p->queue,
			.direction = p->direction};
		if (l->passages && p->direction != RINGTAP_TX)
			add_flow(b, ++l->burst_count);
	}
	b->packets++;
	b->bytes += p->length;
	b->lost += p->dropcount;
	if (!l->passages || !p->id)
		return;
	if (p->direction == RINGTAP_TX)
		send(l, b, p);
	else
		receive(l, p);
}

/* ---- packets that were not offered to any port */

static bool is_not_offered(const struct timeline_fate *f)
{
	return f->fate == RINGTAP_FATE_NOT_OFFERED;
}

void timeline_flush_fates(struct timeline *l)
{
	const struct timeline_fate *f = &l->fate;
	struct perfetto_event e = {.type = PERFETTO_INSTANT,
		.ns = f->ns,
		.key = (uint64_t)f->interface << 33 | (uint64_t)f->queue << 1 | is_not_offered(f),
		.look = is_not_offered(f) ? PERFETTO_DROPPED : PERFETTO_UNKNOWN};
	char text[PERFETTO_TEXT];

	if (!f->packets)
		return;
	e.key++; /* not 0 */
	if (l->fates && !perfetto_knows(l->fates, e.key))
		e.name = place_name(l->fates_cap, is_not_offered(f) ? "not offered" : "unknown",
			f->interface, f->queue, text);
	perfetto_argument(&e, PERFETTO_PACKETS, f->packets);
	if (f->burst) {
		perfetto_argument(&e, PERFETTO_RECEIVED_NS, f->received_ns);
		e.flows = &f->burst;
		e.flow_count = 1;
	}
	perfetto_put(&l->out, l->fates, &e);
	*(is_not_offered(f) ? &l->not_offered : &l->unknown) += f->packets;
	l->fate = (struct timeline_fate){0};
}

static void put_fate(struct timeline *l, const struct timeline_event *v)
{
	const struct timeline_passage *g = l->passages ? find(l, v->id) : NULL;
	struct timeline_fate f = {.ns = v->ns,
		.interface = v->interface,
		.queue = v->queue,
		.fate = v->fate,
		.burst = g ? g->burst : 0,
		.received_ns = g ? g->ns : 0};

	f.packets = l->fate.packets;
	if (f.packets && memcmp(&f, &l->fate, sizeof(f)))
		timeline_flush_fates(l);
	f.packets = l->fate.packets + 1;
	l->fate = f;
}

void timeline_fates_until(struct timeline *l, uint64_t ns)
{
	while (l->events_done < l->event_count) {
		const struct timeline_event *v = &l->events[l->events_done % FATES_WAIT];

		if (v->ns > ns)
			return;
		put_fate(l, v);
		l->events_done++;
	}
}

/* Beyond FATES_WAIT of them the oldest may lack its reception. */
void timeline_fate(struct timeline *l, const struct ringtap_packet *p)
{
	if (l->event_count - l->events_done == FATES_WAIT)
		put_fate(l, &l->events[l->events_done++ % FATES_WAIT]);
	l->events[l->event_count++ % FATES_WAIT] = (struct timeline_event){.ns = p->ns,
		.id = p->id,
		.interface = p->interface,
		.queue = p->queue,
		.fate = p->fate};
}
