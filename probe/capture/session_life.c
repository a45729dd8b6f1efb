/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: from the request to the last free(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "common/fail.h"
#include "epb.h"
#include "fate.h"
#include "first.h"
#include "ids.h"
#include "probe/above.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/given.h"
#include "probe/dpdk/mbuf_field.h"
#include "probe/dpdk/nic_time.h"
#include "probe/memory/node.h"
#include "request.h"
#include "sample.h"
#include "probe/trace/trace.h"

#define TAPS_SPARE     512 /* for queues that are added later */
#define PENDING_EACH   (sizeof(struct rt_seg_count) / sizeof(uint64_t))
#define SHARES_SPARE   2u  /* for threads beyond those that are expected */
#define OBSERVE_MAX_MS 150 /* ports that no thread polls end the wait here */
/* Bytes; 27 ms at 10 GB/s: docs/performance.md. */
#define BUFFER_DEFAULT   (256ull << 20)
#define BUFFER_OF_THREAD (32ull << 20)
#define BUFFER_FIRST     (16ull << 20) /* what packets begin with: populated in milliseconds */
#define OWN_AHEAD_MIN    (4u << 20)    /* what is smaller stays in the L2 cache */

static int other_link(const char *name, uint16_t port, char *err)
{
	return rt_fail(-ENOTSUP, err, RT_TEXT_LEN,
		"port '%s' has packets of link type %u, which the reader does not request", name,
		rt_given(port)->linktype);
}

/* A port requested by name must exist; "all ports" may be none yet. */
static int check_ports(const struct rt_session *s, char *err)
{
	for (uint32_t i = 0; i < s->target_count; i++) {
		const struct rt_msg_target *w = &s->targets[i];
		bool found = !w->port[0];
		char names[160] = "";

		for (uint16_t p = rt_port_next(0); p < RT_MAX_PORTS && !found;
			p = rt_port_next(p + 1)) {
			char name[RT_NAME_LEN];
			size_t n = strlen(names);

			if (rt_port_name(p, name))
				continue;
			found = rt_target_matches(p, w);
			if (!found && rt_port_matches(p, w->port))
				return other_link(name, p, err);
			snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", name);
		}
		if (!found)
			return rt_fail(-ENODEV, err, RT_TEXT_LEN, "no port '%s'; there is %s",
				w->port, names[0] ? names : "none");
	}
	return 0;
}

static void count_queues(const struct rt_session *s, uint32_t total[2])
{
	total[RT_DIR_RX] = total[RT_DIR_TX] = 0;

	for (uint16_t p = rt_port_next(0); p < RT_MAX_PORTS; p = rt_port_next(p + 1)) {
		uint32_t target = 0, n[2];

		while (target < s->target_count && !rt_target_matches(p, &s->targets[target]))
			target++;
		if (target == s->target_count || rt_port_queues(p, n))
			continue;
		total[RT_DIR_RX] += n[RT_DIR_RX];
		total[RT_DIR_TX] += n[RT_DIR_TX];
	}
}

/* Counters of all taps, and behind them what is lost since the last record of each. */
static uint32_t row_entries(uint32_t taps)
{
	return taps + (uint32_t)((taps + PENDING_EACH - 1) / PENDING_EACH);
}

/* Then the table of flows. */
static uint32_t flow_entries(const struct rt_session *s)
{
	return s->first ? (uint32_t)(rt_first_bytes(&s->first->m) / sizeof(struct rt_seg_count))
			: 0;
}

static uint32_t tap_limit(uint32_t entries)
{
	return entries - entries / PENDING_EACH;
}

static int prepare(struct rt_session *s, const struct rt_request *req, char *err)
{
	uint32_t queues[2];
	uint64_t flag;
	int offset, ret;

	s->targets = malloc(s->target_count * sizeof(*s->targets));
	if (!s->targets)
		return -ENOMEM;
	memcpy(s->targets, req->targets, s->target_count * sizeof(*s->targets));
	ret = check_ports(s, err);
	if (ret)
		return ret;
	if (s->timestamp == RT_TIMESTAMP_NIC && rt_nic_time_lookup(&offset, &flag))
		return rt_fail(-ENOTSUP, err, RT_TEXT_LEN,
			"no port of this application delivers NIC time stamps");
	if (req->open.flags & RT_OPEN_SAMPLE && rt_sampler_make(&s->sampler, &req->sample))
		return -ENOMEM;
	if (req->open.flags & RT_OPEN_FIRST && rt_first_make(&s->first, &req->first))
		return -ENOMEM;
	if (s->ids) {
		ret = rt_ids_register(err);
		if (ret)
			return ret;
	}
	count_queues(s, queues);
	s->tap_capacity = (queues[RT_DIR_RX] + queues[RT_DIR_TX]) * 2 + TAPS_SPARE;
	if (row_entries(s->tap_capacity) + flow_entries(s) > RT_MAX_TAPS)
		s->tap_capacity = tap_limit(RT_MAX_TAPS - flow_entries(s));
	s->taps = calloc(s->tap_capacity, sizeof(struct rt_tap *));
	return s->taps ? 0 : -ENOMEM;
}

static bool has_stamped(const struct rt_session *s)
{
	for (uint32_t i = 0; i < s->tap_count; i++) {
		if (s->taps[i]->stamped)
			return true;
	}
	return false;
}

/* Stamped ports need those that poll now, see hold_stamped(). */
static void forget_threads(struct rt_session *s)
{
	if (!has_stamped(s))
		return;
	for (uint32_t i = 0; i < s->tap_count; i++)
		rt_thread_set_clear(&s->taps[i]->hook->seen);
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
	s->flags = req->open.flags;
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
	forget_threads(s);
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

	for (uint32_t i = 0; i < s->tap_count && age < OBSERVE_MAX_MS; i++) {
		const struct rt_tap *t = s->taps[i];

		if (t->stamped && t->direction == RT_DIR_RX && t->hook &&
			!rt_thread_set_count(&t->hook->seen))
			return false;
	}
	return true;
}

static void set_up_ring(struct rt_session *s, uint32_t i)
{
	struct rt_seg_count *row = &s->shm.counts[(size_t)i * s->shm.tap_capacity];
	struct rt_ring *r = &s->rings[i];

	*r = (struct rt_ring){
		.own_ahead = s->chunks.window * s->chunks.size >= OWN_AHEAD_MIN
				     ? RT_OWN_SMALL | RT_OWN_LARGE
				     : 0,
		.index = (uint8_t)i,
		.pub_order = &s->shm.orders[(size_t)i * s->shm.order_count],
		.pub = &s->shm.rings[i],
		.peer = &s->shm.tails[i],
		.counts = row,
		.pending = (uint64_t *)(row + s->tap_capacity),
	};
	if (s->first)
		s->first->state[i].flows = (void *)(row + row_entries(s->tap_capacity));
	rt_chunks_empty(&s->chunks, r);
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

static int by_node(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

/* The nodes of all lcores, sorted. Returns their number. */
static uint32_t lcore_nodes(int32_t node[RT_MAX_RINGS])
{
	uint32_t n = 0;

	for (unsigned i = 0; i < RTE_MAX_LCORE && n < RT_MAX_RINGS; i++) {
		if (rte_eal_lcore_role(i) != ROLE_OFF) {
			const rte_cpuset_t cpus = rte_lcore_cpuset(i);

			node[n++] = rt_node_of_cpus(&cpus);
		}
	}
	qsort(node, n, sizeof(*node), by_node);
	return n;
}

/* A share of the buffer for each thread that will probably poll: there is an lcore for it, and a
 * queue, or it has polled already, for another session or a monitor. A few more are for others.
 * Rings are not bound to these: any thread gets what is free. */
static void expect_threads(struct rt_session *s)
{
	struct rt_thread_set seen = threads_seen(s);
	uint32_t lcores = lcore_nodes(s->node), queues[2], n;
	int32_t of_lcores[RT_MAX_RINGS];

	memcpy(of_lcores, s->node, sizeof(of_lcores));
	count_queues(s, queues);
	n = RTE_MAX(queues[RT_DIR_RX], queues[RT_DIR_TX]);
	s->least = RTE_MIN(n + SHARES_SPARE, (uint32_t)RT_MAX_RINGS);
	if (!n || n > lcores) /* without ports: any */
		n = lcores;
	n = RTE_MAX(n, rt_thread_set_count(&seen));
	n = RTE_MAX(n, 1u);
	n = RTE_MIN(n, RT_MAX_RINGS - SHARES_SPARE);
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++)
		s->node[i] = i < n && lcores ? of_lcores[i * lcores / n] : RT_NODE_UNKNOWN;
	s->share_count = n + SHARES_SPARE;
}

/* More for many threads, each of which may be as far ahead of the reader. */
static uint64_t buffer_wanted(const struct rt_session *s)
{
	uint64_t threads = s->share_count - SHARES_SPARE, size = BUFFER_DEFAULT;

	if (s->buffer_size)
		return s->buffer_size;
	if (size < threads * BUFFER_OF_THREAD)
		size = threads * BUFFER_OF_THREAD;
	return size < s->buffer_most ? size : s->buffer_most;
}

/* Rows of counters that the reader populates: for the threads that are known, expected, or may be
 * there for all queues, and one for each CPU, as a thread on each may begin at once. */
static uint32_t rows_wanted(const struct rt_session *s)
{
	uint32_t likely = RTE_MAX(s->share_count, s->least),
		 rows = RTE_MAX(rt_session_threads(s), likely);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus > RT_MAX_RINGS)
		return RT_MAX_RINGS;
	rows += cpus > (long)RT_ROWS_AHEAD ? (uint32_t)cpus : RT_ROWS_AHEAD;
	return RTE_MIN(rows, (uint32_t)RT_MAX_RINGS);
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

/* Describes the table of fates, which lies in the segment, to the reader. */
static void add_fates(struct rt_session *s, struct rt_msg_fates *out)
{
	const bool events = s->ids & RT_IDS_EVENTS, history = !events && rt_mbuf_history_offset();
	const uint32_t extra = history ? RT_FATE_HISTORY : 0;
	uint32_t snap = 0;

	*out = (struct rt_msg_fates){0};
	if (!(s->ids & RT_IDS_FATES))
		return;
	for (uint32_t i = 0; i < s->target_count && !events; i++)
		snap = RTE_MAX(snap, s->targets[i].snaplen);
	/* Earlier readers get a table of more bytes for each packet, of which none has the last
	 * ones. */
	snap = (RTE_MIN(snap, RT_FATE_SNAP_MAX - extra) + 63) / 64 * 64 + extra;
	rt_shm_add_fates(
		&s->shm, rt_fates_bits(rt_fates_mbufs(), snap, s->buffer_most), snap, history);
	*out = (struct rt_msg_fates){.bits = s->shm.h.fate_bits,
		.stride = s->shm.h.fate_stride,
		.bytes = rt_shm_fate_bytes(&s->shm.h)};
}

void rt_session_lay_out(struct rt_session *s, struct rt_msg_layout *out, struct rt_msg_fates *fates)
{
	expect_threads(s);
	rt_shm_lay_out(&s->shm, &(struct rt_shm_numbers){.rings = RT_MAX_RINGS,
					.taps = row_entries(s->tap_capacity) + flow_entries(s),
					.rows = rows_wanted(s),
					.shares = s->share_count,
					.least = s->least,
					.buffer_size = buffer_wanted(s),
					.first = s->flags & RT_OPEN_GROWS ? BUFFER_FIRST : 0});
	bound_snaplens(s);
	add_fates(s, fates);
	s->state = RT_SESSION_LAID_OUT;
	*out = (struct rt_msg_layout){.ring_count = s->shm.ring_count,
		.share_count = s->share_count,
		.if_capacity = s->shm.h.if_capacity,
		.tap_capacity = s->shm.tap_capacity,
		.chunk_count = s->shm.chunk_count,
		.order_count = s->shm.order_count,
		.chunk_size = s->shm.chunk_size,
		.filled = s->shm.filled};
	memcpy(out->bytes, s->shm.bytes, sizeof(out->bytes));
	memcpy(out->node, s->node, sizeof(out->node));
}

static int make_rings(struct rt_session *s)
{
	struct rt_ring *rings = aligned_alloc(128, RT_MAX_RINGS * sizeof(*rings));

	if (!rings || rt_chunks_init(&s->chunks, rings, s->shm.data, s->shm.chunk_size,
			      s->shm.chunk_count, s->shm.order_count)) {
		free(rings);
		return -ENOMEM;
	}
	s->rings = rings;
	rt_chunks_share(&s->chunks, s->share_count, s->node);
	for (uint32_t i = 0; i < RT_MAX_RINGS; i++)
		set_up_ring(s, i);
	rt_chunks_withhold(&s->chunks, (uint32_t)(s->shm.there >> s->chunks.shift));
	s->orphans = s->shm.orphans;
	s->rows = rt_shm_rows(&s->shm);
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
	if (ret)
		return rt_fail(ret, err, RT_TEXT_LEN, "not enough memory");
	rt_clock_publish(s->shm.clock, clock);
	rt_session_publish_shares(s);
	s->state = RT_SESSION_READY;
	return 0;
}

int rt_session_grow(struct rt_session *s, int fd, char *err)
{
	int ret = rt_shm_grow(&s->shm, fd, err);

	if (!ret)
		rt_chunks_offer(&s->chunks, (uint32_t)(s->shm.there >> s->chunks.shift));
	return ret;
}

/* Packets received earlier may bear earlier time stamps: until its thread's first poll, a ring
 * that may get such packets holds up the merge like a busy one. Rings that do get them stay so. */
static void hold_stamped(struct rt_session *s)
{
	struct rt_thread_set polling = threads_seen(s), seen = {0};

	if (!has_stamped(s))
		return;
	for (uint32_t i = 0; i < s->tap_count; i++) {
		if (s->taps[i]->stamped && s->taps[i]->hook)
			rt_thread_set_merge(&seen, &s->taps[i]->hook->seen);
	}
	for (uint32_t i = rt_thread_set_next(&polling, 0); i < RT_MAX_THREADS;
		i = rt_thread_set_next(&polling, i + 1)) {
		if (!rt_session_begin_ring(s, &s->rings[i], &rt_threads[i]))
			continue;
		rt_store(&s->rings[i].pub->busy, 1);
		s->rings[i].held = rt_thread_set_has(&seen, i);
	}
}

void rt_session_arm(struct rt_session *s, const struct rt_clock_line *clock)
{
	rt_clock_publish(s->shm.clock, clock);
	s->start_ns = rt_clock_ns(clock, rt_tsc());
	s->shm.header->start_ns = s->start_ns;
	rt_store_release(&s->shm.header->state, RT_SEG_ARMED);
	s->state = RT_SESSION_ARMED;
	rt_session_supply_rows(s);
	hold_stamped(s);
	if (s->fates) {
		rt_fates_walk(s, rt_now_ms()); /* finds the pools */
		rt_reason_listen(s);
	}
	rt_session_publish(s);
}

/* Bursts of threads that were cancelled or jumped, and did not come back to mend them. */
static void mend_rings(struct rt_session *s)
{
	RT_EACH_RING(s, i)
	{
		struct rt_ring *r = &s->rings[i];

		if (!r->open)
			continue;
		if (s->fates)
			rt_fates_mend(s->fates, r);
		rt_epb_mend(r, s->flags);
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
	rt_chunks_free(&s->chunks);
	free(s->rings);
	free(s->sampler);
	free(s->first);
	free(s);
}
