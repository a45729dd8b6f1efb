/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rest of a buffer: packets flow once its first memory is there, as to populate and collapse
 * all of it takes a second for a few hundred MiB. A thread populates the rest, piece by piece, and
 * passes each to the probe, which has the same checks for it as for the first memory and only then
 * gives its chunks to rings. All of it is mapped from the beginning, so that a child process has
 * what comes after fork(), too.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/ipc.h"
#include "common/now.h"
#include "common/threads.h"
#include "grow.h"

struct rt_growth {
	struct rt_rest *rest; /* the source's */
	struct rt_segment seg;
	struct ringtap_conn *conn;
	pthread_t thread;
	pid_t pid;             /* that has the thread */
	uint32_t done;         /* nothing more is sent; under the lock, release */
	char why[RT_TEXT_LEN]; /* it ended early; before done */
	/* The reader's thread. */
	uint32_t taken;        /* pieces whose chunks are in use */
	uint64_t lost;         /* by a full buffer, before all of it was there */
	uint64_t begin_ns, ns; /* CLOCK_MONOTONIC; until all of it was there */
	uint32_t over;         /* release: lost and ns are there */
	struct rt_growth *next;
};

/* All that have a thread, for fork(). */
static struct rt_growth *growths;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

/* ---- the thread ---- */

static int pass(struct rt_growth *g, struct rt_piece *p)
{
	struct rt_msg_header h;
	int ret;

	rt_segment_hold(&g->seg, p->at, p->bytes);
	rt_msg_init(&h, RT_MSG_GROW, sizeof(h));
	/* Before it is sent, as the answer may come at once. Pairs with the acquire in
	 * take_grown(). */
	rt_fetch_add_release(&g->conn->grow.sent, 1);
	ret = rt_msg_send(g->conn->fd, &h, &p->fd, 1);
	if (ret)
		snprintf(g->why, sizeof(g->why), "cannot pass it to the probe: %s", strerror(-ret));
	close(p->fd);
	p->fd = -1;
	return ret;
}

static void *grow(void *arg)
{
	struct rt_growth *g = arg;
	int ret = 0;

	for (uint32_t i = 0; i < g->rest->count && !ret; i++) {
		ret = rt_rest_fill(g->rest, i, g->why);
		if (!ret)
			ret = pass(g, &g->rest->pieces[i]);
	}
	pthread_mutex_lock(&lock);
	/* Pairs with the acquire in rt_growth_look(): why is there. */
	rt_store_release(&g->done, 1);
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* A child has no such thread, and its parent, which may end now, is where daemons begin. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	for (struct rt_growth *g = growths; g; g = g->next) {
		while (!g->done && g->pid == getpid())
			pthread_cond_wait(&ended, &lock);
	}
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- the reader ---- */

int rt_source_map(struct ringtap_capture *cap, struct rt_source *s)
{
	const struct rt_rest *r = s->memory.rest;
	const struct rt_piece *last = r ? &r->pieces[r->count - 1] : NULL;
	uint64_t more = r ? last->at + last->bytes - r->pieces[0].at : 0;
	int ret = rt_segment_map(
		&s->seg, s->memory.fd, s->memory.tails, more, cap->error, sizeof(cap->error));

	for (uint32_t i = 0; r && i < r->count && !ret; i++) {
		ret = rt_segment_map_more(
			&s->seg, r->pieces[i].fd, r->pieces[i].at, r->pieces[i].bytes);
		if (ret)
			rt_capture_fail(cap, ret, "cannot map the rings");
	}
	if (!ret)
		s->there = s->seg.h.chunk_size * s->seg.h.chunk_count - more;
	return ret;
}

void rt_growth_begin(struct rt_source *s)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rt_growth *g = s->memory.rest ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return;
	*g = (struct rt_growth){.rest = s->memory.rest,
		.seg = s->seg,
		.conn = s->conn,
		.pid = getpid(),
		.begin_ns = rt_now_ns(CLOCK_MONOTONIC)};
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (rt_thread_start(&g->thread, grow, g)) {
		snprintf(g->why, sizeof(g->why), "there is no thread for it");
		g->done = 1;
		g->pid = 0;
	}
	g->next = growths;
	growths = g;
	pthread_mutex_unlock(&lock);
	s->growth = g;
}

bool rt_growth_runs(const struct rt_source *s)
{
	return s->growth && !s->growth->over;
}

void rt_growth_quit(struct rt_source *s)
{
	if (s->growth)
		rt_store(&s->growth->rest->quit, 1);
}

void rt_growth_end(struct rt_source *s)
{
	struct rt_growth *g = s->growth;

	if (!g)
		return;
	rt_growth_quit(s);
	if (g->pid == getpid())
		pthread_join(g->thread, NULL);
	pthread_mutex_lock(&lock);
	for (struct rt_growth **p = &growths; *p; p = &(*p)->next) {
		if (*p == g) {
			*p = g->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	free(g);
	s->growth = NULL;
}

static uint64_t lost_by_full(const struct rt_segment *seg)
{
	uint32_t taps = rt_segment_tap_count(seg);
	const struct rt_seg_count *row;
	uint64_t lost = 0;

	for (uint32_t at = 0; (row = rt_segment_row(seg, &at));) {
		for (uint32_t t = 0; t < taps; t++)
			lost += rt_load(&row[t].lost[RT_LOSS_RING_FULL]);
	}
	return lost;
}

uint64_t rt_growth_lost(const struct rt_source *s)
{
	const struct rt_growth *g = s->growth;

	if (!g)
		return 0;
	/* Pairs with the release in end(): a window may be read by another thread. */
	return rt_load_acquire(&g->over) ? g->lost : lost_by_full(&s->seg);
}

uint64_t rt_growth_ns(const struct rt_source *s)
{
	const struct rt_growth *g = s->growth;

	if (!g)
		return 0;
	/* Pairs with the release in end(). */
	return rt_load_acquire(&g->over) ? g->ns : rt_now_ns(CLOCK_MONOTONIC) - g->begin_ns;
}

/* The end, whether all of it has come or not. */
static void end(struct rt_source *s, const char *why)
{
	struct rt_growth *g = s->growth;

	rt_growth_quit(s);
	g->lost = lost_by_full(&s->seg);
	g->ns = rt_now_ns(CLOCK_MONOTONIC) - g->begin_ns;
	/* Pairs with the acquires in rt_growth_lost() and rt_growth_ns(). */
	rt_store_release(&g->over, 1);
	if (why)
		rt_copy_text(s->growth_error, why, sizeof(s->growth_error));
}

void rt_growth_look(struct ringtap_capture *cap, struct rt_source *s)
{
	struct rt_growth *g = s->growth;
	/* Pairs with the release in grow(). Before the answers, which come later. */
	bool done = g && rt_load_acquire(&g->done);

	if (!g || g->over)
		return;
	for (; g->taken < s->conn->grow.taken; g->taken++) {
		s->there += g->rest->pieces[g->taken].bytes;
		rt_capture_pace(cap);
	}
	if (s->conn->grow.code)
		end(s, s->conn->grow.text);
	else if (g->taken == g->rest->count)
		end(s, NULL);
	else if (done && g->why[0])
		end(s, rt_load(&g->rest->quit) ? NULL : g->why);
}
