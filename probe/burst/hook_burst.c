/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The code that runs in the application's polling threads. No lock, no allocation, no log, no
 * system call, no waiting (except on-full=wait, which the user chooses), no atomic
 * read-modify-write except once per thread and hook.
 */
#include "run.h"

#ifdef RT_TRACE_OWN_LOOP
const bool rt_trace_own_loop = true;
#else
const bool rt_trace_own_loop;
#endif

struct rt_clock_latch rt_hook_clock;
__thread uint64_t rt_hook_until __attribute__((tls_model("initial-exec")));

/* Not inlined, so that the quick path needs no stack frame. */
static __rte_noinline uint16_t visit(struct rt_hook *h, struct rt_thread *t, struct rte_mbuf **pkts,
	uint16_t n, unsigned nb_pkts)
{
	work(h, t, pkts, n, nb_pkts, 0, true);
	rt_thread_exit(t);
	return n;
}

/* A thread without a slot, or whose last visit did not end with an exit. */
static __rte_noinline uint16_t visit_first(
	struct rt_hook *h, struct rte_mbuf **pkts, uint16_t n, unsigned nb_pkts, uintptr_t stack)
{
	struct rt_thread *t = rt_thread_self;

	if (t && !rt_thread_jumped(t, stack)) {
		visit_outside(h, n);
		return n;
	}
	if (!t)
		t = rt_thread_claim(rte_lcore_id());
	else
		t->stack = 0; /* left by the visit that ended without an exit */
	if (!t) {
		visit_slotless(h, n, nb_pkts);
		return n;
	}
	go_in(t, stack);
	return visit(h, t, pkts, n, nb_pkts);
}

/* An empty poll of a hook that does nothing but record. Polls are most of what an idle thread does.
 */
static inline bool is_idle(const struct rt_hook *h, const struct rt_thread *t, unsigned n)
{
	return !n && !rt_load(&h->stats) && rt_thread_set_has(&h->seen, t->index) &&
	       !rt_hook_until && !(rt_load(&rt_stat_mode.state) & RT_COLLECT_TRACE);
}

static inline uint16_t enter(struct rt_hook *h, struct rte_mbuf **pkts, uint16_t n,
	unsigned nb_pkts, enum rt_direction dir)
{
	uintptr_t stack = rt_stack_pointer();
	struct rt_thread *t = rt_thread_self;
	struct rt_stat_quick *column;
	bool done;

	if (rt_unlikely(!t || rt_thread_inside(t)))
		return visit_first(h, pkts, n, nb_pkts, stack);
	go_in(t, stack);
	/* Pairs with the releases in rt_hook_count() and rt_hook_give_column(). */
	column = rt_load_acquire(&h->column);
	if (!column && is_idle(h, t, n)) {
		rt_thread_exit(t);
		return n;
	}
	if (!column)
		return visit(h, t, pkts, n, nb_pkts);
	done = dir == RT_DIR_RX ? rt_stat_rx_quick(column, t, n, nb_pkts)
				: rt_stat_tx_quick(column, t, n);
	if (rt_unlikely(!done))
		return visit(h, t, pkts, n, nb_pkts);
	rt_thread_exit(t);
	return n;
}

uint16_t rt_hook_rx(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *hook)
{
	rt_trace_rx(port, queue, max, n);
	return enter(hook, pkts, n, max, RT_DIR_RX);
}

uint16_t rt_hook_tx(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *hook)
{
	rt_trace_tx(port, queue, n);
	return enter(hook, pkts, n, n, RT_DIR_TX);
}
