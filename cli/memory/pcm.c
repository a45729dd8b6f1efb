/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcm-iio -csv prints a line of names and a line of numbers for each part of each PCIe stack, again
 * and again. Intel's opCode-*.txt list the counters of each processor: "IOTLB Miss" all of them,
 * "IOTLB Lookup" or "IOTLB Hit" some.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "pcm.h"

#define COLUMNS_MAX 128
#define PATIENCE_NS (2 * NS_PER_S)

void pcm_iio_begin(struct pcm_iio *p)
{
	static const char *const argv[] = {"pcm-iio", "1", "-silent", "-csv", NULL};
	int ret = child_start(&p->child, argv,
		&(struct child_config){.flags = CHILD_STORE_OUT,
			.death_signal = SIGTERM}); /* it then puts the counters back */

	p->why = ret == -ENOENT ? "Intel PCM's pcm-iio is not installed"
				: "Intel PCM's pcm-iio could not be started";
	if (ret)
		child_free(&p->child);
}

/* Splits a line at its commas. Returns the number of columns. */
static unsigned split(char *line, char *columns[COLUMNS_MAX])
{
	unsigned n = 0;

	for (char *at = line; at && n < COLUMNS_MAX;)
		columns[n++] = strsep(&at, ",");
	return n;
}

struct kinds {
	bool miss[COLUMNS_MAX], lookup[COLUMNS_MAX], hit[COLUMNS_MAX], any;
};

static bool learn(struct kinds *k, char *columns[COLUMNS_MAX], unsigned n)
{
	bool names = false;

	for (unsigned i = 0; i < n && !names; i++)
		names = !strcmp(columns[i], "Part");
	if (!names)
		return false;
	memset(k, 0, sizeof(*k));
	for (unsigned i = 0; i < n; i++) {
		k->miss[i] = !strcmp(columns[i], "IOTLB Miss");
		k->lookup[i] = !strcmp(columns[i], "IOTLB Lookup");
		k->hit[i] = !strcmp(columns[i], "IOTLB Hit");
		k->any |= k->miss[i];
	}
	return true;
}

bool pcm_iio_parse(struct pcm_iio *p, char *text)
{
	char *columns[COLUMNS_MAX], *line;
	uint64_t lookups = 0, hits = 0;
	bool has_lookups = false, has_hits = false, any = false;
	struct kinds k = {0};

	p->misses = 0;
	while ((line = strsep(&text, "\n"))) {
		unsigned n = split(line, columns);

		if (learn(&k, columns, n) || !k.any)
			continue;
		for (unsigned i = 0; i < n; i++) {
			uint64_t v = strtoull(columns[i], NULL, 10);

			p->misses += k.miss[i] ? v : 0;
			lookups += k.lookup[i] ? v : 0;
			hits += k.hit[i] ? v : 0;
			any |= k.miss[i];
			has_lookups |= k.lookup[i];
			has_hits |= k.hit[i];
		}
	}
	p->has_lookups = has_lookups || has_hits;
	p->lookups = has_lookups ? lookups : has_hits ? hits + p->misses : 0;
	return any;
}

void pcm_iio_end(struct pcm_iio *p)
{
	char *text;

	if (!p->child.pid)
		return;
	(void)child_stop(&p->child, SIGTERM, PATIENCE_NS);
	text = p->child.text[0].data;
	p->why = text && pcm_iio_parse(p, text) ? NULL : "pcm-iio has none on this machine";
	child_free(&p->child);
}
