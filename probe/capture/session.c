/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: selects ports, queues and directions, and follows their changes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "epb.h"
#include "fate.h"
#include "ids.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/given.h"
#include "probe/dpdk/nic_time.h"
#include "probe/trace/trace.h"

struct rt_session *rt_sessions;

static uint32_t target_directions(const struct rt_msg_target *w, enum rt_direction dir)
{
	return w->directions & (dir == RT_DIR_RX ? RT_TARGET_RX : RT_TARGET_TX);
}

static bool includes_queue(const struct rt_session *s, const struct rt_session_if *f,
	enum rt_direction dir, uint32_t queue)
{
	const struct rt_msg_target *w = &s->targets[f->target];

	return target_directions(w, dir) && (w->queue == RT_QUEUE_ALL || w->queue == queue);
}

static void fill_tap(struct rt_session *s, const struct rt_tap *t)
{
	s->shm.taps[t->index] = (struct rt_seg_tap){
		.if_index = t->if_index, .queue = t->queue, .direction = t->direction};
}

/* The entries up to these counts are complete. */
static void publish_counts(struct rt_session *s)
{
	/* Pair with the acquires in rt_segment_if_count() and rt_segment_tap_count(). */
	rt_store_release(&s->shm.header->if_count, s->if_count);
	rt_store_release(&s->shm.header->tap_count, s->tap_count);
}

static struct rt_tap *make_tap(struct rt_session *s, uint32_t if_index, enum rt_direction dir,
	uint16_t queue, struct rt_hook *hook)
{
	const struct rt_session_if *f = &s->ifs[if_index];
	bool ethernet = !f->port.linktype || f->port.linktype == RT_LINKTYPE_ETHERNET;
	struct rt_tap *t = calloc(1, sizeof(*t));
	const struct rt_given *given;

	if (!t)
		return NULL;
	*t = (struct rt_tap){.session = s,
		.filter = s->filters[f->target],
		.hook = hook,
		.index = s->tap_count,
		.if_index = if_index,
		.snaplen = s->targets[f->target].snaplen,
		.port = f->port.port_id,
		.queue = queue,
		.direction = dir,
		.wait = s->on_full == RT_ON_FULL_WAIT,
		.sampled = s->sampler,
		.mbufs = s->flags & RT_OPEN_MBUFS,
		.lengths = s->flags & RT_OPEN_LENGTHS,
		/* Packets of cooked captures are whole. */
		.first = s->flags & RT_OPEN_FIRST &&
			 (ethernet || f->port.linktype == RT_LINKTYPE_RAW),
		.raw = !ethernet,
		.ids = s->ids & (RT_IDS_ON | RT_IDS_INFER | RT_IDS_FATES | RT_IDS_EVENTS),
		.id_source = (uint64_t)(s->ids >> RT_IDS_SOURCE_SHIFT) << RT_ID_SOURCE_SHIFT,
		.nic_ts_offset = -1};
	given = rt_given(t->port);
	t->wire_flag = given->wire_flag;
	t->wire_offset = given->wire_offset;
	/* Records of fates have the time of the notice. */
	if (f->nic_clock && (dir == RT_DIR_RX || given->is_source) && !(s->ids & RT_IDS_FATES) &&
		!rt_nic_time_lookup(&t->nic_ts_offset, &t->nic_ts_flag)) {
		t->nic_clock = f->nic_clock;
		t->stamped = rt_port_stamped(t->port);
	}
	rt_epb_prepare(t);
	return t;
}

static void refuse(struct rt_session *s, uint32_t if_index, enum rt_direction dir)
{
	s->taps_refused++;
	s->ifs[if_index].unhooked += dir == RT_DIR_TX;
}

static void link_tap(struct rt_session *s, struct rt_tap *t)
{
	t->due = false;
	t->orphaned = rt_load(&t->hook->orphaned);
	switch (rt_hook_link(t->hook, t, s->ifs[t->if_index].generation)) {
	case 0: t->linked = true; break;
	case -ENODEV: break; /* the port has gone; the next rescan finds that */
	default: refuse(s, t->if_index, t->direction);
	}
}

/* The last step: packets arrive from then on. Senders first: what is received with a tap is sent
 * with one, by whichever port and thread. late: packets are received already. */
static void link_taps(struct rt_session *s, bool late)
{
	static const enum rt_direction order[] = {RT_DIR_TX, RT_DIR_RX};
	bool senders = false;

	for (unsigned k = 0; k < RTE_DIM(order); k++) {
		for (uint32_t i = 0; i < s->tap_count; i++) {
			if (!s->taps[i]->due || s->taps[i]->direction != order[k])
				continue;
			senders |= order[k] == RT_DIR_TX;
			link_tap(s, s->taps[i]);
		}
	}
	if (s->fates)
		rt_fates_follow(s, late, senders);
}

static void set_hook(struct rt_session *s, struct rt_tap *t, struct rt_hook *hook)
{
	const struct rt_session_if *f = &s->ifs[t->if_index];

	t->hook = hook;
	/* A thread in its last hook may read these while a port that has come back takes its
	 * tap. */
	rt_store(&t->port, f->port.port_id);
	if (t->nic_ts_offset >= 0)
		rt_store(&t->nic_clock, f->nic_clock);
}

/* The tap of the same queue from before the port was removed and came back. It goes on counting.
 * A thread that has not left its last hook yet may still read it, but only fields that do not
 * change. */
static struct rt_tap *find_tap(
	struct rt_session *s, uint32_t if_index, enum rt_direction dir, uint16_t queue)
{
	for (uint32_t i = 0; i < s->tap_count; i++) {
		struct rt_tap *t = s->taps[i];

		if (t->if_index == if_index && t->queue == queue && t->direction == dir)
			return t;
	}
	return NULL;
}

static void add_tap(struct rt_session *s, uint32_t if_index, enum rt_direction dir, uint16_t queue)
{
	struct rt_hook *hook = rt_hook_get(s->ifs[if_index].port.port_id, queue, dir);
	struct rt_tap *t = s->ifs[if_index].returned ? find_tap(s, if_index, dir, queue) : NULL;

	if (!hook || (!t && s->tap_count >= s->tap_capacity)) {
		refuse(s, if_index, dir);
		return;
	}
	switch (rt_hook_use(hook)) {
	case 0: break;
	case -EINVAL: return; /* a hairpin queue: software never receives its packets */
	default: refuse(s, if_index, dir); return;
	}
	if (t) {
		set_hook(s, t, hook);
	} else {
		t = make_tap(s, if_index, dir, queue, hook);
		if (!t) {
			rt_hook_unuse(hook);
			refuse(s, if_index, dir);
			return;
		}
		/* Pairs with the acquire in rt_fates_tap(). */
		rt_store_release(&s->taps[s->tap_count], t);
		s->tap_count++;
	}
	t->due = true;
	if (s->state == RT_SESSION_ARMED) {
		fill_tap(s, t);
		publish_counts(s);
	}
}

static void drop_tap(struct rt_tap *t)
{
	if (t->linked)
		rt_hook_unlink(t->hook, t);
	t->linked = t->due = false;
	if (t->hook)
		rt_hook_unuse(t->hook);
	t->hook = NULL;
}

static void fill_if(struct rt_session *s, uint32_t i)
{
	const struct rt_session_if *f = &s->ifs[i];
	struct rt_seg_if *out = &s->shm.ifs[i];

	memcpy(out->name, f->port.name, sizeof(out->name));
	memcpy(out->driver, f->port.driver, sizeof(out->driver));
	memcpy(out->mac, f->port.mac, sizeof(out->mac));
	rt_store(&out->port_id, f->port.port_id);
	rt_store(&out->link_mbps, f->port.link_mbps);
	out->snaplen = s->targets[f->target].snaplen;
	rt_store(&out->nb_rx_queues, f->port.nb_rx_queues);
	rt_store(&out->nb_tx_queues, f->port.nb_tx_queues);
	out->target = f->target;
	out->linktype = f->port.linktype;
	rt_store(&out->state, f->gone ? RT_IF_GONE : RT_IF_PRESENT);
}

/* An entry for the port: the one from before it was removed, or a new one. NULL: none left. */
static struct rt_session_if *take_if(
	struct rt_session *s, const struct rt_msg_port *port, uint32_t target)
{
	struct rt_session_if *more;
	uint32_t room;

	for (uint32_t i = 0; i < s->if_count; i++) {
		struct rt_session_if *f = &s->ifs[i];

		if (f->gone && f->target == target &&
			rt_port_same(port, f->port.name, f->port.driver, f->port.mac))
			return f;
	}
	if (s->if_count == s->if_room) {
		room = s->if_room ? RTE_MIN(s->if_room * 2, (uint32_t)RT_MAX_IFS) : 16;
		more = room > s->if_room ? realloc(s->ifs, room * sizeof(*more)) : NULL;
		if (!more)
			return NULL;
		s->ifs = more;
		s->if_room = room;
	}
	s->ifs[s->if_count] = (struct rt_session_if){0};
	return &s->ifs[s->if_count++];
}

/* The counters of a port grow from here, also while it is stopped: it may have counted before. */
static void begin_counting(struct rt_session_if *f)
{
	f->counted = !f->gone && rt_port_first_counters(f->port.port_id, f->last) == 0;
}

static struct rt_session_if *add_if(struct rt_session *s, uint16_t id)
{
	/* Before the port's description, which may else be that of the next port with this id. */
	uint32_t target = 0, generation = rt_port_generation(id);
	struct rt_session_if *f;
	struct rt_msg_port port;

	while (target < s->target_count && !rt_target_matches(id, &s->targets[target]))
		target++;
	if (target == s->target_count || s->refused[id] == generation + 1 ||
		rt_port_describe(id, &port))
		return NULL;
	f = take_if(s, &port, target);
	if (!f) {
		s->taps_refused++; /* counted once, not at every rescan */
		s->refused[id] = generation + 1;
		return NULL;
	}
	f->port = port;
	f->target = target;
	f->generation = generation;
	f->unhooked = 0;
	f->returned = f->gone;
	f->gone = false;
	memset(f->queues, 0, sizeof(f->queues));
	begin_counting(f);
	if ((s->timestamp == RT_TIMESTAMP_NIC && !rt_port_is_vhost(id)) || rt_port_stamped(id))
		f->nic_clock = rt_nic_clock_get(id, port.driver, generation);
	if (s->state == RT_SESSION_ARMED) {
		fill_if(s, (uint32_t)(f - s->ifs));
		publish_counts(s);
	}
	return f;
}

uint32_t rt_session_linked(const struct rt_session *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->tap_count; i++)
		n += s->taps[i]->linked;
	return n;
}

static struct rt_session_if *find_if(struct rt_session *s, uint16_t port)
{
	for (uint32_t i = 0; i < s->if_count; i++) {
		if (!s->ifs[i].gone && s->ifs[i].port.port_id == port)
			return &s->ifs[i];
	}
	return NULL;
}

static void mark_gone(struct rt_session *s, uint32_t i)
{
	s->ifs[i].gone = true;
	if (s->state == RT_SESSION_ARMED)
		rt_store(&s->shm.ifs[i].state, RT_IF_GONE);
	for (uint32_t t = 0; t < s->tap_count; t++) {
		if (s->taps[t]->if_index == i)
			drop_tap(s->taps[t]);
	}
}

static void add_queues(struct rt_session *s, struct rt_session_if *f)
{
	uint32_t n[2];

	if (rt_port_queues(f->port.port_id, n))
		return;
	for (int dir = 0; dir < 2; dir++) {
		for (; f->queues[dir] < n[dir]; f->queues[dir]++) {
			if (includes_queue(s, f, dir, f->queues[dir]))
				add_tap(s, (uint32_t)(f - s->ifs), dir, (uint16_t)f->queues[dir]);
		}
	}
}

void rt_session_rescan(struct rt_session *s)
{
	for (uint32_t i = 0; i < s->if_count; i++) {
		uint16_t port = s->ifs[i].port.port_id;

		if (!s->ifs[i].gone &&
			(!rt_port_alive(port) || rt_port_generation(port) != s->ifs[i].generation))
			mark_gone(s, i);
	}
	for (uint16_t p = rt_port_next(0); p < RT_MAX_PORTS; p = rt_port_next(p + 1)) {
		struct rt_session_if *f = find_if(s, p);

		if (!f)
			f = add_if(s, p);
		if (f)
			add_queues(s, f);
	}
	if (s->state == RT_SESSION_ARMED) {
		link_taps(s, true);
		rt_store(&s->shm.header->taps_refused, s->taps_refused);
	}
}

void rt_session_publish(struct rt_session *s)
{
	for (uint32_t i = 0; i < s->if_count; i++)
		fill_if(s, i);
	for (uint32_t i = 0; i < s->tap_count; i++)
		fill_tap(s, s->taps[i]);
	publish_counts(s);
	link_taps(s, false);
	/* Pairs with the acquire in flows(). Else packets would pass one port with a tap and the
	 * next one without: an id would come back that was not seen on its way. */
	rt_store_release(&s->flows, 1);
	rt_store(&s->shm.header->taps_refused, s->taps_refused);
	/* The reader's memory may have taken seconds: what the NIC counted meanwhile is not of the
	 * packets that can be captured from now on. */
	for (uint32_t i = 0; i < s->if_count; i++)
		begin_counting(&s->ifs[i]);
}

bool rt_session_begin_ring(struct rt_session *s, struct rt_ring *r, const struct rt_thread *t)
{
	/* Pairs with the release in rt_session_supply_rows(). */
	if (r->index >= rt_load_acquire(&s->rows))
		return false;
	rt_store(&r->pub->lcore, rt_load(&t->lcore));
	rt_store(&r->pub->tid, rt_load(&t->tid));
	/* That of an EAL thread, or of one that is registered with EAL. */
	rt_chunks_use(&s->chunks, r, (int32_t)rte_socket_id());
	/* Pairs with the acquire in rt_segment_ring_next(). Before the time is taken: a reader that
	 * does not find it yet gets later packets only. */
	rt_fetch_or(&s->shm.header->used[r->index / 64], 1ull << r->index % 64);
	r->used = true; /* last: a signal handler may jump out */
	return true;
}

/* With fates, sent ones are those whose fates are wrong: they count as packets lost. */
static void count_orphans(struct rt_session *s, const struct rt_tap *t, uint64_t n)
{
	struct rt_seg_count *c = &s->orphans[t->index];

	if (s->fates && t->direction == RT_DIR_RX) {
		rt_fetch_add(&c->received, n);
		rt_fetch_add(&c->unknown, n);
	} else {
		rt_fetch_add(&c->seen, n);
		rt_fetch_add(&c->lost[RT_LOSS_NO_RING], n);
	}
}

static void refresh_orphans(struct rt_session *s)
{
	for (uint32_t i = 0; i < s->tap_count; i++) {
		struct rt_tap *t = s->taps[i];
		uint64_t now = t->linked ? rt_load(&t->hook->orphaned) : t->orphaned;

		count_orphans(s, t, now - t->orphaned);
		if (now != t->orphaned)
			rt_trace_drop(t->port, t->queue, now - t->orphaned, RT_LOSS_NO_RING);
		t->orphaned = now;
	}
}

static void refresh_nic(struct rt_session *s, uint32_t i, uint32_t age_ms)
{
	struct rt_session_if *f = &s->ifs[i];
	struct rt_seg_if *out = &s->shm.ifs[i];
	uint64_t *to[RT_NIC_COUNTERS] = {&out->ipackets, &out->opackets, &out->imissed,
		&out->ierrors, &out->rx_nombuf, &out->oerrors};
	uint64_t v[RT_NIC_COUNTERS];

	if (f->gone || rt_port_counters(f->port.port_id, age_ms, v) ||
		rt_port_generation(f->port.port_id) != f->generation)
		return;
	for (int k = 0; k < RT_NIC_COUNTERS; k++) {
		if (f->counted)
			f->nic[k] += v[k] - f->last[k];
		f->last[k] = v[k];
		rt_store(to[k], f->nic[k]);
	}
	if (f->counted)
		rt_store(&out->nic_ns, rt_time_ns(CLOCK_REALTIME_COARSE));
	f->counted = true;
}

void rt_session_refresh(struct rt_session *s, uint32_t age_ms)
{
	refresh_orphans(s);
	for (uint32_t i = 0; i < s->if_count; i++)
		refresh_nic(s, i, age_ms);
}

/* Slots pass from thread to thread. */
void rt_session_publish_shares(const struct rt_session *s)
{
	rt_store(&s->shm.header->window, s->chunks.window);
	rt_store(&s->shm.header->reserve, s->chunks.reserve);
	RT_EACH_RING(s, i)
	{
		rt_store(&s->shm.rings[i].lcore, rt_load(&rt_threads[i].lcore));
		rt_store(&s->shm.rings[i].tid, rt_load(&rt_threads[i].tid));
	}
}

uint32_t rt_session_threads(const struct rt_session *s)
{
	uint32_t taps[2] = {0}, most;

	for (uint32_t i = 0; i < s->tap_count; i++)
		taps[s->taps[i]->direction]++;
	most = RTE_MAX(taps[RT_DIR_RX], taps[RT_DIR_TX]);
	most = RTE_MAX(most, rte_lcore_count());
	return RTE_MAX(most, rt_threads_top());
}

/* Ahead of the threads that come. */
void rt_session_supply_rows(struct rt_session *s)
{
	uint32_t rows = RTE_MIN(rt_session_threads(s) + RT_ROWS_AHEAD, (uint32_t)RT_MAX_RINGS);

	if (rows <= s->rows)
		return;
	rt_shm_fill_rows(&s->shm, rows);
	/* Pairs with the acquire in rt_session_begin_ring(). */
	rt_store_release(&s->rows, rt_shm_rows(&s->shm));
}

void rt_session_tick(struct rt_session *s, uint64_t now_ms)
{
	rt_session_supply_rows(s);
	rt_chunks_tick(&s->chunks);
	rt_session_publish_shares(s);
	if (!s->fates || s->state != RT_SESSION_ARMED)
		return;
	rt_fates_walk(s, now_ms);
	rt_fates_read_histories(s->fates);
}

bool rt_session_sane(const struct rt_session *s)
{
	RT_EACH_RING(s, i)
	{
		if (rt_load(&s->rings[i].bad_tail))
			return false;
	}
	return true;
}

/* Receivers first, for the reason of link_taps(). */
void rt_session_cut(struct rt_session *s)
{
	if (s->state == RT_SESSION_CLOSING)
		refresh_orphans(s);
	for (uint32_t i = 0; i < s->tap_count; i++) {
		if (s->taps[i]->direction == RT_DIR_RX)
			drop_tap(s->taps[i]);
	}
	for (uint32_t i = 0; i < s->tap_count; i++)
		drop_tap(s->taps[i]);
	if (s->fates)
		rt_reason_unlisten(s);
	rt_grace_begin(&s->grace);
	s->state = RT_SESSION_STOPPING;
	rt_trace_session_close(s->id, s->reader_pid);
}

void rt_session_stop(struct rt_session *s)
{
	bool armed = s->state == RT_SESSION_ARMED;

	rt_store(&s->stopping, 1); /* threads that wait for room give up */
	if (armed)
		rt_session_refresh(s, 0);
	if (armed && s->fates && !s->abandoned) {
		rt_fates_close(s->fates);
		rt_grace_begin(&s->grace);
		s->state = RT_SESSION_CLOSING;
	} else if (s->state != RT_SESSION_CLOSING || s->abandoned) {
		rt_session_cut(s);
	}
}
