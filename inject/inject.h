/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets the probe into a running process: one thread that sleeps in a system call calls dlopen() and
 * returns to that system call by itself. docs/attach.md.
 */
#ifndef RINGTAP_INJECT_INJECT_H
#define RINGTAP_INJECT_INJECT_H

#include <stddef.h>
#include <sys/types.h>

struct rt_inject_options {
	const char *probe; /* path of libringtap-probe.so */
	const char
		*dpdk; /* its version as DPDK reports it, such as "DPDK 22.11.7"; NULL: unknown */
};

/* Loads the probe into a process. Starts the control thread where the process has no telemetry,
 * which would start it on request. Waits until the thread has returned, at most some seconds.
 * 0: loaded, and asked to start where that is necessary; -errno: err has a sentence with the reason
 * and what to do. Nothing has changed in the process then, except after a failure of dlopen() or of
 * the probe's constructor, which leave libraries mapped.
 * The caller is the tracer of the thread meanwhile: it must not wait for any child (waitpid(-1)).
 */
int rt_inject(pid_t pid, const struct rt_inject_options *opts, char *err, size_t errlen);

#endif
