/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole program while it runs. */
#ifndef RINGTAP_FWD_APP_H
#define RINGTAP_FWD_APP_H

#include <pthread.h>

#include "ports.h"
#include "role.h"

#define INSTANCES_MAX (2 * ROLES_MAX) /* forward is two of oneway */

/* A thread and the roles that take turns in it. */
struct worker {
	pthread_t thread;
	int cpu;
	struct role *roles[INSTANCES_MAX];
	unsigned count;
	enum plane_id plane;
	int error;
	bool ready, running; /* ready: written by the thread */
	double cpu_seconds;  /* that it ran, of the whole run */
};

/* What --stats showed of one role: of one interval. */
struct second {
	double at, seconds; /* since the start, of the interval */
	unsigned role;
	struct counters counters; /* their growth */
};

enum end { END_SIGNAL, END_DURATION, END_COUNT, END_STAGES, END_ERROR };
extern const char *const end_names[];

struct app {
	const struct fwd_config *config;
	struct ports ports;
	struct role *roles[INSTANCES_MAX];
	unsigned role_count;
	struct worker workers[INSTANCES_MAX];
	unsigned worker_count;
	struct second *seconds; /* a list that grows */
	size_t second_count;
	uint64_t start_ns; /* CLOCK_REALTIME */
	double elapsed;    /* seconds */
	enum end end;
	bool probe;
};

/* Roles and their threads out of the configuration, in which CPUs are filled in. -errno after
 * saying why. */
int app_make(struct app *a, struct fwd_config *c);
/* After the ports are there: what each role needs. */
int app_init_roles(struct app *a);
void app_free(struct app *a);

/* Runs until the end; fills in seconds, elapsed, end. */
int app_run(struct app *a);

/* Counts of a stage, and sums over the stages. While the role runs, tx_packets may miss packets
 * that rx_packets has just counted, or the other way round. */
void role_read(const struct role *r, unsigned stage, struct counters *out);
void role_total(const struct role *r, struct counters *sum);
/* A name for people: "oneway 0 to 1". buf has 2 * PORT_NAME_MAX + 32 bytes. */
#define ROLE_TEXT (2 * PORT_NAME_MAX + 32)
const char *role_text(const struct role *r, char buf[ROLE_TEXT]);

/* Lines of --stats: to stdout, or to stderr where the report is JSON. */
void report_second(const struct app *a, const struct second *s);
/* The final report. 0 or -errno. */
int report_text(struct app *a);
int report_json(struct app *a, int argc, char **argv);
int report_samples(struct app *a);

#endif
