/* SPDX-License-Identifier: BSD-3-Clause */
/* A mempool that is filled as VPP fills its own: operations of the application's, no flag of
 * DPDK's, and a second list of the same objects. */
#ifndef RINGTAP_E2E_APPS_RT_OWN_POOL_H
#define RINGTAP_E2E_APPS_RT_OWN_POOL_H

struct rte_mbuf;
struct rte_mempool;

/* Makes it once. NULL: no memory. */
struct rte_mempool *own_pool(void);

/* Frees an mbuf of it without a trace in the mbuf. */
void own_pool_take_back(struct rte_mbuf *m);

#endif
