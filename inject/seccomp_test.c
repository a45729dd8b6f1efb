/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pcap/pcap.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "seccomp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint32_t run(const struct sock_filter *f, size_t count, int nr)
{
	struct seccomp_data d = {.nr = nr, .arch = 7, .args = {0x1122334455667788}};

	assert_true(bpf_validate((const struct bpf_insn *)f, (int)count));
	return rt_seccomp_run((const struct bpf_insn *)f, &d);
}

static_assert(sizeof(struct bpf_insn) == sizeof(struct sock_filter), "one layout");

/* As libseccomp makes them: the architecture, then a tree of comparisons. */
static void test_tree(void **state)
{
	const struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 100, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 15, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	assert_int_equal(run(f, COUNT(f), 3), SECCOMP_RET_ALLOW);
	assert_int_equal(run(f, COUNT(f), 15), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(run(f, COUNT(f), 101), SECCOMP_RET_ERRNO | 1);
}

static void test_arithmetic_and_memory(void **state)
{
	const struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 8),
		BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_IMM, 0),
		BPF_STMT(BPF_MISC | BPF_TXA, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};

	assert_int_equal(run(f, COUNT(f), 3), 0x8888);
}

/* Runs with a filter of its own until it is killed. */
static pid_t filtered(const struct sock_filter *f, size_t count)
{
	const struct sock_fprog p = {(unsigned short)count, (struct sock_filter *)(uintptr_t)f};
	pid_t child = fork();

	if (child)
		return child;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		_exit(1);
	raise(SIGSTOP);
	_exit(0);
}

static const char *forbids(const struct sock_filter *f, size_t count)
{
	pid_t child = filtered(f, count);
	const char *name;
	int status;

	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
	assert_int_equal(waitpid(child, &status, __WALL), child);
	name = rt_seccomp_forbids(child);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return name;
}

/* Acts at one call where any of these bits of an argument are set; 0: at any. */
static const char *forbids_by(uint32_t action, int nr, unsigned arg, uint32_t bits)
{
	const struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			(uint32_t)offsetof(struct seccomp_data, args[arg])),
		BPF_JUMP(bits ? BPF_JMP | BPF_JSET | BPF_K : BPF_JMP | BPF_JGE | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return forbids(f, COUNT(f));
}

static const char *forbids_call(int nr, unsigned arg, uint32_t bits)
{
	return forbids_by(SECCOMP_RET_KILL_PROCESS, nr, arg, bits);
}

/* It may be stopped, and would keep the thread in dlopen() with the lock of the dynamic loader. */
static void test_supervisor(void **state)
{
	if (geteuid())
		skip();
	assert_string_equal(forbids_by(SECCOMP_RET_USER_NOTIF, SYS_openat, 0, 0), "openat");
	assert_null(forbids_by(SECCOMP_RET_USER_NOTIF, SYS_mount, 0, 0));
	assert_null(forbids_by(SECCOMP_RET_LOG, SYS_openat, 0, 0));
}

static void test_calls_of_the_probe(void **state)
{
	if (geteuid())
		skip(); /* the kernel shows filters to root only */
	assert_string_equal(forbids_call(SYS_membarrier, 0, 0), "membarrier");
	assert_string_equal(forbids_call(SYS_clone3, 0, 0), "clone3");
	assert_string_equal(forbids_call(SYS_mmap, 2, PROT_EXEC), "mmap");
	assert_string_equal(forbids_call(SYS_mprotect, 2, PROT_READ), "mprotect");
	assert_string_equal(forbids_call(SYS_mprotect, 2, PROT_EXEC), "mprotect");
#ifdef SYS_readlink
	assert_string_equal(forbids_call(SYS_readlink, 0, 0), "readlink");
#endif
	assert_null(forbids_call(SYS_reboot, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_arithmetic_and_memory),
		cmocka_unit_test(test_calls_of_the_probe),
		cmocka_unit_test(test_supervisor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
