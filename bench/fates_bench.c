/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost of what `record`, `record --ids` and `record --fates` do in the hooks of a forwarder: each
 * burst is received and sent, by turns with each of the three. Prints one line of JSON for each
 * burst size: nanoseconds per packet, both hooks together, medians and lower quartiles of many
 * short samples, and the ratio of the medians to that of `record`.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_mbuf.h>

#include "common/clock.h"
#include "probe/above.h"
#include "probe/capture/epb.h"
#include "probe/capture/fate_table.h"
#include "probe/capture/ids.h"
#include "probe/hook/hook.h"
#include "probe/hook/thread.h"
#include "bursts.h"
#include "ring_mem.h"

#define SAMPLE_NS  100000.0
#define CHUNKS     8u
#define L2_BYTES   (2u << 20)
#define LARGEST    64u
#define HUGE_BYTES ((size_t)2 << 20)
#define ID_FLAG    (1ull << 40) /* any dynamic one; there is no EAL here */

enum kind { NOTHING, RECORDS, IDS, FATES, KINDS };
static const char *const names[KINDS] = {"none", "record", "ids", "fates"};

/* A session with one ring, which all slots of threads share: one is used. */
struct lane {
	struct rt_seg_ring pub __attribute__((aligned(128)));
	struct rt_seg_tail tail __attribute__((aligned(128)));
	struct rt_seg_count count[2] __attribute__((aligned(128)));
	uint64_t pending[2];
	struct rt_session session __attribute__((aligned(128)));
	struct rt_ring rings[RT_MAX_RINGS];
	struct ring_mem mem;
	struct rt_chunks chunks;
	uint32_t pub_order[2 * CHUNKS];
	struct rt_tap tap[2], *taps[2]; /* by direction */
};

static struct lane records, with_ids, events;
static struct rt_fates fates;
static struct rt_fate_burst fate_burst;
static struct rt_tapset sets[KINDS][2]; /* by direction */
static struct rt_hook hooks[2];

static struct rte_mbuf **pkts;
static unsigned mbufs = 960, samples = 500, next;

static int set_up_lane(struct lane *l, size_t ring_size, uint32_t ids)
{
	struct rt_ring ring = {.own_ahead = ring_size > L2_BYTES ? RT_OWN_SMALL | RT_OWN_LARGE : 0,
		.used = true,
		.pub_order = l->pub_order,
		.pub = &l->pub,
		.peer = &l->tail,
		.counts = l->count,
		.pending = l->pending};
	int ret = ring_mem_open(&l->mem, ring_size, RING_PAGES_THP);

	if (ret)
		return ret;
	ret = rt_chunks_init(
		&l->chunks, &ring, l->mem.data, ring_size / CHUNKS, CHUNKS, 2 * CHUNKS);
	if (ret)
		return ret;
	rt_chunks_empty(&l->chunks, &ring);
	rt_chunks_use(&l->chunks, &ring, 0);
	for (unsigned i = 0; i < RT_MAX_RINGS; i++)
		l->rings[i] = ring;
	l->session.rings = l->rings;
	l->session.flows = 1;
	for (unsigned dir = 0; dir < 2; dir++) {
		l->tap[dir] = (struct rt_tap){.session = &l->session,
			.nic_ts_offset = -1,
			.snaplen = 262144,
			.index = dir,
			.direction = (uint8_t)dir,
			.ids = ids};
		rt_epb_prepare(&l->tap[dir]);
		l->taps[dir] = &l->tap[dir];
	}
	return 0;
}

static int make_fates(const uint8_t *pool)
{
	uint32_t bits = rt_fates_bits(mbufs, 0, 0);
	size_t bytes = sizeof(struct rt_seg_fate) << bits;

	bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	fates = (struct rt_fates){.table = aligned_alloc(HUGE_BYTES, bytes),
		.mask = (1ull << bits) - 1,
		.shift = 64 - bits,
		.probes = RT_FATE_PROBES,
		.stride = sizeof(struct rt_seg_fate),
		.taps = events.taps,
		.tap_capacity = 2,
		.bursts = &fate_burst,
		.pools = {(const void *)pool},
		.pool_count = 1};
	if (!fates.table)
		return -ENOMEM;
	madvise(fates.table, bytes, MADV_HUGEPAGE);
	memset(fates.table, 0, bytes);
	events.session.fates = &fates;
	return 0;
}

/* As add() in hook.c does it. */
static void make_sets(void)
{
	for (unsigned dir = 0; dir < 2; dir++) {
		const bool rx = dir == RT_DIR_RX;

		sets[RECORDS][dir] = (struct rt_tapset){.count = 1,
			.wait_from = 1,
			.only = &records.session,
			.tap = {records.taps[dir]}};
		sets[IDS][dir] = (struct rt_tapset){.count = 1,
			.wait_from = 1,
			.only = rx ? NULL : &with_ids.session,
			.gives_ids = rx,
			.tap = {with_ids.taps[dir]}};
		sets[FATES][dir] = (struct rt_tapset){.count = 2,
			.wait_from = 2,
			.gives_ids = rx,
			.fates = true,
			.only_fates = 1,
			.pair = true,
			.tap = {events.taps[dir], with_ids.taps[dir]}};
		hooks[dir].direction = (uint8_t)dir;
	}
}

static int make_packets(void)
{
	uint8_t *pool = bench_pool(mbufs);
	uint32_t *places = calloc(mbufs, sizeof(*places));

	pkts = calloc(mbufs + LARGEST, sizeof(*pkts));
	if (!pool || !places || !pkts)
		return -ENOMEM;
	bench_shuffle(places, mbufs);
	for (unsigned i = 0; i < mbufs; i++) {
		pkts[i] = bench_mbuf(pool + (size_t)places[i] * MBUF_STRIDE, 64);
		pkts[i]->pool = (void *)pool; /* never followed */
	}
	for (unsigned i = 0; i < LARGEST; i++)
		pkts[mbufs + i] = pkts[i];
	free(places);
	return make_fates(pool);
}

static void release(struct lane *l)
{
	l->tail.tail = l->rings[rt_thread_self ? rt_thread_self->index : 0].head;
}

/* Nanoseconds per packet. */
static double sample(enum kind kind, uint16_t n, unsigned bursts)
{
	double start;

	for (unsigned dir = 0; dir < 2; dir++)
		hooks[dir].taps = kind == NOTHING ? NULL : &sets[kind][dir];
	start = bench_now_ns();
	for (unsigned i = 0; i < bursts; i++) {
		struct rte_mbuf **burst = pkts + next;

		for (unsigned k = 0; k < n; k++)
			burst[k]->ol_flags = 0; /* as drivers do */
		rt_hook_rx(0, 0, burst, n, LARGEST, &hooks[RT_DIR_RX]);
		rt_hook_tx(0, 0, burst, n, &hooks[RT_DIR_TX]);
		release(&records);
		release(&with_ids);
		next += n;
		if (next >= mbufs)
			next -= mbufs;
	}
	return (bench_now_ns() - start) / bursts / n;
}

static int measure(uint16_t n)
{
	double *ns[KINDS] = {0}, least;
	unsigned bursts[KINDS];
	int ret = 0;

	for (unsigned k = 0; k < KINDS; k++) {
		ns[k] = calloc(samples, sizeof(*ns[k]));
		ret = ns[k] ? ret : -ENOMEM;
		bursts[k] = (unsigned)(SAMPLE_NS / sample(k, n, mbufs) / n) + 1;
	}
	for (unsigned i = 0; i < samples && !ret; i++)
		for (unsigned k = 0; k < KINDS; k++)
			ns[k][i] = sample(k, n, bursts[k]);
	printf("{\"burst\": %u", n);
	for (unsigned k = 0; k < KINDS && !ret; k++) {
		bench_sort(ns[k], samples);
		printf(", \"%s\": %.2f, \"%s_quartile\": %.2f", names[k], ns[k][samples / 2],
			names[k], ns[k][samples / 4]);
	}
	if (!ret) {
		least = ns[NOTHING][samples / 2];
		printf(", \"fates_to_record\": %.2f",
			(ns[FATES][samples / 2] - least) / (ns[RECORDS][samples / 2] - least));
	}
	printf("}\n");
	for (unsigned k = 0; k < KINDS; k++)
		free(ns[k]);
	return ret;
}

/* Each packet was received and offered, and no record is missing. */
static int check(void)
{
	const struct rt_seg_count *c = events.count;

	for (unsigned dir = 0; dir < 2; dir++)
		if (records.count[dir].seen != records.count[dir].captured ||
			with_ids.count[dir].seen != with_ids.count[dir].captured)
			return -EIO;
	return c->received && c->received == c->offered ? 0 : -EIO;
}

static const char usage[] = "fates_bench: bursts that are received and sent, a line of JSON for "
			    "each size\n"
			    "  -r KIB    ring size (4096)\n"
			    "  -m N      mbufs (960)\n"
			    "  -n N      samples (500)\n"
			    "  -b N      only bursts of N packets, up to 64\n";

int main(int argc, char **argv)
{
	static const uint16_t sizes[] = {1, 4, 8, 32};
	struct rt_clock clock;
	struct rt_clock_point point;
	size_t ring_size = 4 << 20;
	unsigned only = 0;
	int o, ret;

	while ((o = getopt(argc, argv, "r:m:n:b:h")) != -1) {
		switch (o) {
		case 'r': ring_size = strtoul(optarg, NULL, 0) << 10; break;
		case 'm': mbufs = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'n': samples = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'b': only = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (!samples || mbufs < LARGEST || only > LARGEST || ring_size < CHUNKS * 4096 ||
		(ring_size & (ring_size - 1))) {
		fputs(usage, stderr);
		return 2;
	}
	rt_epb_init();
	rt_threads_init();
	rt_ids = (struct rt_mbuf_field){
		.flag = ID_FLAG, .offset = offsetof(struct rte_mbuf, dynfield1) + 4};
	rt_clock_take(&point);
	rt_clock_begin(&clock, &point, &point, 2600000000u);
	rt_hook_set_clock(&clock.line);
	ret = set_up_lane(&records, ring_size, 0);
	ret = ret ? ret : set_up_lane(&with_ids, ring_size, RT_IDS_ON);
	ret = ret ? ret
		  : set_up_lane(&events, CHUNKS * 4096, RT_IDS_ON | RT_IDS_FATES | RT_IDS_EVENTS);
	ret = ret ? ret : make_packets();
	make_sets();
	for (size_t i = 0; i < RTE_DIM(sizes) && !ret && !only; i++)
		ret = measure(sizes[i]);
	if (only && !ret)
		ret = measure((uint16_t)only);
	ret = ret ? ret : check();
	if (ret)
		fprintf(stderr, "fates_bench: %s\n", strerror(-ret));
	return ret != 0;
}
