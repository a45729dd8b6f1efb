/* SPDX-License-Identifier: BSD-3-Clause */
/* The fates of received packets: counters, and the table of open packets. The application can write
 * to both: what is read here may be wrong, but never leads out of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "capture.h"
#include "reader/export.h"
#include "ringtap/fates.h"

/* A table, and the moment of the look into it. */
struct view {
	const struct rt_source *source;
	const uint8_t *entries;
	const struct rt_seg_fate_pool *pools;
	uint64_t count; /* entries */
	uint32_t stride, snap, history, pool_count, taps;
	uint32_t pools_beyond;
	uint32_t walk; /* the last one that has ended */
	uint64_t walk_ns, now_ns;
	uint64_t unseen_tsc, stopped_tsc; /* what was received before may have been sent unseen */
	struct rt_clock_line line;
	uint64_t id_source; /* in the top bits of ids */
};

/* The number of the walk is read before the entries: then all marks of that walk are there. */
static int view_make(struct view *v, const struct ringtap_capture *cap, uint32_t app)
{
	const struct rt_segment *seg;

	if (app >= cap->source_count)
		return -ENOENT;
	v->source = &cap->sources[app];
	seg = &v->source->seg;
	if (!seg->h.fate_bits)
		return -ENODATA;
	if (rt_clock_wait(seg->clock, &v->line))
		return -EBADMSG;
	v->entries = (const uint8_t *)seg->live + seg->h.fate_offset;
	v->pools = (const void *)((const uint8_t *)seg->live + seg->h.fate_pool_offset);
	v->count = 1ull << seg->h.fate_bits;
	v->stride = seg->h.fate_stride;
	v->history = seg->h.fate_history;
	v->snap = seg->h.fate_snap - (v->history ? RT_FATE_HISTORY : 0);
	v->taps = rt_segment_tap_count(seg);
	v->pool_count = rt_load_acquire(&seg->live->fate_pools);
	if (v->pool_count > RT_FATE_POOLS)
		v->pool_count = RT_FATE_POOLS;
	v->pools_beyond = rt_load(&seg->live->fate_pools_beyond);
	v->walk = rt_load_acquire(&seg->live->fate_walk);
	v->walk_ns = rt_load(&seg->live->fate_walk_ns);
	v->unseen_tsc = rt_load(&seg->live->fate_unseen_tsc);
	v->stopped_tsc = rt_load(&seg->live->fate_stopped_tsc);
	v->now_ns = rt_clock_now(&v->line);
	v->id_source = (uint64_t)app << (64 - RT_IDS_SOURCE_BITS);
	return 0;
}

/* An entry, read once. */
struct entry {
	uint64_t mbuf, id, ns;
	uint32_t tap, len, cap, pool;
	bool free, outside;
	uint8_t reason;
	enum ringtap_fate fate; /* what became of one that is free */
};

/* A reception clears the mark. A walk in progress has marked some of the free mbufs with the next
 * number; what has an earlier one was taken from its pool again. */
static bool is_free(const struct view *v, uint32_t walk)
{
	return walk && (walk == v->walk || walk == v->walk + 1);
}

/* As find_stray() and find_doubt() of the probe: what a hook would have counted. The places of
 * clones in external buffers are the probe's. */
static enum ringtap_fate fate_of(const struct view *v, uint64_t tsc, bool external)
{
	if (external)
		return RINGTAP_FATE_UNKNOWN;
	if (v->stopped_tsc && (int64_t)(tsc - v->stopped_tsc) < 0)
		return RINGTAP_FATE_STOPPED;
	if (v->unseen_tsc && (int64_t)(tsc - v->unseen_tsc) < 0)
		return RINGTAP_FATE_UNSEEN;
	return RINGTAP_FATE_NOT_OFFERED;
}

/* False: it has no open packet. */
static bool read_entry(const struct view *v, uint64_t i, struct entry *e)
{
	const struct rt_seg_fate *f = (const void *)(v->entries + i * v->stride);
	uint64_t tsc;

	if (rt_load_acquire(&f->state) != RT_FATE_OPEN)
		return false;
	tsc = rt_load(&f->tsc);
	e->mbuf = rt_load(&f->mbuf);
	e->id = rt_load(&f->id);
	e->tap = rt_load(&f->tap);
	e->len = rt_load(&f->len);
	e->cap = rt_load(&f->cap);
	e->pool = rt_load(&f->pool);
	e->ns = rt_clock_ns(&v->line, tsc);
	if (e->ns > v->now_ns)
		e->ns = v->now_ns;
	if (e->cap > v->snap)
		e->cap = v->snap;
	if (e->len < e->cap)
		e->len = e->cap;
	e->pool = e->pool && e->pool <= v->pool_count ? e->pool - 1 : RINGTAP_NO_INDEX;
	e->free = is_free(v, rt_load(&f->walk));
	e->outside = rt_load(&f->outside) != 0;
	e->reason = rt_load(&f->reason) & RT_REASON_MASK;
	e->fate = e->free ? fate_of(v, tsc, rt_load(&f->external)) : RINGTAP_FATE_NONE;
	return e->tap < v->taps;
}

/* False: the probe has not read it since the reception, or keeps none. */
static bool read_history(const struct view *v, uint64_t i, uint64_t id, uint64_t *ops)
{
	const struct rt_seg_history *h = (const void *)(v->entries + i * v->stride + v->history);

	*ops = 0;
	if (!v->history || !id || rt_load_acquire(&h->id) != id)
		return false;
	*ops = rt_load(&h->ops);
	rt_fence_acquire(); /* pairs with the release in note() of the probe */
	return rt_load(&h->id) == id;
}

/* Another packet may have come into the mbuf meanwhile. */
static bool is_same(const struct view *v, uint64_t i, const struct entry *e)
{
	const struct rt_seg_fate *f = (const void *)(v->entries + i * v->stride);

	rt_fence_acquire(); /* the bytes were read before */
	return rt_load(&f->state) == RT_FATE_OPEN && rt_load(&f->id) == e->id;
}

/* The queue of a tap. False: the application has written nonsense there, or it sends. */
static bool queue_of(const struct view *v, uint32_t tap, uint32_t *interface, uint32_t *queue)
{
	const struct rt_seg_tap *t = &v->source->seg.taps[tap];
	uint32_t local = rt_load(&t->if_index);

	if (rt_load(&t->direction) != RT_DIR_RX || local >= v->source->if_known)
		return false;
	*interface = v->source->if_ids[local];
	*queue = rt_load(&t->queue);
	return true;
}

/* ---- counts ---- */

/* Packets that are free, and may have been sent unseen. */
struct doubtful {
	uint64_t all, unseen, stopped;
};

struct reading {
	struct ringtap_fates pub;
	uint32_t *index; /* indexes of queues, by tap; RINGTAP_NO_INDEX: none */
	struct ringtap_fate_queue *queues;
	struct doubtful *doubtful; /* by queue */
	struct ringtap_fate_pool *pools;
};

static void count_doubtful(struct doubtful *d, enum ringtap_fate fate)
{
	d->all++;
	d->unseen += fate == RINGTAP_FATE_UNSEEN;
	d->stopped += fate == RINGTAP_FATE_STOPPED;
}

static void count_entries(struct reading *r, const struct view *v)
{
	struct entry e;

	for (uint64_t i = 0; i < v->count; i++) {
		if (!read_entry(v, i, &e) || r->index[e.tap] == RINGTAP_NO_INDEX)
			continue;
		if (e.free && e.fate != RINGTAP_FATE_NOT_OFFERED) {
			count_doubtful(&r->doubtful[r->index[e.tap]], e.fate);
			continue;
		}
		r->queues[r->index[e.tap]].free += e.free;
		r->pub.free += e.free;
		r->pub.open += !e.free;
		if (e.pool == RINGTAP_NO_INDEX)
			continue;
		r->pools[e.pool].free += e.free;
		r->pools[e.pool].open += !e.free;
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Counted where it is sent: where such a packet was received is not known. */
static uint64_t rest_offered(const struct view *v)
{
	const struct rt_segment *seg = &v->source->seg;
	const struct rt_seg_count *row;
	uint64_t sum = 0;

	for (uint32_t at = 0; (row = rt_segment_row(seg, &at));)
		for (uint32_t t = 0; t < v->taps; t++)
			if (rt_load(&seg->taps[t].direction) == RT_DIR_TX)
				sum += rt_load(&row[t].rest_offered);
	return sum;
}

static void count_open(struct ringtap_fate_queue *q, const struct doubtful *d)
{
	const uint64_t known = q->offered + q->not_offered + q->unknown;
	uint64_t doubtful;

	q->open = q->received > known ? q->received - known : 0;
	doubtful = least(d->all, q->open);
	q->open -= doubtful;
	q->unknown += doubtful;
	q->unseen += least(d->unseen, doubtful);
	q->stopped += least(d->stopped, doubtful);
	q->free = least(q->free, q->open);
	q->open -= q->free;
}

static void add_rows(struct ringtap_fate_queue *q, const struct rt_segment *seg, uint32_t tap)
{
	const struct rt_seg_count *row;

	for (uint32_t at = 0; (row = rt_segment_row(seg, &at));) {
		/* In the order that a packet takes: what moves meanwhile is open. */
		q->offered += rt_load(&row[tap].offered);
		q->not_offered += rt_load(&row[tap].not_offered);
		q->unknown += rt_load(&row[tap].unknown);
		q->inferred += rt_load(&row[tap].inferred);
		q->unseen += rt_load(&row[tap].unseen);
		q->stopped += rt_load(&row[tap].stopped);
	}
	for (uint32_t at = 0; (row = rt_segment_row(seg, &at));)
		q->received += rt_load(&row[tap].received);
}

/* Counters before the table: a packet that a hook notices in between is open in both, while in the
 * other order it would count twice. */
static void find_queues(struct reading *r, const struct view *v)
{
	for (uint32_t t = 0; t < v->taps; t++) {
		struct ringtap_fate_queue *q = &r->queues[r->pub.queue_count];
		uint32_t queue;

		r->index[t] = RINGTAP_NO_INDEX;
		if (!queue_of(v, t, &q->interface, &queue))
			continue;
		q->queue = (uint16_t)queue;
		add_rows(q, &v->source->seg, t);
		r->index[t] = r->pub.queue_count++;
	}
}

static void read_pools(struct reading *r, const struct view *v)
{
	for (uint32_t i = 0; i < v->pool_count; i++) {
		rt_copy_text(r->pools[i].name, v->pools[i].name, sizeof(r->pools[i].name));
		r->pools[i].size = rt_load(&v->pools[i].size);
		r->pools[i].walked = rt_load(&v->pools[i].walked) != 0;
	}
}

EXPORT void ringtap_fates_free(struct ringtap_fates *f)
{
	struct reading *r = (struct reading *)f;

	if (!r)
		return;
	free(r->index);
	free(r->queues);
	free(r->doubtful);
	free(r->pools);
	free(r);
}

EXPORT int ringtap_fates_read(
	const struct ringtap_capture *cap, uint32_t app, struct ringtap_fates **out)
{
	struct reading *r;
	struct view v;
	int ret = view_make(&v, cap, app);

	*out = NULL;
	if (ret)
		return ret;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->index = calloc(v.taps + 1, sizeof(*r->index));
	r->queues = calloc(v.taps + 1, sizeof(*r->queues));
	r->doubtful = calloc(v.taps + 1, sizeof(*r->doubtful));
	r->pools = calloc(RT_FATE_POOLS, sizeof(*r->pools));
	if (!r->index || !r->queues || !r->doubtful || !r->pools) {
		ringtap_fates_free(&r->pub);
		return -ENOMEM;
	}
	r->pub.taken_ns = v.now_ns;
	r->pub.walks = v.walk;
	r->pub.walked_ns = v.walk_ns;
	r->pub.pool_count = v.pool_count;
	r->pub.pools_beyond = v.pools_beyond;
	r->pub.queues = (struct ringtap_array){r->queues, sizeof(*r->queues)};
	r->pub.pools = (struct ringtap_array){r->pools, sizeof(*r->pools)};
	find_queues(r, &v);
	read_pools(r, &v);
	count_entries(r, &v);
	for (uint32_t i = 0; i < r->pub.queue_count; i++)
		count_open(&r->queues[i], &r->doubtful[i]);
	r->pub.rest_offered = rest_offered(&v);
	*out = &r->pub;
	return 0;
}

/* ---- reasons ---- */

EXPORT bool ringtap_capture_reason(const struct ringtap_capture *cap, uint32_t app, unsigned number,
	char out[RINGTAP_NAME_LEN])
{
	const struct rt_segment *seg = app < cap->source_count ? &cap->sources[app].seg : NULL;

	strcpy(out, "?");
	if (!seg || !seg->h.fate_reason_offset || number - 1 >= RT_FATE_OTHERS)
		return false;
	if (number == RT_FATE_OTHERS)
		strcpy(out, "other reasons");
	else
		rt_copy_text(out,
			(const char *)seg->live + seg->h.fate_reason_offset +
				(number - 1) * RT_NAME_LEN,
			RT_NAME_LEN);
	if (!*out)
		strcpy(out, "?");
	return true;
}

/* ---- open packets ---- */

struct ringtap_open_packets {
	struct view v;
	uint64_t next; /* entry */
	struct ringtap_open_packet packet;
	uint8_t data[RT_FATE_SNAP_MAX];
};

EXPORT int ringtap_open_packets_create(
	struct ringtap_open_packets **out, const struct ringtap_capture *cap, uint32_t app)
{
	struct ringtap_open_packets *it = calloc(1, sizeof(*it));
	int ret = it ? view_make(&it->v, cap, app) : -ENOMEM;

	*out = NULL;
	if (ret) {
		free(it);
		return ret;
	}
	*out = it;
	return 0;
}

EXPORT void ringtap_open_packets_free(struct ringtap_open_packets *it)
{
	free(it);
}

EXPORT const struct ringtap_open_packet *ringtap_open_packets_next(struct ringtap_open_packets *it)
{
	struct ringtap_open_packet *p = &it->packet;

	while (it->next < it->v.count) {
		uint64_t i = it->next++;
		struct entry e;

		if (!read_entry(&it->v, i, &e) || e.outside ||
			!queue_of(&it->v, e.tap, &p->interface, &p->queue))
			continue;
		memcpy(it->data, it->v.entries + i * it->v.stride + sizeof(struct rt_seg_fate),
			e.cap);
		p->mbuf = e.mbuf;
		p->has_history = read_history(&it->v, i, e.id, &p->history);
		if (!is_same(&it->v, i, &e))
			continue;
		p->data = it->data;
		p->caplen = e.cap;
		p->length = e.len;
		p->ns = e.ns;
		p->pool = e.pool;
		p->free = e.free;
		p->fate = e.fate;
		p->reason = e.reason;
		p->id = e.id ? e.id | it->v.id_source : 0;
		return p;
	}
	return NULL;
}
