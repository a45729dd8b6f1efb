/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "counts.h"
#include "file.h"
#include "loss.h"
#include "newcomers.h"
#include "record.h"
#include "report.h"
#include "signals.h"
#include "base/util.h"

#define RUNS_MAX         256
#define BEHIND_NS        NS_PER_S
#define TICK_NS          (NS_PER_S / 4)
#define REPORT_SPARSE_NS (5 * NS_PER_S) /* where stderr is not a terminal */
/* Often enough for the counts of a capture that breaks off, too seldom to cost anything. */
#define ISB_NS (10 * NS_PER_S)

static void failed(struct recorder *r, enum end_reason why, int error)
{
	const struct file *f = files_last(&r->files);
	const char *name = r->cfg->split               ? r->path
			   : f && strcmp(f->name, "-") ? f->name
						       : "standard output";

	recorder_end(r, why, true);
	if (r->error)
		return;
	r->error = error;
	if (error == -ECANCELED)
		return;
	if (why == END_CORRUPT)
		message_print("%s: reading the ring: %s; what came before is saved",
			r->cfg->capture.command,
			*ringtap_capture_error(r->cap) ? ringtap_capture_error(r->cap)
						       : strerror(-error));
	else if (why == END_ERROR)
		message_print("%s: ending the capture: %s%s%s%s; packets and counts until then are "
			      "saved",
			r->cfg->capture.command, r->targets.count == 1 ? "application '" : "",
			r->targets.count == 1 ? r->targets.list[0].name : "",
			r->targets.count == 1 ? "': " : "an application: ",
			*ringtap_capture_error(r->cap) ? ringtap_capture_error(r->cap)
						       : strerror(-error));
	else if (error == -EPIPE) /* the summary says so */
		return;
	else if (error == -EFBIG)
		message_print(
			"%s: writing %s: the limit of file sizes is reached, see 'ulimit -f'; what "
			"was written before is whole",
			r->cfg->capture.command, name);
	else
		message_print("%s: writing %s: %s; what was written before is whole%s",
			r->cfg->capture.command, r->bad_path ? r->bad_path : name, strerror(-error),
			write_advice(error));
	r->error_text = strdup(message_last());
}

/* Errors of taking packets: broken ones are the ring's fault, the rest is the output's. */
static void check(struct recorder *r, int ret)
{
	if (ret)
		failed(r, ret == -EBADMSG ? END_CORRUPT : END_OUTPUT, ret);
}

/* before_ns: when the batch was asked for. An empty one says that no packet of before is left, but
 * for those of a thread that delays the merge, for half a second at most. */
static void note_emitted(
	struct recorder *r, const struct ringtap_run *runs, int count, uint64_t before_ns)
{
	uint64_t ns = count > 0 ? runs[count - 1].last_ns : before_ns - BEHIND_NS;

	if (ns > r->emitted_ns)
		r->emitted_ns = ns;
}

static void put_batch(struct recorder *r, const struct ringtap_run *runs, int count)
{
	if (!r->discarding)
		check(r, file_interfaces(r));
	for (int i = 0; i < count; i++)
		check(r, packets_put(r, &runs[i]));
	check(r, file_push(r));
	if (!r->error)
		check(r, record_fates_take(r));
}

void recorder_start_clocks(struct recorder *r)
{
	r->start_ns = now_ns(CLOCK_REALTIME);
	r->start_mono_ns = now_ns(CLOCK_MONOTONIC);
	r->waited_ns = r->waited_before_ns = thread_waited_ns();
	r->next_tick_ns = r->start_mono_ns + TICK_NS;
	r->next_isb_ns = r->start_mono_ns + ISB_NS;
	r->report_ns = r->start_mono_ns;
	r->next_report_ns = r->start_mono_ns + (isatty(STDERR_FILENO) ? TICK_NS : NS_PER_S);
}

/* A file's time is over. */
static bool file_is_old(const struct recorder *r, uint64_t now)
{
	const struct limits *l = &r->cfg->rotate;

	if (l->duration_ns && now - r->file_mono_ns >= l->duration_ns)
		return true;
	/* Also if the clock was set back: it would be long until then. */
	return l->interval_ns &&
	       now_ns(CLOCK_REALTIME) / l->interval_ns != r->file_ns / l->interval_ns;
}

static void report_deaths(struct recorder *r)
{
	struct ringtap_stats s = {.size = sizeof(s)};

	if (ringtap_capture_stats(r->cap, &s) || s.apps_dead <= r->dead)
		return;
	r->dead = s.apps_dead;
	if (r->cfg->quiet_end || r->error) /* after an error it is not complete */
		return;
	if (r->targets.count == 1)
		message_print("%s: application '%s' has ended: the capture is complete",
			r->cfg->capture.command, r->targets.list[0].name);
	else
		message_print("%s: an application has ended; the capture goes on with %u of %u",
			r->cfg->capture.command, r->targets.count - (unsigned)r->dead,
			r->targets.count);
}

static void note_wait(struct recorder *r)
{
	uint64_t waited = thread_waited_ns();

	if (waited < r->waited_ns)
		return; /* unknown */
	if (waited - r->waited_ns > r->longest_wait_ns)
		r->longest_wait_ns = waited - r->waited_ns;
	r->waited_ns = waited;
}

static void tick(struct recorder *r, uint64_t now)
{
	note_wait(r);
	page_sample(r, now, false);
	r->next_tick_ns = now + TICK_NS;
	if (!r->discarding)
		check(r, file_flush(r));
	report_deaths(r);
	newcomers_check(r);
	/* At once where the clock was set: the file then says when. */
	if (!r->discarding && (clock_check(&r->clock) || now >= r->next_isb_ns)) {
		r->next_isb_ns = now + ISB_NS;
		check(r, file_statistics(r, false));
	}
	if (!r->cfg->quiet && now >= r->next_report_ns) {
		r->next_report_ns = now + (isatty(STDERR_FILENO) ? TICK_NS : REPORT_SPARSE_NS);
		report_live(r, now);
	}
}

/* SIGUSR1 and SIGUSR2. Without -b the file gets what is in buffers, as from tcpdump. */
static void requests(struct recorder *r)
{
	if (signals_want_counts())
		report_counts(r, stderr);
	if (!signals_want_file() || r->discarding || r->stopping)
		return;
	check(r, r->cfg->rotating ? file_next(r) : file_flush(r));
}

static void timers(struct recorder *r)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint64_t duration = r->cfg->stop.duration_ns;

	if (signals_count())
		recorder_end(r, END_SIGNAL, signals_count() > 1);
	if (duration && now - r->start_mono_ns >= duration)
		recorder_end(r, END_DURATION, false);
	if (!r->stopping && file_is_old(r, now))
		check(r, file_next(r));
	requests(r);
	if (now >= r->next_tick_ns)
		tick(r, now);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Until the next thing that timers() may have to do. */
static int timeout_ms(const struct recorder *r)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint64_t next = r->next_tick_ns;

	if (signals_count() && !r->stopping)
		return 0;
	if (r->cfg->stop.duration_ns && !r->stopping)
		next = sooner(next, r->start_mono_ns + r->cfg->stop.duration_ns);
	if (r->cfg->rotate.duration_ns)
		next = sooner(next, r->file_mono_ns + r->cfg->rotate.duration_ns);
	if (next <= now)
		return 0;
	return (int)((next - now + 999999) / 1000000);
}

/* Returns whether there is an end to wait for. */
static bool stop_source(struct recorder *r)
{
	r->stopped = true;
	return !ringtap_capture_stop(r->cap);
}

void recorder_loop(struct recorder *r)
{
	struct ringtap_run runs[RUNS_MAX];
	bool ends = true;
	int n;

	page_sample(r, r->start_mono_ns, true);
	check(r, file_begin(r));
	for (;;) {
		uint64_t before_ns = now_ns(CLOCK_REALTIME);

		if (r->stopping && !r->stopped)
			ends = stop_source(r);
		n = ringtap_capture_next(r->cap, runs, RUNS_MAX, timeout_ms(r));
		if (n < 0 || (n == 0 && !ends))
			break;
		note_emitted(r, runs, n, before_ns);
		put_batch(r, runs, n);
		ringtap_capture_release(r->cap);
		timers(r);
	}
	if (n < 0 && n != -EPIPE)
		failed(r, n == -EBADMSG ? END_CORRUPT : END_ERROR, n);
	report_deaths(r);
	recorder_end(r, END_APPLICATION, false);
	r->end_ns = now_ns(CLOCK_REALTIME);
	r->end_mono_ns = now_ns(CLOCK_MONOTONIC);
	note_wait(r);
	if (!r->error)
		check(r, record_fates_finish(r));
	check(r, file_end(r, n == -EPIPE));
	shares_update(r);
	page_sample(r, r->end_mono_ns, true);
}
