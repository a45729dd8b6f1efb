/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose the blocks of figures are. Indices that were given out stay what they are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/atomics.h"
#include "monitor.h"

/* So many threads that never had a block are remembered; more must not push out those that have. */
#define BLOCKLESS_MAX (4 * RT_FIG_THREADS)

static uint32_t find(const struct ringtap_monitor *mon, uint32_t slot, uint32_t life)
{
	/* From the end: the youngest are asked for most. */
	for (uint32_t i = mon->thread_count; i-- > 0;) {
		if (mon->threads[i]->slot == slot && mon->threads[i]->life == life)
			return i;
	}
	return RINGTAP_NO_INDEX;
}

static int add(struct ringtap_monitor *mon, uint32_t slot, uint32_t life, uint32_t *index)
{
	struct ringtap_figures_thread *t;

	if (mon->thread_count == RT_MON_THREADS)
		return -EBADMSG; /* a block changed hands */
	if (!mon->threads)
		mon->threads = calloc(RT_MON_THREADS, sizeof(*mon->threads));
	t = mon->threads ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return -ENOMEM;
	t->slot = slot;
	t->life = life;
	t->lcore = UINT32_MAX;
	*index = mon->thread_count;
	mon->threads[mon->thread_count++] = t;
	return 0;
}

/* The thread that a block belongs to. It may be gone, and its slot another's. */
static int owner_thread(struct ringtap_monitor *mon, uint32_t slot, uint32_t life, uint32_t *index)
{
	if (slot >= RT_FIG_THREADS || !life)
		return -EBADMSG;
	*index = find(mon, slot, life);
	return *index == RINGTAP_NO_INDEX ? add(mon, slot, life, index) : 0;
}

static int meet_hook(struct ringtap_monitor *mon, const struct rt_fig_hook *h, struct rt_owner *o)
{
	o->port = rt_load(&h->port_index);
	o->queue = rt_load(&h->queue);
	o->direction = rt_load(&h->direction);
	if (o->port >= mon->port_count || o->direction > RT_DIR_TX)
		return -EBADMSG;
	return owner_thread(mon, rt_load(&h->thread), rt_load(&h->life), &o->thread);
}

static int meet_pair(struct ringtap_monitor *mon, const struct rt_fig_pair *p, struct rt_owner *o)
{
	uint16_t rx = rt_load(&p->rx_index);

	o->rx_port = rx == UINT16_MAX ? RINGTAP_NO_INDEX : rx;
	o->port = rt_load(&p->tx_index);
	if (o->port >= mon->port_count || (rx != UINT16_MAX && rx >= mon->port_count))
		return -EBADMSG;
	return owner_thread(mon, rt_load(&p->thread), rt_load(&p->life), &o->thread);
}

static int meet_blocks(struct ringtap_monitor *mon)
{
	const struct rt_figures *f = &mon->fig;
	int ret = 0;

	for (uint32_t i = 0; i < mon->hook_count && !ret; i++) {
		if (!mon->hooks[i].known)
			ret = meet_hook(mon, &f->hooks[i], &mon->hooks[i]);
		mon->hooks[i].known = !ret;
	}
	for (uint32_t i = 0; i < mon->pair_count && !ret; i++) {
		if (!mon->pairs[i].known)
			ret = meet_pair(mon, &f->pairs[i], &mon->pairs[i]);
		mon->pairs[i].known = !ret;
	}
	for (uint32_t i = 0; i < mon->sampler_count && !ret; i++) {
		if (!mon->samplers[i].known)
			ret = owner_thread(mon, rt_load(&f->samplers[i].thread),
				rt_load(&f->samplers[i].life), &mon->samplers[i].thread);
		mon->samplers[i].known = !ret;
	}
	return ret;
}

static uint32_t blockless(const struct ringtap_monitor *mon)
{
	/* Every block may have a thread of its own. */
	uint32_t owned = mon->hook_count + mon->pair_count + mon->sampler_count;

	return mon->thread_count > owned ? mon->thread_count - owned : 0;
}

/* Cycles never go back, though the stretch that lasts is estimated. */
static void take_over(struct ringtap_figures_thread *t, const struct ringtap_figures_thread *now)
{
	uint64_t busy = t->busy_cycles, idle = t->idle_cycles;

	*t = *now;
	if (t->busy_cycles < busy)
		t->busy_cycles = busy;
	if (t->idle_cycles < idle)
		t->idle_cycles = idle;
}

static int meet_thread(struct ringtap_monitor *mon, const struct ringtap_figures_thread *now)
{
	uint32_t i = find(mon, now->slot, now->life);
	int ret = 0;

	if (i == RINGTAP_NO_INDEX) {
		if (blockless(mon) >= BLOCKLESS_MAX)
			return 0;
		ret = add(mon, now->slot, now->life, &i);
	}
	if (!ret)
		take_over(mon->threads[i], now);
	return ret;
}

static uint32_t at_most(uint32_t v, uint32_t max)
{
	return v < max ? v : max;
}

/* Never fewer than before: indices that were given out stay valid. */
static void take_count(uint32_t *count, uint32_t live, uint32_t max)
{
	live = at_most(live, max);
	*count = live > *count ? live : *count;
}

int rt_who_update(struct ringtap_monitor *mon, uint64_t tsc_hz)
{
	const struct rt_fig_header *live = mon->fig.live;
	struct ringtap_figures_thread now;
	int ret;

	/* Acquires; pair with the probe's releases. A block's port and thread were there before it,
	 * so the blocks come first. */
	take_count(&mon->hook_count, rt_load_acquire(&live->hook_count), RT_FIG_HOOKS);
	take_count(&mon->pair_count, rt_load_acquire(&live->pair_count), RT_FIG_PAIRS);
	take_count(&mon->sampler_count, rt_load_acquire(&live->sampler_count), RT_FIG_SAMPLERS);
	take_count(&mon->port_count, rt_load_acquire(&live->port_count), RT_FIG_PORTS);
	take_count(&mon->pool_count, rt_load_acquire(&live->pool_count), RT_FIG_POOLS);
	mon->newest_window = rt_newest_window(&mon->fig);
	for (uint32_t i = 0; i < mon->thread_count; i++)
		mon->threads[i]->alive = false;
	ret = meet_blocks(mon);
	for (uint32_t slot = 0; slot < RT_FIG_THREADS && !ret; slot++) {
		if (rt_thread_read(mon, slot, tsc_hz, &now))
			ret = meet_thread(mon, &now);
	}
	return ret;
}
