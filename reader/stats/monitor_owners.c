/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the owners of statistics blocks. Indices in snapshots never change. */
#include <errno.h>

#include "common/atomics.h"
#include "monitor_state.h"

static uint32_t at_most(uint32_t v, uint32_t max)
{
	return v < max ? v : max;
}

/* Never decreases, as indices in snapshots stay valid. The acquire pairs with the releases in
 * add_port(), rt_stats_refresh_pools(), entry_of() of xstats and devices, show() of lcores and
 * supply_threads(). */
static void take_count(uint32_t *count, const uint32_t *live, uint32_t max)
{
	uint32_t now = at_most(rt_load_acquire(live), max);

	*count = now > *count ? now : *count;
}

/* A block's port was published before the block. */
static bool known_port(struct ringtap_monitor *mon, uint32_t index)
{
	if (index >= mon->port_count)
		take_count(&mon->port_count, &mon->stats.live->port_count, RT_STAT_PORTS);
	return index < mon->port_count;
}

/* So was its thread. */
static int owner_thread(struct ringtap_monitor *mon, uint32_t slot, uint32_t *index)
{
	if (slot >= RT_STAT_THREADS || !rt_load_acquire(&mon->stats.threads[slot].generation))
		return -EBADMSG;
	if (!mon->slot_met[slot]) {
		mon->slot_met[slot] = true;
		mon->slot_thread[slot] = mon->thread_count;
		mon->threads[mon->thread_count++].pub.slot = slot;
	}
	*index = mon->slot_thread[slot];
	return 0;
}

static int meet_hook(struct ringtap_monitor *mon, uint32_t block, struct rt_owner *o)
{
	const struct rt_stat_hook *h = &mon->stats.hooks[block];

	if (!rt_load_acquire(&h->generation)) /* pairs with rt_stat_claim_block() */
		return -EAGAIN;
	o->port = rt_load(&h->port_index);
	o->queue = rt_load(&h->queue);
	o->direction = rt_load(&h->direction);
	if (!known_port(mon, o->port) || o->direction > RT_DIR_TX)
		return -EBADMSG;
	return owner_thread(mon, rt_load(&h->thread), &o->thread);
}

static int meet_pair(struct ringtap_monitor *mon, uint32_t block, struct rt_owner *o)
{
	const struct rt_stat_pair *p = &mon->stats.pairs[block];
	uint16_t rx;

	if (!rt_load_acquire(&p->generation)) /* the same */
		return -EAGAIN;
	rx = rt_load(&p->rx_index);
	o->rx_port = rx == UINT16_MAX ? RINGTAP_NO_INDEX : rx;
	o->port = rt_load(&p->tx_index);
	o->size = rt_load(&p->size);
	o->queue = rt_load(&p->tx_queue);
	if (!known_port(mon, o->port) || (rx != UINT16_MAX && !known_port(mon, rx)))
		return -EBADMSG;
	return owner_thread(mon, rt_load(&p->thread), &o->thread);
}

static int meet_sampler(struct ringtap_monitor *mon, uint32_t block, struct rt_owner *o)
{
	const struct rt_stat_sampler *s = &mon->stats.samplers[block];

	if (!rt_load_acquire(&s->generation)) /* the same */
		return -EAGAIN;
	return owner_thread(mon, rt_load(&s->thread), &o->thread);
}

static int meet_log(struct ringtap_monitor *mon, uint32_t block, struct rt_owner *o)
{
	const struct rt_stat_log *l = &mon->stats.logs[block];

	if (!rt_load_acquire(&l->generation)) /* the same */
		return -EAGAIN;
	return owner_thread(mon, rt_load(&l->thread), &o->thread);
}

static int meet_all(struct ringtap_monitor *mon, struct rt_owner *owners, bool *met,
	uint32_t *met_count, uint32_t count,
	int (*meet)(struct ringtap_monitor *, uint32_t, struct rt_owner *))
{
	for (uint32_t i = 0; i < count; i++) {
		struct rt_owner o = {.block = i};
		int ret;

		if (met[i])
			continue;
		ret = meet(mon, i, &o);
		if (ret == -EAGAIN) /* not complete yet */
			continue;
		if (ret)
			return ret;
		met[i] = true;
		owners[(*met_count)++] = o;
	}
	return 0;
}

/* Cycles never decrease, although the current period is estimated. */
static void take_over(struct rt_thread *t, const struct rt_thread *now)
{
	uint64_t busy = t->pub.busy_cycles, idle = t->pub.idle_cycles;

	*t = *now;
	if (t->pub.busy_cycles < busy)
		t->pub.busy_cycles = busy;
	if (t->pub.idle_cycles < idle)
		t->pub.idle_cycles = idle;
}

static int meet_blocks(struct ringtap_monitor *mon)
{
	const struct rt_stat_header *live = mon->stats.live;
	uint32_t hooks = at_most(rt_load(&live->hook_count), RT_STAT_HOOKS);
	uint32_t pairs = at_most(rt_load(&live->pair_count), RT_STAT_PAIRS);
	uint32_t samplers = at_most(rt_load(&live->sampler_count), RT_STAT_SAMPLERS);
	int ret;

	ret = meet_all(mon, mon->queues, mon->hook_met, &mon->queue_count, hooks, meet_hook);
	if (!ret)
		ret = meet_all(mon, mon->pairs, mon->pair_met, &mon->pair_count, pairs, meet_pair);
	if (!ret)
		ret = meet_all(mon, mon->samplers, mon->sampler_met, &mon->sampler_count, samplers,
			meet_sampler);
	if (!ret && mon->stats.logs)
		ret = meet_all(mon, mon->logs, mon->log_met, &mon->log_count,
			at_most(rt_load(&live->log_count), RT_STAT_LOGS), meet_log);
	return ret;
}

int rt_owners_update(struct ringtap_monitor *mon, uint64_t tsc_hz)
{
	struct rt_thread now;
	uint32_t index;
	int ret;

	/* Before ports, which are complete before they have any xstat. */
	if (mon->stats.xstats)
		take_count(&mon->xstat_count, &mon->stats.live->xstat_count, RT_STAT_XSTATS);
	if (mon->stats.devices)
		take_count(&mon->device_count, &mon->stats.live->device_count, RT_STAT_DEVICES);
	if (mon->stats.lcores)
		take_count(&mon->lcore_count, &mon->stats.live->lcore_count, RT_STAT_LCORES);
	take_count(&mon->port_count, &mon->stats.live->port_count, RT_STAT_PORTS);
	take_count(&mon->pool_count, &mon->stats.live->pool_count, RT_STAT_POOLS);
	if (mon->stats.rings)
		take_count(&mon->ring_count, &mon->stats.live->ring_count, RT_STAT_RINGS);
	take_count(&mon->slot_count, &mon->stats.live->thread_count, RT_STAT_THREADS);
	mon->newest_window = rt_newest_window(&mon->stats, mon->slot_count);
	ret = meet_blocks(mon);
	for (uint32_t slot = 0; slot < mon->slot_count && !ret; slot++) {
		if (!rt_thread_read(mon, slot, tsc_hz, &now))
			continue;
		ret = owner_thread(mon, slot, &index);
		if (!ret)
			take_over(&mon->threads[index], &now);
	}
	return ret;
}
