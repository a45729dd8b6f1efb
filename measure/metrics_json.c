/* SPDX-License-Identifier: BSD-3-Clause */
/* All metrics of an interval as JSON; docs/statistics.md has their meanings. */
#include "base/json.h"
#include "collectors.h"
#include "metrics.h"

static void set(json_t *j, const char *key, json_t *value)
{
	json_object_set_new(j, key, value);
}

/* The gaps and microbursts that ended within the interval, and the gap that lasts. */
static void set_gaps(json_t *j, const struct subject *x)
{
	json_t *gaps = json_array(), *microbursts = json_array();
	struct subject y;

	for (uint32_t i = 0; subject_gap(&y, x, i); i++) {
		json_t *one = json_object();

		metrics_json(one, &y, RT_OBJECT_GAP, false);
		json_array_append_new(y.gap ? gaps : microbursts, one);
	}
	set(j, "gaps", gaps);
	set(j, "microbursts", microbursts);
}

static json_t *part_json(const struct subject *x, enum rt_metric_object object, bool tx)
{
	json_t *j = json_object();

	metrics_json(j, x, object, tx);
	return j;
}

static json_t *subject_json(const struct subject *x)
{
	json_t *j = part_json(x, x->object, false);

	if (x->object == RT_OBJECT_PORT) {
		set(j, "rx", part_json(x, RT_OBJECT_CALLS, false));
		set(j, "tx", part_json(x, RT_OBJECT_CALLS, true));
		set(j, "driver_per_second", part_json(x, RT_OBJECT_DRIVER, false));
	} else if (x->object == RT_OBJECT_QUEUE) {
		metrics_json(j, x, RT_OBJECT_CALLS, false);
	} else if (x->object == RT_OBJECT_THREAD) {
		set_gaps(j, x);
	}
	return j;
}

void metrics_json_all(json_t *j, const struct span *s)
{
	static const struct {
		const char *key;
		enum rt_metric_object object;
	} lists[] = {{"ports", RT_OBJECT_PORT}, {"queues", RT_OBJECT_QUEUE},
		{"threads", RT_OBJECT_THREAD}, {"pools", RT_OBJECT_POOL}, {"rings", RT_OBJECT_RING},
		{"xstats", RT_OBJECT_XSTAT}, {"devices", RT_OBJECT_DEVICE},
		{"lcores", RT_OBJECT_LCORE}, {"latency", RT_OBJECT_PAIR}};
	struct subject x = {.span = s};

	set(j, "interval_ns", json_ns(s->seconds * 1e9));
	set(j, "collectors", collectors_json(s->to->collectors));
	metrics_json(j, &x, RT_OBJECT_APP, false);
	for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++) {
		json_t *array = json_array();

		for (uint32_t i = 0; i < subject_count(s->to, lists[l].object); i++) {
			if (!subject_wanted(s, lists[l].object, i))
				continue;
			subject_make(&x, s, lists[l].object, i, true);
			json_array_append_new(array, subject_json(&x));
		}
		set(j, lists[l].key, array);
	}
}
