/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: from the request to the last free(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "epb.h"
#include "fate.h"
#include "ids.h"
#include "probe/monitor/stats.h"
#include "probe/core/hook.h"
#include "nic_time.h"
#include "probe/core/node.h"
#include "probe/core/request.h"
#include "probe/trace/trace.h"

#define TAPS_SPARE      512 /* for queues that are added later */
#define RINGS_SPARE_MIN 2u  /* for threads that did not poll while the session observed */
#define RINGS_SPARE_MAX 8u
#define OBSERVE_MIN_MS  10  /* so that threads that only send are found, too */
#define OBSERVE_MAX_MS  150 /* ports that no thread polls end the wait here */
/* Bytes; 27 ms at 10 GB/s: docs/performance.md. */
#define BUFFER_DEFAULT   (256ull << 20)
#define BUFFER_OF_THREAD (32ull << 20)
#define OWN_AHEAD_MIN    (4u << 20) /* what is smaller stays in the L2 cache */

/* A port requested by name must exist; "all ports" may be none yet. */
static int check_ports(const struct rt_session *s, char *err)
{
	for (uint32_t i = 0; i < s->target_count; i++) {
		bool found = !s->targets[i].port[0];
		char names[160] = "";

		for (uint16_t p = rt_port_next(0); p < RTE_MAX_ETHPORTS && !found;
			p = rt_port_next(p + 1)) {
			char name[RT_NAME_LEN];
			size_t n = strlen(names);

			if (rt_port_name(p, name))
				continue;
			found = rt_port_matches(p, s->targets[i].port);
			snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", name);
		}
		if (!found) {
			snprintf(err, RT_TEXT_LEN, "no port '%s'; there is %s", s->targets[i].port,
				names[0] ? names : "none");
			return -ENODEV;
		}
	}
	return 0;
}

static uint32_t count_queues(const struct rt_session *s)
{
	uint32_t total = 0;

	for (uint16_t p = rt_port_next(0); p < RTE_MAX_ETHPORTS; p = rt_port_next(p + 1)) {
		uint32_t target = 0, n[2];

		while (target < s->target_count && !rt_port_matches(p, s->targets[target].port))
			target++;
		if (target < s->target_count && rt_port_queues(p, n) == 0)
			total += n[RT_DIR_RX] + n[RT_DIR_TX];
	}
	return total;
}

static int prepare(struct rt_session *s, const struct rt_request *req, char *err)
{
	uint64_t flag;
	int offset, ret;

	s->targets = malloc(s->target_count * sizeof(*s->targets));
	if (!s->targets)
		return -ENOMEM;
	memcpy(s->targets, req->targets, s->target_count * sizeof(*s->targets));
	ret = check_ports(s, err);
	if (ret)
		return ret;
	if (s->timestamp == RT_TIMESTAMP_NIC && rt_nic_time_lookup(&offset, &flag)) {
		snprintf(err, RT_TEXT_LEN, "no port of this application delivers NIC time stamps");
		return -ENOTSUP;
	}
	if (s->ids) {
		ret = rt_ids_register(err);
		if (ret)
			return ret;
	}
	s->tap_capacity = count_queues(s) * 2 + TAPS_SPARE;
	if (s->tap_capacity > RT_MAX_TAPS)
		s->tap_capacity = RT_MAX_TAPS;
	s->taps = calloc(s->tap_capacity, sizeof(struct rt_tap *));
	return s->taps ? 0 : -ENOMEM;
}

int rt_session_open(struct rt_session **out, struct rt_request *req, char *err)
{
	static uint32_t next_id;
	struct rt_session *s;
	int ret;

	s = aligned_alloc(128, (sizeof(*s) + 127) / 128 * 128);
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->id = ++next_id;
	s->on_full = req->open.on_full;
	s->timestamp = req->open.timestamp;
	s->ids = req->open.ids;
	s->target_count = req->open.target_count;
	s->buffer_size = req->open.buffer_size;
	s->buffer_most = req->open.buffer_most;
	s->reader_pid = req->reader_pid;
	memcpy(s->reader, req->reader, sizeof(s->reader));
	snprintf(err, RT_TEXT_LEN, "not enough memory");
	ret = prepare(s, req, err);
	if (ret) {
		rt_session_free(s);
		return ret;
	}
	s->filters = req->filters;
	req->filters = NULL;
	rt_session_rescan(s);
	for (uint32_t i = 0; i < s->tap_count; i++)
		rt_thread_set_clear(&s->taps[i]->hook->seen);
	rt_stat_look_again();
	s->opened_ms = rt_now_ms();
	*out = s;
	rt_trace_session_open(s->id, s->reader_pid);
	return 0;
}

bool rt_session_observed(const struct rt_session *s, uint64_t now_ms)
{
	/* The round of the control thread may have begun before the session was opened. */
	uint64_t age = now_ms > s->opened_ms ? now_ms - s->opened_ms : 0;
	bool receives = false;

	if (age < OBSERVE_MIN_MS || age >= OBSERVE_MAX_MS)
		return age >= OBSERVE_MAX_MS;
	for (uint32_t i = 0; i < s->tap_count; i++) {
		const struct rt_hook *h = s->taps[i]->hook;

		if (!h || h->direction != RT_DIR_RX)
			continue;
		receives = true;
		if (!rt_thread_set_count(&h->seen))
			return false;
	}
	return receives;
}

static void set_up_ring(struct rt_session *s, uint32_t i)
{
	struct rt_ring *r = &s->rings[i];

	*r = (struct rt_ring){
		.own_ahead = s->chunks.window * s->chunks.size >= OWN_AHEAD_MIN,
		.index = (uint16_t)i,
		.order = &s->orders[(size_t)i * s->shm.order_count],
		.pub_order = &s->shm.orders[(size_t)i * s->shm.order_count],
		.pub = &s->shm.rings[i],
		.peer = &s->shm.tails[i],
		.counts = &s->shm.counts[(size_t)i * s->tap_capacity],
		.pending = &s->pending[(size_t)i * s->tap_capacity],
	};
	rt_chunks_begin(&s->chunks, r);
}

static struct rt_thread_set threads_seen(const struct rt_session *s)
{
	struct rt_thread_set seen = {0};

	for (uint32_t i = 0; i < s->tap_count; i++) {
		if (s->taps[i]->hook)
			rt_thread_set_merge(&seen, &s->taps[i]->hook->seen);
	}
	return seen;
}

/* A ring for each thread that polls, and some for threads that begin later. */
static uint32_t rings_needed(const struct rt_thread_set *seen)
{
	uint32_t known = rt_thread_set_count(seen), lcores = rte_lcore_count();
	uint32_t spare = lcores > known ? lcores - known : 0;

	if (spare < RINGS_SPARE_MIN)
		spare = RINGS_SPARE_MIN;
	if (spare > RINGS_SPARE_MAX)
		spare = RINGS_SPARE_MAX;
	return known + spare < RT_MAX_RINGS ? known + spare : RT_MAX_RINGS;
}

/* More for many threads, each of which may be as far ahead of the reader. */
static uint64_t buffer_wanted(const struct rt_session *s)
{
	uint64_t threads = rt_thread_set_count(&s->polling), size = BUFFER_DEFAULT;

	if (s->buffer_size)
		return s->buffer_size;
	if (size < threads * BUFFER_OF_THREAD)
		size = threads * BUFFER_OF_THREAD;
	return size < s->buffer_most ? size : s->buffer_most;
}

/* No record crosses the end of a chunk. */
static void bound_snaplens(struct rt_session *s)
{
	uint32_t longest = rt_epb_longest(s->shm.chunk_size);

	for (uint32_t i = 0; i < s->target_count; i++)
		s->targets[i].snaplen = RTE_MIN(s->targets[i].snaplen, longest);
	for (uint32_t i = 0; i < s->tap_count; i++)
		s->taps[i]->snaplen = RTE_MIN(s->taps[i]->snaplen, longest);
}

/* What the reader makes besides. The table lies in the segment. */
static void add_fates(struct rt_session *s, struct rt_msg_fates *out)
{
	uint32_t snap = 0;

	*out = (struct rt_msg_fates){0};
	if (!(s->ids & RT_IDS_FATES))
		return;
	for (uint32_t i = 0; i < s->target_count && !(s->ids & RT_IDS_EVENTS); i++)
		snap = RTE_MAX(snap, s->targets[i].snaplen);
	snap = (RTE_MIN(snap, RT_FATE_SNAP_MAX) + 63) / 64 * 64;
	rt_shm_add_fates(&s->shm, rt_fates_bits(rt_fates_mbufs(), snap, s->buffer_most), snap);
	*out = (struct rt_msg_fates){.bits = s->shm.h.fate_bits,
		.stride = s->shm.h.fate_stride,
		.bytes = rt_shm_fate_bytes(&s->shm.h)};
}

void rt_session_lay_out(struct rt_session *s, struct rt_msg_layout *out, struct rt_msg_fates *fates)
{
	uint32_t n = 0;

	s->polling = threads_seen(s);
	rt_shm_lay_out(&s->shm, rings_needed(&s->polling), buffer_wanted(s), s->tap_capacity);
	bound_snaplens(s);
	add_fates(s, fates);
	s->state = RT_SESSION_LAID_OUT;
	*out = (struct rt_msg_layout){.ring_count = s->shm.ring_count,
		.if_capacity = s->shm.h.if_capacity,
		.tap_capacity = s->shm.tap_capacity,
		.chunk_count = s->shm.chunk_count,
		.order_count = s->shm.order_count,
		.chunk_size = s->shm.chunk_size};
	memcpy(out->bytes, s->shm.bytes, sizeof(out->bytes));
	/* In the order in which make_rings() assigns them. */
	for (uint32_t t = 0; t < RT_MAX_THREADS && n < RT_MAX_RINGS; t++) {
		if (rt_thread_set_has(&s->polling, t))
			out->node[n++] = rt_node_of_thread(rt_load(&rt_threads[t].tid));
	}
	while (n < RT_MAX_RINGS)
		out->node[n++] = RT_NODE_UNKNOWN;
}

/* calloc() leaves large areas to be faulted in at the first access, here by a polling thread. */
static void *populated_zeros(size_t bytes)
{
	volatile uint8_t *p = calloc(1, bytes);

	for (size_t i = 0; p && i < bytes; i += 4096)
		p[i] = 0;
	if (p && bytes)
		p[bytes - 1] = 0;
	return (void *)(uintptr_t)p;
}

static int make_rings(struct rt_session *s)
{
	uint32_t n = s->shm.ring_count;

	s->rings = aligned_alloc(128, n * sizeof(*s->rings));
	s->pending = populated_zeros((size_t)n * s->tap_capacity * sizeof(*s->pending));
	s->orders = populated_zeros((size_t)n * s->shm.order_count * sizeof(*s->orders));
	if (!s->rings || !s->pending || !s->orders)
		return -ENOMEM;
	if (rt_chunks_init(&s->chunks, s->shm.data, s->shm.chunk_size, s->shm.chunk_count, n,
		    s->shm.order_count))
		return -ENOMEM;
	s->ring_count = n;
	for (uint32_t i = 0; i < n; i++)
		set_up_ring(s, i);
	s->orphans = &s->shm.counts[(size_t)n * s->tap_capacity];
	for (uint32_t t = 0; t < RT_MAX_THREADS; t++) {
		if (rt_thread_set_has(&s->polling, t))
			rt_session_claim_ring(s, &rt_threads[t]);
	}
	return 0;
}

int rt_session_ready(struct rt_session *s, const int fds[RT_FD_COUNT],
	const struct rt_clock_line *clock, char *err)
{
	/* A copy first: the clock is published to every session whose segment exists. */
	struct rt_shm shm = s->shm;
	int ret = rt_shm_attach(&shm, fds, err);

	if (ret)
		return ret;
	s->shm = shm;
	ret = make_rings(s);
	if (!ret && s->ids & RT_IDS_FATES) {
		s->fates = rt_fates_new(s);
		ret = s->fates ? 0 : -ENOMEM;
	}
	if (ret) {
		snprintf(err, RT_TEXT_LEN, "not enough memory");
		return ret;
	}
	rt_clock_publish(s->shm.clock, clock);
	s->state = RT_SESSION_READY;
	return 0;
}

/* Packets received earlier may bear earlier time stamps: until its thread's first poll, a ring
 * that may get such packets holds up the merge like a busy one. Rings that do get them stay so. */
static void hold_stamped(struct rt_session *s)
{
	struct rt_thread_set seen = {0};
	bool stamped = false;

	for (uint32_t i = 0; i < s->tap_count; i++) {
		if (!s->taps[i]->stamped)
			continue;
		stamped = true;
		if (s->taps[i]->hook)
			rt_thread_set_merge(&seen, &s->taps[i]->hook->seen);
	}
	for (uint32_t i = 0; i < s->ring_count && i < s->spare_next && stamped; i++)
		rt_store(&s->rings[i].pub->busy, 1);
	for (uint32_t t = 0; t < RT_MAX_THREADS; t++) {
		if (s->ring_of[t] && rt_thread_set_has(&seen, t))
			s->ring_of[t]->held = true;
	}
}

void rt_session_arm(struct rt_session *s, const struct rt_clock_line *clock)
{
	rt_clock_publish(s->shm.clock, clock);
	s->start_ns = rt_clock_ns(clock, rt_tsc());
	s->shm.header->start_ns = s->start_ns;
	rt_store_release(&s->shm.header->state, RT_SEG_ARMED);
	s->state = RT_SESSION_ARMED;
	hold_stamped(s);
	if (s->fates)
		rt_fates_walk(s, rt_now_ms()); /* finds the pools */
	rt_session_publish(s);
}

/* Bursts of threads that were cancelled or jumped, and did not come back to mend them. */
static void mend_rings(struct rt_session *s)
{
	for (uint32_t i = 0; i < s->ring_count; i++) {
		struct rt_ring *r = &s->rings[i];

		if (!r->open)
			continue;
		if (s->fates)
			rt_fates_mend(s->fates, r);
		rt_epb_mend(r);
		rt_ring_publish(r);
	}
}

bool rt_session_stopped(struct rt_session *s)
{
	/* Hooks go on: what the application offers or receives meanwhile is settled by them. */
	if (s->state == RT_SESSION_CLOSING && rt_grace_over(&s->grace) && rt_fates_walk_last(s))
		rt_session_cut(s);
	if (s->state == RT_SESSION_STOPPING && rt_grace_over(&s->grace)) {
		s->state = RT_SESSION_STOPPED;
		mend_rings(s);
		/* Counters and heads are final before it: RT_MSG_STOPPED notifies this session's
		 * reader, other processes may read the state. */
		if (s->shm.header)
			rt_store_release(&s->shm.header->state, RT_SEG_STOPPED);
	}
	return s->state == RT_SESSION_STOPPED;
}

void rt_session_free(struct rt_session *s)
{
	rt_shm_destroy(&s->shm);
	rt_fates_free(s->fates);
	for (uint32_t i = 0; i < s->tap_count; i++) {
		free(s->taps[i]->spare);
		free(s->taps[i]);
	}
	rt_session_free_filters(s->filters, s->target_count);
	rt_session_free_filters(s->old_filters, s->target_count);
	free(s->taps);
	free(s->ifs);
	free(s->targets);
	free(s->pending);
	free(s->orders);
	rt_chunks_free(&s->chunks);
	free(s->rings);
	free(s);
}
