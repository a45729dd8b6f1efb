/* SPDX-License-Identifier: BSD-3-Clause */
/* Families of histograms: bounds are few and fixed, so that series are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

/* ---- burst sizes */

static void burst(struct export_text *t, const char *labels, const struct tally *y)
{
	uint64_t sum = 0;
	unsigned n = 0;

	for (unsigned le = 0; le <= RINGTAP_BURSTS; le = le ? 2 * le : 1) {
		for (; n <= le; n++)
			sum += y->burst[n];
		export_bucket(t, labels, le, sum);
	}
	sum += y->big_calls;
	export_bucket(t, labels, INFINITY, sum);
	/* Of what the buckets have, so that they agree whatever went on meanwhile. */
	export_count(t, "_sum", labels, y->packets);
	export_count(t, "_count", labels, sum);
}

static void export_bursts(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN];
	struct tally y;

	export_family(t, "ringtap_burst_packets", "histogram",
		"Packets in a poll (RX) or call (TX); le=\"0.0\" are the empty ones.");
	for (; count--; x++)
		for (uint32_t i = 0; i < x->f->queue_count; i++)
			if (queue_sum(x->f, i, &y))
				burst(t, queue_labels(labels, x, i), &y);
}

/* ---- gaps */

#define GAP_BINS   48
#define GAP_BOUNDS 18

/* 1, 3 from 0.1 us to 30 s: the same for every application and attachment, whatever the counter's
 * frequency. Bins are an octave wide, so finer ones would tell nothing. */
static double gap_bound(unsigned i)
{
	return (i % 2 ? 3 : 1) * pow(10, (double)(i / 2) - 7);
}

/* The bins are powers of two of cycles; a bin counts as its middle. */
static void gaps(struct export_text *t, const struct exported *x, const char *labels,
	const uint64_t bin[GAP_BINS])
{
	uint64_t coarse[GAP_BOUNDS + 1] = {0}, count = 0;
	unsigned at = 0;
	double sum = 0;

	for (unsigned k = 0; k < GAP_BINS; k++) {
		double middle = 1.5 * (double)(1ull << k) / x->app->tsc_hz;

		while (at < GAP_BOUNDS && middle > gap_bound(at))
			at++;
		coarse[at] += bin[k];
		sum += (double)bin[k] * middle;
	}
	for (unsigned i = 0; i < GAP_BOUNDS; i++) {
		count += coarse[i];
		export_bucket(t, labels, gap_bound(i), count);
	}
	count += coarse[GAP_BOUNDS];
	export_bucket(t, labels, INFINITY, count);
	export_number(t, "_sum", labels, sum);
	export_count(t, "_count", labels, count);
}

static void export_gaps(struct export_text *t, const struct exported *x, size_t count)
{
	char labels[LABELS_LEN], name[THREAD_NAME_LEN];

	export_family(t, "ringtap_thread_gap_seconds", "histogram",
		"Time between two polls of a thread, after polls with packets (work=\"busy\") and "
		"empty ones; the sum is an estimate.");
	for (; count--; x++) {
		for (uint32_t i = 0; i < x->f->thread_count; i++) {
			uint64_t bins[2][GAP_BINS] = {{0}};

			if (!first_thread(x->f, i) || !(x->f->collectors & RINGTAP_GAPS))
				continue;
			for (uint32_t k = i; k < x->f->thread_count; k++) {
				if (!same_thread(x->f, i, k))
					continue;
				for (unsigned b = 0; b < GAP_BINS; b++) {
					bins[0][b] +=
						ringtap_snapshot_thread(x->f, k)->gaps_busy[b];
					bins[1][b] +=
						ringtap_snapshot_thread(x->f, k)->gaps_idle[b];
				}
			}
			thread_name(name, ringtap_snapshot_thread(x->f, i));
			for (unsigned idle = 0; idle < 2; idle++) {
				export_labels(labels, "app", x->label, "thread", name, "work",
					idle ? "idle" : "busy", NULL);
				gaps(t, x, labels, bins[idle]);
			}
		}
	}
}

/* ---- latency */

/* 1, 2, 5 from 0.1 us to 1 s. */
static double bound(unsigned i)
{
	static const double steps[] = {1, 2, 5};

	return steps[i % 3] * pow(10, (double)(i / 3) - 7);
}
#define BOUNDS 22

static bool same_pair(const struct ringtap_snapshot *f, uint32_t a, uint32_t b)
{
	const struct ringtap_pair_stats *x = ringtap_snapshot_pair(f, a),
					*y = ringtap_snapshot_pair(f, b);

	return x->rx_port != RINGTAP_NO_INDEX && y->rx_port != RINGTAP_NO_INDEX &&
	       !x->inferred == !y->inferred && same_port(f, x->rx_port, y->rx_port) &&
	       same_port(f, x->tx_port, y->tx_port);
}

static bool first_pair(const struct ringtap_snapshot *f, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (same_pair(f, k, i))
			return false;
	return ringtap_snapshot_pair(f, i)->rx_port != RINGTAP_NO_INDEX;
}

/* Adds a fine histogram to a coarse one; [BOUNDS] is beyond the last. */
static void coarsen(const struct ringtap_pair_stats *p, double hz, uint64_t coarse[BOUNDS + 1])
{
	unsigned at = 0;

	for (uint32_t b = 0; b < ringtap_latency_buckets(); b++) {
		uint64_t width, low = ringtap_latency_low(b, &width);
		double middle = ((double)low + (double)(width - 1) / 2) / hz;

		while (at < BOUNDS && middle > bound(at))
			at++;
		coarse[at] += p->bucket[b];
	}
}

static void latency(struct export_text *t, const struct exported *x, uint32_t i)
{
	const struct ringtap_pair_stats *p = ringtap_snapshot_pair(x->f, i);
	uint64_t coarse[BOUNDS + 1] = {0}, count = 0;
	char labels[LABELS_LEN];
	double sum = 0;

	for (uint32_t k = i; k < x->f->pair_count; k++) {
		if (!same_pair(x->f, i, k))
			continue;
		coarsen(ringtap_snapshot_pair(x->f, k), x->app->tsc_hz, coarse);
		sum += (double)ringtap_snapshot_pair(x->f, k)->sum / x->app->tsc_hz;
	}
	export_labels(labels, "app", x->label, "rx_port",
		ringtap_snapshot_port(x->f, p->rx_port)->name, "tx_port",
		ringtap_snapshot_port(x->f, p->tx_port)->name, NULL);
	for (unsigned b = 0; b < BOUNDS; b++) {
		count += coarse[b];
		export_bucket(t, labels, bound(b), count);
	}
	count += coarse[BOUNDS];
	export_bucket(t, labels, INFINITY, count);
	export_number(t, "_sum", labels, sum);
	export_count(t, "_count", labels, count);
}

static void export_pairs(
	struct export_text *t, const struct exported *x, size_t count, bool inferred)
{
	for (; count--; x++)
		for (uint32_t i = 0; i < x->f->pair_count; i++)
			if (!ringtap_snapshot_pair(x->f, i)->inferred != inferred &&
				first_pair(x->f, i))
				latency(t, x, i);
}

/* Two families: what sums over one of them must not take guesses for measurements. */
static void export_latency(struct export_text *t, const struct exported *x, size_t count)
{
	export_family(t, "ringtap_latency_seconds", "histogram",
		"From receive to send of the packets that were timed; within 1 %.");
	export_pairs(t, x, count, false);
	export_family(t, "ringtap_inferred_latency_seconds", "histogram",
		"The same of packets that had lost their mark: likely, not certain.");
	export_pairs(t, x, count, true);
}

void export_histograms(struct export_text *t, const struct exported *x, size_t count)
{
	export_bursts(t, x, count);
	export_gaps(t, x, count);
	export_latency(t, x, count);
}
