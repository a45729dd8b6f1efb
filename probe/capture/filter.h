/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet filters: classic BPF, compiled to a loop over bursts. Packets that this leaves are decided
 * by DPDK's rte_bpf where the application has it, and it compiles for this CPU, else by an
 * interpreter (filter_run.h). */
#ifndef RINGTAP_PROBE_CAPTURE_FILTER_H
#define RINGTAP_PROBE_CAPTURE_FILTER_H

#include <rte_mbuf.h>

#include "common/proto.h"

struct rt_filter;

/* Checks and compiles a program, in bounded time: a program that takes DPDK's verifier longer is
 * interpreted where its loop (filter_loop.h) does not decide. -EINVAL: it is not valid; -ENOMEM.
 * The caller frees it with rt_filter_free(). */
int rt_filter_create(struct rt_filter **out, const struct rt_insn *insns, uint32_t count);
void rt_filter_free(struct rt_filter *f);

/* Hot path: puts the packets that pass into pass (room for n), in order; returns their number.
 * The filter reads each frame as it will be in the file, stripped VLAN tags put back.
 * *unreadable grows by the number of packets that it cannot read (readable.h): they do not pass,
 * but do not count as filtered out either. */
unsigned rt_filter_burst(const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf **pkts,
	unsigned n, struct rte_mbuf **pass, unsigned *unreadable);

/* Hot path: the value of the filter for one packet, as in libpcap: the bytes of it to capture; 0:
 * it does not pass. */
uint32_t rt_filter_length(
	const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf *m, unsigned *unreadable);

#endif
