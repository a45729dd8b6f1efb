/* SPDX-License-Identifier: BSD-3-Clause */
/* A probe without an application: serves one session of rings that the benchmark fills itself, over
 * the real socket and protocol, so that libringtap is measured through its public interface. */
#ifndef RINGTAP_BENCH_FAKE_PROBE_H
#define RINGTAP_BENCH_FAKE_PROBE_H

#include <pthread.h>
#include <stdint.h>

#include "common/segment.h"

struct fake_probe {
	char dir[64]; /* stands for the application's runtime folder */
	int listener;
	pthread_t thread;
	uint32_t rings;
	uint64_t ring_size;           /* bytes */
	uint64_t chunk_size;          /* bytes */
	struct rt_seg_header *header; /* this and what follows: NULL until a reader has attached */
	struct rt_seg_ring *ring;     /* [rings] */
	uint8_t *data;                /* rings * ring_size bytes: position p of a ring is at p */
};

/* ring_size: a power of two, RT_CHUNKS_OF_RING * RT_CHUNK_MIN or more. Undo with fake_probe_stop().
 * 0 or -errno. */
int fake_probe_start(struct fake_probe *p, uint32_t rings, uint64_t ring_size);
void fake_probe_stop(struct fake_probe *p);

/* Makes everything of a ring up to head visible; its last record has the time last_ns. */
void fake_probe_publish(struct fake_probe *p, uint32_t ring, uint64_t head, uint64_t last_ns);

#endif
