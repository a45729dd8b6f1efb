/* SPDX-License-Identifier: BSD-3-Clause */
/* Called by the application for a packet that it drops: see probe/capture/reason.h. As in
 * hook_burst.c there is no lock, allocation, log or system call. */
#include <string.h>

#include <rte_lcore.h>

#include "probe/above.h"
#include "probe/capture/fate_feed.h"
#include "probe/capture/reason.h"
#include "probe/hook/thread.h"

struct text {
	char bytes[RT_NAME_LEN]; /* a copy: the application may change its own */
	size_t len;
	uint64_t hash; /* FNV-1a; not 0 */
};

static void read_text(struct text *t, const char *from)
{
	t->hash = 0xcbf29ce484222325ull;
	for (t->len = 0; t->len < sizeof(t->bytes) - 1; t->len++) {
		char c = from[t->len];

		if (!c)
			break;
		t->bytes[t->len] = c;
		t->hash = (t->hash ^ (uint8_t)c) * 0x100000001b3ull;
	}
	t->hash |= 1;
}

/* The entry is the caller's as long as the mbuf is. */
static void note(const struct rt_session *s, const struct rte_mbuf *m, const struct text *t)
{
	uint32_t spare = RT_FATE_SPARE;
	struct rt_seg_fate *e = rt_fate_of(s->fates, m, false, &spare);

	if (!e || rt_load_acquire(&e->state) != RT_FATE_OPEN || rt_load(&e->id) != rt_fates_id(m) ||
		!(rt_fates_has_flag(m) || rt_fates_is_reset(m)))
		return;
	rt_store(&e->reason, t->len ? rt_reason_number(s, t->hash, t->bytes, t->len) : 0);
}

void rt_reason_given(struct rte_mbuf *m, const char *reason)
{
	uintptr_t stack = rt_stack_pointer();
	struct rt_thread *t = rt_thread_self;
	struct text text;

	if (rt_unlikely(t && rt_thread_inside(t)) && !rt_thread_jumped(t, stack))
		return;
	if (rt_unlikely(!t))
		t = rt_thread_claim(rte_lcore_id());
	if (!t)
		return;
	read_text(&text, reason ?: "");
	if (RTE_MBUF_CLONED(m))
		m = rte_mbuf_from_indirect(m);
	t->stack = 0; /* left by a visit that ended without an exit */
	rt_thread_enter(t);
	t->stack = stack;
	rt_compiler_barrier();
	for (unsigned i = 0; i < RT_REASON_SESSIONS; i++) {
		/* Pairs with the release in rt_reason_listen(). */
		const struct rt_session *s = rt_load_acquire(&rt_reason_sessions[i]);

		if (s)
			note(s, m, &text);
	}
	rt_thread_exit(t);
}
