/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If this process is killed before PTRACE_SETREGS, the kernel lets the thread go on in its system
 * call (epoll_wait() returns EINTR, which EAL expects); afterwards the thread returns by itself.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/status.h"
#include "hold.h"
#include "remote.h"
#include "seccomp.h"

#define PATIENCE_MS  2000        /* for a thread that is asleep */
#define STOP_MS      5000        /* until it has stopped; on a busy machine it waits for a CPU */
#define SPIN_NS      1000000     /* that it usually takes at most */
#define REFUSED_MS   50          /* another one that attaches needs a millisecond */
#define STACK_NEEDED (256 << 10) /* bytes; dlopen() and the probe's constructors */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static bool has_stack(const struct rt_process *p, uint64_t sp)
{
	const struct rt_map *stack = rt_process_at(p, sp);

	/* The main thread's grows. */
	return stack && (!strcmp(stack->path, "[stack]") || sp - stack->start >= STACK_NEEDED);
}

/* Waits for the stop of PTRACE_INTERRUPT. 0; -EAGAIN, -EHOSTDOWN: it stopped for a signal, or
 * with its process, and was let go; -ETIMEDOUT; -ESRCH. */
static int wait_for_stop(pid_t tid)
{
	uint64_t begin = now_ns();
	int status, ret;

	while (!(ret = waitpid(tid, &status, WNOHANG | __WALL))) {
		uint64_t ns = now_ns() - begin;

		if (ns > STOP_MS * 1000000ull)
			return -ETIMEDOUT;
		if (ns < SPIN_NS)
			sched_yield();
		else
			pause_ns(100000);
	}
	if (ret < 0 || !WIFSTOPPED(status))
		return -ESRCH;
	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_STOP << 8))
		return 0;
	/* A group stop, or a signal that is about to be delivered. */
	ptrace(PTRACE_DETACH, tid, NULL, status >> 16 ? 0 : (void *)(intptr_t)WSTOPSIG(status));
	return status >> 16 ? -EHOSTDOWN : -EAGAIN;
}

/* Checks that a stopped thread still belongs to the process, that this runs the program of the
 * addresses, and that there is code at them. 0; -ESRCH; -EAGAIN: the thread has
 * ended; -EADDRNOTAVAIL. Not the bytes of
 * the function: a uprobe or a breakpoint in dlopen() changes them. */
static int check_same(
	const struct rt_process *p, const struct rt_call *call, const struct rt_idle *idle)
{
	const struct rt_map *code = rt_process_at(p, call->function);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)p->pid, (int)idle->tid);
	if (!rt_hold_is_same(call->hold))
		return -ESRCH;
	if (access(path, F_OK))
		return -EAGAIN;
	return code && code->perms[2] == 'x' && rt_arch_is_sigreturn(p->pid, call->sigreturn)
		       ? 0
		       : -EADDRNOTAVAIL;
}

static int change(
	const struct rt_process *p, const struct rt_call *call, const struct rt_idle *idle)
{
	static struct rt_frames f; /* large */
	int ret = check_same(p, call, idle);

	if (!ret && rt_seccomp_forbids(idle->tid))
		ret = -EACCES;
	ret = ret ? ret : rt_arch_prepare(idle->tid, idle, call, &f);
	if (!ret)
		ret = rt_process_write(p->pid, f.at, f.bytes, f.size);
	return ret ? ret : rt_arch_begin(idle->tid, &f);
}

static int stop_and_change(
	const struct rt_process *p, const struct rt_call *call, const struct rt_idle *idle)
{
	int ret;

	if (ptrace(PTRACE_SEIZE, idle->tid, NULL, NULL))
		return errno == ESRCH ? -EAGAIN : -errno;
	/* Without a stop there is no PTRACE_DETACH: only the end of this process detaches. */
	if (ptrace(PTRACE_INTERRUPT, idle->tid, NULL, NULL))
		return -EAGAIN;
	ret = wait_for_stop(idle->tid);
	if (ret)
		return ret == -ESRCH ? -EAGAIN : ret;
	ret = change(p, call, idle);
	ptrace(PTRACE_DETACH, idle->tid, NULL, NULL);
	return ret;
}

/* -ENXIO: none sleeps; else as rt_remote_call(). */
static int try_all(const struct rt_process *p, const struct rt_call *call, struct rt_idle *used)
{
	struct rt_idle idle[RT_IDLE_MAX];
	int count = rt_idle_find(p->pid, idle), ret = -ENXIO;

	if (!rt_hold_is_same(call->hold))
		return -ESRCH;
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		if (!has_stack(p, idle[i].sp) || !rt_arch_is_syscall(p->pid, idle[i].pc))
			continue;
		*used = idle[i];
		ret = stop_and_change(p, call, &idle[i]);
		if (ret != -EAGAIN)
			return ret;
	}
	return ret;
}

pid_t rt_remote_tracer(pid_t pid)
{
	struct rt_idle idle[RT_IDLE_MAX];
	int count = rt_idle_find(pid, idle);
	char value[32];

	rt_process_status(pid, "TracerPid", value, sizeof(value));
	for (int i = 0; i < count && !atoi(value); i++)
		rt_process_status(idle[i].tid, "TracerPid", value, sizeof(value));
	return atoi(value);
}

static bool is_passing(int ret)
{
	return ret == -EAGAIN || ret == -EBUSY || ret == -ENXIO || ret == -EHOSTDOWN;
}

static bool is_stopped(pid_t pid)
{
	char state[32];

	rt_process_status(pid, "State", state, sizeof(state));
	return state[0] == 'T';
}

int rt_remote_call(const struct rt_process *p, const struct rt_call *call, struct rt_idle *used)
{
	uint64_t begin = now_ns();

	for (;;) {
		int ret = try_all(p, call, used);
		uint64_t ms = (now_ns() - begin) / 1000000;

		/* Not permitted, or traced by another process: that is not to be seen any more
		 * when it has ended meanwhile. */
		if (ret == -EPERM && rt_remote_tracer(p->pid))
			ret = -EBUSY;
		/* On aarch64 a stopped thread shows no system call. */
		if (ret == -ENXIO && is_stopped(p->pid))
			ret = -EHOSTDOWN;
		if (ret == -EPERM ? ms >= REFUSED_MS : !is_passing(ret) || ms >= PATIENCE_MS)
			return ret == -EAGAIN ? -ENXIO : ret;
		pause_ns(1000000);
	}
}

int rt_remote_wait(pid_t pid, const struct rt_idle *used, int timeout_ms)
{
	uint64_t until = now_ns() + (uint64_t)timeout_ms * 1000000;

	for (;;) {
		int ret = rt_idle_again(pid, used);

		if (ret)
			return ret < 0 ? ret : 0;
		if (now_ns() >= until)
			return -ETIMEDOUT;
		pause_ns(1000000);
	}
}
