/* SPDX-License-Identifier: BSD-3-Clause */
/* The same random packets in each run of a test. */
#ifndef RINGTAP_PACKET_TEST_RANDOM_H
#define RINGTAP_PACKET_TEST_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 1;

/* 0 to n - 1. */
static inline uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random_state >> 32) * n >> 32);
}

/* As in a header, the high byte first. */
static inline void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

#endif
