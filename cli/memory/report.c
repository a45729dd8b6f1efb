/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools and patterns as tables and CSV. */
#include <inttypes.h>
#include <math.h>

#include "measure/pools.h"
#include "memory.h"
#include "base/util.h"

#define HUGE_FROM (64u << 10) /* bytes: the size of ordinary pages on some machines */

/* Columns of a table that is TEXT_WIDTH wide. */
#define POOL_WIDTH       14
#define PORT_WIDTH       14
#define OPS_WIDTH        11
#define QUEUE_POOL_WIDTH 12

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
	if (!bytes)
		return "-";
	if (bytes >= 1u << 30)
		snprintf(buf, FORMAT_LEN, "%" PRIu64 " GiB", bytes >> 30);
	else if (bytes >= 1u << 20)
		snprintf(buf, FORMAT_LEN, "%" PRIu64 " MiB", bytes >> 20);
	else
		snprintf(buf, FORMAT_LEN, "%" PRIu64 " KiB", bytes >> 10);
	return buf;
}

/* Below the pool's row: its memory and caches, with line breaks. */
static void print_details(const struct ringtap_pool_stats *p)
{
	int column = printf("    %s", memory_kind(p));
	bool first = true;

	for (uint32_t i = 0; i < p->cache_count; i++) {
		char text[32];

		if (!p->cache[i])
			continue;
		column += printf("%s", first ? "; caches:" : ",");
		if (column + snprintf(text, sizeof(text), " lcore %u: %u", i, p->cache[i]) >=
			TEXT_WIDTH)
			column = printf("\n   ") - 1;
		column += printf("%s", text);
		first = false;
	}
	if (!first)
		printf(" (made for %u)", p->cache_size);
	putchar('\n');
}

static void print_pools(const struct ringtap_snapshot *f)
{
	char size[FORMAT_LEN], used[FORMAT_LEN], lowest[FORMAT_LEN], object[FORMAT_LEN],
		buffer[FORMAT_LEN], page[FORMAT_LEN], name[4 * POOL_WIDTH], ops[4 * OPS_WIDTH];

	printf("%-*s %10s %10s %10s %-*s %6s %6s %6s\n", POOL_WIDTH, "pool", "size", "in use",
		"least free", OPS_WIDTH, "ops", "page", "object", "buffer");
	for (uint32_t i = 0; i < f->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(f, i);

		if (p->gone && f->pool_count > 1)
			continue;
		printf("%s %10s %10s %10s %s %6s %6s %6s\n",
			text_cell(name, sizeof(name), p->name, POOL_WIDTH),
			format_count(size, p->size), format_count(used, pool_in_use(p)),
			p->lowest > p->size ? "-" : format_count(lowest, p->lowest),
			text_cell(ops, sizeof(ops), p->ops, OPS_WIDTH),
			page_text(page, p->page_bytes), format_count(object, p->object_bytes),
			p->buffer_bytes ? format_count(buffer, p->buffer_bytes) : "-");
		print_details(p);
	}
	if (!f->pool_count)
		puts("none");
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

static void print_pattern(const struct ringtap_snapshot *f, const struct memory_pattern *p)
{
	char count[FORMAT_LEN], step[FORMAT_LEN], queue[FORMAT_LEN] = "";
	char port[4 * PORT_WIDTH], pool[4 * QUEUE_POOL_WIDTH];

	if (p->queue >= 0)
		snprintf(queue, sizeof(queue), "%d", p->queue);
	printf("%s %3s %s %10s",
		text_cell(port, sizeof(port),
			p->queue < 0 ? "together" : memory_port_name(f, p->port), PORT_WIDTH),
		queue,
		text_cell(pool, sizeof(pool), p->queue < 0 ? "" : memory_pool_name(f, p->pool),
			QUEUE_POOL_WIDTH),
		format_count(count, p->count));
	for (int k = 0; k < PAGE_KINDS; k++) {
		if (isnan(p->pages[k]))
			printf(" %6s", "-");
		else
			printf(" %6.1f", p->pages[k]);
	}
	if (p->steps)
		printf(" %8.1f %%", 100.0 * (double)p->sequential / (double)p->steps);
	else
		printf(" %10s", "-");
	printf(" %5s\n", median_step(step, p));
}

static void print_patterns(const struct memory *mem)
{
	const struct ringtap_snapshot *f = mem->m->last;
	const struct memory_patterns *p = mem->patterns;

	printf("\nBuffers of received packets, in their order; distinct pages in %d packets\n",
		MEMORY_SOME);
	printf("%-*s %3s %-*s %10s %6s %6s %6s %10s %5s\n", PORT_WIDTH, "port", "rxq",
		QUEUE_POOL_WIDTH, "pool", "packets", page_names[0], page_names[1], page_names[2],
		"sequential", "step");
	for (size_t i = 0; i < p->count; i++)
		print_pattern(f, &p->list[i]);
	if (p->count > 1)
		print_pattern(f, &p->all);
}

static void print_distances(const struct memory_pattern *p)
{
	puts("\nSteps from one buffer to the next, all queues together");
	if (p->same)
		printf("%24s %7.3f %%\n", "none", 100.0 * (double)p->same / (double)p->steps);
	for (int b = 0; b < 64; b++) {
		if (p->distance[b])
			printf("%10s 2^%-2d … 2^%-2d bytes %7.3f %%\n", "", b, b + 1,
				100.0 * (double)p->distance[b] / (double)p->steps);
	}
}

static void print_iotlb(const struct memory_pattern *p)
{
	puts("\nModelled IOTLB (LRU): misses per 100 packets");
	printf("%-8s", "entries");
	for (int i = 0; i < IOTLB_SIZES; i++)
		printf(" %7u", iotlb_entries[i]);
	for (int k = 0; k < PAGE_KINDS; k++) {
		const struct iotlb *t = &p->iotlb[k];

		printf("\n%-8s", page_names[k]);
		for (int i = 0; i < IOTLB_SIZES; i++) {
			/* Too little of it is certain. */
			if (t->known[i] < t->accesses / 4)
				printf(" %7s", "-");
			else
				printf(" %7.3f",
					100.0 * (double)t->known_misses[i] / (double)t->known[i]);
		}
	}
	putchar('\n');
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

/* ---- CSV ---- */

static void csv_pattern(const struct ringtap_snapshot *f, const struct memory_pattern *p)
{
	printf("%s,%d,%s,%zu,%" PRIu64 ",%" PRIu64, memory_port_name(f, p->port), p->queue,
		memory_pool_name(f, p->pool), p->count, p->steps, p->sequential);
	for (int k = 0; k < PAGE_KINDS; k++) {
		if (isnan(p->pages[k]))
			putchar(',');
		else
			printf(",%.3f", p->pages[k]);
	}
	for (int k = 0; k < PAGE_KINDS; k++)
		for (int i = 0; i < IOTLB_SIZES; i++)
			printf(",%" PRIu64 ",%" PRIu64, p->iotlb[k].known[i],
				p->iotlb[k].known_misses[i]);
	putchar('\n');
}

void memory_csv(const struct memory *mem)
{
	static const char *const short_names[PAGE_KINDS] = {"4k", "2m", "1g"};

	fputs("port,queue,pool,packets,steps,sequential", stdout);
	for (int k = 0; k < PAGE_KINDS; k++)
		printf(",pages_%s", short_names[k]);
	for (int k = 0; k < PAGE_KINDS; k++)
		for (int i = 0; i < IOTLB_SIZES; i++)
			printf(",known_%s_%u,misses_%s_%u", short_names[k], iotlb_entries[i],
				short_names[k], iotlb_entries[i]);
	putchar('\n');
	for (size_t i = 0; i < mem->patterns->count; i++)
		csv_pattern(mem->m->last, &mem->patterns->list[i]);
}
