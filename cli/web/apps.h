/* SPDX-License-Identifier: BSD-3-Clause */
/* State of each application on the page: the last second, the last ten minutes, the verdicts. */
#ifndef RINGTAP_CLI_WEB_APPS_H
#define RINGTAP_CLI_WEB_APPS_H

#include <jansson.h>
#include <stdbool.h>

#include "flows/live.h"
#include "gaps.h"
#include "heat.h"
#include "history.h"
#include "measure/watch.h"

#define APPS_MAX  64
#define APP_TRAIL 10 /* snapshots, of as many seconds, that are judged */

enum app_state {
	APP_SHOWN,  /* it shows statistics */
	APP_WAITED, /* it is there, and shows none */
	APP_GONE,
};

struct app {
	char *label, *dir; /* label: its name, or its folder where the name is taken */
	char *name;
	struct ringtap_app_info info;
	enum app_state state;
	char why[256];       /* there are no statistics */
	unsigned collectors; /* on */
	uint64_t last;       /* step in which it was there, plus one */
	json_t *metrics;     /* the last second, as ringtap top --json; NULL: none */
	json_t *recorders;   /* answers of its flight recorders; NULL: none */
	json_t *diagnosis;   /* as ringtap doctor --json; NULL: none */
	struct series_list series;
	struct gaps gaps;
	struct heat heat;
	struct ringtap_snapshot
		*trail[APP_TRAIL]; /* oldest first; the application's own is not there */
	unsigned trail_count;
};

struct apps {
	struct history history;
	struct app *list[APPS_MAX];
	size_t count;
	struct flows_live *flows; /* NULL: off */
	size_t left_out;          /* applications beyond APPS_MAX */
	uint64_t snapshots;       /* rounds of them, since the command began */
};

/* Ends a step: takes a snapshot of each application of the watch, and judges it. */
void apps_step(struct apps *all, struct watch *w);
struct app *apps_find(const struct apps *all, const char *label);
void apps_free(struct apps *all);

/* A rate of a port, thread or pool of metrics; NAN: unknown. part: an object within; NULL: none. */
double metric_of(const json_t *object, const char *part, const char *key);
/* The same, added up over ports. */
double metric_sum(const json_t *metrics, const char *part, const char *key);
/* The name of a port or mempool; "(no name)" where it has none. */
const char *name_of(const json_t *object);
/* Losses of a port a second: missed, no mbuf, errors, refused. */
double lost_of(const json_t *port);
/* "lcore 1", or "thread NAME (TID)": several may have one name. thread: as an object of JSON. */
const char *thread_of(const json_t *thread, char buf[SERIES_NAME]);

#endif
