/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics as a probe writes them, for tests that fill or corrupt them. */
#ifndef RINGTAP_READER_TEST_STATS_H
#define RINGTAP_READER_TEST_STATS_H

#include "common/stats.h"

struct test_stats {
	int fd;
	uint64_t size;
	struct rt_stat_header *h;
	struct rt_seg_clock *clock;
	struct rt_stat_port *ports;
	struct rt_stat_thread *threads;
	struct rt_stat_hook *hooks;
	struct rt_stat_pair *pairs;
	struct rt_stat_pool *pools;
	struct rt_stat_ring *rings;
	struct rt_stat_xstat *xstats;
	struct rt_stat_device *devices;
	struct rt_stat_lcore *lcores;
	struct rt_stat_sampler *samplers;
	struct rt_stat_log *logs;
};

/* Two ports, thread 3 (generation 7, lcore 1) without activity; all collectors on. The clock of
 * this machine. Aborts if memory is missing. */
void test_stats_make(struct test_stats *f);
void test_stats_free(struct test_stats *f);

/* Appends a block of a thread and returns it. */
struct rt_stat_hook *test_hook(
	struct test_stats *f, uint32_t slot, uint16_t port, uint16_t queue, uint8_t direction);
struct rt_stat_pair *test_pair(
	struct test_stats *f, uint32_t slot, uint16_t rx_port, uint16_t tx_port);

/* Appends an interval to a log of thread 3. */
void test_interval(struct test_stats *f, uint32_t log, const struct rt_stat_interval *v);

/* A finished run of count samples: addresses 1000, 1001, … */
void test_sample_run(struct test_stats *f, uint32_t sampler, uint64_t number, uint64_t count);

#endif
