/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the statistics of a polling thread, which may write them meanwhile. */
#include <stdlib.h>

#include "common/atomics.h"
#include "monitor_state.h"

#define OPEN_NS 100000000ull /* shorter gaps are reported when they have ended */
#define TRIES   8            /* to read a consistent copy; the last one is used in any case */

typedef uint64_t __attribute__((may_alias)) word;

void rt_copy_words(void *dst, const void *src, size_t bytes)
{
	const word *from = src;
	word *to = dst;

	for (size_t i = 0; i < bytes / sizeof(word); i++)
		to[i] = rt_load_acquire(&from[i]);
}

static uint64_t rt_ticks_ns(uint64_t ticks, uint64_t tsc_hz)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000000u / tsc_hz);
}

static void read_cycles(const struct rt_stat_thread *t, bool lasts, struct ringtap_thread_stats *o)
{
	uint64_t since, now;
	uint32_t busy;

	for (int i = 0; i < TRIES; i++) {
		since = rt_load_acquire(&t->since_tsc);
		busy = rt_load_acquire(&t->is_busy);
		o->busy_cycles = rt_load_acquire(&t->busy_cycles);
		o->idle_cycles = rt_load_acquire(&t->idle_cycles);
		now = rt_tsc();
		if (since && rt_load(&t->since_tsc) == since)
			break;
	}
	if (!lasts || !since || now <= since)
		return;
	*(busy ? &o->busy_cycles : &o->idle_cycles) += now - since;
}

static bool copy_gap(const struct rt_stat_gap *from, struct rt_stat_gap *to)
{
	rt_copy_words(to, from, sizeof(*to));
	return to->cycles && rt_load(&from->cycles) == to->cycles;
}

static bool copy_burst(const struct rt_stat_burst *from, struct rt_stat_burst *to)
{
	rt_copy_words(to, from, sizeof(*to));
	return to->packets && rt_load(&from->packets) == to->packets;
}

static void add_gap(const struct ringtap_monitor *mon, uint64_t tsc_hz, const struct rt_stat_gap *g,
	struct rt_thread *o)
{
	o->gaps[o->pub.gap_count++] =
		(struct ringtap_gap){.start_ns = rt_clock_ns(&mon->line, g->tsc),
			.cycles = g->cycles,
			.ns = rt_ticks_ns(g->cycles, tsc_hz),
			.packets = g->packets,
			.port = g->port_index < mon->port_count ? g->port_index : RINGTAP_NO_INDEX,
			.queue = g->queue};
}

static void add_burst(const struct ringtap_monitor *mon, uint64_t tsc_hz,
	const struct rt_stat_burst *b, struct rt_thread *o)
{
	o->microbursts[o->pub.microburst_count++] =
		(struct ringtap_microburst){.start_ns = rt_clock_ns(&mon->line, b->tsc),
			.cycles = b->cycles,
			.ns = rt_ticks_ns(b->cycles, tsc_hz),
			.packets = b->packets};
}

/* Skips a window that was restarted meanwhile. */
static void add_window(const struct ringtap_monitor *mon, uint64_t tsc_hz,
	const struct rt_stat_window *w, uint32_t number, struct rt_thread *o)
{
	uint32_t gaps = o->pub.gap_count, bursts = o->pub.microburst_count;
	struct rt_stat_burst burst;
	struct rt_stat_gap gap;

	for (int i = 0; i < RT_STAT_WORST; i++) {
		if (copy_gap(&w->gap[i], &gap))
			add_gap(mon, tsc_hz, &gap, o);
		if (copy_burst(&w->burst[i], &burst))
			add_burst(mon, tsc_hz, &burst, o);
	}
	if (rt_load(&w->number) == number)
		return;
	o->pub.gap_count = gaps;
	o->pub.microburst_count = bursts;
}

static int longer_first(const void *a, const void *b)
{
	uint64_t x = ((const struct ringtap_gap *)a)->cycles;
	uint64_t y = ((const struct ringtap_gap *)b)->cycles;

	return (x < y) - (x > y);
}

static int more_first(const void *a, const void *b)
{
	uint64_t x = ((const struct ringtap_microburst *)a)->packets;
	uint64_t y = ((const struct ringtap_microburst *)b)->packets;

	return (x < y) - (x > y);
}

static void read_poll(const struct ringtap_monitor *mon, const struct rt_stat_thread *t,
	uint64_t tsc_hz, struct ringtap_thread_stats *o)
{
	uint64_t looked, tsc = 0;

	for (int i = 0; i < TRIES; i++) {
		looked = rt_load_acquire(&t->looked_tsc);
		tsc = rt_load(&t->poll_tsc);
		o->last_poll_packets = rt_load(&t->poll_packets);
		o->last_poll_port = rt_load(&t->poll_port);
		o->last_poll_queue = rt_load(&t->poll_queue);
		o->last_poll_holds = o->last_poll_packets && rt_load(&t->poll_holds);
		rt_fence_acquire(); /* pairs with the one in look_at_poll() */
		if (looked && rt_load(&t->looked_tsc) == looked)
			break;
		tsc = 0;
	}
	if (o->last_poll_port >= mon->port_count)
		o->last_poll_port = RINGTAP_NO_INDEX;
	o->last_poll_ns = tsc ? rt_clock_ns(&mon->line, tsc) : 0;
	o->quiet_ns = tsc && looked > tsc ? rt_ticks_ns(looked - tsc, tsc_hz) : 0;
}

/* The gap that lasts. */
static void add_open(uint64_t tsc_hz, struct rt_thread *o)
{
	const struct ringtap_thread_stats *t = &o->pub;

	if (t->quiet_ns < OPEN_NS)
		return;
	o->gaps[o->pub.gap_count++] = (struct ringtap_gap){.start_ns = t->last_poll_ns,
		.cycles = (uint64_t)((double)t->quiet_ns * (double)tsc_hz / 1e9),
		.ns = t->quiet_ns,
		.packets = t->last_poll_packets,
		.port = t->last_poll_port,
		.queue = t->last_poll_queue,
		.open = true};
}

/* Windows of a thread that has stopped polling may be old: they do not count. */
static void read_worst(const struct ringtap_monitor *mon, const struct rt_stat_thread *t,
	uint64_t tsc_hz, struct rt_thread *o)
{
	o->pub.gap_count = o->pub.microburst_count = 0;
	for (int i = 0; i < RT_STAT_WINDOWS; i++) {
		const struct rt_stat_window *w = &t->window[i];
		uint32_t number = rt_load_acquire(&w->number);

		if (number && mon->newest_window - number < RT_STAT_WINDOWS)
			add_window(mon, tsc_hz, w, number, o);
	}
	add_open(tsc_hz, o);
	qsort(o->gaps, o->pub.gap_count, sizeof(o->gaps[0]), longer_first);
	qsort(o->microbursts, o->pub.microburst_count, sizeof(o->microbursts[0]), more_first);
}

uint32_t rt_newest_window(const struct rt_stats *stats, uint32_t slots)
{
	uint32_t newest = 0;

	for (uint32_t t = 0; t < slots; t++) {
		for (int i = 0; i < RT_STAT_WINDOWS; i++) {
			uint32_t number = rt_load(&stats->threads[t].window[i].number);

			newest = number > newest ? number : newest;
		}
	}
	return newest;
}

static void read_kernel(const struct rt_stat_thread *t, struct ringtap_thread_stats *o)
{
	o->lcore = rt_load(&t->lcore);
	o->tid = rt_load(&t->tid);
	o->cpu = rt_load(&t->cpu);
	o->cpu_ns = rt_load(&t->cpu_ns);
	o->wait_ns = rt_load(&t->wait_ns);
	o->preempted = rt_load(&t->preempted);
	o->read_ns = rt_load(&t->read_ns);
	rt_copy_text(o->name, t->name, sizeof(o->name));
}

static_assert(sizeof(((struct rt_stat_thread *)0)->gaps_busy) ==
		      sizeof(((struct ringtap_thread_stats *)0)->gaps_busy),
	"same histogram");
static_assert(sizeof(((struct rt_stat_thread *)0)->busy_period_packets) ==
		      sizeof(((struct ringtap_thread_stats *)0)->busy_period_packets),
	"same histogram");

bool rt_thread_read(
	const struct ringtap_monitor *mon, uint32_t slot, uint64_t tsc_hz, struct rt_thread *out)
{
	struct ringtap_thread_stats *o = &out->pub;
	const struct rt_stat_thread *t = &mon->stats.threads[slot];
	bool busy_on = rt_load(&mon->stats.live->collectors) & RT_COLLECT_BUSY;

	for (int i = 0; i < TRIES; i++) {
		/* Pairs with the release in introduce(), by the thread that took the slot. */
		uint32_t generation = rt_load_acquire(&t->generation);

		if (!generation)
			return false;
		o->slot = slot;
		o->generation = generation;
		o->alive = !mon->dead && rt_load(&t->alive);
		read_kernel(t, o);
		read_cycles(t, o->alive && busy_on, o);
		o->busy_periods = rt_load(&t->busy_periods);
		rt_copy_words(o->busy_period_packets, t->busy_period_packets,
			sizeof(o->busy_period_packets));
		rt_copy_words(o->gaps_busy, t->gaps_busy, sizeof(o->gaps_busy));
		rt_copy_words(o->gaps_idle, t->gaps_idle, sizeof(o->gaps_idle));
		read_poll(mon, t, tsc_hz, o);
		read_worst(mon, t, tsc_hz, out);
		if (rt_load(&t->generation) == generation)
			return true;
	}
	return false;
}
