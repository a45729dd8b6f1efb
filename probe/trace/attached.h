/* SPDX-License-Identifier: BSD-3-Clause */
/* Needs no DPDK: also for the loader. */
#ifndef RINGTAP_PROBE_TRACE_ATTACHED_H
#define RINGTAP_PROBE_TRACE_ATTACHED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* Whether an attach has sent this thread here. inject/ blocks all signals in a thread that is never
 * the main one; programs leave those of faults unblocked. */
static inline bool rt_is_attach(void)
{
	static const int signals[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGPIPE, SIGTERM};
	sigset_t mask;

	if (gettid() == getpid() || pthread_sigmask(SIG_BLOCK, NULL, &mask))
		return false;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigismember(&mask, signals[i]))
			return false;
	return true;
}

#endif
