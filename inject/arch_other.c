/* SPDX-License-Identifier: BSD-3-Clause */
/* Other processors: every process is refused. */
#include <errno.h>

#include "arch.h"

uint64_t rt_arch_sigreturn(const struct rt_process *p)
{
	return 0;
}

bool rt_arch_is_sigreturn(pid_t pid, uint64_t at)
{
	return false;
}

bool rt_arch_is_syscall(pid_t pid, uint64_t pc)
{
	return false;
}

int rt_arch_prepare(
	pid_t tid, const struct rt_idle *idle, const struct rt_call *call, struct rt_frames *f)
{
	return -ENOTSUP;
}

int rt_arch_begin(pid_t tid, const struct rt_frames *f)
{
	return -ENOTSUP;
}
