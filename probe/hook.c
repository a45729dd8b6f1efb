/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "figures.h"
#include "hook_burst.h"

/* A callback out of ethdev's list that a thread may still be walking over. */
struct limbo {
	struct limbo *next;
	void *callback;
};

#define LIMBO_PATIENCE 60 /* times rt_limbo_ms, for threads that do not come again */

uint64_t rt_limbo_ms = 10000;

static struct rt_hook **hooks[RTE_MAX_ETHPORTS][2]; /* by queue */
/* Unlinked since the last grace period began, and what that period is for. */
static uint64_t limbo_since_ms;
static struct limbo *limbo_new, *limbo_old;
static struct rt_tapset *sets_new, *sets_old;
static struct rt_grace limbo_grace, sets_grace;

struct rt_hook *rt_hook_get(uint16_t port, uint16_t queue, enum rt_direction dir)
{
	struct rt_hook ***table = &hooks[port][dir], *h;

	if (!*table)
		*table = calloc(RTE_MAX_QUEUES_PER_PORT, sizeof(**table));
	if (!*table)
		return NULL;
	h = (*table)[queue];
	if (!h) {
		h = aligned_alloc(RT_CACHE_LINE, sizeof(*h));
		if (!h)
			return NULL;
		*h = (struct rt_hook){.port = port, .queue = queue, .direction = dir};
		(*table)[queue] = h;
	}
	return h;
}

#ifdef __SANITIZE_THREAD__
/* A callback reaches a polling thread through ethdev's list: released there, and everything behind
 * the hook depends on the pointer. ThreadSanitizer cannot look into that library. */
#include <sanitizer/tsan_interface.h>

static uint16_t seen_rx(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *hook)
{
	__tsan_acquire(hook);
	return rt_hook_rx(port, queue, pkts, n, max, hook);
}

static uint16_t seen_tx(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *hook)
{
	__tsan_acquire(hook);
	return rt_hook_tx(port, queue, pkts, n, hook);
}

#define ON_RX seen_rx
#define ON_TX seen_tx
#else
#define __tsan_release(p) (void)(p)
#define ON_RX             rt_hook_rx
#define ON_TX             rt_hook_tx
#endif

int rt_hook_use(struct rt_hook *h)
{
	if (h->users++ || h->callback) /* ethdev may have refused to let the last one go */
		return 0;
	__tsan_release(h);
	/* Nearest to the driver on both ways: what others change, they change behind us. */
	if (h->direction == RT_DIR_RX)
		h->callback = rte_eth_add_first_rx_callback(h->port, h->queue, ON_RX, h);
	else
		h->callback = rte_eth_add_tx_callback(h->port, h->queue, ON_TX, h);
	if (h->callback)
		return 0;
	h->users--;
	return -rte_errno;
}

/* Takes the callback out of ethdev's list. ethdev refuses where the port is gone or has fewer
 * queues now; the callback then stays linked, harmless, until the queue is back. */
static void remove_callback(struct rt_hook *h)
{
	struct limbo *l = malloc(sizeof(*l));
	int ret;

	if (!l)
		return; /* stays linked: tried again later */
	if (h->direction == RT_DIR_RX)
		ret = rte_eth_remove_rx_callback(h->port, h->queue, h->callback);
	else
		ret = rte_eth_remove_tx_callback(h->port, h->queue, h->callback);
	if (ret) {
		free(l);
		return;
	}
	l->callback = (void *)(uintptr_t)h->callback;
	h->callback = NULL;
	l->next = limbo_new;
	limbo_new = l;
}

void rt_hook_unuse(struct rt_hook *h)
{
	if (--h->users == 0 && h->callback)
		remove_callback(h);
}

static void replace(struct rt_hook *h, struct rt_tapset *set)
{
	struct rt_tapset *old = h->taps;

	/* Pairs with the acquire in hook_burst.c: the set is complete when it is seen. */
	rt_store_release(&h->taps, set);
	rt_fig_look_again();
	if (!old)
		return;
	old->next_free = sets_new;
	sets_new = old;
}

static void add(struct rt_tapset *set, struct rt_tap *tap)
{
	set->tap[set->count++] = tap;
	if (!tap->wait)
		set->wait_from = set->count;
}

int rt_hook_link(struct rt_hook *h, struct rt_tap *tap)
{
	struct rt_tapset *set;

	if (h->taps && h->taps->count == RT_HOOK_TAPS)
		return -ENOSPC;
	set = calloc(1, sizeof(*set));
	tap->spare = calloc(1, sizeof(*tap->spare));
	if (!set || !tap->spare) {
		free(set);
		free(tap->spare);
		tap->spare = NULL;
		return -ENOMEM;
	}
	/* Taps that wait come last, so that nobody else waits with them. */
	for (uint32_t i = 0; h->taps && i < h->taps->wait_from; i++)
		add(set, h->taps->tap[i]);
	if (!tap->wait)
		add(set, tap);
	for (uint32_t i = h->taps ? h->taps->wait_from : 0; h->taps && i < h->taps->count; i++)
		add(set, h->taps->tap[i]);
	if (tap->wait)
		add(set, tap);
	replace(h, set);
	return 0;
}

void rt_hook_unlink(struct rt_hook *h, struct rt_tap *tap)
{
	struct rt_tapset *set = tap->spare;

	tap->spare = NULL;
	for (uint32_t i = 0; i < h->taps->count; i++) {
		if (h->taps->tap[i] != tap)
			add(set, h->taps->tap[i]);
	}
	if (!set->count) {
		free(set);
		set = NULL;
	}
	replace(h, set);
}

static void free_sets(struct rt_tapset *set)
{
	while (set) {
		struct rt_tapset *next = set->next_free;

		free(set);
		set = next;
	}
}

static void reclaim_sets(void)
{
	if (sets_old && rt_grace_over(&sets_grace)) {
		free_sets(sets_old);
		sets_old = NULL;
	}
	if (!sets_old && sets_new) {
		sets_old = sets_new;
		sets_new = NULL;
		rt_grace_begin(&sets_grace);
	}
}

static void free_limbo(struct limbo *l)
{
	while (l) {
		struct limbo *next = l->next;

		rte_free(l->callback);
		free(l);
		l = next;
	}
}

/* ethdev reads callback->next after our function has returned: being outside of the hook is not
 * enough, the thread must have come in again. One that has never been here, or has no slot, may
 * have loaded the callback before it was removed, too: hence the time on top. And some threads
 * never come again: then only time is left, a long one. */
static void reclaim_callbacks(void)
{
	uint64_t age = rt_now_ms() - limbo_since_ms;

	if (limbo_old && age >= rt_limbo_ms &&
		(rt_grace_passed(&limbo_grace) || age >= LIMBO_PATIENCE * rt_limbo_ms)) {
		free_limbo(limbo_old);
		limbo_old = NULL;
	}
	if (!limbo_old && limbo_new) {
		limbo_old = limbo_new;
		limbo_new = NULL;
		limbo_since_ms = rt_now_ms();
		rt_grace_begin(&limbo_grace);
	}
}

void rt_hook_retry_removals(void)
{
	for (unsigned i = 0; i < RTE_MAX_ETHPORTS * 2; i++) {
		struct rt_hook **table = hooks[i / 2][i % 2];

		for (unsigned q = 0; table && q < RTE_MAX_QUEUES_PER_PORT; q++) {
			struct rt_hook *h = table[q];

			if (h && !h->users && h->callback && rt_port_alive(h->port))
				remove_callback(h);
		}
	}
}

bool rt_hook_reclaim(void)
{
	reclaim_sets();
	reclaim_callbacks();
	return !sets_old && !sets_new;
}

void rt_hook_set_clock(const struct rt_clock_line *line)
{
	rt_latch_publish(&rt_hook_clock, line);
}
