/* SPDX-License-Identifier: BSD-3-Clause */
/* Where received packets lay in memory, and when. */
#ifndef RINGTAP_FWD_SAMPLES_H
#define RINGTAP_FWD_SAMPLES_H

#include <stdint.h>
#include <stdio.h>

struct rte_mbuf;

struct sample {
	uint64_t tsc;      /* ticks */
	uint64_t va, iova; /* of the packet, where the device wrote it; not of its buffer */
	uint32_t stage;
};

struct samples {
	uint64_t every, run; /* packets: `run` successive ones of each `every` */
	uint64_t position;   /* packets */
	uint64_t count, max; /* samples taken, and room */
	uint64_t skipped;    /* no room left */
	struct sample *list;
};

/* Memory is written to once, so that taking samples faults no page in. NULL: no memory. */
struct samples *samples_new(uint64_t every, uint64_t length, uint64_t max);
void samples_free(struct samples *s);
void samples_take(struct samples *s, struct rte_mbuf *const *m, uint16_t n, uint32_t stage);

#endif
