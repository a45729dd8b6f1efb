/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls all rules; verdicts where none of them found a fault. */
#include <math.h>
#include <stdlib.h>

#include "limits.h"
#include "base/util.h"
#include "rules.h"

static bool found(const struct diagnosis *d, enum grade grade)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->verdict[i].grade == grade)
			return true;
	return false;
}

/* Packets that drivers count as lost. */
static double known_lost(const struct examination *e)
{
	double sum = 0;

	for (uint32_t i = 0; i < e->span.to->port_count; i++) {
		struct driver_counts c;

		driver_counts(&e->span, i, &c);
		sum += fmax(c.imissed, 0) + fmax(c.rx_nombuf, 0) + fmax(c.ierrors, 0) +
		       fmax(fmax(c.unsent, c.oerrors), 0);
	}
	return sum;
}

/* The busiest thread's share; NAN: none polls. */
static double busiest(const struct examination *e)
{
	double most = NAN;

	for (uint32_t i = 0; i < e->span.to->thread_count; i++) {
		struct thread_rates x;

		rates_thread(&e->span, i, &x);
		most = fmax(most, x.busy);
	}
	return most;
}

static const char stalled_advice[] =
	"See what the thread did meanwhile: 'ringtap flight --on \"gap > 100ms\"' keeps the packets "
	"around the next stall. Where the kernel saw it neither running nor waiting for a CPU: a "
	"signal or debugger that stopped the process, a lock, a disk, or a sleep of its own";

static void judge_rest(const struct examination *e, struct diagnosis *d)
{
	char rx_text[FORMAT_LEN], tx_text[FORMAT_LEN], count[FORMAT_LEN], lost[64] = "nothing is";
	struct tally rx, tx;
	struct verdict *v;
	double rx_pps, tx_pps, n;

	if (found(d, GRADE_FAULT))
		return;
	if (!(e->span.to->collectors & RINGTAP_POLLS)) {
		v = verdict_add(d, VERDICT_NOT_COUNTED, GRADE_NOTE, 1,
			"Count them: --collectors polls,busy,gaps,pools");
		verdict_add_evidence(v, "the collector polls is off: whether threads poll, "
					"and are fast enough, is unknown");
		return;
	}
	tally_sum(&rx, &e->span, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, RINGTAP_RX);
	tally_sum(&tx, &e->span, RINGTAP_NO_INDEX, RINGTAP_NO_INDEX, RINGTAP_TX);
	rx_pps = (double)rx.packets / e->span.seconds;
	tx_pps = (double)tx.packets / e->span.seconds;
	if (!rx.calls && !tx.calls) {
		v = verdict_add(d, VERDICT_NOT_POLLING, GRADE_NOTE, 1,
			"If it should work now: is forwarding started, and are its threads "
			"launched?");
		if (!v)
			return;
		verdict_add_evidence(v, "no port was polled and nothing was sent");
		if (unpolled_evidence(e, v))
			v->grade = GRADE_FAULT;
		return;
	}
	if (fmax(rx_pps, tx_pps) < LIMIT_IDLE_PPS) {
		v = verdict_add(d, VERDICT_IDLE, GRADE_OK, 0,
			"Nothing. If there should be traffic, check links and the sender");
		verdict_add_evidence(v, "%s polls/s, and all but all of them empty",
			format_si(rx_text, (double)rx.calls / e->span.seconds));
		return;
	}
	v = verdict_add(d, VERDICT_HEALTHY, GRADE_OK, 0, "Nothing");
	n = known_lost(e);
	if (n >= 1)
		snprintf(lost, sizeof(lost), "%s packets, too few for a fault, are",
			format_count(count, (uint64_t)n));
	verdict_add_evidence(v,
		"%s packets/s received, %s packets/s handed to TX; %s known to be lost",
		format_si(rx_text, rx_pps), format_si(tx_text, tx_pps), lost);
	if (!isnan(busiest(e)))
		verdict_add_evidence(
			v, "the busiest thread works %.1f %% of its time", 100 * busiest(e));
	if (!v || !stall_evidence(e, v))
		return;
	/* Nothing is known to be lost, but that is not healthy. */
	v->id = VERDICT_STALLED;
	v->grade = GRADE_NOTE;
	v->advice = stalled_advice;
}

static int compare(const void *a, const void *b)
{
	const struct verdict *x = a, *y = b;

	if (x->grade != y->grade)
		return (x->grade > y->grade) - (x->grade < y->grade);
	return (x->gravity < y->gravity) - (x->gravity > y->gravity);
}

void diagnose(const struct examination *e, struct diagnosis *d)
{
	rule_hung(e, d);
	rule_pools(e, d);
	rule_growth(e, d);
	rule_missed(e, d);
	rule_unsent(e, d);
	rule_stopped(e, d);
	rule_preempted(e, d);
	rule_small_bursts(e, d);
	rule_uneven_queues(e, d);
	rule_scattered(e, d);
	rule_rings(e, d);
	rule_saturated(e, d);
	judge_rest(e, d);
	/* Last: its notes may be many, and there is room for VERDICTS_MAX. */
	rule_placement(e, d);
	qsort(d->verdict, d->count, sizeof(d->verdict[0]), compare);
}

bool examination_make(struct examination *e, const struct watched *a, const struct readings *r)
{
	*e = (struct examination){.app = a,
		.pools = r->pools,
		.pool_count = r->pool_count,
		.rings = r->rings,
		.ring_count = r->ring_count};
	if (!span_of(a, &e->span))
		return false;
	if (e->pool_count > e->span.to->pool_count)
		e->pool_count = e->span.to->pool_count;
	if (e->ring_count > e->span.to->ring_count)
		e->ring_count = e->span.to->ring_count;
	return true;
}
