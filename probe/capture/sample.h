/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets a session with sampling takes: one of N, before the filter.
 *
 * Packets with an id are chosen by a keyed hash of the id without its source: a reception, all its
 * sendings, its clones and inferred ids are chosen together, by all processes of an application,
 * and those of 1:N are also among those of 1:M for each smaller M.
 *
 * All others are chosen by random skips, of a geometric distribution: as if a coin was tossed for
 * each packet. Every N-th packet would be an alias of traffic with a period.
 */
#ifndef RINGTAP_PROBE_CAPTURE_SAMPLE_H
#define RINGTAP_PROBE_CAPTURE_SAMPLE_H

#include <rte_mbuf.h>

#include "common/hash.h"
#include "common/proto.h"
#include "probe/hook/tap.h"

/* A thread's part. */
struct rt_sample_state {
	uint64_t skip;   /* packets without an id before the next that is chosen */
	uint64_t random; /* splitmix64 */
} __attribute__((aligned(64)));

struct rt_sampler {
	uint64_t mask; /* N - 1 */
	double scale;  /* a skip is the logarithm of a random number, times this */
	struct secret secret;
	struct rt_sample_state state[RT_MAX_RINGS]; /* by slot of its thread */
};

/* -ENOMEM. The caller frees *out with free(). */
int rt_sampler_make(struct rt_sampler **out, const struct rt_msg_sample *m);

/* Whether the packets of an id are chosen. The second round: the low bits of one multiplication
 * repeat with the low bits of the number. */
static inline bool rt_sampler_has(const struct rt_sampler *s, uint64_t id)
{
	uint64_t h = hash_number(&s->secret, id, 0);

	return !(hash_mix(h ^ s->secret.word[1], s->secret.word[0]) & s->mask);
}

/* Hot path. Stores those of n packets of a burst that are chosen, and returns their number. Those
 * that were received have their ids. */
unsigned rt_sampler_choose(const struct rt_sampler *s, struct rt_sample_state *state,
	const struct rt_tap *tap, struct rte_mbuf **pkts, unsigned n, struct rte_mbuf **chosen);

#endif
