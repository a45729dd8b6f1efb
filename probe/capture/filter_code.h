/* SPDX-License-Identifier: BSD-3-Clause */
/* Corrects the instructions that rte_bpf_convert() makes of a filter. */
#ifndef RINGTAP_PROBE_CAPTURE_FILTER_CODE_H
#define RINGTAP_PROBE_CAPTURE_FILTER_CODE_H

#include <stdint.h>

#include <bpf_def.h>

/* A corrected copy of n instructions; *count becomes their number. NULL: out of memory. The caller
 * frees it. */
struct ebpf_insn *rt_code_mend(const struct ebpf_insn *in, uint32_t n, uint32_t *count);

/* How many instructions DPDK's verifier evaluates at most: it walks every path from the start to
 * an end, and skips a known part only where nothing that it has derived differs. Jumps go
 * forward. UINT64_MAX: that many or more, or no memory. */
uint64_t rt_code_steps(const struct ebpf_insn *insns, uint32_t n);

#endif
