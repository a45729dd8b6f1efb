/* SPDX-License-Identifier: BSD-3-Clause */
/* What all rules share, and the verdicts where none of them has anything to say. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "limits.h"
#include "base/util.h"

const char *const verdict_names[VERDICT_COUNT] = {
	[VERDICT_TOO_SLOW] = "too_slow",
	[VERDICT_POOL_EXHAUSTED] = "pool_exhausted",
	[VERDICT_TX_REFUSED] = "tx_refused",
	[VERDICT_PREEMPTED] = "preempted",
	[VERDICT_TINY_BURSTS] = "tiny_bursts",
	[VERDICT_UNEVEN_QUEUES] = "uneven_queues",
	[VERDICT_SCATTERED] = "scattered_buffers",
	[VERDICT_OVERFLOW] = "rx_overflow",
	[VERDICT_UNPOLLED_QUEUES] = "unpolled_queues",
	[VERDICT_AT_LIMIT] = "at_limit",
	[VERDICT_NOT_POLLING] = "not_polling",
	[VERDICT_IDLE] = "idle",
	[VERDICT_WELL] = "well",
};

const char *const verdict_titles[VERDICT_COUNT] = {
	[VERDICT_TOO_SLOW] = "the application is too slow",
	[VERDICT_POOL_EXHAUSTED] = "the mempool is exhausted",
	[VERDICT_TX_REFUSED] = "TX refuses packets",
	[VERDICT_PREEMPTED] = "the polling thread is pre-empted",
	[VERDICT_TINY_BURSTS] = "many tiny bursts",
	[VERDICT_UNEVEN_QUEUES] = "the queues are uneven",
	[VERDICT_SCATTERED] = "the buffers are scattered over many pages",
	[VERDICT_OVERFLOW] = "the RX queue overflows now and then",
	[VERDICT_UNPOLLED_QUEUES] = "nobody polls some queues",
	[VERDICT_AT_LIMIT] = "at its limit",
	[VERDICT_NOT_POLLING] = "no thread polls",
	[VERDICT_IDLE] = "idle and well",
	[VERDICT_WELL] = "well",
};

const char *const grade_names[] = {"fault", "fine", "note"};

struct verdict *verdict_add(struct diagnosis *d, enum verdict_id id, enum grade grade,
	double gravity, const char *advice)
{
	struct verdict *v;

	if (d->count == VERDICTS_MAX)
		return NULL;
	v = &d->verdict[d->count++];
	*v = (struct verdict){.id = id, .grade = grade, .gravity = gravity, .advice = advice};
	return v;
}

void verdict_say(struct verdict *v, const char *format, ...)
{
	va_list ap;

	if (v->evidence_count == EVIDENCE_MAX)
		return;
	va_start(ap, format);
	vsnprintf(v->evidence[v->evidence_count++], EVIDENCE_LEN, format, ap);
	va_end(ap);
}

static bool found(const struct diagnosis *d, enum grade grade)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->verdict[i].grade == grade)
			return true;
	return false;
}

/* The busiest thread's share; NAN: none polls. */
static double busiest(const struct examination *e)
{
	double most = NAN;

	for (uint32_t i = 0; i < e->span.to->thread_count; i++) {
		struct thread_rates x;

		rates_thread(e->app, &e->span, i, &x);
		most = fmax(most, x.busy);
	}
	return most;
}

static void judge_rest(const struct examination *e, struct diagnosis *d)
{
	char rx_text[FORMAT_LEN], tx_text[FORMAT_LEN];
	struct tally rx, tx;
	struct verdict *v;
	double rx_pps, tx_pps;

	if (found(d, GRADE_FAULT))
		return;
	tally_sum(&rx, &e->span, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, RINGTAP_RX);
	tally_sum(&tx, &e->span, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, RINGTAP_TX);
	rx_pps = (double)rx.packets / e->span.seconds;
	tx_pps = (double)tx.packets / e->span.seconds;
	if (!rx.calls && !tx.calls) {
		v = verdict_add(d, VERDICT_NOT_POLLING, GRADE_NOTE, 1,
			"If it should work now: is forwarding started, and are its threads "
			"launched?");
		if (v)
			verdict_say(v, "no port was polled and nothing was sent");
		return;
	}
	if (fmax(rx_pps, tx_pps) < LIMIT_IDLE_PPS) {
		v = verdict_add(d, VERDICT_IDLE, GRADE_FINE, 0,
			"Nothing. If there should be traffic, look at links and at what comes "
			"before");
		if (v)
			verdict_say(v, "%s polls/s, and all but all of them empty",
				format_si(rx_text, (double)rx.calls / e->span.seconds));
		return;
	}
	v = verdict_add(d, VERDICT_WELL, GRADE_FINE, 0, "Nothing");
	if (!v)
		return;
	verdict_say(v,
		"%s packets/s received, %s packets/s handed to TX; nothing is known to be "
		"lost",
		format_si(rx_text, rx_pps), format_si(tx_text, tx_pps));
	if (!isnan(busiest(e)))
		verdict_say(v, "the busiest thread works %.1f %% of its time", 100 * busiest(e));
}

static int compare(const void *a, const void *b)
{
	const struct verdict *x = a, *y = b;

	if (x->grade != y->grade)
		return (x->grade > y->grade) - (x->grade < y->grade);
	return (x->gravity < y->gravity) - (x->gravity > y->gravity);
}

void doctor_judge(const struct examination *e, struct diagnosis *d)
{
	rule_pools(e, d);
	rule_missed(e, d);
	rule_unsent(e, d);
	rule_preempted(e, d);
	rule_tiny_bursts(e, d);
	rule_uneven_queues(e, d);
	rule_scattered(e, d);
	rule_at_limit(e, d);
	judge_rest(e, d);
	qsort(d->verdict, d->count, sizeof(d->verdict[0]), compare);
}
