/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel reports programs that are executed and threads that are named, where it permits that.
 * Elsewhere, and for what it does not report, the search is repeated.
 *
 * Each attempt to load the probe interrupts a thread of the application. Where attempts fail they
 * become rare.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app_wait.h"
#include "attach_app.h"
#include "base/signals.h"
#include "base/util.h"
#include "process_events.h"
#include "which_app.h"

#define LOOK_NS  (NS_PER_S / 2)
#define IDLE_NS  (2 * NS_PER_S) /* while the kernel reports */
#define START_NS NS_PER_S
#define FIRST_NS NS_PER_S
#define LAST_NS  (60 * NS_PER_S)

/* A search after each event takes a tenth of a CPU at most, however many programs start. */
#define SHARE 10

uint64_t app_wait_delay(struct app_wait *w, uint64_t pid)
{
	bool again = w->delay_ns && w->failed_pid == pid;

	w->failed_pid = pid;
	w->delay_ns = again ? 2 * w->delay_ns : FIRST_NS;
	if (w->delay_ns > LAST_NS)
		w->delay_ns = LAST_NS;
	return w->delay_ns;
}

/* EAL makes its threads first, and without a runtime folder nothing shows that it has finished:
 * such a process is left alone for a second. */
static int find_any(struct app_wait *w, uint64_t *pid)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct attach_target t;
	int ret = attach_target_look(&t, w->word);

	*pid = ret ? 0 : (uint64_t)t.pid;
	if (*pid && !t.dir && *pid != w->new_pid) {
		w->new_pid = *pid;
		w->seen_ns = now;
	}
	if (*pid && !t.dir && now - w->seen_ns < START_NS)
		ret = -ENOENT;
	attach_target_free(&t);
	return ret;
}

static int find_listed(const struct app_wait *w, uint64_t *pid)
{
	size_t len = w->word ? strcspn(w->word, ":") : 0;
	struct ringtap_apps *apps;
	int found = 0;

	*pid = 0;
	if (ringtap_apps_find(&apps))
		return -ENOENT;
	if (len)
		found = target_app(apps, w->word, len, NULL);
	if (found >= 0 && (size_t)found < ringtap_apps_count(apps))
		*pid = ringtap_apps_pid(apps, (size_t)found);
	else if (found != -ENOTUNIQ)
		found = -ENOENT;
	ringtap_apps_free(apps);
	return found;
}

/* *pid: of the first one, 0 if it is not known. */
static bool look(struct app_wait *w, uint64_t *pid)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC);
	int ret = w->unlisted ? find_any(w, pid) : find_listed(w, pid);

	w->look_ns = now_ns(CLOCK_MONOTONIC) - begin;
	return ret != -ENOENT; /* attaching says which ones several are */
}

/* Until something may have changed, ns at most. fd: what else ends it, or -1. True: a signal came.
 */
static bool wait_change(struct app_wait *w, uint64_t ns, int fd)
{
	struct pollfd p[] = {{.fd = stop_fd(), .events = POLLIN},
		{.fd = w->events, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	if (rt_poll_ns(p, 3, stop_left(ns)) > 0 && p[1].revents && !p[0].revents && !p[2].revents) {
		process_events_take(w->events);
		return stop_wait(w->look_ns * SHARE);
	}
	return stop_wait(0);
}

static void open_events(struct app_wait *w)
{
	if (!w->events)
		w->events = process_events_open();
}

void app_wait_close(struct app_wait *w)
{
	if (w->events > 0)
		close(w->events);
	w->events = 0;
}

static uint64_t pause_ns(const struct app_wait *w)
{
	bool starts = w->new_pid && now_ns(CLOCK_MONOTONIC) - w->seen_ns < START_NS;

	return w->events < 0 || starts ? LOOK_NS : IDLE_NS;
}

bool app_wait(struct app_wait *w)
{
	bool said = w->quiet;
	uint64_t pid;

	open_events(w); /* before the first search: nothing is missed */
	while (!look(w, &pid)) {
		if (!said)
			fprintf(stderr, "Waiting for %s%s\n", w->word ? "" : "an application",
				w->word ? w->word : "");
		said = true;
		if (wait_change(w, pause_ns(w), -1))
			return false;
	}
	return true;
}

bool app_wait_retry(struct app_wait *w)
{
	uint64_t pid, end = now_ns(CLOCK_MONOTONIC);

	/* It has ended, which may be why. */
	if (!look(w, &pid)) {
		w->delay_ns = 0;
		return app_wait(w);
	}
	end += app_wait_delay(w, pid);
	if (!w->quiet)
		fprintf(stderr, "Trying again in %u s\n", (unsigned)(w->delay_ns / NS_PER_S));
	while (now_ns(CLOCK_MONOTONIC) < end) {
		if (stop_wait(LOOK_NS))
			return false;
		if (!look(w, &pid) || pid != w->failed_pid) {
			w->delay_ns = 0;
			return app_wait(w);
		}
	}
	return true;
}

bool app_wait_end(struct app_wait *w, uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), error = errno;
	struct pollfd p[] = {{.fd = stop_fd(), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	uint64_t now = pid;
	bool stopped = false;

	if (fd < 0) { /* it has ended, or is in another PID namespace */
		do
			stopped = stop_wait(LOOK_NS);
		while (!stopped && error != ESRCH && look(w, &now) && now == pid);
		return !stopped;
	}
	rt_poll_ns(p, 2, RT_WAIT_ENDLESS);
	close(fd);
	return !p[0].revents;
}
