/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "common/clock.h"
#include "common/now.h"
#include "eal.h"
#include "signals.h"
#include "base/util.h"

#define TICK_NS 2000000 /* interval of the main thread's checks for the end of the run */
/* All packets have arrived if nothing was received for QUIET_NS although every receiving role
 * polled QUIET_POLLS times. A role that polls less may have lost its CPU, or may wait for a port:
 * the run waits up to QUIET_MAX for it. */
#define QUIET_NS    100000000
#define QUIET_POLLS 100
#define QUIET_MAX   (5 * NS_PER_S)

const char *const end_names[] = {"signal", "duration", "count", "stages", "error"};

static void poll_all(struct worker *w)
{
	struct role **end = w->roles + w->count;

	while (!rt_load(&run.stop))
		for (struct role **r = w->roles; r < end; r++)
			(*r)->poll(*r);
	for (unsigned i = 0; i < w->count; i++)
		role_stop(w->roles[i]);
}

static int enter(struct worker *w)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		return -EINVAL;
	return w->plane == PLANE_DPDK ? eal_enter_thread() : 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t before;
	char name[16];

	snprintf(name, sizeof(name), "fwd-%d", w->cpu);
	pthread_setname_np(pthread_self(), name);
	w->error = enter(w);
	/* Pairs with the acquire in start_workers(). */
	rt_store_release(&w->ready, true);
	if (w->error)
		return NULL;
	/* Pairs with the release in app_run(): the generators' clocks are set. */
	while (!rt_load_acquire(&w->running) && !rt_load(&run.stop))
		rt_pause();
	before = rt_now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!rt_load(&run.stop))
		poll_all(w);
	w->cpu_seconds = (double)(rt_now_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
	if (w->plane == PLANE_DPDK)
		eal_leave_thread();
	return NULL;
}

static void join(struct app *a, unsigned started)
{
	rt_store(&run.stop, true);
	for (unsigned i = 0; i < started; i++)
		pthread_join(a->workers[i].thread, NULL);
}

static int start_workers(struct app *a)
{
	unsigned started = 0;
	int error = 0;

	for (; started < a->worker_count && !error; started++)
		if (pthread_create(&a->workers[started].thread, NULL, work, &a->workers[started])) {
			error = -EAGAIN;
			break;
		}
	for (unsigned i = 0; i < started; i++) {
		while (!rt_load_acquire(&a->workers[i].ready))
			sched_yield();
		error = error ? error : a->workers[i].error;
	}
	if (!error)
		return 0;
	join(a, started);
	return message_fail(error, "cannot start the threads: %s", strerror(-error));
}

/* Waits for the links of the generators' ports. */
static int wait_for_links(struct app *a)
{
	int ret = 0;

	if (a->config->plane != PLANE_DPDK)
		return 0;
	for (unsigned i = 0; i < a->role_count && !ret; i++)
		if (a->roles[i]->kind == ROLE_GENERATE)
			ret = ports_wait(a->roles[i]->to, a->config->link_ns);
	return ret;
}

/* Computes the increments. Counters of a running role are not read at one instant: tx_packets, a
 * sum of two, may appear to decrease. Keep the greater value then. */
static void growth(struct counters *now, const struct counters *before, struct counters *out)
{
	for (unsigned i = 0; i < COUNTERS; i++) {
		uint64_t *n = &((uint64_t *)now)[i], b = ((const uint64_t *)before)[i];

		if ((int64_t)(*n - b) < 0)
			*n = b;
		((uint64_t *)out)[i] = *n - b;
	}
}

static void record_second(struct app *a, struct counters *before, double at, double *last)
{
	/* Not by realloc(), as counters are aligned more than it does. */
	struct second *more = aligned_alloc(
		_Alignof(struct second), (a->second_count + a->role_count) * sizeof(*a->seconds));

	if (!more)
		return;
	if (a->second_count)
		memcpy(more, a->seconds, a->second_count * sizeof(*more));
	free(a->seconds);
	a->seconds = more;
	for (unsigned i = 0; i < a->role_count; i++) {
		struct second *s = &a->seconds[a->second_count++];
		struct counters now;

		role_total(a->roles[i], &now);
		*s = (struct second){.at = at, .seconds = at - *last, .role = i};
		growth(&now, &before[i], &s->counters);
		before[i] = now;
		report_second(a, s);
	}
	*last = at;
}

/* Packets received by all roles, and the time of the last change. */
struct progress {
	uint64_t packets, changed; /* changed: ns */
	uint64_t polls[INSTANCES_MAX];
};

static bool generators_are_done(const struct app *a)
{
	for (unsigned i = 0; i < a->role_count; i++)
		if (a->roles[i]->generator && !rt_load(&a->roles[i]->generator->done))
			return false;
	return true;
}

/* The time without packets that ends the run. It waits up to --timeout for missing replies. */
static uint64_t quiet_ns(const struct app *a)
{
	for (unsigned i = 0; i < a->role_count; i++) {
		const struct generator *g = a->roles[i]->generator;

		if (g && a->config->rtt && rt_load(&g->replies.unique) < rt_load(&g->number))
			return a->config->timeout_ns;
	}
	return QUIET_NS;
}

/* Whether no more packets are expected. */
static bool quiet(struct app *a, struct progress *p, uint64_t now, bool over)
{
	uint64_t polls[INSTANCES_MAX], packets = 0;
	bool polled = true;

	for (unsigned i = 0; i < a->role_count; i++) {
		struct counters c;

		role_total(a->roles[i], &c);
		packets += c.rx_packets;
		polls[i] = rx_bursts(&c);
		polled = polled && (!a->roles[i]->from || polls[i] - p->polls[i] >= QUIET_POLLS);
	}
	if (!over || packets != p->packets) {
		memcpy(p->polls, polls, sizeof(p->polls));
		p->packets = packets;
		p->changed = now;
		return false;
	}
	return now - p->changed >= (polled ? quiet_ns(a) : QUIET_MAX);
}

static bool ended(struct app *a, struct progress *p, uint64_t now, uint64_t start)
{
	const struct fwd_config *c = a->config;
	bool still;

	if (c->duration_ns && now - start >= c->duration_ns) {
		a->end = END_DURATION;
		return true;
	}
	still = quiet(a, p, now, generators_are_done(a));
	if (config_has(c, ROLE_GENERATE)) {
		a->end = c->count ? END_COUNT : END_STAGES;
		return still;
	}
	a->end = END_COUNT;
	return c->count && p->packets >= c->count;
}

/* Prints --interval until the run ends, then joins the threads. */
static void watch(struct app *a)
{
	static struct counters before[INSTANCES_MAX];
	static struct progress progress;
	uint64_t start = rt_now_ns(CLOCK_MONOTONIC), now = start;
	uint64_t step = a->config->stats_ns, next = start + step;
	double last = 0;

	memset(before, 0, sizeof(before));
	quiet(a, &progress, start, false);
	for (;;) {
		if (signals_wait(TICK_NS)) {
			a->end = END_SIGNAL;
			break;
		}
		now = rt_now_ns(CLOCK_MONOTONIC);
		if (step && now >= next) {
			record_second(a, before, (double)(now - start) / 1e9, &last);
			/* After a stall, the next interval has the full length. */
			next += (now - next) / step * step + step;
		}
		if (ended(a, &progress, now, start))
			break;
	}
	now = rt_now_ns(CLOCK_MONOTONIC);
	a->elapsed = (double)(now - start) / 1e9;
	join(a, a->worker_count);
	/* A last interval after the last packet: the intervals add up to the total. */
	if (step && a->elapsed > last)
		record_second(a, before, a->elapsed, &last);
}

int app_run(struct app *a)
{
	int ret = wait_for_links(a);

	for (unsigned i = 0; i < a->role_count && !ret; i++)
		if (a->config->tx_first && a->roles[i]->kind != ROLE_GENERATE &&
			a->roles[i]->kind != ROLE_SINK)
			ret = forward_prime(a->roles[i]);
	if (!ret)
		ret = start_workers(a);
	if (ret)
		return ret;
	a->start_ns = rt_now_ns(CLOCK_REALTIME);
	run.start_tsc = rt_tsc() + run.hz / 1000; /* time for all threads to poll */
	for (unsigned i = 0; i < a->role_count; i++)
		if (a->roles[i]->generator)
			generate_start(a->roles[i]);
	for (unsigned i = 0; i < a->worker_count; i++)
		rt_store_release(&a->workers[i].running, true);
	fprintf(stderr, "%s: running\n", message_program);
	watch(a);
	return 0;
}
