/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of packet buffers, in the order in which the application received into them. */
#ifndef RINGTAP_CLI_MEMORY_SAMPLES_H
#define RINGTAP_CLI_MEMORY_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "measure/measure.h"

#define MEMORY_SAMPLES_MAX (8u << 20)

/* A packet's buffer. */
struct memory_sample {
	uint64_t address, iova;
	uint64_t ns;                 /* since the epoch, of its burst */
	uint32_t run;                /* counts runs of consecutive packets, of all threads */
	uint32_t thread, port, pool; /* indices in the snapshot; port may be RINGTAP_NO_INDEX */
	uint16_t queue;
};

struct memory_samples {
	const struct one_app *app;
	struct memory_sample *list;
	size_t count, room;
	uint32_t runs;
	uint64_t *last; /* number of the last run taken, by thread */
	uint32_t last_count;
	bool full, failed; /* no more is taken: MEMORY_SAMPLES_MAX, memory */
};

/* Takes the runs of a snapshot that are new. Returns the number of samples so far. */
uint64_t memory_samples_take(struct memory_samples *s, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now);
void memory_samples_free(struct memory_samples *s);
/* As CSV. 0 or -errno. */
int memory_samples_write(
	const struct memory_samples *s, const struct ringtap_snapshot *f, FILE *to);

#endif
