/* SPDX-License-Identifier: BSD-3-Clause */
/* An incident: from the condition that was met to its files. */
#ifndef RINGTAP_CLI_FLIGHT_INCIDENT_H
#define RINGTAP_CLI_FLIGHT_INCIDENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "packet/flows.h"
#include "sink/capture_file.h"
#include "trigger.h"

#define INCIDENT_STEPS  50000 /* in a window, at most: its packets are counted in each */
#define INCIDENT_CURVES 3     /* received, sent, lost */

struct flight;
struct packet_rows;
struct passages;

/* An incident that is over. */
struct finished {
	char name[64];
	uint64_t packets, bytes, lost, missing_ns;
	bool failed;
};

struct incident {
	struct flight *f;
	char name[64];
	char *folder;  /* path */
	int folder_fd; /* locked while it is written, see folder_prune() */
	const struct trigger *trigger;
	struct event event;
	uint64_t from_ns, to_ns;
	char *path;               /* path of FLIGHT_PACKETS */
	struct capture_file file; /* its capture is the window; NULL: all of it is written */
	char comment[1024];
	const char *comments[2]; /* the comment and NULL */
	/* Written by the writer; valid for others once done is set. */
	uint64_t packets, bytes, counted, lost, first_ns, last_ns;
	uint64_t *if_packets, *if_lost;               /* by interface, file.interfaces of them */
	struct flows *flows;                          /* NULL: no memory */
	struct packet_rows *rows;                     /* NULL: no memory */
	struct passages *passages;                    /* the same */
	uint64_t step_ns;                             /* the last step may be shorter */
	uint32_t step_count, *steps[INCIDENT_CURVES]; /* packets in each; NULL: no memory */
	bool marked;
	bool followed;       /* what became of its packets is in the file, as far as it is known */
	uint64_t fates_lost; /* fates that are missing; 0: a packet without one was offered */
	uint64_t since_ns;   /* as in struct ringtap_kept, when the window was made */
	/* CLOCK_MONOTONIC; 0: not yet. written: all packets are in the file. */
	uint64_t begun_ns, first_byte_ns, written_ns, finished_ns;
	uint64_t write_cpu_ns, count_cpu_ns; /* CPU time of the writer's thread */
	int error;
	pthread_t thread;
	uint32_t done; /* atomic; release */
};

/* Begins an incident in a new folder. 0, or -errno after a message. */
int incident_begin(struct flight *f, const struct trigger *t, const struct event *e);
/* One whose packets are written, for incident_finish(). NULL: there is none. */
struct incident *incident_take_written(struct flight *f);
/* Writes its other files from the history, which should reach to its end; reports and frees it. */
void incident_finish(struct flight *f, struct incident *i);
/* Nanoseconds of the window's beginning that were not kept any more, or not captured yet. */
uint64_t incident_missing_ns(const struct incident *i);

#endif
