/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "ringtap/reason.h"
#include "role.h"
#include "base/util.h"

#define MADE_UP_S 0.02 /* longer than the time slices of other threads on the same CPU */

/* Allocates at the first packet of a stream, which is rare. */
static struct sequence *stream(struct sink *s, uint8_t number)
{
	if (!s->streams[number])
		s->streams[number] = calloc(1, sizeof(struct sequence));
	return s->streams[number];
}

static void count_numbers(struct sink *s, struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n && i < 8; i++)
		rte_prefetch0(rte_pktmbuf_mtod_offset(m[i], void *, STAMP_OFFSET));
	for (uint16_t i = 0; i < n; i++) {
		struct sequence *q;
		struct stamp stamp;

		if (i + 8 < n)
			rte_prefetch0(rte_pktmbuf_mtod_offset(m[i + 8], void *, STAMP_OFFSET));
		if (!stamp_read(rte_pktmbuf_mtod(m[i], uint8_t *), m[i]->data_len, &stamp)) {
			s->unstamped++;
			continue;
		}
		q = stream(s, stamp.stream);
		if (rt_unlikely(!q))
			s->out_of_memory = true;
		else
			sequence_add(q, stamp.number);
	}
}

/* For `ringtap drops`. */
static __rte_noinline void name_reasons(const struct role *r, struct rte_mbuf **m, uint16_t n)
{
	const bool readable = r->config->memory != MEMORY_GPU;
	struct stamp stamp;

	for (uint16_t i = 0; i < n; i++)
		ringtap_reason(m[i], readable && stamp_read(rte_pktmbuf_mtod(m[i], uint8_t *),
							 m[i]->data_len, &stamp)
					     ? "sink"
					     : "sink, no number");
}

/* The packets that a wire of the rate would take now, at most a burst. Time in which the thread did
 * not run counts: losing the CPU must not slow down the modelled wire. */
static uint16_t wire(struct role *r, uint64_t now)
{
	struct sink *s = r->sink;

	s->due_before = s->due;
	s->due = rate_due(&s->clock, now);
	return (uint16_t)RTE_MIN(s->due - s->taken, r->burst);
}

/* A wire cannot use idle time later. But the sending thread may have lost its CPU and be late: up
 * to MADE_UP_S of idle time stays usable. The limit applies to the credit of the previous poll:
 * since then, this thread may have been the one without a CPU. */
static void idle(struct sink *s)
{
	if (s->due_before - s->taken > s->made_up)
		s->taken = s->due_before - s->made_up;
}

static inline __attribute__((always_inline)) void sink(struct role *r, const enum plane_id plane)
{
	struct counters *c = role_counters(r);
	uint16_t n = r->burst, got;
	uint64_t begin = 0;

	if (r->config->sink_rate) {
		begin = rt_tsc();
		n = wire(r, begin);
		if (!n)
			return;
	}
	got = link_rx(plane, r->from, r->held, n);
	trace_rx(r->from, n, got);
	n = got;
	if (!n) {
		if (r->config->sink_rate)
			idle(r->sink);
		count_add(c->rx_empty, 1);
		return;
	}
	r->sink->taken += n;
	if (r->samples)
		samples_take(r->samples, r->held, n, rt_load(&run.stage));
	if (rt_unlikely(r->config->memory == MEMORY_GPU)) /* not readable */
		r->sink->unstamped += n;
	else
		count_numbers(r->sink, r->held, n);
	if (ringtap_reason_wanted())
		name_reasons(r, r->held, n);
	link_free(plane, r->held, n);
	count_add(c->rx_nonzero, 1);
	count_add(c->rx_packets, n);
	if (r->config->sink_rate)
		count_add(c->rx_ticks, rt_tsc() - begin);
}

static void sink_dpdk(struct role *r)
{
	sink(r, PLANE_DPDK);
}

static void sink_packet(struct role *r)
{
	sink(r, PLANE_PACKET);
}

static void sink_mmap(struct role *r)
{
	sink(r, PLANE_MMAP);
}

int sink_init(struct role *r)
{
	r->sink = calloc(1, sizeof(*r->sink));
	/* Most runs have only stream 0. */
	if (!r->sink || !stream(r->sink, 0))
		return message_fail(-ENOMEM, "role sink: not enough memory");
	if (r->config->sink_rate) {
		rate_start(&r->sink->clock, rt_tsc(), r->config->sink_rate, run.hz);
		r->sink->made_up = (uint64_t)((double)r->config->sink_rate * MADE_UP_S);
		if (r->sink->made_up < r->burst)
			r->sink->made_up = r->burst;
	}
	r->poll = r->plane == PLANE_DPDK     ? sink_dpdk
		  : r->plane == PLANE_PACKET ? sink_packet
					     : sink_mmap;
	return 0;
}
