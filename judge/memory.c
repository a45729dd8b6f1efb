/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule about the addresses of received packets. */
#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "measure/iotlb.h"
#include "measure/pools.h"
#include "base/util.h"
#include "rules.h"

#define SOME 1000 /* packets, over which distinct pages are counted */

/* Drivers in software: the CPU copies, or nothing is read at all. No device translates addresses.
 */
static bool no_dma(const char *driver)
{
	static const char *const drivers[] = {"net_null", "net_ring", "net_af_packet", "af_packet",
		"net_tap", "net_pcap", "net_memif", "net_virtio_user", "net_vhost", "net_kni"};

	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(driver, drivers[i]))
			return true;
	return false;
}

/* RTE_BAD_IOVA is all ones. */
static bool has_iova(const struct ringtap_sample *s)
{
	return s->iova && s->iova != UINT64_MAX;
}

/* Addresses of one pool's buffers in a run, as devices see them. NULL: out of memory. */
static uint64_t *addresses(const struct ringtap_snapshot *f, const struct ringtap_sample_run *s,
	uint32_t pool, uint64_t *count)
{
	uint64_t *list = malloc((s->count + 1) * sizeof(*list));

	*count = 0;
	for (uint64_t i = 0; list && i < s->count; i++) {
		const struct ringtap_sample *a = ringtap_sample_run_at(s, i);

		if (pool_at(f, a->address) == pool)
			list[(*count)++] = has_iova(a) ? a->iova : a->address;
	}
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
	"Put the mempool into huge pages (no --no-huge), best of 1 GiB; keep buffers few and "
	"warm: a pool no larger than needed, a per-lcore cache (testpmd: --mbcache), a LIFO pool "
	"(--mbuf-pool-ops-name=stack). 'ringtap memory --html FILE' draws it";

/* port: the port, if its driver does no DMA, else NULL. */
static void scatter_evidence(struct verdict *v, const struct ringtap_pool_stats *p,
	const struct thread_rates *x, const struct ringtap_port_stats *port)
{
	char name[RINGTAP_NAME_LEN], driver[RINGTAP_NAME_LEN];

	verdict_add_evidence(v, "they are of mempool %s: %u objects, %s, cache of %u",
		printable(name, sizeof(name), p->name), p->size, p->ops, p->cache_size);
	verdict_add_evidence(v, "the thread works %.1f %% of its time, %.0f cycles a packet",
		100 * x->busy, x->cycles_per_packet);
	if (port)
		verdict_add_evidence(v,
			"%s: the driver %s has no device that reads memory, so no IOTLB misses; "
			"the CPU's TLB, which is larger, may",
			printable(name, sizeof(name), port->name),
			printable(driver, sizeof(driver), port->driver));
}

/* Judges the buffers of the first packet's pool. False: there are too few, or the size of their
 * pages is unknown. */
static bool judge_run(const struct examination *e, const struct ringtap_sample_run *s,
	const struct thread_rates *x, struct diagnosis *d)
{
	const struct ringtap_snapshot *f = e->samples;
	const struct ringtap_sample *first = ringtap_sample_run_at(s, 0);
	uint32_t pool = pool_at(f, first->address), port = first->port;
	uint64_t page = pool == RINGTAP_NO_INDEX ? 0 : ringtap_snapshot_pool(f, pool)->page_bytes;
	uint64_t count, *list;
	unsigned shift = page ? (unsigned)__builtin_ctzll(page) : 0, at = entries_index();
	bool soft = port < f->port_count && no_dma(ringtap_snapshot_port(f, port)->driver);
	struct iotlb model;
	struct verdict *v;
	char size[FORMAT_LEN];
	double misses;

	if (!page)
		return false;
	list = addresses(f, s, pool, &count);
	if (!list || count < LIMIT_SCATTERED_SAMPLES || iotlb_model(list, count, shift, &model)) {
		free(list);
		return false;
	}
	misses = (double)model.misses[at] / (double)model.accesses;
	v = misses < LIMIT_SCATTERED
		    ? NULL
		    : verdict_add(d, VERDICT_SCATTERED, soft ? GRADE_NOTE : GRADE_FAULT,
			      misses / 1000, scattered_advice);
	if (v) {
		thread_name(v->where, ringtap_snapshot_thread(f, s->thread));
		verdict_add_evidence(v, "1,000 packets in a row lie on %.0f different pages of %s",
			iotlb_distinct(list, count, shift, SOME), format_bytes(size, (double)page));
		verdict_add_evidence(v,
			"a translation cache of %u entries (a model: LRU) misses %.0f %% of them",
			iotlb_entries[at], 100 * misses);
		scatter_evidence(v, ringtap_snapshot_pool(f, pool), x,
			soft ? ringtap_snapshot_port(f, port) : NULL);
	}
	free(list);
	return true;
}

void rule_scattered(const struct examination *e, struct diagnosis *d)
{
	const struct ringtap_snapshot *f = e->samples;
	bool *judged = f ? calloc(e->span.to->thread_count + 1, sizeof(*judged)) : NULL;

	for (uint32_t i = 0; judged && i < f->sample_run_count; i++) {
		const struct ringtap_sample_run *s = ringtap_snapshot_sample_run(f, i);
		struct thread_rates x;

		if (s->count < LIMIT_SCATTERED_SAMPLES || s->thread >= e->span.to->thread_count ||
			judged[s->thread])
			continue;
		rates_thread(&e->span, s->thread, &x);
		if (!(x.busy >= LIMIT_SCATTERED_BUSY))
			continue;
		if (judge_run(e, s, &x, d))
			judged[s->thread] = true;
	}
	free(judged);
}
