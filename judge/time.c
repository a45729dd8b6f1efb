/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules about the polling threads' time: what takes it, and how they use it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "limits.h"
#include "base/util.h"
#include "rules.h"

#define ALL  RINGTAP_NO_INDEX
#define BINS 48 /* buckets of the gaps' histograms */

static void where_thread(struct verdict *v, const struct ringtap_thread_stats *t)
{
	thread_name(v->where, t);
}

/* ---- pre-empted */

struct gaps {
	double typical_ns; /* length of an empty poll; NAN */
	double long_ns;    /* above that a gap is long */
	double lost;       /* share of the time in long gaps without work, but not asleep */
	uint64_t count;    /* number of gaps */
};

/* A bin holds gaps of 2^k … 2^(k + 1) cycles. */
static double bin_cycles(unsigned k)
{
	return 1.5 * (double)(1ull << k);
}

/* The share of the time in which the thread was not runnable; NAN: unknown. */
static double asleep(const struct thread_rates *x)
{
	return fmax(0, 1 - x->cpu - x->wait) + 0 * (x->cpu + x->wait);
}

static void find_gaps(
	const struct examination *e, uint32_t thread, const struct thread_rates *x, struct gaps *g)
{
	static const struct ringtap_thread_stats zero;
	const struct ringtap_thread_stats *b = ringtap_snapshot_thread(e->span.to, thread);
	const struct ringtap_thread_stats *a =
		thread < e->span.from->thread_count ? ringtap_snapshot_thread(e->span.from, thread)
						    : &zero;
	double ns = 1e9 / e->span.tsc_hz;
	uint64_t bin[BINS], total = 0, sum = 0;
	double lost = 0;

	*g = (struct gaps){.typical_ns = NAN, .long_ns = LIMIT_GAP_NS};
	for (unsigned k = 0; k < BINS; k++)
		total += bin[k] = grown(b->gaps_idle[k], a->gaps_idle[k]);
	for (unsigned k = 0; k < BINS && total; k++) {
		sum += bin[k];
		if (2 * sum >= total) {
			g->typical_ns = bin_cycles(k) * ns;
			break;
		}
	}
	/* Threads that sleep voluntarily have polling gaps; skip them. */
	if (!total || !(asleep(x) <= LIMIT_NAPS))
		return;
	g->long_ns = fmax(LIMIT_GAP_NS, LIMIT_GAP_TIMES * g->typical_ns);
	for (unsigned k = 0; k < BINS; k++) {
		if (bin_cycles(k) * ns < g->long_ns)
			continue;
		g->count += bin[k];
		lost += (double)bin[k] * bin_cycles(k) * ns;
	}
	g->lost = fmax(0, fmin(1, lost / (e->span.seconds * 1e9)) - asleep(x));
}

/* The NICs' loss at the ports that the thread polls, packets. */
static double missed_meanwhile(const struct examination *e, uint32_t thread)
{
	double sum = 0;

	for (uint32_t port = 0; port < e->span.to->port_count; port++) {
		struct driver_counts d;
		struct tally t;

		tally_sum(&t, &e->span, port, thread, RINGTAP_RX);
		driver_counts(&e->span, port, &d);
		if (t.calls && !isnan(d.imissed))
			sum += d.imissed;
	}
	return sum;
}

/* The longest gap of the interval, which comes first; NULL: none is known. */
static const struct ringtap_gap *worst_gap(
	const struct examination *e, const struct ringtap_thread_stats *t)
{
	for (uint32_t i = 0; i < t->gap_count; i++)
		if (rates_has_gap(&e->span, ringtap_thread_gap(t, i)))
			return ringtap_thread_gap(t, i);
	return NULL;
}

/* "392 ms at 07:09:01.254, with packets in hand" */
#define GAP_LEN 80
static const char *gap_text(char buf[GAP_LEN], const struct ringtap_gap *g)
{
	time_t s = (time_t)(g->start_ns / NS_PER_S);
	char clock[16], longest[FORMAT_LEN];
	struct tm tm;

	localtime_r(&s, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(buf, GAP_LEN, "%s at %s.%03u, %s", format_ns(longest, (double)g->ns), clock,
		(unsigned)(g->start_ns / (NS_PER_S / 1000) % 1000),
		g->packets ? "with packets in hand" : "with no work to do");
	return buf;
}

static void worst_gap_evidence(
	struct verdict *v, const struct examination *e, const struct ringtap_thread_stats *t)
{
	const struct ringtap_gap *g = worst_gap(e, t);
	char text[GAP_LEN];

	if (g)
		verdict_add_evidence(v, "longest time between two polls: %s", gap_text(text, g));
}

bool stall_evidence(const struct examination *e, struct verdict *v)
{
	const struct ringtap_gap *worst = NULL, *g;
	char name[THREAD_NAME_LEN], text[GAP_LEN];
	struct thread_rates x;

	for (uint32_t i = 0; i < e->span.to->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(e->span.to, i);

		g = thread_works(e, i) ? worst_gap(e, t) : NULL;
		if (!g || g->ns < LIMIT_STALL_NS || (worst && g->ns <= worst->ns))
			continue;
		worst = g;
		thread_name(name, t);
		rates_thread(&e->span, i, &x);
	}
	if (!worst)
		return false;
	verdict_add_evidence(v, "%s did not poll for %s", name, gap_text(text, worst));
	return worst->packets || !(asleep(&x) > LIMIT_ASLEEP);
}

static const char preempted_advice[] =
	"Give the thread a CPU of its own: other programs and kernel threads off it (taskset, "
	"cpusets, isolcpus, nohz_full), interrupts elsewhere, no two lcores on one CPU; in a "
	"virtual machine, pin its CPUs on the host";

static void judge_thread(const struct examination *e, uint32_t i, struct diagnosis *d)
{
	const struct ringtap_thread_stats *t = ringtap_snapshot_thread(e->span.to, i);
	char count[FORMAT_LEN], over[FORMAT_LEN], typical[FORMAT_LEN];
	struct thread_rates x;
	struct verdict *v;
	struct gaps g;
	bool waits, fault;

	rates_thread(&e->span, i, &x);
	find_gaps(e, i, &x, &g);
	waits = x.wait >= LIMIT_WAIT;
	if (asleep(&x) > LIMIT_ASLEEP || (!waits && g.lost < LIMIT_GAP_SHARE))
		return;
	/* Time without a CPU is certainly lost; gaps may have other reasons. */
	fault = waits || missed_meanwhile(e, i) >= LIMIT_LOST_PACKETS;
	v = verdict_add(d, VERDICT_PREEMPTED, fault ? GRADE_FAULT : GRADE_NOTE,
		3 + fmax(isnan(x.wait) ? 0 : x.wait, g.lost), preempted_advice);
	if (!v)
		return;
	where_thread(v, t);
	if (!isnan(x.wait))
		verdict_add_evidence(v,
			"ready to run but without a CPU %.1f %% of the time, on it %.1f %% (the "
			"kernel's scheduler), last CPU %u",
			100 * x.wait, 100 * x.cpu, t->cpu);
	if (x.preempted > 0)
		verdict_add_evidence(v, "taken off its CPU %.1f times a second", x.preempted);
	if (g.count)
		verdict_add_evidence(v,
			"%s times it did not poll for over %s though there was no work, where an "
			"empty poll takes %s: %.1f %% of the time",
			format_count(count, g.count), format_ns(over, g.long_ns),
			format_ns(typical, g.typical_ns), 100 * g.lost);
	if (!waits)
		verdict_add_evidence(v,
			"%sinterrupts, a hypervisor or the firmware took the time, or the "
			"application has other work to do between polls",
			x.cpu >= LIMIT_RUNNING ? "the kernel saw it running: " : "");
	worst_gap_evidence(v, e, t);
	if (missed_meanwhile(e, i) >= LIMIT_LOST_PACKETS)
		verdict_add_evidence(v, "the NIC dropped %s packets meanwhile (missed)",
			format_count(count, (uint64_t)missed_meanwhile(e, i)));
}

bool thread_works(const struct examination *e, uint32_t thread)
{
	struct tally t;

	tally_sum(&t, &e->span, ALL, thread, 0);
	return ringtap_snapshot_thread(e->span.to, thread)->alive && t.calls &&
	       span_has_thread(&e->span, thread);
}

void rule_preempted(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->span.to->thread_count; i++)
		if (thread_works(e, i))
			judge_thread(e, i, d);
}

/* ---- tiny bursts */

static const char small_advice[] =
	"Ask for 32 packets or more a poll (testpmd: --burst=32) and hand over whole bursts. If "
	"the driver gives only few at a time, poll less often, or several queues by one thread";

void rule_small_bursts(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->span.to->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(e->span.to, i);
		char polls[FORMAT_LEN];
		struct thread_rates x;
		struct tally y, fullest;
		struct verdict *v;

		if (!thread_works(e, i))
			continue;
		rates_thread(&e->span, i, &x);
		tally_sum(&y, &e->span, ALL, i, RINGTAP_RX);
		tally_fullest(&fullest, &e->span, ALL, i);
		if (!(x.busy >= LIMIT_BUSY || tally_full(&fullest) >= LIMIT_FULL) ||
			!(tally_mean_busy(&y) < LIMIT_SMALL))
			continue;
		v = verdict_add(d, VERDICT_SMALL_BURSTS, GRADE_FAULT, 2 + 1 / tally_mean_busy(&y),
			small_advice);
		if (!v)
			return;
		where_thread(v, t);
		verdict_add_evidence(v, "%.2f packets in a poll that brings any, %s polls/s",
			tally_mean_busy(&y), format_si(polls, x.polls));
		verdict_add_evidence(v, "it works %.1f %% of its time, %.0f cycles a packet",
			100 * x.busy, x.cycles_per_packet);
		if (y.max_burst < LIMIT_SMALL)
			verdict_add_evidence(
				v, "it requests no more than %u at a time", y.max_burst);
		else
			verdict_add_evidence(v,
				"it requests up to %u at a time: the driver has no more",
				y.max_burst);
	}
}

/* ---- uneven queues */

#define QUEUES_MAX 1024

struct shares {
	uint64_t packets[QUEUES_MAX], total, most;
	uint32_t thread[QUEUES_MAX];
	bool polled[QUEUES_MAX];
	unsigned queues, hot;
};

static void find_shares(const struct examination *e, uint32_t port, struct shares *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < e->span.to->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(e->span.to, i);
		struct tally t = {0};

		if (q->port != port || q->direction != RINGTAP_RX || q->queue >= QUEUES_MAX)
			continue;
		tally_add(&t, &e->span, i);
		if (!t.calls)
			continue;
		s->queues += !s->polled[q->queue];
		s->polled[q->queue] = true;
		s->thread[q->queue] = q->thread;
		s->packets[q->queue] += t.packets;
		s->total += t.packets;
	}
	for (unsigned q = 0; q < QUEUES_MAX; q++) {
		if (s->packets[q] <= s->most)
			continue;
		s->most = s->packets[q];
		s->hot = q;
	}
}

static void share_evidence(struct verdict *v, const struct shares *s)
{
	char line[EVIDENCE_LEN] = "";
	size_t at = 0;

	for (unsigned q = 0; q < QUEUES_MAX && at < sizeof(line) - 24; q++)
		if (s->polled[q])
			at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%u: %.1f %%",
				at ? ", " : "", q, 100 * (double)s->packets[q] / (double)s->total);
	verdict_add_evidence(v, "packets by queue: %s", line);
}

static const char uneven_advice[] =
	"Look at what RSS hashes (rss_hf: addresses alone, or ports too) and at its key and "
	"redirection table; tunnels and few flows leave it nothing to spread by: hash inner "
	"headers, use rte_flow, or distribute in software";

static const char unpolled_advice[] = "Packets that the NIC puts there are never fetched: poll "
				      "all queues, or configure fewer (and a redirection table "
				      "without them)";

static void judge_unpolled(
	const struct examination *e, uint32_t port, const struct shares *s, struct diagnosis *d)
{
	const struct ringtap_port_stats *p = ringtap_snapshot_port(e->span.to, port);
	struct verdict *v;

	if (!s->queues || s->queues >= p->rx_queues || e->app->shared)
		return;
	v = verdict_add(d, VERDICT_UNPOLLED_QUEUES, GRADE_NOTE, 0.5, unpolled_advice);
	if (!v)
		return;
	printable(v->where, RINGTAP_NAME_LEN, p->name);
	verdict_add_evidence(v, "of %u RX queues %u are polled", p->rx_queues, s->queues);
}

void rule_uneven_queues(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->span.to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(e->span.to, i);
		char name[THREAD_NAME_LEN];
		struct thread_rates x;
		struct driver_counts dr;
		struct tally fullest;
		struct shares s;
		struct verdict *v;
		double ratio;
		bool hurts;

		if (!span_has_port(&e->span, i))
			continue;
		find_shares(e, i, &s);
		if (!p->gone)
			judge_unpolled(e, i, &s, d);
		if (p->gone || s.queues < 2 || s.total < LIMIT_UNEVEN_PACKETS)
			continue;
		ratio = (double)s.most * s.queues / (double)s.total;
		if (ratio < LIMIT_UNEVEN)
			continue;
		rates_thread(&e->span, s.thread[s.hot], &x);
		driver_counts(&e->span, i, &dr);
		tally_fullest(&fullest, &e->span, i, s.thread[s.hot]);
		hurts = x.busy >= LIMIT_UNEVEN_BUSY || tally_full(&fullest) >= LIMIT_FULL ||
			dr.imissed > 0;
		v = verdict_add(d, VERDICT_UNEVEN_QUEUES, hurts ? GRADE_FAULT : GRADE_NOTE,
			1 + ratio / 1000, uneven_advice);
		if (!v)
			return;
		printable(v->where, RINGTAP_NAME_LEN, p->name);
		verdict_add_evidence(v, "queue %u has %.1f times its share of %u queues", s.hot,
			ratio, s.queues);
		share_evidence(v, &s);
		verdict_add_evidence(v, "%s, which polls it, works %.1f %% of its time",
			thread_name(name, ringtap_snapshot_thread(e->span.to, s.thread[s.hot])),
			100 * x.busy);
	}
}

/* ---- at its limit */

/* Drivers that create packets on demand, and those that do not count what was lost before them. */
static const char *silence(const char *driver)
{
	if (!strcmp(driver, "net_null"))
		return "creates packets on demand: its polls are always full";
	if (!strcmp(driver, "net_ring") || !strcmp(driver, "net_af_packet") ||
		!strcmp(driver, "net_tap") || !strcmp(driver, "net_memif"))
		return "does not count what is lost before it";
	return NULL;
}

static void silence_evidence(struct verdict *v, const struct examination *e, uint32_t thread)
{
	for (uint32_t port = 0; port < e->span.to->port_count; port++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(e->span.to, port);
		char name[RINGTAP_NAME_LEN], driver[RINGTAP_NAME_LEN];
		struct tally t;

		tally_sum(&t, &e->span, port, thread, RINGTAP_RX);
		if (t.calls && silence(p->driver))
			verdict_add_evidence(v, "%s: the driver %s %s",
				printable(name, sizeof(name), p->name),
				printable(driver, sizeof(driver), p->driver), silence(p->driver));
	}
}

static bool judged(const struct diagnosis *d, enum verdict_id id)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->verdict[i].id == id)
			return true;
	return false;
}

/* Whether the thread of this verdict is pre-empted. */
static bool waits_for_cpu(const struct diagnosis *d, const struct verdict *v)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->verdict[i].id == VERDICT_PREEMPTED && d->verdict[i].grade == GRADE_FAULT &&
			!strcmp(d->verdict[i].where, v->where))
			return true;
	return false;
}

static const char wait_advice[] =
	"Give it a CPU first: its time and its cycles a packet have the time without one in them";
static const char limit_advice[] =
	"More traffic will be lost. Where the source could send more (see its counters), more "
	"queues and threads, or less work a packet";

void rule_saturated(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->span.to->thread_count; i++) {
		char rate[FORMAT_LEN];
		struct thread_rates x;
		struct verdict *v;
		struct tally y;

		if (!thread_works(e, i))
			continue;
		rates_thread(&e->span, i, &x);
		tally_fullest(&y, &e->span, ALL, i);
		if (!(tally_full(&y) >= LIMIT_AT_FULL) || judged(d, VERDICT_TOO_SLOW))
			continue;
		v = verdict_add(d, VERDICT_SATURATED, GRADE_NOTE, x.busy, limit_advice);
		if (!v)
			return;
		where_thread(v, ringtap_snapshot_thread(e->span.to, i));
		if (waits_for_cpu(d, v))
			v->advice = wait_advice;
		verdict_add_evidence(v,
			"it works %.1f %% of its time, and %.0f %% of the polls of a queue bring "
			"as many packets as requested (%u): more are waiting",
			100 * x.busy, 100 * tally_full(&y), y.max_burst);
		verdict_add_evidence(v, "%s packets/s at %.0f cycles each; %s",
			format_si(rate, x.packets), x.cycles_per_packet,
			e->app->secondary ? "its primary process shows the counters of drivers"
					  : "the drivers count no loss on reception");
		silence_evidence(v, e, i);
	}
}
