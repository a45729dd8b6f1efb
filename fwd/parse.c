/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "base/util.h"

static int copy_name(char out[PORT_NAME_MAX], const char *from, const char *to)
{
	if (to <= from || to - from >= PORT_NAME_MAX)
		return -EINVAL;
	memcpy(out, from, (size_t)(to - from));
	out[to - from] = '\0';
	return 0;
}

int parse_role(const char *text, struct role_spec *out)
{
	const char *colon = strchr(text, ':');
	const char *at = strrchr(text, '@');
	const char *end = at ? at : text + strlen(text);
	const char *comma;
	uint64_t cpu;
	int kind;

	*out = (struct role_spec){.cpu = ANY_CPU};
	if (!colon || colon > end)
		return -EINVAL;
	kind = choice_index(ROLE_CHOICES, text, (size_t)(colon - text));
	if (kind < 0)
		return -EINVAL;
	out->kind = (enum role_kind)kind;
	if (at && parse_number(at + 1, 4095, &cpu))
		return -EINVAL;
	if (at)
		out->cpu = (int)cpu;
	comma = memchr(colon, ',', (size_t)(end - colon));
	if (!!comma != (kind == ROLE_FORWARD || kind == ROLE_ONEWAY))
		return -EINVAL;
	if (comma && (memchr(comma + 1, ',', (size_t)(end - comma - 1)) ||
			     copy_name(out->ports[1], comma + 1, end)))
		return -EINVAL;
	return copy_name(out->ports[0], colon + 1, comma ? comma : end);
}

/* Decimal digits with an optional fraction; strtod() would take "inf", "0x1p3" and blanks. */
static int parse_decimal(const char *text, double *out, const char **end)
{
	size_t n = strspn(text, "0123456789");

	if (!n || n > 15)
		return n ? -ERANGE : -EINVAL;
	if (text[n] == '.')
		n += 1 + strspn(text + n + 1, "0123456789");
	if (n > 30 || text[n - 1] == '.')
		return -EINVAL;
	*out = strtod(text, NULL);
	*end = text + n;
	return 0;
}

static int parse_rate_part(const char *text, bool zero, uint64_t *out, const char **end)
{
	double value, whole, scale = 1;
	int ret;

	if (!strncmp(text, "max", 3)) {
		*out = RATE_UNLIMITED;
		*end = text + 3;
		return 0;
	}
	ret = parse_decimal(text, &value, end);
	if (ret)
		return ret;
	switch (**end) {
	case 'k':
	case 'K': scale = 1e3; break;
	case 'm':
	case 'M': scale = 1e6; break;
	case 'g':
	case 'G': scale = 1e9; break;
	default: (*end)--;
	}
	(*end)++;
	value *= scale;
	whole = round(value);
	/* Rates are whole numbers. The tolerance is for decimal fractions, inexact in binary. */
	if (whole > (double)RATE_MAX || fabs(value - whole) > 1e-6 || (whole < 1 && !zero))
		return -ERANGE;
	*out = (uint64_t)whole;
	return 0;
}

int parse_rate(const char *text, bool zero, uint64_t *out)
{
	const char *end;
	int ret = parse_rate_part(text, zero, out, &end);

	return ret ? ret : *end ? -EINVAL : 0;
}

static int parse_time_part(const char *text, uint64_t *ns, const char **end)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ms", 1e6}, {"us", 1e3}, {"s", 1e9}, {"m", 60e9}};
	double value, scale = 1e9;
	int ret = parse_decimal(text, &value, end);

	if (ret)
		return ret;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i].unit);

		if (!strncmp(*end, units[i].unit, len)) {
			scale = units[i].ns;
			*end += len;
			break;
		}
	}
	value *= scale;
	if (value < 1 || value > 1e18)
		return -ERANGE;
	*ns = (uint64_t)(value + 0.5);
	return 0;
}

int parse_time(const char *text, uint64_t *ns)
{
	const char *end;
	int ret = parse_time_part(text, ns, &end);

	return ret ? ret : *end ? -EINVAL : 0;
}

int parse_stages(const char *text, struct stage *out, unsigned *count)
{
	unsigned n = 0;
	int ret;

	for (;;) {
		if (n == STAGES_MAX)
			return -ERANGE;
		ret = parse_rate_part(text, true, &out[n].rate, &text);
		if (ret)
			return ret;
		if (*text != ':')
			return -EINVAL;
		ret = parse_time_part(text + 1, &out[n].ns, &text);
		if (ret)
			return ret;
		n++;
		if (!*text)
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*count = n;
	return 0;
}

/* Distributes `times` copies of a size evenly over the free ones of the `total` entries of mix. */
static void spread(uint16_t *mix, unsigned total, uint16_t size, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		unsigned at = i * total / times;

		while (mix[at])
			at = (at + 1) % total;
		mix[at] = size;
	}
}

int parse_sizes(const char *text, uint16_t *out, unsigned *count)
{
	uint64_t sizes[SIZES_MAX], times[SIZES_MAX];
	unsigned n = 0, total = 0;
	char word[32];

	if (!strcmp(text, "imix"))
		text = "60x7,590x4,1514";
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		char *x;

		if (!len || len >= sizeof(word))
			return -EINVAL;
		memcpy(word, p, len);
		word[len] = '\0';
		x = strchr(word, 'x');
		times[n] = 1;
		if (x)
			*x++ = '\0';
		if (parse_number(word, UINT32_MAX, &sizes[n]) ||
			(x && parse_number(x, UINT32_MAX, &times[n])))
			return -EINVAL;
		if (sizes[n] < FRAME_MIN || sizes[n] > FRAME_MAX || !times[n] ||
			times[n] > SIZES_MAX - total)
			return -ERANGE;
		total += (unsigned)times[n++];
		p += len;
		if (!*p)
			break;
	}
	memset(out, 0, total * sizeof(*out));
	for (unsigned i = 0; i < n; i++)
		spread(out, total, (uint16_t)sizes[i], (unsigned)times[i]);
	*count = total;
	return 0;
}

int parse_tx_full(const char *text, struct tx_full *out)
{
	int ret;

	*out = (struct tx_full){0};
	if (!strcmp(text, "drop"))
		return 0;
	out->retry = true;
	if (!strcmp(text, "retry"))
		return 0;
	if (strncmp(text, "retry:", 6))
		return -EINVAL;
	ret = parse_number(text + 6, UINT32_MAX, &out->tries);
	return ret ? ret : out->tries ? 0 : -ERANGE;
}

int parse_mac(const char *text, uint8_t out[6])
{
	unsigned v[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		    &end) != 6 ||
		text[end] || end != 17)
		return -EINVAL;
	for (int i = 0; i < 6; i++)
		out[i] = (uint8_t)v[i];
	return 0;
}
