/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule about where received packets lie. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "doctor_limits.h"
#include "iotlb.h"
#include "util.h"

#define SOME 1000 /* packets, over which distinct pages are counted */

static const struct ringtap_figures_pool *pool_at(const struct ringtap_figures *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->pool_count; i++)
		if (!f->pools[i].gone && address - f->pools[i].base < f->pools[i].span)
			return &f->pools[i];
	return NULL;
}

/* RTE_BAD_IOVA is all ones. */
static bool has_iova(const struct ringtap_sample *s)
{
	return s->iova && s->iova != UINT64_MAX;
}

/* Addresses as devices see them. NULL: out of memory. */
static uint64_t *addresses(const struct ringtap_stretch *s)
{
	uint64_t *list = malloc((s->count + 1) * sizeof(*list));

	for (uint64_t i = 0; list && i < s->count; i++)
		list[i] = has_iova(&s->sample[i]) ? s->sample[i].iova : s->sample[i].address;
	return list;
}

static unsigned entries_index(void)
{
	unsigned i = 0;

	while (i < IOTLB_SIZES - 1 && iotlb_entries[i] < LIMIT_SCATTERED_ENTRIES)
		i++;
	return i;
}

static const char scattered_advice[] =
	"Put the mempool into huge pages (no --no-huge), best of 1 GiB; keep buffers few and warm: "
	"a "
	"pool no larger than needed, a per-lcore cache (testpmd: --mbcache), a LIFO pool "
	"(--mbuf-pool-ops-name=stack). 'ringtap memory --plot' draws it";

static void judge_stretch(const struct examination *e, const struct ringtap_stretch *s,
	const struct thread_rates *x, struct diagnosis *d)
{
	const struct ringtap_figures *f = e->samples;
	const struct ringtap_figures_pool *p = pool_at(f, s->sample[0].address);
	uint64_t page = p && p->page_bytes ? p->page_bytes : 4096, *list = addresses(s);
	unsigned shift = (unsigned)__builtin_ctzll(page), at = entries_index();
	char name[RINGTAP_NAME_LEN], size[FORMAT_LEN];
	struct iotlb model;
	struct verdict *v;
	double misses;

	if (!list || iotlb_model(list, s->count, shift, &model)) {
		free(list);
		return;
	}
	misses = (double)model.misses[at] / (double)model.accesses;
	v = misses < LIMIT_SCATTERED ? NULL
				     : verdict_add(d, VERDICT_SCATTERED, GRADE_FAULT, misses / 1000,
					       scattered_advice);
	if (v) {
		thread_name(v->where, &f->threads[s->thread]);
		verdict_say(v, "1,000 packets in a row lie on %.0f different pages of %s bytes",
			iotlb_distinct(list, s->count, shift, SOME), format_count(size, page));
		verdict_say(v,
			"a translation cache of %u entries (a model: LRU) misses %.0f %% of "
			"them",
			iotlb_entries[at], 100 * misses);
		if (p)
			verdict_say(v, "they are of mempool %s: %u objects, %s, cache of %u",
				printable(name, sizeof(name), p->name), p->size, p->ops,
				p->cache_size);
		verdict_say(v, "the thread works %.1f %% of its time, %.0f cycles a packet",
			100 * x->busy, x->cycles_per_packet);
	}
	free(list);
}

void rule_scattered(const struct examination *e, struct diagnosis *d)
{
	const struct ringtap_figures *f = e->samples;
	uint64_t judged = 0; /* threads */

	for (uint32_t i = 0; f && i < f->stretch_count; i++) {
		const struct ringtap_stretch *s = &f->stretches[i];
		struct thread_rates x;

		if (s->count < LIMIT_SCATTERED_SAMPLES || s->thread >= e->span.to->thread_count ||
			s->thread >= 64 || judged & 1ull << s->thread)
			continue;
		rates_thread(e->app, &e->span, s->thread, &x);
		if (!(x.busy >= LIMIT_SCATTERED_BUSY))
			continue;
		judged |= 1ull << s->thread;
		judge_stretch(e, s, &x, d);
	}
}
