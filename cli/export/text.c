/* SPDX-License-Identifier: BSD-3-Clause */
/* Prometheus' text format and OpenMetrics, which differ in little. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

void export_printf(struct export_text *t, const char *format, ...)
{
	va_list ap;

	for (int tries = 0; tries < 2 && !t->failed; tries++) {
		size_t room = t->size - t->len, size;
		char *data;
		int n;

		va_start(ap, format);
		n = vsnprintf(t->data ? t->data + t->len : NULL, room, format, ap);
		va_end(ap);
		if (n >= 0 && (size_t)n < room) {
			t->len += (size_t)n;
			return;
		}
		size = 2 * t->size + (size_t)n + 4096;
		data = n < 0 ? NULL : realloc(t->data, size);
		t->failed = !data;
		if (data) {
			t->data = data;
			t->size = size;
		}
	}
}

/* OpenMetrics names families, the older format names samples and has no infos. */
void export_family(struct export_text *t, const struct rt_metric *m)
{
	static const char *const types[] = {"gauge", "counter", "histogram", "info"};
	static const char *const suffixes[] = {"", "_total", "", "_info"};
	bool info = m->type == RT_METRIC_INFO;
	const char *suffix = t->openmetrics ? "" : suffixes[m->type];

	t->family = m;
	export_printf(t, "# HELP ringtap_%s%s %c%s.\n# TYPE ringtap_%s%s %s\n", m->prometheus,
		suffix, toupper((unsigned char)m->help[0]), m->help + 1, m->prometheus, suffix,
		types[info && !t->openmetrics ? RT_METRIC_GAUGE : m->type]);
}

bool export_takes(struct export_text *t, unsigned samples)
{
	struct export_room *r = t->room;
	bool fits = samples <= r->most - r->used;

	if (fits)
		r->used += samples;
	else
		r->left_out += samples;
	return fits;
}

void export_number(struct export_text *t, const char *suffix, const char *labels, double v)
{
	enum rt_metric_type type = t->family->type;
	const char *own = type == RT_METRIC_COUNTER ? "_total"
			  : type == RT_METRIC_INFO  ? "_info"
						    : "";

	export_printf(t, "ringtap_%s%s%s%s%s%s %.*g\n", t->family->prometheus, own, suffix,
		*labels ? "{" : "", labels, *labels ? "}" : "", floor(v) < v ? 15 : 20, v);
}

/* Escapes as both formats require. Returns the new end. */
static size_t add_value(char *buf, size_t at, size_t room, const char *value)
{
	for (; *value && at + 2 < room; value++) {
		char c = *value >= ' ' && *value <= '~' ? *value : '?';

		if (c == '\\' || c == '"')
			buf[at++] = '\\';
		buf[at++] = c;
	}
	return at;
}

char *export_labels(char buf[LABELS_LEN], ...)
{
	const char *name;
	size_t at = 0;
	va_list ap;

	va_start(ap, buf);
	while ((name = va_arg(ap, const char *)) && at + strlen(name) + 8 < LABELS_LEN) {
		at += (size_t)sprintf(buf + at, "%s%s=\"", at ? "," : "", name);
		at = add_value(buf, at, LABELS_LEN - 2, va_arg(ap, const char *));
		buf[at++] = '"';
	}
	va_end(ap);
	buf[at] = '\0';
	return buf;
}

void export_bucket(struct export_text *t, const char *labels, double le, uint64_t v)
{
	char text[32] = "+Inf";

	/* Always a float, so that series have one name in both formats. */
	if (!isinf(le)) {
		snprintf(text, sizeof(text), "%.9g", le);
		if (!strpbrk(text, ".e"))
			strcat(text, ".0");
	}
	export_printf(t, "ringtap_%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", t->family->prometheus,
		labels, *labels ? "," : "", text, v);
}

void export_end(struct export_text *t)
{
	if (t->openmetrics)
		export_printf(t, "# EOF\n");
}
