/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry: /ringtap/trace switches tracing and reports its state. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_trace.h>

#include "common/fail.h"
#include "probe/dpdk/compat.h"
#include "control.h"
#include "probe/dpdk/teardown.h"
#include "telemetry.h"
#include "probe/trace/trace.h"
#include "probe/trace/load.h"

#define PATIENCE_MS 100

/* Threads that were inside a hook when events were switched off have left it, or are stopped. */
static void wait_for_hooks(void)
{
	struct rt_grace grace;

	rt_grace_begin(&grace);
	for (int i = 0; i < PATIENCE_MS && !rt_grace_over(&grace); i++)
		usleep(1000);
}

static int switch_points(bool on)
{
	int ret;

	if (on)
		rt_trace_mark();
	ret = rte_trace_pattern("ringtap.*", on);
	if (ret < 0)
		return ret;
	rt_control_follow_tracers();
	if (!on)
		wait_for_hooks();
	return ret ? 0 : -ENOENT;
}

/* Threads about to get a trace buffer have got it before DPDK locks the buffers to write them. */
static int save(void)
{
	int ret;

	rt_trace_saving(true);
	wait_for_hooks();
	ret = rte_trace_save();
	rt_trace_saving(false);
	return ret;
}

/* DPDK's report of its tracing, in lines "name = value"; no other function does. NULL: no
 * memory. */
static char *dump(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	rte_trace_dump(f);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

/* The length of its value; 0: there is none. */
static size_t dumped(const char *text, const char *name, const char **value)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\n%s = ", name);
	at = text ? strstr(text, key) : NULL;
	*value = at ? at + strlen(key) : "";
	/* No directory before the first save. */
	return strncmp(*value, "(null)", 6) ? strcspn(*value, "\n") : 0;
}

static void show_string(struct rte_tel_data *d, const char *name, const char *value, size_t len)
{
	char piece[RTE_TEL_MAX_STRING_LEN];

	snprintf(piece, sizeof(piece), "%.*s", (int)len, value);
	rte_tel_data_add_dict_string(d, name, piece);
}

/* A string of rte_telemetry is too short for a long path: return an array of pieces. */
static void show_path(struct rte_tel_data *d, const char *name, const char *value, size_t len)
{
	const size_t most = RTE_TEL_MAX_STRING_LEN - 1;
	char piece[RTE_TEL_MAX_STRING_LEN];
	struct rte_tel_data *pieces;

	if (len <= most) {
		show_string(d, name, value, len);
		return;
	}
	pieces = rte_tel_data_alloc();
	if (!pieces)
		return;
	rte_tel_data_start_array(pieces, RTE_TEL_STRING_VAL);
	for (; len; value += strlen(piece), len -= strlen(piece)) {
		snprintf(piece, sizeof(piece), "%.*s", (int)(len < most ? len : most), value);
		rte_tel_data_add_array_string(pieces, piece);
	}
	if (rte_tel_data_add_dict_container(d, name, pieces, 0))
		rte_tel_data_free(pieces);
}

static void show_buffers(struct rte_tel_data *d, const char *text)
{
	const char *value;
	size_t len = dumped(text, "dir", &value);

	show_path(d, "directory", value, len);
	len = dumped(text, "mode", &value);
	show_string(d, "mode", value, len);
	len = dumped(text, "buffer len", &value);
	rt_compat_tel_uint(d, "buffer_bytes", len ? strtoull(value, NULL, 10) : 0);
}

/* member: the offset of a count. */
static void show_count(struct rte_tel_data *d, const char *name,
	const struct rt_trace_count *counts, size_t member)
{
	struct rte_tel_data *dict = rt_telemetry_dict();

	for (unsigned e = 0; e < RT_TRACE_EVENTS && dict; e++)
		rt_compat_tel_uint(dict, rt_trace_names[e],
			*(const uint64_t *)((const char *)&counts[e] + member));
	if (dict && rte_tel_data_add_dict_container(d, name, dict, 0))
		rte_tel_data_free(dict);
}

static void show_counts(struct rte_tel_data *d, const struct rt_trace_count *counts)
{
	show_count(d, "emitted", counts, offsetof(struct rt_trace_count, emitted));
	show_count(d, "lost", counts, offsetof(struct rt_trace_count, lost));
	show_count(d, "lost_earlier", counts, offsetof(struct rt_trace_count, lost_earlier));
}

/* LTTng may take seconds; the other actions take turns. */
static int act(const char *what, char *err, size_t size)
{
	int ret = 0;

	if (!strcmp(what, "on") || !strcmp(what, "off"))
		ret = switch_points(!strcmp(what, "on"));
	else if (!strcmp(what, "save"))
		ret = save();
	else if (what[0] && strcmp(what, "lttng"))
		return rt_fail(
			-EINVAL, err, size, "unknown parameter; use on, off, save, lttng, or none");
	/* See register_points(). */
	if (ret == -ENOENT)
		snprintf(err, size,
			"EAL registers events at its start only; start the application with -d");
	else if (ret)
		snprintf(err, size, "DPDK's tracing failed: %s", strerror(abs(ret)));
	return ret;
}

static int on_trace(const char *cmd, const char *params, struct rte_tel_data *d)
{
	/* Each client has a thread, and DPDK saves, and returns the path, without a lock. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *what = params ? params : "";
	struct rt_trace_count counts[RT_TRACE_EVENTS];
	char err[RTE_TEL_MAX_STRING_LEN] = "", *text;
	int ret = 0;

	if (!strcmp(what, "lttng"))
		ret = rt_trace_load_lttng(err, sizeof(err));
	pthread_mutex_lock(&lock);
	if (!rt_teardown_hold()) {
		pthread_mutex_unlock(&lock);
		return -ESHUTDOWN;
	}
	/* At least these are in the saved trace, while events go on. */
	rt_trace_counts(counts);
	ret = ret ? ret : act(what, err, sizeof(err));
	text = dump();
	rt_teardown_release();
	pthread_mutex_unlock(&lock);
	if (strcmp(what, "save"))
		rt_trace_counts(counts);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "status", ret);
	if (err[0])
		rte_tel_data_add_dict_string(d, "error", err);
	rt_compat_tel_uint(d, "points_on", rt_trace_points_on());
	rte_tel_data_add_dict_int(d, "lttng", rt_trace_find_lttng());
	rte_tel_data_add_dict_int(
		d, "bursts_traced", !!(rt_load(&rt_stat_mode.state) & RT_COLLECT_TRACE));
	show_buffers(d, text);
	show_counts(d, counts);
	free(text);
	return 0;
}

void rt_telemetry_register_trace(void)
{
	rte_telemetry_register_cmd("/ringtap/trace", on_trace,
		"State of tracing. Parameters: on, off, save, lttng (optional)");
}
