/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "ids.h"
#include "sample.h"

static uint64_t next_random(struct rt_sample_state *state)
{
	uint64_t v = state->random += UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

/* -log2 of (v + 1) / 2^64, to 5e-5: the polynomial agrees with log2(1 + x) in both ends and in four
 * points between them. No division, and no library of the application's. */
static double minus_log2(uint64_t v)
{
	v |= 1;
	int shift = __builtin_clzll(v);
	double x = (double)(v << shift << 1) * 0x1p-64;

	return shift + 1 -
	       x * (1.4424185785421173 +
			   x * (-0.7119965934909901 +
				       x * (0.42011121154763553 +
						   x * (-0.19540715186198157 +
							       x * 0.04487395526321887))));
}

static uint64_t next_skip(const struct rt_sampler *s, struct rt_sample_state *state)
{
	return (uint64_t)(minus_log2(next_random(state)) * s->scale);
}

int rt_sampler_make(struct rt_sampler **out, const struct rt_msg_sample *m)
{
	struct rt_sampler *s = aligned_alloc(_Alignof(struct rt_sampler), sizeof(*s));
	double q = 1.0 / m->every, sum = 0, power = q;

	*out = s;
	if (!s)
		return -ENOMEM;
	s->mask = m->every - 1;
	s->secret = (struct secret){{m->secret[0] | 1, m->secret[1] | 1}};
	/* -ln(1 - 1/N), by its series: for N = 2 the last term is 2^-60. */
	for (unsigned i = 1; i <= 60; i++, power *= q)
		sum += power / i;
	s->scale = 0.69314718055994531 / sum;
	for (unsigned i = 0; i < RT_MAX_RINGS; i++) {
		s->state[i].random = hash_number(&s->secret, i, m->secret[1]);
		s->state[i].skip = next_skip(s, &s->state[i]);
	}
	return 0;
}

static unsigned choose_by_id(const struct rt_sampler *s, struct rt_sample_state *state,
	const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n, struct rte_mbuf **chosen)
{
	const uint64_t flag = rt_ids.flag;
	const int32_t offset = rt_ids.offset;
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t id = rt_ids_of(pkts[i], tap, tap->direction, flag, offset) & RT_ID_MASK;

		if (rt_likely(id)) {
			if (rt_likely(!rt_sampler_has(s, id)))
				continue;
		} else if (state->skip) {
			state->skip--;
			continue;
		} else {
			state->skip = next_skip(s, state);
		}
		chosen[k++] = pkts[i];
	}
	return k;
}

unsigned rt_sampler_choose(const struct rt_sampler *s, struct rt_sample_state *state,
	const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n, struct rte_mbuf **chosen)
{
	unsigned k = 0;

	if (tap->ids)
		return choose_by_id(s, state, tap, pkts, n, chosen);
	while (n > state->skip) {
		pkts += state->skip;
		n -= (unsigned)state->skip + 1;
		chosen[k++] = *pkts++;
		state->skip = next_skip(s, state);
	}
	state->skip -= n;
	return k;
}
