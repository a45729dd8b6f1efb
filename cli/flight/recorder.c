/* SPDX-License-Identifier: BSD-3-Clause */
/* The recorder from attaching to its end. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/util.h"
#include "target/app_wait.h"
#include "target/which_app.h"
#include "common/atomics.h"
#include "flight.h"
#include "conditions.h"
#include "fates.h"
#include "history.h"
#include "keeper.h"
#include "packet_conditions.h"
#include "status.h"
#include "usdt_conditions.h"

#define CHECK_NS (NS_PER_S / 10)  /* between snapshots; probes read drivers twice a second */
#define SOON_NS  (NS_PER_S / 100) /* between checks of what is found without them */
/* Until an event is noticed: readings of a driver, twice a second, and checks. */
#define NOTICE_NS (2 * NS_PER_S)

/* ---- setting up */

static int catch_usr1(struct flight *f)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	f->usr1_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return f->usr1_fd < 0 || f->wake_fd < 0 ? -errno : 0;
}

static int open_monitor(struct flight *f, const struct target *t)
{
	struct ringtap_monitor_options o = {.size = sizeof(o),
		.collectors = f->cfg->collectors,
		.latency_every = f->cfg->latency_every};
	char why[256] = "";
	int ret;

	for (unsigned i = 0; i < f->cfg->trigger_count; i++)
		o.collectors |= trigger_collectors(&f->cfg->triggers[i]);
	/* At no price beside that of these. */
	if (o.collectors & (RINGTAP_GAPS | RINGTAP_BUSY))
		o.collectors |= RINGTAP_INTERVALS;
	ret = ringtap_monitor_open(&f->mon, t->dir, &o, why, sizeof(why));
	if (ret) {
		print_not_attached("flight", t->name, ret, why);
		return ret;
	}
	f->app.name = (char *)t->name;
	f->app.dir = (char *)t->dir;
	f->app.info.size = sizeof(f->app.info);
	return ringtap_monitor_app(f->mon, &f->app.info);
}

/* Prints what is wrong. */
static int attach(struct flight *f)
{
	int ret = targets_resolve(&f->targets, f->capture);

	if (ret)
		return ret;
	if (f->targets.named != 1)
		return message_fail(-EINVAL,
			"flight: ports of %u applications; give one application", f->targets.named);
	ret = ringtap_capture_create(&f->cap, NULL);
	if (ret)
		return message_fail(ret, "flight: starting: %s", strerror(-ret));
	/* First: where the memory is missing nothing else is touched. */
	ret = targets_attach(&f->targets, f->capture, f->cap);
	if (!ret)
		ret = flight_fates_attach(f);
	if (!ret)
		ret = open_monitor(f, &f->targets.list[0]);
	if (!ret)
		ret = packet_conditions_attach(f);
	return ret ? ret : usdt_conditions_attach(f);
}

static void announce(const struct flight *f)
{
	struct ringtap_kept k = {.size = sizeof(k)};
	char size[FORMAT_LEN], time[64] = "";

	if (f->cfg->quiet || ringtap_capture_kept(f->cap, &k))
		return;
	if (f->cfg->keep_ns)
		snprintf(time, sizeof(time), " of the last %s",
			format_ns(size, (double)f->cfg->keep_ns));
	fprintf(stderr, "Keeping the packets of '%s'%s in %s; incidents go to %s\n", f->app.name,
		time, format_bytes(size, (double)k.buffer_size), f->cfg->folder);
}

/* ---- the loop */

static const struct trigger *trigger_of(const struct flight *f, enum trigger_kind kind)
{
	for (unsigned i = 0; i < f->cfg->trigger_count; i++)
		if (f->cfg->triggers[i].kind == kind)
			return &f->cfg->triggers[i];
	return NULL;
}

static int begin_requested(void *ctx, const char *comment)
{
	struct flight *f = ctx;
	uint64_t now = now_ns(CLOCK_REALTIME);
	struct event e = {.from_ns = now, .to_ns = now};

	snprintf(e.comment, sizeof(e.comment), "%s", comment);
	return incident_begin(f, trigger_of(f, TRIGGER_COMMAND), &e);
}

/* A signal of ringtap flight trigger comes with a request, another one is a request. */
static void take_commands(struct flight *f, request_fn begin)
{
	struct signalfd_siginfo info;
	bool any = false, plain = false;

	while (read(f->usr1_fd, &info, sizeof(info)) == sizeof(info)) {
		any = true;
		plain |= info.ssi_code != SI_QUEUE || info.ssi_int != REQUEST_VALUE;
	}
	if (any)
		requests_take(f->cfg->folder, begin, f);
	if (plain)
		begin(f, "");
}

/* While there is no application: there are no packets of them. */
static int refuse_early(void *ctx, const char *comment)
{
	return message_fail(
		-EAGAIN, "flight: a request came before the recording; no incident of it");
}

static int refuse_late(void *ctx, const char *comment)
{
	return message_fail(
		-EPIPE, "flight: a request came after the recording; no incident of it");
}

/* An application that has hung and is killed had its last packets long before its end. */
static void reach_back(struct flight *f, const struct trigger *t, struct event *e)
{
	struct ringtap_kept k = {.size = sizeof(k)};

	if (ringtap_capture_kept(f->cap, &k) || !k.newest_ns ||
		k.newest_ns + t->before_ns >= e->to_ns)
		return;
	e->from_ns = k.newest_ns;
	snprintf(e->comment, sizeof(e->comment), "the last packets are %.1f s older",
		(double)(e->to_ns - k.newest_ns) / NS_PER_S);
}

static void take_end(struct flight *f)
{
	const struct trigger *t = trigger_of(f, TRIGGER_EXIT);
	uint64_t now = now_ns(CLOCK_REALTIME);
	struct event e = {.from_ns = now, .to_ns = now};

	/* Conditions that are met by the end make an incident, too. */
	packet_conditions_check(f);
	usdt_conditions_check(f, false);
	conditions_step(f);
	if (!t)
		return;
	reach_back(f, t, &e);
	incident_begin(f, t, &e);
}

/* Conditions, as often as they are checked. -EPIPE: the application has ended. */
static int check(struct flight *f)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	bool due = now - f->checked_ns >= CHECK_NS;

	packet_conditions_check(f);
	usdt_conditions_check(f, due);
	if (!due)
		return 0;
	f->checked_ns = now;
	return conditions_step(f);
}

static void finish_written(struct flight *f)
{
	struct incident *i;

	flight_fates_take(f);
	while ((i = incident_take_written(f))) {
		conditions_reach(f, i->to_ns);
		incident_finish(f, i);
	}
}

static void wait_for_events(const struct flight *f, bool stopping)
{
	struct pollfd p[] = {{.fd = f->wake_fd, .events = POLLIN},
		{.fd = f->usr1_fd, .events = POLLIN}, {.fd = status_fd(f), .events = POLLIN},
		/* While incidents are finished, another signal is asked for by abort_writers(). */
		{.fd = stopping ? -1 : stop_fd(), .events = POLLIN}};
	uint64_t v;

	if (rt_poll_ns(p, 4,
		    f->packet_condition_count || f->usdt_condition_count ? SOON_NS : CHECK_NS) >
			0 &&
		p[0].revents)
		(void)!read(f->wake_fd, &v, sizeof(v));
}

/* Until a signal or the end of the application. The keeper does not end while secondary processes
 * of it live. */
static int record(struct flight *f)
{
	bool ended = false;

	/* Pairs with the release in keep(). */
	while (!ended && !rt_load_acquire(&f->keeper_ended)) {
		if (stop_wait(0))
			return STATUS_OK;
		take_commands(f, begin_requested);
		finish_written(f);
		ended = check(f) == -EPIPE;
		status_step(f);
		status_answer(f);
		wait_for_events(f, false);
	}
	if (rt_load_acquire(&f->keeper_ended) && f->keeper_error != -EPIPE)
		return message_fail(STATUS_FAILED,
			"flight: reading the ring: %s; what came before is kept until now",
			ringtap_capture_error(f->cap));
	message_print("flight: application '%s' has ended", f->app.name);
	take_end(f);
	return STATUS_OK;
}

/* Windows may lie ahead: a second signal ends them. */
static void finish_incidents(struct flight *f)
{
	bool forgotten = stop_wait(0);

	/* Or conditions that are met again and again would go on for ever. */
	f->stopping = true;
	stop_after(0);
	if (forgotten)
		stop_forget();
	while (f->incident_count) {
		if (stop_wait(0))
			rt_store(&f->abort_writers, 1);
		wait_for_events(f, true);
		/* Reports need snapshots until the end of their windows. */
		if (!rt_load_acquire(&f->keeper_ended))
			check(f);
		take_commands(f, refuse_late);
		status_answer(f);
		finish_written(f);
	}
}

static int run_attached(struct flight *f)
{
	char summary[FLIGHT_SUMMARY];
	int ret, status;

	if (f->cfg->keep_ns)
		ringtap_capture_keep_for(f->cap, f->cfg->keep_ns + NOTICE_NS);
	take_commands(f, refuse_early);
	/* Also the requests to an earlier recorder. */
	requests_take(f->cfg->folder, refuse_early, f);
	flight_fates_start(f);
	ret = keeper_start(f);
	/* With the recording: an event before it would have no packets. */
	if (!ret && packet_conditions_start(f)) {
		keeper_stop(f);
		return STATUS_FAILED;
	}
	if (ret)
		return message_fail(STATUS_FAILED, "flight: keeping packets: %s",
			*ringtap_capture_error(f->cap) ? ringtap_capture_error(f->cap)
						       : strerror(-ret));
	f->start_ns = now_ns(CLOCK_REALTIME);
	ret = status_open(f);
	if (ret)
		message_print("flight: no socket for 'ringtap flight top' and 'ringtap export' in "
			      "%s: %s; recording goes on without it",
			f->app.dir, strerror(-ret));
	/* The first snapshot: what happens after the announcement is compared with it. */
	check(f);
	conditions_warn(f);
	counted_past_begin(&f->counted, f->app.info.program, (pid_t)f->app.info.host_pid,
		(pid_t)f->app.info.pid);
	announce(f);
	stop_after(f->cfg->duration_ns);
	status = record(f);
	finish_incidents(f);
	status_close(f);
	keeper_stop(f);
	if (!f->cfg->quiet)
		fprintf(stderr, "Incidents: %s\n", conditions_summary(f, summary));
	return status == STATUS_OK && f->failed ? STATUS_FAILED : status;
}

/* Frees all that attach() has made, also in part. */
static void detach(struct flight *f)
{
	usdt_conditions_close(f);
	flight_fates_close(f);
	packet_conditions_close(f);
	ringtap_monitor_close(f->mon);
	f->mon = NULL;
	if (f->cap)
		ringtap_capture_close(f->cap);
	f->cap = NULL;
	targets_free(&f->targets);
	f->targets = (struct targets){0};
}

/* A terminal would be asked at each attempt. */
static bool asks(const struct flight *f)
{
	return !f->cfg->attach && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* As attach(); with --wait it ends well or, with 1, by a signal. */
static int attach_patiently(struct flight *f)
{
	struct app_wait w = {.word = f->cfg->words[0], .quiet = f->cfg->quiet};
	int ret = 0;

	if (f->cfg->wait && !app_wait(&w))
		ret = 1;
	ringtap_break_fd(stop_fd());
	while (!ret && (ret = attach(f)) && f->cfg->wait && !asks(f)) {
		detach(f);
		ret = !app_wait_retry(&w);
	}
	ringtap_break_fd(-1);
	app_wait_close(&w);
	return ret;
}

int flight_run(struct flight *f)
{
	int ret = stop_catch();

	/* Before the lock: processes that find it send this signal, which would end this one. */
	if (!ret)
		ret = catch_usr1(f);
	if (ret)
		return message_fail(
			STATUS_FAILED, "flight: cannot wait for signals: %s", strerror(-ret));
	f->lock_fd = folder_lock(f->cfg->folder);
	if (f->lock_fd < 0)
		return STATUS_FAILED;
	ret = attach_patiently(f);
	if (!ret)
		ret = run_attached(f);
	else
		ret = ret > 0 ? STATUS_OK : ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	history_free(f);
	detach(f);
	close(f->lock_fd);
	return ret;
}
