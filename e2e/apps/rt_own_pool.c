/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "rt_own_pool.h"

#define MBUFS  8191u
#define ROOM   2048u
#define NUMBER 7 /* pool_id is in one place with pool_data */

static void *spare[MBUFS];
static unsigned spares;

static int nothing(struct rte_mempool *mp)
{
	(void)mp;
	return 0;
}

static void forget(struct rte_mempool *mp)
{
	(void)mp;
}

static int put(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	(void)mp;
	for (unsigned i = 0; i < n; i++)
		spare[spares++] = objects[i];
	return 0;
}

static int get(struct rte_mempool *mp, void **objects, unsigned n)
{
	(void)mp;
	if (n > spares)
		return -1;
	for (unsigned i = 0; i < n; i++)
		objects[i] = spare[--spares];
	return 0;
}

/* No other thread may call it. */
static unsigned count(const struct rte_mempool *mp)
{
	(void)mp;
	abort();
}

static const struct rte_mempool_ops ops = {.name = "own",
	.alloc = nothing,
	.free = forget,
	.enqueue = put,
	.dequeue = get,
	.get_count = count};
RTE_MEMPOOL_REGISTER_OPS(ops);

static void fill(struct rte_mempool *mp, struct rte_mempool *list, char *memory, size_t each)
{
	for (unsigned i = 0; i < MBUFS; i++) {
		struct rte_mempool_objhdr *h = (void *)(memory + i * each);

		h->mp = mp;
		STAILQ_INSERT_TAIL(&mp->elt_list, h, next);
		STAILQ_INSERT_TAIL(&list->elt_list, h, next);
		mp->populated_size++;
		list->populated_size++;
		spare[spares++] = h + 1;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
}

static struct rte_mempool *empty(const char *name)
{
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = RTE_PKTMBUF_HEADROOM + ROOM};
	struct rte_mempool *mp = rte_mempool_create_empty(name, MBUFS,
		sizeof(struct rte_mbuf) + private.mbuf_data_room_size, 0, sizeof(private),
		SOCKET_ID_ANY, 0);

	if (!mp || rte_mempool_set_ops_byname(mp, ops.name, NULL))
		return NULL;
	rte_pktmbuf_pool_init(mp, &private);
	mp->pool_id = NUMBER;
	return mp;
}

struct rte_mempool *own_pool(void)
{
	static struct rte_mempool *mp;
	struct rte_mempool *list;
	size_t each;
	char *memory;

	if (mp)
		return mp;
	mp = empty("own");
	list = empty("own, another list");
	if (!mp || !list)
		return NULL;
	each = mp->header_size + mp->elt_size + mp->trailer_size;
	memory = aligned_alloc(RTE_CACHE_LINE_SIZE, each * MBUFS);
	if (!memory)
		return NULL;
	/* Objects begin behind their header, on a cache line. */
	fill(mp, list, memory + mp->header_size - sizeof(struct rte_mempool_objhdr), each);
	return mp;
}

void own_pool_take_back(struct rte_mbuf *m)
{
	spare[spares++] = m;
}
