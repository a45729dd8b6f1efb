/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as a probe would make them, for tests that fill or spoil them themselves. */
#ifndef RINGTAP_READER_TEST_STATS_H
#define RINGTAP_READER_TEST_STATS_H

#include "common/stats.h"

struct test_figures {
	int fd;
	uint64_t size;
	struct rt_fig_header *h;
	struct rt_seg_clock *clock;
	struct rt_fig_port *ports;
	struct rt_fig_thread *threads;
	struct rt_fig_hook *hooks;
	struct rt_fig_pair *pairs;
	struct rt_fig_pool *pools;
	struct rt_fig_sampler *samplers;
};

/* Two ports, thread 3 (life 7, lcore 1), and nothing that it did; all instruments on. The clock is
 * that of this machine. Aborts where memory is missing. */
void test_figures_make(struct test_figures *f);
void test_figures_free(struct test_figures *f);

/* Appends a block of a thread and returns it. */
struct rt_fig_hook *test_hook(
	struct test_figures *f, uint32_t slot, uint16_t port, uint16_t queue, uint8_t direction);
struct rt_fig_pair *test_pair(
	struct test_figures *f, uint32_t slot, uint16_t rx_port, uint16_t tx_port);

/* A finished stretch of count samples: addresses 1000, 1001, … */
void test_stretch(struct test_figures *f, uint32_t sampler, uint64_t number, uint64_t count);

#endif
