/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics of flight recorders, which answer by themselves: no snapshot has them. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "recorder/ask.h"
#include "recorders.h"

#define TIMEOUT_MS   300 /* a recorder answers within a few */
#define EVERY_NS     NS_PER_S
#define DELAY_MAX_NS (60 * NS_PER_S)
#define FOREIGN_NS   (2 * NS_PER_S) /* limit for applications of other users in a round */

/* A thread asks, as a scrape must not wait for an answer. */
struct export_recorders {
	struct watch *watch;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopping;
	bool stop;
	struct answers {
		char *dir, *app;
		json_t *list;
		uint64_t retry_ns, delay_ns;
		bool foreign, there;
	} * of;
	size_t count;
};

/* ---- the thread */

static struct answers *find(const struct export_recorders *r, const char *dir)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->of[i].dir, dir))
			return &r->of[i];
	return NULL;
}

static void add(struct export_recorders *r, const struct watched *w)
{
	struct answers *more = reallocarray(r->of, r->count + 1, sizeof(*more));
	struct answers new = {.dir = strdup(w->dir),
		.app = strdup(w->name),
		.foreign = w->foreign,
		.there = true};

	if (more)
		r->of = more;
	if (more && new.dir &&new.app) {
		more[r->count++] = new;
		return;
	}
	free(new.dir);
	free(new.app);
}

static void drop(struct answers *a)
{
	json_decref(a->list);
	free(a->dir);
	free(a->app);
}

/* Which applications there are now. */
static void update(struct export_recorders *r)
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
static void ask(struct export_recorders *r, struct answers *a)
{
	json_t *list = json_array();
	bool all = ask_recorders(list, a->dir, a->app, TIMEOUT_MS);

	a->delay_ns = all ? 0 : a->delay_ns ? 2 * a->delay_ns : 2 * EVERY_NS;
	if (a->delay_ns > DELAY_MAX_NS)
		a->delay_ns = DELAY_MAX_NS;
	a->retry_ns = now_ns(CLOCK_MONOTONIC) + a->delay_ns;
	pthread_mutex_lock(&r->lock);
	json_decref(a->list);
	a->list = list;
	pthread_mutex_unlock(&r->lock);
}

static void ask_all(struct export_recorders *r)
{
	uint64_t until = 0;

	for (unsigned foreign = 0; foreign < 2; foreign++) {
		for (size_t i = 0; i < r->count; i++) {
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

static void *run(void *arg)
{
	struct export_recorders *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		pthread_mutex_unlock(&r->lock);
		update(r);
		ask_all(r);
		pthread_mutex_lock(&r->lock);
		if (!r->stop)
			rt_cond_wait_ns(&r->stopping, &r->lock, EVERY_NS);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int export_recorders_start(struct export_recorders **out, struct watch *w)
{
	struct export_recorders *r = *out = calloc(1, sizeof(*r));
	pthread_condattr_t cond;
	sigset_t all, old;
	int ret;

	if (!r)
		return -ENOMEM;
	r->watch = w;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&cond);
	pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
	pthread_cond_init(&r->stopping, &cond);
	pthread_condattr_destroy(&cond);
	/* The main thread handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		free(r);
		*out = NULL;
	}
	return ret;
}

void export_recorders_stop(struct export_recorders *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->stopping);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	for (size_t i = 0; i < r->count; i++)
		drop(&r->of[i]);
	free(r->of);
	free(r);
}

/* ---- scrapes */

json_t *export_recorders_of(struct export_recorders *r, const struct exported *x)
{
	const struct answers *a;
	json_t *list;

	pthread_mutex_lock(&r->lock);
	a = find(r, x->app->dir);
	list = a ? json_incref(a->list) : NULL;
	pthread_mutex_unlock(&r->lock);
	return list;
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

/* Two conditions may be the same, with other windows, and an application's owner may answer as
 * several recorders of one folder: one series. */
static bool is_first(const json_t *list, size_t i, const char *key)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(text_of(json_array_get(list, k), key),
			    text_of(json_array_get(list, i), key)))
			return false;
	return true;
}

static void put(
	struct export_text *t, const struct rt_metric *m, const char *labels, const json_t *object)
{
	const json_t *v = json_object_get(object, m->key);

	if (json_is_number(v) && export_takes(t, 1))
		export_number(
			t, "", labels, json_number_value(v) * (m->unit == RT_UNIT_NS ? 1e-9 : 1));
}

void export_recorders(struct export_text *t, enum rt_metric_id id, const struct exported *x)
{
	const struct rt_metric *m = &rt_metrics[id];
	char labels[LABELS_LEN];
	json_t *r;
	size_t n, k;

	json_array_foreach(x->recorders, n, r)
	{
		const json_t *conditions = json_object_get(r, "conditions");

		if (!is_first(x->recorders, n, "folder"))
			continue;
		if (m->object == RT_OBJECT_RECORDER)
			put(t, m,
				export_labels(labels, "app", x->label, "folder",
					text_of(r, "folder"), NULL),
				r);
		for (k = 0; m->object == RT_OBJECT_CONDITION && k < json_array_size(conditions);
			k++)
			if (is_first(conditions, k, "condition"))
				put(t, m,
					export_labels(labels, "app", x->label, "folder",
						text_of(r, "folder"), "condition",
						text_of(json_array_get(conditions, k), "condition"),
						NULL),
					json_array_get(conditions, k));
	}
}
