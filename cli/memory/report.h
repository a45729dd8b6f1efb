/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the patterns. */
#ifndef RINGTAP_CLI_MEMORY_REPORT_H
#define RINGTAP_CLI_MEMORY_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "patterns.h"
#include "pcm.h"

struct memory {
	const struct measure *m;
	const struct memory_samples *samples;
	const struct memory_patterns *patterns;
	const struct pcm_iio *pcm;
	bool distances; /* --distances */
};

void memory_print(const struct memory *mem);
int memory_json(const struct memory *mem);
/* "huge pages", "external", … */
const char *memory_kind(const struct ringtap_pool_stats *p);
const char *memory_pool_name(const struct ringtap_snapshot *f, uint32_t pool);
const char *memory_port_name(const struct ringtap_snapshot *f, uint32_t port);

/* For web_page_write(). */
json_t *memory_view(const struct memory *mem);

#endif
