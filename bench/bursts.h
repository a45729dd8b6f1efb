/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures loops over bursts: mbufs in random order, and many short samples. */
#ifndef RINGTAP_BENCH_BURSTS_H
#define RINGTAP_BENCH_BURSTS_H

#include <rte_mbuf.h>

#define BURST       32u
#define MBUF_STRIDE 2432u /* what an mbuf of 2048 bytes of room takes in its pool */

/* Below n, the same numbers in each run. */
uint32_t bench_random(uint32_t n);
/* The numbers below n, in random order. */
void bench_shuffle(uint32_t *v, uint32_t n);

/* Room for n mbufs, MBUF_STRIDE apart. NULL: no memory. The caller frees it. */
uint8_t *bench_pool(uint32_t n);
/* An mbuf with len bytes there. */
struct rte_mbuf *bench_mbuf(uint8_t *at, uint16_t len);

double bench_now_ns(void);
void bench_sort(double *samples, unsigned n);

#endif
