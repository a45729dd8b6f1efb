/* SPDX-License-Identifier: BSD-3-Clause */
/* Axes, and what is drawn of many points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "plot.h"

/* Memory that cairo's font libraries never free. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig\n";
}

/* Spans from a hundredth above the smallest value to nine decades, from odd places. */
static void test_every_axis_has_three_numbers(void **state)
{
	double at[PLOT_TICKS_MAX];

	(void)state;
	for (int log = 0; log < 2; log++) {
		for (double min = 1e-9; min < 1e6; min *= 1.37) {
			for (double factor = 1.01; factor < 1e9; factor *= 1.09) {
				const struct plot_axis a = {
					.log = log, .min = min, .max = min * factor};
				int n = plot_ticks(&a, at);

				assert_in_range(n, 3, PLOT_TICKS_MAX - 1);
				assert_true(at[0] >= a.min * 0.999 && at[n - 1] <= a.max * 1.001);
			}
		}
	}
}

/* Bytes of an SVG with n points of one series. */
static long svg_size(size_t points)
{
	double *x = calloc(points, sizeof(*x)), *y = calloc(points, sizeof(*y));
	const struct plot_series s = {.x = x, .y = y, .count = points, .points = true};
	const struct plot_panel p = {.x = {.label = "x", .max = 1},
		.y = {.label = "y", .max = 1},
		.series = &s,
		.series_count = 1};
	FILE *f = tmpfile();
	long size;

	assert_non_null(f);
	srand(1);
	for (size_t i = 0; i < points; i++) {
		x[i] = rand() / (RAND_MAX + 1.0);
		y[i] = rand() / (RAND_MAX + 1.0);
	}
	assert_int_equal(plot_write(f, PLOT_SVG, "points", &p, 1), 0);
	size = ftell(f);
	fclose(f);
	free(x);
	free(y);
	return size;
}

/* Each point would take some thirty bytes. */
static void test_many_points_are_an_image(void **state)
{
	(void)state;
	assert_true(svg_size(PLOT_POINTS_MAX) > 20 * PLOT_POINTS_MAX);
	assert_true(svg_size(1000000) < 20 * PLOT_POINTS_MAX);
}

/* What is not finite is not drawn, in whichever way. */
static void test_gaps(void **state)
{
	const double x[] = {0, NAN, 0.5, 1}, y[] = {0, 1, INFINITY, NAN};
	const struct plot_label labels[] = {{.x = NAN, .y = NAN, .text = "nowhere"},
		{.x = 0.5, .y = NAN, .text = "line"}, {.x = 0.5, .y = 0.5, .text = "dot"}};
	const struct plot_series s[] = {
		{.x = x, .y = y, .count = 4, .points = true}, {.x = x, .y = y, .count = 4}};
	const struct plot_panel p = {.x = {.label = "x", .max = 1},
		.y = {.label = "y", .max = 1},
		.series = s,
		.series_count = 2,
		.labels = labels,
		.label_count = 3};
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	assert_int_equal(plot_write(f, PLOT_PNG, "gaps", &p, 1), 0);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_axis_has_three_numbers),
		cmocka_unit_test(test_many_points_are_an_image),
		cmocka_unit_test(test_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
