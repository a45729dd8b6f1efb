/* SPDX-License-Identifier: BSD-3-Clause */
/* The hardware's own IOTLB counters, where Intel PCM's pcm-iio is installed and works. */
#ifndef RINGTAP_CLI_MEMORY_PCM_H
#define RINGTAP_CLI_MEMORY_PCM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/child.h"

struct pcm_iio {
	struct child child;
	const char *why;          /* there are no statistics; NULL: there are */
	uint64_t lookups, misses; /* counts of the whole machine */
	bool has_lookups;
};

/* Starts it; it counts until pcm_iio_end(). */
void pcm_iio_begin(struct pcm_iio *p);
void pcm_iio_end(struct pcm_iio *p);

/* Adds up what it printed as CSV; changes text. False: there are no IOTLB statistics in it. */
bool pcm_iio_parse(struct pcm_iio *p, char *text);

#endif
