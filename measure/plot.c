/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include <cairo-svg.h>
#include <cairo.h>

#include "plot_impl.h"
#include "base/util.h"

/* Pixels, or points of an SVG. */
#define WIDTH       960
#define TITLE       34
#define PANEL       430
#define LEFT        92
#define RIGHT       24
#define TOP         30
#define BOTTOM      58
#define FONT        12.5
#define LONE_RADIUS 3
#define LEGEND_MAX  16
#define NAME_MAX_PX 330
#define TEXTS_MAX   64

/* Okabe and Ito's colours, which colour-blind readers can distinguish. */
static const double colours[][3] = {{0, .447, .698}, {.835, .369, 0}, {0, .62, .451},
	{.8, .475, .655}, {.902, .624, 0}, {.337, .706, .914}, {.3, .3, .3}, {.75, .7, .1}};

enum plot_format plot_format(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && !strcasecmp(dot, ".svg"))
		return PLOT_SVG;
	return dot && !strcasecmp(dot, ".png") ? PLOT_PNG : PLOT_NONE;
}

/* ---- axes ---- */

/* Where a value lies along an axis, 0 … 1. */
double plot_place(const struct plot_axis *a, double v)
{
	if (a->log)
		return log(v / a->min) / log(a->max / a->min);
	return (v - a->min) / (a->max - a->min);
}

static double nice_step(double span, int steps)
{
	double raw = span / steps, ten = pow(10, floor(log10(raw)));

	return ten * (raw / ten > 5 ? 10 : raw / ten > 2 ? 5 : raw / ten > 1 ? 2 : 1);
}

static int linear_ticks(const struct plot_axis *a, double *at)
{
	double step = nice_step(a->max - a->min, 8);
	int n = 0;

	for (double k = ceil(a->min / step); k * step <= a->max && n < PLOT_TICKS_MAX; k++)
		at[n++] = k * step;
	return n;
}

/* Decades; where there are few of them 2 and 5 as well; and within one as on a linear axis. */
int plot_ticks(const struct plot_axis *a, double at[PLOT_TICKS_MAX])
{
	double decades = a->log ? log10(a->max / a->min) : 0;
	int n = 0;

	if (decades < 1)
		return linear_ticks(a, at);
	for (int d = (int)floor(log10(a->min)); d <= (int)ceil(log10(a->max)); d++) {
		for (int k = 1; k <= 5; k += k == 1 ? 1 : 3) {
			double v = k * pow(10, d);

			if ((k == 1 || decades < 3) && v >= a->min * 0.999 && v <= a->max * 1.001 &&
				n < PLOT_TICKS_MAX)
				at[n++] = v;
		}
	}
	return n;
}

static void tick_text(const struct plot_axis *a, double v, char *text, size_t size)
{
	if (a->percent)
		snprintf(text, size, "%.6g %%", v * 100);
	else if (a->unit)
		format_unit(text, v, 6, a->unit);
	else
		snprintf(text, size, "%.6g", v);
}

static double text_width(cairo_t *c, const char *text)
{
	cairo_text_extents_t e;

	cairo_text_extents(c, text, &e);
	return e.x_advance;
}

/* align: 0 begins at x, 0.5 is centred there, 1 ends there. */
static void put_text(cairo_t *c, double x, double y, double align, const char *text)
{
	cairo_move_to(c, x - align * text_width(c, text), y);
	cairo_show_text(c, text);
}

static void line(cairo_t *c, double x1, double y1, double x2, double y2, double grey)
{
	cairo_set_source_rgb(c, grey, grey, grey);
	cairo_set_line_width(c, 1);
	cairo_move_to(c, x1, y1);
	cairo_line_to(c, x2, y2);
	cairo_stroke(c);
}

static void draw_axes(cairo_t *c, const struct plot_panel *p, const struct plot_box *b)
{
	double at[PLOT_TICKS_MAX];
	char text[64];
	int n = plot_ticks(&p->x, at);

	for (int i = 0; i < n; i++) {
		double x = b->x + plot_place(&p->x, at[i]) * b->w;

		line(c, x, b->y, x, b->y + b->h, 0.88);
		cairo_set_source_rgb(c, 0.15, 0.15, 0.15);
		tick_text(&p->x, at[i], text, sizeof(text));
		put_text(c, x, b->y + b->h + 17, 0.5, text);
	}
	n = plot_ticks(&p->y, at);
	for (int i = 0; i < n; i++) {
		double y = b->y + (1 - plot_place(&p->y, at[i])) * b->h;

		line(c, b->x, y, b->x + b->w, y, 0.88);
		cairo_set_source_rgb(c, 0.15, 0.15, 0.15);
		tick_text(&p->y, at[i], text, sizeof(text));
		put_text(c, b->x - 7, y + 4, 1, text);
	}
	put_text(c, b->x + b->w / 2, b->y + b->h + 42, 0.5, p->x.label);
	cairo_save(c);
	cairo_translate(c, 18, b->y + b->h / 2);
	cairo_rotate(c, -M_PI / 2);
	put_text(c, 0, 0, 0.5, p->y.label);
	cairo_restore(c);
	for (size_t i = 0; i < p->mark_count; i++) {
		double x = b->x + plot_place(&p->x, p->marks[i]) * b->w;

		line(c, x, b->y, x, b->y + b->h, 0.55);
	}
	cairo_set_source_rgb(c, 0.3, 0.3, 0.3);
	cairo_rectangle(c, b->x, b->y, b->w, b->h);
	cairo_stroke(c);
}

/* ---- what is drawn between them ---- */

const double *plot_colour(int colour)
{
	return colours[(size_t)colour % (sizeof(colours) / sizeof(colours[0]))];
}

static void set_colour(cairo_t *c, int colour)
{
	const double *rgb = plot_colour(colour);

	cairo_set_source_rgb(c, rgb[0], rgb[1], rgb[2]);
}

/* Where point i is drawn; false: there is none. */
static bool find_point(const struct plot_panel *p, const struct plot_series *s,
	const struct plot_box *b, size_t i, double *x, double *y)
{
	if (i >= s->count)
		return false;
	*x = b->x + plot_place(&p->x, s->x[i]) * b->w;
	*y = b->y + (1 - plot_place(&p->y, s->y[i])) * b->h;
	return isfinite(*x) && isfinite(*y);
}

/* Points without a neighbour: a line of one point is invisible. */
static void draw_lone_points(cairo_t *c, const struct plot_panel *p, const struct plot_series *s,
	const struct plot_box *b)
{
	double x, y;

	for (size_t i = 0; i < s->count; i++) {
		if ((i && find_point(p, s, b, i - 1, &x, &y)) ||
			find_point(p, s, b, i + 1, &x, &y) || !find_point(p, s, b, i, &x, &y))
			continue;
		cairo_new_path(c);
		cairo_arc(c, x, y, LONE_RADIUS, 0, 2 * M_PI);
		cairo_fill(c);
	}
}

static void draw_curve(cairo_t *c, const struct plot_panel *p, const struct plot_series *s,
	const struct plot_box *b)
{
	bool pen = false;
	double x, y;

	for (size_t i = 0; i < s->count; i++) {
		bool there = find_point(p, s, b, i, &x, &y);

		if (there)
			(pen ? cairo_line_to : cairo_move_to)(c, x, y);
		pen = there;
	}
	cairo_set_line_width(c, 1.8);
	cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
	cairo_stroke(c);
	draw_lone_points(c, p, s, b);
}

/* Lines without a length, whose ends are round: in an SVG the shortest way to write a point.
 * Where they would cover each other, rounded to a quarter of a pixel, one does. */
static void draw_points(cairo_t *c, const struct plot_panel *p, const struct plot_series *s,
	const struct plot_box *b)
{
	double last_x = NAN, last_y = NAN;

	for (size_t i = 0; i < s->count; i++) {
		double x = round((b->x + plot_place(&p->x, s->x[i]) * b->w) * 4) / 4;
		double y = round((b->y + (1 - plot_place(&p->y, s->y[i])) * b->h) * 4) / 4;

		if (!isfinite(x) || !isfinite(y) || (x == last_x && y == last_y))
			continue;
		cairo_move_to(c, x, y);
		cairo_line_to(c, x, y);
		last_x = x;
		last_y = y;
	}
	cairo_set_line_width(c, 1.9);
	cairo_set_line_cap(c, CAIRO_LINE_CAP_ROUND);
	cairo_stroke(c);
	cairo_set_line_cap(c, CAIRO_LINE_CAP_BUTT);
}

/* ---- values with names ---- */

static bool overlap(const struct plot_box *a, const struct plot_box *b)
{
	return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

/* Right of the place, or left of it where there is no room; nothing where another text is. */
static void put_label_text(cairo_t *c, const char *text, double x, double y,
	const struct plot_box *b, struct plot_box *taken, int *n)
{
	struct plot_box t = {x + 8, y - FONT, text_width(c, text) + 4, FONT + 4};

	if (t.x + t.w > b->x + b->w)
		t.x = x - 8 - t.w;
	for (int i = 0; i < *n; i++)
		if (overlap(&t, &taken[i]))
			return;
	if (*n == TEXTS_MAX)
		return;
	taken[(*n)++] = t;
	put_text(c, t.x, y - 2, 0, text);
}

static void draw_label_mark(
	cairo_t *c, const struct plot_label *l, double x, double y, const struct plot_box *b)
{
	static const double dashes[] = {4, 3};

	set_colour(c, l->colour);
	if (isfinite(y)) {
		cairo_new_path(c); /* else a line from the last text leads to it */
		cairo_arc(c, x, y, 3.5, 0, 2 * M_PI);
		cairo_fill(c);
		return;
	}
	cairo_set_dash(c, dashes, 2, 0);
	cairo_set_line_width(c, 1);
	cairo_move_to(c, x, b->y);
	cairo_line_to(c, x, b->y + b->h);
	cairo_stroke(c);
	cairo_set_dash(c, NULL, 0, 0);
}

/* legend: what texts may not cover. */
static void draw_labels(cairo_t *c, const struct plot_panel *p, const struct plot_box *b,
	const struct plot_box *legend)
{
	struct plot_box taken[TEXTS_MAX] = {*legend};
	int n = 1;

	for (size_t i = 0; i < p->label_count; i++) {
		const struct plot_label *l = &p->labels[i];
		double x = b->x + plot_place(&p->x, l->x) * b->w;
		double y = b->y + (1 - plot_place(&p->y, l->y)) * b->h;

		if (!(x >= b->x && x <= b->x + b->w))
			continue;
		draw_label_mark(c, l, x, y, b);
		cairo_set_source_rgb(c, 0.1, 0.1, 0.1);
		if (l->text)
			put_label_text(
				c, l->text, x, isfinite(y) ? y : b->y + FONT + 6, b, taken, &n);
	}
}

/* Cuts a name to what there is room for. */
static void fit(cairo_t *c, char *name, double room)
{
	while (*name && text_width(c, name) > room)
		name[strlen(name) - 1] = '\0';
}

struct legend {
	char names[LEGEND_MAX][96];
	int colours[LEGEND_MAX], count;
	struct plot_box box;
};

static void make_legend(
	cairo_t *c, const struct plot_panel *p, const struct plot_box *b, struct legend *l)
{
	double widest = 0;

	*l = (struct legend){.count = 0};
	for (size_t i = 0; i < p->series_count && l->count < LEGEND_MAX; i++) {
		char *name = l->names[l->count];

		if (!p->series[i].name)
			continue;
		snprintf(name, sizeof(l->names[0]), "%s", p->series[i].name);
		fit(c, name, NAME_MAX_PX);
		widest = fmax(widest, text_width(c, name));
		l->colours[l->count++] = p->series[i].colour;
	}
	if (l->count)
		l->box = (struct plot_box){
			b->x + b->w - widest - 40, b->y + 10, widest + 32, l->count * 18 + 8};
}

static void draw_legend(cairo_t *c, const struct legend *l)
{
	if (!l->count)
		return;
	cairo_set_source_rgba(c, 1, 1, 1, 0.85);
	cairo_rectangle(c, l->box.x, l->box.y, l->box.w, l->box.h);
	cairo_fill_preserve(c);
	cairo_set_source_rgb(c, 0.7, 0.7, 0.7);
	cairo_set_line_width(c, 1);
	cairo_stroke(c);
	for (int i = 0; i < l->count; i++) {
		set_colour(c, l->colours[i]);
		cairo_rectangle(c, l->box.x + 7, l->box.y + 9 + i * 18, 10, 10);
		cairo_fill(c);
		cairo_set_source_rgb(c, 0.1, 0.1, 0.1);
		put_text(c, l->box.x + 24, l->box.y + 18 + i * 18, 0, l->names[i]);
	}
}

static int draw_panel(cairo_t *c, const struct plot_panel *p, double top)
{
	const struct plot_box b = {LEFT, top + TOP, WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM};
	struct legend legend;
	int ret;

	cairo_set_source_rgb(c, 0.1, 0.1, 0.1);
	if (p->title)
		put_text(c, b.x, b.y - 9, 0, p->title);
	draw_axes(c, p, &b);
	cairo_save(c);
	cairo_rectangle(c, b.x, b.y, b.w, b.h);
	cairo_clip(c);
	ret = plot_density(c, p, &b);
	for (size_t i = 0; i < p->series_count; i++) {
		set_colour(c, p->series[i].colour);
		if (!plot_is_dense(&p->series[i]))
			(p->series[i].points ? draw_points : draw_curve)(c, p, &p->series[i], &b);
	}
	cairo_restore(c);
	make_legend(c, p, &b, &legend);
	draw_labels(c, p, &b, &legend.box);
	draw_legend(c, &legend);
	return ret;
}

static cairo_status_t put_bytes(void *f, const unsigned char *data, unsigned int len)
{
	return fwrite(data, 1, len, f) == len ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

int plot_write(FILE *f, enum plot_format format, const char *title, const struct plot_panel *panels,
	size_t count)
{
	int height = TITLE + PANEL * (int)count;
	cairo_surface_t *surface =
		format == PLOT_SVG
			? cairo_svg_surface_create_for_stream(put_bytes, f, WIDTH, height)
			: cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, height);
	cairo_t *c = cairo_create(surface);
	cairo_status_t status;
	int ret = 0;

	cairo_set_source_rgb(c, 1, 1, 1);
	cairo_paint(c);
	errno = 0;
	cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(c, FONT + 2);
	cairo_set_source_rgb(c, 0, 0, 0);
	put_text(c, WIDTH / 2.0, 23, 0.5, title);
	cairo_set_font_size(c, FONT);
	for (size_t i = 0; i < count && !ret; i++)
		ret = draw_panel(c, &panels[i], TITLE + (double)i * PANEL);
	status = cairo_status(c);
	cairo_destroy(c);
	if (!status && format == PLOT_PNG)
		status = cairo_surface_write_to_png_stream(surface, put_bytes, f);
	cairo_surface_finish(surface);
	if (!status)
		status = cairo_surface_status(surface);
	cairo_surface_destroy(surface);
	if (ret || status == CAIRO_STATUS_NO_MEMORY)
		return -ENOMEM;
	return status || fflush(f) || ferror(f) ? (errno ? -errno : -EIO) : 0;
}
