/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
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

/* What a unit multiplies by: K, M, G, T and KiB, … by powers of 1024, kB, MB, … by powers of 1000.
 * 0: not a unit of size. */
static uint64_t size_unit(const char *unit)
{
	static const char prefixes[] = "KMGT";
	const char *prefix = *unit ? strchr(prefixes, toupper((unsigned char)*unit)) : NULL;
	const char *rest = prefix ? unit + 1 : unit;
	bool decimal = prefix && !strcmp(rest, "B");
	uint64_t factor = 1;

	if (*rest && strcmp(rest, "B") && !(prefix && !strcmp(rest, "iB")))
		return 0;
	for (const char *p = prefixes; prefix && p <= prefix; p++)
		factor *= decimal ? 1000 : 1024;
	return factor;
}

int parse_size(const char *text, uint64_t *bytes)
{
	char *end = NULL;
	int ret = parse_digits(text, UINT64_MAX, bytes, &end);
	uint64_t unit = ret ? 0 : size_unit(end);

	if (ret || !unit)
		return ret ? ret : -EINVAL;
	if (*bytes > UINT64_MAX / unit)
		return -ERANGE;
	*bytes *= unit;
	return 0;
}

/* 0: not a unit of time. */
static uint64_t time_unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", NS_PER_S}, {"s", NS_PER_S}, {"ms", NS_PER_S / 1000},
		{"us", NS_PER_S / 1000000}, {"ns", 1}, {"m", 60 * NS_PER_S}, {"min", 60 * NS_PER_S},
		{"h", 3600 * NS_PER_S}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(unit, units[i].name))
			return units[i].ns;
	}
	return 0;
}

int parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t whole, unit, scale = NS_PER_S, billionths = 0;
	char *end = NULL;
	int ret = parse_digits(text, UINT64_MAX / NS_PER_S / 2, &whole, &end);

	if (ret)
		return ret;
	if (*end == '.') {
		end++;
		if (!isdigit((unsigned char)*end))
			return -EINVAL;
		for (; isdigit((unsigned char)*end); end++) {
			scale /= 10;
			billionths += scale * (uint64_t)(*end - '0');
		}
	}
	unit = time_unit_ns(end);
	if (!unit)
		return -EINVAL;
	if (whole > UINT64_MAX / 2 / unit)
		return -ERANGE;
	*ns = whole * unit + (uint64_t)((double)billionths / 1e9 * (double)unit + 0.5);
	return *ns ? 0 : -ERANGE;
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

static char *scaled(
	char buf[FORMAT_LEN], double v, double step, const char *const units[], unsigned count)
{
	unsigned i = 0;

	while (v >= 999.5 && i < count - 1) {
		v /= step;
		i++;
	}
	snprintf(buf, FORMAT_LEN, "%.*f%s", i && v < 99.95 ? 1 : 0, v, units[i]);
	return buf;
}

char *format_si(char buf[FORMAT_LEN], double v)
{
	static const char *const units[] = {"", " k", " M", " G", " T"};

	return scaled(buf, v, 1000, units, 5);
}

char *format_binary(char buf[FORMAT_LEN], double v)
{
	static const char *const units[] = {"", " K", " M", " G", " T"};

	return scaled(buf, v, 1024, units, 5);
}

char *format_ns(char buf[FORMAT_LEN], double ns)
{
	static const char *const units[] = {" ns", " us", " ms", " s"};

	return scaled(buf, ns, 1000, units, 4);
}

char *format_unit(char buf[FORMAT_LEN], double v, int digits, const char *unit)
{
	static const char *const prefixes[] = {"p", "n", "µ", "m", "", "k", "M", "G", "T"};
	int i = 4;

	for (; fabs(v) >= 999.5 && i < 8; i++)
		v /= 1000;
	for (; v != 0 && fabs(v) < 0.9995 && i > 0; i--)
		v *= 1000;
	snprintf(buf, FORMAT_LEN, "%.*g %s%s", digits, v, prefixes[i], unit);
	return buf;
}

char *format_mac(char buf[FORMAT_LEN], const uint8_t mac[6])
{
	snprintf(buf, FORMAT_LEN, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	return buf;
}
