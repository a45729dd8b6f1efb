/* SPDX-License-Identifier: BSD-3-Clause */
/* Points that are too many to be drawn one by one, and counts: an image of how many there are in
 * each cell. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "plot_impl.h"

#define CELL 3 /* width and height, in pixels of the plot */

/* Points of all series in a cell, and the sums of their colours. */
struct cell {
	float n, rgb[3];
};

static void count_points(
	struct cell *cells, int w, int h, const struct plot_panel *p, const struct plot_series *s)
{
	const double *rgb = plot_colour(s->colour);

	for (size_t i = 0; i < s->count; i++) {
		double x = floor(plot_place(&p->x, s->x[i]) * w);
		double y = floor((1 - plot_place(&p->y, s->y[i])) * h);
		struct cell *c;

		if (!isfinite(x) || !isfinite(y))
			continue;
		c = &cells[(int)fmin(fmax(y, 0), h - 1) * w + (int)fmin(fmax(x, 0), w - 1)];
		c->n++;
		for (int k = 0; k < 3; k++)
			c->rgb[k] += (float)rgb[k];
	}
}

/* Where a range lies along an axis of n cells: from and to. False: outside of it. */
static bool cells_of(
	const struct plot_axis *a, double low, double high, int n, double *from, double *to)
{
	if (!(high > a->min && low < a->max))
		return false;
	*from = low > a->min ? plot_place(a, low) * n : 0;
	*to = high < a->max ? plot_place(a, high) * n : n;
	return true;
}

/* Adds a count to the cells from x0 to x1, y0 to y1: to each by the part that is covered. */
static void add_area(struct cell *cells, int w, const double x[2], const double y[2], double count,
	const double rgb[3])
{
	double area = (x[1] - x[0]) * (y[1] - y[0]);

	for (int j = (int)y[0]; j < y[1]; j++) {
		for (int i = (int)x[0]; i < x[1]; i++) {
			double part = (fmin(x[1], i + 1) - fmax(x[0], i)) *
				      (fmin(y[1], j + 1) - fmax(y[0], j)) / area;
			struct cell *c = &cells[j * w + i];

			if (!(part > 0))
				continue;
			c->n += (float)(part * count);
			for (int k = 0; k < 3; k++)
				c->rgb[k] += (float)(part * count * rgb[k]);
		}
	}
}

static void count_heat(struct cell *cells, int w, int h, const struct plot_panel *p)
{
	const struct plot_heat *t = p->heat;
	const double *rgb = plot_colour(t->colour);
	double x[2], y[2], up[2];

	for (size_t i = 0; i < t->columns; i++) {
		if (!cells_of(&p->x, t->x[i], t->x[i + 1], w, &x[0], &x[1]))
			continue;
		for (size_t j = 0; j < t->rows; j++) {
			double count = t->count[i * t->rows + j];

			if (!(count > 0) ||
				!cells_of(&p->y, t->y[j], t->y[j + 1], h, &up[0], &up[1]))
				continue;
			y[0] = h - up[1];
			y[1] = h - up[0];
			add_area(cells, w, x, y, count, rgb);
		}
	}
}

/* The darker, the more points; the mean of their colours. */
static uint32_t pixel_of(const struct cell *c, double most)
{
	double alpha = c->n > 0 ? 0.15 + 0.85 * log1p(c->n) / log1p(most) : 0;
	uint32_t pixel = (uint32_t)(alpha * 255) << 24;

	for (int k = 0; k < 3 && c->n > 0; k++)
		pixel |= (uint32_t)(alpha * c->rgb[k] / c->n * 255) << (16 - 8 * k);
	return pixel;
}

static void put_image(cairo_t *c, const struct cell *cells, int w, int h, const struct plot_box *b)
{
	cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, w, h);
	uint32_t *pixels = (uint32_t *)(void *)cairo_image_surface_get_data(image);
	int stride = cairo_image_surface_get_stride(image) / (int)sizeof(*pixels);
	double most = 1;

	for (int i = 0; i < w * h; i++)
		most = fmax(most, cells[i].n);
	for (int i = 0; pixels && i < w * h; i++)
		pixels[i / w * stride + i % w] = pixel_of(&cells[i], most);
	cairo_surface_mark_dirty(image);
	cairo_save(c);
	cairo_translate(c, b->x, b->y);
	cairo_scale(c, b->w / w, b->h / h);
	cairo_set_source_surface(c, image, 0, 0); /* without memory: c has the error from here on */
	cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_NEAREST);
	cairo_paint(c);
	cairo_restore(c);
	cairo_surface_destroy(image);
}

bool plot_is_dense(const struct plot_series *s)
{
	return s->points && s->count > PLOT_POINTS_MAX;
}

/* Counts, and all series that have too many points, in one image. */
int plot_density(cairo_t *c, const struct plot_panel *p, const struct plot_box *b)
{
	int w = (int)ceil(b->w / CELL), h = (int)ceil(b->h / CELL);
	struct cell *cells = calloc((size_t)w * (size_t)h, sizeof(*cells));
	bool any = p->heat != NULL;

	if (!cells)
		return -ENOMEM;
	if (p->heat)
		count_heat(cells, w, h, p);
	for (size_t i = 0; i < p->series_count; i++) {
		if (plot_is_dense(&p->series[i]))
			count_points(cells, w, h, p, &p->series[i]);
		any |= plot_is_dense(&p->series[i]);
	}
	if (any)
		put_image(c, cells, w, h, b);
	free(cells);
	return 0;
}
