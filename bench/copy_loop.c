/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The yardstick of the capture path: a producer that does nothing but write finished pcapng blocks
 * into a ring, and a consumer that follows it. Two pinned threads, no hooks, filters or counts.
 * The producer waits where a capture would lose, so the rate is what both sustain.
 */
#include "copy_loop.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "copy_store.h"
#include "ring_mem.h"
#include "common/atomics.h"

enum walk { WALK_NONE, WALK_HEADERS, WALK_LINES };

struct options {
	const struct copy_flavour *flavour;
	uint64_t ring_size;
	enum ring_pages pages;
	enum walk walk;
	uint32_t frame; /* bytes; 0: a mix of 64 to 1518 */
	uint32_t mbufs;
	uint32_t prefetch;   /* bytes ahead of the writer */
	uint32_t walk_ahead; /* bytes that the walker prefetches ahead */
	uint64_t batch;      /* bytes that the consumer waits for before it takes them */
	unsigned pause;      /* pauses between reads of head */
	unsigned repeat;
	unsigned ms;
	int cpu[2];
	bool demote;
};

struct consumer {
	struct copy_shared *shared;
	const uint8_t *ring;
	const struct options *opt;
	uint64_t packets;
	uint64_t sum; /* keeps the reads from being optimised away */
};

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		fprintf(stderr, "copy_loop: cannot run on cpu %d: %s\n", cpu, strerror(errno));
}

static double now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Lengths chain the headers, so without prefetching each one costs a transfer from the producer's
 * cache. Never past the end: the producer is writing there. */
static void walk_headers(struct consumer *c, uint64_t from, uint64_t to)
{
	const uint32_t ahead = c->opt->walk_ahead;
	const uint8_t *p = c->ring + (from & (c->opt->ring_size - 1)), *end = p + (to - from);
	const uint8_t *fetched = p;
	while (p < end) {
		const uint8_t *until = (size_t)(end - p) < ahead ? end : p + ahead;
		for (; fetched < until; fetched += 64)
			__builtin_prefetch(fetched);
		uint32_t len;
		memcpy(&len, p + 4, sizeof(len));
		c->packets++;
		c->sum += p[16];
		p += len;
	}
}

static void walk_lines(struct consumer *c, uint64_t from, uint64_t to)
{
	const uint8_t *p = c->ring + (from & (c->opt->ring_size - 1));
	for (uint64_t off = 0; off < to - from; off += 64)
		c->sum += p[off];
}

static void *consume(void *arg)
{
	struct consumer *c = arg;
	uint64_t tail = 0;
	pin(c->opt->cpu[1]);
	while (!rt_load(&c->shared->stop)) {
		/* Pairs with the release in COPY_PRODUCER(). */
		uint64_t head = rt_load_acquire(&c->shared->head);
		if (head - tail <= c->opt->batch) {
			for (unsigned i = 0; i <= c->opt->pause; i++)
				rt_pause();
			continue;
		}
		if (c->opt->walk == WALK_HEADERS)
			walk_headers(c, tail, head);
		else if (c->opt->walk == WALK_LINES)
			walk_lines(c, tail, head);
		tail = head;
		/* Pairs with the acquire in room(). */
		rt_store_release(&c->shared->tail, tail);
	}
	return NULL;
}

struct produce_arg {
	struct copy_producer *p;
	const struct options *opt;
	double seconds;
};

static void *produce(void *arg)
{
	struct produce_arg *a = arg;
	pin(a->opt->cpu[0]);
	double start = now_s();
	a->opt->flavour->produce(a->p);
	a->seconds = now_s() - start;
	return NULL;
}

#define MBUF_STRIDE 2432u /* what a testpmd mbuf of 2048 bytes of room takes in its pool */
#define MBUF_HEAD   256u  /* struct and headroom */

static uint32_t frame_of(const struct options *opt, uint32_t i)
{
	static const uint16_t mix[] = {64, 128, 64, 256, 64, 512, 320, 1518};
	return opt->frame != 0 ? opt->frame : mix[i % 8];
}

static struct fake_mbuf **make_mbufs(const struct options *opt, uint32_t *max_len)
{
	struct fake_mbuf **table = calloc(opt->mbufs, sizeof(*table));
	uint8_t *pool = aligned_alloc(128, (size_t)opt->mbufs * MBUF_STRIDE);
	if (table == NULL || pool == NULL)
		return NULL;
	memset(pool, 0x5a, (size_t)opt->mbufs * MBUF_STRIDE);
	*max_len = 0;
	for (uint32_t i = 0; i < opt->mbufs; i++) {
		struct fake_mbuf *m = (struct fake_mbuf *)(pool + (size_t)i * MBUF_STRIDE);
		m->buf_addr = (uint8_t *)m + sizeof(*m);
		m->data_off = MBUF_HEAD - sizeof(*m);
		m->data_len = (uint16_t)frame_of(opt, i);
		m->pkt_len = m->data_len;
		if (m->data_len > *max_len)
			*max_len = m->data_len;
		table[i] = m;
	}
	return table;
}

struct setup {
	struct ring_mem write, read;
	struct fake_mbuf **mbufs;
	uint32_t max_len;
};

/* Positions start at zero again: the ring's lines stay where the last run left them. */
static int run_once(
	const struct options *opt, struct setup *s, struct copy_producer *result, double *seconds)
{
	struct copy_shared *shared = aligned_alloc(128, sizeof(*shared));
	if (shared == NULL)
		return -ENOMEM;
	memset(shared, 0, sizeof(*shared));
	struct copy_producer p = {.shared = shared,
		.ring = s->write.data,
		.ring_size = opt->ring_size,
		.mbufs = s->mbufs,
		.mbuf_count = opt->mbufs,
		.max_block = block_len(s->max_len),
		.prefetch = opt->prefetch,
		.demote = opt->demote};
	struct consumer c = {.shared = shared, .ring = s->read.data, .opt = opt};
	struct produce_arg arg = {.p = &p, .opt = opt};
	pthread_t producer, consumer;
	pthread_create(&consumer, NULL, consume, &c);
	pthread_create(&producer, NULL, produce, &arg);
	struct timespec ts = {opt->ms / 1000, (long)(opt->ms % 1000) * 1000000};
	nanosleep(&ts, NULL);
	rt_store(&shared->stop, 1);
	pthread_join(producer, NULL);
	pthread_join(consumer, NULL);
	*result = p;
	*seconds = arg.seconds;
	free(shared);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static const char *const walk_names[] = {"none", "walk", "lines"};
static const char *const page_names[] = {"4k", "thp", "hugetlb"};

static int report(const struct options *opt, struct setup *s)
{
	double *mpps = calloc(opt->repeat, sizeof(*mpps));
	struct copy_producer p = {0};
	double seconds = 0, block = 0;
	uint64_t stalls = 0;
	if (mpps == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < opt->repeat; i++) {
		int err = run_once(opt, s, &p, &seconds);
		if (err != 0)
			return err;
		mpps[i] = (double)p.packets / seconds * 1e-6;
		block = (double)p.bytes / (double)p.packets;
		stalls += p.stalls;
	}
	qsort(mpps, opt->repeat, sizeof(*mpps), by_value);
	double mid = mpps[opt->repeat / 2];
	printf("{\"flavour\": \"%s\", \"frame\": %u, \"ring_size\": %llu, \"pages\": \"%s\", "
	       "\"huge_bytes\": %zu, \"consumer\": \"%s\", \"walk_ahead\": %u, \"prefetch\": %u, "
	       "\"demote\": %s, \"batch\": %llu, \"pause\": %u, \"mbufs\": %u, \"repeat\": %u, "
	       "\"mpps_median\": %.2f, \"mpps_min\": %.2f, \"mpps_max\": %.2f, \"gbytes_per_s\": "
	       "%.3f, \"stalls\": %llu}\n",
		opt->flavour->name, opt->frame, (unsigned long long)opt->ring_size,
		page_names[opt->pages], s->write.huge, walk_names[opt->walk], opt->walk_ahead,
		opt->prefetch, opt->demote ? "true" : "false", (unsigned long long)opt->batch,
		opt->pause, opt->mbufs, opt->repeat, mid, mpps[0], mpps[opt->repeat - 1],
		mid * block * 1e-3, (unsigned long long)stalls);
	free(mpps);
	return 0;
}

static int set_up(const struct options *opt, struct setup *s)
{
	int err = ring_mem_open(&s->write, opt->ring_size, opt->pages);
	if (err != 0)
		return err;
	err = ring_mem_share(&s->read, &s->write, opt->pages);
	if (err != 0)
		return err;
	s->mbufs = make_mbufs(opt, &s->max_len);
	return s->mbufs != NULL ? 0 : -ENOMEM;
}

static const char usage[] =
	"copy_loop: producer to consumer through a ring, as one line of JSON\n"
	"  -f NAME   flavour: memcpy sse2 avx2 avx512 merge512 line stream direct (avx2)\n"
	"  -l BYTES  frame length, 0 for a mix (64)\n"
	"  -r BYTES  ring size, K and M allowed (16M)\n"
	"  -g NAME   pages: 4k thp hugetlb (thp)\n"
	"  -w NAME   consumer: none (follows head), walk (headers), lines (touches all) (walk)\n"
	"  -a BYTES  prefetch ahead of the walker (4K)\n"
	"  -p BYTES  prefetchw ahead of the writer (8K)\n"
	"  -d        CLDEMOTE what has been published\n"
	"  -b BYTES  the consumer takes no less than this, K and M allowed (0)\n"
	"  -q N      extra pauses of the consumer between looks at head (0)\n"
	"  -m N      mbufs in circulation, a multiple of 32 (64)\n"
	"  -n N      repetitions (3)\n"
	"  -t MS     length of one (300)\n"
	"  -c P,C    cpus of producer and consumer (0,1)\n";

static uint64_t parse_size(const char *s)
{
	char *end;
	uint64_t v = strtoull(s, &end, 0);
	return *end == 'K' ? v << 10 : *end == 'M' ? v << 20 : *end == 'G' ? v << 30 : v;
}

static int find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	fprintf(stderr, "copy_loop: no such choice: %s\n", name);
	exit(2);
}

static const struct copy_flavour *find_flavour(const char *name)
{
	for (unsigned i = 0; i < copy_flavour_count; i++)
		if (strcmp(copy_flavours[i].name, name) == 0)
			return &copy_flavours[i];
	fprintf(stderr, "copy_loop: no such flavour: %s\n", name);
	exit(2);
}

static void parse(struct options *opt, int argc, char **argv)
{
	int o;
	while ((o = getopt(argc, argv, "f:l:r:g:w:a:p:db:q:m:n:t:c:h")) != -1) {
		switch (o) {
		case 'f': opt->flavour = find_flavour(optarg); break;
		case 'l': opt->frame = (uint32_t)parse_size(optarg); break;
		case 'r': opt->ring_size = parse_size(optarg); break;
		case 'g': opt->pages = (enum ring_pages)find_name(page_names, 3, optarg); break;
		case 'w': opt->walk = (enum walk)find_name(walk_names, 3, optarg); break;
		case 'a': opt->walk_ahead = (uint32_t)parse_size(optarg); break;
		case 'p': opt->prefetch = (uint32_t)parse_size(optarg); break;
		case 'd': opt->demote = true; break;
		case 'b': opt->batch = parse_size(optarg); break;
		case 'q': opt->pause = (unsigned)parse_size(optarg); break;
		case 'm': opt->mbufs = (uint32_t)parse_size(optarg); break;
		case 'n': opt->repeat = (unsigned)parse_size(optarg); break;
		case 't': opt->ms = (unsigned)parse_size(optarg); break;
		case 'c': sscanf(optarg, "%d,%d", &opt->cpu[0], &opt->cpu[1]); break;
		case 'h': fputs(usage, stdout); exit(0);
		default: fputs(usage, stderr); exit(2);
		}
	}
}

static bool valid(const struct options *opt)
{
	return opt->repeat > 0 && opt->mbufs > 0 && opt->mbufs % COPY_BURST == 0 &&
	       opt->frame <= 2048 && (opt->ring_size & (opt->ring_size - 1)) == 0 &&
	       opt->ring_size >= 128 << 10 && opt->batch <= opt->ring_size / 4;
}

int main(int argc, char **argv)
{
	struct options opt = {.flavour = find_flavour("avx2"),
		.ring_size = 16 << 20,
		.prefetch = 8 << 10,
		.walk_ahead = 4 << 10,
		.pages = RING_PAGES_THP,
		.walk = WALK_HEADERS,
		.frame = 64,
		.mbufs = 64,
		.repeat = 3,
		.ms = 300,
		.cpu = {0, 1}};
	parse(&opt, argc, argv);
	if (!valid(&opt)) {
		fputs("copy_loop: mbufs must be a multiple of 32, the ring a power of two of "
		      "128K or more, the batch at most a quarter of it\n",
			stderr);
		return 2;
	}
	if (!opt.flavour->usable()) {
		fprintf(stderr, "copy_loop: this cpu cannot do %s\n", opt.flavour->name);
		return 77;
	}
	struct setup s;
	int err = set_up(&opt, &s);
	if (err == 0)
		err = report(&opt, &s);
	if (err != 0)
		fprintf(stderr, "copy_loop: %s\n", strerror(-err));
	return err != 0;
}
