/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "signals.h"

static sigset_t ends(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

void signals_block(void)
{
	sigset_t set = ends();

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int signals_wait(uint64_t ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	sigset_t set = ends();
	int ret = sigtimedwait(&set, NULL, &ts);

	return ret > 0 ? ret : 0;
}
