/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: a capture that reads a part of what another one keeps.
 *
 * It has positions and a merge of its own, and shares memory and connections with the capture that
 * it was made of; only that one receives messages. What it has not released yet is pinned there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "reader/export.h"
#include "retain.h"
#include "window.h"

/* The last chunk that begins at from_ns or before; the oldest if there is none. */
static uint64_t chunk_before(const struct rt_in *in, const struct rt_kept_ring *k, uint64_t from_ns)
{
	uint64_t n = k->known;

	while (n > k->oldest + 1) {
		n--;
		if (k->first_ns[n & in->order_mask] <= from_ns)
			return n;
	}
	return k->oldest;
}

/* Takes over the rings of the other one that this one lacks, in the same order. Under the lock. */
static void place_rings(struct ringtap_capture *cap, const struct ringtap_capture *of)
{
	for (uint32_t i = cap->in_count; i < of->in_count; i++) {
		const struct rt_in *in = &of->ins[i];
		uint64_t n = chunk_before(in, &of->retention->rings[i], cap->window->from_ns);
		uint64_t pos = n << in->shift;

		cap->ins[i] = *in;
		cap->ins[i].pos = cap->ins[i].tail = pos > in->tail ? pos : in->tail;
		cap->ins[i].end = 0;
		cap->ins[i].key = 0;
		cap->ins[i].keyed = false;
		cap->ins[i].next = NULL;
		rt_store_release(&cap->window->pins[i], cap->ins[i].pos); /* as below */
	}
	rt_store_release(&cap->in_count, of->in_count);
	for (uint32_t i = 0; i < of->source_count; i++)
		memcpy(cap->sources[i].rings, of->sources[i].rings, sizeof(of->sources[i].rings));
}

/* The thread that keeps packets may be late: this one must not pass the first records of a ring
 * that the other one does not know yet. Until then the ring is pinned at its beginning. */
void rt_window_follow(struct ringtap_capture *cap)
{
	struct ringtap_capture *of = cap->window->of;

	rt_retain_lock(of);
	rt_rings_follow(of);
	place_rings(cap, of);
	rt_retain_unlock(of);
}

/* Copies what has become known of interfaces. Under the lock. False: no memory. */
static bool copy_ifs(struct ringtap_capture *cap, const struct ringtap_capture *of)
{
	struct rt_if_ref *ifs = realloc(cap->ifs, (of->if_count + 1) * sizeof(*ifs));

	if (!ifs)
		return false;
	cap->ifs = ifs;
	memcpy(ifs, of->ifs, of->if_count * sizeof(*ifs));
	for (uint32_t i = 0; i < of->source_count; i++) {
		const struct rt_source *from = &of->sources[i];

		memcpy(cap->sources[i].if_ids, from->if_ids,
			from->if_known * sizeof(*from->if_ids));
		cap->sources[i].if_known = from->if_known;
	}
	cap->if_count = of->if_count;
	return true;
}

static bool copy_sources(struct ringtap_capture *cap, const struct ringtap_capture *of)
{
	cap->sources = calloc(of->source_count + 1, sizeof(*cap->sources));
	if (!cap->sources)
		return false;
	for (uint32_t i = 0; i < of->source_count; i++) {
		cap->sources[i] = of->sources[i];
		cap->sources[i].if_ids = calloc(RT_MAX_IFS, sizeof(uint32_t));
		cap->sources[i].filtering = false;
		cap->sources[i].started = true; /* by the other one */
		cap->source_count = i + 1;
		if (!cap->sources[i].if_ids)
			return false;
	}
	return true;
}

static void free_window(struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->source_count; i++)
		free(cap->sources[i].if_ids);
	if (cap->wake_fd >= 0)
		close(cap->wake_fd);
	free(cap->window->pins);
	free(cap->window);
	free(cap->sources);
	free(cap->ins);
	free(cap->ifs);
	free(cap);
}

/* A window without packets yet. NULL: no memory. */
static struct ringtap_capture *make(struct ringtap_capture *of)
{
	struct ringtap_capture *cap = calloc(1, sizeof(*cap));

	if (!cap)
		return NULL;
	cap->window = calloc(1, sizeof(*cap->window));
	if (!cap->window) {
		free(cap);
		return NULL;
	}
	cap->batch_bytes = of->batch_bytes;
	cap->nap_max_ns = of->nap_max_ns;
	cap->lag_bytes = of->lag_bytes;
	cap->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cap->in_room = of->in_room;
	cap->ins = calloc(of->in_room + 1, sizeof(*cap->ins));
	cap->window->of = of;
	cap->window->pins = calloc(of->in_room + 1, sizeof(*cap->window->pins));
	return cap;
}

EXPORT int ringtap_capture_window(
	struct ringtap_capture *of, uint64_t from_ns, uint64_t to_ns, struct ringtap_capture **out)
{
	struct ringtap_capture *cap;
	bool good;

	*out = NULL;
	if (!of->retention)
		return -EINVAL;
	cap = make(of);
	if (!cap)
		return -ENOMEM;
	cap->window->from_ns = from_ns;
	cap->window->to_ns = to_ns;
	rt_retain_lock(of);
	good = cap->ins && cap->window->pins && copy_sources(cap, of) && copy_ifs(cap, of);
	if (good) {
		cap->window->since_ns = rt_retain_since(of);
		place_rings(cap, of);
		cap->window->next = of->retention->windows;
		of->retention->windows = cap->window;
	}
	rt_retain_unlock(of);
	if (good && cap->wake_fd >= 0) {
		*out = cap;
		return 0;
	}
	if (good) {
		rt_window_close(cap);
		return -EMFILE;
	}
	free_window(cap);
	return -ENOMEM;
}

void rt_window_close(struct ringtap_capture *cap)
{
	struct ringtap_capture *of = cap->window->of;

	rt_retain_lock(of);
	for (struct rt_window **p = &of->retention->windows; *p; p = &(*p)->next) {
		if (*p == cap->window) {
			*p = cap->window->next;
			break;
		}
	}
	rt_retain_unlock(of);
	free_window(cap);
}

void rt_window_sync(struct ringtap_capture *cap)
{
	/* Pairs with the release in rt_retain(): what a producer has left is visible. */
	uint32_t over = rt_load_acquire(&cap->window->of->retention->over);

	for (uint32_t i = 0; i < cap->source_count; i++)
		cap->sources[i].stopped |= over >> i & 1;
}

unsigned rt_window_next(
	struct ringtap_capture *cap, uint64_t watermark, struct ringtap_run *runs, unsigned max)
{
	const struct rt_window *w = cap->window;
	unsigned n;

	for (uint32_t i = 0; i < cap->in_count; i++) {
		if (cap->ins[i].key < w->from_ns)
			rt_in_skip(cap, &cap->ins[i], w->from_ns);
	}
	n = rt_merge(cap, watermark < w->to_ns ? watermark : w->to_ns, runs, max);
	/* Nothing that comes belongs to it. */
	for (uint32_t i = 0; i < cap->source_count && !n && watermark > w->to_ns; i++)
		cap->sources[i].stopped = true;
	return n;
}

void rt_window_release(struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->in_count && cap->window; i++) {
		cap->ins[i].tail = cap->ins[i].pos;
		/* Pairs with the acquire in pinned(). */
		rt_store_release(&cap->window->pins[i], cap->ins[i].pos);
	}
}

bool rt_window_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local)
{
	struct ringtap_capture *of = cap->window->of;
	bool known;

	rt_retain_lock(of);
	known = rt_capture_learn_if(of, source, local) && copy_ifs(cap, of);
	rt_retain_unlock(of);
	return known;
}
