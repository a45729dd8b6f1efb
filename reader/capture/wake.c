/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A descriptor that is readable when packets can be read.
 *
 * The application makes no system call for a packet, so it cannot signal one. A thread polls the
 * rings' heads while a reader waits: from the moment that the reader has found them empty until
 * they are not. It then makes the descriptor readable, and again for records after a reading that
 * left some, for edge-triggered readers. Without readings in between it sleeps. At the end of each
 * reading, the reader reports what is left (ringtap_capture_rearm()), so the descriptor is
 * level-triggered.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/calls.h"
#include "common/threads.h"
#include "capture.h"
#include "grow.h"
#include "reader/export.h"

#define NAP_MAX_NS 1000000ull

struct rt_waker {
	struct ringtap_capture *cap;
	pthread_t thread;
	pthread_mutex_t lock; /* protects all fields below */
	int fd;               /* returned to the program */
	int kick_fd;          /* wakes the thread */
	bool readable;        /* state of fd */
	bool watching;        /* the thread polls the rings */
	bool rearmed;         /* the reader has read since fd was last made readable */
	bool following; /* in a child: watching begins when another process, follow_fd, has ended */
	bool kicked;    /* the next sleep is short */
	bool growing;   /* answers to RT_MSG_GROW may come: a message is not an event */
	bool has_thread;
	bool quit;
	pid_t pid; /* this process */
	int follow_fd;
	uint64_t *seen; /* by ring: position that the reader has read or been notified of */
	uint32_t ports; /* see count_ports() */
	int conns[RT_MAX_SOURCES];
	unsigned conn_count;
	struct rt_waker *next;
};

/* All wakers, for fork(). */
static struct rt_waker *wakers;
static pthread_mutex_t wakers_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t head_of(const struct ringtap_capture *cap, uint32_t i)
{
	const struct rt_in *in = &cap->ins[i];

	return rt_load_acquire(&cap->sources[in->source].seg.rings[in->index].head);
}

/* A number that changes when a port appears or is removed: the reader is notified of it, too. */
static uint32_t count_ports(const struct ringtap_capture *cap)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < cap->source_count; s++) {
		const struct rt_segment *seg = &cap->sources[s].seg;
		uint32_t ifs = rt_segment_if_count(seg);

		n += ifs << 16;
		for (uint32_t i = 0; i < ifs; i++)
			n += rt_load(&seg->ifs[i].state) == RT_IF_GONE ? i + 1 : 0;
	}
	return n;
}

static void raise_event(int fd)
{
	uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

static void clear_event(int fd)
{
	uint64_t v;

	(void)!read(fd, &v, sizeof(v));
}

/* ---- the thread ---- */

static bool has_changed(const struct rt_waker *w)
{
	/* Pairs with the release in follow_source(), which this thread does not call. */
	for (uint32_t i = 0, n = rt_load_acquire(&w->cap->in_count); i < n; i++) {
		if (head_of(w->cap, i) != w->seen[i])
			return true;
	}
	return rt_rings_due(w->cap) || count_ports(w->cap) != w->ports;
}

/* Sleeps for ns, or without limit if no reader waits. True: a probe has sent a message, or its
 * application has ended. */
static bool sleep_for(struct rt_waker *w, uint64_t ns)
{
	struct pollfd p[RT_MAX_SOURCES + 2];
	unsigned n = 0;
	bool endless;

	p[n++] = (struct pollfd){.fd = w->kick_fd, .events = POLLIN};
	pthread_mutex_lock(&w->lock);
	endless = !w->watching;
	for (unsigned i = 0; !endless && i < w->conn_count; i++)
		p[n++] = (struct pollfd){.fd = w->conns[i], .events = w->growing ? 0 : POLLIN};
	if (endless && w->following)
		p[n++] = (struct pollfd){.fd = w->follow_fd, .events = POLLIN};
	pthread_mutex_unlock(&w->lock);
	if (rt_poll_ns(p, n, endless ? RT_WAIT_ENDLESS : ns) <= 0)
		return false;
	if (p[0].revents)
		clear_event(w->kick_fd);
	for (unsigned i = 1; i < n; i++) {
		if (p[i].revents)
			return true;
	}
	return false;
}

static void take_heads(struct rt_waker *w)
{
	for (uint32_t i = 0, n = rt_load_acquire(&w->cap->in_count); i < n; i++)
		w->seen[i] = head_of(w->cap, i);
	w->ports = count_ports(w->cap);
}

/* Called under the lock after a sleep. Returns the length of the next one. */
static uint64_t look(struct rt_waker *w, bool event, uint64_t nap)
{
	if (w->following && event) { /* the process that read has ended */
		w->following = false;
		w->watching = w->rearmed = true;
		return RT_NAP_MIN_NS;
	}
	if (!w->watching)
		return RT_NAP_MIN_NS;
	if (!event && !has_changed(w))
		return w->kicked ? RT_NAP_MIN_NS : nap * 2;
	if (event || !w->rearmed) { /* the reader was notified; it starts the watching again */
		w->watching = false;
		if (!w->rearmed)
			return nap;
	}
	w->readable = true;
	w->rearmed = false;
	take_heads(w);
	raise_event(w->fd);
	return NAP_MAX_NS;
}

static void *watch(void *arg)
{
	struct rt_waker *w = arg;
	uint64_t nap = RT_NAP_MIN_NS;
	bool quit = false;

	while (!quit) {
		bool event = sleep_for(w, nap);

		pthread_mutex_lock(&w->lock);
		nap = look(w, event, nap);
		w->kicked = false;
		quit = w->quit;
		pthread_mutex_unlock(&w->lock);
		if (nap > NAP_MAX_NS)
			nap = NAP_MAX_NS;
	}
	return NULL;
}

static int start_thread(struct rt_waker *w)
{
	int ret = rt_thread_start(&w->thread, watch, w);

	w->has_thread = !ret;
	return ret;
}

/* fork(): a child has the descriptor, but not the thread; daemons read in the child */

static void before_fork(void)
{
	pthread_mutex_lock(&wakers_lock);
	for (struct rt_waker *w = wakers; w; w = w->next)
		pthread_mutex_lock(&w->lock);
}

static void after_fork(void)
{
	for (struct rt_waker *w = wakers; w; w = w->next)
		pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&wakers_lock);
}

static void after_fork_in_child(void)
{
	after_fork();
	for (struct rt_waker *w = wakers; w; w = w->next) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		/* The parent has the same eventfd. */
		if (fd >= 0) {
			dup3(fd, w->kick_fd, O_CLOEXEC);
			close(fd);
		}
		/* While the parent lives, it reads and its thread watches. Two watching threads
		 * would make the descriptor readable for records that the other process has
		 * read. */
		if (w->follow_fd >= 0)
			close(w->follow_fd);
		w->follow_fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
		w->pid = getpid();
		w->following = w->follow_fd >= 0;
		w->watching = w->has_thread = false;
		if (w->following)
			start_thread(w);
	}
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* ---- the reader's side ---- */

static bool is_over(const struct ringtap_capture *cap)
{
	bool over = true;

	for (uint32_t i = 0; i < cap->source_count; i++)
		over &= cap->sources[i].dead || cap->sources[i].stopped;
	return over || cap->corrupt;
}

static bool has_more(const struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->in_count; i++) {
		if (head_of(cap, i) != cap->ins[i].pos)
			return true;
	}
	return rt_rings_due(cap);
}

static void kick(struct rt_waker *w)
{
	w->kicked = true;
	raise_event(w->kick_fd);
}

static void make_readable(struct rt_waker *w)
{
	if (!w->readable) {
		raise_event(w->fd);
		take_heads(w);
	}
	w->readable = true;
}

static void make_unreadable(struct rt_waker *w)
{
	const struct ringtap_capture *cap = w->cap;

	clear_event(w->fd); /* also if another process has made it readable */
	for (uint32_t i = 0; i < cap->in_count; i++)
		w->seen[i] = cap->ins[i].pos;
	w->ports = count_ports(cap);
	if (w->readable && w->watching)
		kick(w); /* it sleeps for long now */
	w->readable = false;
}

static void begin_watching(struct rt_waker *w)
{
	const struct ringtap_capture *cap = w->cap;

	w->rearmed = true;
	w->following = false; /* this process reads now */
	if (w->watching)
		return;
	w->conn_count = 0;
	w->growing = false;
	for (uint32_t i = 0; i < cap->source_count; i++) {
		const struct rt_source *s = &cap->sources[i];

		if (s->dead || s->stopped)
			continue;
		w->conns[w->conn_count++] = s->conn->fd;
		w->growing |= !cap->stop_until_ns && rt_growth_runs(s);
	}
	w->watching = true;
	if (w->has_thread)
		kick(w);
	else if (start_thread(w))
		raise_event(w->fd); /* without a thread: a spurious event rather than none */
}

EXPORT void ringtap_capture_rearm(struct ringtap_capture *cap, bool more)
{
	struct rt_waker *w = cap->waker;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	if (more || is_over(cap) || has_more(cap))
		make_readable(w);
	else
		make_unreadable(w);
	cap->looked_ns = 0; /* the caller waits outside: no pause */
	if (!is_over(cap))
		begin_watching(w);
	pthread_mutex_unlock(&w->lock);
}

void rt_waker_await_stop(struct rt_waker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->growing = false;
	kick(w);
	pthread_mutex_unlock(&w->lock);
}

static struct rt_waker *make_waker(struct ringtap_capture *cap)
{
	struct rt_waker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct rt_waker){.cap = cap,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.follow_fd = -1,
		.pid = getpid(),
		.seen = calloc(cap->in_room + 1, sizeof(*w->seen))};
	if (w->fd >= 0 && w->kick_fd >= 0 && w->seen && !start_thread(w))
		return w;
	if (w->fd >= 0)
		close(w->fd);
	if (w->kick_fd >= 0)
		close(w->kick_fd);
	free(w->seen);
	free(w);
	return NULL;
}

EXPORT int ringtap_capture_fd(struct ringtap_capture *cap, bool more)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (cap->retention || cap->window)
		return rt_capture_fail(cap, -EINVAL, "kept packets have no descriptor");
	if (cap->waker)
		return cap->waker->fd;
	rt_capture_await_growth(cap);
	cap->waker = make_waker(cap);
	if (!cap->waker)
		return rt_capture_fail(cap, -EMFILE, "no descriptor or no thread to be had");
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&wakers_lock);
	cap->waker->next = wakers;
	wakers = cap->waker;
	pthread_mutex_unlock(&wakers_lock);
	ringtap_capture_rearm(cap, more);
	return cap->waker->fd;
}

void rt_waker_free(struct rt_waker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&wakers_lock);
	for (struct rt_waker **p = &wakers; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	pthread_mutex_unlock(&wakers_lock);
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	raise_event(w->kick_fd);
	pthread_mutex_unlock(&w->lock);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	if (w->follow_fd >= 0)
		close(w->follow_fd);
	close(w->fd);
	close(w->kick_fd);
	free(w->seen);
	free(w);
}
