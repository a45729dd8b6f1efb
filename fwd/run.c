/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "common/clock.h"
#include "eal.h"
#include "signals.h"
#include "cli/util.h"

#define TICK_NS 2000000 /* how often the main thread looks whether the end has come */
#define QUIET_NS                                                                         \
	100000000 /* nothing received for so long after the last was sent: all have come \
		   */

const char *const end_names[] = {"signal", "duration", "count", "stages", "error"};

static void poll_all(struct worker *w)
{
	struct role *only = w->roles[0];

	if (w->count == 1)
		while (!rt_load(&run.stop))
			only->poll(only);
	else
		while (!rt_load(&run.stop))
			for (unsigned i = 0; i < w->count; i++)
				w->roles[i]->poll(w->roles[i]);
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
	char name[16];

	snprintf(name, sizeof(name), "fwd-%d", w->cpu);
	pthread_setname_np(pthread_self(), name);
	w->error = enter(w);
	/* Pairs with the acquire in start_workers(). */
	rt_store_release(&w->ready, true);
	if (w->error)
		return NULL;
	/* Pairs with the release in app_run(): generators' clocks are set by then. */
	while (!rt_load_acquire(&w->running) && !rt_load(&run.stop))
		rt_pause();
	if (!rt_load(&run.stop))
		poll_all(w);
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
	say("threads: %s", strerror(-error));
	return error;
}

/* Waits for the links of those that send first. */
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

static void record_second(struct app *a, struct counters *before, double at, double *last)
{
	struct second *more =
		realloc(a->seconds, (a->second_count + a->role_count) * sizeof(*a->seconds));

	if (!more)
		return;
	a->seconds = more;
	for (unsigned i = 0; i < a->role_count; i++) {
		struct second *s = &a->seconds[a->second_count++];
		struct counters now;

		role_total(a->roles[i], &now);
		*s = (struct second){.at = at, .seconds = at - *last, .role = i};
		for (unsigned k = 0; k < COUNTERS; k++)
			((uint64_t *)&s->counters)[k] =
				((uint64_t *)&now)[k] - ((uint64_t *)&before[i])[k];
		before[i] = now;
		report_second(a, s);
	}
	*last = at;
}

/* Packets that roles other than generators have received, and whether those are done. */
static uint64_t received(struct app *a, bool *generated)
{
	uint64_t sum = 0;

	*generated = true;
	for (unsigned i = 0; i < a->role_count; i++) {
		struct role *r = a->roles[i];
		struct counters c;

		role_total(r, &c);
		sum += c.rx_packets;
		if (r->generator)
			*generated = *generated && rt_load(&r->generator->done);
	}
	return sum;
}

/* Whether nothing more is to be expected. */
static bool ended(struct app *a, uint64_t now, uint64_t start)
{
	static uint64_t last_received, last_change;
	bool generated;
	uint64_t got;

	if (a->config->duration_ns && now - start >= a->config->duration_ns) {
		a->end = END_DURATION;
		return true;
	}
	got = received(a, &generated);
	if (!config_has(a->config, ROLE_GENERATE)) {
		a->end = END_COUNT;
		return a->config->count && got >= a->config->count;
	}
	if (!generated || got != last_received) {
		last_received = got;
		last_change = now;
		return false;
	}
	a->end = a->config->count ? END_COUNT : END_STAGES;
	return now - last_change >= QUIET_NS;
}

static void watch(struct app *a)
{
	static struct counters before[INSTANCES_MAX];
	uint64_t start = now_ns(CLOCK_MONOTONIC), now = start;
	uint64_t step = a->config->stats_s * NS_PER_S, next = start + step;
	double last = 0;

	for (;;) {
		if (signals_wait(TICK_NS)) {
			a->end = END_SIGNAL;
			break;
		}
		now = now_ns(CLOCK_MONOTONIC);
		if (step && now >= next) {
			record_second(a, before, (double)(now - start) / 1e9, &last);
			next += step;
		}
		if (ended(a, now, start))
			break;
	}
	now = now_ns(CLOCK_MONOTONIC);
	a->elapsed = (double)(now - start) / 1e9;
	if (step && now > next - step + step / 10)
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
	a->start_ns = now_ns(CLOCK_REALTIME);
	run.start_tsc = rt_tsc() + run.hz / 1000; /* all threads poll by then */
	for (unsigned i = 0; i < a->role_count; i++)
		if (a->roles[i]->generator)
			generate_start(a->roles[i]);
	for (unsigned i = 0; i < a->worker_count; i++)
		rt_store_release(&a->workers[i].running, true);
	fprintf(stderr, "%s: running\n", say_program);
	watch(a);
	signals_unblock();
	join(a, a->worker_count);
	return 0;
}
