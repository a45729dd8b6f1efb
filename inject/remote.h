/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets a sleeping thread of another process call a function. */
#ifndef RINGTAP_INJECT_REMOTE_H
#define RINGTAP_INJECT_REMOTE_H

#include "arch.h"

/* Stops one thread that sleeps in a system call, makes it call the function and lets it go; *used
 * is that thread. Tries again for some seconds while threads are busy. 0; -EPERM; -EBUSY: another
 * tracer has them; -ENXIO: there is no such thread; -EHOSTDOWN: it was stopped; -ENOTSUP: its
 * registers cannot be restored; -EACCES: a seccomp filter would end it; -ESRCH: it has ended or
 * called exec(); -EADDRNOTAVAIL: an address of the call is not one of code; -ETIMEDOUT: it did not
 * stop: this process stays its tracer until it ends; -errno. */
int rt_remote_call(const struct rt_process *p, const struct rt_call *call, struct rt_idle *used);

/* Waits until the thread is back in its system call. 0; -ESRCH: it has ended; -ETIMEDOUT. */
int rt_remote_wait(pid_t pid, const struct rt_idle *used, int timeout_ms);

/* The tracer of a process's main thread or of one that may be called; 0: none. */
pid_t rt_remote_tracer(pid_t pid);

#endif
