/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
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

/* The identity of a ring: name, memzone, size. */
#define IDENTITY offsetof(struct rte_ring, prod)

/* rte_ring_free() of older releases of DPDK frees the memory first and takes the ring off the
 * list later: even the lock of the list does not keep the memory. So the kernel reads it, which
 * gives an error instead of a signal. The consumer's index is read after the producer's: an object
 * that passes meanwhile makes the level lower, never higher than it was. The identity is read
 * again at the end: memory that another use overwrites meanwhile is not a ring.
 * 0; -EINVAL: it is not a ring's memory; -EPERM: the kernel refuses the call, as in a sandbox. */
static int copy(struct rte_ring *to, const struct rte_ring *r)
{
	const size_t first = offsetof(struct rte_ring, cons);
	struct {
		struct rte_ring ring;
		uint8_t again[IDENTITY];
	} now;
	const struct iovec local = {&now, sizeof(now.ring) + IDENTITY};
	const struct iovec remote[] = {{(void *)(uintptr_t)r, first},
		{(void *)(uintptr_t)&r->cons, sizeof(*r) - first},
		{(void *)(uintptr_t)r, IDENTITY}};
	ssize_t n;

	static_assert(offsetof(struct rte_ring, prod) < offsetof(struct rte_ring, cons), "order");
	static_assert(offsetof(typeof(now), again) == sizeof(now.ring), "no padding");
	n = process_vm_readv(getpid(), &local, 1, remote, RTE_DIM(remote), 0);
	if (n < 0 && errno != EFAULT)
		return -EPERM;
	*to = now.ring;
	return n == (ssize_t)local.iov_len && !memcmp(to, now.again, IDENTITY) ? 0 : -EINVAL;
}

int rt_ring_read(const struct rte_ring *r, struct rt_ring_level *out)
{
	struct rte_ring now;
	int32_t used;
	int ret = copy(&now, r);

	if (ret)
		return ret;
	if (!now.memzone || !now.name[0] || !now.capacity || !now.size ||
		now.size & (now.size - 1) || now.mask != now.size - 1 || now.capacity > now.mask)
		return -EINVAL;
	used = (int32_t)(now.prod.tail - now.cons.tail);
	*out = (struct rt_ring_level){.capacity = now.capacity,
		.used = used < 0 ? 0 : RTE_MIN((uint32_t)used, now.capacity)};
	memcpy(out->name, now.name, sizeof(out->name));
	out->name[sizeof(out->name) - 1] = '\0';
	return 0;
}

/* ThreadSanitizer does not see the lock, which is DPDK's. */
__attribute__((no_sanitize_thread)) static uint32_t list_rings(
	struct ring_list *list, const struct rte_ring *rings[RT_RINGS_MAX], uint32_t *beyond)
{
	struct rte_tailq_entry *entry;
	uint32_t count = 0;

	rte_mcfg_tailq_read_lock();
	TAILQ_FOREACH(entry, list, next)
	{
		if (count < RT_RINGS_MAX)
			rings[count++] = entry->data;
		else
			++*beyond;
	}
	rte_mcfg_tailq_read_unlock();
	return count;
}

bool rt_rings_each(void (*f)(const struct rt_ring_level *r, void *arg), void *arg, uint32_t *beyond)
{
	static const struct rte_ring *rings[RT_RINGS_MAX]; /* control thread */
	struct ring_list *list = RTE_TAILQ_LOOKUP(RING_TAILQ, ring_list);
	uint32_t count;

	*beyond = 0;
	if (!list || rt_teardown_late() || rt_is_secondary())
		return false;
	count = list_rings(list, rings, beyond);
	for (uint32_t i = 0; i < count; i++) {
		struct rt_ring_level level;

		int ret = rt_ring_read(rings[i], &level);

		if (!ret)
			f(&level, arg);
		*beyond += ret == -EPERM;
	}
	return true;
}
