/* SPDX-License-Identifier: BSD-3-Clause */
/* mbufs with data outside of them: attached buffers and pools with pinned ones, in memory
 * that can be read and in memory that cannot. */
#ifndef RT_EXTERNAL_H
#define RT_EXTERNAL_H

#include <stdbool.h>

#include <rte_mbuf.h>

#define EXTERNAL_NO 0

/* malloc, none, pinned, pinned-none or late; NULL: EXTERNAL_NO. -1: there is no such, or no memory.
 */
int external_kind(const char *name);

/* An empty mbuf with such data; pool: of attached ones. NULL: out of mbufs. */
struct rte_mbuf *external_alloc(int kind, struct rte_mempool *pool);

/* Whether its data can be written, and read. */
bool external_writable(int kind);

#endif
