/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "signals.h"
#include "util.h"

static int fd = -1;
static uint64_t end_ns; /* CLOCK_MONOTONIC; 0: none */
/* CLOCK_MONOTONIC; signals before it are the same wish as the one forgotten. */
static uint64_t again_ns;

int stop_catch(void)
{
	sigset_t set;

	end_ns = again_ns = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : 0;
}

/* The signal's default action stands already. */
static void on_signal(int number)
{
	const uint64_t one = 1;
	int saved = errno;

	(void)!write(fd, &one, sizeof(one));
	errno = saved;
}

int stop_catch_first(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	end_ns = again_ns = 0;
	signal(SIGPIPE, SIG_IGN);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], &action, NULL))
			return -errno;
	return 0;
}

/* Whether there was a signal. */
static bool drain(void)
{
	struct signalfd_siginfo info;
	bool any = false;

	while (read(fd, &info, sizeof(info)) == sizeof(info))
		any = true;
	return any;
}

bool stop_wait(uint64_t ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (again_ns && now_ns(CLOCK_MONOTONIC) < again_ns)
		(void)drain();
	ns = stop_left(ns);
	/* Not read: it stays so. */
	if (rt_poll_ns(&p, 1, ns) < 0)
		return poll(&p, 1, 0) > 0; /* interrupted by the signal, or by another one */
	return p.revents || (end_ns && !stop_left(1));
}

void stop_after(uint64_t ns)
{
	end_ns = ns ? now_ns(CLOCK_MONOTONIC) + ns : 0;
}

uint64_t stop_left(uint64_t ns)
{
	uint64_t now = end_ns ? now_ns(CLOCK_MONOTONIC) : 0, left = end_ns > now ? end_ns - now : 0;

	return end_ns && left < ns ? left : ns;
}

int stop_fd(void)
{
	return fd;
}

void stop_forget(void)
{
	if (drain())
		again_ns = now_ns(CLOCK_MONOTONIC) + STOP_AGAIN_NS;
}
