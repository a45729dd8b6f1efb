/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_INJECT_SECCOMP_H
#define RINGTAP_INJECT_SECCOMP_H

#include <stddef.h>
#include <sys/types.h>

/* Whether the kernel would end the process at one of the system calls that loading a library makes.
 * 0, also if the filter cannot be read; -EPERM and a sentence. */
int rt_judge_seccomp(pid_t pid, char *err, size_t errlen);

#endif
