/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by latency and memory: one application, for a time or a number of packets. */
#ifndef RINGTAP_MEASURE_MEASURE_H
#define RINGTAP_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/command.h"
#include "target/attach_app.h"
#include "web/view.h"
#include "one_app.h"

/* Rows for the option table of a command whose context begins with its measure_options. */
#define MEASURE_TO(field)     OPTION_TO(struct measure_options, field)
#define MEASURE_OPTION_ATTACH ATTACH_OPTION(struct measure_options, attach)
#define MEASURE_OPTION_JSON                                                              \
	{                                                                                \
		MEASURE_TO(json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print JSON" \
	}
#define MEASURE_OPTION_HTML                                                                   \
	{                                                                                     \
		MEASURE_TO(html), OPTION_FILE, 0, "html", "FILE", NULL, 0, 0,                 \
			"Write the report as a page that needs nothing else, with plots and " \
			"tables"                                                              \
	}
#define MEASURE_OPTION_QUIET                                                    \
	{                                                                       \
		MEASURE_TO(quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0, \
			"Print only errors to standard error"                   \
	}

struct measure_options {
	const char *command; /* for messages; set by the caller */
	struct one_app_words words;
	uint64_t duration_ns, packets; /* 0: no limit */
	const char *html;
	bool json, quiet, attach;
};

/* For struct command. */
int measure_operand(void *options, const char *text);

enum measure_end { END_BY_LIMIT, END_BY_SIGNAL, END_BY_APPLICATION };

struct measure {
	const struct measure_options *options;
	unsigned collectors, latency_every;
	const char *what; /* "packets timed", for the live line */
	/* Takes a snapshot in; earlier is the first one. Returns how many packets that makes. */
	uint64_t (*take)(void *ctx, const struct ringtap_snapshot *earlier,
		const struct ringtap_snapshot *now);
	void *ctx;

	struct one_app app;
	struct ringtap_app_info info;
	struct ringtap_snapshot *first, *last; /* last is the difference to first once it is over */
	struct ringtap_monitor *mon;
	enum measure_end end;
};

/* Attaches, measures until a limit, a signal or the application's end, and detaches. Returns enum
 * status, other than STATUS_OK after printing why. Free with measure_free() in any case. */
int measure_run(struct measure *m);
void measure_free(struct measure *m);
/* Begins the document of a page: "APP: what". */
void measure_view(struct view *v, const struct measure *m, const char *what);

#endif
