/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that draw plots share. */
#ifndef RINGTAP_CLI_MONITOR_PLOT_IMPL_H
#define RINGTAP_CLI_MONITOR_PLOT_IMPL_H

#include <cairo.h>
#include <stdint.h>

#include "plot.h"

struct plot_box {
	double x, y, w, h;
};

/* Where a value lies along an axis: 0 at its beginning, 1 at its end. */
double plot_place(const struct plot_axis *a, double v);
/* Red, green, blue: 0 to 1. */
const double *plot_colour(int colour);

/* plot_density.c */
bool plot_is_dense(const struct plot_series *s);
/* Draws all dense series of the panel, and its counts. 0 or -ENOMEM. */
int plot_density(cairo_t *c, const struct plot_panel *p, const struct plot_box *b);

#endif
