/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

uint32_t pool_in_use(const struct ringtap_pool_stats *p)
{
	/* It is counted while buffers move. */
	return p->available < p->size ? p->size - p->available : 0;
}

/* Buffers outside of all pools belong to the one pool with external buffers, if there is one. */
static uint32_t pinned_pool(const struct ringtap_snapshot *f)
{
	uint32_t found = RINGTAP_NO_INDEX;

	for (uint32_t i = 0; i < f->pool_count; i++) {
		if (!ringtap_snapshot_pool(f, i)->pinned_external ||
			ringtap_snapshot_pool(f, i)->gone)
			continue;
		if (found != RINGTAP_NO_INDEX)
			return RINGTAP_NO_INDEX;
		found = i;
	}
	return found;
}

/* Pools of several chunks may lie around others: the smallest one it is. */
uint32_t pool_at(const struct ringtap_snapshot *f, uint64_t address)
{
	uint32_t found = RINGTAP_NO_INDEX;

	for (uint32_t i = 0; i < f->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(f, i);

		if (p->gone || address < p->base || address - p->base >= p->span)
			continue;
		if (found == RINGTAP_NO_INDEX || p->span < ringtap_snapshot_pool(f, found)->span)
			found = i;
	}
	return found == RINGTAP_NO_INDEX ? pinned_pool(f) : found;
}
