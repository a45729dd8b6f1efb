/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of the memory addresses of received packets. */
#ifndef RINGTAP_FWD_SAMPLES_H
#define RINGTAP_FWD_SAMPLES_H

#include <stdint.h>
#include <stdio.h>

struct rte_mbuf;

struct sample {
	uint64_t tsc;      /* ticks */
	uint64_t va, iova; /* addresses of the packet data, behind the headroom of the buffer */
	uint32_t stage;
};

struct samples {
	uint64_t every, run; /* `run` successive packets of each `every` packets are sampled */
	uint64_t position;   /* in `every` */
	uint64_t count, max; /* used and allocated entries of list */
	uint64_t lost;       /* samples not taken because list was full */
	struct sample *list;
};

/* Writes to all of the memory, so that samples_take() causes no page faults. NULL: no memory. */
struct samples *samples_new(uint64_t every, uint64_t length, uint64_t max);
void samples_free(struct samples *s);
void samples_take(struct samples *s, struct rte_mbuf *const *m, uint16_t n, uint32_t stage);

#endif
