/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_DPDK_TEST_IMPORTS_H
#define RINGTAP_PROBE_DPDK_TEST_IMPORTS_H

#define TEST_EXPORT __attribute__((visibility("default")))

TEST_EXPORT int test_answer(void); /* the program has it */
TEST_EXPORT int test_call(void);
TEST_EXPORT int test_call_by_address(void);
TEST_EXPORT int test_make_port(void);
TEST_EXPORT void *rte_eth_dev_allocate(const char *name);

#endif
