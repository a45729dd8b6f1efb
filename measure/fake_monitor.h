/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications that tests make up: they take the place of those that the reader finds. With
 * common/test_now.h, watching them takes no time. */
#ifndef RINGTAP_MEASURE_FAKE_MONITOR_H
#define RINGTAP_MEASURE_FAKE_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "ringtap/apps.h"
#include "ringtap/monitor.h"

#define FAKE_APPS       4
#define FAKE_READING_NS 500000000ull /* probes read drivers and the kernel twice a second */

/* Content of an application's next snapshot. */
struct fake_stats {
	struct ringtap_snapshot snapshot; /* counts of entries and states; not its arrays */
	struct ringtap_port_stats ports[2];
	struct ringtap_thread_stats threads[2];
	struct ringtap_gap gaps[2][4];
	struct ringtap_microburst microbursts[2][4];
	struct ringtap_queue_stats queues[4];
	struct ringtap_pair_stats pairs[2];
	uint64_t *buckets[2]; /* ringtap_latency_buckets() of them */
	struct ringtap_pool_stats pools[2];
	struct ringtap_ring_stats rings[2];
	struct ringtap_xstat_stats xstats[4];
	struct ringtap_device_stat devices[4];
	struct ringtap_lcore_stats lcores[4];
};

struct fake_app {
	const char *name, *dir;
	uint32_t pid, host_pid;          /* host_pid: 0: not visible */
	bool foreign, secondary, absent; /* absent: it is not found */
	size_t primary;                  /* index */
	/* Attaching: the error, its reason, and the time that an attempt takes. */
	int error;
	const char *why;
	uint64_t attach_ns;
	int read_error; /* -EPIPE: it has ended */
	/* Sets what it has done when ns have passed since fake_apps_begin(). */
	void (*work)(struct fake_app *a, uint64_t ns);
	struct fake_stats s;
	struct ringtap_interval intervals[4]; /* until they are read */
	unsigned interval_count;
	uint64_t intervals_lost;
	/* Calls of monitors. */
	unsigned attempts, switches;
	bool attached;
	int fd; /* the last monitor's */
	struct ringtap_monitor_options options;
	uint64_t attempt_ns[64]; /* since fake_apps_begin() */
};

extern struct fake_app fake_apps[FAKE_APPS];
extern unsigned fake_app_count;
extern unsigned fake_monitors; /* that are open */
extern int fake_search_error;
extern bool fake_by_user; /* the last search's */

/* One application, "app", that works as fake_forward(). */
void fake_apps_begin(void);
void fake_apps_end(void);
/* Adds another one. */
struct fake_app *fake_app_add(const char *name);

/* It ends: the monitors' descriptors are readable, and the next snapshot is its last. */
void fake_app_end(void *app);

/* Forwards a million packets a second from p0 to p1, in bursts of 32, half of the time, with one
 * thread, lcore 1. Drivers and the kernel are read twice a second. */
void fake_forward(struct fake_app *a, uint64_t ns);
/* The same after ns, without a monitor. The caller frees. */
struct ringtap_snapshot *fake_snapshot(struct fake_app *a, uint64_t ns);

#endif
