/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <unistd.h>

#include "record.h"

#define STALLED_MAX 4 /* seconds */

struct sink_patience signals_patience;
static volatile sig_atomic_t count;
static struct ringtap_capture *capture;

static void on_signal(int signal)
{
	count++;
	if (count > 1)
		signals_patience.give_up = 1;
	ringtap_capture_break(capture);
	alarm(1);
}

/* A write that begins just after the flag was read would block if its reader does: it
 * is interrupted again and again. */
static void on_alarm(int signal)
{
	if (++signals_patience.stalled >= STALLED_MAX)
		signals_patience.give_up = 1;
	alarm(1);
}

void signals_catch(struct ringtap_capture *cap)
{
	/* No SA_RESTART: a blocked write must come back. */
	const struct sigaction end = {.sa_handler = on_signal};
	const struct sigaction again = {.sa_handler = on_alarm};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	capture = cap;
	count = 0;
	signals_patience = (struct sink_patience){0};
	sigaction(SIGALRM, &again, NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	/* A closed pipe and a file size limit are errors of the write. */
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
}

void signals_release(void)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	alarm(0);
	sigaction(SIGALRM, &ignore, NULL);
	sigaction(SIGINT, &standard, NULL);
	sigaction(SIGTERM, &standard, NULL);
	sigaction(SIGHUP, &standard, NULL);
}

int signals_count(void)
{
	return count;
}
