/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the running program. */
#ifndef RINGTAP_FWD_APP_H
#define RINGTAP_FWD_APP_H

#include <pthread.h>

#include "ports.h"
#include "role.h"

#define INSTANCES_MAX (2 * ROLES_MAX) /* forward consists of two oneway roles */

/* A thread and the roles that it polls in turn. */
struct worker {
	pthread_t thread;
	int cpu;
	struct role *roles[INSTANCES_MAX];
	unsigned count;
	enum plane_id plane;
	int error;
	bool ready, running; /* ready: written by the thread; running: by the main thread */
	double cpu_seconds;  /* CPU time in the whole run */
};

/* Statistics of one role in one interval of --interval. */
struct second {
	double at, seconds; /* end of the interval since the start; its length */
	unsigned role;
	struct counters counters; /* increments */
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
	struct second *seconds; /* grown by one of each role */
	size_t second_count;
	uint64_t start_ns; /* CLOCK_REALTIME */
	double elapsed;    /* seconds */
	enum end end;
	bool probe;
};

/* Makes the roles and threads of the configuration, and sets the CPUs in it. 0, or -errno after
 * printing why. */
int app_make(struct app *a, struct fwd_config *c);
/* Allocates what each role needs. The ports must be started. 0, or -errno after printing why. */
int app_init_roles(struct app *a);
void app_free(struct app *a);

/* Runs the roles until the end of the run; sets seconds, elapsed and end. 0 or -errno. */
int app_run(struct app *a);

/* Counters of a stage, and sums over the stages. While the role runs, tx_packets and rx_packets may
 * differ by one burst. */
void role_read(const struct role *r, unsigned stage, struct counters *out);
void role_total(const struct role *r, struct counters *sum);
/* The name of a role in reports: "oneway 0 to 1". Returns buf. */
#define ROLE_TEXT (2 * PORT_NAME_MAX + 32)
const char *role_text(const struct role *r, char buf[ROLE_TEXT]);

/* Prints a line of --interval to stdout, or to stderr if the report is JSON. */
void report_second(const struct app *a, const struct second *s);
/* Print the final report. 0, or nonzero if writing failed. */
int report_text(struct app *a);
int report_json(struct app *a, int argc, char **argv);
int report_samples(struct app *a);

#endif
