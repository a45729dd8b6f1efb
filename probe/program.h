/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_PROGRAM_H
#define RINGTAP_PROBE_PROGRAM_H

#include <stdbool.h>

#include "common/proto.h"

/* Where a packet can be read at most; two of them do not wrap around in 32 bits. */
#define RT_OFFSET_MAX 0x3fffffff

/* Is a classic BPF program one that ends, jumps within itself and keeps to its memory? rte_bpf
 * checks what it makes of it, but not without writing out of bounds itself (22.11: a last
 * instruction that is no return). Instructions that there are not are left for rte_bpf_convert() to
 * find. */
bool rt_program_valid(const struct rt_insn *insns, uint32_t count);

#endif
