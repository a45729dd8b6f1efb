/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_eal_cleanup() unmaps memory that the control thread and telemetry queries read, and does not
 * announce it. Among the functions that it calls, one can be ours: the cleanup function of a bus
 * (bus.c), which runs in the application's thread while memory and ports still exist.
 */
#include <pthread.h>
#include <unistd.h>

#include "common/atomics.h"
#include "probe/above.h"
#include "probe/now_ms.h"
#include "teardown.h"

#define PATIENCE_MS 1000

static pthread_rwlock_t users = PTHREAD_RWLOCK_INITIALIZER;
static pid_t users_pid; /* process that the users belong to */
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
