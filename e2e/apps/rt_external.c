/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_malloc.h>
#include <rte_memory.h>

#include "rt_external.h"
#include "rt_own_pool.h"

#define BUFFERS    1024u
#define ROOM       4096u /* bytes each */
#define AREA_BYTES ((size_t)BUFFERS * ROOM)

/* Unreadable memory, as of a GPU: accessing it ends the program. */
static const struct {
	const char *name;
	bool none, pinned;
} kinds[] = {
	[EXTERNAL_NO] = {"", false, false},
	{"malloc", false, false},
	{"none", true, false},
	{"pinned", false, true},
	{"pinned-none", true, true},
	{"late", false, false}, /* mapped later by a test */
	{"own", false, true},   /* not external: of rt_own_pool.h */
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct area {
	char *base;
	struct rte_mempool *pool;
	struct rte_mbuf_ext_shared_info info[BUFFERS];
	unsigned next;
} areas[KINDS];

static void nothing(void *buffer, void *arg)
{
	(void)buffer;
	(void)arg;
}

static char *map(int protection)
{
	char *p = mmap(NULL, AREA_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct rte_mempool *pin(size_t kind, char *base)
{
	struct rte_pktmbuf_extmem memory = {
		.buf_ptr = base, .buf_iova = RTE_BAD_IOVA, .buf_len = AREA_BYTES, .elt_size = ROOM};

	return rte_pktmbuf_pool_create_extbuf(
		kinds[kind].name, BUFFERS - 1, 0, 0, ROOM, SOCKET_ID_ANY, &memory, 1);
}

int external_kind(const char *name)
{
	for (size_t i = EXTERNAL_NO + 1; name && i < KINDS; i++) {
		struct area *a = &areas[i];

		if (strcmp(name, kinds[i].name))
			continue;
		if (!a->base)
			a->base = !strcmp(name, "malloc")
					  ? malloc(AREA_BYTES)
					  : map(kinds[i].none ? PROT_NONE : PROT_READ | PROT_WRITE);
		if (a->base && kinds[i].pinned && !a->pool)
			a->pool = strcmp(name, "own") ? pin(i, a->base) : own_pool();
		return a->base && (a->pool || !kinds[i].pinned) ? (int)i : -1;
	}
	return name ? -1 : EXTERNAL_NO;
}

struct rte_mbuf *external_alloc(int kind, struct rte_mempool *pool)
{
	struct area *a = &areas[kind];
	struct rte_mbuf *m = rte_pktmbuf_alloc(kinds[kind].pinned ? a->pool : pool);
	unsigned slot = a->next++ % BUFFERS;

	if (!m || kinds[kind].pinned)
		return m;
	a->info[slot].free_cb = nothing;
	rte_mbuf_ext_refcnt_set(&a->info[slot], 1);
	rte_pktmbuf_attach_extbuf(
		m, a->base + (size_t)slot * ROOM, RTE_BAD_IOVA, ROOM, &a->info[slot]);
	m->data_off = RTE_PKTMBUF_HEADROOM;
	return m;
}

bool external_writable(int kind)
{
	return kind == EXTERNAL_NO || !kinds[kind].none;
}
