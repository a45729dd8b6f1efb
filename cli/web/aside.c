/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aside.h"
#include "serve/serve.h"
#include "common/threads.h"

#define RUNNING_MAX 16 /* threads */
#define OF_FOLDER   4  /* threads for one folder */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct aside *running; /* from start to end of work() */
static struct aside *waiting[RUNNING_MAX];

void aside_free(struct aside *a)
{
	if (!a)
		return;
	pthread_cond_destroy(&a->done);
	free(a->folder);
	free(a->text);
	free(a->data);
	json_decref(a->names);
	free(a);
}

static void resume(struct aside *a)
{
	if (a->connection && !a->resumed)
		MHD_resume_connection(a->connection);
	a->resumed = true;
}

static void *run(void *arg)
{
	struct aside *a = arg, **at;
	bool left;

	a->work(a);
	pthread_mutex_lock(&lock);
	for (at = &running; *at != a; at = &(*at)->next)
		;
	*at = a->next;
	left = a->left;
	a->ended = true;
	if (!left) {
		resume(a);
		pthread_cond_broadcast(&a->done);
	}
	pthread_mutex_unlock(&lock);
	if (left)
		aside_free(a);
	return NULL;
}

static struct aside *make(const char *folder, const char *text, void (*work)(struct aside *a))
{
	struct aside *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->work = work;
	a->folder = strdup(folder);
	a->text = text ? strdup(text) : NULL;
	rt_cond_init(&a->done);
	if (a->folder && (a->text || !text))
		return a;
	aside_free(a);
	return NULL;
}

/* Work with a folder that hangs is not started again until it has ended. */
static bool is_busy(const char *folder)
{
	unsigned all = 0, same = 0;

	for (const struct aside *a = running; a; a = a->next) {
		all++;
		if (strcmp(a->folder, folder))
			continue;
		same++;
		if (a->left)
			return true;
	}
	return all >= RUNNING_MAX || same >= OF_FOLDER;
}

/* With the lock. */
static int start(struct aside *a)
{
	pthread_t thread;
	int ret;

	ret = rt_thread_start(&thread, run, a);
	if (ret)
		return ret;
	pthread_detach(thread);
	a->next = running;
	running = a;
	return 0;
}

static struct aside **slot_of(const struct MHD_Connection *c)
{
	for (unsigned i = 0; i < RUNNING_MAX; i++)
		if (waiting[i] ? waiting[i]->connection == c : !c)
			return &waiting[i];
	return NULL;
}

int aside_suspend(struct MHD_Connection *c, const char *folder, const char *text,
	void (*work)(struct aside *a))
{
	struct aside *a = make(folder, text, work), **slot;
	int ret = -EBUSY;

	if (!a)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	slot = slot_of(NULL);
	if (slot && !is_busy(folder))
		ret = start(a);
	if (!ret) {
		a->connection = c;
		a->until_ns = now_ns(CLOCK_MONOTONIC) + ASIDE_WAIT_NS;
		*slot = a;
		MHD_suspend_connection(c);
	}
	pthread_mutex_unlock(&lock);
	if (ret)
		aside_free(a);
	return ret;
}

/* With the lock. The work if it has ended. */
static struct aside *leave(struct aside *a)
{
	a->left = !a->ended;
	a->connection = NULL;
	return a->ended ? a : NULL;
}

bool aside_take(struct MHD_Connection *c, struct aside **out)
{
	struct aside **slot;

	pthread_mutex_lock(&lock);
	slot = slot_of(c);
	if (slot) {
		*out = leave(*slot);
		*slot = NULL;
	}
	pthread_mutex_unlock(&lock);
	return slot;
}

struct aside *aside_run(const char *folder, void (*work)(struct aside *a), uint64_t ns)
{
	struct aside *a = make(folder, NULL, work), *made = a;

	pthread_mutex_lock(&lock);
	if (!a || is_busy(folder) || start(a)) {
		a = NULL;
	} else {
		uint64_t until = now_ns(CLOCK_MONOTONIC) + ns, now;

		while (!a->ended && (now = now_ns(CLOCK_MONOTONIC)) < until)
			rt_cond_wait_ns(&a->done, &lock, until - now);
		a = made = leave(a);
	}
	pthread_mutex_unlock(&lock);
	if (!a)
		aside_free(made);
	return a;
}

enum MHD_Result aside_refuse(struct MHD_Connection *c)
{
	return serve_text(c, MHD_HTTP_SERVICE_UNAVAILABLE,
		"the file system of this folder does not answer in time\n", NULL);
}

void aside_step(uint64_t now)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < RUNNING_MAX; i++)
		if (waiting[i] && now >= waiting[i]->until_ns)
			resume(waiting[i]);
	pthread_mutex_unlock(&lock);
}
