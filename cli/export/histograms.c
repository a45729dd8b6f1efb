/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms with few and fixed bounds, the same for every application and attachment, whatever the
 * frequency of the TSC. */
#include <math.h>

#include "labels.h"

#define GAP_BINS       48
#define GAP_BOUNDS     18
#define LATENCY_BOUNDS 22
#define BURST_SAMPLES  14 /* 0, powers of two up to RINGTAP_BURSTS, beyond, sum, count */
#define BOUNDS_MAX     LATENCY_BOUNDS

/* 1, 3 from 0.1 us to 30 s: the bins are an octave wide. */
static double gap_bound(unsigned i)
{
	return (i % 2 ? 3 : 1) * pow(10, (double)(i / 2) - 7);
}

/* 1, 2, 5 from 0.1 us to 1 s. */
static double latency_bound(unsigned i)
{
	static const double steps[] = {1, 2, 5};

	return steps[i % 3] * pow(10, (double)(i / 3) - 7);
}

struct histogram {
	double (*bound)(unsigned i);
	unsigned bounds;
	uint64_t bucket[BOUNDS_MAX + 1]; /* the last is beyond all bounds */
	double sum;
};

/* Adds count values. Call it with values that do not fall; *at begins with 0. */
static void add(struct histogram *h, unsigned *at, double value, uint64_t count)
{
	while (*at < h->bounds && value > h->bound(*at))
		(*at)++;
	h->bucket[*at] += count;
}

static void print(struct export_text *t, const char *labels, const struct histogram *h)
{
	uint64_t count = 0;

	if (!export_takes(t, h->bounds + 3))
		return;
	for (unsigned i = 0; i <= h->bounds; i++) {
		count += h->bucket[i];
		export_bucket(t, labels, i < h->bounds ? h->bound(i) : INFINITY, count);
	}
	export_number(t, "_sum", labels, h->sum);
	export_number(t, "_count", labels, (double)count);
}

/* Sum and count are those of the buckets, which packets that arrive meanwhile do not change. */
static void print_bursts(struct export_text *t, const char *labels, const struct tally *y)
{
	uint64_t sum = 0;
	unsigned n = 0;

	if (!export_takes(t, BURST_SAMPLES))
		return;
	for (unsigned le = 0; le <= RINGTAP_BURSTS; le = le ? 2 * le : 1) {
		for (; n <= le; n++)
			sum += y->burst[n];
		export_bucket(t, labels, le, sum);
	}
	sum += y->big_calls;
	export_bucket(t, labels, INFINITY, sum);
	export_number(t, "_sum", labels, (double)y->packets);
	export_number(t, "_count", labels, (double)sum);
}

static void export_bursts(struct export_text *t, const struct exported *x, uint32_t i)
{
	const struct series *s = labels_series(x, RT_OBJECT_CALLS);
	char labels[LABELS_LEN];
	struct tally y = {0};

	for (uint32_t k = i; k != RINGTAP_NO_INDEX; k = s->next[k])
		tally_add(&y, &x->span, k);
	print_bursts(t, labels_of(labels, x, RT_OBJECT_CALLS, i), &y);
}

/* A bin holds 2^k to 2^(k + 1) cycles and counts as its middle. */
static void add_gaps(struct histogram *h, const uint64_t bin[GAP_BINS], double hz)
{
	unsigned at = 0;

	for (unsigned k = 0; k < GAP_BINS; k++) {
		double middle = 1.5 * (double)(1ull << k) / hz;

		add(h, &at, middle, bin[k]);
		h->sum += (double)bin[k] * middle;
	}
}

static void export_gaps(struct export_text *t, const struct exported *x, uint32_t i)
{
	const struct series *s = labels_series(x, RT_OBJECT_THREAD);
	const struct ringtap_snapshot *f = x->span.to;
	char labels[LABELS_LEN], name[THREAD_NAME_LEN];

	for (unsigned idle = 0; idle < 2; idle++) {
		struct histogram h = {.bound = gap_bound, .bounds = GAP_BOUNDS};

		for (uint32_t k = i; k != RINGTAP_NO_INDEX; k = s->next[k]) {
			const struct ringtap_thread_stats *th = ringtap_snapshot_thread(f, k);

			add_gaps(&h, idle ? th->gaps_idle : th->gaps_busy, x->span.tsc_hz);
		}
		thread_label(name, ringtap_snapshot_thread(f, i));
		print(t,
			export_labels(labels, "app", x->label, "thread", name, "work",
				idle ? "idle" : "busy", NULL),
			&h);
	}
}

static void add_latency(struct histogram *h, const struct ringtap_pair_stats *p, double hz)
{
	unsigned at = 0;

	for (uint32_t b = 0; b < ringtap_latency_buckets(); b++) {
		uint64_t width, low = ringtap_latency_low(b, &width);

		add(h, &at, ((double)low + (double)(width - 1) / 2) / hz, p->bucket[b]);
	}
	h->sum += (double)p->sum / hz;
}

static void export_latency(struct export_text *t, const struct exported *x, uint32_t i)
{
	struct histogram h = {.bound = latency_bound, .bounds = LATENCY_BOUNDS};
	const struct series *s = labels_series(x, RT_OBJECT_PAIR);
	const struct ringtap_snapshot *f = x->span.to;
	char labels[LABELS_LEN];

	for (uint32_t k = i; k != RINGTAP_NO_INDEX; k = s->next[k])
		add_latency(&h, ringtap_snapshot_pair(f, k), x->span.tsc_hz);
	print(t, labels_of(labels, x, RT_OBJECT_PAIR, i), &h);
}

void export_histogram(struct export_text *t, enum rt_metric_id id, const struct exported *x)
{
	const struct series *s = labels_series(x, rt_metrics[id].object);
	const struct ringtap_snapshot *f = x->span.to;

	for (uint32_t k = 0; k < s->count; k++) {
		uint32_t i = s->first[k];

		if (id == RT_M_BURSTS)
			export_bursts(t, x, i);
		else if (id == RT_M_GAPS)
			export_gaps(t, x, i);
		else if (!ringtap_snapshot_pair(f, i)->inferred == (id == RT_M_LATENCY))
			export_latency(t, x, i);
	}
}
