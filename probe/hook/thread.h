/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Polling threads and when memory that they may look at can be freed.
 *
 * Every thread that enters a hook owns a slot of a static table. Entry sets its epoch to the next
 * odd number (inside), exit to the next even one. To free something: unlink it, rt_grace_begin(),
 * wait until rt_grace_over(), free. A thread that never polls again stays even and delays nothing.
 *
 * A thread may leave a hook without its exit: by siglongjmp() out of a signal handler, or by
 * cancellation. Its epoch is then odd at its next entry, as it is in a signal handler that polls
 * while its thread is inside. rt_thread_jumped() distinguishes the two by the stack, which is that
 * of the visit or 0 while the epoch is odd: entry stores it behind the epoch, exit clears it first.
 *
 * The entry is a store (epoch) followed by a load (what was linked). Plain accesses may be
 * reordered; the control side pays for the order with membarrier(2), so that a hook needs compiler
 * barriers only. Where the kernel has no membarrier, or refuses it later, rt_thread_fence is set
 * and hooks fence.
 */
#ifndef RINGTAP_PROBE_HOOK_THREAD_H
#define RINGTAP_PROBE_HOOK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/atomics.h"
#include "thread_set.h"

struct rt_thread {
	uint64_t epoch;  /* written by its thread only */
	uintptr_t stack; /* stack pointer of the visit, 0: outside, or not stored yet; written by
			    its thread only */
	uint32_t used;   /* claimed by a living thread */
	uint32_t index;
	uint32_t lcore;      /* EAL lcore id, UINT32_MAX: none */
	uint32_t generation; /* counts its owners; written by them, like tid */
	uint32_t tid;        /* the kernel's id, in the application's PID namespace; 0: unknown */
	uint32_t nested; /* calls within the visit of nested_epoch; written by its thread only */
	uint64_t nested_epoch;
	uint64_t ids; /* given to packets by all owners so far; see rt_ids_stamp() */
} __attribute__((aligned(128)));

extern struct rt_thread rt_threads[RT_MAX_THREADS];
extern bool rt_thread_fence;
/* initial-exec: access is one load, and never allocates in a library loaded by dlopen(). */
extern __thread struct rt_thread *rt_thread_self __attribute__((tls_model("initial-exec")));

/* Once per process, before anything is hooked. 0 or -errno. */
int rt_threads_init(void);

/* Gives the calling thread a slot, freed when it ends. NULL: all RT_MAX_THREADS are taken. A
 * thread that found none searches again only after a slot has been freed. */
struct rt_thread *rt_thread_claim(uint32_t lcore);
/* Returns the slots of threads that have ended without it. Control thread, with its lock. */
void rt_threads_return(void);
/* Slots from this one on have never been claimed. Never decreases. */
uint32_t rt_threads_top(void);
/* Searches for a free slot so far, successful or not; for the tests. */
extern uint64_t rt_thread_searches;

static inline uintptr_t rt_stack_pointer(void)
{
	uintptr_t sp;

#if defined(__x86_64__)
	__asm__("mov %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
	__asm__("mov %0, sp" : "=r"(sp));
#else
	sp = (uintptr_t)__builtin_frame_address(0);
#endif
	return sp;
}

/* The thread is inside, or it has left the hook without its exit. */
static inline bool rt_thread_inside(const struct rt_thread *t)
{
	return t->epoch & 1;
}

/* For a thread that enters while rt_thread_inside(), from a hook called at this stack pointer.
 * True: it has jumped out of its last visit and may enter. False: it is in a signal handler that
 * interrupted that visit, and must touch nothing that belongs to the slot or can be freed. */
bool rt_thread_jumped(struct rt_thread *t, uintptr_t stack);

/* Set the epoch, do not toggle it: odd and new, whatever it was. */
static inline void rt_thread_enter(struct rt_thread *t)
{
	rt_store(&t->epoch, (t->epoch + 1) | 1);
	rt_compiler_barrier(); /* see order(), thread.c */
#ifndef __SANITIZE_THREAD__    /* it knows no fences; membarrier is there wherever it runs */
	if (rt_unlikely(rt_load(&rt_thread_fence)))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	rt_compiler_barrier();
}

static inline void rt_thread_exit(struct rt_thread *t)
{
	/* Before the epoch: a handler that polls in between counts as a nested call, as one that
	 * comes between an entry's epoch and its stack. */
	t->stack = 0;
	/* Pairs with the acquire in rt_grace_over(): memory used inside may be freed afterwards. */
	rt_store_release(&t->epoch, (t->epoch + 1) & ~(uint64_t)1);
}

struct rt_grace {
	uint32_t count; /* slots claimed so far */
	uint64_t epoch[RT_MAX_THREADS];
};

/* Call after unlinking. */
void rt_grace_begin(struct rt_grace *g);
/* True once every thread that was inside a hook at rt_grace_begin() has left it. */
bool rt_grace_over(const struct rt_grace *g);
/* True once every living thread has left a hook and entered one again since rt_grace_begin(): then
 * none of them still walks an old callback list. May never become true. */
bool rt_grace_passed(const struct rt_grace *g);

#endif
