/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy of packets into a ring, alone: one thread, which moves the ring's tail itself. Bursts
 * are of mbufs in random order, out of more than the L2 cache holds. Prints one line of JSON for
 * each kind of packets: nanoseconds per packet, the least and the lower quartile of many short
 * samples. Other programs on the CPU can only make a sample longer.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "probe/capture/epb.h"
#include "probe/capture/fate_feed.h"
#include "probe/capture/ids.h"
#include "probe/hook/hook.h"
#include "bursts.h"
#include "ring_mem.h"

#define SAMPLE_NS 100000.0
#define SEGMENTS  3u
#define UNLIMITED 262144u
#define L2_BYTES  (2u << 20)
#define CHUNKS    8u /* chunks of the ring */
#define FATE_SNAP 64u

struct shape {
	const char *name;
	uint16_t segment[SEGMENTS]; /* bytes; the first 0: a mix of sizes */
	uint32_t snaplen;           /* 0: none */
	uint64_t flags;
	/* FATES: received, and sent; FATES_DROPPED: received again, so that each has a record. */
	enum { NO_IDS, IDS, IDS_SENT, FATES, FATES_DROPPED } ids;
};

#define ID_FLAG (1ull << 40) /* any dynamic one; there is no EAL here */

#define VLAN RTE_MBUF_F_RX_VLAN_STRIPPED
#define QINQ (VLAN | RTE_MBUF_F_RX_QINQ_STRIPPED)
#define HASH RTE_MBUF_F_RX_RSS_HASH

static const struct shape shapes[] = {
	{"64", {64}, 0, 0, NO_IDS},
	{"64, hash", {64}, 0, HASH, NO_IDS},
	{"64, ids", {64}, 0, 0, IDS},
	{"64, ids, sent", {64}, 0, ID_FLAG, IDS_SENT},
	{"64, fates", {64}, 0, 0, FATES},
	{"64, fates, dropped", {64}, 0, 0, FATES_DROPPED},
	{"64, hash and ids", {64}, 0, HASH, IDS},
	{"64, stripped tag", {64}, 0, VLAN, NO_IDS},
	{"64, two stripped tags", {64}, 0, QINQ, NO_IDS},
	{"64, tag and hash", {64}, 0, VLAN | HASH, NO_IDS},
	{"64 to 1518", {0}, 0, 0, NO_IDS},
	{"64 to 1518, hash", {0}, 0, HASH, NO_IDS},
	{"1518", {1518}, 0, 0, NO_IDS},
	{"1518, -s 64", {1518}, 64, 0, NO_IDS},
	{"1518, -s 128", {1518}, 128, 0, NO_IDS},
	{"64 to 1518, -s 128", {0}, 128, 0, NO_IDS},
	{"21 + 22 + 21", {21, 22, 21}, 0, 0, NO_IDS},
	{"500 + 500 + 500", {500, 500, 500}, 0, 0, NO_IDS},
};

struct bench {
	struct ring_mem mem;
	struct rt_session session;
	struct rt_ring ring;
	struct rt_chunks chunks;
	uint32_t pub_order[2 * CHUNKS];
	struct rt_tap tap, sent;
	struct rt_tap *taps[2]; /* those two */
	struct rt_tapset set;   /* received packets with fates */
	struct rt_seg_ring pub;
	struct rt_seg_tail tail;
	struct rt_seg_count count[2];
	struct rt_fates fates;
	struct rt_fate_burst fate_burst;
	struct rt_thread thread;
	bool stamps;
	unsigned kind; /* shape.ids */
	uint64_t pending[2], pushed;
	uint8_t *pool;
	struct rte_mbuf **pkts;
	uint32_t mbufs, pkt_count, next; /* next: packet of the next burst */
	unsigned samples;
};

/* IMIX, simple: 7 of 12 packets have 64 bytes, 4 have 594, and one has 1518. */
static uint16_t mixed_size(void)
{
	uint32_t of = bench_random(12);

	return of < 7 ? 64 : of < 11 ? 594 : 1518;
}

static struct rte_mbuf *make_packet(struct bench *b, const struct shape *s, const uint32_t *places)
{
	struct rte_mbuf *head = NULL, **link = &head;

	for (unsigned i = 0; i < SEGMENTS && (!i || s->segment[i]); i++) {
		uint16_t len = s->segment[0] ? s->segment[i] : mixed_size();

		*link = bench_mbuf(b->pool + (size_t)places[i] * MBUF_STRIDE, len);
		if (i) {
			head->pkt_len += len;
			head->nb_segs++;
		}
		link = &(*link)->next;
	}
	head->ol_flags = s->flags;
	head->vlan_tci = 0x123;
	head->vlan_tci_outer = 0x456;
	head->hash.rss = 0xcafef00d;
	head->pool = (void *)b->pool; /* never followed */
	*RTE_MBUF_DYNFIELD(head, rt_ids.offset, uint64_t *) = bench_random(UINT32_MAX) + 1;
	return head;
}

static int make_packets(struct bench *b, const struct shape *s)
{
	uint32_t *places = calloc(b->mbufs, sizeof(*places)), segments = 1;

	if (!places)
		return -ENOMEM;
	while (segments < SEGMENTS && s->segment[segments])
		segments++;
	bench_shuffle(places, b->mbufs);
	b->pkt_count = b->mbufs / segments;
	for (uint32_t i = 0; i < b->pkt_count; i++)
		b->pkts[i] = make_packet(b, s, places + (size_t)i * segments);
	b->next = 0;
	free(places);
	return 0;
}

static void push(struct bench *b, struct rte_mbuf **pkts)
{
	rt_epb_push(&b->ring, &b->tap, pkts, BURST, 4711);
	rt_ring_publish(&b->ring);
}

static void feed_fates(struct bench *b, struct rte_mbuf **pkts)
{
	struct rt_fate_visit v;

	/* The time is that of the burst's records. */
	if (rt_fates_begin(&v, &b->set, &b->ring, &b->thread, pkts, BURST, 4711))
		rt_fates_end(&v, pkts, BURST);
	if (b->kind == FATES)
		rt_fates_feed(&b->ring, &b->sent, pkts, BURST, 4711);
}

/* Nanoseconds per packet. */
static double sample(struct bench *b, unsigned bursts)
{
	double start = bench_now_ns();

	for (unsigned i = 0; i < bursts; i++) {
		if (b->stamps)
			rt_ids_stamp(&b->thread, 0, b->pkts + b->next, BURST);
		if (b->kind < FATES)
			push(b, b->pkts + b->next);
		else
			feed_fates(b, b->pkts + b->next);
		b->tail.tail = b->ring.head;
		b->next = b->next + BURST == b->pkt_count ? 0 : b->next + BURST;
	}
	if (b->kind < FATES)
		b->pushed += bursts * BURST;
	return (bench_now_ns() - start) / (bursts * BURST);
}

static int measure(struct bench *b, const struct shape *s)
{
	double *ns = calloc(b->samples, sizeof(*ns));
	unsigned bursts = b->mbufs / BURST;

	if (!ns || make_packets(b, s)) {
		free(ns);
		return -ENOMEM;
	}
	memset(b->fates.table, 0, (b->fates.mask + 1) * b->fates.stride);
	b->fates.used = 0;
	b->tap.snaplen = s->snaplen ? s->snaplen : UNLIMITED;
	b->tap.ids = s->ids ? RT_IDS_ON : 0;
	b->tap.direction = s->ids == IDS_SENT ? RT_DIR_TX : RT_DIR_RX;
	b->stamps = s->ids == IDS;
	b->kind = s->ids;
	rt_epb_prepare(&b->tap);
	sample(b, bursts);
	bursts = (unsigned)(SAMPLE_NS / sample(b, bursts) / BURST) + 1;
	for (unsigned i = 0; i < b->samples; i++)
		ns[i] = sample(b, bursts);
	bench_sort(ns, b->samples);
	printf("{\"packets\": \"%s\", \"ns_min\": %.2f, \"ns_quartile\": %.2f, \"samples\": %u}\n",
		s->name, ns[0], ns[b->samples / 4], b->samples);
	free(ns);
	return 0;
}

/* A table as for a pool of n mbufs, with 64 bytes of each packet. */
static int make_fates(struct bench *b)
{
	uint32_t bits = rt_fates_bits(b->mbufs, FATE_SNAP, 0);
	size_t stride = sizeof(struct rt_seg_fate) + FATE_SNAP;

	b->fates = (struct rt_fates){.table = aligned_alloc(128, stride << bits),
		.mask = (1ull << bits) - 1,
		.shift = 64 - bits,
		.probes = RT_FATE_PROBES,
		.stride = (uint32_t)stride,
		.snap = FATE_SNAP,
		.taps = b->taps,
		.tap_capacity = 2,
		.bursts = &b->fate_burst,
		.pools = {(void *)b->pool},
		.pool_count = 1};
	b->session.fates = &b->fates;
	b->taps[0] = &b->tap;
	b->taps[1] = &b->sent;
	b->set = (struct rt_tapset){.count = 1, .fates = true, .only_fates = 1, .tap = {&b->tap}};
	b->sent = (struct rt_tap){.session = &b->session, .index = 1, .direction = RT_DIR_TX};
	return b->fates.table ? 0 : -ENOMEM;
}

static int set_up(struct bench *b, size_t ring_size)
{
	int ret = ring_mem_open(&b->mem, ring_size, RING_PAGES_THP);

	if (ret)
		return ret;
	b->pkts = calloc(b->mbufs, sizeof(*b->pkts));
	b->pool = bench_pool(b->mbufs);
	if (!b->pkts || !b->pool)
		return -ENOMEM;
	b->ring = (struct rt_ring){
		.own_ahead = ring_size > L2_BYTES ? RT_OWN_SMALL | RT_OWN_LARGE : 0,
		.pub_order = b->pub_order,
		.pub = &b->pub,
		.peer = &b->tail,
		.counts = b->count,
		.pending = b->pending};
	ret = rt_chunks_init(
		&b->chunks, &b->ring, b->mem.data, ring_size / CHUNKS, CHUNKS, 2 * CHUNKS);
	if (ret)
		return ret;
	rt_chunks_empty(&b->chunks, &b->ring);
	rt_chunks_use(&b->chunks, &b->ring, 0);
	b->tap = (struct rt_tap){.session = &b->session, .nic_ts_offset = -1};
	rt_ids = (struct rt_mbuf_field){
		.flag = ID_FLAG, .offset = offsetof(struct rte_mbuf, dynfield1) + 4};
	return make_fates(b);
}

static const char usage[] = "push_bench: packets into a ring, a line of JSON for each kind\n"
			    "  -p NAME   only this kind of packets\n"
			    "  -r KIB    ring size (4096)\n"
			    "  -m N      mbufs, a multiple of 96 (4032)\n"
			    "  -n N      samples (1000)\n"
			    "  -g        the copy for CPUs without AVX2\n";

int main(int argc, char **argv)
{
	static struct bench b = {.thread.index = 1, .mbufs = 4032, .samples = 1000};
	size_t ring_size = 4 << 20;
	const char *only = NULL;
	bool generic = false;
	int o, ret;

	while ((o = getopt(argc, argv, "p:r:m:n:gh")) != -1) {
		switch (o) {
		case 'p': only = optarg; break;
		case 'r': ring_size = strtoul(optarg, NULL, 0) << 10; break;
		case 'm': b.mbufs = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'n': b.samples = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'g': generic = true; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (!b.samples || !b.mbufs || b.mbufs % (BURST * SEGMENTS) || ring_size < CHUNKS * 4096 ||
		(ring_size & (ring_size - 1))) {
		fputs(usage, stderr);
		return 2;
	}
	if (!generic)
		rt_epb_init();
	ret = set_up(&b, ring_size);
	for (size_t i = 0; i < RTE_DIM(shapes) && !ret; i++) {
		if (!only || !strcmp(only, shapes[i].name))
			ret = measure(&b, &shapes[i]);
	}
	if (!ret &&
		(b.count[0].captured != b.pushed + b.count[0].not_offered || b.count[0].unknown))
		ret = -EIO;
	if (ret)
		fprintf(stderr, "push_bench: %s\n", strerror(-ret));
	return ret != 0;
}
