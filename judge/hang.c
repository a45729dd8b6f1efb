/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that have stopped polling, and what the kernel shows of them. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "limits.h"
#include "base/util.h"
#include "rules.h"

static const struct ringtap_snapshot *newest(const struct examination *e)
{
	return e->samples ? e->samples : e->span.to;
}

/* Also of an application that has been killed; a thread that ends has no last poll any more. */
static bool is_quiet(const struct ringtap_thread_stats *t)
{
	return t->quiet_ns >= LIMIT_HUNG_NS;
}

void examination_read_kernel(struct examination *e)
{
	const struct ringtap_snapshot *f = newest(e);
	struct tally all;
	bool quiet = false;

	if (e->app->ended || !e->app->info.host_pid)
		return;
	/* Its control thread, which reads the time of polls, is stopped with it. */
	if (!ringtap_process_halted(e->app->info.host_pid, e->halted, sizeof(e->halted)))
		*e->halted = '\0';
	for (uint32_t i = 0; i < f->thread_count; i++)
		quiet |= is_quiet(ringtap_snapshot_thread(f, i));
	tally_sum(&all, &e->span, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, 0);
	if (quiet || !all.calls || *e->halted)
		e->kernel = kernel_threads((pid_t)e->app->info.host_pid, &e->kernel_count);
}

static const struct kernel_thread *find(const struct examination *e, uint32_t tid)
{
	for (unsigned i = 0; i < e->kernel_count; i++)
		if (e->kernel[i].tid == tid)
			return &e->kernel[i];
	return NULL;
}

/* A thread that has nothing to do waits in another call: for a command, an event, a time. */
static bool is_stuck(const struct kernel_thread *k)
{
	return strchr("RDTt", k->state) || k->call == SYS_futex;
}

static bool sends(const struct ringtap_snapshot *f, uint32_t thread)
{
	for (uint32_t i = 0; i < f->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(f, i);

		if (q->thread == thread && q->direction == RINGTAP_TX && q->packets)
			return true;
	}
	return false;
}

/* "its last poll was at 10:20:30.123, 4.5 s ago" */
#define POLL_LEN 64
static char *last_poll(char buf[POLL_LEN], const struct ringtap_thread_stats *t, uint64_t quiet_ns)
{
	time_t s = (time_t)(t->last_poll_ns / NS_PER_S);
	char clock[16];
	struct tm tm;

	localtime_r(&s, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(buf, POLL_LEN, "its last poll was at %s.%03u, %.1f s ago", clock,
		(unsigned)(t->last_poll_ns / (NS_PER_S / 1000) % 1000),
		(double)quiet_ns / NS_PER_S);
	return buf;
}

static void poll_evidence(struct verdict *v, const struct examination *e,
	const struct ringtap_thread_stats *t, bool holds)
{
	char poll[POLL_LEN], port[RINGTAP_NAME_LEN] = "a port";

	if (t->last_poll_port != RINGTAP_NO_INDEX)
		printable(port, sizeof(port),
			ringtap_snapshot_port(newest(e), t->last_poll_port)->name);
	verdict_add_evidence(v, "%s, of %s, queue %u; it brought %u packets%s",
		last_poll(poll, t, t->quiet_ns), port, t->last_poll_queue, t->last_poll_packets,
		holds ? ", and nothing has been sent since: it holds them" : "");
}

static void kernel_evidence(struct verdict *v, const struct kernel_thread *k)
{
	char state[KERNEL_TEXT_LEN];

	verdict_add_evidence(v, "the kernel shows it %s%s", kernel_state(state, k),
		k->call == SYS_futex ? ", that is waiting for a lock or a condition" : "");
}

static const char hung_advice[] =
	"See where it is: 'gdb -p PID -batch -ex \"thread apply all backtrace\"' shows locks and "
	"endless loops, 'perf top -t TID' what a running thread does";

static void judge_hung(const struct examination *e, uint32_t i, struct diagnosis *d)
{
	const struct ringtap_thread_stats *t = ringtap_snapshot_thread(newest(e), i);
	const struct kernel_thread *k = find(e, t->tid);
	bool holds = t->last_poll_holds && sends(newest(e), i);
	struct verdict *v;

	if (!is_quiet(t) || (k && !is_stuck(k) && !holds))
		return;
	v = verdict_add(d, VERDICT_HUNG, k || holds ? GRADE_FAULT : GRADE_NOTE, 11, hung_advice);
	if (!v)
		return;
	thread_name(v->where, t);
	poll_evidence(v, e, t, holds);
	if (k)
		kernel_evidence(v, k);
}

/* The whole process. */
static void judge_halted(const struct examination *e, struct diagnosis *d)
{
	struct verdict *v = verdict_add(d, VERDICT_HUNG, GRADE_FAULT, 12,
		"Let it continue; what it received meanwhile is lost where queues were full");
	char name[THREAD_NAME_LEN], state[KERNEL_TEXT_LEN], poll[POLL_LEN];

	if (!v)
		return;
	verdict_add_evidence(v, "%s", e->halted);
	for (uint32_t i = 0; i < newest(e)->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(newest(e), i);
		const struct kernel_thread *k = find(e, t->tid);

		if (!k || !t->last_poll_ns)
			continue;
		verdict_add_evidence(v, "%s: the kernel shows it %s; %s", thread_name(name, t),
			kernel_state(state, k),
			last_poll(poll, t, newest(e)->taken_ns - t->last_poll_ns));
	}
}

void rule_hung(const struct examination *e, struct diagnosis *d)
{
	if (*e->halted) {
		judge_halted(e, d);
		return;
	}
	for (uint32_t i = 0; i < newest(e)->thread_count; i++)
		if (i >= e->span.to->thread_count || span_has_thread(&e->span, i))
			judge_hung(e, i, d);
}

/* By the names that EAL, Open vSwitch and VPP give their polling threads. */
static bool is_worker(const struct kernel_thread *k)
{
	return strstr(k->name, "worker") || strstr(k->name, "lcore") || strstr(k->name, "pmd") ||
	       strstr(k->name, "vpp_wk");
}

bool unpolled_evidence(const struct examination *e, struct verdict *v)
{
	char name[sizeof(e->kernel->name)], state[KERNEL_TEXT_LEN];
	bool stuck = false;

	for (unsigned i = 0; i < e->kernel_count; i++) {
		const struct kernel_thread *k = &e->kernel[i];

		if (k->tid != e->app->info.pid && !is_worker(k))
			continue;
		stuck |= is_worker(k) && is_stuck(k);
		verdict_add_evidence(v,
			"thread %s, tid %u: the kernel shows it %s; when it polled "
			"last is unknown",
			printable(name, sizeof(name), k->name), k->tid, kernel_state(state, k));
	}
	return stuck;
}
