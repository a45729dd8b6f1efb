/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_eal_cleanup() unmaps memory that the control thread and telemetry queries read, and does not
 * announce it. Among the functions that it calls, one can be ours: the cleanup function of a bus,
 * which runs in the application's thread while memory and ports still exist. So the probe registers
 * a bus without devices, as the first of all; the cleanup of the others follows. Its probe function
 * is also the only one that EAL calls while it starts, with memory and before ports.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_version.h>

#include "common/atomics.h"
#include "control.h"
#include "plugin.h"
#include "probe/capture/session.h"
#include "teardown.h"

#define PATIENCE_MS 1000

static pthread_rwlock_t users = PTHREAD_RWLOCK_INITIALIZER;
static pid_t users_pid; /* of the process that the users belong to */
static bool begun;
static uint64_t late_ms;

bool rt_teardown_begun(void)
{
	return __atomic_load_n(&begun, __ATOMIC_SEQ_CST);
}

bool rt_teardown_late(void)
{
	return rt_teardown_begun() && rt_now_ms() >= rt_load(&late_ms);
}

bool rt_teardown_hold(void)
{
	/* Before the check: either this thread sees that the end has begun, or the end sees the
	 * process. */
	__atomic_exchange_n(&users_pid, getpid(), __ATOMIC_SEQ_CST);
	if (pthread_rwlock_tryrdlock(&users))
		return false;
	if (!rt_teardown_begun())
		return true;
	pthread_rwlock_unlock(&users);
	return false;
}

void rt_teardown_release(void)
{
	pthread_rwlock_unlock(&users);
}

void rt_teardown(void)
{
	uint64_t now_ms = rt_now_ms();

	if (rt_teardown_begun())
		return;
	rt_store(&late_ms, now_ms + PATIENCE_MS / 2);
	/* Pairs with the exchanges in rt_teardown_hold() and, of ctl.pid, in rt_control_start(). */
	if (__atomic_exchange_n(&begun, true, __ATOMIC_SEQ_CST))
		return;
	rt_control_end(now_ms + PATIENCE_MS);
	/* In a child, threads of the parent may have left locks behind that nothing ever
	 * releases. */
	if (__atomic_load_n(&users_pid, __ATOMIC_SEQ_CST) != getpid())
		return;
	/* Kept locked, so that no tryrdlock succeeds any more. */
	while (pthread_rwlock_trywrlock(&users) && rt_now_ms() < now_ms + 2 * PATIENCE_MS)
		usleep(1000);
}

/* exit() ends this thread only: the control thread would run on while libraries clean up. */
__attribute__((destructor)) static void at_exit(void)
{
	rt_teardown();
}

static int nothing(void)
{
	return 0;
}

static int on_probe(void)
{
	rt_probe_buses_begin();
	return 0;
}

static struct rte_device *no_device(
	const struct rte_device *start, rte_dev_cmp_t cmp, const void *data)
{
	return NULL;
}

static int on_cleanup(void)
{
	rt_teardown();
	return 0;
}

/* struct rte_bus of DPDK 22.11 to 26.03, from a header for drivers, which is not installed. */
struct bus {
	TAILQ_ENTRY(bus) next;
	const char *name;
	int (*scan)(void);
	int (*probe)(void);
	struct rte_device *(*find_device)(
		const struct rte_device *start, rte_dev_cmp_t cmp, const void *data);
	void (*plug_to_dma_unmap[6])(void);
	int scan_mode;
	void (*get_iommu_class_to_sigbus_handler[4])(void);
	int (*cleanup)(void);
};

static struct bus bus = {.name = "ringtap",
	.scan = nothing,
	.probe = on_probe,
	.find_device = no_device,
	.cleanup = on_cleanup};

void rte_bus_register(struct rte_bus *bus); /* see struct bus */

static bool layout_known(void)
{
	const char *text = rte_version();
	unsigned year, month;

	if (sscanf(text + strcspn(text, "0123456789"), "%u.%u", &year, &month) != 2)
		return false;
	return year * 12 + month >= 22 * 12 + 11 && year * 12 + month < 26 * 12 + 7;
}

static int any(const struct rte_bus *first, const void *data)
{
	return 0;
}

/* Not by a macro of TAILQ, for the order of the stores. In a process that the probe is attached to,
 * other threads may go through the list meanwhile: they find it with or without the new first one,
 * and that one is complete. They need no barrier, as they read it by the address that they have
 * loaded. */
static void insert_before(struct bus *first)
{
	bus.next.tqe_prev = first->next.tqe_prev;
	bus.next.tqe_next = first;
	rt_store_release(first->next.tqe_prev, &bus);
	first->next.tqe_prev = &bus.next.tqe_next;
}

/* Constructors and EAL's start run in one thread. Constructors of drivers, which change the list as
 * well, have the dynamic loader's lock, as this one has. */
__attribute__((constructor)) static void register_bus(void)
{
	struct bus *first;

	if (!layout_known())
		return;
	first = (struct bus *)rte_bus_find(NULL, any, NULL);
	if (first)
		insert_before(first);
	else
		rte_bus_register((struct rte_bus *)&bus);
}
