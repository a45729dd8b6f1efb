/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_eal_memconfig.h>
#include <rte_tailq.h>

#include "rings.h"
#include "secondary.h"
#include "teardown.h"

#define RING_TAILQ "RTE_RING" /* lib/ring/rte_ring.c */

TAILQ_HEAD(ring_list, rte_tailq_entry);

/* rte_ring_free() of older releases of DPDK frees the memory first and takes the ring off the
 * list later: even the lock of the list does not keep the memory. So the kernel reads it, which
 * gives an error instead of a signal. The consumer's index is read after the producer's: an object
 * that passes meanwhile makes the level lower, never higher than it was. */
static bool copy(struct rte_ring *to, const struct rte_ring *r)
{
	const size_t first = offsetof(struct rte_ring, cons);
	const struct iovec local = {to, sizeof(*to)};
	const struct iovec remote[] = {
		{(void *)(uintptr_t)r, first}, {(void *)(uintptr_t)&r->cons, sizeof(*to) - first}};

	static_assert(offsetof(struct rte_ring, prod) < offsetof(struct rte_ring, cons), "order");
	return process_vm_readv(getpid(), &local, 1, remote, RTE_DIM(remote), 0) ==
	       (ssize_t)sizeof(*to);
}

bool rt_ring_read(const struct rte_ring *r, struct rt_ring_level *out)
{
	struct rte_ring now;
	int32_t used;

	if (!copy(&now, r) || !now.memzone || !now.name[0] || !now.capacity || !now.size ||
		now.size & (now.size - 1) || now.mask != now.size - 1 || now.capacity > now.mask)
		return false;
	used = (int32_t)(now.prod.tail - now.cons.tail);
	*out = (struct rt_ring_level){.capacity = now.capacity,
		.used = used < 0 ? 0 : RTE_MIN((uint32_t)used, now.capacity)};
	memcpy(out->name, now.name, sizeof(out->name));
	out->name[sizeof(out->name) - 1] = '\0';
	return true;
}

bool rt_rings_each(void (*f)(const struct rt_ring_level *r, void *arg), void *arg, uint32_t *beyond)
{
	static const struct rte_ring *rings[RT_RINGS_MAX]; /* control thread */
	struct ring_list *list = RTE_TAILQ_LOOKUP(RING_TAILQ, ring_list);
	struct rte_tailq_entry *entry;
	uint32_t count = 0;

	*beyond = 0;
	if (!list || rt_teardown_late() || rt_is_secondary())
		return false;
	rte_mcfg_tailq_read_lock();
	TAILQ_FOREACH(entry, list, next)
	{
		if (count < RT_RINGS_MAX)
			rings[count++] = entry->data;
		else
			++*beyond;
	}
	rte_mcfg_tailq_read_unlock();
	for (uint32_t i = 0; i < count; i++) {
		struct rt_ring_level level;

		if (rt_ring_read(rings[i], &level))
			f(&level, arg);
	}
	return true;
}
