/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel begins a collapse by letting each CPU finish what it has cached of page lists, in a
 * kernel thread of that CPU. Where a polling thread of a real-time or high priority leaves that
 * thread no time, the system call does not return, and not even SIGKILL ends it: so it is made by
 * another process, which a recorder can leave behind.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collapse.h"
#include "common/atomics.h"
#include "common/calls.h"
#include "common/now.h"
#include "common/pages.h"
#include "reader/tunables.h"

/* A process that the kernel does not let end; 0: none. While there is one, others would not end
 * either. Atomic. */
static pid_t stuck;

static bool is_stuck(void)
{
	pid_t pid = rt_load(&stuck);

	if (pid && !waitpid(pid, NULL, __WALL | WNOHANG))
		return true;
	rt_store(&stuck, 0);
	return false;
}

/* Without the descriptors: they would keep connections, pipes and locks of this process. */
static pid_t begin(void (*f)(void *arg), void *arg)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all); /* handlers of this process must not run there */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* No flags: a fork without the handlers of fork() and without a signal at its end. */
	pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (!pid) {
		if (!syscall(SYS_close_range, 0u, ~0u, 0u))
			f(arg);
		_exit(0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int rt_collapse_aside(void (*f)(void *arg), void *arg, int timeout_ms)
{
	uint64_t until = rt_now_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
	int status = 0;
	pid_t pid, ended;

	if (is_stuck())
		return -EBUSY;
	pid = begin(f, arg);
	if (pid < 0)
		return -errno;
	while (!(ended = waitpid(pid, &status, __WALL | WNOHANG)) &&
		rt_now_ns(CLOCK_MONOTONIC) < until)
		rt_sleep_ns(1000000);
	if (ended)
		return ended == pid && WIFEXITED(status) ? 0 : -EINTR;
	kill(pid, SIGKILL);
	rt_store(&stuck, pid);
	return -ETIMEDOUT;
}

static bool advice_is_taken(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
	char line[128] = "";
	bool taken;

	if (!f)
		return true; /* no such pages at all */
	taken = fgets(line, sizeof(line), f) && !strstr(line, "[never]") && !strstr(line, "[deny]");
	fclose(f);
	return taken;
}

struct range {
	void *p;
	size_t size;
};

static void collapse(void *arg)
{
	const struct range *r = arg;

	(void)madvise(r->p, r->size, MADV_COLLAPSE);
}

void rt_collapse(void *p, size_t size)
{
	struct range r = {p, size};

	if (size >= RT_HUGE_PAGE && !advice_is_taken())
		(void)rt_collapse_aside(
			collapse, &r, rt_reader_limits.collapse_ms * (1 + (int)(size >> 30)));
}
