/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_INJECT_SECCOMP_H
#define RINGTAP_INJECT_SECCOMP_H

#include <linux/seccomp.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the process may make no system calls but four, or has filters that this process may not
 * read. 0; -EPERM and a sentence. */
int rt_judge_seccomp(pid_t pid, char *err, size_t errlen);

/* Returns a system call of the probe that a seccomp filter of the thread answers with a signal,
 * which ends the process; "any": the filters cannot be read; NULL: none. Filters that return an
 * error do not count. The thread is stopped by this process. */
const char *rt_seccomp_forbids(pid_t tid);

/* Runs a filter that bpf_validate() accepts; for the tests. */
uint32_t rt_seccomp_run(const struct bpf_insn *program, const struct seccomp_data *call);

#endif
