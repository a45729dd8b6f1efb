/* SPDX-License-Identifier: BSD-3-Clause */
/* Why packets found the buffer full: the recorder paused, or is slower than they come. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/util.h"
#include "record.h"

uint64_t thread_waited_ns(void)
{
	/* Documentation/scheduler/sched-stats.rst: time on the CPU, time waiting for one, slices */
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	uint64_t ran, waited = 0;

	if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		waited = 0;
	if (f)
		fclose(f);
	return waited;
}

/* Bytes that a captured packet takes in the buffer. */
static double packet_bytes(const struct recorder *r, const struct ringtap_stats *s)
{
	unsigned count = ringtap_capture_ring_count(r->cap);
	double bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		struct ringtap_ring ring = {.size = sizeof(ring)};

		if (!ringtap_capture_ring(r->cap, i, &ring))
			bytes += (double)ring.written;
	}
	return s->total.captured ? bytes / (double)s->total.captured : 0;
}

/* Did so much come during the longest pause that it explains a full buffer? */
static bool paused(const struct recorder *r, const struct ringtap_stats *s)
{
	double seconds = recorder_seconds(r);
	double packets = (double)(s->total.captured + s->total.lost[RINGTAP_LOST_FULL]);
	double pause = (double)s->longest_pause_ns / NS_PER_S;

	return seconds > 0 &&
	       packets * packet_bytes(r, s) * pause / seconds > (double)s->buffer_size / 2;
}

static uint64_t power_of_two(double bytes)
{
	uint64_t size = 1 << 20;

	while (size < UINT64_C(1) << 50 && (double)size < bytes)
		size *= 2;
	return size;
}

void explain_full_buffer(const struct recorder *r, char *out, size_t size)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	uint64_t enough;
	bool no_cpu;

	ringtap_capture_stats(r->cap, &s);
	/* Whatever the number of pauses. Up to half of it is for other threads: docs/format.md. */
	enough = power_of_two(
		2 * ((double)s.buffer_most_used +
			    (double)s.total.lost[RINGTAP_LOST_FULL] * packet_bytes(r, &s)));
	if (!paused(r, &s) || enough > BUFFER_MAX) {
		snprintf(out, size,
			"packets come faster than the recorder takes them; try -s or a filter");
		return;
	}
	/* Else it was stopped, or its output took nothing. */
	no_cpu = r->longest_wait_ns >= s.longest_pause_ns / 2;
	snprintf(out, size,
		"the recorder paused for up to %" PRIu64 " ms%s; --buffer %" PRIu64
		"M would have held them%s",
		s.longest_pause_ns / 1000000, no_cpu ? ", as other programs had its CPU" : "",
		enough >> 20, no_cpu ? ", or try a CPU for it alone" : "");
}
