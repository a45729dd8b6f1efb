/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of the hook with one session and no statistics, by packets of the burst: what push_bench
 * measures, and what a burst costs before its first byte. With -L, two calls without a session that
 * time the packets: one receives a burst, the next sends it. Prints one line of JSON for each size:
 * nanoseconds per round, the least and the lower quartile of many short samples.
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
#include "probe/capture/first.h"
#include "probe/capture/ids.h"
#include "probe/capture/sample.h"
#include "probe/hook/hook.h"
#include "probe/hook/thread.h"
#include "probe/monitor/stats.h"
#include "bursts.h"
#include "ring_mem.h"

#define SAMPLE_NS 100000.0
#define CHUNKS    8u
#define L2_BYTES  (2u << 20)
#define LARGEST   64u
#define ID_FLAG   (1ull << 40) /* any dynamic one; there is no EAL here */
#define TIME_FLAG (1ull << 41)
#define PORTS     2u

/* Each port sends what the next one has received. */
struct latency {
	struct rt_stats stats;
	struct rt_stat_site site[PORTS][2]; /* by direction */
	struct rt_hook hook[PORTS][2];
	unsigned ports, in; /* ports 0: no latency is measured */
};

struct bench {
	struct ring_mem mem;
	struct rt_session *session;
	struct rt_chunks chunks;
	uint32_t pub_order[2 * CHUNKS];
	struct rt_tap tap;
	struct rt_tapset set;
	struct rt_hook hook;
	struct rt_seg_ring pub;
	struct rt_seg_tail tail;
	struct rt_seg_count count[2];
	uint64_t pending[2];
	struct rte_mbuf **pkts;
	unsigned mbufs, samples, next;
	uint32_t first; /* packets of each flow, which each packet has its own of; 0: all */
	uint32_t every; /* the session takes one of N packets; 1: all, 0: there is no session */
	bool ids, sent;
	struct latency latency;
};

static struct rt_ring rings[RT_MAX_RINGS];

static int sample_packets(struct bench *b)
{
	b->tap.sampled = b->set.sampled = true;
	b->set.only_sampled = b->set.only;
	b->set.only = NULL;
	return rt_sampler_make(
		&b->session->sampler, &(struct rt_msg_sample){.secret = {1, 2}, .every = b->every});
}

static int limit_flows(struct bench *b)
{
	const struct rt_msg_first m = {.limit = b->first, .packets = 1, .bits = RT_FIRST_BITS_MAX};
	struct rt_first_flow *flows = calloc(1, rt_first_bytes(&m));

	if (!flows || rt_first_make(&b->session->first, &m))
		return -ENOMEM;
	for (unsigned i = 0; i < RT_MAX_RINGS; i++)
		b->session->first->state[i].flows = flows;
	return 0;
}

/* NULL: no memory. The rows need their alignment, and are large. */
static void *zeroed(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* As of a monitor that has only this collector on. */
static int time_packets(struct latency *l)
{
	struct rt_stats *f = &l->stats;

	f->rows = zeroed(RT_MAX_THREADS * sizeof(*f->rows));
	f->header = zeroed(sizeof(*f->header));
	f->ports = zeroed(RT_STAT_PORTS * sizeof(*f->ports));
	f->threads = zeroed(RT_STAT_THREADS * sizeof(*f->threads));
	f->pairs = zeroed(RT_STAT_PAIRS * sizeof(*f->pairs));
	if (!f->rows || !f->header || !f->ports || !f->threads || !f->pairs)
		return -ENOMEM;
	f->pair_supply.ready = RT_STAT_PAIRS;
	f->threads_ready = RT_MAX_THREADS;
	for (unsigned i = 0; i < RT_MAX_THREADS; i++) {
		f->rows[i].own.pub = &f->threads[i];
		f->rows[i].own.stats = f;
	}
	for (unsigned i = 0; i < 2 * PORTS; i++) {
		struct rt_stat_site *s = &l->site[i / 2][i % 2];
		struct rt_hook *h = &l->hook[i / 2][i % 2];

		*s = (struct rt_stat_site){.rows = f->rows,
			.stats = f,
			.column = &f->rows[0].quick[i],
			.where = i / 2,
			.direction = (uint8_t)(i % 2)};
		h->direction = i % 2;
		h->stats = s;
		h->column = s->column;
	}
	rt_stat_mode.latency_flag = TIME_FLAG;
	rt_stat_mode.latency_field = offsetof(struct rte_mbuf, dynfield1) + 4;
	rt_stat_mode.latency_generation = 1;
	rt_stat_mode.threads = RT_MAX_THREADS;
	rt_stat_set_every(1);
	rt_stat_mode.state = 1ull << 32 | RT_COLLECT_LATENCY;
	return 0;
}

/* Any thread gets the slot that it is given: all slots have the same ring, and one is used. */
static int set_up(struct bench *b, size_t ring_size)
{
	struct rt_ring ring = {.own_ahead = ring_size > L2_BYTES ? RT_OWN_SMALL | RT_OWN_LARGE : 0,
		.used = true,
		.pub_order = b->pub_order,
		.pub = &b->pub,
		.peer = &b->tail,
		.counts = b->count,
		.pending = b->pending};
	struct rt_clock clock;
	struct rt_clock_point point;
	int ret = ring_mem_open(&b->mem, ring_size, RING_PAGES_THP);

	if (ret)
		return ret;
	ret = rt_chunks_init(
		&b->chunks, &ring, b->mem.data, ring_size / CHUNKS, CHUNKS, 2 * CHUNKS);
	if (ret)
		return ret;
	rt_chunks_empty(&b->chunks, &ring);
	rt_chunks_use(&b->chunks, &ring, 0);
	for (unsigned i = 0; i < RT_MAX_RINGS; i++)
		rings[i] = ring;
	b->session->rings = rings;
	b->session->flows = 1;
	b->tap = (struct rt_tap){.session = b->session,
		.nic_ts_offset = -1,
		.snaplen = 262144,
		.first = b->first,
		.direction = b->sent ? RT_DIR_TX : RT_DIR_RX,
		.ids = b->ids ? RT_IDS_ON : 0};
	rt_epb_prepare(&b->tap);
	b->set = (struct rt_tapset){.count = 1,
		.wait_from = 1,
		.only = b->ids ? NULL : b->session,
		.tap = {&b->tap},
		.gives_ids = b->ids && !b->sent,
		.uses_ids = b->ids && b->sent};
	if ((b->every > 1 && sample_packets(b)) || (b->first && limit_flows(b)))
		return -ENOMEM;
	b->hook.taps = b->every ? &b->set : NULL;
	rt_clock_take(&point);
	rt_clock_begin(&clock, &point, &point, 2600000000u);
	rt_hook_set_clock(&clock.line);
	return 0;
}

/* A packet of UDP, from a port of its own. */
static void put_headers(struct rte_mbuf *m, unsigned i)
{
	static const uint8_t head[] = {[12] = 8, [14] = 0x45, [17] = 50, [23] = 17};
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	memset(p, 0, m->data_len);
	memcpy(p, head, sizeof(head));
	memcpy(p + 34, &i, sizeof(i));
}

static int make_packets(struct bench *b, uint16_t len, uint64_t flags)
{
	uint8_t *pool = bench_pool(b->mbufs);
	uint32_t *places = calloc(b->mbufs, sizeof(*places));

	b->pkts = calloc(b->mbufs + LARGEST, sizeof(*b->pkts));
	if (!pool || !places || !b->pkts)
		return -ENOMEM;
	bench_shuffle(places, b->mbufs);
	for (unsigned i = 0; i < b->mbufs; i++) {
		b->pkts[i] = bench_mbuf(pool + (size_t)places[i] * MBUF_STRIDE, len);
		put_headers(b->pkts[i], i);
		b->pkts[i]->ol_flags = flags | (b->ids && b->sent ? ID_FLAG : 0);
		*RTE_MBUF_DYNFIELD(b->pkts[i], rt_ids.offset, uint64_t *) = i + 1;
	}
	for (unsigned i = 0; i < LARGEST; i++)
		b->pkts[b->mbufs + i] = b->pkts[i];
	free(places);
	return 0;
}

static void forward(struct latency *l, struct rte_mbuf **pkts, uint16_t n)
{
	unsigned out = l->in + 1 == l->ports ? 0 : l->in + 1;

	rt_hook_rx(0, 0, pkts, n, LARGEST, &l->hook[l->in][RT_DIR_RX]);
	rt_hook_tx(0, 0, pkts, n, &l->hook[out][RT_DIR_TX]);
	l->in = out;
}

/* Nanoseconds per round. */
static double sample(struct bench *b, uint16_t n, unsigned calls)
{
	const struct rt_ring *r = &rings[rt_thread_self ? rt_thread_self->index : 0];
	double start = bench_now_ns();

	for (unsigned i = 0; i < calls; i++) {
		if (b->latency.ports)
			forward(&b->latency, b->pkts + b->next, n);
		else if (b->sent)
			rt_hook_tx(0, 0, b->pkts + b->next, n, &b->hook);
		else
			rt_hook_rx(0, 0, b->pkts + b->next, n, LARGEST, &b->hook);
		b->tail.tail = r->head;
		b->next += n;
		if (b->next >= b->mbufs)
			b->next -= b->mbufs;
	}
	return (bench_now_ns() - start) / calls;
}

static int measure(struct bench *b, uint16_t n)
{
	double *ns = calloc(b->samples, sizeof(*ns));
	unsigned calls;

	if (!ns)
		return -ENOMEM;
	sample(b, n, 1);
	calls = (unsigned)(SAMPLE_NS / sample(b, n, 1000)) + 1;
	for (unsigned i = 0; i < b->samples; i++)
		ns[i] = sample(b, n, calls);
	bench_sort(ns, b->samples);
	printf("{\"burst\": %u, \"ns_min\": %.2f, \"ns_quartile\": %.2f, \"samples\": %u}\n", n,
		ns[0], ns[b->samples / 4], b->samples);
	free(ns);
	return 0;
}

static const char usage[] = "hook_bench: a call of the hook, a line of JSON for each burst size\n"
			    "  -r KIB    ring size (4096)\n"
			    "  -m N      mbufs (960)\n"
			    "  -n N      samples (1000)\n"
			    "  -H        packets have an RSS hash\n"
			    "  -I        packets have ids\n"
			    "  -O        packets are sent\n"
			    "  -F N      the session captures N packets of each flow, of as "
			    "many as there are mbufs\n"
			    "  -S N      the session takes one of N packets (1; 0: no session)\n"
			    "  -L N      no session; packets are received and sent by N ports "
			    "(1 or 2), and timed\n";

int main(int argc, char **argv)
{
	static struct bench b = {.mbufs = 960, .samples = 1000, .every = 1};
	static const uint16_t sizes[] = {0, 1, 2, 4, 8, 16, 32, 64};
	size_t ring_size = 4 << 20;
	uint64_t flags = 0;
	int o, ret;

	while ((o = getopt(argc, argv, "r:m:n:S:F:L:IOHh")) != -1) {
		switch (o) {
		case 'r': ring_size = strtoul(optarg, NULL, 0) << 10; break;
		case 'm': b.mbufs = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'n': b.samples = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'S': b.every = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'F': b.first = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'L': b.latency.ports = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'I': b.ids = true; break;
		case 'O': b.sent = true; break;
		case 'H': flags = RTE_MBUF_F_RX_RSS_HASH; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (!b.samples || b.mbufs < LARGEST || b.latency.ports > PORTS ||
		ring_size < CHUNKS * 4096 || (ring_size & (ring_size - 1))) {
		fputs(usage, stderr);
		return 2;
	}
	rt_epb_init();
	rt_threads_init();
	rt_ids = (struct rt_mbuf_field){
		.flag = ID_FLAG, .offset = offsetof(struct rte_mbuf, dynfield1) + 4};
	b.session = aligned_alloc(128, (sizeof(*b.session) + 127) & ~127ul);
	if (b.session)
		memset(b.session, 0, sizeof(*b.session));
	ret = b.session ? set_up(&b, ring_size) : -ENOMEM;
	ret = ret ? ret : make_packets(&b, 64, flags);
	if (b.latency.ports && !ret)
		ret = time_packets(&b.latency);
	for (size_t i = 0; i < RTE_DIM(sizes) && !ret; i++)
		ret = measure(&b, sizes[i]);
	if (ret)
		fprintf(stderr, "hook_bench: %s\n", strerror(-ret));
	return ret != 0;
}
