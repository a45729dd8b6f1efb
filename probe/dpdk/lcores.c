/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "compat.h"
#include "lcores.h"
#include "teardown.h"

#pragma weak rte_lcore_register_usage_cb

/* Later releases may have more fields. */
union usage {
	struct rte_lcore_usage known;
	uint64_t room[32];
};

struct walk {
	void (*f)(unsigned lcore, uint64_t total, uint64_t busy, void *arg);
	void *arg;
	rte_lcore_usage_cb callback;
};

/* EAL has no function that returns the callback or calls it: only a request to its telemetry, which
 * starts a thread, and rte_lcore_dump(), which has lost it in 25.11. But the whole function that
 * registers it is one store. Another instruction: unknown. */
#ifdef __x86_64__
static const rte_lcore_usage_cb *variable_of(const uint8_t *code)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
	static const uint8_t store[] = {0x48, 0x89, 0x3d};         /* mov %rdi,offset(%rip) */
	int32_t offset;

	if (!memcmp(code, landing, sizeof(landing)))
		code += sizeof(landing);
	if (memcmp(code, store, sizeof(store)) || code[7] != 0xc3) /* ret */
		return NULL;
	memcpy(&offset, code + sizeof(store), sizeof(offset));
	return (const void *)(code + 7 + offset);
}
#else
static const rte_lcore_usage_cb *variable_of(const uint8_t *code)
{
	return NULL;
}
#endif

static int read_lcore(unsigned lcore, void *arg)
{
	const struct walk *w = arg;
	union usage u;

	memset(&u, 0, sizeof(u));
	if (!w->callback(lcore, &u.known))
		w->f(lcore, u.known.total_cycles, u.known.busy_cycles, w->arg);
	return 0;
}

void rt_lcores_each(void (*f)(unsigned lcore, uint64_t total, uint64_t busy, void *arg), void *arg)
{
	const rte_lcore_usage_cb *variable;
	struct walk w = {f, arg, NULL};

	if (!rte_lcore_register_usage_cb || rt_teardown_begun())
		return;
	variable = variable_of((const uint8_t *)(uintptr_t)rte_lcore_register_usage_cb);
	if (variable)
		w.callback = __atomic_load_n(variable, __ATOMIC_RELAXED);
	if (w.callback)
		(void)rte_lcore_iterate(read_lcore, &w);
}
