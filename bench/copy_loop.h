/* SPDX-License-Identifier: BSD-3-Clause */
/* State that the two threads of the copy loop share. */
#ifndef RINGTAP_BENCH_COPY_LOOP_H
#define RINGTAP_BENCH_COPY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define COPY_BURST 32u
#define COPY_GUARD 128u

/* The fields of an mbuf that a copy reads, at their distances in DPDK's. */
struct fake_mbuf {
	uint8_t *buf_addr;
	uint64_t iova;
	uint16_t data_off;
	uint8_t between[18];
	uint32_t pkt_len;
	uint16_t data_len;
	uint8_t rest[86];
};

struct copy_shared {
	uint64_t head __attribute__((aligned(128)));
	uint64_t tail __attribute__((aligned(128)));
	uint32_t stop __attribute__((aligned(128)));
};

struct copy_producer {
	struct copy_shared *shared;
	uint8_t *ring;
	uint64_t ring_size; /* bytes, a power of two */
	struct fake_mbuf **mbufs;
	uint32_t mbuf_count; /* a multiple of COPY_BURST */
	uint32_t max_block;  /* bytes of the largest block */
	uint32_t prefetch;   /* bytes ahead; 0: none */
	bool demote;         /* CLDEMOTE what has been published */
	uint64_t bursts;     /* to write before it ends; 0: until stopped */
	/* Results */
	uint64_t packets;
	uint64_t bytes;
	uint64_t stalls; /* times that the ring was full */
};

typedef void copy_produce_fn(struct copy_producer *p);

struct copy_flavour {
	const char *name;
	copy_produce_fn *produce;
	bool (*usable)(void);
};

extern const struct copy_flavour copy_flavours[];
extern const unsigned copy_flavour_count;

#endif
