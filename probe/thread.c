/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"
#include "thread.h"

/* glibc keeps the first 32 keys inside the thread descriptor; pthread_setspecific() of a
 * later one may allocate, which a polling thread must not. */
#define KEYS_WITHOUT_ALLOCATION 32

struct rt_thread rt_threads[RT_MAX_THREADS];
bool rt_thread_fence;
__thread struct rt_thread *rt_thread_self __attribute__((tls_model("initial-exec")));

static pthread_key_t exit_key;
static bool exit_key_usable;
static uint32_t ready; /* all of the above may be used */

static void thread_ends(void *slot)
{
	struct rt_thread *t = slot;

	rt_thread_self = NULL;
	rt_fig_thread_ends(t);
	/* Pairs with the acquire of the next owner's compare-and-swap. */
	rt_store_release(&t->used, 0);
}

static int membarrier(int cmd)
{
	return (int)syscall(SYS_membarrier, cmd, 0, 0);
}

int rt_threads_init(void)
{
	int ret;

	if (ready)
		return 0;
	ret = pthread_key_create(&exit_key, thread_ends);
	if (ret)
		return -ret;
	exit_key_usable = exit_key < KEYS_WITHOUT_ALLOCATION;
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		rt_thread_fence = true;
	for (uint32_t i = 0; i < RT_MAX_THREADS; i++)
		rt_threads[i].index = i;
	rt_store_release(&ready, 1); /* pairs with the acquire in rt_thread_claim() */
	return 0;
}

/* gettid() would be a system call in a polling thread. The kernel's id is in the clock's: the
 * layout of such ids is part of the kernel's ABI (clock_gettime(2), "Dynamic clocks"). */
static uint32_t own_tid(void)
{
	clockid_t clock;

	return pthread_getcpuclockid(pthread_self(), &clock) ? 0 : (uint32_t) ~(clock >> 3);
}

struct rt_thread *rt_thread_claim(uint32_t lcore)
{
	/* ethdev hands a callback over without an acquire. */
	if (!rt_load_acquire(&ready))
		return NULL;
	for (uint32_t i = 0; i < RT_MAX_THREADS; i++) {
		uint32_t expected = 0;

		if (rt_load(&rt_threads[i].used))
			continue;
		if (!rt_cas(&rt_threads[i].used, &expected, 1))
			continue;
		rt_store(&rt_threads[i].lcore, lcore);
		rt_store(&rt_threads[i].tid, own_tid());
		rt_store(&rt_threads[i].life, rt_threads[i].life + 1);
		rt_thread_self = &rt_threads[i];
		/* Without a usable key the slot is simply not given back. */
		if (exit_key_usable)
			pthread_setspecific(exit_key, &rt_threads[i]);
		return rt_thread_self;
	}
	return NULL;
}

void rt_grace_begin(struct rt_grace *g)
{
	if (!rt_thread_fence)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < RT_MAX_THREADS; i++)
		g->epoch[i] = rt_load_acquire(&rt_threads[i].epoch);
}

bool rt_grace_over(const struct rt_grace *g)
{
	for (unsigned i = 0; i < RT_MAX_THREADS; i++) {
		/* Pairs with the release in rt_thread_exit(). */
		if ((g->epoch[i] & 1) && rt_load_acquire(&rt_threads[i].epoch) == g->epoch[i])
			return false;
	}
	return true;
}

bool rt_grace_passed(const struct rt_grace *g)
{
	for (unsigned i = 0; i < RT_MAX_THREADS; i++) {
		uint64_t moved = rt_load_acquire(&rt_threads[i].epoch) - g->epoch[i];

		/* Inside at the start: it has to leave and come again. */
		if (rt_load(&rt_threads[i].used) && moved <= (g->epoch[i] & 1))
			return false;
	}
	return true;
}
