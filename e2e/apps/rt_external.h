/* SPDX-License-Identifier: BSD-3-Clause */
/* mbufs with external buffers: attached ones and pools with pinned ones, in readable and unreadable
 * memory. */
#ifndef RINGTAP_E2E_APPS_RT_EXTERNAL_H
#define RINGTAP_E2E_APPS_RT_EXTERNAL_H

#include <stdbool.h>

#include <rte_mbuf.h>

#define EXTERNAL_NO 0

/* malloc, none, pinned, pinned-none, late or own; NULL: EXTERNAL_NO. -1: unknown, or no memory. */
int external_kind(const char *name);

/* An empty mbuf with an external buffer of this kind; pool: that of mbufs for attached ones. NULL:
 * no free mbuf. */
struct rte_mbuf *external_alloc(int kind, struct rte_mempool *pool);

/* Whether its data can be read and written. */
bool external_writable(int kind);

#endif
