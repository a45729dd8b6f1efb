/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols of a DPDK before 21.11. */
int rte_eal_cleanup(void);

int rte_eal_cleanup(void)
{
	return 0;
}
