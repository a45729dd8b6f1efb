/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics segment in the reader: no value in it is used before it is checked. */
#ifndef RINGTAP_READER_STATS_STATS_H
#define RINGTAP_READER_STATS_STATS_H

#include <stddef.h>

#include "common/stats.h"

struct rt_stats {
	const struct rt_stat_header
		*live;           /* shared: only the fields that change are read from it */
	struct rt_stat_header h; /* private copy, checked */
	const struct rt_seg_clock *clock;
	const struct rt_stat_port *ports;
	const struct rt_stat_thread *threads;
	const struct rt_stat_hook *hooks;
	const struct rt_stat_pair *pairs;
	const struct rt_stat_pool *pools;
	const struct rt_stat_ring *rings;     /* NULL: an earlier probe */
	const struct rt_stat_xstat *xstats;   /* NULL: an earlier probe */
	const struct rt_stat_device *devices; /* NULL: an earlier probe */
	const struct rt_stat_lcore *lcores;   /* NULL: an earlier probe */
	const struct rt_stat_sampler *samplers;
	const struct rt_stat_log *logs; /* NULL: an earlier probe */
};

/* Maps the memory of RT_MSG_MONITORING; fd stays the caller's. Errors as of rt_segment_map(). */
int rt_stats_map(struct rt_stats *f, int fd, char *err, size_t errlen);
void rt_stats_unmap(struct rt_stats *f);

#endif
