/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "common/pcapng.h"
#include "join.h"

#define DISORDER_NS 1000000u
#define FAR_NS      UINT64_C(1000000000) /* or the timeout, if that is longer */

const char *const fate_keys[FATES] = {"sent", "not_sent", "open", "let_go", "made", "unknown",
	"offered", "not_offered", "undecided", "likely_offered"};

/* A record on its way. */
struct ahead {
	const struct port *port;
	struct headers headers; /* if it is a packet */
	/* If it was received. */
	struct flow_key key;
	uint32_t hash, flow; /* flow: its likely index, or FLOW_NONE */
	/* If it was sent, or is a fate: the likely packet, or NULL. */
	const struct waiting *waiting;
};

int join_new(struct join **out, uint64_t timeout_ns, uint64_t memory)
{
	struct join *j = calloc(1, sizeof(*j));
	int ret;

	*out = j;
	if (!j)
		return -ENOMEM;
	j->timeout_ns = timeout_ns;
	j->memory = memory;
	j->pairs.size = j->queues.size = sizeof(struct way);
	j->unsent.size = sizeof(struct protocol);
	known_init(&j->fates);
	ret = waitlist_init(&j->waitlist) ?: waitlist_init(&j->late);
	ret = joined_flows_init(&j->flows, memory / 4) ?: ret;
	return slices_init(&j->slices) ?: ret;
}

void join_free(struct join *j)
{
	if (!j)
		return;
	keyed_free(&j->pairs);
	keyed_free(&j->queues);
	keyed_free(&j->unsent);
	known_free(&j->fates);
	waitlist_free(&j->waitlist);
	waitlist_free(&j->late);
	joined_flows_free(&j->flows);
	slices_free(&j->slices);
	free(j);
}

static void tell(struct join *j, const struct outcome *o)
{
	if (j->tell)
		j->tell(j->ctx, o);
}

/* Memory that a waitlist may use: flows have a quarter at most, and what they do not use is for
 * packets. */
static uint64_t room(const struct join *j)
{
	uint64_t flows = joined_flows_bytes(&j->flows);
	uint64_t left = j->memory > flows ? j->memory - flows : 0;

	return j->fates.present ? left / 2 : left;
}

static const struct flow_key *key_of(const struct join *j, const struct waiting *w)
{
	return w->flow == FLOW_NONE ? NULL : &joined_flow_at(&j->flows, w->flow)->key;
}

void join_headers(const struct join *j, const struct waiting *w, struct headers *h)
{
	waitlist_headers(w->late ? &j->late : &j->waitlist, w, key_of(j, w), h);
}

/* ---- packets that leave ---- */

static void count_unsent(struct join *j, const struct waiting *w)
{
	struct headers h;

	join_headers(j, w, &h);
	j->not_sent++;
	slices_get(&j->slices, w->since_ns)->not_sent++;
	if (w->flow != FLOW_NONE)
		joined_flow_at(&j->flows, w->flow)->not_sent++;
	j->no_room += !protocol_count(&j->unsent, w, &h);
}

static void count_times(struct join *j, const struct waiting *w)
{
	uint32_t times = w->sent < TIMES_MAX ? w->sent : TIMES_MAX;

	if (!j->times[times]++)
		j->times_number[times] = w->number;
}

/* By records only, apart from a fate that ended the wait. unsent: the fate of a packet that was not
 * sent. */
static void count_leaving(struct join *j, const struct waiting *w, enum fate unsent)
{
	count_times(j, w);
	if (w->sent)
		return;
	if (unsent == FATE_OPEN && w->fate && w->fate != RT_FATES_OPEN)
		unsent = FATE_NOT_SENT;
	if (unsent == FATE_NOT_SENT)
		count_unsent(j, w);
	j->open += unsent == FATE_OPEN;
	j->let_go += unsent == FATE_LET_GO;
}

/* For a packet without a fate in the file. */
static enum known known_of(const struct join *j, const struct waiting *w, enum fate unsent)
{
	if (w->sent || w->late_sent || j->fates.ended)
		return KNOWN_OFFERED;
	return unsent == FATE_LET_GO ? KNOWN_LET_GO : KNOWN_OPEN;
}

static void settle(struct join *j, const struct waiting *w, enum fate unsent)
{
	static const enum fate fates[KNOWN] = {[KNOWN_OFFERED] = FATE_OFFERED,
		[KNOWN_OPEN] = FATE_OPEN,
		[KNOWN_LET_GO] = FATE_LET_GO};
	enum known known = known_of(j, w, unsent);

	known_count(&j->fates, w, known);
	if (!w->sent)
		tell(j, &(struct outcome){.fate = fates[known], .rx = w});
}

/* The oldest packet of a list, for good. */
static void leave(struct join *j, struct waitlist *from, enum fate unsent)
{
	const struct waiting *w = waitlist_oldest(from);

	if (!w->late)
		count_leaving(j, w, unsent);
	if (w->followed && !w->fate)
		settle(j, w, unsent);
	else if (!w->followed && !w->sent)
		tell(j, &(struct outcome){.fate = unsent, .rx = w});
	waitlist_leave(from);
}

/* The time of the oldest packet, which is at w, is over. */
static void time_out(struct join *j, struct waiting *w)
{
	if (!w->followed || w->fate || w->sent || j->fates.ended) {
		leave(j, &j->waitlist, FATE_NOT_SENT);
		return;
	}
	count_leaving(j, w, FATE_NOT_SENT);
	while (waitlist_full(&j->late, room(j)))
		leave(j, &j->late, FATE_LET_GO);
	waitlist_move(&j->late, &j->waitlist);
	waitlist_newest(&j->late)->late = true;
}

static bool over(const struct join *j, const struct waiting *w, uint64_t ns)
{
	return ns > w->since_ns && ns - w->since_ns >= j->timeout_ns;
}

static void expire(struct join *j, uint64_t ns)
{
	struct waiting *w;

	while ((w = waitlist_oldest(&j->waitlist)) && over(j, w, ns))
		time_out(j, w);
}

/* All that wait. */
static void flush(struct join *j)
{
	const struct waiting *w;

	while (waitlist_oldest(&j->late))
		leave(j, &j->late, FATE_NOT_SENT);
	while ((w = waitlist_oldest(&j->waitlist)))
		leave(j, &j->waitlist, over(j, w, j->last_ns) ? FATE_NOT_SENT : FATE_OPEN);
}

/* Files that are not in the order of their times: the clock begins again. */
static void begin_anew(struct join *j, uint64_t ns)
{
	const struct waiting *w, *stays = j->doubt_waits ? waitlist_newest(&j->waitlist) : NULL;

	while ((w = waitlist_oldest(&j->waitlist)) && w != stays)
		leave(j, &j->waitlist, over(j, w, j->last_ns) ? FATE_NOT_SENT : FATE_OPEN);
	j->last_ns = ns;
}

static bool is_far(const struct join *j, uint64_t a, uint64_t b)
{
	uint64_t limit = j->timeout_ns > FAR_NS ? j->timeout_ns : FAR_NS;

	return (a > b ? a - b : b - a) >= limit;
}

/* Whether the record before and this one agree that the time is another. */
static bool confirms(const struct join *j, uint64_t ns)
{
	if (!j->doubt || !is_far(j, ns, j->last_ns))
		return false;
	return !is_far(j, ns, j->doubt_ns) || (ns > j->doubt_ns && j->doubt_ns > j->last_ns);
}

/* To the time of the record before. */
static void jump(struct join *j)
{
	if (j->doubt_waits)
		waitlist_newest(&j->waitlist)->since_ns = j->doubt_ns;
	if (j->doubt_ns < j->last_ns)
		begin_anew(j, j->doubt_ns);
	j->last_ns = j->doubt_ns;
	j->first_ns = j->doubt_ns < j->first_ns ? j->doubt_ns : j->first_ns;
	j->doubt = false;
	expire(j, j->last_ns);
}

/* A single record of another time would let all packets around it be over. */
static void let_time_pass(struct join *j, uint64_t ns)
{
	if (j->records == 1)
		j->first_ns = j->last_ns = ns;
	if (j->begins && j->last_ns > ns && j->last_ns - ns >= j->timeout_ns) {
		j->doubt_waits = false;
		begin_anew(j, ns);
	}
	j->begins = false;
	if (confirms(j, ns))
		jump(j);
	j->outliers += j->doubt;
	j->doubt_waits = false;
	j->doubt = is_far(j, ns, j->last_ns);
	j->doubt_ns = ns;
	if (j->doubt)
		return;
	j->disorder += ns + DISORDER_NS < j->last_ns;
	if (ns < j->first_ns)
		j->first_ns = ns;
	if (ns > j->last_ns)
		j->last_ns = ns;
	expire(j, j->last_ns);
}

/* A recording goes on after its last packet. */
static void end_recording(struct join *j, uint64_t ns)
{
	/* Its end confirms a last packet after a pause. */
	if (j->doubt && j->doubt_ns > j->last_ns && j->doubt_ns <= ns)
		jump(j);
	expire(j, ns);
}

void join_end(struct join *j)
{
	/* No other record contradicts it. */
	if (j->doubt && j->doubt_ns > j->last_ns)
		jump(j);
	j->outliers += j->doubt;
	j->doubt = false;
	flush(j);
	for (uint32_t i = 0; i < j->flows.count; i++)
		j->reordered_flows += joined_flow_at(&j->flows, i)->reordered > 0;
}

/* ---- received ---- */

static void receive(struct join *j, const struct record *r, const struct ahead *a)
{
	struct joined_flow *f;
	struct waiting *w;

	if (!r->id) {
		j->rx_no_id++;
		return;
	}
	while (waitlist_full(&j->waitlist, room(j)))
		leave(j, &j->waitlist, FATE_LET_GO);
	j->received++;
	w = waitlist_add(&j->waitlist, a->port->application_id, r->id);
	w->ns = r->ns;
	w->since_ns = j->last_ns;
	j->doubt_waits = j->doubt;
	w->number = r->number;
	w->length = r->length;
	w->port = (uint16_t)r->port;
	w->queue = (uint16_t)r->queue;
	w->flow = flow_table_get_hashed(&j->flows, &a->key, a->hash, a->flow);
	waitlist_keep(&j->waitlist, &a->headers, key_of(j, w));
	slices_get(&j->slices, w->since_ns)->received++;
	w->followed = j->fates.here;
	if (w->followed)
		known_receive(&j->fates, w);
	if (w->flow == FLOW_NONE)
		return;
	f = joined_flow_at(&j->flows, w->flow);
	if (!f->received)
		f->first_number = r->number;
	w->sequence = f->received++;
}

/* ---- sent ---- */

static void count_way(
	struct join *j, struct keyed *ways, const struct ends *key, uint64_t ns, bool copy)
{
	struct way *w =
		keyed_get(ways, (uint64_t)key->rx_port << 48 | (uint64_t)key->rx_queue << 32 |
					(uint64_t)key->tx_port << 16 | key->tx_queue);

	if (!w) {
		j->no_room++;
		return;
	}
	w->ends = *key;
	w->copies += copy;
	spread_add(&w->spread, ns);
}

static void count_changes(struct join *j, const struct waiting *w, const struct record *r,
	const struct headers *rx, const struct headers *tx, uint32_t bits)
{
	j->unchanged += !bits;
	for (; bits; bits &= bits - 1) {
		enum change c = (enum change)__builtin_ctz(bits);
		struct changed *to = &j->changes[c];

		if (to->count++)
			continue;
		to->rx_number = w->number;
		to->tx_number = r->number;
		change_text(c, rx, w->length, tx, r->length, to->text);
	}
}

/* The first sending of a packet. True: later ones of its flow overtook it. */
static bool send_first(struct join *j, const struct waiting *w, const struct record *r, uint64_t ns)
{
	const struct passage p = {.rx_ns = w->ns,
		.tx_ns = r->ns,
		.rx_queue = w->queue,
		.tx_port = (uint16_t)r->port,
		.tx_queue = (uint16_t)r->queue};
	struct slice *s = slices_get(&j->slices, w->since_ns);
	struct joined_flow *f = w->flow == FLOW_NONE ? NULL : joined_flow_at(&j->flows, w->flow);
	bool reordered = f && joined_flow_sent(f, w->sequence, &p);

	j->sent++;
	j->reordered += reordered;
	s->reordered += reordered;
	slice_latency(s, ns);
	spread_add(&j->all, ns);
	spread_add(&j->sizes[size_class(w->length)], ns);
	if (f)
		joined_flow_latency(f, ns);
	if (reordered && f->reordered == 1)
		f->reordered_number = w->number;
	return reordered;
}

/* By another port or queue it is a copy. By the same one it may be the same packet, which the
 * driver has refused before. */
static void send_again(struct join *j, const struct waiting *w, const struct record *r)
{
	j->copies++;
	j->again += w->tx_port == (uint16_t)r->port && w->tx_queue == (uint16_t)r->queue;
	slices_get(&j->slices, w->since_ns)->copies++;
	if (w->flow != FLOW_NONE)
		joined_flow_at(&j->flows, w->flow)->copies++;
}

static void join_sent(
	struct join *j, struct waiting *w, const struct record *r, const struct headers *tx)
{
	struct ends ends = {.rx_port = w->port, .tx_port = (uint16_t)r->port};
	struct outcome o = {.fate = FATE_SENT, .rx = w, .tx = r};
	struct headers rx;

	o.latency_ns = r->ns > w->ns ? r->ns - w->ns : 0;
	j->negative += r->ns < w->ns;
	join_headers(j, w, &rx);
	o.changes = headers_compare(&rx, w->length, tx, r->length);
	count_changes(j, w, r, &rx, tx, o.changes);
	if (w->sent)
		send_again(j, w, r);
	else
		o.reordered = send_first(j, w, r, o.latency_ns);
	w->sent += w->sent < SENT_MAX;
	w->tx_port = (uint16_t)r->port;
	w->tx_queue = (uint16_t)r->queue;
	count_way(j, &j->pairs, &ends, o.latency_ns, w->sent > 1);
	ends.rx_queue = w->queue;
	ends.tx_queue = (uint16_t)r->queue;
	count_way(j, &j->queues, &ends, o.latency_ns, w->sent > 1);
	tell(j, &o);
}

/* The reception that may have come before; NULL: none. */
static struct waiting *received_as(struct join *j, const struct record *r, const struct port *port)
{
	struct waiting *w = waitlist_find(&j->waitlist, port->application_id, r->id);

	return w || !waitlist_oldest(&j->late)
		       ? w
		       : waitlist_find(&j->late, port->application_id, r->id);
}

static void send(struct join *j, const struct record *r, const struct ahead *a)
{
	struct waiting *w = r->id ? received_as(j, r, a->port) : NULL;

	if (w && !w->late) {
		join_sent(j, w, r, &a->headers);
		return;
	}
	if (w)
		w->late_sent = true;
	j->made += !r->id;
	j->unknown += r->id != 0;
	tell(j, &(struct outcome){.fate = r->id ? FATE_UNKNOWN : FATE_MADE, .tx = r});
}

/* ---- fates ---- */

/* A file with fates begins. Of another recording: what waits is of the one before. */
static void begin_fates(struct join *j, uint64_t began_ns)
{
	j->fates.here = true;
	if (j->fates.present && !j->fates.ended && j->fates.began_ns == began_ns)
		return;
	flush(j);
	j->doubt_waits = false;
	j->fates.present = true;
	j->fates.ended = false;
	j->fates.began_ns = began_ns;
}

static void join_fate(struct join *j, const struct record *r, const struct port *port)
{
	static const struct {
		enum known known;
		enum fate fate;
	} meanings[] = {[RT_FATES_NOT_OFFERED] = {KNOWN_NOT_OFFERED, FATE_NOT_OFFERED},
		[RT_FATES_UNKNOWN] = {KNOWN_UNKNOWN, FATE_UNDECIDED},
		[RT_FATES_INFERRED] = {KNOWN_UNKNOWN, FATE_LIKELY_OFFERED},
		[RT_FATES_OPEN] = {KNOWN_OPEN, FATE_OPEN}};
	const char *reason = NULL;
	struct headers h;
	struct waiting *w;

	if (!j->fates.here)
		begin_fates(j, j->fates.began_ns);
	w = received_as(j, r, port);
	if (!r->fate || r->fate > RT_FATES_OPEN)
		return;
	if (!w || w->fate) {
		j->fates.elsewhere++;
		return;
	}
	w->fate = r->fate;
	w->why = r->fate == RT_FATES_UNKNOWN ? r->why : RT_FATES_WHY_OTHER;
	if (r->fate == RT_FATES_NOT_OFFERED) {
		join_headers(j, w, &h);
		known_refuse(&j->fates, w, &h, r->ns);
		reason = known_count_reason(&j->fates, r->id, r->why);
	} else {
		known_count(&j->fates, w, meanings[r->fate].known);
	}
	if (r->fate == RT_FATES_NOT_OFFERED && w->flow != FLOW_NONE)
		joined_flow_at(&j->flows, w->flow)->not_offered++;
	tell(j, &(struct outcome){.fate = meanings[r->fate].fate,
			.rx = w,
			.noticed_ns = r->ns,
			.reason = reason});
}

static void join_record(struct join *j, const struct record *r, const struct ahead *a)
{
	switch (r->kind) {
	case RECORD_FATE: join_fate(j, r, a->port); return;
	case RECORD_REASON:
		known_name_reason(&j->fates, r->fate, r->why, (const char *)r->data, r->caplen);
		return;
	case RECORD_FATES_BEGIN: begin_fates(j, r->ns); return;
	case RECORD_END: end_recording(j, r->ns); return;
	case RECORD_FATES_END: j->fates.ended = j->fates.present; return;
	default: break;
	}
	j->records++;
	j->ids += r->id != 0;
	let_time_pass(j, r->ns);
	if (r->direction == DIRECTION_RX)
		receive(j, r, a);
	else if (r->direction == DIRECTION_TX)
		send(j, r, a);
	else
		j->no_direction++;
}

/* ---- many records ---- */

/* Index and packets are larger than the caches of most CPUs: what records need is loaded while the
 * others are prepared. */
static void read_ahead(struct join *j, const struct record *r, struct ahead *a)
{
	if (r->id)
		waitlist_prefetch(&j->waitlist, a->port->application_id, r->id);
	if (r->kind != RECORD_PACKET)
		return;
	headers_read(&a->headers, a->port->linktype, r->data, r->caplen);
	if (r->direction != DIRECTION_RX)
		return;
	flow_key_of(&a->key, (uint16_t)r->port, &a->headers);
	a->hash = flow_table_hash(&j->flows, &a->key);
	flow_table_prefetch_slot(&j->flows, a->hash);
}

static void find_ahead(const struct join *j, const struct record *r, struct ahead *a)
{
	if (r->kind == RECORD_PACKET && r->direction == DIRECTION_RX)
		a->flow = flow_table_prefetch_item(&j->flows, a->hash);
	else if (r->id)
		a->waiting = waitlist_prefetch_packet(&j->waitlist, a->port->application_id, r->id);
}

/* The flow of the likely packet; NULL: it has none. */
static const struct joined_flow *flow_ahead(const struct join *j, const struct ahead *a)
{
	return a->waiting && a->waiting->flow < j->flows.count
		       ? joined_flow_at(&j->flows, a->waiting->flow)
		       : NULL;
}

static void prefetch_flow(const struct joined_flow *flow)
{
	const char *f = (const char *)flow;

	for (size_t i = 0; i < sizeof(struct joined_flow); i += 64)
		__builtin_prefetch(f + i, 1);
}

void join_records(struct join *j, const struct record *r, int n, const struct records *records)
{
	struct ahead a[JOIN_BATCH];

	for (int i = 0; i < n; i++) {
		a[i].port = records_port(records, r[i].port);
		a[i].waiting = NULL;
		read_ahead(j, &r[i], &a[i]);
	}
	for (int i = 0; i < n; i++)
		find_ahead(j, &r[i], &a[i]);
	for (int i = 0; i < n; i++) {
		const struct joined_flow *f = flow_ahead(j, &a[i]);

		if (f)
			prefetch_flow(f);
	}
	for (int i = 0; i < n; i++) {
		const struct joined_flow *f = flow_ahead(j, &a[i]);

		if (f && r[i].ns > a[i].waiting->ns)
			joined_flow_prefetch(f, r[i].ns - a[i].waiting->ns);
	}
	for (int i = 0; i < n; i++)
		join_record(j, &r[i], &a[i]);
}
