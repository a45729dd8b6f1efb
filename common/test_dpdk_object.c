/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols of a DPDK; of one before 21.11, whose rte_version() is inline; of the probe's library. */
#ifdef TEST_HIDDEN
#define TEST_EXPORT __attribute__((visibility("hidden")))
#else
#define TEST_EXPORT __attribute__((visibility("default")))
#endif

TEST_EXPORT int rte_eal_cleanup(void);
TEST_EXPORT int rte_eal_init(int argc, char **argv);
TEST_EXPORT const char *rte_version(void);

int rte_eal_cleanup(void)
{
	return 0;
}

#ifndef TEST_OLD
int rte_eal_init(int argc, char **argv)
{
	return -1;
}

const char *rte_version(void)
{
	return "DPDK 22.11.0";
}
#endif

#ifdef TEST_PROBE
TEST_EXPORT extern int ringtap_probe_loaded;
int ringtap_probe_loaded = 1;
#endif
