/* SPDX-License-Identifier: BSD-3-Clause */
/* A clock that a test sets. Time passes only where something waits, and at once. */
#ifndef RINGTAP_COMMON_TEST_NOW_H
#define RINGTAP_COMMON_TEST_NOW_H

#include <stdint.h>

/* A test without test_now_set() begins at these. */
#define TEST_NOW_REAL_NS 1700000000000000000ull /* CLOCK_REALTIME and its coarse one */
#define TEST_NOW_MONO_NS 1000000000000ull       /* all other clocks */

/* Sets both, and forgets what test_now_after() has planned. */
void test_now_set(uint64_t mono_ns, uint64_t real_ns);
/* Moves CLOCK_REALTIME only. */
void test_now_step_real(int64_t ns);
void test_now_pass(uint64_t ns);
/* Calls f when ns have passed from now; at most 16 are planned at once. */
void test_now_after(uint64_t ns, void (*f)(void *arg), void *arg);

#endif
