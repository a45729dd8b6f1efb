/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where packets leave that no hook gets. ethdev calls no callbacks of a stopped port, whose
 * functions refuse all packets; and a queue that appears while the session runs has no callback
 * until the control thread finds it. A packet that was received before such a time ended, and whose
 * mbuf comes back after it began, may have been sent there.
 *
 * Hooks notice the beginning themselves, by ethdev's public table of functions: the control thread
 * would be late. They look once a burst, and only if a packet of it seems to be not offered. The
 * end is what the control thread notes, when all queues have their taps, or the port runs again.
 */
#include <rte_ethdev.h>

#include "common/clock.h"
#include "fate.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/ports.h"

/* rt_fates.followed, by port id: the port's generation in the upper half. */
#define FOLLOWED 1u /* each TX queue has a tap, or the session does not want the port */
#define USED     2u /* the application has sent to it */

static uint64_t pack(uint32_t generation, uint32_t bits)
{
	return (uint64_t)generation << 32 | bits;
}

/* 0 for the port before with this id. */
static uint32_t bits_of(const struct rt_fates *f, uint16_t port)
{
	/* Pairs with the release in rt_fates_follow(): when the last doubt ended is set. */
	uint64_t v = rt_load_acquire(&f->followed[port]);

	return v >> 32 == rt_port_generation(port) ? (uint32_t)v : 0;
}

uint32_t rt_fates_doubts(struct rt_fates *f)
{
	uint32_t doubts = 0;

	for (uint16_t p = 0; p < rt_ports_top(); p++) {
		uint32_t bits = bits_of(f, p);

		if (!rt_port_stopped(p))
			doubts |= bits & FOLLOWED ? 0 : RT_DOUBT_UNSEEN;
		else
			doubts |= bits & USED ? RT_DOUBT_STOPPED : 0;
	}
	/* It may be over before the control thread looks. */
	if (doubts & RT_DOUBT_UNSEEN)
		rt_store(&f->unseen_tsc, rt_tsc());
	if (doubts & RT_DOUBT_STOPPED)
		rt_store(&f->stopped_tsc, rt_tsc());
	return doubts;
}

static const struct rt_session_if *find_if(const struct rt_session *s, uint16_t port)
{
	for (uint32_t i = 0; i < s->if_count; i++) {
		const struct rt_session_if *f = &s->ifs[i];

		if (!f->gone && f->port.port_id == port &&
			f->generation == rt_port_generation(port))
			return f;
	}
	return NULL;
}

static bool is_wanted(const struct rt_session *s, uint16_t port)
{
	for (uint32_t i = 0; i < s->target_count; i++) {
		if (rt_target_matches(port, &s->targets[i]))
			return true;
	}
	return false;
}

/* By the driver's counters, where the port was stopped before the session began. */
static bool was_sent_to(const struct rt_session *s, const struct rt_session_if *f)
{
	if (f->counted && (f->last[1] || f->nic[1]))
		return true;
	for (uint32_t i = 0; i < s->tap_count; i++) {
		const struct rt_tap *t = s->taps[i];

		if (t->hook && t->direction == RT_DIR_TX && &s->ifs[t->if_index] == f &&
			rt_thread_set_count(&t->hook->seen))
			return true;
	}
	return false;
}

static uint32_t find_bits(const struct rt_session *s, uint16_t port)
{
	const struct rt_session_if *f = find_if(s, port);

	if (!f)
		return rt_port_alive(port) && !is_wanted(s, port) ? FOLLOWED : 0;
	/* A stopped one may get more queues before it starts. */
	return (f->unhooked || rt_port_stopped(port) ? 0 : FOLLOWED) |
	       (was_sent_to(s, f) ? USED : 0);
}

void rt_fates_follow(struct rt_session *s, bool late, bool senders)
{
	struct rt_fates *f = s->fates;

	if (!late || senders)
		rt_store(&f->unseen_tsc, late ? rt_tsc() : 0);
	for (uint16_t p = 0; p < rt_ports_top(); p++) {
		uint32_t generation = rt_port_generation(p), bits = find_bits(s, p);

		rt_store_release(&f->followed[p], pack(generation, bits | (bits_of(f, p) & USED)));
	}
	rt_fates_watch(s);
}

/* A port that has stopped may start with more queues than it had. */
static void forget_stopped(struct rt_fates *f)
{
	for (uint16_t p = 0; p < rt_ports_top(); p++) {
		uint64_t v = rt_load(&f->followed[p]);

		if (v & FOLLOWED && rt_port_stopped(p))
			rt_store_release(&f->followed[p], v & ~(uint64_t)FOLLOWED);
	}
}

void rt_fates_watch(struct rt_session *s)
{
	struct rt_fates *f = s->fates;

	forget_stopped(f);
	(void)rt_fates_doubts(f);
	rt_store(&s->shm.header->fate_unseen_tsc, rt_load(&f->unseen_tsc));
	rt_store(&s->shm.header->fate_stopped_tsc, rt_load(&f->stopped_tsc));
}
