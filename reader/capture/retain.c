/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeping packets: the reader gives space back late, oldest first, in whole chunks.
 *
 * Nothing is read but the times of the first record in a chunk and of the newest one. Rings take
 * chunks from those that no ring has, and give back what is before the tail when they begin another
 * chunk (docs/format.md). A ring that writes must always find one: some chunks, the margin, are
 * kept free beside those that the probe reserves. From a ring that begins no other chunk the probe
 * takes them back some time later; until then they count as used, and the rings that write go round
 * in what they have.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/record.h"
#include "reader/export.h"
#include "reader/tunables.h"
#include "retain.h"
#include "window.h"

/* A look takes place every millisecond at least: room for many at any rate of packets. */
#define MARGIN_SHARE 16u           /* share of the chunks */
#define MARGIN_BYTES (64ull << 20) /* at least, but a quarter of the chunks at most */

void rt_retain_lock(struct ringtap_capture *cap)
{
	if (cap->retention)
		pthread_mutex_lock(&cap->retention->lock);
}

void rt_retain_unlock(struct ringtap_capture *cap)
{
	if (cap->retention)
		pthread_mutex_unlock(&cap->retention->lock);
}

int rt_retain_begin(struct ringtap_capture *cap)
{
	struct rt_retention *r;

	if (cap->retention)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	pthread_mutex_init(&r->lock, NULL);
	cap->retention = r;
	r->rings = calloc(cap->in_room + 1, sizeof(*r->rings));
	for (uint32_t i = 0; i < cap->in_count && r->rings; i++) {
		if (!rt_retain_ring(cap, i)) {
			rt_retain_end(cap);
			break;
		}
	}
	if (cap->retention && r->rings)
		return 0;
	rt_retain_end(cap);
	return rt_capture_fail(cap, -ENOMEM, "not enough memory");
}

bool rt_retain_ring(struct ringtap_capture *cap, uint32_t i)
{
	struct rt_kept_ring *k = &cap->retention->rings[i];
	const struct rt_in *in = &cap->ins[i];

	k->first_ns = calloc(in->order_mask + 1ull, sizeof(*k->first_ns));
	k->known = k->oldest = k->last = k->seen = in->tail >> in->shift;
	return k->first_ns;
}

void rt_retain_end(struct ringtap_capture *cap)
{
	struct rt_retention *r = cap->retention;

	if (!r)
		return;
	for (uint32_t i = 0; r->rings && i < cap->in_room; i++)
		free(r->rings[i].first_ns);
	free(r->rings);
	pthread_mutex_destroy(&r->lock);
	free(r);
	cap->retention = NULL;
}

/* ---- what the rings have ---- */

/* The time of the first record of chunk n, which head is past. */
static uint64_t first_of(struct ringtap_capture *cap, const struct rt_in *in, uint64_t n)
{
	uint32_t id = rt_load(&in->order[n & in->order_mask]);
	uint64_t begin = n << in->shift, left = in->head - begin;
	struct rt_record r;

	if (left > in->mask + 1)
		left = in->mask + 1;
	if (id >= in->chunk_count ||
		rt_record_read(in->data + ((uint64_t)id << in->shift), left, &r)) {
		rt_capture_corrupt(cap, in, "a chunk does not begin with a packet");
		return 0;
	}
	return r.ns > in->now_ns ? in->now_ns : r.ns;
}

/* A ring that has begun no chunk for long has lost what was before the tail then. */
static void take_back(struct rt_kept_ring *k)
{
	uint64_t now = rt_mono_ns();

	if (!k->writes && now - k->still_ns < rt_reader_limits.still_ns)
		return;
	if (!k->writes && k->still > k->floor)
		k->floor = k->still;
	k->still_ns = now;
	k->still = k->oldest;
}

/* Current values of the probe. */
static uint64_t chunks_at_most(const struct rt_segment *seg, const uint32_t *field)
{
	uint32_t n = rt_load(field);

	return n < seg->h.chunk_count ? n : seg->h.chunk_count;
}

static void take_over(struct ringtap_capture *cap, const struct rt_in *in, struct rt_kept_ring *k)
{
	const struct rt_segment *seg = &cap->sources[in->source].seg;
	/* It may have changed since the last look. */
	uint64_t window = chunks_at_most(seg, &seg->live->window), before = k->window;
	uint64_t last = in->head >> in->shift, begun = last - k->last;
	uint64_t back = k->floor + begun * RT_CHUNKS_BACK;

	k->window = window;
	window = window > before ? window : before;
	/* Nor does it go below its window. */
	if (back + window > last)
		back = last > window ? last - window : 0;

	k->writes = begun > 0;
	/* When it began a chunk, the ring gave back what is before the tail, except for one. The
	 * tail of the last look may have come too late for that, the one before has not. */
	if (back > k->seen - 1)
		back = k->seen - 1;
	if (begun && k->seen && back > k->floor)
		k->floor = back;
	k->seen = k->oldest;
	k->last = last;
	take_back(k);
	while (k->known << in->shift < in->head && !cap->corrupt) {
		k->first_ns[k->known & in->order_mask] = first_of(cap, in, k->known);
		k->known++;
	}
}

/* Chunks that the ring has, at most. */
static uint64_t owned(const struct rt_kept_ring *k)
{
	return k->known ? k->last - k->floor + 1 : 0;
}

/* Chunks that it needs: those that are kept, and the one that it writes next. */
static uint64_t needed(const struct rt_kept_ring *k)
{
	return k->last - k->oldest + 2;
}

/* ---- what goes ---- */

/* The first chunk that a window has not released yet, or the one that is being written. */
static uint64_t pinned(const struct ringtap_capture *cap, uint32_t ring)
{
	uint64_t n = cap->retention->rings[ring].last;

	for (const struct rt_window *w = cap->retention->windows; w; w = w->next) {
		/* Pairs with the release in rt_window_release(): it has finished reading. */
		uint64_t at = rt_load_acquire(&w->pins[ring]) >> cap->ins[ring].shift;

		n = at < n ? at : n;
	}
	return n;
}

static void give_back(struct ringtap_capture *cap, uint32_t ring, uint64_t oldest)
{
	struct rt_in *in = &cap->ins[ring];

	cap->retention->rings[ring].oldest = oldest;
	in->tail = in->pos = oldest << in->shift;
	/* Pairs with the acquire in rt_ring_refresh(): nothing before it is read any more. */
	rt_store_release(&cap->sources[in->source].seg.tails[in->index].tail, in->tail);
}

/* The ring of a source whose oldest chunk is the oldest of all and may go; in_count: none. */
static uint32_t oldest_of(const struct ringtap_capture *cap, uint32_t source)
{
	uint32_t found = cap->in_count;
	uint64_t least = RT_FOREVER;

	for (uint32_t i = 0; i < cap->in_count; i++) {
		const struct rt_kept_ring *k = &cap->retention->rings[i];
		uint64_t ns = k->first_ns[k->oldest & cap->ins[i].order_mask];

		if (cap->ins[i].source != source || k->oldest >= k->last || k->oldest >= k->known ||
			ns >= least || k->oldest >= pinned(cap, i))
			continue;
		least = ns;
		found = i;
	}
	return found;
}

/* Oldest first, until the rings of the source need no more than the limit. sum: they need now. */
static void give_back_oldest(
	struct ringtap_capture *cap, uint32_t source, uint64_t sum, uint64_t limit)
{
	for (; sum > limit; sum--) {
		uint32_t i = oldest_of(cap, source);

		if (i == cap->in_count)
			return;
		give_back(cap, i, cap->retention->rings[i].oldest + 1);
	}
}

/* Others have chunks that they neither need nor give back: a ring that writes goes round in its
 * own. */
static void give_back_own(struct ringtap_capture *cap, uint32_t ring, uint64_t room)
{
	const struct rt_kept_ring *k = &cap->retention->rings[ring];
	uint64_t to = k->floor + 1 + room, end = pinned(cap, ring);

	if (to > end)
		to = end;
	if (k->writes && to > k->oldest)
		give_back(cap, ring, to);
}

/* Packets older than the limit: chunks whose successor begins before it. */
static void give_back_old(struct ringtap_capture *cap, uint32_t ring, uint64_t keep_ns)
{
	const struct rt_kept_ring *k = &cap->retention->rings[ring];
	const struct rt_in *in = &cap->ins[ring];
	uint64_t to = k->oldest, end;

	while (to + 1 < k->known && k->first_ns[(to + 1) & in->order_mask] + keep_ns < in->now_ns)
		to++;
	if (to == k->oldest)
		return;
	end = pinned(cap, ring);
	to = to < end ? to : end;
	if (to > k->oldest)
		give_back(cap, ring, to);
}

static void retain_source(struct ringtap_capture *cap, uint32_t source)
{
	const struct rt_segment *seg = &cap->sources[source].seg;
	uint64_t reserve = chunks_at_most(seg, &seg->live->reserve),
		 count = cap->sources[source].there / seg->h.chunk_size;
	uint64_t margin = count / MARGIN_SHARE, has = 0, needs = 0;
	uint64_t keep_ns = rt_load(&cap->keep_ns);

	if (margin < MARGIN_BYTES / seg->h.chunk_size)
		margin = MARGIN_BYTES / seg->h.chunk_size;
	if (margin > count / 4)
		margin = count / 4;
	if (reserve > count / 4)
		reserve = count / 4;
	for (uint32_t i = 0; i < cap->in_count; i++) {
		if (cap->ins[i].source != source)
			continue;
		if (keep_ns)
			give_back_old(cap, i, keep_ns);
		needs += needed(&cap->retention->rings[i]);
	}
	give_back_oldest(cap, source, needs, count - reserve - margin);
	for (uint32_t i = 0; i < cap->in_count; i++)
		has += cap->ins[i].source == source ? owned(&cap->retention->rings[i]) : 0;
	for (uint32_t i = 0; i < cap->in_count && has + reserve + margin / 2 >= count; i++) {
		if (cap->ins[i].source == source)
			give_back_own(cap, i, margin / 4 + 1);
	}
}

void rt_retain(struct ringtap_capture *cap)
{
	struct rt_retention *r = cap->retention;
	uint32_t over = 0;

	for (uint32_t i = 0; i < cap->in_count && !cap->corrupt; i++)
		take_over(cap, &cap->ins[i], &r->rings[i]);
	for (uint32_t i = 0; i < cap->source_count && !cap->corrupt; i++) {
		if (!cap->sources[i].dead && !cap->sources[i].stopped)
			retain_source(cap, i);
	}
	for (uint32_t i = 0; i < cap->source_count; i++)
		over |= (uint32_t)(cap->sources[i].dead || cap->sources[i].stopped) << i;
	/* Pairs with the acquire in rt_window_sync(). */
	rt_store_release(&r->over, cap->corrupt ? UINT32_MAX : over);
}

/* ---- reports ---- */

uint64_t rt_retain_since(const struct ringtap_capture *cap)
{
	uint64_t since = 0;

	for (uint32_t i = 0; i < cap->in_count; i++) {
		const struct rt_kept_ring *k = &cap->retention->rings[i];
		const struct rt_in *in = &cap->ins[i];
		uint64_t ns;

		if (!k->oldest)
			continue;
		if (k->oldest < k->known)
			ns = k->first_ns[k->oldest & in->order_mask];
		else /* nothing is left of it: since its last packet */
			ns = rt_load(&cap->sources[in->source].seg.rings[in->index].last_ns);
		if (ns > in->now_ns)
			ns = in->now_ns;
		since = ns > since ? ns : since;
	}
	return since;
}

EXPORT void ringtap_capture_keep_for(struct ringtap_capture *cap, uint64_t ns)
{
	rt_store(&cap->keep_ns, ns);
}

/* The time of the last record; that of the last burst may be later, as a burst may be lost. A head
 * at the beginning of a chunk has no record in it yet. */
static uint64_t last_of(const struct ringtap_capture *cap, const struct rt_in *in)
{
	uint64_t last_ns = rt_load(&cap->sources[in->source].seg.rings[in->index].last_ns);
	uint64_t end = in->head & in->mask;
	uint32_t id = rt_load(&in->order[in->head >> in->shift & in->order_mask]), len;
	const uint8_t *chunk;
	struct rt_record r;

	last_ns = last_ns < in->now_ns ? last_ns : in->now_ns;
	if (end < RT_EPB_MIN || id >= in->chunk_count)
		return last_ns;
	chunk = in->data + ((uint64_t)id << in->shift);
	memcpy(&len, chunk + end - sizeof(len), sizeof(len));
	if (len > end || len % 4 || rt_record_read(chunk + end - len, len, &r))
		return last_ns;
	return r.ns < in->now_ns ? r.ns : in->now_ns;
}

EXPORT int ringtap_capture_kept(struct ringtap_capture *cap, struct ringtap_kept *out)
{
	struct ringtap_capture *of = cap->window ? cap->window->of : cap;
	struct ringtap_kept v = {0};

	if (!of->retention)
		return -EINVAL;
	rt_retain_lock(of);
	v.since_ns = cap->window ? cap->window->since_ns : rt_retain_since(of);
	for (uint32_t i = 0; i < of->in_count; i++) {
		const struct rt_in *in = &of->ins[i];
		uint64_t ns = in->head > in->tail ? last_of(of, in) : 0;

		v.bytes += in->head - in->tail;
		if (ns > v.newest_ns)
			v.newest_ns = ns;
	}
	for (uint32_t i = 0; i < of->source_count; i++) {
		const struct rt_source *s = &of->sources[i];

		/* Also while it still grows. */
		v.buffer_size +=
			s->growth_error[0] ? s->there : s->seg.h.chunk_size * s->seg.h.chunk_count;
	}
	rt_retain_unlock(of);
	return rt_copy_out(out, &v, sizeof(v));
}
