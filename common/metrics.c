/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "metrics.h"

#define ROW(object, id, key, prometheus, type, unit, help) \
	[RT_M_##id] = {RT_OBJECT_##object, key, prometheus, RT_METRIC_##type, RT_UNIT_##unit, help},
const struct rt_metric rt_metrics[RT_M_COUNT] = {RT_METRICS(ROW)};
