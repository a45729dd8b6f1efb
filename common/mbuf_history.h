/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last operations on an mbuf, which DPDK keeps in a dynamic field of 64 bits from 25.11 on, if
 * it was built with RTE_MBUF_HISTORY_DEBUG: the newest in the lowest bits, 0 where there was none.
 * Source: lib/mbuf/rte_mbuf_history.h and rte_mbuf_dyn.h of DPDK 25.11; names as
 * lib/mbuf/mbuf_history.c prints them. probe/dpdk/compat.h compares all of it with the headers.
 */
#ifndef RINGTAP_COMMON_MBUF_HISTORY_H
#define RINGTAP_COMMON_MBUF_HISTORY_H

#define RT_HISTORY_FIELD "rte_mbuf_dynfield_history"
#define RT_HISTORY_BITS  4u
#define RT_HISTORY_OPS(X)              \
	X(NEVER, 0, "never allocated") \
	X(LIB_FREE, 1, "lib free")     \
	X(PMD_FREE, 2, "PMD free")     \
	X(APP_FREE, 3, "app free")     \
	X(LIB_ALLOC, 4, "lib alloc")   \
	X(PMD_ALLOC, 5, "PMD alloc")   \
	X(APP_ALLOC, 6, "app alloc")   \
	X(RX, 7, "Rx")                 \
	X(TX, 8, "Tx")                 \
	X(TX_PREP, 9, "Tx prep")       \
	X(TX_BUSY, 10, "Tx busy")      \
	X(ENQUEUE, 11, "enqueue")      \
	X(DEQUEUE, 12, "dequeue")      \
	X(USR2, 14, "user defined 2")  \
	X(USR1, 15, "user defined 1")

#endif
