/* SPDX-License-Identifier: BSD-3-Clause */
/* The readings of a session again and again: on a terminal, as JSON, and at the end. */
#ifndef RINGTAP_FATES_VIEW_H
#define RINGTAP_FATES_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/command.h"
#include "target/attach_app.h"
#include "session.h"

struct fates_view {
	struct fates_session s;
	uint64_t first_ns;    /* before the first reading, if that is longer than the interval */
	uint64_t interval_ns; /* between readings */
	uint64_t duration_ns; /* 0: until a signal, or a key */
	uint64_t count;       /* readings; 0: no limit */
	bool once, json;
	bool quiet; /* prints nothing */
	/* Counting has begun; NULL: nothing to do. */
	void (*begun)(void *ctx);
	/* At least ten times a second; NULL: nothing to do. */
	void (*turn)(void *ctx);
	/* After each reading; final: the capture is over, counts are exact. 0 or -errno. */
	int (*reading)(void *ctx, bool final);
	/* Prints the last reading; returns 0 or -errno. */
	int (*text)(void *ctx, FILE *f);
	json_t *(*document)(void *ctx);
	/* The next interval begins; NULL: nothing to do. */
	void (*mark)(void *ctx);
	/* A row of the text was opened on the screen, from 0; -1: closed. NULL: it has no rows. */
	void (*open)(void *ctx, int row);
	void *ctx;
	bool screen;    /* text() writes to one: rows begin with TEXT_ROW */
	int opened;     /* the row; -1: none */
	double seconds; /* length of the current interval */
};

/* Rows for the option table of a command, whose context begins with the view. */
#define FATES_TO(field) OPTION_TO(struct fates_view, field)
#define FATES_OPTION_INTERVAL                                                                   \
	{                                                                                       \
		FATES_TO(interval_ns), OPTION_TIME, 0, "interval", "TIME", NULL, INTERVAL_TIME, \
			"Time between two updates, over which rates are taken, 100ms to 1h "    \
			"(default: 1s)"                                                         \
	}
#define FATES_OPTION_DURATION                                                               \
	{                                                                                   \
		FATES_TO(duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME, \
			"Stop after TIME (default: at Ctrl-C, or q on a terminal)"          \
	}
#define FATES_OPTION_COUNT                                                              \
	{                                                                               \
		FATES_TO(count), OPTION_NUMBER, 0, "updates", "N", NULL, 1, UINT32_MAX, \
			"Stop after N intervals"                                        \
	}
#define FATES_OPTION_ONCE                                                                     \
	{                                                                                     \
		FATES_TO(once), OPTION_FLAG, '1', "once", NULL, NULL, 0, 0,                   \
			"Print the tables, or one document, after one interval or --duration" \
	}
#define FATES_OPTION_JSON                                                                       \
	{                                                                                       \
		FATES_TO(json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,                       \
			"Print JSON: a line each interval and one at the end, or one document " \
			"with --once"                                                           \
	}
#define FATES_OPTION_BUFFER                                                             \
	{                                                                               \
		FATES_TO(s.buffer_size), OPTION_SIZE, 0, "buffer", "SIZE", NULL, 65536, \
			UINT64_C(64) << 30,                                             \
			"Memory for packets that wait to be counted (default: 64M)"     \
	}
#define FATES_OPTION_ATTACH ATTACH_OPTION(struct fates_view, s.app.attach)
#define FATES_OPTIONS_WHEN                                                       \
	{.kind = OPTION_HEADING, .help = "When to stop"}, FATES_OPTION_INTERVAL, \
		FATES_OPTION_COUNT, FATES_OPTION_DURATION, FATES_OPTION_ONCE,    \
	{                                                                        \
		.kind = OPTION_HEADING, .help = "Output"                         \
	}
int fates_operand(void *view, const char *text);

/* Attaches, reads and shows until the end. Returns enum status. */
int fates_run(struct fates_view *v);

#endif
