/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the probe can be loaded into a process, found out without changing it. */
#ifndef RINGTAP_INJECT_JUDGE_H
#define RINGTAP_INJECT_JUDGE_H

#include "inject.h"
#include "process.h"

/* Bytes that one judgement reads of all files; a variable for tests. */
extern uint64_t rt_judge_bytes;

/* 0, or -errno and a sentence with the reason and what to do: -ENOEXEC: no DPDK in it; -E2BIG: too
 * many files; -ENOTSUP: the probe cannot work in it; -ELIBACC: there is no probe for its DPDK;
 * -EBUSY: it is traced; -EMFILE: its descriptors are used up; -EHOSTDOWN: it is stopped; -EPERM. */
int rt_judge(
	const struct rt_process *p, const struct rt_inject_options *opts, char *err, size_t errlen);

/* Whether the process has descriptors left for the probe. 0, also if that cannot be read; -EMFILE
 * and a sentence. */
int rt_judge_descriptors(pid_t pid, char *err, size_t errlen);

/* Whether EAL has been initialised; also true if that is unknown (--in-memory). */
bool rt_judge_started(const struct rt_process *p);

/* Why this user may not trace the process. Returns -EPERM. */
int rt_judge_permission(const struct rt_process *p, char *err, size_t errlen);

/* The address of a function of its C library's dynamic loader, such as dlopen(); 0: it has none. */
uint64_t rt_judge_function(const struct rt_process *p, const char *name);

#endif
