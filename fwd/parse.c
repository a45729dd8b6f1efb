/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
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

int parse_rate(const char *text, bool zero, uint64_t *out)
{
	size_t len = strlen(text);
	char count[32];
	int ret;

	if (!strcmp(text, "max")) {
		*out = RATE_UNLIMITED;
		return 0;
	}
	if (len > 2 && !strcmp(text + len - 2, "/s"))
		len -= 2;
	if (len >= sizeof(count))
		return -EINVAL;
	memcpy(count, text, len);
	count[len] = '\0';
	ret = parse_count(count, out);
	return ret ? ret : *out > RATE_MAX || (!*out && !zero) ? -ERANGE : 0;
}

/* RATE:TIME, which is changed. */
static int parse_stage(char *text, struct stage *out)
{
	char *colon = strchr(text, ':');
	int ret;

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	ret = parse_rate(text, true, &out->rate);
	if (!ret)
		ret = parse_time(colon + 1, 0, &out->ns);
	return ret ? ret : out->ns ? 0 : -ERANGE;
}

int parse_stages(const char *text, struct stage *out, unsigned *count)
{
	char word[64];
	unsigned n = 0;

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int ret;

		if (n == STAGES_MAX)
			return -ERANGE;
		if (len >= sizeof(word))
			return -EINVAL;
		memcpy(word, p, len);
		word[len] = '\0';
		ret = parse_stage(word, &out[n++]);
		if (ret)
			return ret;
		p += len;
		if (!*p)
			break;
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
