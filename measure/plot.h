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
	bool points; /* instead of a curve; more than PLOT_POINTS_MAX are drawn as their density */
	int colour;  /* equal numbers look the same */
};

/* More would cover each other, and an SVG would hold each. */
#define PLOT_POINTS_MAX 10000

/* A value with a name: a dot at x, y; where y is NAN, a dashed line at x. Texts that would cover
 * an earlier one are left out. */
struct plot_label {
	double x, y;
	const char *text; /* NULL: none */
	int colour;
};

struct plot_axis {
	const char *label;
	const char *unit; /* of the numbers along it, with SI prefixes: "s", "B"; NULL: plain */
	bool log;
	bool percent;    /* numbers are shares, shown as per cent */
	double min, max; /* min < max, min > 0 where log */
};

/* How often there were which values: counts of cells, drawn the darker the more there are. */
struct plot_heat {
	const double *x, *y; /* edges of the cells, ascending: columns + 1, rows + 1 */
	const double *count; /* column by column */
	size_t columns, rows;
	int colour;
};

struct plot_panel {
	const char *title;
	struct plot_axis x, y;
	const struct plot_series *series;
	size_t series_count;
	const double *marks; /* vertical lines at these x */
	size_t mark_count;
	const struct plot_label *labels;
	size_t label_count;
	const struct plot_heat *heat; /* NULL: none */
};

#define PLOT_TICKS_MAX 64

/* Where an axis has numbers: at least three, and fewer than PLOT_TICKS_MAX. Returns how many. */
int plot_ticks(const struct plot_axis *a, double at[PLOT_TICKS_MAX]);

/* By the name's ending. */
enum plot_format plot_format(const char *path);

/* Draws panels one below the other. 0 or -errno; f stays open. */
int plot_write(FILE *f, enum plot_format format, const char *title, const struct plot_panel *panels,
	size_t count);

#endif
