/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bursts.h"

#define HUGE_BYTES ((size_t)2 << 20)

uint32_t bench_random(uint32_t n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % n);
}

void bench_shuffle(uint32_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = bench_random(i), swap = v[i - 1];

		v[i - 1] = v[k];
		v[k] = swap;
	}
}

uint8_t *bench_pool(uint32_t n)
{
	size_t bytes = ((size_t)n * MBUF_STRIDE + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	uint8_t *pool = aligned_alloc(HUGE_BYTES, bytes);

	if (!pool)
		return NULL;
	madvise(pool, bytes, MADV_HUGEPAGE);
	memset(pool, 0x5a, bytes);
	return pool;
}

struct rte_mbuf *bench_mbuf(uint8_t *at, uint16_t len)
{
	struct rte_mbuf *m = (struct rte_mbuf *)at;

	memset(m, 0, sizeof(*m));
	m->buf_addr = m + 1;
	m->buf_len = RTE_MBUF_DEFAULT_BUF_SIZE;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->refcnt = m->nb_segs = 1;
	m->data_len = len;
	m->pkt_len = len;
	return m;
}

double bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void bench_sort(double *samples, unsigned n)
{
	qsort(samples, n, sizeof(*samples), by_value);
}
