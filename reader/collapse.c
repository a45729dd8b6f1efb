/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel begins a collapse by letting each CPU finish what it has cached of page lists, in a
 * kernel thread of that CPU. Where a polling thread of a real-time or high priority leaves that
 * thread no time, the system call does not return, and not even SIGKILL ends it: so it is made by
 * another process, which a recorder can leave behind.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collapse.h"
#include "common/pages.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

int rt_collapse_wait_ms = 1000;

int rt_collapse_aside(void (*f)(void *arg), void *arg, int timeout_ms)
{
	/* No flags: a fork without the handlers of fork() and without a signal at its end. */
	pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	struct pollfd end = {.events = POLLIN};
	int status, n = 0;

	if (pid < 0)
		return -errno;
	if (!pid) {
		f(arg);
		_exit(0);
	}
	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (end.fd >= 0 && (n = poll(&end, 1, timeout_ms)) < 0 && errno == EINTR)
		;
	if (end.fd >= 0)
		close(end.fd);
	if (n <= 0)
		kill(pid, SIGKILL);
	/* Not collected after a kill: it may not end for long. Then init does it. */
	if (waitpid(pid, &status, n > 0 ? __WALL : __WALL | WNOHANG) != pid)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? 0 : -EINTR;
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
			collapse, &r, rt_collapse_wait_ms * (1 + (int)(size >> 30)));
}
