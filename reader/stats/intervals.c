/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the logs of polling gaps and busy periods. */
#include <errno.h>
#include <stdlib.h>

#include "common/atomics.h"
#include "reader/export.h"
#include "monitor_state.h"

static uint64_t written(const struct ringtap_monitor *mon, uint32_t block)
{
	/* Pairs with the release in log_interval(): entries below it are complete. */
	return rt_load_acquire(&mon->stats.logs[block].head);
}

void rt_intervals_skip(struct ringtap_monitor *mon)
{
	uint32_t count = rt_load(&mon->stats.live->log_count);

	for (uint32_t i = 0; i < count && i < RT_STAT_LOGS; i++)
		mon->log_read[i] = written(mon, i);
	mon->no_log_read = rt_load(&mon->stats.live->no_log_intervals);
}

/* Intervals since the last reading that found no log. */
static uint64_t without_log(struct ringtap_monitor *mon)
{
	uint64_t all = rt_load(&mon->stats.live->no_log_intervals), read = mon->no_log_read;

	mon->no_log_read = all;
	return all > read ? all - read : 0;
}

/* Nothing of an entry is trusted but that it is one. */
static bool convert(const struct ringtap_monitor *mon, uint32_t thread,
	const struct rt_stat_interval *v, struct ringtap_interval *to)
{
	uint64_t start = rt_clock_ns(&mon->line, v->tsc);

	*to = (struct ringtap_interval){.start_ns = start,
		.ns = rt_clock_ns(&mon->line, v->tsc + v->cycles) - start,
		.thread = thread,
		.packets = v->packets,
		.port = v->port_index < mon->port_count ? v->port_index : RINGTAP_NO_INDEX,
		.queue = v->queue,
		.kind = v->kind};
	return (int64_t)to->ns > 0 && (v->kind == RT_INTERVAL_GAP || v->kind == RT_INTERVAL_BUSY);
}

/* The entries of a log since the last reading, as far as they are there. Returns the number of
 * those that are not. */
static uint64_t read_log(
	struct ringtap_monitor *mon, const struct rt_owner *o, ringtap_interval_fn fn, void *ctx)
{
	static const uint64_t room = RT_STAT_INTERVALS;
	const struct rt_stat_log *l = &mon->stats.logs[o->block];
	uint64_t read = mon->log_read[o->block], head = written(mon, o->block), now;
	uint64_t from = head - read > room ? head - room : read;
	struct rt_stat_interval *entries = mon->log_entries;
	struct ringtap_interval v;

	for (uint64_t n = from; n != head; n++)
		rt_copy_words(&entries[n % room], &l->interval[n % room], sizeof(*entries));
	/* The thread may have written over the first ones meanwhile: it writes entry now. */
	now = written(mon, o->block);
	while (from != head && now - from >= room)
		from++;
	for (uint64_t n = from; n != head; n++)
		if (convert(mon, o->thread, &entries[n % room], &v))
			fn(ctx, &v);
	mon->log_read[o->block] = head;
	return from - read;
}

EXPORT int ringtap_monitor_intervals(
	struct ringtap_monitor *mon, ringtap_interval_fn fn, void *ctx, uint64_t *lost)
{
	if (mon->stats.logs)
		*lost += without_log(mon);
	if (!mon->log_count)
		return 0;
	if (!mon->log_entries)
		mon->log_entries = calloc(RT_STAT_INTERVALS, sizeof(*mon->log_entries));
	if (!mon->log_entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < mon->log_count; i++)
		*lost += read_log(mon, &mon->logs[i], fn, ctx);
	return 0;
}
