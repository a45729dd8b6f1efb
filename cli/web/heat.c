/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"
#include "measure/metrics.h"

static uint64_t *sum_pairs(const struct span *s)
{
	uint64_t *sum = calloc(ringtap_latency_buckets(), sizeof(*sum));

	for (uint32_t p = 0; sum && p < s->to->pair_count; p++) {
		const struct ringtap_pair_stats *b = ringtap_snapshot_pair(s->to, p), *e = NULL;

		if (p < s->from->pair_count)
			e = ringtap_snapshot_pair(s->from, p);
		if (!subject_wanted(s, RT_OBJECT_PAIR, p))
			continue;
		for (uint32_t i = 0; i < ringtap_latency_buckets(); i++)
			sum[i] += grown(b->bucket[i], e ? e->bucket[i] : 0);
	}
	return sum;
}

static unsigned row_of(double ns)
{
	double row = floor(HEAT_OCTAVE * log2(ns / HEAT_LOW_NS));

	return row < 0 ? 0 : row < HEAT_ROWS ? (unsigned)row : HEAT_ROWS - 1;
}

void heat_add(struct heat *m, const struct history *h, const struct span *s)
{
	double ns = 1e9 / s->tsc_hz;
	struct heat_step *to;
	uint64_t *sum, width;

	if (!(s->to->collectors & RINGTAP_LATENCY) || !h->steps)
		return;
	if (!m->ring)
		m->ring = calloc(HISTORY_STEPS, sizeof(*m->ring));
	sum = m->ring ? sum_pairs(s) : NULL;
	if (!sum)
		return;
	m->last = h->steps;
	to = &m->ring[(h->steps - 1) % HISTORY_STEPS];
	*to = (struct heat_step){.next = h->steps, .p50_ns = NAN, .p99_ns = NAN};
	for (uint32_t i = 0; i < ringtap_latency_buckets(); i++) {
		uint32_t *row;

		if (!sum[i])
			continue;
		row = &to->packets[row_of(
			((double)ringtap_latency_low(i, &width) + (double)width / 2) * ns)];
		*row = sum[i] > UINT32_MAX - *row ? UINT32_MAX : *row + (uint32_t)sum[i];
		to->p50_ns = 0;
	}
	if (!isnan(to->p50_ns)) {
		to->p50_ns = ringtap_latency_quantile(sum, 0.5) * ns;
		to->p99_ns = ringtap_latency_quantile(sum, 0.99) * ns;
	}
	free(sum);
}

const struct heat_step *heat_at(const struct heat *m, uint64_t step)
{
	const struct heat_step *at = m->ring ? &m->ring[step % HISTORY_STEPS] : NULL;

	return at && at->next == step + 1 ? at : NULL;
}

void heat_free(struct heat *m)
{
	free(m->ring);
	*m = (struct heat){0};
}
