/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters are classic BPF on struct seccomp_data. The kernel shows them to tracers with
 * CAP_SYS_ADMIN. Such a filter usually stems from the start of a container, which DPDK's own
 * dlopen() of drivers has passed; one of the application may be narrower.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pcap/pcap.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/calls.h"
#include "common/status.h"
#include "process.h"
#include "seccomp.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define FIRST_USER_NS 0xeffffffdu /* inode; PROC_USER_INIT_INO of Linux */

#define CALL(name, ...)             \
	{                           \
		SYS_##name, #name,  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}

/* System calls of dlopen(), the constructors, the control thread and captures, as strace
 * shows, with the arguments that filters judge; the first is how the thread returns. */
static const struct {
	int nr;
	const char *name;
	uint64_t args[6];
} calls[] = {
	CALL(rt_sigreturn),
	/* To load libraries */
	CALL(openat, (uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC),
	CALL(openat, (uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY),
	CALL(read),
	CALL(close),
	CALL(newfstatat),
	CALL(brk),
	CALL(munmap),
	CALL(futex),
	CALL(write),
	CALL(getdents64),
	CALL(prctl, PR_CAPBSET_READ),
	CALL(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE),
	CALL(mmap, 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE),
	CALL(mmap, 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE),
	CALL(mmap, 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS,
		(uint64_t)-1),
	CALL(mprotect, 4096, 4096, PROT_READ),
	CALL(mprotect, 4096, 4096, PROT_READ | PROT_WRITE),
#ifdef SYS_access
	CALL(access),
	CALL(readlink),
	CALL(poll),
	CALL(unlink),
#else
	CALL(faccessat, (uint64_t)AT_FDCWD),
	CALL(readlinkat, (uint64_t)AT_FDCWD),
	CALL(ppoll),
	CALL(unlinkat, (uint64_t)AT_FDCWD),
#endif
	/* The control thread */
	CALL(clone3),
	CALL(rseq),
	CALL(set_robust_list),
	CALL(rt_sigprocmask),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(sched_yield),
	CALL(membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
	CALL(membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED),
	CALL(clock_nanosleep),
	CALL(madvise, 4096, 4096, MADV_DONTNEED),
	CALL(getpid),
	CALL(gettid),
	CALL(exit),
	CALL(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK),
	CALL(bind),
	CALL(listen),
	CALL(accept4),
	CALL(getsockopt, 0, SOL_SOCKET, SO_PEERCRED),
	CALL(getsockname),
	CALL(sendmsg),
	CALL(recvmsg),
	/* Captures */
	CALL(eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK),
	CALL(memfd_create, 0, MFD_CLOEXEC | MFD_ALLOW_SEALING),
	CALL(ftruncate),
	CALL(fchmod),
	CALL(fstatfs),
	CALL(flock, 0, LOCK_EX | LOCK_NB),
	CALL(lseek),
	CALL(fcntl, 0, F_GETFL),
	CALL(fcntl, 0, F_ADD_SEALS),
	CALL(fcntl, 0, F_GET_SEALS),
	CALL(mmap, 0, 4096, PROT_NONE, MAP_SHARED),
	CALL(mmap, 0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, (uint64_t)-1),
	CALL(madvise, 4096, 4096, MADV_POPULATE_WRITE),
	/* Code of filters */
	CALL(mprotect, 4096, 4096, PROT_READ | PROT_EXEC),
	CALL(mlock),
	CALL(munlock),
};

/* Runs the filter for this call. libpcap reads words as packets have them: big-endian. */
uint32_t rt_seccomp_run(const struct bpf_insn *program, const struct seccomp_data *call)
{
	uint32_t words[sizeof(*call) / 4];

	memcpy(words, call, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = htobe32(words[i]);
	return bpf_filter(program, (const u_char *)words, sizeof(words), sizeof(words));
}

static bool ends(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	/* A supervisor may never answer: the thread would keep the lock of the dynamic loader. */
	return action == SECCOMP_RET_USER_NOTIF || action == SECCOMP_RET_KILL_PROCESS ||
	       action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP;
}

static const char *forbidden(const struct bpf_insn *program, size_t count)
{
	/* The kernel has checked it; libpcap does not, when it runs one. */
	if (!bpf_validate(program, (int)count))
		return "any";
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct seccomp_data d = {.nr = calls[i].nr, .arch = ARCH};

		memcpy(d.args, calls[i].args, sizeof(d.args));
		if (ends(rt_seccomp_run(program, &d)))
			return calls[i].name;
	}
	return NULL;
}

const char *rt_seccomp_forbids(pid_t tid)
{
	char mode[16];

	/* Without the capability, the kernel does not even show that there are none. */
	rt_process_status(tid, "Seccomp", mode, sizeof(mode));
	if (mode[0] && atoi(mode) == SECCOMP_MODE_DISABLED)
		return NULL; /* an empty one could not be read */
	for (unsigned n = 0;; n++) {
		long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)n, NULL);
		struct bpf_insn *program;
		const char *name;

		/* -EINVAL: it has no filters; -ENOENT: no more; or they cannot be read. */
		if (count <= 0)
			return errno == EINVAL || errno == ENOENT || errno == ESRCH ? NULL : "any";
		program = calloc((size_t)count, sizeof(*program));
		if (!program)
			return "any";
		if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)n, program) == count)
			name = forbidden(program, (size_t)count);
		else
			name = "any";
		free(program);
		if (name)
			return name;
	}
}

/* The kernel shows filters to processes that have this capability in the first user namespace, and
 * no filter themselves. */
static bool can_read_filters(void)
{
	char value[64];
	struct stat st;

	if (!stat("/proc/self/ns/user", &st) && st.st_ino != FIRST_USER_NS)
		return false;
	rt_process_status(getpid(), "Seccomp", value, sizeof(value));
	if (atoi(value))
		return false;
	rt_process_status(getpid(), "CapEff", value, sizeof(value));
	return strtoull(value, NULL, 16) >> CAP_SYS_ADMIN & 1;
}

int rt_judge_seccomp(pid_t pid, char *err, size_t errlen)
{
	char mode[16];

	rt_process_status(pid, "Seccomp", mode, sizeof(mode));
	if (atoi(mode) == SECCOMP_MODE_STRICT)
		snprintf(err, errlen, "it runs in strict seccomp mode; start it with -d");
	else if (atoi(mode) == SECCOMP_MODE_FILTER && !can_read_filters())
		snprintf(err, errlen,
			"its seccomp filter, which might end it, cannot be read; run ringtap as "
			"root with CAP_SYS_ADMIN, outside of containers, or start it with -d");
	else
		return 0;
	return -EPERM;
}
