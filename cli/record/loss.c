/* SPDX-License-Identifier: BSD-3-Clause */
/* Why packets found the buffer full: the recorder paused, or is slower than they come. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/util.h"
#include "common/pages.h"
#include "common/status.h"
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
	unsigned app;
};

static struct load load_of(const struct recorder *r, unsigned app)
{
	unsigned taps = ringtap_capture_tap_count(r->cap);
	unsigned rings = ringtap_capture_ring_count(r->cap);
	struct load load = {.app = app};
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

/* Load of the application that lost most bytes: each has a buffer of its own. held: bytes of all.
 */
static struct load worst_load(const struct recorder *r, double *held)
{
	struct load worst = load_of(r, 0);

	*held = worst.buffer;
	for (unsigned i = 1; i < r->targets.count; i++) {
		struct load load = load_of(r, i);

		*held += load.buffer;
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

static pid_t process_of(const struct recorder *r, unsigned app)
{
	for (size_t i = 0; i < ringtap_apps_count(r->targets.apps); i++)
		if (ringtap_apps_dir(r->targets.apps, i) == r->targets.list[app].dir)
			return (pid_t)ringtap_apps_pid(r->targets.apps, i);
	return 0;
}

/* Bytes that a limit of the application leaves for a buffer, with the one that it has. */
static double left_there(pid_t pid, int resource, const char *key, double buffer, bool locked)
{
	char value[64] = "";
	struct rlimit limit;
	double used;

	if (pid <= 0 || prlimit(pid, resource, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return INFINITY;
	rt_process_status(pid, key, value, sizeof(value));
	used = 1024 * strtod(value, NULL);
	/* Without mlockall() the buffer is not locked, and with CAP_IPC_LOCK there is no limit. */
	if (locked && (used < buffer || used > (double)limit.rlim_cur))
		return INFINITY;
	return (double)limit.rlim_cur - used + buffer;
}

/* Bytes that the buffer of an application can have, by the memory and limits that there are: of
 * what is available each buffer may take half. */
static double possible(const struct recorder *r, const struct load *load, double held)
{
	double most = ((double)rt_pages_available() + held) / (r->targets.count + 1);
	pid_t pid = process_of(r, load->app);
	struct rlimit files;

	if (!getrlimit(RLIMIT_FSIZE, &files) && files.rlim_cur != RLIM_INFINITY)
		most = fmin(most, (double)files.rlim_cur);
	most = fmin(most, left_there(pid, RLIMIT_AS, "VmSize", load->buffer, false));
	most = fmin(most, left_there(pid, RLIMIT_MEMLOCK, "VmLck", load->buffer, true));
	/* A larger one would stay as small. */
	return *ringtap_capture_buffer_error(r->cap) ? fmin(most, load->buffer) : most;
}

/* True: nothing else is to be said. */
static bool explain_growing(const struct ringtap_stats *s, char *out, size_t size)
{
	bool most = s->growing_lost > s->total.lost[RINGTAP_LOST_FULL] / 2;
	char count[FORMAT_LEN], time[FORMAT_LEN];

	*out = 0;
	if (s->growing_lost)
		snprintf(out, size,
			"%s of them in the first %s, until all of the buffer was there%s",
			format_count(count, s->growing_lost),
			format_ns(time, (double)s->growing_ns),
			most ? ": such losses end by themselves; a CPU for the recorder alone, -s or "
			       "a filter make them fewer"
			     : "; ");
	return most;
}

/* A pause in which the buffer was filled. */
static void explain_pause(const struct recorder *r, const struct ringtap_stats *s, double enough,
	double most, char *out, size_t size)
{
	/* Else it was stopped, or its output took nothing. */
	bool no_cpu = r->longest_wait_ns >= s->longest_pause_ns / 2;
	char pause[FORMAT_LEN], memory[FORMAT_LEN];
	int len = snprintf(out, size, "the recorder paused for up to %s%s; ",
		format_ns(pause, (double)s->longest_pause_ns),
		no_cpu ? ", as other programs had its CPU" : "");

	if (len < 0 || (size_t)len >= size)
		return;
	out += len;
	size -= (size_t)len;
	if (enough <= most)
		snprintf(out, size, "--buffer %s would have held them%s",
			write_size(memory, (uint64_t)enough),
			no_cpu ? ", or try a CPU for it alone" : "");
	else
		snprintf(out, size,
			"a buffer can have %s here, which is too little: try %s, -s or a filter",
			format_bytes(memory, most),
			no_cpu ? "a CPU for it alone" : "a faster output, --compress");
}

void explain_full_buffer(const struct recorder *r, char *out, size_t size)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	double held;
	struct load load = worst_load(r, &held);
	uint64_t enough;
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
	if (!paused(&load) || enough > BUFFER_MAX)
		snprintf(out, size,
			"packets come faster than the recorder takes them; try -s or a filter");
	else
		explain_pause(r, &s, (double)enough, possible(r, &load, held), out, size);
}
