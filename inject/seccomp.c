/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters are classic BPF on struct seccomp_data. The kernel shows them to tracers with
 * CAP_SYS_ADMIN. Such a filter usually stems from the start of a container, which DPDK's own
 * dlopen() of drivers has passed; one of the application may be narrower.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "process.h"
#include "seccomp.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* What dlopen() and the constructors call; the first is how the thread returns. */
static const struct {
	int nr;
	const char *name;
} calls[] = {{SYS_rt_sigreturn, "rt_sigreturn"}, {SYS_openat, "openat"}, {SYS_read, "read"},
	{SYS_close, "close"}, {SYS_mmap, "mmap"}, {SYS_mprotect, "mprotect"},
	{SYS_munmap, "munmap"}, {SYS_futex, "futex"}, {SYS_write, "write"}};

static uint32_t alu(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD: return a + b;
	case BPF_SUB: return a - b;
	case BPF_MUL: return a * b;
	case BPF_DIV: return b ? a / b : 0;
	case BPF_OR: return a | b;
	case BPF_AND: return a & b;
	case BPF_XOR: return a ^ b;
	case BPF_LSH: return b < 32 ? a << b : 0;
	case BPF_RSH: return b < 32 ? a >> b : 0;
	default: return -a;
	}
}

static bool jumps(uint16_t op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ   ? a == b
	       : op == BPF_JGT ? a > b
	       : op == BPF_JGE ? a >= b
			       : (a & b) != 0;
}

/* What the filter returns for this data; unknown instructions allow the call. */
uint32_t rt_seccomp_run(const void *program, size_t count, const void *data, size_t size)
{
	const struct sock_filter *insns = program;
	uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = {0};

	for (size_t pc = 0; pc < count; pc++) {
		const struct sock_filter *i = &insns[pc];
		uint32_t operand = BPF_SRC(i->code) == BPF_X ? x : i->k;

		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			if (BPF_MODE(i->code) == BPF_ABS && i->k <= size - 4)
				memcpy(&a, (const char *)data + i->k, 4);
			else
				a = BPF_MODE(i->code) == BPF_MEM   ? mem[i->k % BPF_MEMWORDS]
				    : BPF_MODE(i->code) == BPF_LEN ? (uint32_t)size
								   : i->k;
			break;
		case BPF_LDX:
			x = BPF_MODE(i->code) == BPF_MEM   ? mem[i->k % BPF_MEMWORDS]
			    : BPF_MODE(i->code) == BPF_LEN ? (uint32_t)size
							   : i->k;
			break;
		case BPF_ST: mem[i->k % BPF_MEMWORDS] = a; break;
		case BPF_STX: mem[i->k % BPF_MEMWORDS] = x; break;
		case BPF_ALU: a = alu(BPF_OP(i->code), a, operand); break;
		case BPF_JMP:
			pc += BPF_OP(i->code) == BPF_JA            ? i->k
			      : jumps(BPF_OP(i->code), a, operand) ? i->jt
								   : i->jf;
			break;
		case BPF_RET: return BPF_RVAL(i->code) == BPF_A ? a : i->k;
		default:
			if (BPF_MISCOP(i->code) == BPF_TAX)
				x = a;
			else
				a = x;
		}
	}
	return SECCOMP_RET_ALLOW;
}

static bool ends(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
	       action == SECCOMP_RET_TRAP;
}

const char *rt_seccomp_forbids(pid_t tid)
{
	struct sock_filter *program;

	for (unsigned n = 0;; n++) {
		long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)n, NULL);

		program = count > 0 ? calloc((size_t)count, sizeof(*program)) : NULL;
		if (!program)
			return NULL;
		ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)n, program);
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			struct seccomp_data d = {.nr = calls[i].nr, .arch = ARCH};

			if (ends(rt_seccomp_run(program, (size_t)count, &d, sizeof(d)))) {
				free(program);
				return calls[i].name;
			}
		}
		free(program);
	}
}

int rt_judge_seccomp(pid_t pid, char *err, size_t errlen)
{
	char mode[16];

	rt_process_status(pid, "Seccomp", mode, sizeof(mode));
	if (atoi(mode) != SECCOMP_MODE_STRICT)
		return 0;
	snprintf(err, errlen, "it runs in strict seccomp mode; start it with -d");
	return -EPERM;
}
