/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

static int parse_digits(const char *text, uint64_t max, uint64_t *out, char **end)
{
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, end, 10);
	return errno || *out > max ? -ERANGE : 0;
}

int parse_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end = NULL;
	int ret = parse_digits(text, max, out, &end);

	if (end && *end)
		return -EINVAL;
	return ret;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* Increasing, for write_unit(); what follows the empty name is only read. */
static const struct unit time_units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", NS_PER_S},
	{"min", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}, {"d", 86400 * NS_PER_S}, {NULL, 0},
	{"m", 60 * NS_PER_S}, {"\u00b5s", 1000}, {"\u03bcs", 1000}};
static const struct unit size_units[] = {{"B", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30},
	{"T", UINT64_C(1) << 40}, {NULL, 0}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30},
	{"t", UINT64_C(1) << 40}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"TiB", UINT64_C(1) << 40}, {"kB", 1000}, {"MB", 1000000}, {"GB", 1000000000},
	{"TB", UINT64_C(1000000000000)}};
static const struct unit count_units[] = {
	{"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};
#define UNITS(of) of##_units, sizeof(of##_units) / sizeof(of##_units[0])

/* Billionths; digits behind the ninth are left out. */
static int parse_fraction(const char *text, uint64_t *out, const char **end)
{
	uint64_t scale = NS_PER_S;

	*out = 0;
	*end = text;
	if (*text != '.')
		return 0;
	for (text++; isdigit((unsigned char)*text); text++) {
		scale /= 10;
		*out += scale * (uint64_t)(*text - '0');
	}
	*end = text;
	return isdigit((unsigned char)text[-1]) ? 0 : -EINVAL;
}

/* bare: what a number without a unit counts; 0: it is refused, unless it is zero. */
static int parse_unit(const char *text, const struct unit *units, size_t count, uint64_t bare,
	uint64_t max, uint64_t *out)
{
	const char *unit;
	char *end = NULL;
	uint64_t whole, billionths, factor = 0;
	unsigned __int128 n;
	int range = parse_digits(text, UINT64_MAX, &whole, &end);
	int ret = end ? parse_fraction(end, &billionths, &unit) : -EINVAL;

	if (ret)
		return ret;
	for (size_t i = 0; i < count; i++)
		if (units[i].name && !strcmp(units[i].name, unit))
			factor = units[i].factor;
	if (!factor && *unit)
		return -EINVAL;
	factor = factor ? factor : bare;
	if (!factor && (whole || billionths || range))
		return -ENODATA;
	if (range)
		return range;
	n = (unsigned __int128)billionths * factor;
	if (n % NS_PER_S)
		return -EINVAL;
	n = n / NS_PER_S + (unsigned __int128)whole * factor;
	*out = (uint64_t)n;
	return n > max ? -ERANGE : 0;
}

int parse_count(const char *text, uint64_t *n)
{
	return parse_unit(text, UNITS(count), 1, UINT64_MAX, n);
}

int parse_time(const char *text, uint64_t bare, uint64_t *ns)
{
	return parse_unit(text, UNITS(time), bare, TIME_MAX, ns);
}

int parse_size(const char *text, uint64_t bare, uint64_t *bytes)
{
	return parse_unit(text, UNITS(size), bare, UINT64_MAX, bytes);
}

/* In the largest unit that makes a whole number of it. */
static char *write_unit(char buf[FORMAT_LEN], const struct unit *unit, uint64_t n)
{
	const struct unit *best = unit;

	for (; n && unit->name; unit++)
		if (n % unit->factor == 0)
			best = unit;
	snprintf(buf, FORMAT_LEN, "%" PRIu64 "%s", n / best->factor, n ? best->name : "");
	return buf;
}

char *write_time(char buf[FORMAT_LEN], uint64_t ns)
{
	return write_unit(buf, time_units, ns);
}

char *write_size(char buf[FORMAT_LEN], uint64_t bytes)
{
	return write_unit(buf, size_units, bytes);
}

char *format_count(char buf[FORMAT_LEN], uint64_t n)
{
	char plain[FORMAT_LEN];
	size_t len = (size_t)snprintf(plain, sizeof(plain), "%" PRIu64, n);
	char *p = buf;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = plain[i];
	}
	*p = '\0';
	return buf;
}

/* Three digits, no fraction in the first unit; from limit on in the next one. */
static char *scaled(char buf[FORMAT_LEN], double v, double step, double limit,
	const char *const units[], unsigned count)
{
	unsigned i = 0;

	for (; fabs(v) >= limit && i < count - 1; i++)
		v /= step;
	snprintf(buf, FORMAT_LEN, i && fabs(v) < 99.95 ? "%.3g%s" : "%.0f%s", v, units[i]);
	return buf;
}

char *format_si(char buf[FORMAT_LEN], double v)
{
	static const char *const units[] = {"", " k", " M", " G", " T"};

	return scaled(buf, v, 1000, 999.5, units, 5);
}

char *format_bytes(char buf[FORMAT_LEN], double bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};

	return scaled(buf, bytes, 1024, 1023.5, units, 5);
}

char *format_ns(char buf[FORMAT_LEN], double ns)
{
	static const char *const units[] = {" ns", " us", " ms", " s"};

	return scaled(buf, ns, 1000, 999.5, units, 4);
}

char *format_mac(char buf[FORMAT_LEN], const uint8_t mac[6])
{
	snprintf(buf, FORMAT_LEN, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	return buf;
}
