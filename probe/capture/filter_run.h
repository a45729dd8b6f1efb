/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs classic BPF instruction by instruction, where nothing has compiled it. */
#ifndef RINGTAP_PROBE_CAPTURE_FILTER_RUN_H
#define RINGTAP_PROBE_CAPTURE_FILTER_RUN_H

#include <rte_mbuf.h>

#include "common/proto.h"

/* Hot path: what the program returns, as in libpcap. rt_program_valid() has accepted the program:
 * jumps go forward, so it ends. */
uint32_t rt_filter_run(const struct rt_insn *program, const struct rte_mbuf *m);

#endif
