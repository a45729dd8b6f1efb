/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/array.h"
#include "common/status.h"
#include "kernel.h"

/* System calls in which threads of DPDK applications wait. */
static const struct {
	long number;
	const char *name;
} calls[] = {
	{SYS_futex, "futex"},
	{SYS_read, "read"},
	{SYS_write, "write"},
	{SYS_readv, "readv"},
	{SYS_writev, "writev"},
	{SYS_recvmsg, "recvmsg"},
	{SYS_recvfrom, "recvfrom"},
	{SYS_sendmsg, "sendmsg"},
	{SYS_sendto, "sendto"},
	{SYS_accept, "accept"},
	{SYS_accept4, "accept4"},
	{SYS_ioctl, "ioctl"},
	{SYS_fsync, "fsync"},
	{SYS_flock, "flock"},
	{SYS_ppoll, "ppoll"},
	{SYS_pselect6, "pselect6"},
	{SYS_epoll_pwait, "epoll_pwait"},
	{SYS_nanosleep, "nanosleep"},
	{SYS_clock_nanosleep, "clock_nanosleep"},
	{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
	{SYS_rt_sigsuspend, "rt_sigsuspend"},
	{SYS_wait4, "wait4"},
#ifdef SYS_poll
	{SYS_poll, "poll"},
	{SYS_select, "select"},
	{SYS_epoll_wait, "epoll_wait"},
	{SYS_pause, "pause"},
#endif
};

static FILE *open_file(pid_t pid, const char *tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", (int)pid, tid, name);
	return fopen(path, "re");
}

uint32_t kernel_own_tid(const char *tid)
{
	return (uint32_t)rt_own_pid(atoi(tid));
}

/* A name may contain anything and is in parentheses; the state follows. */
static void read_stat(FILE *f, struct kernel_thread *t)
{
	char text[256] = "", *begin, *end;
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	text[n] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (!begin || !end || end < begin || end[1] != ' ')
		return;
	*end = '\0';
	snprintf(t->name, sizeof(t->name), "%s", begin + 1);
	t->state = end[2];
}

static long read_call(pid_t pid, const char *tid)
{
	FILE *f = open_file(pid, tid, "syscall");
	long call;

	if (!f || fscanf(f, "%ld", &call) != 1) /* "running", or this user may not read it */
		call = -1;
	if (f)
		fclose(f);
	return call;
}

/* False: it has ended. */
static bool read_thread(pid_t pid, const char *tid, struct kernel_thread *t)
{
	FILE *f = open_file(pid, tid, "stat");

	*t = (struct kernel_thread){.call = -1};
	if (!f)
		return false;
	read_stat(f, t);
	fclose(f);
	t->tid = kernel_own_tid(tid);
	if (strchr("SD", t->state))
		t->call = read_call(pid, tid);
	return t->tid && t->state && !strchr("ZX", t->state);
}

struct kernel_thread *kernel_threads(pid_t pid, unsigned *count)
{
	struct kernel_thread *list = NULL, *t;
	struct dirent *e;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	*count = 0;
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		t = rt_array_add(list, *count);
		if (!t)
			break;
		*count -= !read_thread(pid, e->d_name, t);
	}
	if (d)
		closedir(d);
	return list;
}

void kernel_thread_name(char name[16], pid_t pid, uint32_t own_tid)
{
	struct kernel_thread *list = NULL, one;
	unsigned count = 0;
	char tid[16];

	*name = 0;
	snprintf(tid, sizeof(tid), "%u", own_tid);
	/* In the namespace of this process its number is the same. */
	if (read_thread(pid, tid, &one) && one.tid == own_tid)
		memcpy(name, one.name, sizeof(one.name));
	else
		list = kernel_threads(pid, &count);
	for (unsigned i = 0; i < count; i++)
		if (list[i].tid == own_tid)
			memcpy(name, list[i].name, sizeof(list[i].name));
	free(list);
}

char *kernel_state(char buf[KERNEL_TEXT_LEN], const struct kernel_thread *t)
{
	const char *text = t->state == 'R'   ? "running, or waiting for a CPU"
			   : t->state == 'T' ? "stopped by a signal"
			   : t->state == 't' ? "stopped by a debugger"
			   : t->state == 'D' ? "blocked in the kernel"
					     : "blocked";
	const char *name = NULL;

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == t->call)
			name = calls[i].name;
	if (name)
		snprintf(buf, KERNEL_TEXT_LEN, "%s, in %s()", text, name);
	else if (t->call >= 0)
		snprintf(buf, KERNEL_TEXT_LEN, "%s, in system call %ld", text, t->call);
	else
		snprintf(buf, KERNEL_TEXT_LEN, "%s", text);
	return buf;
}
