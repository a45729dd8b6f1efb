/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The merge of the rings of all threads into one sequence in time order.
 *
 * A producer sets busy, reads the TSC, writes, publishes last_ns and head, and clears busy. If a
 * ring is idle when it is read, its later records have times after that reading, less the time
 * until a store becomes visible (SLACK_NS, an upper limit). If it is busy, they may be as early as
 * its last publication (a ring whose packets have older time stamps than the TSC's stays busy, and
 * publishes last_ns at every poll). The watermark is the minimum over all rings; records up to it
 * can be returned. A thread that is stopped in a hook would delay all of them: after
 * rt_reader_limits.hold_ns it is ignored. What it publishes later may be out of order, which is
 * counted. A ring that no thread uses yet is as an idle one.
 */
#include <stdio.h>
#include <string.h>

#include "common/record.h"
#include "capture.h"
#include "retain.h"
#include "window.h"
#include "reader/tunables.h"

#define AHEAD_NS 1000000000ull
#define SLACK_NS 50000ull
/* Without prefetching, walking over the records is the bottleneck: docs/performance.md. */
#define FETCH_AHEAD   4096 /* bytes */
#define FETCH_LARGE   192  /* bytes; of longer records only the ends are prefetched, */
#define FETCH_RECORDS 8    /* this many records ahead */

uint64_t rt_source_mark(const struct rt_source *s, uint64_t now_ns)
{
	if (s->dead || s->stopped)
		return RT_FOREVER;
	return now_ns > SLACK_NS ? now_ns - SLACK_NS : 0;
}

uint64_t rt_in_refresh(
	struct ringtap_capture *cap, struct rt_in *in, uint64_t now_ns, uint64_t mono_ns)
{
	const struct rt_source *s = &cap->sources[in->source];
	const struct rt_seg_ring *pub = &s->seg.rings[in->index];
	/* Pairs with the release in rt_ring_end(): if busy is 0, the head read below includes all
	 * records before that. */
	uint32_t busy = rt_load_acquire(&pub->busy);
	uint64_t last_ns = rt_load_acquire(&pub->last_ns);
	/* Pairs with the release in rt_ring_publish(): records before it are complete. */
	uint64_t head = rt_load_acquire(&pub->head);

	if (head - in->pos > in->size || head < in->head || head % 4) {
		/* Records published before were valid. */
		rt_capture_corrupt(cap, in, "impossible head");
		return 0;
	}
	in->head = head;
	in->now_ns = now_ns;
	if (s->dead || s->stopped)
		return RT_FOREVER;
	if (!busy) {
		in->busy_since_ns = 0;
		return rt_source_mark(s, now_ns);
	}
	if (!in->busy_since_ns || in->busy_head != head || in->busy_last_ns != last_ns) {
		in->busy_since_ns = mono_ns;
		in->busy_head = head;
		in->busy_last_ns = last_ns;
	}
	return mono_ns - in->busy_since_ns > rt_reader_limits.hold_ns ? RT_FOREVER : last_ns;
}

/* The ring of this index, before anything was read. */
static void rt_in_init(
	struct rt_in *in, const struct rt_segment *seg, uint32_t source, uint32_t index)
{
	*in = (struct rt_in){.data = seg->data,
		.order = seg->orders + (size_t)index * seg->h.order_count,
		.size = seg->h.chunk_size * seg->h.chunk_count,
		.mask = seg->h.chunk_size - 1,
		.shift = (uint32_t)__builtin_ctzll(seg->h.chunk_size),
		.chunk_count = seg->h.chunk_count,
		.order_mask = seg->h.order_count - 1,
		.source = source,
		.index = index};
}

static bool is_known(const struct rt_source *s, uint32_t ring)
{
	return rt_load(&s->rings[ring / 64]) >> ring % 64 & 1;
}

bool rt_rings_due(const struct ringtap_capture *cap)
{
	bool due = false;

	for (uint32_t i = 0; i < cap->source_count; i++) {
		const struct rt_source *s = &cap->sources[i];

		for (uint32_t w = 0; w < RT_MAX_RINGS / 64 && w * 64 < s->seg.h.ring_count; w++)
			due |= rt_load_acquire(&s->seg.live->used[w]) & ~rt_load(&s->rings[w]);
	}
	return due;
}

static void follow_source(struct ringtap_capture *cap, uint32_t source)
{
	struct rt_source *s = &cap->sources[source];

	for (uint32_t r = rt_segment_ring_next(&s->seg, 0); r < s->seg.h.ring_count;
		r = rt_segment_ring_next(&s->seg, r + 1)) {
		uint32_t i = cap->in_count;

		if (is_known(s, r) || i == cap->in_room)
			continue;
		rt_in_init(&cap->ins[i], &s->seg, source, r);
		if (cap->retention && !rt_retain_ring(cap, i))
			continue; /* the next call tries again */
		rt_store(&s->rings[r / 64], s->rings[r / 64] | 1ull << r % 64);
		rt_store_release(&cap->in_count, i + 1);
	}
}

void rt_rings_follow(struct ringtap_capture *cap)
{
	if (!rt_rings_due(cap))
		return;
	if (cap->window) {
		rt_window_follow(cap);
		return;
	}
	for (uint32_t i = 0; i < cap->source_count; i++)
		follow_source(cap, i);
}

/* ---- chunks ---- */

static inline const uint8_t *at_pos(const struct rt_in *in, uint64_t pos)
{
	return in->chunk + (pos & in->mask);
}

/* Returns where the published part of the chunk at pos ends. */
static inline uint64_t stop_of(const struct rt_in *in)
{
	return in->head < in->end ? in->head : in->end;
}

static inline bool is_chunk_end(const struct rt_in *in, uint64_t pos)
{
	uint32_t type;

	memcpy(&type, at_pos(in, pos), sizeof(type));
	return type == RT_CHUNK_END;
}

/* Finds the chunk of in->pos, and goes on to the next one from an end. NULL, or what is wrong. */
static const char *settle(struct rt_in *in)
{
	while (in->pos < in->head) {
		if (rt_unlikely(in->pos >= in->end)) {
			uint64_t number = in->pos >> in->shift;
			uint32_t id = rt_load(&in->order[number & in->order_mask]);

			if (id >= in->chunk_count)
				return "impossible chunk";
			in->chunk = in->data + ((uint64_t)id << in->shift);
			in->end = (number + 1) << in->shift;
		}
		if (rt_likely(!is_chunk_end(in, in->pos)))
			return NULL;
		if (in->head < in->end)
			return "a chunk ends before its end";
		in->pos = in->end;
	}
	return NULL;
}

/* ---- walking ---- */

/* Small records: every line holds one. */
static inline void fetch_lines(struct rt_in *in, uint64_t pos)
{
	uint64_t to = pos + FETCH_AHEAD;

	if (to > stop_of(in))
		to = stop_of(in);
	if (in->fetched < pos)
		in->fetched = pos & ~(uint64_t)(RT_CACHE_LINE - 1);
	for (; in->fetched < to; in->fetched += RT_CACHE_LINE)
		__builtin_prefetch(at_pos(in, in->fetched), 0, 3);
}

/* Large records: only their ends are read. Their places are predicted from the length of the last
 * record. */
static inline void fetch_ends(const struct rt_in *in, uint64_t pos, uint32_t last_len)
{
	uint64_t at = pos + (uint64_t)FETCH_RECORDS * last_len;
	const uint8_t *p = at_pos(in, at - 4);

	if (at + RT_EPB_HEADER > stop_of(in))
		return;
	__builtin_prefetch(p, 0, 3);
	__builtin_prefetch(p + RT_EPB_HEADER + 3, 0, 3);
}

/* NULL, or why a reader of the file would reject the record at pos. */
static inline const char *inspect(const struct rt_in *in, uint64_t pos, struct rt_record *r)
{
	const uint8_t *at = at_pos(in, pos);
	const char *why = rt_record_read(at, stop_of(in) - pos, r);
	uint32_t trailer;

	if (rt_unlikely(why != NULL))
		return why;
	memcpy(&trailer, at + r->len - 4, 4);
	return rt_likely(trailer == r->len) ? NULL : "lengths disagree";
}

/* The record at pos is invalid, so the next one cannot be found. */
static void end_ring(struct ringtap_capture *cap, struct rt_in *in, const char *why)
{
	rt_capture_corrupt(cap, in, why);
	in->head = in->pos;
}

/* The sort key of a record: its time, but not before that of its predecessor. A time far ahead (a
 * NIC clock in TAI, a replayed file) would block the ring until then: the current time is used
 * instead. */
static inline uint64_t later(uint64_t key, uint64_t ns, uint64_t now_ns)
{
	if (rt_unlikely(ns > now_ns + AHEAD_NS))
		ns = now_ns;
	return ns > key ? ns : key;
}

/* Makes a run of the records from in->pos on whose times are up to limit. */
static void take_run(struct ringtap_capture *cap, struct rt_in *in, uint64_t limit,
	uint64_t max_bytes, struct ringtap_run *run)
{
	uint32_t known = cap->sources[in->source].if_known;
	uint64_t pos = in->pos, key = in->key, last = cap->emitted_ns;
	const uint64_t stop = stop_of(in);
	uint32_t last_len = 0;
	const char *why = NULL;

	*run = (struct ringtap_run){.size = sizeof(*run),
		.records = at_pos(in, pos),
		.form = RT_FORM_EPB,
		.first_ns = key,
		.app = in->source,
		.ring = (uint32_t)(in - cap->ins),
		.stale = pos < in->stale};
	if (rt_unlikely(run->stale) && max_bytes > in->stale - pos)
		max_bytes = in->stale - pos;
	in->keyed = false;
	while (pos < stop && pos - in->pos < max_bytes) {
		struct rt_record c;

		if (last_len < FETCH_LARGE)
			fetch_lines(in, pos);
		else
			fetch_ends(in, pos, last_len);
		why = inspect(in, pos, &c);
		if (rt_unlikely(why != NULL)) {
			if (is_chunk_end(in, pos))
				why = NULL; /* peek() goes on */
			break;
		}
		if (rt_unlikely(c.if_index >= known)) {
			if (!rt_capture_learn_if(cap, in->source, c.if_index)) {
				why = "unknown interface";
				break;
			}
			known = cap->sources[in->source].if_known;
		}
		key = later(key, c.ns, in->now_ns);
		if (key > limit) {
			in->keyed = true;
			break;
		}
		if (rt_unlikely(c.ns < last))
			cap->reordered++;
		else
			last = c.ns;
		pos += c.len;
		last_len = c.len;
		run->packets++;
	}
	run->bytes = pos - in->pos;
	run->interfaces = cap->source_count > 1 ? cap->sources[in->source].if_ids : NULL;
	run->interface_count = known;
	run->last_ns = last;
	in->pos = pos;
	in->key = key;
	cap->emitted_ns = last;
	cap->delivered += run->packets;
	if (why)
		end_ring(cap, in, why);
}

/* Reads the time of the record at pos. False: no record, or a corrupt one. */
static bool peek(struct ringtap_capture *cap, struct rt_in *in)
{
	struct rt_record c;
	const char *why;

	if (in->pos >= in->head)
		return false;
	if (in->keyed)
		return true;
	why = settle(in);
	if (!why && in->pos >= in->head)
		return false;
	why = why ?: inspect(in, in->pos, &c);
	if (why) {
		end_ring(cap, in, why);
		return false;
	}
	in->key = later(in->key, c.ns, in->now_ns);
	in->keyed = true;
	return true;
}

void rt_in_skip(struct ringtap_capture *cap, struct rt_in *in, uint64_t from_ns)
{
	struct rt_record c;

	while (peek(cap, in) && in->key < from_ns) {
		if (inspect(in, in->pos, &c))
			return; /* it has just become invalid: reported when it is read again */
		in->pos += c.len;
		in->keyed = false;
	}
}

/* The rings that have records: with hundreds of idle rings, checking all of them for each run costs
 * more than the runs. */
static struct rt_in *gather(struct ringtap_capture *cap)
{
	struct rt_in *list = NULL, **end = &list;

	for (uint32_t i = 0; i < cap->in_count; i++) {
		if (cap->ins[i].pos >= cap->ins[i].head)
			continue;
		*end = &cap->ins[i];
		end = &cap->ins[i].next;
	}
	*end = NULL;
	return list;
}

/* The ring with the earliest record, and the earliest time of the other rings. Removes empty rings
 * from the list. */
static struct rt_in *earliest(struct ringtap_capture *cap, struct rt_in **list, uint64_t *next)
{
	struct rt_in *first = NULL;

	*next = RT_FOREVER;
	while (*list) {
		struct rt_in *in = *list;

		if (!peek(cap, in)) {
			*list = in->next;
			continue;
		}
		list = &in->next;
		if (!first || in->key < first->key) {
			if (first)
				*next = first->key;
			first = in;
		} else if (in->key < *next) {
			*next = in->key;
		}
	}
	return first;
}

unsigned rt_merge(
	struct ringtap_capture *cap, uint64_t watermark, struct ringtap_run *runs, unsigned max)
{
	struct rt_in *list = gather(cap);
	uint64_t left = cap->batch_bytes;
	unsigned n = 0;

	cap->dry = false;
	while (n < max && left) {
		uint64_t next;
		struct rt_in *in = earliest(cap, &list, &next);

		if (!in || in->key > watermark) {
			cap->dry = true;
			break;
		}
		take_run(cap, in, next < watermark ? next : watermark, left, &runs[n]);
		left -= runs[n].bytes < left ? runs[n].bytes : left;
		/* An empty run: the application has changed a published record. Retried in the next
		 * call. */
		if (!runs[n].packets) {
			cap->dry = true;
			break;
		}
		n++;
	}
	return n;
}
