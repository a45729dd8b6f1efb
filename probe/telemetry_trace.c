/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry: /ringtap/trace switches tracing and tells what became of it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_trace.h>

#include "compat.h"
#include "control.h"
#include "figures.h"
#include "telemetry.h"
#include "trace.h"
#include "trace_load.h"

#define PATIENCE_MS 100

/* Who was in a hook when events were switched off has left it, or does not go on. */
static void wait_for_hooks(void)
{
	struct rt_grace grace;

	rt_grace_begin(&grace);
	for (int i = 0; i < PATIENCE_MS && !rt_grace_over(&grace); i++)
		usleep(1000);
}

static int switch_points(bool on)
{
	int ret = rte_trace_pattern("ringtap.*", on);

	if (ret < 0)
		return ret;
	rt_control_follow_tracers();
	if (!on)
		wait_for_hooks();
	return ret ? 0 : -ENOENT;
}

/* The value of a line "name = value" of rte_trace_dump(); nothing else tells. */
static void dumped(const char *dump, const char *name, char *value, size_t size)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\n%s = ", name);
	at = strstr(dump, key);
	if (!at)
		return;
	at += strlen(key);
	if (!strncmp(at, "(null)", 6)) /* no directory before the first save */
		return;
	snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static void show_buffers(struct rte_tel_data *d)
{
	char *dump = NULL, directory[RTE_TEL_MAX_STRING_LEN] = "", mode[32] = "", bytes[32] = "";
	size_t size;
	FILE *f = open_memstream(&dump, &size);

	if (!f)
		return;
	rte_trace_dump(f);
	if (!fclose(f)) {
		dumped(dump, "dir", directory, sizeof(directory));
		dumped(dump, "mode", mode, sizeof(mode));
		dumped(dump, "buffer len", bytes, sizeof(bytes));
	}
	free(dump);
	rte_tel_data_add_dict_string(d, "directory", directory);
	rte_tel_data_add_dict_string(d, "mode", mode);
	rt_compat_tel_uint(d, "buffer_bytes", strtoull(bytes, NULL, 10));
}

static void show_counts(struct rte_tel_data *d, const struct rt_trace_count *counts)
{
	struct rte_tel_data *emitted = rt_telemetry_dict(), *lost = rt_telemetry_dict();

	for (unsigned e = 0; e < RT_TRACE_EVENTS && emitted && lost; e++) {
		rt_compat_tel_uint(emitted, rt_trace_names[e], counts[e].emitted);
		rt_compat_tel_uint(lost, rt_trace_names[e], counts[e].lost);
	}
	if (emitted && rte_tel_data_add_dict_container(d, "emitted", emitted, 0))
		rte_tel_data_free(emitted);
	if (lost && rte_tel_data_add_dict_container(d, "lost", lost, 0))
		rte_tel_data_free(lost);
}

static int act(const char *what, char *err, size_t size)
{
	int ret = 0;

	if (!strcmp(what, "on") || !strcmp(what, "off"))
		ret = switch_points(!strcmp(what, "on"));
	else if (!strcmp(what, "save"))
		ret = rte_trace_save();
	else if (!strcmp(what, "lttng"))
		return rt_trace_load_lttng(err, size);
	else if (what[0]) {
		snprintf(err, size, "unknown parameter; one of on, off, save, lttng, or none");
		return -EINVAL;
	}
	if (ret)
		snprintf(err, size, "DPDK's tracing: %s", strerror(abs(ret)));
	return ret;
}

static int on_trace(const char *cmd, const char *params, struct rte_tel_data *d)
{
	/* Each who asks has a thread, and DPDK saves without a lock. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct rt_trace_count counts[RT_TRACE_EVENTS];
	char err[RTE_TEL_MAX_STRING_LEN] = "";
	int ret;

	pthread_mutex_lock(&lock);
	/* Not less than these is in what is saved, while events go on. */
	rt_trace_counts(counts);
	ret = act(params ? params : "", err, sizeof(err));
	pthread_mutex_unlock(&lock);
	if (!params || strcmp(params, "save"))
		rt_trace_counts(counts);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "status", ret);
	if (err[0])
		rte_tel_data_add_dict_string(d, "error", err);
	rt_compat_tel_uint(d, "points_on", rt_trace_points_on());
	rte_tel_data_add_dict_int(d, "lttng", rt_trace_find_lttng());
	rte_tel_data_add_dict_int(
		d, "bursts_traced", !!(rt_load(&rt_fig_mode.state) & RT_INSTR_TRACE));
	show_buffers(d);
	show_counts(d, counts);
	return 0;
}

void rt_telemetry_register_trace(void)
{
	rte_telemetry_register_cmd("/ringtap/trace", on_trace,
		"Tracing. Parameters: on, off, save, lttng; none: its state");
}
