/* SPDX-License-Identifier: BSD-3-Clause */
/* A child process whose thread sleeps in a system call with known values in all registers. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hold.h"
#include "remote.h"

#define WAIT_MS 20000

/* Between parent and child. */
struct shared {
	int calls, wrong; /* calls of the function; what it found wrong */
	uint64_t argument;
	char text[64];
	int result;  /* result of the system call */
	int differs; /* registers that changed over it; -1: not over yet */
};

static struct shared *shared;

#if defined(__x86_64__)
static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

/* Not compiled for AVX-512: the compiler would use it outside of the assembly, too, on processors
 * that do not have it. */
static void clobber(void)
{
	if (has_avx512())
		__asm__ volatile("vpternlogd $0xff, %%zmm0, %%zmm0, %%zmm0\n\t"
				 "vmovdqa64 %%zmm0, %%zmm1\n\tvmovdqa64 %%zmm0, %%zmm7\n\t"
				 "vmovdqa64 %%zmm0, %%zmm15\n\tvmovdqa64 %%zmm0, %%zmm16\n\t"
				 "vmovdqa64 %%zmm0, %%zmm31\n\tkxnorw %%k1, %%k1, %%k1" ::
					 : "xmm0", "xmm1", "xmm7", "xmm15");
	else
		__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tmovdqa %%xmm0, %%xmm7\n\t"
				 "movdqa %%xmm0, %%xmm15" ::
					 : "xmm0", "xmm7", "xmm15");
	__asm__ volatile("fldpi\n\tfldpi\n\tstd\n\tcld" ::: "st");
}

/* In one piece, as the compiler may use registers in between. The test is compiled without red
 * zone, so that it can use it. */
#define CALL_WITH(load, store)                                                                    \
	__asm__ volatile(load "movq $0x7e7e, -64(%%rsp)\n\tsyscall\n\t"                           \
			      "movq %%rax, 64(%%r13)\n\tmovq %%rbx, 72(%%r13)\n\t"                \
			      "movq %%rbp, 80(%%r13)\n\tmovq %%r14, 88(%%r13)\n\t"                \
			      "movq %%r15, 96(%%r13)\n\tmovq -64(%%rsp), %%rax\n\t"               \
			      "movq %%rax, 104(%%r13)\n\tstmxcsr 112(%%r13)\n\t" store            \
			 :                                                                        \
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(in), "r"(out), \
			 "b"(0xbbbb), "r"(r14), "r"(r15)                                          \
			 : "rcx", "r11", "xmm7", "xmm15", "memory")

struct registers {
	uint64_t vector[8];
	uint64_t rax, rbx, rbp, r14, r15, red;
	uint32_t mxcsr, k;
	uint64_t high[8];
};

/* Makes the call with known values in registers and below the stack pointer. Returns its result;
 * *differs: which values changed. */
/* Not instrumented, and without any call once the registers are filled, which would change them. */
__attribute__((noinline, no_sanitize_thread)) static long call_with_values(
	long nr, long a, long b, long c, long d, int *differs)
{
	struct registers given = {.mxcsr = 0x3f80, .k = 0x5a5a}, got = {0};
	const bool wide = has_avx512();
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 0;
	register struct registers *in __asm__("r12") = &given;
	register struct registers *out __asm__("r13") = &got;
	register long r14 __asm__("r14") = 0x1414;
	register long r15 __asm__("r15") = 0x1515;

	for (unsigned i = 0; i < 8; i++)
		given.vector[i] = 0x0101010101010101ull * (i + 3);
	if (wide)
		CALL_WITH("ldmxcsr 112(%%r12)\n\tvmovdqu64 (%%r12), %%zmm7\n\t"
			  "vmovdqu64 (%%r12), %%zmm31\n\tkmovw 116(%%r12), %%k1\n\t",
			"vmovdqu64 %%zmm7, (%%r13)\n\tvmovdqu64 %%zmm31, 120(%%r13)\n\t"
			"kmovw %%k1, 116(%%r13)\n\t");
	else
		CALL_WITH("ldmxcsr 112(%%r12)\n\tmovdqu (%%r12), %%xmm7\n\t",
			"movdqu %%xmm7, (%%r13)\n\t");
	*differs = memcmp(given.vector, got.vector, wide ? 64 : 16) ? 1 : 0;
	if (wide) {
		*differs |= memcmp(given.vector, got.high, 64) ? 2 : 0;
		*differs |= (uint16_t)got.k != given.k ? 4 : 0;
	}
	*differs |= got.mxcsr != given.mxcsr ? 8 : 0;
	*differs |= got.red != 0x7e7e ? 16 : 0;
	*differs |= got.rbx != 0xbbbb || got.r14 != 0x1414 || got.r15 != 0x1515 ? 32 : 0;
	return (long)got.rax;
}
#else
static void clobber(void)
{
	__asm__ volatile("movi v0.16b, #0xff\n\tmovi v8.16b, #0xff\n\tmovi v31.16b, #0xff" ::
				 : "v0", "v8", "v31");
}

static long call_with_values(long nr, long a, long b, long c, long d, int *differs)
{
	uint64_t in[2] = {0x1122334455667788, 0x99aabbccddeeff00}, out[2];
	long result;

	__asm__ volatile("ldr q8, %0\n\tldr q31, %0" ::"m"(in) : "v8", "v31");
	result = syscall(nr, a, b, c, d, 0);
	__asm__ volatile("str q31, %0" : "=m"(out));
	*differs = memcmp(in, out, sizeof(in)) != 0;
	return result;
}
#endif

/* Function that the thread is made to call. */
static void function(const char *text, uint64_t argument)
{
	sigset_t now;

	clobber();
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	shared->wrong = !sigismember(&now, SIGUSR1) || !sigismember(&now, SIGTERM);
	/* As the ABI has it; the compiler would align less than the caller promises. */
	shared->wrong += ((uintptr_t)__builtin_frame_address(0) & 15) != 0;
	snprintf(shared->text, sizeof(shared->text), "%s", text);
	shared->argument = argument;
	__atomic_fetch_add(&shared->calls, 1, __ATOMIC_SEQ_CST);
}

static void check_signals(const stack_t *own, const sigset_t *mask)
{
	sigset_t now;
	stack_t stack;

	sigaltstack(NULL, &stack);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	shared->differs += stack.ss_sp != own->ss_sp || stack.ss_size != own->ss_size ? 64 : 0;
	for (int s = 1; s < 32; s++)
		shared->differs += sigismember(&now, s) != sigismember(mask, s) ? 128 : 0;
}

static void child(long nr, int fd)
{
	static const int faults[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGSYS};
	static char stack[65536];
	stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t mask;
	int differs;

	/* cmocka's handlers would run the remaining tests in the child, too. */
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		signal(faults[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, nr == SYS_epoll_pwait ? "dpdk-intr" : "telemetry-v2");
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaltstack(&own, NULL);
	if (nr == SYS_epoll_pwait) {
		int set = epoll_create1(0);

		epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
		shared->result = (int)call_with_values(nr, set, (long)&event, 1, -1, &differs);
	} else {
		shared->result = (int)call_with_values(nr, fd, 0, 0, 0, &differs);
	}
	check_signals(&own, &mask);
	__atomic_fetch_add(&shared->differs, differs + 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

/* A socket on a name of its own. */
static int listen_on(struct sockaddr_un *addr, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	*len = sizeof(sa_family_t);
	assert_int_equal(bind(fd, (struct sockaddr *)addr, *len), 0);
	*len = sizeof(*addr);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, len), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static pid_t start(long nr, struct sockaddr_un *addr, socklen_t *len)
{
	int fd = listen_on(addr, len);
	struct rt_idle idle[RT_IDLE_MAX];
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	shared->differs = -1;
	pid = fork();
	if (!pid)
		child(nr, fd);
	close(fd);
	while (rt_idle_find(pid, idle) != 1) /* falling asleep wakes nobody */
		sched_yield();
	return pid;
}

static void finish(pid_t pid, const struct sockaddr_un *addr, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), status;

	assert_int_equal(connect(fd, (const struct sockaddr *)addr, len), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(shared->result > 0);
	assert_int_equal(shared->differs, 0);
	close(fd);
}

static void open_held(struct rt_process *p, pid_t pid, struct rt_call *c)
{
	c->hold = rt_hold(pid, WAIT_MS);
	assert_true(c->hold >= 0);
	assert_int_equal(rt_process_open(p, pid), 0);
	c->sigreturn = rt_arch_sigreturn(p);
	assert_true(c->sigreturn);
}

static void close_held(struct rt_process *p, struct rt_call *c)
{
	rt_process_close(p);
	close(c->hold);
}

static void call(pid_t pid, uint64_t argument, const char *text)
{
	struct rt_process p;
	struct rt_idle used;
	struct rt_call c = {.function = (uintptr_t)function, .args = {0, argument}, .text = text};
	int calls = shared->calls;

	open_held(&p, pid, &c);
	assert_int_equal(rt_remote_call(&p, &c, &used), 0);
	assert_int_equal(rt_remote_wait(pid, &used, WAIT_MS), 0);
	close_held(&p, &c);
	assert_int_equal(shared->calls, calls + 1);
	assert_int_equal(shared->wrong, 0);
	assert_int_equal(shared->argument, argument);
	assert_string_equal(shared->text, text);
}

static void calls_in(long nr)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(nr, &addr, &len);

	call(pid, 0x123456789abcdef0, "a text");
	call(pid, 7, "another one, which is not of the same length");
	for (int i = 0; i < 50; i++)
		call(pid, (uint64_t)i, "again");
	finish(pid, &addr, len);
}

static void test_accept(void **state)
{
	calls_in(SYS_accept);
}

static void test_epoll(void **state)
{
	calls_in(SYS_epoll_pwait);
}

/* The tracer ends at any moment: before, the system call goes on; afterwards, the function is
 * called and returns. */
static void test_tracer_is_killed(void **state)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(SYS_accept, &addr, &len);

	for (int i = 0; i < 100; i++) {
		pid_t tracer = fork();

		if (!tracer) {
			struct rt_idle used;
			struct rt_process p;
			struct rt_call c = {.function = (uintptr_t)function, .text = "by a tracer"};

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			open_held(&p, pid, &c);
			for (;;)
				rt_remote_call(&p, &c, &used);
		}
		usleep((unsigned)(rand() % 3000));
		kill(tracer, SIGKILL);
		waitpid(tracer, NULL, 0);
	}
	call(pid, 2, "by the last one");
	finish(pid, &addr, len);
}

static void test_busy_thread_is_left_alone(void **state)
{
	struct rt_process p;
	struct rt_idle used;
	struct rt_call c = {.function = (uintptr_t)function};
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "telemetry-v2");
		for (;;)
			;
	}
	open_held(&p, pid, &c);
	assert_int_equal(rt_remote_call(&p, &c, &used), -ENXIO);
	close_held(&p, &c);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Another tracer is waited for, and named. */
static void test_traced_process(void **state)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(SYS_accept, &addr, &len), tracer;
	struct rt_process p;
	struct rt_idle used;
	struct rt_call c = {.function = (uintptr_t)function};
	char none;
	int ready[2];

	assert_int_equal(pipe(ready), 0);
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_SEIZE, pid, NULL, NULL);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &none, 1), 1);
	open_held(&p, pid, &c);
	assert_int_equal(rt_remote_call(&p, &c, &used), -EBUSY);
	assert_int_equal(rt_remote_tracer(pid), tracer);
	close_held(&p, &c);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	call(pid, 3, "after it");
	finish(pid, &addr, len);
}

static void test_one_at_a_time(void **state)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(SYS_accept, &addr, &len), other;
	int hold, held[2];
	char none;

	assert_int_equal(pipe(held), 0);
	other = fork();
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rt_hold(pid, WAIT_MS);
		(void)!write(held[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(held[0], &none, 1), 1);
	hold = rt_hold(pid, 0);
	assert_int_equal(hold, -ETIMEDOUT);
	close(held[0]);
	close(held[1]);
	kill(other, SIGKILL);
	hold = rt_hold(pid, WAIT_MS);
	assert_true(hold >= 0);
	assert_true(rt_hold_is_same(hold));
	close(hold);
	waitpid(other, NULL, 0);
	finish(pid, &addr, len);
	assert_int_equal(rt_hold(pid, 0), -ESRCH);
}

/* The addresses are of what it ran before. */
static void test_exec_meanwhile(void **state)
{
	struct rt_process p;
	struct rt_idle used;
	struct rt_call c = {.function = (uintptr_t)function};
	int begin[2], until[2]; /* the program's start closes the latter */
	char none;
	pid_t pid;

	assert_int_equal(pipe(begin), 0);
	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!read(begin[0], &none, 1);
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	open_held(&p, pid, &c);
	assert_true(rt_hold_is_same(c.hold));
	assert_int_equal(write(begin[1], "", 1), 1);
	close(until[1]);
	assert_int_equal(read(until[0], &none, 1), 0);
	assert_false(rt_hold_is_same(c.hold));
	assert_int_equal(rt_remote_call(&p, &c, &used), -ESRCH);
	close_held(&p, &c);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(begin[0]);
	close(begin[1]);
	close(until[0]);
}

/* As after a second mapping of libc that is not executable. */
static void test_addresses_without_code(void **state)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(SYS_accept, &addr, &len);
	struct rt_process p;
	struct rt_idle used;
	struct rt_call c = {.function = (uintptr_t)&shared};
	uint64_t sigreturn;

	open_held(&p, pid, &c);
	assert_int_equal(rt_remote_call(&p, &c, &used), -EADDRNOTAVAIL);
	c.function = (uintptr_t)function;
	sigreturn = c.sigreturn;
	c.sigreturn = (uintptr_t)function;
	assert_int_equal(rt_remote_call(&p, &c, &used), -EADDRNOTAVAIL);
	c.sigreturn = sigreturn;
	close_held(&p, &c);
	call(pid, 4, "code");
	finish(pid, &addr, len);
}

/* No reason to wait for a thread that sleeps. */
static void test_not_permitted(void **state)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(SYS_accept, &addr, &len), other;
	int status;

	if (geteuid())
		skip();
	other = fork();
	if (!other) {
		struct rt_idle idle[RT_IDLE_MAX];

		if (setuid(65534))
			_exit(1);
		_exit(rt_idle_find(pid, idle) != -EPERM || rt_hold(pid, 0) != -EACCES);
	}
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	finish(pid, &addr, len);
}

static void test_stopped_process(void **state)
{
	struct sockaddr_un addr;
	socklen_t len;
	pid_t pid = start(SYS_accept, &addr, &len);
	struct rt_process p;
	struct rt_idle used;
	struct rt_call c = {.function = (uintptr_t)function};
	int status;

	open_held(&p, pid, &c);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(rt_remote_call(&p, &c, &used), -EHOSTDOWN);
	close_held(&p, &c);
	kill(pid, SIGCONT);
	call(pid, 5, "continued");
	finish(pid, &addr, len);
}

static int set_up(void **state)
{
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_tracer_is_killed),
		cmocka_unit_test(test_busy_thread_is_left_alone),
		cmocka_unit_test(test_traced_process),
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_exec_meanwhile),
		cmocka_unit_test(test_addresses_without_code),
		cmocka_unit_test(test_not_permitted),
		cmocka_unit_test(test_stopped_process),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
