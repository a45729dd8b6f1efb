/* SPDX-License-Identifier: BSD-3-Clause */
/* The application, and the ports of it, that a measuring command reads. */
#ifndef RINGTAP_MEASURE_ONE_APP_H
#define RINGTAP_MEASURE_ONE_APP_H

#include <stdbool.h>

#include "ringtap/monitor.h"

#define ONE_APP_PORTS 64

/* Operands: APP[:PORT] or :PORT. They live as long as the one_app. */
struct one_app_words {
	const char *list[ONE_APP_PORTS];
	unsigned count; /* 0: the only application */
};

struct one_app {
	struct ringtap_apps *apps;
	const char *name, *dir; /* live as long as apps */
	const char *ports[ONE_APP_PORTS];
	unsigned port_count; /* 0: all */
	bool attach;         /* load the probe where it is missing; set by the caller */
	bool all;            /* a word without a port was among them */
	bool secondary;      /* it is a secondary process */
};

/* Adds an operand. 0, or -EINVAL after a message, as command. */
int one_app_words(struct one_app_words *w, const char *command, const char *word);
/* Finds what the words mean. a->attach is set by the caller. 0, or -errno after printing why, as
 * command. Free with one_app_free() in any case. */
int one_app_resolve(struct one_app *a, const char *command, const struct one_app_words *words);
void one_app_free(struct one_app *a);

/* Whether a port of the snapshot (RINGTAP_NO_INDEX: an unknown one) is among the requested ones. */
bool one_app_includes(const struct one_app *a, const struct ringtap_snapshot *f, uint32_t port);
/* A requested port that is not in the snapshot; NULL: there is none. */
const char *one_app_missing(const struct one_app *a, const struct ringtap_snapshot *f);

#endif
