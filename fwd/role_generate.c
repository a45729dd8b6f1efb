/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "role.h"
#include "base/util.h"

/* Packets due in a stage are sent up to this time after its end. */
#define LATE_NS 20000000

static void enter_stage(struct role *r, unsigned stage, uint64_t start)
{
	struct generator *g = r->generator;
	const struct stage *s = &r->config->stages[stage];

	g->stage = stage;
	g->sent[stage].start = start;
	g->rate = s->rate;
	g->settled = 0;
	g->due_max = s->ns && s->rate != RATE_UNLIMITED ? rate_total(s->rate, s->ns) : UINT64_MAX;
	g->end = s->ns ? start + run_ticks(s->ns) : UINT64_MAX;
	g->late_end = s->ns ? g->end + run_ticks(LATE_NS) : UINT64_MAX;
	rate_start(&g->clock, start, s->rate == RATE_UNLIMITED ? 0 : s->rate, run.hz);
	if (g->times.ticks) {
		rate_follow(&g->clock, &g->times);
		g->sending = g->clock.times;
	}
	if (r->config->poisson) {
		rate_randomize(&g->clock, r->config->seed + (uint64_t)g->stream * 1000 + stage);
		g->due_max = UINT64_MAX; /* random, limited by the end of the stage */
	}
	if (g->first)
		rt_store(&run.stage, stage);
}

void generate_start(struct role *r)
{
	enter_stage(r, 0, run.start_tsc);
}

/* Packets of the stage that are due and not yet counted. */
static uint64_t backlog(struct generator *g, uint64_t now)
{
	uint64_t due;

	if (g->rate == RATE_UNLIMITED)
		return now < g->end && (int64_t)(now - g->clock.start) >= 0 ? UINT64_MAX : 0;
	due = rate_due(&g->clock, now < g->end ? now : g->end - 1);
	return (due < g->due_max ? due : g->due_max) - g->settled;
}

/* Enters the next stage if the current one is over. Returns whether the current one goes on. */
static bool next_stage(struct role *r, struct counters *c, uint64_t now, uint64_t left)
{
	struct generator *g = r->generator;

	if (now < g->end || (left && now < g->late_end))
		return true;
	if (r->config->poisson && left) /* one call of rate_due() may not return all */
		left = rate_due_all(&g->clock, g->end - 1) - g->settled;
	count_add(c->tx_expired, left);
	if (g->stage + 1 == r->config->stage_count) {
		rt_store(&g->done, true);
		return false;
	}
	enter_stage(r, g->stage + 1, g->end);
	return false;
}

/* Fills held[] up to n frames. A refused frame stays the next one to be sent, as a NIC keeps the
 * buffer when it misses a packet. Returns the number of frames in held[]. */
static uint16_t build(struct role *r, const enum plane_id plane, uint16_t n)
{
	struct generator *g = r->generator;

	if (g->built >= n)
		return n;
	if (!link_alloc(plane, r->to, r->held + g->built, n - g->built))
		return g->built;
	for (uint16_t i = g->built; i < n; i++)
		rte_prefetch0_write(rte_pktmbuf_mtod(r->held[i], void *));
	for (; g->built < n; g->built++) {
		frame_fill(r->held[g->built], &g->frames, g->next_frame);
		if (++g->next_frame == g->frames.count)
			g->next_frame = 0;
	}
	return n;
}

static void stamp(struct role *r, uint16_t n)
{
	struct generator *g = r->generator;
	struct stamp s = {.stream = g->stream, .tsc = rt_tsc()};

	for (uint16_t i = 0; i < n; i++) {
		s.number = g->number + i;
		stamp_write(rte_pktmbuf_mtod(r->held[i], uint8_t *), &s);
	}
}

static uint16_t send_built(struct role *r, const enum plane_id plane, uint16_t n)
{
	struct generator *g = r->generator;
	uint16_t sent;

	if (g->frames.stamped)
		stamp(r, n);
	sent = link_tx(plane, r->to, r->held, n);
	trace_tx(r->to, n, sent);
	if (rt_unlikely(sent < n))
		trace_refused(r->to, n - sent);
	g->built -= sent;
	g->number += sent;
	if (rt_unlikely(g->built && sent))
		memmove(r->held, r->held + sent, g->built * sizeof(r->held[0]));
	return sent;
}

/* Receives returned frames. */
static void receive(struct role *r, const enum plane_id plane, struct counters *c)
{
	struct generator *g = r->generator;
	struct rte_mbuf *m[BURST_MAX];
	uint16_t n = link_rx(plane, r->from, m, r->burst);
	uint64_t now = rt_tsc();
	struct stamp s;

	trace_rx(r->from, r->burst, n);
	if (!n) {
		count_add(c->rx_empty, 1);
		return;
	}
	for (uint16_t i = 0; i < n; i++) {
		uint64_t before = g->replies.unique;

		if (!stamp_read(rte_pktmbuf_mtod(m[i], uint8_t *), m[i]->data_len, &s) ||
			s.stream != g->stream || s.number >= g->number)
			continue;
		sequence_add(&g->replies, s.number);
		if (g->replies.unique == before)
			continue;
		histogram_add(&g->rtt, now - s.tsc, 1);
		g->flying -= g->flying > 0 && s.number >= g->given_up;
	}
	link_free(plane, m, n);
	count_add(c->rx_nonzero, 1);
	count_add(c->rx_packets, n);
}

/* The packets of n that --outstanding allows to send now. */
static uint64_t window(struct role *r, uint64_t n, uint64_t now)
{
	struct generator *g = r->generator;
	uint64_t most = r->config->outstanding;

	if (!most)
		return n;
	if (g->flying >= most && now - g->last_sent > g->timeout) {
		g->timeouts += g->flying;
		g->flying = 0;
		g->given_up = g->number; /* their late replies must not reduce flying again */
	}
	most -= g->flying < most ? g->flying : most;
	return n < most ? n : most;
}

/* n packets were due, for ready of them there were buffers, and the first ones were sent. The
 * others are not sent later: their time is over. */
static void settle_times(struct role *r, const enum plane_id plane, uint16_t n, uint16_t ready,
	uint16_t sent, uint64_t now)
{
	struct generator *g = r->generator;

	for (uint16_t i = 0; i < n; i++) {
		if (i < sent)
			histogram_add(&g->late, now - rate_next(&g->sending), 1);
		rate_step(&g->sending);
	}
	if (rt_likely(sent == n))
		return;
	link_free(plane, r->held, g->built);
	g->built = 0;
	g->next_frame = (g->next_frame + n - ready) % g->frames.count;
	g->left -= n - sent;
}

static void settle(struct role *r, struct counters *c, uint16_t n, uint16_t ready, uint16_t sent)
{
	struct generator *g = r->generator;

	g->left -= sent;
	g->flying += sent;
	count_add(c->tx_packets, sent);
	/* At an unlimited rate no packet is due, so none is refused. */
	if (g->rate == RATE_UNLIMITED)
		return;
	g->settled += n;
	count_add(c->tx_nombuf, n - ready);
	count_add(c->tx_refused, ready - sent);
}

static inline __attribute__((always_inline)) void generate_burst(
	struct role *r, const enum plane_id plane)
{
	struct counters *c = role_counters(r);
	struct generator *g = r->generator;
	uint64_t now, left, n;
	uint16_t ready, sent;

	if (r->from)
		receive(r, plane, c);
	if (g->done) {
		link_kick(plane, r->to);
		return;
	}
	now = rt_tsc();
	left = backlog(g, now);
	if (rt_unlikely(now >= g->end) && !next_stage(r, c, now, left))
		return;
	if (g->rate != RATE_UNLIMITED && left > g->max_backlog)
		g->max_backlog = left;
	n = window(r, left < g->left ? left : g->left, now);
	if (!n) {
		link_kick(plane, r->to);
		return;
	}
	n = n < r->burst ? n : r->burst;
	ready = build(r, plane, (uint16_t)n);
	sent = ready ? send_built(r, plane, ready) : 0;
	if (sent)
		g->sent[g->stage].last = g->last_sent = now;
	if (g->times.ticks)
		settle_times(r, plane, (uint16_t)n, ready, sent, now);
	settle(r, c, (uint16_t)n, ready, sent);
	count_errors(c, plane, r->to);
	if (!g->left)
		rt_store(&g->done, true);
}

static void generate_dpdk(struct role *r)
{
	generate_burst(r, PLANE_DPDK);
}

static void generate_packet(struct role *r)
{
	generate_burst(r, PLANE_PACKET);
}

static void generate_mmap(struct role *r)
{
	generate_burst(r, PLANE_MMAP);
}

/* Times of the frames, in ticks. A round begins a mean gap after the last one of the round before.
 */
static void set_times(struct generator *g)
{
	uint64_t *due = g->frames.due_ns;
	unsigned count = g->frames.count;

	for (unsigned i = 0; i < count; i++)
		due[i] = run_ticks(due[i]);
	g->times = (struct rate_times){.ticks = due,
		.count = count,
		.round = count > 1 ? due[count - 1] + due[count - 1] / (count - 1) : run.hz};
	if (g->left == UINT64_MAX)
		g->left = count;
}

int generate_init(struct role *r, unsigned number)
{
	struct generator *g = calloc(1, sizeof(*g));
	int ret;

	if (!g)
		return message_fail(-ENOMEM, "role generate: not enough memory");
	r->generator = g;
	g->stream = (uint8_t)(r->config->stream + number);
	g->first = !number;
	g->timeout = run_ticks(r->config->timeout_ns);
	g->left = r->config->count ? r->config->count : UINT64_MAX;
	r->poll = r->plane == PLANE_DPDK     ? generate_dpdk
		  : r->plane == PLANE_PACKET ? generate_packet
					     : generate_mmap;
	ret = frames_make(&g->frames, r->config, r->to->mac);
	if (!ret && r->config->timing)
		set_times(g);
	return ret;
}
