/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A filter's loop over a burst, as machine code: classic BPF compiled together with what has to be
 * checked of each mbuf. It decides the usual packets, and leaves the others to its caller.
 */
#ifndef RINGTAP_PROBE_CAPTURE_FILTER_LOOP_H
#define RINGTAP_PROBE_CAPTURE_FILTER_LOOP_H

#include <rte_mbuf.h>

#include "common/proto.h"

/* State of one burst. The generated code knows where the fields are. */
struct rt_loop_burst {
	struct rte_mbuf **pkts, **last; /* next packet, and behind the last one */
	struct rte_mbuf **pass;         /* where the next one that passes is stored */
	uint64_t slow_flags;            /* ol_flags of packets that are left to the caller */
	uint32_t memory[17];            /* scratch memory of the program; need not be initialized */
};
/* Its word with the value of the program for the last packet that passes. */
#define RT_LOOP_VALUE 16

/* Hot path. Stores the packets that pass, until no packet is left or the next one is to be decided
 * by the caller: it has fewer bytes in its first segment than the program may read, one of the
 * flags, data outside of its own buffer (readable.h), or the program has computed an offset beyond
 * the segment. A program that reads the packet's length leaves all that have more segments. Writes
 * at most one element behind those that pass, and none behind the number of packets. */
typedef void (*rt_loop_fn)(struct rt_loop_burst *b);

struct rt_loop {
	rt_loop_fn run;
	size_t bytes;   /* mapped */
	uint32_t reach; /* bytes that a packet needs in its first segment */
	uint32_t value; /* returned for all that pass; 0: values differ, and are stored */
};

/* Compiles a program that rt_program_valid() accepts and that sets scratch memory before it reads
 * it, in time proportional to its length. 0; -ENOTSUP: it has an instruction that libpcap does not
 * know, reads beyond 2048 bytes, or the CPU is not x86-64; -ENOMEM;
 * -EACCES: the system forbids new code. The caller frees it with rt_loop_destroy(). */
int rt_loop_create(struct rt_loop *l, const struct rt_insn *insns, uint32_t count);
void rt_loop_destroy(struct rt_loop *l);

#endif
