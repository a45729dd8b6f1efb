/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "idle.h"
#include "process.h"

/* Names of threads; from DPDK 23.11 on the second ones. The kernel cuts them at 15 characters. */
static const char *const servers[] = {"telemetry-v2", "dpdk-telemet-v2", NULL};
static const char *const interrupts[] = {"eal-intr-thread", "dpdk-intr", NULL};
static const char *const others[] = {"rte_mp_handle", "dpdk-mp-msg", NULL};
static const char *const vhost[] = {
	"vhost-events", "dpdk-vhost-evt", "vduse-events", "dpdk-vduse-evt", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* 1: it is in a system call; 0: not, or it has ended; -EPERM: this user may not know. */
static int read_call(pid_t pid, pid_t tid, struct rt_idle *idle)
{
	unsigned long long a[6], sp, pc;
	char path[64], text[512];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	idle->tid = tid;
	ret = rt_read_text(path, text, sizeof(text));
	if (ret == -EACCES || ret == -EPERM)
		return -EPERM;
	if (ret <= 0 || sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &idle->nr,
				&a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &sp, &pc) != 9)
		return 0;
	for (unsigned i = 0; i < 6; i++)
		idle->args[i] = a[i];
	idle->sp = sp;
	idle->pc = pc;
	return 1;
}

static bool is_accept(const struct rt_idle *i)
{
	return i->nr == SYS_accept || i->nr == SYS_accept4;
}

/* With a time limit, the call that is issued again would wait longer. */
static bool is_epoll(const struct rt_idle *i)
{
#ifdef SYS_epoll_wait
	if (i->nr == SYS_epoll_wait)
		return (int)i->args[3] == -1;
#endif
	return i->nr == SYS_epoll_pwait && (int)i->args[3] == -1;
}

static void name_of(pid_t pid, pid_t tid, char name[32])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	rt_read_text(path, name, 32);
	name[strcspn(name, "\n")] = 0;
}

/* Calls found() for each thread until it returns true. */
static bool each(pid_t pid, bool (*found)(pid_t tid, const char *name, void *arg), void *arg)
{
	char path[64], name[32];
	struct dirent *e;
	bool done = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && !done && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		name_of(pid, atoi(e->d_name), name);
		done = found(atoi(e->d_name), name, arg);
	}
	if (d)
		closedir(d);
	return done;
}

struct search {
	pid_t pid;
	const char *const *names;
	bool (*call)(const struct rt_idle *);
	struct rt_idle *out;
	int count, error;
};

static bool take(pid_t tid, const char *name, void *arg)
{
	struct search *s = arg;
	int ret = is_one_of(name, s->names) ? read_call(s->pid, tid, &s->out[s->count]) : 0;

	if (ret < 0)
		s->error = ret;
	else if (ret && s->call(&s->out[s->count]))
		s->count++;
	return s->count == RT_IDLE_MAX;
}

int rt_idle_find(pid_t pid, struct rt_idle out[RT_IDLE_MAX])
{
	struct search s = {pid, servers, is_accept, out, 0, 0};

	if (!each(pid, take, &s)) {
		s.names = interrupts;
		s.call = is_epoll;
		each(pid, take, &s);
	}
	return s.count ? s.count : s.error;
}

int rt_idle_again(pid_t pid, const struct rt_idle *idle)
{
	struct rt_idle now;
	char name[32];

	if (read_call(pid, idle->tid, &now) > 0)
		return now.nr == idle->nr && now.sp == idle->sp && now.pc == idle->pc;
	name_of(pid, idle->tid, name);
	return name[0] ? 0 : -ESRCH;
}

static bool is_named(pid_t tid, const char *name, void *arg)
{
	return is_one_of(name, arg);
}

bool rt_has_telemetry(pid_t pid)
{
	return each(pid, is_named, (void *)(uintptr_t)servers);
}

bool rt_has_eal(pid_t pid)
{
	return rt_has_telemetry(pid) || each(pid, is_named, (void *)(uintptr_t)interrupts) ||
	       each(pid, is_named, (void *)(uintptr_t)others);
}

bool rt_has_vhost(pid_t pid)
{
	return each(pid, is_named, (void *)(uintptr_t)vhost);
}
