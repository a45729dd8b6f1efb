/* SPDX-License-Identifier: BSD-3-Clause */
/* A library of an application that gives reasons: reason_test.c. */
#ifndef RINGTAP_PROBE_CAPTURE_TEST_REASON_H
#define RINGTAP_PROBE_CAPTURE_TEST_REASON_H

struct rte_mbuf;

__attribute__((visibility("default"))) void test_give(struct rte_mbuf *m, const char *reason);
__attribute__((visibility("default"))) int test_wanted(void);

#endif
