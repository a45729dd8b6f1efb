/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collapse.h"
#include "common/pages.h"
#include "reader/tunables.h"

#define SIZE (8u * RT_HUGE_PAGE)

static void forever(void *arg)
{
	for (;;)
		pause();
}

/* Memory that processes share. */
struct shared {
	sem_t begun, go;
	int marked;
};

static struct shared *make_shared(void)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(s, MAP_FAILED);
	assert_int_equal(sem_init(&s->begun, 1, 0), 0);
	assert_int_equal(sem_init(&s->go, 1, 0), 0);
	return s;
}

/* As one that the kernel does not let end. */
static void until_released(void *arg)
{
	struct shared *s = arg;

	sem_post(&s->begun);
	while (sem_wait(&s->go))
		;
}

/* Waits until the one that was killed has ended; the next call then collects it. */
static void wait_for_the_killed(void)
{
	siginfo_t info;

	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | __WALL), 0);
}

static void mark(void *arg)
{
	((struct shared *)arg)->marked = 1;
}

static void nothing(void *arg)
{
}

static void on_alarm(int sig)
{
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A collapse that the kernel does not end must not keep its caller. */
static void test_that_does_not_end(void **state)
{
	double begin = seconds();

	assert_int_equal(rt_collapse_aside(forever, NULL, 50), -ETIMEDOUT);
	assert_true(seconds() - begin >= 0.05);
	assert_true(seconds() - begin < 30);
	/* It was killed, and no application waits for it. */
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	wait_for_the_killed();
	assert_int_equal(rt_collapse_aside(nothing, NULL, 60000), 0);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
}

static void test_signals_do_not_prolong_it(void **state)
{
	struct itimerval often = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
	double begin = seconds();

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(rt_collapse_aside(forever, NULL, 200), -ETIMEDOUT);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_true(seconds() - begin < 30);
	wait_for_the_killed();
	assert_int_equal(rt_collapse_aside(nothing, NULL, 60000), 0);
}

/* The end of a connection is the end of a session: what is left behind must not hold one. */
static void test_that_holds_no_descriptor(void **state)
{
	struct shared *s = make_shared();
	int pair[2];
	char c;
	pid_t recorder;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	recorder = fork();
	if (!recorder) {
		close(pair[0]);
		rt_collapse_aside(until_released, s, 60000);
		_exit(0);
	}
	close(pair[1]);
	while (sem_wait(&s->begun))
		;
	kill(recorder, SIGKILL);
	assert_int_equal(waitpid(recorder, NULL, 0), recorder);
	assert_int_equal(recv(pair[0], &c, 1, 0), 0); /* forever if the descriptor is held */
	sem_post(&s->go);
	close(pair[0]);
}

static void test_that_ends(void **state)
{
	struct shared *s = make_shared();

	assert_int_equal(rt_collapse_aside(mark, s, 60000), 0);
	assert_int_equal(s->marked, 1);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1); /* nothing is left */
	munmap(s, sizeof(*s));
}

static bool can_collapse(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	char line[128] = "";

	if (!f)
		return false;
	(void)!fgets(line, sizeof(line), f);
	fclose(f);
	return strstr(line, "[never]");
}

static unsigned long huge_kib(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long first, kib = 0;
	bool found = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-", &first) == 1 && strstr(line, "-"))
			found = first == (uintptr_t)p;
		if (found && sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
			break;
	}
	fclose(f);
	return kib;
}

/* The pages of the memfd are huge ones then, for this process, too. */
static void test_huge_pages(void **state)
{
	int fd = memfd_create("collapse", MFD_CLOEXEC);
	uint8_t *base, *at;

	if (!can_collapse())
		skip(); /* shmem_enabled gives huge pages by itself, or the kernel has none */
	assert_int_equal(ftruncate(fd, SIZE), 0);
	base = mmap(NULL, SIZE + RT_HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = base + (RT_HUGE_PAGE - (uintptr_t)base % RT_HUGE_PAGE) % RT_HUGE_PAGE;
	assert_ptr_equal(mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
	memset(at, 7, SIZE);
	assert_int_equal(huge_kib(at), 0);
	rt_reader_limits.collapse_ms = 60000; /* other programs may have the CPUs */
	rt_collapse(at, SIZE);
	for (unsigned i = 0; i < SIZE; i += 4096)
		assert_int_equal(at[i], 7);
	assert_true(huge_kib(at) > 0);
	munmap(base, SIZE + RT_HUGE_PAGE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_that_does_not_end),
		cmocka_unit_test(test_signals_do_not_prolong_it),
		cmocka_unit_test(test_that_holds_no_descriptor),
		cmocka_unit_test(test_that_ends),
		cmocka_unit_test(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
