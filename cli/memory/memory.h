/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an application's packet buffers are, and in which order it uses them. */
#ifndef RINGTAP_CLI_MEMORY_MEMORY_H
#define RINGTAP_CLI_MEMORY_MEMORY_H

#include <stdio.h>

#include "measure/iotlb.h"
#include "measure/measure.h"
#include "pcm.h"

#define PAGE_KINDS 3
extern const unsigned page_shifts[PAGE_KINDS]; /* 4 KiB, 2 MiB, 1 GiB */
extern const char *const page_names[PAGE_KINDS];

#define MEMORY_SAMPLES_MAX (8u << 20)
#define MEMORY_SOME        1000 /* packets, over which distinct pages are counted */

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

/* samples.c */
/* Takes the runs of a snapshot that are new. Returns the number of samples so far. */
uint64_t memory_samples_take(struct memory_samples *s, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now);
void memory_samples_free(struct memory_samples *s);
/* As CSV. 0 or -errno. */
int memory_samples_write(
	const struct memory_samples *s, const struct ringtap_snapshot *f, FILE *to);

/* The order in which the buffers of one port, queue and pool came, or of all. */
struct memory_pattern {
	uint32_t port, pool;
	int queue; /* -1: of all of them */
	size_t count;
	uint64_t steps, sequential; /* from a buffer to the next one of the same run */
	uint64_t same;              /* steps to the same address */
	uint64_t distance[64];      /* other steps, by log2(bytes) */
	double pages[PAGE_KINDS];   /* distinct in MEMORY_SOME packets; NAN: too few packets */
	struct iotlb iotlb[PAGE_KINDS];
};

struct memory_patterns {
	struct memory_pattern *list; /* by port, queue, pool */
	size_t count;
	struct memory_pattern all;
};

/* patterns.c: 0 or -ENOMEM. Free with memory_patterns_free() in any case. */
int memory_patterns_find(struct memory_patterns *p, const struct memory_samples *s,
	const struct ringtap_snapshot *f);
void memory_patterns_free(struct memory_patterns *p);
/* Bytes that a buffer of the pool takes with all around it; 0: no such pool. */
uint64_t memory_stride(const struct ringtap_snapshot *f, uint32_t pool);
/* The address under which devices see it. */
uint64_t memory_device_address(const struct memory_sample *s);

struct memory {
	const struct measure *m;
	const struct memory_samples *samples;
	const struct memory_patterns *patterns;
	const struct pcm_iio *pcm;
	bool distances; /* --distances */
};

/* report.c, json.c */
void memory_print(const struct memory *mem);
int memory_json(const struct memory *mem);
/* "huge pages", "external", … */
const char *memory_kind(const struct ringtap_pool_stats *p);
const char *memory_pool_name(const struct ringtap_snapshot *f, uint32_t pool);
const char *memory_port_name(const struct ringtap_snapshot *f, uint32_t port);

/* view.c: for web_page_write(). */
json_t *memory_view(const struct memory *mem);

#endif
