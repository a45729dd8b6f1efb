/* SPDX-License-Identifier: BSD-3-Clause */
/* One attach at a time to a process, which is that of the beginning until the end. */
#ifndef RINGTAP_INJECT_HOLD_H
#define RINGTAP_INJECT_HOLD_H

#include <stdbool.h>
#include <sys/types.h>

/* Excludes other attaches, and keeps the identity of the program that the process runs. A
 * descriptor, whose end, also by the end of this process, lets others in; -ETIMEDOUT: another
 * attach has it still; -EACCES, -EPERM: this user may not trace the process; -ESRCH; -errno. */
int rt_hold(pid_t pid, int timeout_ms);

/* Whether the process still runs that program: it has neither ended nor called exec(). What has
 * its PID may be another one otherwise. */
bool rt_hold_is_same(int hold);

#endif
