/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading: when to read the rings, when to wait, when to end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "grow.h"
#include "retain.h"
#include "window.h"
#include "reader/export.h"
#include "reader/find/halt.h"
#include "reader/wait.h"

/* Bytes of a batch: they are still in the L2 cache when they are written. */
#define BATCH_MAX (1ull << 20)
/* Distance to the producer: twice the L2 cache of current servers, see is_ripe() in next.c. */
#define LAG_BYTES            (4ull << 20)
#define NAP_MAX_NS           1000000ull
#define FASTEST_BYTES_PER_NS 16 /* upper limit of the rate at which a ring fills */
#define LAG_NS               1000000ull
#define GROWTH_WAIT_NS       2000000000ull
#define LOOK_NS              10000000ull /* between checks of the connections */

void rt_capture_pace(struct ringtap_capture *cap)
{
	cap->lag_bytes = LAG_BYTES;
	cap->batch_bytes = BATCH_MAX;
	cap->nap_max_ns = NAP_MAX_NS;
	for (uint32_t i = 0; i < cap->source_count; i++) {
		const struct rt_source *s = &cap->sources[i];
		uint64_t part = s->there / s->seg.h.share_count / 4;

		cap->lag_bytes = cap->lag_bytes < part ? cap->lag_bytes : part;
		cap->batch_bytes = cap->batch_bytes < part ? cap->batch_bytes : part;
		part /= FASTEST_BYTES_PER_NS;
		cap->nap_max_ns = cap->nap_max_ns < part ? cap->nap_max_ns : part;
	}
	if (cap->nap_max_ns < RT_NAP_MIN_NS)
		cap->nap_max_ns = RT_NAP_MIN_NS;
}

/* Takes what the probe says; the end of the connection is the end of the application, or of
 * its trust in us. */
static void receive_message(struct ringtap_capture *cap, struct rt_source *s)
{
	char err[RT_TEXT_LEN];
	int ret = rt_conn_expect(s->conn, RT_MSG_STOPPED, NULL, 0, NULL, 0, err, sizeof(err));

	rt_growth_look(cap, s);
	if (ret == -ETIMEDOUT || ret == -EAGAIN)
		return;
	if (ret == -EPROTO && s->filtering && s->conn->msg.h.type == RT_MSG_FILTERED) {
		s->filtering = false; /* a late answer */
		return;
	}
	if (ret > 0) {
		s->stopped = true;
		return;
	}
	s->dead = true;
	rt_growth_quit(s);
	if (ret != -ECONNRESET)
		snprintf(cap->error, sizeof(cap->error), "%s", err);
}

void rt_capture_await_growth(struct ringtap_capture *cap)
{
	uint64_t until = rt_mono_ns() + GROWTH_WAIT_NS;

	for (uint32_t i = 0; i < cap->source_count; i++) {
		struct rt_source *s = &cap->sources[i];

		while (!s->dead && !s->stopped && rt_growth_runs(s) && rt_mono_ns() < until) {
			(void)rt_wait_readable(s->conn->fd, 10);
			receive_message(cap, s);
		}
	}
}

/* Treats an unresponsive probe as stopped, and drains what it has published. */
static void give_up_waiting(struct ringtap_capture *cap)
{
	if (!cap->stop_until_ns || rt_mono_ns() < cap->stop_until_ns)
		return;
	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (cap->sources[i].dead || cap->sources[i].stopped)
			continue;
		cap->sources[i].stopped = true;
		cap->stop_error = rt_capture_fail(cap, -ETIMEDOUT, "the probe does not answer");
		(void)rt_peer_halted(cap->sources[i].conn->fd, cap->error, sizeof(cap->error));
	}
}

static void check_connections(struct ringtap_capture *cap)
{
	if (cap->window) {
		rt_window_sync(cap);
		cap->checked_ns = rt_mono_ns();
		return;
	}
	rt_retain_lock(cap);
	for (uint32_t i = 0; i < cap->source_count; i++) {
		struct rt_source *s = &cap->sources[i];

		if (s->dead || s->stopped)
			continue;
		receive_message(cap, s);
		rt_capture_learn_all_ifs(cap, i);
	}
	rt_retain_unlock(cap);
	give_up_waiting(cap);
	cap->checked_ns = rt_mono_ns();
}

static void note_look(struct ringtap_capture *cap, uint64_t mono)
{
	uint64_t pause = cap->looked_ns ? mono - cap->looked_ns : 0;

	if (pause > cap->longest_pause_ns)
		cap->longest_pause_ns = pause;
	cap->looked_ns = mono;
}

static uint64_t lost_of(const struct ringtap_capture *cap, const struct rt_in *in)
{
	const struct rt_segment *seg = &cap->sources[in->source].seg;
	const struct rt_seg_count *row = &seg->counts[(size_t)in->index * seg->h.tap_capacity];
	uint64_t lost = 0;

	for (uint32_t i = 0, n = rt_segment_tap_count(seg); i < n; i++)
		lost += rt_load(&row[i].lost[RT_LOSS_RING_FULL]);
	return lost;
}

/* Since the last look the rings of a source have written much of its buffer. Counters are read then
 * only. */
static void note_pause(struct ringtap_capture *cap, uint32_t source)
{
	uint64_t lost = 0, most = 0;

	for (uint32_t i = 0; i < cap->in_count; i++) {
		struct rt_in *in = &cap->ins[i];
		uint64_t now;

		if (in->source != source)
			continue;
		now = lost_of(cap, in);
		in->look_lost = now - in->lost;
		in->lost = now;
		lost += in->look_lost;
		most += in->pause_lost;
	}
	for (uint32_t i = 0; i < cap->in_count && lost > most; i++) {
		if (cap->ins[i].source != source)
			continue;
		cap->ins[i].pause_written = cap->ins[i].head - cap->ins[i].looked;
		cap->ins[i].pause_lost = cap->ins[i].look_lost;
	}
}

/* written: by source, since the last look. */
static void note_pauses(struct ringtap_capture *cap, const uint64_t written[RT_MAX_SOURCES])
{
	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (written[i] > cap->sources[i].there / 8)
			note_pause(cap, i);
	}
	for (uint32_t i = 0; i < cap->in_count; i++)
		cap->ins[i].looked = cap->ins[i].head;
}

static void note_used(struct ringtap_capture *cap, const uint64_t used[RT_MAX_SOURCES])
{
	for (uint32_t i = 0; i < cap->source_count; i++) {
		uint64_t size = cap->sources[i].there;

		if (cap->most_used_of && (double)used[i] * (double)cap->most_used_of <=
						 (double)cap->most_used * (double)size)
			continue;
		cap->most_used = used[i] < size ? used[i] : size;
		cap->most_used_of = size;
	}
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t refresh_rings(struct ringtap_capture *cap)
{
	uint64_t now[RT_MAX_SOURCES], mark = RT_FOREVER, mono = rt_mono_ns();
	uint64_t used[RT_MAX_SOURCES] = {0}, written[RT_MAX_SOURCES] = {0};

	note_look(cap, mono);
	for (uint32_t i = 0; i < cap->source_count; i++) {
		struct rt_source *s = &cap->sources[i];

		/* If it is being written for long, the writer is preempted or dead: keep the old
		 * line. */
		rt_clock_read(s->seg.clock, &s->line);
		now[i] = rt_clock_now(&s->line);
		mark = min_of(mark, rt_source_mark(s, now[i]));
	}
	rt_rings_follow(cap);
	for (uint32_t i = 0; i < cap->in_count; i++) {
		struct rt_in *in = &cap->ins[i];

		mark = min_of(mark, rt_in_refresh(cap, in, now[in->source], mono));
		used[in->source] += in->head - in->tail;
		written[in->source] += in->head - in->looked;
	}
	note_used(cap, used);
	note_pauses(cap, written);
	return mark;
}

static bool all_over(const struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (!cap->sources[i].dead && !cap->sources[i].stopped)
			return false;
	}
	return true;
}

static void nap(struct ringtap_capture *cap, uint64_t ns)
{
	struct pollfd p[RT_MAX_SOURCES + 1];
	unsigned n = 0;
	uint64_t v;

	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (!cap->sources[i].dead && !cap->sources[i].stopped && !cap->window)
			p[n++] = (struct pollfd){.fd = cap->sources[i].conn->fd, .events = POLLIN};
	}
	p[n++] = (struct pollfd){.fd = cap->wake_fd, .events = POLLIN};
	if (rt_poll_ns(p, n, ns) <= 0)
		return;
	/* It may be meant for another process: a forked one has the same descriptor. */
	if (p[n - 1].revents && !rt_load(&cap->broken))
		(void)!read(cap->wake_fd, &v, sizeof(v));
	check_connections(cap);
}

static bool take_break(struct ringtap_capture *cap)
{
	uint64_t v;

	if (!rt_load(&cap->broken))
		return false;
	rt_store(&cap->broken, 0);
	(void)!read(cap->wake_fd, &v, sizeof(v));
	return true;
}

/* After a ring was found corrupt, only records published before are returned. */
/* Cache lines that have left the caches of the producer's core are cheaper to read, for both sides:
 * after reading all rings to their end, let producers advance. Measured in docs/performance.md. */
static bool is_ripe(const struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->in_count; i++) {
		if (cap->ins[i].head - cap->ins[i].pos >= cap->lag_bytes)
			return true;
	}
	return rt_mono_ns() - cap->dry_ns >= LAG_NS;
}

static unsigned try_next(
	struct ringtap_capture *cap, struct ringtap_run *runs, unsigned max, bool eager)
{
	uint64_t watermark;
	unsigned n;

	rt_retain_lock(cap);
	watermark = cap->corrupt ? RT_FOREVER : refresh_rings(cap);
	if (cap->retention)
		rt_retain(cap);
	rt_retain_unlock(cap);
	if (cap->retention)
		return 0;
	if (cap->dry && !eager && !cap->corrupt && !is_ripe(cap))
		return 0;
	n = cap->window ? rt_window_next(cap, watermark, runs, max)
			: rt_merge(cap, watermark, runs, max);
	if (cap->dry)
		cap->dry_ns = rt_mono_ns();
	return n;
}

static int next_runs(
	struct ringtap_capture *cap, struct ringtap_run *runs, unsigned max, int timeout_ms)
{
	uint64_t deadline = 0;

	if (!cap->source_count || cap->detached)
		return -EPIPE;
	while (!rt_capture_started(cap)) {
		int ret = ringtap_capture_start(cap);

		if (ret && ret != -ECONNRESET) /* an application that has ended is drained like the
						  others */
			return ret;
	}
	for (cap->nap_ns = RT_NAP_MIN_NS;; cap->nap_ns *= 2) {
		bool over = all_over(cap); /* read before the rings are read for the last time */
		bool corrupt = cap->corrupt;
		unsigned n;

		if (!corrupt && (cap->stop_until_ns || rt_mono_ns() - cap->checked_ns > LOOK_NS))
			check_connections(cap);
		n = try_next(cap, runs, max, over || !timeout_ms || cap->stop_until_ns);
		if (n)
			return (int)n;
		if (corrupt)
			return cap->corrupt;
		if (cap->corrupt)
			continue;
		if (over)
			return cap->stop_error ? cap->stop_error : -EPIPE;
		if (take_break(cap))
			return 0;
		if (!deadline && timeout_ms >= 0)
			deadline = rt_mono_ns() + (uint64_t)timeout_ms * 1000000ull;
		if (timeout_ms >= 0 && rt_mono_ns() >= deadline)
			return 0;
		if (cap->nap_ns > cap->nap_max_ns)
			cap->nap_ns = cap->nap_max_ns;
		nap(cap, cap->nap_ns);
	}
}

#define RUNS_MAX 64 /* at a time, for callers with another version of the structure */

EXPORT int ringtap_capture_next_sized(struct ringtap_capture *cap, struct ringtap_run *runs,
	size_t size, unsigned max, int timeout_ms)
{
	struct ringtap_run own[RUNS_MAX];
	int n;

	if (size < RT_END_OF(struct ringtap_run, interface_count))
		return rt_capture_fail(cap, -EINVAL, "struct ringtap_run is too small");
	if (cap->retention)
		return rt_capture_fail(cap, -EINVAL, "the capture keeps its packets");
	if (size == sizeof(*runs))
		return next_runs(cap, runs, max, timeout_ms);
	n = next_runs(cap, own, max < RUNS_MAX ? max : RUNS_MAX, timeout_ms);
	for (int i = 0; i < n; i++) {
		own[i].size = size;
		memset((char *)runs + (size_t)i * size, 0, size);
		memcpy((char *)runs + (size_t)i * size, &own[i],
			size < sizeof(own[i]) ? size : sizeof(own[i]));
	}
	return n;
}

EXPORT int ringtap_capture_keep(struct ringtap_capture *cap, int timeout_ms)
{
	struct ringtap_run none;
	int ret;

	if (cap->window)
		return rt_capture_fail(cap, -EINVAL, "a window keeps nothing");
	ret = rt_retain_begin(cap);
	return ret ? ret : next_runs(cap, &none, 0, timeout_ms);
}

EXPORT void ringtap_capture_release(struct ringtap_capture *cap)
{
	if (cap->window || cap->retention) {
		rt_window_release(cap);
		return;
	}
	for (uint32_t i = 0; i < cap->in_count && !cap->detached; i++) {
		struct rt_in *in = &cap->ins[i];

		if (in->tail == in->pos)
			continue;
		in->tail = in->pos;
		/* Pairs with the acquire in rt_ring_refresh(): we have finished reading. */
		rt_store_release(&cap->sources[in->source].seg.tails[in->index].tail, in->tail);
	}
}

EXPORT void ringtap_capture_break(struct ringtap_capture *cap)
{
	uint64_t one = 1;

	rt_store(&cap->broken, 1);
	(void)!write(cap->wake_fd, &one, sizeof(one));
}
