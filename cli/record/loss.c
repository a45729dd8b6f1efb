/* SPDX-License-Identifier: BSD-3-Clause */
/* Why packets found the buffer full: the recorder paused, or is slower than they come. */
#include <inttypes.h>
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

/* Bytes a second that the applications wrote, or would have written. */
static double fill_rate(const struct recorder *r, const struct ringtap_stats *s)
{
	double seconds = (double)(r->end_mono_ns - r->start_mono_ns) / NS_PER_S, bytes = 0;
	unsigned count = ringtap_capture_ring_count(r->cap);

	for (unsigned i = 0; i < count; i++) {
		struct ringtap_ring ring = {.size = sizeof(ring)};

		if (!ringtap_capture_ring(r->cap, i, &ring))
			bytes += (double)ring.written;
	}
	if (seconds <= 0 || !s->total.captured)
		return 0;
	return bytes / (double)s->total.captured *
	       (double)(s->total.captured + s->total.lost[RINGTAP_LOST_FULL]) / seconds;
}

/* The size that would have held what came meanwhile, and half as much again: a power of two. */
static uint64_t enough(double bytes)
{
	uint64_t size = 1 << 20;

	while (size < UINT64_C(1) << 50 && (double)size < 1.5 * bytes)
		size *= 2;
	return size;
}

void explain_full_buffer(const struct recorder *r, char *out, size_t size)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	uint64_t need;
	double came;

	ringtap_capture_stats(r->cap, &s);
	came = fill_rate(r, &s) * (double)s.longest_pause_ns / NS_PER_S;
	need = enough(came);
	if (came < (double)s.buffer_size / 2 || need <= s.buffer_size) {
		snprintf(out, size,
			"packets come faster than the recorder takes them; try -s or a filter");
		return;
	}
	snprintf(out, size,
		"the recorder paused for up to %" PRIu64 " ms, %s; try --buffer %" PRIu64 "M%s",
		s.longest_pause_ns / 1000000,
		r->waited_ns >= s.longest_pause_ns / 2 ? "as other programs had its CPU"
						       : "as the output took no more",
		need >> 20,
		r->waited_ns >= s.longest_pause_ns / 2 ? " or a CPU for it alone"
						       : ", -s or a filter");
}
