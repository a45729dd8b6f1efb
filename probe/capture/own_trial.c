/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_trial.h"

#include "chunks.h"
#include "common/clock.h"

#define EVERY_NS     1000000000ull
#define WARM_BYTES   16384u /* twice the distance of the requests */
#define SAMPLE_BYTES 1024u  /* a burst of less is none */
#define BLOCK_COUNT  4u     /* samples of a block */
/* The other way must be cheaper by 1/MARGIN. */
#define MARGIN 32u

static struct rt_own_trial *trial_of(const struct rt_ring *r)
{
	return &r->chunks->trials[r->index];
}

static uint32_t median(uint32_t v[RT_OWN_SAMPLES])
{
	for (unsigned i = 1; i < RT_OWN_SAMPLES; i++) {
		uint32_t x = v[i];
		unsigned k = i;

		for (; k && v[k - 1] > x; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
	return v[RT_OWN_SAMPLES / 2];
}

void rt_own_due(struct rt_ring *r)
{
	struct rt_own_trial *t = trial_of(r);

	if (!r->own_ahead || r->own_ahead & RT_OWN_TRIAL || r->last_ns < t->next_ns)
		return;
	*t = (struct rt_own_trial){.was = r->own_ahead, .block = r->head};
	r->own_ahead |= RT_OWN_TRIAL;
}

static void begin_block(struct rt_own_trial *t, uint64_t head)
{
	t->way = !t->way;
	t->block = head;
	t->block_count = 0;
}

bool rt_own_note(struct rt_own_trial *t, uint64_t head, uint64_t end, uint64_t cycles, bool *asks)
{
	bool asked = t->was & RT_OWN_LARGE;
	uint64_t cost, now, other;

	if (head - t->block < WARM_BYTES || end - head < SAMPLE_BYTES)
		return false;
	cost = cycles * 256 / (end - head);
	if (t->count[t->way] < RT_OWN_SAMPLES)
		t->cost[t->way][t->count[t->way]++] =
			cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
	if (++t->block_count < BLOCK_COUNT)
		return false;
	begin_block(t, end);
	if (t->count[0] < RT_OWN_SAMPLES || t->count[1] < RT_OWN_SAMPLES)
		return false;
	now = median(t->cost[asked]);
	other = median(t->cost[!asked]);
	*asks = other + other / MARGIN < now ? !asked : asked;
	return true;
}

uint64_t rt_own_start(struct rt_ring *r)
{
	r->own_ahead =
		trial_of(r)->way ? r->own_ahead | RT_OWN_LARGE : r->own_ahead & ~RT_OWN_LARGE;
	return rt_tsc();
}

void rt_own_stop(struct rt_ring *r, uint64_t start, uint64_t head)
{
	struct rt_own_trial *t = trial_of(r);
	bool asks;

	if (!rt_own_note(t, head, r->head, rt_tsc() - start, &asks))
		return;
	r->own_ahead = asks ? t->was | RT_OWN_LARGE : t->was & ~RT_OWN_LARGE;
	t->next_ns = r->last_ns + EVERY_NS;
}
