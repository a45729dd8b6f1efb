/* SPDX-License-Identifier: BSD-3-Clause */
/* For LD_PRELOAD. time() is a second behind, as for some milliseconds of every second. */
#include <time.h>

time_t time(time_t *to)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec--;
	if (to)
		*to = ts.tv_sec;
	return ts.tv_sec;
}
