/* SPDX-License-Identifier: BSD-3-Clause */
/* Why packets found the buffer full: the recorder paused, or is slower than they come. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "loss.h"
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

/* Packets that one application sent through its buffer. */
struct load {
	double captured, lost; /* packets, the latter by the full buffer */
	double packet_bytes;   /* in the buffer */
	/* In the pause in which most were lost: bytes that came in, packets that were lost. */
	double paused, pause_lost;
	double buffer; /* bytes */
};

static struct load load_of(const struct recorder *r, unsigned app)
{
	unsigned taps = ringtap_capture_tap_count(r->cap);
	unsigned rings = ringtap_capture_ring_count(r->cap);
	struct load load = {0};
	double written = 0;

	for (unsigned i = 0; i < taps; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};
		struct ringtap_tap t = {.size = sizeof(t)};

		if (ringtap_capture_tap(r->cap, i, &t) ||
			ringtap_capture_interface(r->cap, t.interface, &info) || info.app != app)
			continue;
		load.captured += (double)t.counts.captured;
		load.lost += (double)t.counts.lost[RINGTAP_LOST_FULL];
	}
	for (unsigned i = 0; i < rings; i++) {
		struct ringtap_ring ring = {.size = sizeof(ring)};

		if (ringtap_capture_ring(r->cap, i, &ring) || ring.app != app)
			continue;
		written += (double)ring.written;
		load.paused += (double)ring.pause_written;
		load.pause_lost += (double)ring.pause_lost;
		load.buffer = (double)ring.buffer_size;
	}
	load.packet_bytes = load.captured > 0 ? written / load.captured : 0;
	return load;
}

/* Load of the application that lost most bytes: each has a buffer of its own. */
static struct load worst_load(const struct recorder *r)
{
	struct load worst = load_of(r, 0);

	for (unsigned i = 1; i < r->targets.count; i++) {
		struct load load = load_of(r, i);

		if (load.lost * load.packet_bytes > worst.lost * worst.packet_bytes)
			worst = load;
	}
	return worst;
}

/* Did so much come during a pause that it explains a full buffer? */
static bool paused(const struct load *load)
{
	return load->paused + load->pause_lost * load->packet_bytes > load->buffer / 2;
}

/* How much of a buffer was in use, at most, as a fraction. */
static double most_used(const struct ringtap_stats *s)
{
	return s->buffer_size ? (double)s->buffer_most_used / (double)s->buffer_size : 0;
}

static uint64_t power_of_two(double bytes)
{
	uint64_t size = 1 << 20;

	while (size < UINT64_C(1) << 50 && (double)size < bytes)
		size *= 2;
	return size;
}

/* True: nothing else is to be said. */
static bool explain_growing(const struct ringtap_stats *s, char *out, size_t size)
{
	bool most = s->growing_lost > s->total.lost[RINGTAP_LOST_FULL] / 2;
	char count[FORMAT_LEN];

	*out = 0;
	if (s->growing_lost)
		snprintf(out, size, "%s of them before the whole buffer was populated; %s",
			format_count(count, s->growing_lost),
			most ? "start the recorder before the traffic" : "");
	return most;
}

void explain_full_buffer(const struct recorder *r, char *out, size_t size)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	struct load load = worst_load(r);
	uint64_t enough;
	char pause[FORMAT_LEN], memory[FORMAT_LEN];
	bool no_cpu;
	size_t len;

	ringtap_capture_stats(r->cap, &s);
	if (explain_growing(&s, out, size))
		return;
	len = strlen(out);
	out += len;
	size -= len;
	/* A quarter is left to threads below their window, and two of each eight chunks are the
	 * threads' own: docs/format.md. */
	enough = power_of_two(
		2 * (most_used(&s) * load.buffer + load.pause_lost * load.packet_bytes));
	if (!paused(&load) || enough > BUFFER_MAX) {
		snprintf(out, size,
			"packets come faster than the recorder takes them; try -s or a filter");
		return;
	}
	/* Else it was stopped, or its output took nothing. */
	no_cpu = r->longest_wait_ns >= s.longest_pause_ns / 2;
	snprintf(out, size,
		"the recorder paused for up to %s%s; --buffer %s would have held them%s",
		format_ns(pause, (double)s.longest_pause_ns),
		no_cpu ? ", as other programs had its CPU" : "", write_size(memory, enough),
		no_cpu ? ", or try a CPU for it alone" : "");
}
