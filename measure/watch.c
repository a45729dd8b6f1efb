/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/threads.h"
#include "base/signals.h"
#include "base/util.h"
#include "target/attach_app.h"
#include "base/nearest.h"
#include "target/which_app.h"
#include "watch.h"

static void watched_free(struct watched *a)
{
	if (a->mon)
		ringtap_monitor_close(a->mon);
	if (a->mark != a->now)
		ringtap_snapshot_free(a->mark);
	ringtap_snapshot_free(a->now);
	free(a->name);
	free(a->dir);
	free(a);
}

/* The name of a primary process means its secondaries, too. */
static bool means(const struct watch *w, size_t n, const struct ringtap_apps *apps, size_t i)
{
	return w->named[n] == (int)i || w->named[n] == (int)ringtap_apps_primary(apps, i);
}

static bool wanted(const struct watch *w, const struct ringtap_apps *apps, size_t i)
{
	for (size_t n = 0; n < w->name_count; n++)
		if (means(w, n, apps, i))
			return true;
	return !w->name_count;
}

/* A word without a port means all of them. */
static void choose_ports(
	const struct watch *w, struct watched *a, const struct ringtap_apps *apps, size_t i)
{
	const char *port;

	a->port_count = 0;
	for (size_t n = 0; n < w->name_count; n++) {
		if (!means(w, n, apps, i))
			continue;
		(void)target_word(apps, w->names[n], &port, NULL);
		if (!port) {
			a->port_count = 0;
			return;
		}
		a->ports[a->port_count++] = port;
	}
}

/* Before wanted(). print: where several applications run the program of a name; -ENOTUNIQ then. */
static int find_named(struct watch *w, const struct ringtap_apps *apps, bool print)
{
	struct target_candidates others;
	struct nearest near;
	int ret = 0;

	for (size_t n = 0; n < w->name_count; n++) {
		const char *port;
		int found = target_word(apps, w->names[n], &port, &others);
		/* This looks at all processes: not under the lock. Only this thread sets it. */
		char *advice = found == -ENOENT && !w->advice[n]
				       ? strdup(target_advice(&near, apps, w->names[n]))
				       : NULL;

		watch_lock(w);
		w->named[n] = found;
		w->advice[n] = advice ? advice : w->advice[n];
		watch_unlock(w);
		if (print && found == -ENOTUNIQ) {
			if (*w->names[n] == ':')
				message_print("%s: %s: there are several applications; name one",
					w->command, w->names[n]);
			else
				print_no_app(w->command, apps, w->names[n], found, &others);
			ret = found;
		}
	}
	return ret;
}

static bool is_named(const struct watch *w, const char *name)
{
	for (size_t n = 0; n < w->name_count; n++)
		if (!strcmp(w->names[n], name))
			return true;
	return false;
}

int watch_name(void *watch, const char *name)
{
	struct watch *w = watch;

	if (is_named(w, name))
		return 0;
	if (w->name_count == WATCH_NAMES)
		return message_fail(-EINVAL,
			"%s: %s: more than %d applications; name fewer, or none for all",
			w->command, name, WATCH_NAMES);
	w->names[w->name_count++] = name;
	return 0;
}

void watch_init(struct watch *w)
{
	pthread_mutexattr_t mutex;

	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&w->lock, &mutex);
	pthread_mutexattr_destroy(&mutex);
	rt_cond_init(&w->changed);
	w->ends = epoll_create1(EPOLL_CLOEXEC);
}

void watch_lock(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
}

void watch_unlock(struct watch *w)
{
	pthread_mutex_unlock(&w->lock);
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
	struct watched **place = NULL;

	if (!a)
		return NULL;
	a->name = strdup(name);
	a->dir = strdup(dir);
	a->error = -EINPROGRESS;
	snprintf(a->why, sizeof(a->why), "not attached yet");
	watch_lock(w);
	if (a->name && a->dir)
		place = rt_array_add(w->list, w->count);
	if (place)
		*place = a;
	watch_unlock(w);
	if (place)
		return a;
	watched_free(a);
	return NULL;
}

#define DELAY_MAX_NS (60 * NS_PER_S)
#define FOREIGN_MS   1000 /* for an answer of another user's application, and for all in a round */

/* Attaching to an application that does not answer takes seconds; one without the probe stays so,
 * and its telemetry serves others, too. Where nobody listens yet, the application starts. */
static uint64_t patience_ns(const struct watched *a)
{
	uint64_t ns = a->error == -ETIMEDOUT || a->error == -EHOSTDOWN ||
				      a->error == -EPROTONOSUPPORT || a->error == -EUNATCH
			      ? 10 * NS_PER_S
			      : NS_PER_S;

	if (a->error == -ENOENT || a->error == -EAGAIN)
		return ns;
	if (ns < 2 * a->delay_ns)
		ns = 2 * a->delay_ns;
	return ns < DELAY_MAX_NS ? ns : DELAY_MAX_NS;
}

/* Whether 'ringtap attach' may have woken the probe since: this costs the application nothing. */
static bool may_be_awake(const struct watched *a)
{
	return a->error == -EPROTONOSUPPORT || a->error == -EUNATCH;
}

static void attach(struct watch *w, struct watched *a)
{
	struct ringtap_app_info info = {.size = sizeof(info)};
	struct ringtap_monitor *mon = NULL;
	char why[sizeof(a->why)] = "";
	struct ringtap_monitor_options opts = {
		.size = sizeof(opts), .timeout_ms = a->foreign ? FOREIGN_MS : 0};
	struct epoll_event end = {.events = EPOLLIN};
	int ret;

	if (a->mon)
		return;
	opts.awake_only = now_ns(CLOCK_MONOTONIC) < a->retry_ns;
	if (opts.awake_only && !may_be_awake(a))
		return;
	watch_lock(w);
	opts.collectors = w->collectors;
	opts.latency_every = w->latency_every;
	watch_unlock(w);
	ringtap_break_fd(stop_fd());
	ret = ringtap_monitor_open(&mon, a->dir, &opts, why, sizeof(why));
	ringtap_break_fd(-1);
	if (ret == -EPROTONOSUPPORT && opts.awake_only)
		return;
	if (!ret)
		ringtap_monitor_app(mon, &info);
	watch_lock(w);
	a->mon = mon;
	a->on = opts.collectors;
	a->on_every = opts.latency_every;
	a->info = info;
	a->error = ret;
	memcpy(a->why, why, sizeof(why));
	a->delay_ns = ret ? patience_ns(a) : 0;
	a->retry_ns = now_ns(CLOCK_MONOTONIC) + a->delay_ns;
	if (mon)
		epoll_ctl(w->ends, EPOLL_CTL_ADD, ringtap_monitor_fd(mon), &end);
	watch_unlock(w);
}

static void forget(struct watch *w, size_t i)
{
	struct watched *a = w->list[i];

	watch_lock(w);
	memmove(&w->list[i], &w->list[i + 1], (w->count - i - 1) * sizeof(w->list[0]));
	w->count--;
	watch_unlock(w);
	watched_free(a);
}

/* Switches collectors where others than the requested ones are on. */
static void apply(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct ringtap_monitor_options opts = {.size = sizeof(opts)};
		struct watched *a = w->list[i];
		char why[sizeof(a->why)] = "";
		int ret;

		watch_lock(w);
		a->switching = a->mon && !a->ended &&
			       (a->on != w->collectors || a->on_every != w->latency_every);
		a->on = w->collectors;
		a->on_every = w->latency_every;
		watch_unlock(w);
		if (!a->switching)
			continue;
		opts.collectors = a->on;
		opts.latency_every = a->on_every;
		ret = ringtap_monitor_switch(a->mon, &opts, why, sizeof(why));
		watch_lock(w);
		a->error = ret;
		memcpy(a->why, why, sizeof(why));
		a->switching = false;
		watch_unlock(w);
	}
}

/* Whether it is a secondary process, or there are some of it. */
static bool has_family(const struct ringtap_apps *apps, size_t i)
{
	for (size_t k = 0; k < ringtap_apps_count(apps); k++)
		if (k != i && ringtap_apps_primary(apps, k) == i)
			return true;
	return ringtap_apps_secondary(apps, i);
}

static int search(const struct watch *w, struct ringtap_apps **apps)
{
	const struct ringtap_apps_options opts = {.size = sizeof(opts),
		.users = w->by_user && !w->name_count ? w->users : NULL,
		.user_count = w->by_user && !w->name_count ? w->user_count : 0};

	return ringtap_apps_search(apps, &opts);
}

/* Applications of root and this user first: any number of others may not answer. */
static void attach_all(struct watch *w)
{
	uint64_t until;

	for (size_t i = 0; i < w->count; i++)
		if (w->list[i]->found && !w->list[i]->foreign)
			attach(w, w->list[i]);
	until = now_ns(CLOCK_MONOTONIC) + FOREIGN_MS * 1000000ull;
	for (size_t i = 0; i < w->count && now_ns(CLOCK_MONOTONIC) < until; i++)
		if (w->list[i]->found && w->list[i]->foreign)
			attach(w, w->list[i]);
}

int watch_refresh(struct watch *w)
{
	struct ringtap_apps *apps;
	int ret = search(w, &apps);
	bool ended;

	if (ret)
		return ret;
	for (size_t i = w->count; i-- > 0;) {
		w->list[i]->found = false;
		watch_lock(w);
		ended = w->list[i]->ended && (!w->keep_ended || w->list[i]->ended_before);
		watch_unlock(w);
		/* Another application may have its name by now. */
		if (ended)
			forget(w, i);
	}
	(void)find_named(w, apps, false);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		const char *name = ringtap_apps_name(apps, i), *dir = ringtap_apps_dir(apps, i);
		struct watched *a = find(w, dir);

		if (!wanted(w, apps, i))
			continue;
		if (!a)
			a = add(w, name, dir);
		if (!a)
			continue;
		a->found = true;
		watch_lock(w);
		choose_ports(w, a, apps, i);
		a->secondary = ringtap_apps_secondary(apps, i);
		a->shared = has_family(apps, i);
		a->foreign = ringtap_apps_foreign(apps, i);
		watch_unlock(w);
	}
	attach_all(w);
	for (size_t i = w->count; i-- > 0;)
		if (!w->list[i]->found && !w->list[i]->mon)
			forget(w, i);
	ringtap_apps_free(apps);
	apply(w);
	return 0;
}

/* Without names, all applications of this user are meant, or all if that is root. */
static bool is_foreign(const struct ringtap_apps *apps, size_t i)
{
	struct stat st;

	return geteuid() &&
	       (address_stat(ringtap_apps_dir(apps, i), &st) || st.st_uid != geteuid());
}

int watch_attach(struct watch *w)
{
	struct ringtap_apps *apps;
	int ret = 0;

	/* A terminal is asked about applications that were named only. */
	if ((!w->attach && !w->name_count) || search(w, &apps))
		return STATUS_OK;
	ret = find_named(w, apps, true);
	for (size_t i = 0; i < ringtap_apps_count(apps) && !ret; i++) {
		if (!wanted(w, apps, i) || (!w->name_count && is_foreign(apps, i)))
			continue;
		ret = attach_missing(w->command, apps, i, w->attach);
		/* The message is printed; the others are watched. */
		if (!w->name_count)
			ret = 0;
	}
	ringtap_apps_free(apps);
	return ret ? STATUS_FAILED : STATUS_OK;
}

int watch_find(struct watch *w)
{
	int ret = watch_attach(w);

	if (ret != STATUS_OK)
		return ret;
	ret = watch_refresh(w);
	if (ret)
		message_print("%s: cannot find applications: %s", w->command, strerror(-ret));
	watch_step(w);
	return ret ? STATUS_FAILED : watch_check_ports(w);
}

static void *refresh_thread(void *arg)
{
	struct watch *w = arg;

	watch_lock(w);
	/* Otherwise watch_find() has just searched. */
	w->hurry |= !w->count;
	while (!w->stop) {
		if (!w->hurry) {
			rt_cond_wait_ns(&w->changed, &w->lock, NS_PER_S);
			if (w->stop)
				break;
		}
		w->hurry = false;
		watch_unlock(w);
		apply(w); /* attaching may take seconds */
		watch_refresh(w);
		watch_lock(w);
	}
	watch_unlock(w);
	return NULL;
}

int watch_start(struct watch *w)
{
	int ret;

	ret = rt_thread_start(&w->thread, refresh_thread, w);
	w->started = !ret;
	return ret;
}

void watch_free(struct watch *w)
{
	watch_lock(w);
	w->stop = true;
	pthread_cond_broadcast(&w->changed);
	watch_unlock(w);
	if (w->started)
		pthread_join(w->thread, NULL);
	for (size_t i = 0; i < w->count; i++)
		watched_free(w->list[i]);
	free(w->list);
	for (size_t n = 0; n < w->name_count; n++)
		free(w->advice[n]);
	if (w->ends >= 0)
		close(w->ends);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}

static void step(struct watch *w, struct watched *a)
{
	struct ringtap_snapshot *last = a->now, *f = NULL;
	int ret;

	if (!a->mon || a->ended || a->switching)
		return;
	ret = ringtap_monitor_read(a->mon, &f);
	a->ended = ret == -EPIPE || ret == -EBADMSG;
	if (a->ended) {
		snprintf(a->why, sizeof(a->why), "%s",
			ret == -EPIPE ? "the application has ended" : "its statistics are broken");
		epoll_ctl(w->ends, EPOLL_CTL_DEL, ringtap_monitor_fd(a->mon), NULL);
	}
	a->error = ret;
	if (!f)
		return;
	if (!a->mark) {
		a->mark = f;
		a->tsc_hz = f->tsc_hz ? (double)f->tsc_hz : 1e9;
	}
	if (last != a->mark)
		ringtap_snapshot_free(last);
	a->now = f;
}

void watch_step(struct watch *w)
{
	watch_lock(w);
	for (size_t i = 0; i < w->count; i++)
		step(w, w->list[i]);
	watch_unlock(w);
}

int watch_fd(const struct watch *w)
{
	return w->ends;
}

void watch_ends(struct watch *w)
{
	watch_lock(w);
	for (size_t i = 0; i < w->count; i++) {
		struct watched *a = w->list[i];
		struct pollfd p = {
			.fd = a->mon ? ringtap_monitor_fd(a->mon) : -1, .events = POLLIN};

		/* While collectors are switched an answer is readable, too; step() leaves it. */
		if (poll(&p, 1, 0) > 0)
			step(w, a);
	}
	watch_unlock(w);
}

void watch_mark(struct watch *w)
{
	watch_lock(w);
	for (size_t i = 0; i < w->count; i++) {
		struct watched *a = w->list[i];

		if (a->mark != a->now)
			ringtap_snapshot_free(a->mark);
		a->mark = a->now;
		a->ended_before = a->ended;
	}
	watch_unlock(w);
}

void watch_switch(struct watch *w, unsigned collectors, unsigned latency_every)
{
	watch_lock(w);
	w->collectors = collectors;
	w->latency_every = latency_every;
	w->hurry = true;
	pthread_cond_broadcast(&w->changed);
	watch_unlock(w);
	if (!w->started)
		apply(w);
}

size_t watch_attached(struct watch *w)
{
	size_t n = 0;

	watch_lock(w);
	for (size_t i = 0; i < w->count; i++)
		n += w->list[i]->now && !w->list[i]->ended;
	watch_unlock(w);
	return n;
}
