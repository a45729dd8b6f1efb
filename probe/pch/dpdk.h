/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled once for all files of the probe: most of the time of each would go into DPDK's headers.
 * A file includes what it needs all the same: builds with ccache, and those of CI, are without it.
 */
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_mbuf_dyn.h>
