/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_COMMON_PROGRAM_H
#define RINGTAP_COMMON_PROGRAM_H

#include <stdbool.h>

#include "proto.h"

/* The highest offset of a read; the sum of two does not wrap around in 32 bits. */
#define RT_OFFSET_MAX 0x3fffffff

/* Whether a classic BPF program has only instructions that libpcap knows, ends, jumps within itself
 * and keeps to its memory. rte_bpf checks its own conversion, but writes out of bounds while
 * converting some programs (22.11: a last instruction that is not a return). */
bool rt_program_valid(const struct rt_insn *insns, uint32_t count);

/* Whether it loads a value that the kernel knows and no packet holds. Offsets from -4096 on
 * (SKF_AD_OFF in <linux/filter.h>) mean that: libpcap makes such loads of `inbound` and
 * `outbound`, SKF_AD_PKTTYPE, which is replaced here, and of `ifindex`, which is not. */
static inline bool rt_insn_loads_ancillary(const struct rt_insn *i)
{
	return (i->code & 0xe7) == 0x20 && i->k >= 0xfffff000u;
}

static inline bool rt_insn_loads_direction(const struct rt_insn *i)
{
	return (i->code & 0xe7) == 0x20 && i->k == 0xfffff004u;
}

/* Replaces loads of the packet's type by the constant of this direction. Returns whether there
 * were any. */
bool rt_program_set_direction(struct rt_insn *insns, uint32_t count, enum rt_direction dir);

#endif
