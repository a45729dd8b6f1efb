/* SPDX-License-Identifier: BSD-3-Clause */
/* Available memory that a test sets, independent of the machine. */
#ifndef RINGTAP_COMMON_TEST_PAGES_H
#define RINGTAP_COMMON_TEST_PAGES_H

#include <stdint.h>

/* Result of rt_pages_available(), until test_available_end(). */
void test_available(uint64_t kib);
void test_available_end(void);

#endif
