/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>

#include "port_call.h"
#include "teardown.h"
#include "probe/tunables.h"

#define NONE UINT32_MAX

/* Held for a few instructions. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static uint32_t called = NONE; /* port */
static bool barred[RTE_MAX_ETHPORTS];

bool rt_port_call_begin(uint16_t port)
{
	bool may;

	/* DPDK may have unmapped the driver's memory. */
	if (rt_teardown_late())
		return false;
	pthread_mutex_lock(&lock);
	may = !barred[port];
	if (may)
		called = port;
	pthread_mutex_unlock(&lock);
	return may;
}

void rt_port_call_end(void)
{
	pthread_mutex_lock(&lock);
	called = NONE;
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
}

static struct timespec in_ms(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

void rt_port_call_bar(uint16_t port, bool going)
{
	struct timespec until = in_ms(rt_probe_limits.port_call_ms);

	pthread_mutex_lock(&lock);
	barred[port] = going;
	while (going && called == port &&
		pthread_cond_clockwait(&ended, &lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
}

void rt_port_call_unbar_all(void)
{
	pthread_mutex_lock(&lock);
	memset(barred, 0, sizeof(barred));
	pthread_mutex_unlock(&lock);
}
