/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What depends on the processor: a stopped thread is made to call a function and to return to its
 * system call, without a tracer. Its stack gets two signal frames. The first rt_sigreturn(), which
 * the registers are set to, begins the function with all signals blocked; the function returns to
 * the second, which restores everything and issues the system call again.
 */
#ifndef RINGTAP_INJECT_ARCH_H
#define RINGTAP_INJECT_ARCH_H

#include "idle.h"
#include "process.h"

/* A function of the process, with two integer arguments. */
struct rt_call {
	uint64_t function;
	uint64_t args[2];
	const char *text;   /* if not NULL, args[0] becomes its address in the process */
	uint64_t sigreturn; /* address of code that calls rt_sigreturn() */
	int hold;           /* result of rt_hold(), from before the addresses were found */
};

#define RT_FRAMES_MAX (32u << 10) /* bytes */

struct rt_frames {
	uint64_t at; /* where the bytes go */
	size_t size;
	uint64_t regs[64]; /* to continue with; the processor's */
	_Alignas(64) char bytes[RT_FRAMES_MAX];
};

/* Finds code that calls rt_sigreturn(). 0: there is none. */
uint64_t rt_arch_sigreturn(const struct rt_process *p);
/* Whether the code at this address does that. */
bool rt_arch_is_sigreturn(pid_t pid, uint64_t at);

/* Whether the instruction before this one is a system call. */
bool rt_arch_is_syscall(pid_t pid, uint64_t pc);

/* Checks that a thread which this process has stopped is still in the system call, and makes the
 * frames. 0; -EAGAIN: it is not; -ENOTSUP: its registers cannot be restored; -errno. */
int rt_arch_prepare(
	pid_t tid, const struct rt_idle *idle, const struct rt_call *call, struct rt_frames *f);
/* Sets the registers, after the bytes have been written. */
int rt_arch_begin(pid_t tid, const struct rt_frames *f);

#endif
