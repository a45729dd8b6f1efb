/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools and patterns as tables. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "measure/pools.h"
#include "report.h"
#include "show/sheet.h"
#include "base/util.h"

#define HUGE_FROM (64u << 10) /* bytes: the size of ordinary pages on some machines */

const char *memory_kind(const struct ringtap_pool_stats *p)
{
	if (p->pinned_external)
		return "pinned external";
	if (p->memory == RINGTAP_MEMORY_EXTERNAL)
		return "external";
	if (p->memory == RINGTAP_MEMORY_UNKNOWN)
		return "unknown";
	return p->page_bytes > HUGE_FROM ? "huge pages" : "ordinary pages";
}

const char *memory_pool_name(const struct ringtap_snapshot *f, uint32_t pool)
{
	return pool < f->pool_count ? ringtap_snapshot_pool(f, pool)->name : "-";
}

const char *memory_port_name(const struct ringtap_snapshot *f, uint32_t port)
{
	return port < f->port_count ? ringtap_snapshot_port(f, port)->name : "-";
}

static const char *page_text(char buf[FORMAT_LEN], uint64_t bytes)
{
	return bytes ? format_bytes(buf, (double)bytes) : "-";
}

/* Below the pool's row: its memory and caches. */
static void note_details(struct sheet *t, const struct ringtap_pool_stats *p)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	bool first = true;

	if (!f)
		return;
	fputs(memory_kind(p), f);
	for (uint32_t i = 0; i < p->cache_count; i++) {
		if (p->cache[i])
			fprintf(f, "%s lcore %u: %u", first ? "; caches:" : ",", i, p->cache[i]);
		first = first && !p->cache[i];
	}
	if (!first)
		fprintf(f, " (made for %u)", p->cache_size);
	if (!fclose(f))
		sheet_note(t, "%s", text);
	free(text);
}

static void print_pools(const struct ringtap_snapshot *f)
{
	struct sheet t = {.heads = {"pool", "size", "in use", "least free", "ops", "page", "object",
				  "buffer"},
		.columns = 8,
		.left = 1 << 4,
		.cut = 1 << 0 | 1 << 4,
		.dense = true};
	char size[FORMAT_LEN], used[FORMAT_LEN], lowest[FORMAT_LEN], object[FORMAT_LEN],
		buffer[FORMAT_LEN], page[FORMAT_LEN];

	for (uint32_t i = 0; i < f->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(f, i);

		if (p->gone && f->pool_count > 1)
			continue;
		sheet_add(&t, p->name, format_count(size, p->size),
			p->available == UINT32_MAX ? "-" : format_count(used, pool_in_use(p)),
			p->lowest > p->size ? "-" : format_count(lowest, p->lowest), p->ops,
			page_text(page, p->page_bytes), format_count(object, p->object_bytes),
			p->buffer_bytes ? format_count(buffer, p->buffer_bytes) : "-", NULL);
		note_details(&t, p);
	}
	sheet_end(&t, 0, stdout);
	if (!f->pool_count)
		puts("mempools: none");
}

/* The distance below or at which half of the steps lie: the middle of its power of two. */
static const char *median_step(char buf[FORMAT_LEN], const struct memory_pattern *p)
{
	uint64_t sum = p->same;

	if (!p->steps)
		return "-";
	if (2 * sum >= p->steps)
		return "0";
	for (int b = 0; b < 64; b++) {
		sum += p->distance[b];
		if (2 * sum < p->steps)
			continue;
		snprintf(buf, FORMAT_LEN, "2^%d", b);
		return buf;
	}
	return "-";
}

static void add_pattern(
	struct sheet *t, const struct ringtap_snapshot *f, const struct memory_pattern *p)
{
	char step[FORMAT_LEN];

	if (sheet_row(t))
		return;
	sheet_put(t, 0, "%s", p->queue < 0 ? "together" : memory_port_name(f, p->port));
	if (p->queue >= 0) {
		sheet_put(t, 1, "%d", p->queue);
		sheet_put(t, 2, "%s", memory_pool_name(f, p->pool));
	}
	sheet_put_count(t, 3, p->count);
	for (unsigned k = 0; k < PAGE_KINDS; k++)
		sheet_put(t, 4 + k, isnan(p->pages[k]) ? "-" : "%.1f", p->pages[k]);
	sheet_put(t, 4 + PAGE_KINDS, p->steps ? "%.1f %%" : "-",
		100.0 * (double)p->sequential / (double)p->steps);
	sheet_put(t, 5 + PAGE_KINDS, "%s", median_step(step, p));
}

static void print_patterns(const struct memory *mem)
{
	const struct ringtap_snapshot *f = mem->m->last;
	const struct memory_patterns *p = mem->patterns;
	struct sheet t = {.heads = {"port", "rxq", "pool", "packets", page_names[0], page_names[1],
				  page_names[2], "sequential", "step"},
		.columns = 6 + PAGE_KINDS,
		.left = 1 << 2,
		.cut = 1 << 0 | 1 << 2,
		.dense = true};

	printf("\nBuffers of received packets, in their order; distinct pages in %d packets\n",
		MEMORY_SOME);
	for (size_t i = 0; i < p->count; i++)
		add_pattern(&t, f, &p->list[i]);
	if (p->count > 1)
		add_pattern(&t, f, &p->all);
	sheet_end(&t, 0, stdout);
}

static void print_distances(const struct memory_pattern *p)
{
	struct sheet t = {.heads = {"", ""}, .columns = 2, .numbers = true};

	puts("\nSteps from one buffer to the next, all queues together");
	for (int b = -1; b < 64; b++) {
		uint64_t n = b < 0 ? p->same : p->distance[b];

		if (!n || sheet_row(&t))
			continue;
		if (b < 0)
			sheet_put(&t, 0, "none");
		else
			sheet_put(&t, 0, "2^%d … 2^%d bytes", b, b + 1);
		sheet_put(&t, 1, "%.3f %%", 100.0 * (double)n / (double)p->steps);
	}
	sheet_end(&t, 0, stdout);
}

static void print_iotlb(const struct memory_pattern *p)
{
	struct sheet t = {.heads = {"entries"}, .columns = 1 + IOTLB_SIZES, .dense = true};
	char heads[IOTLB_SIZES][FORMAT_LEN];

	puts("\nModelled IOTLB (LRU): misses per 100 packets");
	for (unsigned i = 0; i < IOTLB_SIZES; i++) {
		snprintf(heads[i], sizeof(heads[i]), "%u", iotlb_entries[i]);
		t.heads[1 + i] = heads[i];
	}
	for (int k = 0; k < PAGE_KINDS; k++) {
		const struct iotlb *b = &p->iotlb[k];

		if (sheet_row(&t))
			break;
		sheet_put(&t, 0, "%s", page_names[k]);
		/* Too little of it is certain where few accesses are. */
		for (unsigned i = 0; i < IOTLB_SIZES; i++)
			sheet_put(&t, 1 + i, b->known[i] < b->accesses / 4 ? "-" : "%.3f",
				100.0 * (double)b->known_misses[i] / (double)b->known[i]);
	}
	sheet_end(&t, 0, stdout);
}

static void print_pcm(const struct pcm_iio *pcm)
{
	char misses[FORMAT_LEN], lookups[FORMAT_LEN];

	if (pcm->why)
		text_wrapf(stdout, 2, "IOTLB of the hardware: not known, %s", pcm->why);
	else if (pcm->has_lookups && pcm->lookups)
		text_wrapf(stdout, 2,
			"IOTLB of the hardware, all devices: %s misses in %s lookups (%.3f in 100)",
			format_count(misses, pcm->misses), format_count(lookups, pcm->lookups),
			100.0 * (double)pcm->misses / (double)pcm->lookups);
	else
		printf("IOTLB of the hardware, all devices: %s misses\n",
			format_count(misses, pcm->misses));
}

void memory_print(const struct memory *mem)
{
	const struct measure *m = mem->m;

	text_wrapf(stdout, 2, "%s: %.1f s", m->app.name, (double)m->last->interval_ns / NS_PER_S);
	putchar('\n');
	print_pools(m->last);
	if (!mem->samples->count) {
		puts("\nToo few packets were received in that time: there are no samples.");
	} else {
		print_patterns(mem);
		if (mem->distances)
			print_distances(&mem->patterns->all);
		print_iotlb(&mem->patterns->all);
	}
	print_pcm(mem->pcm);
}
