/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe/above.h"
#include "thread.h"

/* glibc keeps the first 32 keys inside the thread descriptor; pthread_setspecific() of a later
 * one may allocate, which a polling thread must not. */
#define KEYS_WITHOUT_ALLOCATION 32

/* Most calls within one visit; beyond, the visit counts as left. */
#define NESTED_MAX 1024
/* A visit that was left by a jump is followed by one at about the same depth of the stack: at
 * most this much deeper, since compilers give RX and TX hooks different frames, but less than
 * the kernel puts on the stack before a signal handler (128 bytes of red zone and the
 * registers); … */
#define DEEPER_MAX 256 /* bytes */
/* … or by one that is higher. Anything further away is another stack, sigaltstack(2). */
#define HIGHER_MAX (1u << 20) /* bytes */

/* Store buffers drain in well under 10 us. */
#define DRAIN_NS 1000000

struct rt_thread rt_threads[RT_MAX_THREADS];
uint64_t rt_thread_searches;
bool rt_thread_fence;
__thread struct rt_thread *rt_thread_self __attribute__((tls_model("initial-exec")));

/* All data that a thread without a slot reads, in one cache line; written when slots change
 * hands. */
static struct {
	struct rt_thread_set free;
	uint64_t given_back; /* slots given back so far */
	uint32_t top;
} slots __attribute__((aligned(RT_CACHE_LINE)));
static_assert(sizeof(slots) <= RT_CACHE_LINE, "one line");

/* given_back + 1 at the last search that found no slot; 0: every search found one. */
static __thread uint64_t searched __attribute__((tls_model("initial-exec")));
/* Hooks fence, and epochs show all visits that began without a fence. */
static bool fenced;
static pthread_key_t exit_key;
static bool exit_key_usable;
static pid_t slots_pid;
static uint32_t ready; /* everything above is initialised */

static void give_back(struct rt_thread *t)
{
	rt_stat_thread_ends(t);
	rt_store(&t->used, 0);
	/* Pairs with the acquire of the compare-and-swap in take_slot(). */
	rt_thread_set_add(&slots.free, t->index);
	/* After the bit; pairs with the acquire in rt_thread_claim(). */
	rt_fetch_add_release(&slots.given_back, 1);
}

static void thread_ends(void *slot)
{
	rt_thread_self = NULL;
	give_back(slot);
}

/* In a child that the process has forked the ids are those of the parent's threads. */
static bool is_gone(uint32_t tid)
{
	return tid && getpid() == slots_pid && tgkill(slots_pid, (pid_t)tid, 0) && errno == ESRCH;
}

void rt_threads_return(void)
{
	for (unsigned i = 0; i < rt_threads_top(); i++) {
		struct rt_thread *t = &rt_threads[i];
		uint32_t generation = rt_load(&t->generation);

		/* Checked again, since the thread may have given the slot to another meanwhile.
		 * Pairs with the release in own_slot(). */
		if (rt_load(&t->used) && is_gone(rt_load(&t->tid)) && rt_load_acquire(&t->used) &&
			rt_load(&t->generation) == generation)
			give_back(t);
	}
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
	slots_pid = getpid();
	exit_key_usable = exit_key < KEYS_WITHOUT_ALLOCATION;
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		rt_thread_fence = true;
	for (uint32_t i = 0; i < RT_MAX_THREADS; i++) {
		rt_threads[i].index = i;
		rt_thread_set_add(&slots.free, i);
	}
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

/* The lowest free one: tables by slot stay short. RT_MAX_THREADS: none is free. */
static uint32_t take_slot(void)
{
	for (uint32_t w = 0; w < RT_THREAD_SET_WORDS; w++) {
		uint64_t free = rt_load(&slots.free.word[w]);

		/* Search again only if a slot has changed hands meanwhile. */
		while (free) {
			uint64_t lowest = free & -free;

			if (rt_cas(&slots.free.word[w], &free, free & ~lowest))
				return w * 64 + (uint32_t)__builtin_ctzll(lowest);
		}
	}
	return RT_MAX_THREADS;
}

static void raise_top(uint32_t top)
{
	uint32_t now = rt_load(&slots.top);

	while (now < top && !rt_cas(&slots.top, &now, top))
		;
}

uint32_t rt_threads_top(void)
{
	return rt_load(&slots.top);
}

static struct rt_thread *own_slot(struct rt_thread *t, uint32_t lcore)
{
	raise_top(t->index + 1);
	/* Even, whatever the last owner did when it ended. */
	rt_store(&t->epoch, (t->epoch + 1) & ~(uint64_t)1);
	rt_store(&t->lcore, lcore);
	rt_store(&t->tid, own_tid());
	rt_store(&t->generation, t->generation + 1);
	rt_store_release(&t->used, 1); /* pairs with the acquire in rt_threads_return() */
	rt_thread_self = t;
	/* Without a usable key rt_threads_return() gives the slot back. */
	if (exit_key_usable)
		pthread_setspecific(exit_key, t);
	return t;
}

struct rt_thread *rt_thread_claim(uint32_t lcore)
{
	uint64_t given_back;
	uint32_t slot;

	/* ethdev publishes a callback without a release that this load could rely on. */
	if (!rt_load_acquire(&ready))
		return NULL;
	/* Before the search; pairs with the release in thread_ends(): a slot that the search
	 * misses is counted later. */
	given_back = rt_load_acquire(&slots.given_back);
	if (rt_likely(searched == given_back + 1))
		return NULL;
	rt_fetch_add(&rt_thread_searches, 1);
	slot = take_slot();
	if (slot < RT_MAX_THREADS)
		return own_slot(&rt_threads[slot], lcore);
	searched = given_back + 1;
	return NULL;
}

bool rt_thread_jumped(struct rt_thread *t, uintptr_t stack)
{
	if (stack + DEEPER_MAX - t->stack < HIGHER_MAX)
		return true;
	if (t->nested_epoch != t->epoch)
		t->nested = 0;
	t->nested_epoch = t->epoch;
	return ++t->nested > NESTED_MAX;
}

/* Orders the caller's stores before its loads of epochs, and entries as thread.h describes. The
 * kernel may refuse membarrier() at any time: an application may install a seccomp filter late. */
static void order(void)
{
	if (!rt_load(&fenced)) {
		if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
			return;
		rt_store(&rt_thread_fence, true);
		/* An entry without a fence stored its epoch before it read this: wait until the
		 * epoch is visible. */
		nanosleep(&(struct timespec){.tv_nsec = DRAIN_NS}, NULL);
		rt_store(&fenced, true);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void rt_grace_begin(struct rt_grace *g)
{
	order();
	/* After the barriers: a slot at or above this count is entered later, by a thread that
	 * reads what is linked now. */
	g->count = rt_threads_top();
	for (unsigned i = 0; i < g->count; i++)
		g->epoch[i] = rt_load_acquire(&rt_threads[i].epoch);
}

bool rt_grace_over(const struct rt_grace *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		/* Pairs with the release in rt_thread_exit(). */
		if ((g->epoch[i] & 1) && rt_load_acquire(&rt_threads[i].epoch) == g->epoch[i])
			return false;
	}
	return true;
}

bool rt_grace_passed(const struct rt_grace *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		int64_t moved = (int64_t)(rt_load_acquire(&rt_threads[i].epoch) - g->epoch[i]);

		/* Outside at the start (even), it may have loaded the removed callback and still
		 * enter it: that visit has to end, and another to begin. Inside (odd), that is its
		 * visit. */
		if (rt_load(&rt_threads[i].used) && moved < 3 - (int64_t)(g->epoch[i] & 1))
			return false;
	}
	return true;
}
