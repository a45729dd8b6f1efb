/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics' event, crypto and DMA devices, and the usage of lcores. */
#include <string.h>

#include <rte_common.h>

#include "common/ipc.h"
#include "probe/dpdk/devices.h"
#include "probe/dpdk/lcores.h"
#include "refresh.h"

struct walk {
	struct rt_stats *f;
	uint64_t now_ns;
	uint32_t next; /* this entry is expected, as libraries keep their order */
	uint32_t beyond;
	bool seen[RT_STAT_DEVICES];
};

static uint32_t known(const struct rt_stats *f)
{
	return RTE_MIN(f->header->device_count, (uint32_t)RT_STAT_DEVICES);
}

static bool is_of(const struct rt_stat_device *e, const struct rt_device_stat *s)
{
	return e->kind == s->kind && e->part == s->part && e->id == s->id &&
	       e->number == s->number && !strncmp(e->name, s->name, sizeof(e->name) - 1) &&
	       !strncmp(e->device, s->device, sizeof(e->device) - 1);
}

/* NULL: there is no room for it. */
static struct rt_stat_device *entry_of(struct walk *w, const struct rt_device_stat *s)
{
	uint32_t n = known(w->f);
	struct rt_stat_device *e;

	for (uint32_t i = 0; i < n; i++) {
		e = &w->f->devices[(w->next + i) % n];
		if (is_of(e, s))
			return e;
	}
	if (n == RT_STAT_DEVICES)
		return NULL;
	e = &w->f->devices[n];
	memset(e, 0, sizeof(*e));
	rt_str_set(e->device, sizeof(e->device), s->device);
	rt_str_set(e->name, sizeof(e->name), s->name);
	e->kind = s->kind;
	e->part = s->part;
	e->id = s->id;
	e->number = s->number;
	/* Pairs with the acquire in take_count(). */
	rt_store_release(&w->f->header->device_count, n + 1);
	return e;
}

static void take(const struct rt_device_stat *s, void *arg)
{
	struct walk *w = arg;
	struct rt_stat_device *e = entry_of(w, s);
	uint32_t i = e ? (uint32_t)(e - w->f->devices) : 0;

	/* The first of two with one name is shown. */
	if (!e || w->seen[i]) {
		w->beyond++;
		return;
	}
	w->seen[i] = true;
	w->next = i + 1;
	rt_stat_show(&e->read_ns, &e->value, s->value, w->now_ns);
	rt_store(&e->state, RT_IF_PRESENT);
}

void rt_stats_refresh_devices(struct rt_stats *f, uint64_t now_ns)
{
	struct walk w = {.f = f, .now_ns = now_ns};
	uint32_t unread;

	if (rt_devices_each(take, &w, &unread))
		rt_store(&f->header->devices_beyond, w.beyond + unread);
	for (uint32_t i = 0; i < known(f); i++)
		if (!w.seen[i])
			rt_store(&f->devices[i].state, RT_IF_GONE);
}

/* ---- lcores */

struct lcores {
	struct rt_stats *f;
	uint64_t now_ns;
	bool seen[RT_STAT_LCORES];
};

static void show(unsigned lcore, uint64_t total, uint64_t busy, void *arg)
{
	struct lcores *l = arg;
	struct rt_stat_lcore *e;

	if (lcore >= RT_STAT_LCORES)
		return;
	l->seen[lcore] = true;
	e = &l->f->lcores[lcore];
	/* Pairs with the fence in read_values(). */
	rt_store(&e->read_ns, 0);
	rt_fence_release();
	rt_store(&e->total_cycles, total);
	rt_store(&e->busy_cycles, busy);
	rt_store_release(&e->read_ns, l->now_ns);
	/* Pairs with the acquire in take_count(). */
	if (lcore >= l->f->header->lcore_count)
		rt_store_release(&l->f->header->lcore_count, lcore + 1);
}

void rt_stats_refresh_lcores(struct rt_stats *f, uint64_t now_ns)
{
	struct lcores l = {.f = f, .now_ns = now_ns};

	rt_lcores_each(show, &l);
	for (uint32_t i = 0; i < RTE_MIN(f->header->lcore_count, (uint32_t)RT_STAT_LCORES); i++)
		if (!l.seen[i])
			rt_store(&f->lcores[i].read_ns, 0);
}
