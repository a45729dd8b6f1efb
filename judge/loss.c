/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules about packets that are lost: no buffer, no room in the NIC's queue, not sent. */
#include <math.h>

#include "limits.h"
#include "base/util.h"
#include "rules.h"

#define ALL RINGTAP_NO_INDEX

static void where_port(struct verdict *v, const struct ringtap_port_stats *p)
{
	printable(v->where, RINGTAP_NAME_LEN, p->name);
}

/* ---- mempool exhausted */

/* Packets that found no buffer, at all ports. */
static double nombuf(const struct examination *e)
{
	double sum = 0;

	for (uint32_t i = 0; i < e->span.to->port_count; i++) {
		struct driver_counts d;

		driver_counts(&e->span, i, &d);
		if (!isnan(d.rx_nombuf))
			sum += d.rx_nombuf;
	}
	return sum;
}

/* The mbuf pool with the smallest share of free objects. */
static uint32_t scarcest(const struct examination *e)
{
	uint32_t best = ALL;
	double least = 2;

	for (uint32_t i = 0; i < e->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(e->span.to, i);
		double share = p->size ? (double)e->pools[i].least / p->size : 1;

		if (!p->buffer_bytes || p->gone || share >= least)
			continue;
		least = share;
		best = i;
	}
	return best;
}

uint64_t pool_needed(const struct examination *e, const struct ringtap_pool_stats *p)
{
	const struct ringtap_snapshot *f = e->span.to;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->port_count; i++) {
		const struct ringtap_port_stats *o = ringtap_snapshot_port(f, i);

		if (!o->gone)
			sum += (uint64_t)o->rx_queues * o->rx_descriptors +
			       (uint64_t)o->tx_queues * o->tx_descriptors;
	}
	for (uint32_t i = 0; i < f->thread_count; i++)
		if (ringtap_snapshot_thread(f, i)->alive)
			sum += LIMIT_BURST + p->cache_size + p->cache_size / 2;
	return sum;
}

static void pool_evidence(struct verdict *v, const struct examination *e,
	const struct ringtap_pool_stats *p, const struct pool_readings *look)
{
	char size[FORMAT_LEN], available[FORMAT_LEN], least[FORMAT_LEN], need[FORMAT_LEN];

	printable(v->where, RINGTAP_NAME_LEN, p->name);
	verdict_add_evidence(v, "%s of its %s buffers are available, at the least %s were",
		format_count(available, p->available), format_count(size, p->size),
		format_count(least, look->least));
	if (readings_starved(look))
		verdict_add_evidence(v,
			"in %.0f %% of %u readings no thread that receives could get a burst",
			100.0 * readings_starved(look) / look->count, look->count);
	if (p->in_caches && p->in_caches >= p->available / 2)
		verdict_add_evidence(v,
			"%u of the available ones lie in caches of lcores, where no other lcore "
			"gets them",
			p->in_caches);
	if (pool_needed(e, p) > p->size)
		verdict_add_evidence(v, "descriptors, caches and bursts alone may take %s",
			format_count(need, pool_needed(e, p)));
}

static const char pool_advice[] =
	"Give the pool more buffers (testpmd: --total-num-mbufs): descriptors of all queues, "
	"caches of all lcores and what the application holds, at once. If it grows without end, "
	"packets are not freed: find the path that drops them without rte_pktmbuf_free()";

void rule_pools(const struct examination *e, struct diagnosis *d)
{
	double lost = nombuf(e);
	uint32_t scarce = scarcest(e);
	char text[FORMAT_LEN];
	struct verdict *v;
	bool drops_reported = false;

	for (uint32_t i = 0; i < e->pool_count; i++) {
		const struct pool_readings *look = &e->pools[i];
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(e->span.to, i);
		bool empty = p->buffer_bytes && !p->gone && look->count &&
			     readings_starved(look) >= LIMIT_POOL_EMPTY * look->count;

		if (!empty && !(i == scarce && lost >= LIMIT_LOST_PACKETS))
			continue;
		v = verdict_add(d, VERDICT_POOL_EXHAUSTED, GRADE_FAULT, 10, pool_advice);
		if (!v)
			return;
		pool_evidence(v, e, p, look);
		if (lost > 0 && !drops_reported)
			verdict_add_evidence(v,
				"the drivers dropped %s packets because there was no buffer "
				"(no mbuf)",
				format_count(text, (uint64_t)lost));
		drops_reported = true;
	}
}

/* ---- the NIC's queue was full */

struct pollers {
	double busy, wait, cycles_per_packet; /* values of the busiest thread at the port; NAN */
	uint32_t thread;
	struct tally rx; /* the queue whose polls are full most often */
};

static void find_pollers(const struct examination *e, uint32_t port, struct pollers *p)
{
	*p = (struct pollers){.busy = NAN, .wait = NAN, .cycles_per_packet = NAN, .thread = ALL};
	tally_fullest(&p->rx, &e->span, port, ALL);
	for (uint32_t i = 0; i < e->span.to->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(e->span.to, i);
		struct thread_rates x;

		if (q->port != port || q->direction != RINGTAP_RX)
			continue;
		rates_thread(&e->span, q->thread, &x);
		p->wait = fmax(p->wait, x.wait);
		if (x.busy <= p->busy || isnan(x.busy))
			continue;
		p->busy = x.busy;
		p->cycles_per_packet = x.cycles_per_packet;
		p->thread = q->thread;
	}
}

static void poller_evidence(struct verdict *v, const struct examination *e, const struct pollers *p)
{
	char name[THREAD_NAME_LEN], rate[FORMAT_LEN];

	if (p->thread != ALL)
		verdict_add_evidence(v, "%s works %.1f %% of its time",
			thread_name(name, ringtap_snapshot_thread(e->span.to, p->thread)),
			100 * p->busy);
	if (p->rx.calls)
		verdict_add_evidence(v,
			"%.0f %% of the polls of the fullest queue brought as many packets as "
			"requested (%u)",
			100 * tally_full(&p->rx), p->rx.max_burst);
	if (!isnan(p->cycles_per_packet))
		verdict_add_evidence(v,
			"a packet takes %.0f cycles: %s packets/s is all that it can do",
			p->cycles_per_packet,
			format_si(rate, e->span.tsc_hz / p->cycles_per_packet));
}

static const char slow_advice[] =
	"Make it faster or spread the load: more queues and threads (RSS), less work a packet; a "
	"profile (perf record -t TID) shows where the cycles go. Longer RX queues only delay the "
	"loss";
static const char overflow_advice[] =
	"Traffic comes in bursts that the queue cannot hold: more RX descriptors (testpmd: "
	"--rxd), or poll more evenly; 'ringtap top --view gaps' shows what kept the threads away";

/* Packets that the driver received, by its own count or, if that is unknown, by the hooks'. */
static double arrived(
	const struct examination *e, uint32_t port, const struct driver_counts *driver)
{
	struct tally t;

	if (!isnan(driver->ipackets))
		return driver->ipackets;
	tally_sum(&t, &e->span, port, ALL, RINGTAP_RX);
	return (double)t.packets;
}

/* Its losses are the least then. */
static void partial_evidence(struct verdict *v, const struct driver_counts *driver)
{
	char unknown[FORMAT_LEN];

	if (driver->partial)
		verdict_add_evidence(v,
			"at least: the driver's counters began again in between (the application "
			"reset them, or the port was away); of %s packets handed over it is "
			"unknown whether they were sent",
			format_count(unknown,
				isnan(driver->tx_unknown) ? 0 : (uint64_t)driver->tx_unknown));
}

void rule_missed(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->span.to->port_count; i++) {
		struct driver_counts dr;
		struct pollers p;
		struct verdict *v;
		char missed[FORMAT_LEN];
		double share;
		bool slow;

		if (!span_has_port(&e->span, i))
			continue;
		driver_counts(&e->span, i, &dr);
		share = dr.imissed / (dr.imissed + arrived(e, i, &dr));
		if (!(dr.imissed >= LIMIT_LOST_PACKETS) || !(share >= LIMIT_LOST_SHARE))
			continue;
		find_pollers(e, i, &p);
		slow = p.busy >= LIMIT_BUSY || tally_full(&p.rx) >= LIMIT_FULL;
		/* A thread without a CPU is not slow; rule_preempted() reports the loss. */
		if (!slow && p.wait >= LIMIT_WAIT)
			continue;
		v = verdict_add(d, slow ? VERDICT_TOO_SLOW : VERDICT_OVERFLOW, GRADE_FAULT,
			5 + share, slow ? slow_advice : overflow_advice);
		if (!v)
			return;
		where_port(v, ringtap_snapshot_port(e->span.to, i));
		verdict_add_evidence(v,
			"the NIC dropped %s packets in %.1f s as its queue was full (missed), "
			"%.3g %% of what arrived",
			format_count(missed, (uint64_t)dr.imissed), dr.seconds, 100 * share);
		partial_evidence(v, &dr);
		poller_evidence(v, e, &p);
	}
}

/* ---- TX */

/* Which queue got most, if there are several. */
static void queue_evidence(struct verdict *v, const struct examination *e, uint32_t port)
{
	const struct ringtap_snapshot *f = e->span.to;
	char count[FORMAT_LEN], name[THREAD_NAME_LEN];

	for (uint32_t i = 0; i < f->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(f, i);
		struct tally t = {0};

		if (q->port != port || q->direction != RINGTAP_TX)
			continue;
		tally_add(&t, &e->span, i);
		if (t.packets)
			verdict_add_evidence(v,
				"queue %u, %s: %s packets handed over in %.1f s, in bursts of %.1f",
				q->queue, thread_name(name, ringtap_snapshot_thread(f, q->thread)),
				format_count(count, t.packets), e->span.seconds,
				tally_mean_busy(&t));
	}
}

static const char unsent_advice[] =
	"The receiver is slower than the application: check link speed, pause frames and the "
	"peer; more TX descriptors (testpmd: --txd) bridge bursts only. Decide what happens to "
	"refused packets: the application must free them, or offer them again for a bounded time";

void rule_unsent(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->span.to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(e->span.to, i);
		char offered[FORMAT_LEN], sent[FORMAT_LEN], unsent[FORMAT_LEN], errors[FORMAT_LEN];
		struct driver_counts dr;
		struct verdict *v;

		driver_counts(&e->span, i, &dr);
		if (p->gone || !span_has_port(&e->span, i) || !(dr.unsent >= LIMIT_LOST_PACKETS) ||
			dr.unsent < LIMIT_UNSENT_SHARE * dr.offered)
			continue;
		v = verdict_add(d, VERDICT_TX_REFUSED, GRADE_FAULT, 4 + dr.unsent / dr.offered,
			unsent_advice);
		if (!v)
			return;
		where_port(v, p);
		verdict_add_evidence(v,
			"%s packets handed over in %.1f s, %s sent: %s (%.3g %%) were not",
			format_count(offered, (uint64_t)dr.offered), dr.seconds,
			format_count(sent, (uint64_t)(dr.offered - dr.unsent)),
			format_count(unsent, (uint64_t)dr.unsent), 100 * dr.unsent / dr.offered);
		partial_evidence(v, &dr);
		/* Drivers differ: net_tap counts refused ones as errors, net_ring counts nothing.
		 */
		if (dr.oerrors > 0)
			verdict_add_evidence(v, "the driver counts %s errors (tx_errors)",
				format_count(errors, (uint64_t)dr.oerrors));
		else
			verdict_add_evidence(v,
				"the driver counts no errors: it gave them back to the "
				"application");
		if (!p->link_up)
			verdict_add_evidence(v, "the link is down");
		queue_evidence(v, e, i);
	}
}

/* ---- stopped ports */

static const char stopped_advice[] =
	"Start the port, or let the application not send to it: rte_eth_tx_burst() of a stopped port "
	"returns 0, and nothing counts what is freed then. 'ringtap drops' shows such packets as "
	"unknown";

/* Received and handed to no port that runs, from a share on that is not an accident. 0: it is. */
static uint64_t unanswered(const struct tally *rx, const struct tally *tx)
{
	uint64_t n = rx->packets > tx->packets ? rx->packets - tx->packets : 0;

	return n >= LIMIT_LOST_PACKETS && (double)n >= LIMIT_UNSENT_SHARE * (double)rx->packets ? n
												: 0;
}

static void stopped_evidence(struct verdict *v, const struct examination *e,
	const struct ringtap_port_stats *p, const struct tally *rx, const struct tally *tx)
{
	char lost[FORMAT_LEN], received[FORMAT_LEN];
	uint64_t age =
		e->span.to->taken_ns > p->stopped_ns ? e->span.to->taken_ns - p->stopped_ns : 0;

	verdict_add_evidence(v,
		"it is stopped, for %.1f s at least: it refuses all packets, and neither hooks nor "
		"the driver count them",
		(double)age / NS_PER_S);
	if (!rx->calls && !tx->calls)
		verdict_add_evidence(
			v, "no other port is polled; threads that poll this one are not visible");
	else if (unanswered(rx, tx))
		verdict_add_evidence(v,
			"threads poll meanwhile: %s of %s packets that they received were handed "
			"to no port that runs",
			format_count(lost, unanswered(rx, tx)),
			format_count(received, rx->packets));
	else
		verdict_add_evidence(
			v, "threads poll meanwhile, and hand on what they receive to other ports");
}

/* Ports may be stopped on purpose: a fault is only what seems to cost packets. */
void rule_stopped(const struct examination *e, struct diagnosis *d)
{
	struct tally rx, tx;

	tally_sum(&rx, &e->span, ALL, ALL, RINGTAP_RX);
	tally_sum(&tx, &e->span, ALL, ALL, RINGTAP_TX);
	for (uint32_t i = 0; i < e->span.to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(e->span.to, i);
		struct verdict *v;

		if (p->gone || !span_has_port(&e->span, i) || !p->used || !p->stopped_ns)
			continue;
		v = verdict_add(d, VERDICT_PORT_STOPPED,
			unanswered(&rx, &tx) ? GRADE_FAULT : GRADE_NOTE, 6, stopped_advice);
		if (!v)
			return;
		where_port(v, p);
		stopped_evidence(v, e, p, &rx, &tx);
	}
}
