/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/util.h"
#include "signals.h"

#define STALLED_MAX 4 /* seconds */

struct sink_patience signals_patience;
static volatile sig_atomic_t count, counts_wanted, file_wanted;
static uint64_t first_ns; /* CLOCK_MONOTONIC, of the first that ends */
static struct ringtap_capture *capture;
static int event = -1; /* becomes readable by a signal; stays open, as handlers write to it */

static void on_signal(int signal)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!count)
		first_ns = now;
	else if (now - first_ns < STOP_AGAIN_NS)
		return;
	count++;
	if (count > 1)
		signals_patience.give_up = 1;
	ringtap_capture_break(capture);
	(void)eventfd_write(event, 1);
	alarm(1);
}

static void on_request(int signal)
{
	if (signal == SIGUSR1)
		counts_wanted = 1;
	else
		file_wanted = 1;
	ringtap_capture_break(capture);
}

/* A write that begins just after the flag was read would block if its reader does: it
 * is interrupted again and again. */
static void on_alarm(int signal)
{
	if (++signals_patience.stalled >= STALLED_MAX)
		signals_patience.give_up = 1;
	alarm(1);
}

static void set_all(const struct sigaction *requests, const struct sigaction *ends)
{
	sigaction(SIGUSR1, requests, NULL);
	sigaction(SIGUSR2, requests, NULL);
	sigaction(SIGINT, ends, NULL);
	sigaction(SIGTERM, ends, NULL);
	sigaction(SIGHUP, ends, NULL);
}

void signals_catch(struct ringtap_capture *cap)
{
	/* No SA_RESTART: a blocked write must come back. */
	const struct sigaction end = {.sa_handler = on_signal};
	const struct sigaction again = {.sa_handler = on_alarm};
	const struct sigaction request = {.sa_handler = on_request, .sa_flags = SA_RESTART};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	eventfd_t earlier;

	capture = cap;
	count = counts_wanted = file_wanted = 0;
	signals_patience = (struct sink_patience){0};
	if (event < 0)
		event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)eventfd_read(event, &earlier);
	ringtap_break_fd(event);
	sigaction(SIGALRM, &again, NULL);
	set_all(&request, &end);
	/* A closed pipe and a file size limit are errors of the write. */
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
}

void signals_attached(void)
{
	ringtap_break_fd(-1);
}

void signals_release(void)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	signals_attached();
	alarm(0);
	sigaction(SIGALRM, &ignore, NULL);
	set_all(&ignore, &standard);
}

int signals_count(void)
{
	return count;
}

static bool take(volatile sig_atomic_t *wanted)
{
	bool was = *wanted;

	*wanted = 0;
	return was;
}

bool signals_want_counts(void)
{
	return take(&counts_wanted);
}

bool signals_want_file(void)
{
	return take(&file_wanted);
}
