/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "base/util.h"
#include "cli/probe_path.h"
#include "watch.h"

static void watched_free(struct watched *a)
{
	if (a->mon)
		ringtap_monitor_close(a->mon);
	if (a->mark != a->now)
		ringtap_snapshot_free(a->mark);
	ringtap_snapshot_free(a->now);
	free(a->from);
	free(a->to);
	free(a->name);
	free(a->dir);
	free(a);
}

void watch_init(struct watch *w)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static bool wanted(const struct watch *w, const char *name)
{
	for (size_t i = 0; i < w->name_count; i++)
		if (!strcmp(w->names[i], name))
			return true;
	return !w->name_count;
}

static struct watched *find(const struct watch *w, const char *dir)
{
	for (size_t i = 0; i < w->count; i++)
		if (!strcmp(w->list[i]->dir, dir))
			return w->list[i];
	return NULL;
}

static struct watched *add(struct watch *w, const char *name, const char *dir)
{
	struct watched *a = calloc(1, sizeof(*a));
	struct watched **list;

	if (!a)
		return NULL;
	a->name = strdup(name);
	a->dir = strdup(dir);
	a->error = -EINPROGRESS;
	snprintf(a->why, sizeof(a->why), "not attached yet");
	pthread_mutex_lock(&w->lock);
	list = realloc(w->list, (w->count + 1) * sizeof(*list));
	if (list)
		w->list = list;
	if (list && a->name && a->dir)
		w->list[w->count++] = a;
	pthread_mutex_unlock(&w->lock);
	if (list && a->name && a->dir)
		return a;
	watched_free(a);
	return NULL;
}

/* One that does not answer costs seconds each time, one without the probe will not get it. */
static uint64_t patience_ns(int error)
{
	if (error == -ETIMEDOUT)
		return 10 * NS_PER_S;
	return error == -EPROTONOSUPPORT ? 10 * NS_PER_S : NS_PER_S;
}

static void attach(struct watch *w, struct watched *a)
{
	struct ringtap_app_info info = {.size = sizeof(info)};
	struct ringtap_monitor *mon = NULL;
	char why[sizeof(a->why)] = "";
	struct ringtap_monitor_options opts = {.size = sizeof(opts)};
	int ret;

	if (a->mon || now_ns(CLOCK_MONOTONIC) < a->retry_ns)
		return;
	pthread_mutex_lock(&w->lock);
	opts.collectors = w->collectors;
	opts.latency_every = w->latency_every;
	pthread_mutex_unlock(&w->lock);
	ret = ringtap_monitor_open(&mon, a->dir, &opts, why, sizeof(why));
	if (!ret)
		ringtap_monitor_app(mon, &info);
	pthread_mutex_lock(&w->lock);
	a->mon = mon;
	a->asked = opts.collectors;
	a->asked_every = opts.latency_every;
	a->info = info;
	a->error = ret;
	memcpy(a->why, why, sizeof(why));
	a->retry_ns = now_ns(CLOCK_MONOTONIC) + patience_ns(ret);
	pthread_mutex_unlock(&w->lock);
}

static bool has_ended(struct watch *w, size_t i)
{
	bool ended;

	pthread_mutex_lock(&w->lock);
	ended = w->list[i]->ended;
	pthread_mutex_unlock(&w->lock);
	return ended;
}

static void forget(struct watch *w, size_t i)
{
	struct watched *a = w->list[i];

	pthread_mutex_lock(&w->lock);
	memmove(&w->list[i], &w->list[i + 1], (w->count - i - 1) * sizeof(w->list[0]));
	w->count--;
	pthread_mutex_unlock(&w->lock);
	watched_free(a);
}

/* Switches where others than wanted are on. */
static void apply(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct watched *a = w->list[i];
		char why[sizeof(a->why)] = "";
		int ret;

		pthread_mutex_lock(&w->lock);
		a->switching = a->mon && !a->ended &&
			       (a->asked != w->collectors || a->asked_every != w->latency_every);
		a->asked = w->collectors;
		a->asked_every = w->latency_every;
		pthread_mutex_unlock(&w->lock);
		if (!a->switching)
			continue;
		ret = ringtap_monitor_switch(a->mon, a->asked, a->asked_every, why, sizeof(why));
		pthread_mutex_lock(&w->lock);
		a->error = ret;
		memcpy(a->why, why, sizeof(why));
		a->switching = false;
		pthread_mutex_unlock(&w->lock);
	}
}

int watch_refresh(struct watch *w)
{
	struct ringtap_apps *apps;
	int ret = ringtap_apps_find(&apps);

	w->error = ret;
	if (ret)
		return ret;
	for (size_t i = w->count; i-- > 0;) {
		w->list[i]->found = false;
		/* Its name may be another application's by now. */
		if (has_ended(w, i))
			forget(w, i);
	}
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		const char *name = ringtap_apps_name(apps, i), *dir = ringtap_apps_dir(apps, i);
		struct watched *a = find(w, dir);

		if (!wanted(w, name))
			continue;
		if (!a)
			a = add(w, name, dir);
		if (!a)
			continue;
		a->found = true;
		attach(w, a);
	}
	for (size_t i = w->count; i-- > 0;)
		if (!w->list[i]->found && !w->list[i]->mon)
			forget(w, i);
	ringtap_apps_free(apps);
	apply(w);
	return 0;
}

static void *refresh_thread(void *arg)
{
	struct watch *w = arg;
	struct timespec until;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		w->hurry = false;
		pthread_mutex_unlock(&w->lock);
		apply(w); /* before others are waited for */
		watch_refresh(w);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		pthread_mutex_lock(&w->lock);
		if (!w->stop && !w->hurry)
			pthread_cond_timedwait(&w->changed, &w->lock, &until);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int watch_start(struct watch *w)
{
	sigset_t all, old;
	int ret;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&w->thread, NULL, refresh_thread, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->started = !ret;
	return ret;
}

void watch_free(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (w->started)
		pthread_join(w->thread, NULL);
	for (size_t i = 0; i < w->count; i++)
		watched_free(w->list[i]);
	free(w->list);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}

/* Packets given to the TX queues of a port so far. */
static uint64_t handed(const struct ringtap_snapshot *f, uint32_t port)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(f, i);

		if (q->port == port && q->direction == RINGTAP_TX)
			sum += q->packets;
	}
	return sum;
}

/* The probe counts a burst before the driver sees it. A thread that loses its CPU in between keeps
 * it for as long as it likes: one burst a queue. */
static uint64_t in_hand(const struct ringtap_snapshot *f, uint32_t port)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(f, i);
		unsigned largest = RINGTAP_BURSTS; /* larger ones are not told apart */

		if (q->port != port || q->direction != RINGTAP_TX)
			continue;
		while (!q->big_polls && largest && !q->burst[largest])
			largest--;
		sum += largest;
	}
	return sum;
}

static int readings_grow(struct watched *a, uint32_t count)
{
	struct reading *from, *to;

	if (count <= a->reading_count)
		return 0;
	from = realloc(a->from, count * sizeof(*from));
	a->from = from ? from : a->from;
	to = realloc(a->to, count * sizeof(*to));
	a->to = to ? to : a->to;
	if (!from || !to)
		return -ENOMEM;
	memset(a->from + a->reading_count, 0, (count - a->reading_count) * sizeof(*from));
	memset(a->to + a->reading_count, 0, (count - a->reading_count) * sizeof(*to));
	a->reading_count = count;
	return 0;
}

static void readings_update(struct watched *a, const struct ringtap_snapshot *last)
{
	if (!last || readings_grow(a, a->now->port_count))
		return;
	for (uint32_t i = 0; i < a->now->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(a->now, i);

		/* What was read before the last snapshot cannot be placed between two. */
		if (p->read_ns == a->to[i].ns || p->read_ns < last->taken_ns)
			continue;
		a->to[i] = (struct reading){.ns = p->read_ns,
			.least = handed(last, i),
			.most = handed(a->now, i),
			.in_hand = in_hand(a->now, i),
			.port = *p};
		if (!a->from[i].ns)
			a->from[i] = a->to[i];
	}
}

static void step(struct watched *a)
{
	struct ringtap_snapshot *last = a->now, *f = NULL;
	int ret;

	if (!a->mon || a->ended || a->switching)
		return;
	ret = ringtap_monitor_read(a->mon, &f);
	a->ended = ret == -EPIPE || ret == -EBADMSG;
	if (ret == -EBADMSG)
		snprintf(a->why, sizeof(a->why), "its statistics are broken");
	a->error = ret;
	if (!f)
		return;
	a->now = f;
	if (a->tsc_hz <= 0)
		a->tsc_hz = f->tsc_hz ? (double)f->tsc_hz : 1e9;
	readings_update(a, last);
	if (last != a->mark)
		ringtap_snapshot_free(last);
}

void watch_step(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++)
		step(w->list[i]);
}

void watch_mark(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct watched *a = w->list[i];

		if (a->mark != a->now)
			ringtap_snapshot_free(a->mark);
		a->mark = a->now;
		if (a->reading_count)
			memcpy(a->from, a->to, a->reading_count * sizeof(*a->from));
	}
}

static bool settled(const struct watched *a)
{
	const struct ringtap_snapshot *f = a->now;

	if (!f || a->ended)
		return true;
	for (uint32_t i = 0; i < f->port_count; i++)
		if (!ringtap_snapshot_port(f, i)->gone && (i >= a->reading_count || !a->to[i].ns))
			return false;
	for (uint32_t i = 0; i < f->thread_count; i++)
		/* alive is set by the same visit that reads. */
		if (ringtap_snapshot_thread(f, i)->tid && !ringtap_snapshot_thread(f, i)->read_ns)
			return false;
	return f->thread_count > 0;
}

void watch_settle(struct watch *w)
{
	/* An application that does not poll at all never shows a thread. */
	uint64_t until = now_ns(CLOCK_MONOTONIC) + NS_PER_S;
	bool done = false;

	while (!done && now_ns(CLOCK_MONOTONIC) < until && !stop_wait(WATCH_STEP_NS)) {
		done = true;
		watch_step(w);
		for (size_t i = 0; i < w->count; i++)
			done = settled(w->list[i]) && done;
	}
}

void watch_switch(struct watch *w, unsigned collectors, unsigned latency_every)
{
	w->collectors = collectors;
	w->latency_every = latency_every;
	w->hurry = true;
	if (w->started)
		pthread_cond_broadcast(&w->changed);
	else
		apply(w);
}

size_t watch_attached(const struct watch *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->count; i++)
		n += w->list[i]->now != NULL && !w->list[i]->ended;
	return n;
}

void watch_explain(const struct watch *w, const char *command)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct watched *a = w->list[i];

		if (a->error == -EPROTONOSUPPORT)
			say("%s: %s: without the probe; to load it, restart it with -d %s", command,
				a->name, probe_path());
		else if (a->error)
			say("%s: %s: %s", command, a->name, a->why);
	}
	for (size_t i = 0; i < w->name_count && !w->count; i++)
		say("%s: %s: no such application runs; see 'ringtap list'", command, w->names[i]);
	if (!w->count && !w->name_count)
		say("%s: no running DPDK application found; run ringtap as its user or as root",
			command);
}
