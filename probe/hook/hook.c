/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "probe/above.h"
#include "hook.h"
#include "common/proto.h"
#include "probe/dpdk/ports.h"
#include "thread.h"
#include "probe/now_ms.h"
#include "probe/dpdk/teardown.h"
#include "probe/tunables.h"

/* A callback that is no longer in ethdev's list, while a thread may still walk over it. */
struct rt_deferred {
	struct rt_deferred *next;
	struct rt_hook *hook;
	void *callback;
};

#define DEFERRED_MS \
	60 /* factor on rt_probe_limits.deferred_ms, for threads that never enter a hook again */

struct rt_hook **rt_hooks[RT_MAX_PORTS][2];
/* Unlinked since the last grace period began, and the sets that this period is for. */
static uint64_t deferred_since_ms;
static struct rt_deferred *deferred_new, *deferred_old;
static struct rt_tapset *sets_new, *sets_old;
static struct rt_grace deferred_grace, sets_grace;
/* Protects the table above, what hooks do, whether they are installed, and the two lists of new
 * entries. Taken after the control lock, and before ethdev's own lock of its callback lists. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* With priority inheritance: the application's thread may have a real-time priority, and share a
 * CPU with the control thread. */
static void make_lock(void)
{
	pthread_mutexattr_t attr;

	if (pthread_mutexattr_init(&attr))
		return;
	if (pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0)
		pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void acquire(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_lock);
	pthread_mutex_lock(&lock);
}

static void release(void)
{
	pthread_mutex_unlock(&lock);
}

struct rt_hook *rt_hook_get(uint16_t port, uint16_t queue, enum rt_direction dir)
{
	struct rt_hook **table = rt_hooks[port][dir], *h;

	if (!table) {
		table = calloc(RTE_MAX_QUEUES_PER_PORT, sizeof(*table));
		if (!table)
			return NULL;
		acquire();
		rt_store_release(&rt_hooks[port][dir], table); /* see rt_hook_find() */
		release();
	}
	h = table[queue];
	if (!h) {
		h = aligned_alloc(RT_CACHE_LINE, sizeof(*h));
		if (!h)
			return NULL;
		*h = (struct rt_hook){.port = port, .queue = queue, .direction = dir};
		acquire();
		rt_store_release(&table[queue], h); /* the same */
		release();
	}
	return h;
}

#ifdef __SANITIZE_THREAD__
/* A callback reaches a polling thread through ethdev's list: ethdev releases it there, and all
 * that lies behind the hook depends on the pointer. ThreadSanitizer does not instrument that
 * library. */
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

static const void *install(struct rt_hook *h)
{
	__tsan_release(h);
	/* Nearest to the driver in both directions: callbacks of the application change packets
	 * on the far side. */
	if (h->direction == RT_DIR_RX)
		return rte_eth_add_first_rx_callback(h->port, h->queue, ON_RX, h);
	return rte_eth_add_tx_callback(h->port, h->queue, ON_TX, h);
}

static void count_user(struct rt_hook *h, const void *callback, struct rt_deferred *parted)
{
	acquire();
	h->users++;
	if (callback) {
		h->callback = callback;
		h->parted = parted;
	}
	release();
}

int rt_hook_use(struct rt_hook *h)
{
	struct rt_deferred *parted;
	const void *callback;
	bool there;

	if (rt_teardown_late())
		return -ESHUTDOWN;
	acquire();
	/* The vhost library has no callbacks: vhost_burst.c calls each hook that there is. */
	there = rt_port_is_vhost(h->port) ||
		h->callback; /* ethdev may have refused to remove the last one */
	release();
	if (there) {
		count_user(h, NULL, NULL);
		return 0;
	}
	/* No other thread installs callbacks: the control lock is held. */
	parted = malloc(sizeof(*parted));
	if (!parted)
		return -ENOMEM;
	callback = install(h); /* may allocate huge pages: not under the lock */
	if (!callback) {
		free(parted);
		return -rte_errno;
	}
	count_user(h, callback, parted);
	return 0;
}

/* Removes the callback from ethdev's list; lock held. ethdev refuses where the port is gone or
 * has fewer queues now: the callback then stays linked, without effect, until the queue is back.
 * So it does where too many of the hook wait to be freed, which bounds what readers that come and
 * go take of DPDK's heap. After a late teardown it is not removed either, as DPDK may have unmapped
 * the list. */
static void remove_callback(struct rt_hook *h)
{
	int ret;

	if (h->waiting == RT_HOOK_WAITING || rt_teardown_late())
		return;
	if (h->direction == RT_DIR_RX)
		ret = rte_eth_remove_rx_callback(h->port, h->queue, h->callback);
	else
		ret = rte_eth_remove_tx_callback(h->port, h->queue, h->callback);
	if (ret)
		return;
	*h->parted = (struct rt_deferred){deferred_new, h, (void *)(uintptr_t)h->callback};
	h->callback = NULL;
	deferred_new = h->parted;
	h->parted = NULL;
	h->waiting++;
	h->removed_ms = rt_now_ms();
}

/* A second removal within rt_probe_limits.hook_rest_ms is left to rt_hook_remove_unused(), so that
 * users that follow each other find the callback in place. Lock held. */
static void remove_unused(struct rt_hook *h, bool at_once)
{
	if (!h->users && h->callback &&
		(at_once || rt_now_ms() - h->removed_ms >= rt_probe_limits.hook_rest_ms))
		remove_callback(h);
}

void rt_hook_unuse(struct rt_hook *h)
{
	acquire();
	h->users--;
	remove_unused(h, false);
	release();
}

/* Lock held. */
static void replace(struct rt_hook *h, struct rt_tapset *set)
{
	struct rt_tapset *old = h->taps;

	/* Pairs with the acquire in visit(), hook_burst.c: the set is complete before it is
	 * published. */
	rt_store_release(&h->taps, set);
	if (!old)
		return;
	old->next_free = sets_new;
	sets_new = old;
}

/* As `record --fates` makes it. */
static bool is_pair(const struct rt_tapset *set)
{
	const struct rt_tap *other;

	if (set->count != 2 || !set->only_fates || set->uses_ids)
		return false;
	other = set->tap[2 - set->only_fates];
	return other->nic_ts_offset < 0 && !other->sampled && !other->wait;
}

static void add(struct rt_tapset *set, struct rt_tap *tap)
{
	set->tap[set->count++] = tap;
	set->port = tap->port;
	set->gives_ids |= tap->ids && tap->direction == RT_DIR_RX;
	if (tap->ids & RT_IDS_FATES)
		set->only_fates = set->fates ? 0 : (uint8_t)set->count;
	set->fates |= tap->ids & RT_IDS_FATES;
	set->uses_ids |= tap->ids & RT_IDS_INFER && tap->direction == RT_DIR_TX;
	if (!tap->wait)
		set->wait_from = set->count;
	bool plain;

	set->sampled |= tap->sampled;
	set->pair = is_pair(set);
	plain = set->count == 1 && tap->nic_ts_offset < 0 && !set->gives_ids && !set->uses_ids &&
		!set->fates;
	set->only = plain && !tap->sampled ? tap->session : NULL;
	set->only_sampled = plain && tap->sampled && !tap->ids ? tap->session : NULL;
}

/* Lock held. */
static int link_tap(
	struct rt_hook *h, struct rt_tap *tap, struct rt_tapset *set, uint32_t generation)
{
	if (rt_port_generation(h->port) != generation)
		return -ENODEV;
	if (h->taps && h->taps->count == RT_HOOK_TAPS)
		return -ENOSPC;
	/* Taps that may wait come last, so that no other tap waits with them. */
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

int rt_hook_link(struct rt_hook *h, struct rt_tap *tap, uint32_t generation)
{
	struct rt_tapset *set = calloc(1, sizeof(*set));
	int ret = -ENOMEM;

	tap->spare = calloc(1, sizeof(*tap->spare));
	if (set && tap->spare) {
		acquire();
		ret = link_tap(h, tap, set, generation);
		release();
	}
	if (ret) {
		free(set);
		free(tap->spare);
		tap->spare = NULL;
		return ret;
	}
	rt_stat_look_again();
	return 0;
}

/* Lock held. Returns the set to free, if any. */
static struct rt_tapset *unlink_tap(
	struct rt_hook *h, const struct rt_tap *tap, struct rt_tapset *set)
{
	uint32_t count = h->taps ? h->taps->count : 0;

	for (uint32_t i = 0; i < count; i++) {
		if (h->taps->tap[i] != tap)
			add(set, h->taps->tap[i]);
	}
	if (set->count == count) /* cut off */
		return set;
	replace(h, set->count ? set : NULL);
	return set->count ? NULL : set;
}

void rt_hook_unlink(struct rt_hook *h, struct rt_tap *tap)
{
	struct rt_tapset *unneeded;

	acquire();
	unneeded = unlink_tap(h, tap, tap->spare);
	release();
	tap->spare = NULL;
	free(unneeded);
	rt_stat_look_again();
}

bool rt_hook_count(struct rt_hook *h, struct rt_stat_site *site, struct rt_stat_quick *column,
	uint32_t generation)
{
	bool same;

	acquire();
	same = rt_port_generation(h->port) == generation;
	if (same) {
		/* Pairs with the acquires in visit() and enter(), hook_burst.c. */
		rt_store_release(&h->stats, site);
		rt_store_release(&h->column, column);
	}
	release();
	return same;
}

void rt_hook_give_column(
	struct rt_hook *h, const struct rt_stat_site *site, struct rt_stat_quick *column)
{
	acquire();
	if (h->stats == site)
		rt_store_release(&h->column, column); /* as above */
	release();
}

/* Lock held. */
static void drop_stats(struct rt_hook *h)
{
	rt_store(&h->column, NULL);
	rt_store(&h->stats, NULL);
}

void rt_hook_uncount(struct rt_hook *h, const struct rt_stat_site *site)
{
	acquire();
	if (h->stats == site)
		drop_stats(h);
	release();
}

void rt_hook_cut(uint16_t port)
{
	acquire();
	for (unsigned i = 0; i < 2u * RTE_MAX_QUEUES_PER_PORT; i++) {
		struct rt_hook **table = rt_hooks[port][i % 2];
		struct rt_hook *h = table ? table[i / 2] : NULL;

		if (!h)
			continue;
		drop_stats(h);
		if (h->taps)
			replace(h, NULL);
		if (h->callback)
			remove_callback(h);
	}
	release();
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
	if (sets_old)
		return;
	acquire();
	sets_old = sets_new;
	sets_new = NULL;
	release();
	if (sets_old)
		rt_grace_begin(&sets_grace);
}

static void free_deferred(struct rt_deferred *l)
{
	acquire();
	for (struct rt_deferred *d = l; d; d = d->next)
		d->hook->waiting--;
	release();
	while (l) {
		struct rt_deferred *next = l->next;

		rte_free(l->callback);
		free(l);
		l = next;
	}
}

/* ethdev reads callback->next after our function has returned: to have left the hook is not
 * enough, the thread must have entered a hook again. A thread that has never entered one, or has
 * no slot, may also have loaded the callback before its removal: hence the additional time.
 * Threads that never enter a hook again leave only the time, a long one. */
static void reclaim_callbacks(void)
{
	uint64_t age = rt_now_ms() - deferred_since_ms;

	if (deferred_old && age >= rt_probe_limits.deferred_ms &&
		(rt_grace_passed(&deferred_grace) ||
			age >= DEFERRED_MS * rt_probe_limits.deferred_ms)) {
		free_deferred(deferred_old);
		deferred_old = NULL;
	}
	if (deferred_old)
		return;
	acquire();
	deferred_old = deferred_new;
	deferred_new = NULL;
	release();
	if (deferred_old) {
		deferred_since_ms = rt_now_ms();
		rt_grace_begin(&deferred_grace);
	}
}

void rt_hook_remove_unused(bool at_once)
{
	for (unsigned i = 0; i < RTE_MAX_ETHPORTS * 2; i++) {
		struct rt_hook **table = rt_hooks[i / 2][i % 2];

		acquire();
		for (unsigned q = 0; table && q < RTE_MAX_QUEUES_PER_PORT; q++) {
			struct rt_hook *h = table[q];

			if (h && (at_once || rt_port_alive(h->port)))
				remove_unused(h, at_once);
		}
		release();
	}
}

bool rt_hook_reclaim(void)
{
	reclaim_sets();
	reclaim_callbacks();
	return !sets_old;
}

void rt_hook_set_clock(const struct rt_clock_line *line)
{
	rt_latch_publish(&rt_hook_clock, line);
}
