/* SPDX-License-Identifier: BSD-3-Clause */
/* The first and the last readings of an interval: probes read drivers and kernel twice a second. */
#include "base/signals.h"
#include "watch.h"

#define SETTLE_NS  (NS_PER_S / 50)
#define THREADS_NS (5 * NS_PER_S) /* for threads that are known, on a machine that is busy */

/* How long its first readings may take, from the beginning of the interval; 0: they are there. */
static uint64_t settling_ns(const struct watched *a)
{
	const struct ringtap_snapshot *f = a->now;

	if (!f || a->ended)
		return 0;
	for (uint32_t i = 0; i < f->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(f, i);

		/* Not t->alive: the probe sets it in the same step as read_ns. */
		if (t->tid && !t->read_ns)
			return THREADS_NS;
	}
	/* Drivers are read in primary processes only. */
	for (uint32_t i = 0; i < f->port_count && !a->secondary; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(f, i);
		uint64_t before =
			i < a->mark->port_count ? ringtap_snapshot_port(a->mark, i)->read_ns : 0;

		if (!p->gone && (!p->read_ns || p->read_ns == before))
			return NS_PER_S;
	}
	/* An application that does not poll never shows a thread. */
	return f->thread_count ? 0 : NS_PER_S;
}

void watch_settle(struct watch *w)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), most = NS_PER_S;

	while (now_ns(CLOCK_MONOTONIC) - begin < most && !stop_wait(SETTLE_NS)) {
		most = 0;
		watch_step(w);
		for (size_t i = 0; i < w->count; i++) {
			uint64_t ns = settling_ns(w->list[i]);

			most = ns > most ? ns : most;
		}
	}
}

/* Whether what was read before the interval has been read in it. */
static bool is_complete(const struct watched *a)
{
	const struct ringtap_snapshot *f = a->now, *m = a->mark;

	if (!f || a->ended)
		return true;
	for (uint32_t i = 0; i < f->port_count && i < m->port_count && !a->secondary; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(f, i);

		if (p->read_ns && p->read_ns == ringtap_snapshot_port(m, i)->read_ns && !p->gone &&
			!p->stopped_ns)
			return false;
	}
	for (uint32_t i = 0; i < f->thread_count && i < m->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(f, i);

		if (t->read_ns && t->read_ns == ringtap_snapshot_thread(m, i)->read_ns && t->alive)
			return false;
	}
	return true;
}

void watch_complete(struct watch *w)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + NS_PER_S;

	for (;;) {
		bool complete = true;

		for (size_t i = 0; i < w->count; i++)
			complete = is_complete(w->list[i]) && complete;
		if (complete || now_ns(CLOCK_MONOTONIC) >= until || stop_wait(SETTLE_NS))
			return;
		watch_step(w);
	}
}
