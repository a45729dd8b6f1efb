/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that run a DPDK, also without telemetry and probe, which discovery does not find. */
#ifndef RINGTAP_INJECT_PROCESSES_H
#define RINGTAP_INJECT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

/* Calls f for each process that has threads of EAL, until it returns false. program is its name as
 * the kernel has it, at most 15 bytes, which any process may choose. */
void rt_processes_each(bool (*f)(uint32_t pid, const char *program, void *arg), void *arg);

/* Whether a process runs this program: its name as the kernel has it, or the file name that it was
 * started with. */
bool rt_process_runs(uint32_t pid, const char *program);

#endif
