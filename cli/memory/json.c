/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/json.h"
#include "report.h"
#include "measure/metrics.h"
#include "base/util.h"

static json_t *caches(const struct ringtap_pool_stats *p)
{
	json_t *j = json_object();
	char lcore[12];

	for (uint32_t i = 0; i < p->cache_count; i++) {
		snprintf(lcore, sizeof(lcore), "%u", i);
		if (p->cache[i])
			json_object_set_new(j, lcore, json_count(p->cache[i]));
	}
	return j;
}

static json_t *pool(const struct span *s, uint32_t i)
{
	const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s->to, i);
	json_t *j = json_object();
	struct subject x;

	subject_make(&x, s, RT_OBJECT_POOL, i, false);
	metrics_json(j, &x, RT_OBJECT_POOL, false);
	json_object_set_new(j, "caches", caches(p));
	json_object_set_new(j, "kind", json_text(memory_kind(p)));
	json_object_set_new(j, "pinned_external", json_boolean(p->pinned_external));
	json_object_set_new(j, "base", json_hex(p->base));
	json_object_set_new(j, "span_bytes", json_count(p->span));
	return j;
}

static json_t *model(const struct iotlb *t, unsigned shift)
{
	json_t *j = json_object(), *known = json_object(), *misses = json_object();
	char entries[16];

	for (int i = 0; i < IOTLB_SIZES; i++) {
		snprintf(entries, sizeof(entries), "%u", iotlb_entries[i]);
		json_object_set_new(known, entries, json_count(t->known[i]));
		json_object_set_new(misses, entries, json_count(t->known_misses[i]));
	}
	json_object_set_new(j, "page_bytes", json_count(1ull << shift));
	json_object_set_new(j, "accesses", json_count(t->accesses));
	json_object_set_new(j, "known", known);
	json_object_set_new(j, "misses", misses);
	return j;
}

static json_t *distances(const struct memory_pattern *p)
{
	json_t *j = json_object();
	char bits[8];

	for (int b = 0; b < 64; b++) {
		snprintf(bits, sizeof(bits), "%d", b);
		if (p->distance[b])
			json_object_set_new(j, bits, json_count(p->distance[b]));
	}
	return j;
}

static void pattern_stats(json_t *j, const struct memory_pattern *p)
{
	json_t *pages = json_array(), *models = json_array();

	json_object_set_new(j, "packets", json_count(p->count));
	json_object_set_new(j, "steps", json_count(p->steps));
	json_object_set_new(j, "sequential_steps", json_count(p->sequential));
	json_object_set_new(j, "same_address_steps", json_count(p->same));
	json_object_set_new(j, "distance_log2", distances(p));
	for (int k = 0; k < PAGE_KINDS; k++) {
		json_t *o = json_object();

		json_object_set_new(o, "page_bytes", json_count(1ull << page_shifts[k]));
		json_object_set_new(o, "distinct", json_number(p->pages[k]));
		json_array_append_new(pages, o);
		json_array_append_new(models, model(&p->iotlb[k], page_shifts[k]));
	}
	json_object_set_new(j, "pages_per_1000_packets", pages);
	json_object_set_new(j, "modelled_iotlb", models);
}

static json_t *pattern(const struct ringtap_snapshot *f, const struct memory_pattern *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "port", stats_port_json(f, p->port));
	json_object_set_new(j, "queue", json_integer(p->queue));
	json_object_set_new(j, "pool",
		p->pool == RINGTAP_NO_INDEX ? json_null()
					    : json_text(memory_pool_name(f, p->pool)));
	pattern_stats(j, p);
	return j;
}

static json_t *hardware(const struct pcm_iio *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "error", p->why ? json_text(p->why) : json_null());
	json_object_set_new(j, "misses", p->why ? json_null() : json_count(p->misses));
	json_object_set_new(
		j, "lookups", p->why || !p->has_lookups ? json_null() : json_count(p->lookups));
	return j;
}

int memory_json(const struct memory *mem)
{
	const struct measure *m = mem->m;
	json_t *j = json_application(m->app.name, m->info.pid, m->info.program);
	json_t *pools = json_array(), *patterns = json_array(), *all = json_null();
	const struct ringtap_snapshot *f = m->last;
	const struct span span = {.from = f, .to = f};

	json_object_set_new(j, "ended", json_boolean(m->end == END_BY_APPLICATION));
	json_object_set_new(j, "duration_ns", json_count(f->interval_ns));
	for (uint32_t i = 0; i < f->pool_count; i++)
		json_array_append_new(pools, pool(&span, i));
	json_object_set_new(j, "pools", pools);
	for (size_t i = 0; i < mem->patterns->count; i++)
		json_array_append_new(patterns, pattern(f, &mem->patterns->list[i]));
	json_object_set_new(j, "patterns", patterns);
	if (mem->samples->count) {
		all = json_object();
		pattern_stats(all, &mem->patterns->all);
	}
	json_object_set_new(j, "all", all);
	json_object_set_new(j, "hardware_iotlb", hardware(mem->pcm));
	return json_print(json_document("memory", j), stdout);
}
