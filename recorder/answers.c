/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/threads.h"
#include "base/util.h"
#include "answers.h"
#include "ask.h"

#define TIMEOUT_MS   300 /* a recorder answers within a few */
#define EVERY_NS     NS_PER_S
#define DELAY_MAX_NS (60 * NS_PER_S)
#define FOREIGN_NS   (2 * NS_PER_S) /* limit for applications of other users in a round */

/* A thread asks, as a request of a client must not wait for an answer. */
struct recorder_answers {
	struct watch *watch;
	void (*extend)(json_t *recorder);
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopping;
	bool stop;
	bool asks; /* a recorder, or reads its folder, which may take for ever: not waited for */
	bool left; /* to the thread, which destroys it */
	struct answers {
		char *dir, *app;
		json_t *list;
		uint64_t retry_ns, delay_ns;
		bool foreign, there;
	} * of;
	size_t count;
};

static struct answers *find(const struct recorder_answers *r, const char *dir)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->of[i].dir, dir))
			return &r->of[i];
	return NULL;
}

static void drop(struct answers *a)
{
	json_decref(a->list);
	free(a->dir);
	free(a->app);
}

static void add(struct recorder_answers *r, const struct watched *w)
{
	struct answers *a = rt_array_add(r->of, r->count);

	if (!a)
		return;
	*a = (struct answers){.dir = strdup(w->dir),
		.app = strdup(w->name),
		.foreign = w->foreign,
		.there = true};
	if (!a->dir || !a->app)
		drop(&r->of[--r->count]);
}

/* Which applications there are now. */
static void update(struct recorder_answers *r)
{
	size_t left = 0;

	watch_lock(r->watch);
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->count; i++)
		r->of[i].there = false;
	for (size_t i = 0; i < r->watch->count; i++) {
		struct answers *a = find(r, r->watch->list[i]->dir);

		if (a)
			a->there = true;
		else
			add(r, r->watch->list[i]);
	}
	for (size_t i = 0; i < r->count; i++) {
		if (r->of[i].there)
			r->of[left++] = r->of[i];
		else
			drop(&r->of[i]);
	}
	r->count = left;
	pthread_mutex_unlock(&r->lock);
	watch_unlock(r->watch);
}

/* Where recorders do not answer it is asked less and less often. */
static void ask(struct recorder_answers *r, struct answers *a)
{
	json_t *list = json_array();
	bool all = ask_recorders(list, a->dir, a->app, TIMEOUT_MS);
	json_t *one;
	size_t i;

	json_array_foreach(r->extend ? list : NULL, i, one) r->extend(one);
	a->delay_ns = all ? 0 : a->delay_ns ? 2 * a->delay_ns : 2 * EVERY_NS;
	if (a->delay_ns > DELAY_MAX_NS)
		a->delay_ns = DELAY_MAX_NS;
	a->retry_ns = now_ns(CLOCK_MONOTONIC) + a->delay_ns;
	pthread_mutex_lock(&r->lock);
	json_decref(a->list);
	a->list = list;
	pthread_mutex_unlock(&r->lock);
}

static bool is_stopped(struct recorder_answers *r)
{
	bool stop;

	pthread_mutex_lock(&r->lock);
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return stop;
}

static void ask_all(struct recorder_answers *r)
{
	uint64_t until = 0;

	for (unsigned foreign = 0; foreign < 2; foreign++) {
		for (size_t i = 0; i < r->count && !is_stopped(r); i++) {
			uint64_t now = now_ns(CLOCK_MONOTONIC);
			struct answers *a = &r->of[i];

			if (foreign && !until)
				until = now + FOREIGN_NS;
			if (a->foreign == foreign && now >= a->retry_ns &&
				(!foreign || now < until))
				ask(r, a);
		}
	}
}

static void destroy(struct recorder_answers *r)
{
	for (size_t i = 0; i < r->count; i++)
		drop(&r->of[i]);
	free(r->of);
	free(r);
}

static void *run(void *arg)
{
	struct recorder_answers *r = arg;
	bool left;

	do {
		update(r);
		pthread_mutex_lock(&r->lock);
		r->asks = true;
		pthread_mutex_unlock(&r->lock);
		ask_all(r);
		pthread_mutex_lock(&r->lock);
		left = r->left;
		r->asks = false;
		if (!r->stop)
			rt_cond_wait_ns(&r->stopping, &r->lock, EVERY_NS);
		pthread_mutex_unlock(&r->lock);
	} while (!is_stopped(r));
	if (left)
		destroy(r);
	return NULL;
}

int recorder_answers_start(
	struct recorder_answers **out, struct watch *w, void (*extend)(json_t *recorder))
{
	struct recorder_answers *r = *out = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->watch = w;
	r->extend = extend;
	pthread_mutex_init(&r->lock, NULL);
	rt_cond_init(&r->stopping);
	ret = rt_thread_start(&r->thread, run, r);
	if (ret) {
		free(r);
		*out = NULL;
	}
	return ret;
}

void recorder_answers_stop(struct recorder_answers *r)
{
	pthread_t thread;
	bool left;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	left = r->left = r->asks;
	thread = r->thread;
	pthread_cond_broadcast(&r->stopping);
	pthread_mutex_unlock(&r->lock);
	if (left) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	destroy(r);
}

json_t *recorder_answers_of(struct recorder_answers *r, const char *dir)
{
	const struct answers *a;
	json_t *list;

	pthread_mutex_lock(&r->lock);
	a = find(r, dir);
	list = a ? json_incref(a->list) : NULL;
	pthread_mutex_unlock(&r->lock);
	return list;
}
