/* SPDX-License-Identifier: BSD-3-Clause */
/* Curves and clouds of points with axes and a legend, as SVG or PNG. */
#ifndef RINGTAP_CLI_MONITOR_PLOT_H
#define RINGTAP_CLI_MONITOR_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum plot_format { PLOT_NONE, PLOT_SVG, PLOT_PNG };

struct plot_series {
	const char *name;    /* for the legend; NULL: not in it */
	const double *x, *y; /* NAN in y: a gap in the curve */
	size_t count;
	bool points; /* instead of a curve */
	int colour;  /* equal numbers look the same */
};

struct plot_axis {
	const char *label;
	const char *unit; /* of the numbers along it, with SI prefixes: "s", "B"; NULL: plain */
	bool log;
	bool percent;    /* numbers are shares, shown as per cent */
	double min, max; /* min < max, min > 0 where log */
};

struct plot_panel {
	const char *title;
	struct plot_axis x, y;
	const struct plot_series *series;
	size_t series_count;
	const double *marks; /* vertical lines at these x */
	size_t mark_count;
};

/* By the name's ending. */
enum plot_format plot_format(const char *path);

/* Draws panels one below the other. 0 or -errno; f stays open. */
int plot_write(FILE *f, enum plot_format format, const char *title, const struct plot_panel *panels,
	size_t count);

#endif
