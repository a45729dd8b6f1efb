/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule about mempools with a use that grows: mbufs leak, or a queue in the application grows.
 */

#include "limits.h"
#include "base/util.h"
#include "rules.h"

#define QUARTERS 4u
#define SHARE    4 /* one in N */

struct section {
	uint32_t least, most;
};

/* The one with number k, of n that the parts are divided into. */
static struct section section_of(const struct pool_use *u, uint32_t k, uint32_t n)
{
	struct section s = {.least = UINT32_MAX};

	for (uint32_t i = k * u->parts / n; i < (k + 1) * u->parts / n; i++) {
		if (u->part[i].least < s.least)
			s.least = u->part[i].least;
		if (u->part[i].most > s.most)
			s.most = u->part[i].most;
	}
	return s;
}

/* Whether the least use rises enough from one section to a later one, of n: at SHARE of the mean
 * rate, where it is grown from the first quarter to the last. */
static bool rises(const struct pool_use *u, uint32_t from, uint32_t to, uint32_t n, int64_t grown)
{
	int64_t rise = (int64_t)section_of(u, to, n).least - section_of(u, from, n).least;
	int64_t share = SHARE * n * (QUARTERS - 1); /* share of a section's */

	return rise * share >= grown * QUARTERS * (to - from);
}

static uint32_t widest(const struct pool_use *u)
{
	uint32_t most = 0;

	for (uint32_t k = 0; k < QUARTERS; k++) {
		struct section s = section_of(u, k, QUARTERS);

		if (s.most - s.least > most)
			most = s.most - s.least;
	}
	return most;
}

/* By how much the least use of a quarter grew, from the first to the last; 0: by less than it
 * varies within one of them, or not all the time, at SHARE of the mean rate or more. What is held
 * for a while only, by queues and bursts, varies; a pool that is filled once does not grow at the
 * end. */
static uint32_t growth(const struct pool_use *u)
{
	int64_t grown;

	if (u->parts < 2 * QUARTERS)
		return 0;
	grown = (int64_t)section_of(u, QUARTERS - 1, QUARTERS).least -
		section_of(u, 0, QUARTERS).least;
	if (grown < LIMIT_GROWTH || grown < widest(u))
		return 0;
	for (uint32_t k = 0; k < QUARTERS - 1; k++)
		if (!rises(u, k, k + 1, QUARTERS, grown))
			return 0;
	return rises(u, 2 * QUARTERS - 3, 2 * QUARTERS - 1, 2 * QUARTERS, grown) ? (uint32_t)grown
										 : 0;
}

static uint32_t growth_beyond(const struct examination *e, uint32_t i)
{
	const struct ringtap_pool_stats *p = ringtap_snapshot_pool(e->span.to, i);
	const struct pool_use *u = &e->pools[i].use;

	if (!p->buffer_bytes || p->gone || u->last <= pool_needed(e, p))
		return 0;
	return growth(u);
}

uint32_t examination_growing(const struct examination *e)
{
	uint32_t best = RINGTAP_NO_INDEX, most = 0;

	for (uint32_t i = 0; i < e->pool_count; i++) {
		uint32_t grown = growth_beyond(e, i);

		if (grown > most) {
			most = grown;
			best = i;
		}
	}
	return best;
}

static void use_evidence(struct verdict *v, const struct examination *e,
	const struct ringtap_pool_stats *p, const struct pool_use *u, double a_second)
{
	char first[FORMAT_LEN], last[FORMAT_LEN], size[FORMAT_LEN], need[FORMAT_LEN];
	uint32_t left = p->size > u->last ? p->size - u->last : 0;

	verdict_add_evidence(v,
		"%s of its %s buffers were in use at first and %s at last, more in each quarter of "
		"%.1f s: about %.3g a second more",
		format_count(first, u->first), format_count(size, p->size),
		format_count(last, u->last), (double)(u->last_ns - u->first_ns) / NS_PER_S,
		a_second);
	verdict_add_evidence(v, "descriptors, caches and bursts take %s at most",
		format_count(need, pool_needed(e, p)));
	verdict_add_evidence(v, "at this rate it is empty in %.3g s", left / a_second);
}

static const char growth_advice[] =
	"Either packets are not freed on some path, or a queue in the application grows. 'ringtap "
	"held APP' shows which received packets it holds, of which port and queue, and how their "
	"number changes; 'ringtap drops APP' which it frees";

/* The first and the last quarter lie three quarters of the time apart. */
static double a_second(const struct pool_use *u, uint32_t grown)
{
	double seconds = (double)(u->last_ns - u->first_ns) / NS_PER_S;

	return grown / (seconds * (QUARTERS - 1) / QUARTERS);
}

void rule_growth(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(e->span.to, i);
		const struct pool_use *u = &e->pools[i].use;
		uint32_t grown = growth_beyond(e, i);
		struct verdict *v;

		if (!grown || u->last_ns <= u->first_ns)
			continue;
		v = verdict_add(d, VERDICT_POOL_GROWS, GRADE_FAULT, 9, growth_advice);
		if (!v)
			return;
		printable(v->where, RINGTAP_NAME_LEN, p->name);
		use_evidence(v, e, p, u, a_second(u, grown));
		if (e->packets)
			e->packets(e->packets_ctx, v, p->name, a_second(u, grown));
	}
}
