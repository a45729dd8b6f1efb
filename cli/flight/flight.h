/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap flight: the packets of the last seconds are kept in memory, and written when a trigger
 * fires.
 *
 *   keeper thread:  ringtap_capture_keep()
 *   main thread:    snapshots, triggers, signals; begins incidents, and reports on finished ones
 *   writer threads: one for each incident; packets of its window to a file
 */
#ifndef RINGTAP_CLI_FLIGHT_FLIGHT_H
#define RINGTAP_CLI_FLIGHT_FLIGHT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "counted/past.h"
#include "incident.h"
#include "intervals.h"
#include "measure/off_cpu.h"
#include "measure/watch.h"
#include "target/targets.h"

#define FLIGHT_INCIDENTS_MAX 16 /* that are being written at once */
#define FLIGHT_HISTORY       128
#define FLIGHT_RECENT        16

struct flight_status;
struct flight_fates;

/* A condition while it is watched for. */
struct trigger_state {
	/* A level: it has been met since its incident; it is met, and the cooldown lasts. */
	bool holds, waits;
	uint64_t quiet_ns;   /* CLOCK_MONOTONIC, no incident before */
	uint64_t suppressed; /* events that made no incident */
	uint64_t made;       /* incidents */
};

/* A recorder that runs. */
struct flight {
	const struct flight_config *cfg;
	const struct capture_config *capture;
	struct targets targets;
	struct ringtap_capture *cap;
	struct ringtap_monitor *mon;
	struct watched app;                               /* for the doctor: name, mark and now */
	struct ringtap_snapshot *history[FLIGHT_HISTORY]; /* one a second, oldest first */
	unsigned history_count;
	uint64_t second_ns; /* CLOCK_MONOTONIC, of the last of them that began a second */
	struct ringtap_snapshot *last; /* snapshot of the last check */
	double tsc_hz;
	struct intervals intervals;
	struct off_cpus off_cpus;
	struct counted_past counted; /* the application's own counters of drops */
	struct incident *incidents[FLIGHT_INCIDENTS_MAX];
	unsigned incident_count;
	uint64_t checked_ns; /* CLOCK_MONOTONIC, of the last snapshot */
	struct packet_condition *packet_conditions;
	struct usdt_condition *usdt_conditions;
	unsigned packet_condition_count, usdt_condition_count;
	struct trigger_state states[FLIGHT_TRIGGERS_MAX + 1]; /* by index in cfg->triggers */
	uint64_t made, failed, start_ns;
	/* Incidents that are over: without their beginning, and how much of it; packets lost. */
	uint64_t finished, incomplete, missing_ns, incident_lost;
	struct finished recent[FLIGHT_RECENT]; /* number n at n modulo FLIGHT_RECENT */
	struct flight_status *status;
	struct flight_fates *fates; /* NULL: without --fates */
	pthread_t keeper;
	int lock_fd, wake_fd, usr1_fd;
	bool stopping; /* conditions make no incidents any more */
	/* Atomic. */
	uint32_t stop_keeper, keeper_ended, abort_writers;
	int keeper_error;
};

static inline struct trigger_state *flight_state(struct flight *f, const struct trigger *t)
{
	return &f->states[t - f->cfg->triggers];
}

/* Records until a signal or the end of the application. Returns enum status. */
int flight_run(struct flight *f);

#endif
