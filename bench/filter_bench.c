/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A filter's loop over bursts of 64-byte UDP packets, of which 1 in 100 passes, beside loops that
 * do less: what it may cost at least. Prints one line of JSON for each loop: nanoseconds per
 * packet, the least and the lower quartile of many short samples.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "bursts.h"
#include "probe/capture/filter_loop.h"

#define SAMPLE_BURSTS 1000u

struct bench {
	struct rte_mbuf **pkts;
	uint32_t mbufs;
	unsigned samples;
	uint64_t passed;
};

static struct rt_loop filter;

static unsigned nothing(struct rte_mbuf **pkts)
{
	__asm__ volatile("" ::"r"(pkts) : "memory");
	return 0;
}

static unsigned mbufs(struct rte_mbuf **pkts)
{
	for (unsigned i = 0; i < BURST; i++)
		__asm__ volatile("" ::"r"(pkts[i]->data_len));
	return 0;
}

static unsigned first_bytes(struct rte_mbuf **pkts)
{
	for (unsigned i = 0; i < BURST; i++)
		__asm__ volatile("" ::"r"(*rte_pktmbuf_mtod(pkts[i], uint8_t *)));
	return 0;
}

static void prefetch(struct rte_mbuf **pkts)
{
	for (unsigned i = 0; i < BURST; i++)
		__builtin_prefetch(rte_pktmbuf_mtod(pkts[i], void *));
}

static unsigned run_filter(struct rte_mbuf **pkts)
{
	struct rte_mbuf *pass[BURST];
	struct rt_loop_burst b;

	b.pkts = pkts;
	b.last = pkts + BURST;
	b.pass = pass;
	b.slow_flags = RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_EXTERNAL;
	filter.run(&b);
	return b.pkts == b.last ? (unsigned)(b.pass - pass) : BURST + 1;
}

static unsigned run_prefetched(struct rte_mbuf **pkts)
{
	prefetch(pkts);
	return run_filter(pkts);
}

static const struct loop {
	const char *name;
	unsigned (*run)(struct rte_mbuf **pkts); /* the number that pass */
} loops[] = {
	{"nothing", nothing},
	{"mbufs", mbufs},
	{"first bytes", first_bytes},
	{"filter", run_filter},
	{"filter, prefetched", run_prefetched},
};

/* Ethernet, IPv4, UDP from port 9. */
static void put_frame(uint8_t *p, uint16_t port)
{
	memset(p, 0, 64);
	memcpy(p + 12, "\x08\0\x45", 3);
	p[23] = 17;
	p[35] = 9;
	p[36] = (uint8_t)(port >> 8);
	p[37] = (uint8_t)port;
}

static int make_packets(struct bench *b)
{
	uint32_t *places = calloc(b->mbufs, sizeof(*places));
	uint8_t *pool = bench_pool(b->mbufs);

	b->pkts = calloc(b->mbufs, sizeof(struct rte_mbuf *));
	if (!places || !pool || !b->pkts)
		return -ENOMEM;
	bench_shuffle(places, b->mbufs);
	for (uint32_t i = 0; i < b->mbufs; i++) {
		b->pkts[i] = bench_mbuf(pool + (size_t)places[i] * MBUF_STRIDE, 64);
		put_frame(rte_pktmbuf_mtod(b->pkts[i], uint8_t *), i % 100 ? 5000 : 53);
	}
	free(places);
	return 0;
}

static int make_filter(const char *expression)
{
	pcap_t *p = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program prog;
	int ret = -EINVAL;

	if (p && !pcap_compile(p, &prog, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		ret = rt_loop_create(&filter, (const struct rt_insn *)prog.bf_insns, prog.bf_len);
		pcap_freecode(&prog);
	}
	if (p)
		pcap_close(p);
	return ret;
}

/* Nanoseconds per packet. */
static double sample(struct bench *b, const struct loop *l)
{
	double start = bench_now_ns();

	for (unsigned i = 0, at = 0; i < SAMPLE_BURSTS; i++, at += BURST) {
		if (at == b->mbufs)
			at = 0;
		b->passed += l->run(b->pkts + at);
	}
	return (bench_now_ns() - start) / (SAMPLE_BURSTS * BURST);
}

/* By turns, as clocks change. */
static int measure(struct bench *b)
{
	double *ns = calloc((size_t)b->samples * RTE_DIM(loops), sizeof(*ns));

	if (!ns)
		return -ENOMEM;
	for (unsigned i = 0; i < b->samples; i++) {
		for (unsigned l = 0; l < RTE_DIM(loops); l++)
			ns[l * b->samples + i] = sample(b, &loops[l]);
	}
	for (unsigned l = 0; l < RTE_DIM(loops); l++) {
		double *of = ns + (size_t)l * b->samples;

		bench_sort(of, b->samples);
		printf("{\"loop\": \"%s\", \"mbufs\": %u, \"ns_min\": %.2f, \"ns_quartile\": %.2f}\n",
			loops[l].name, b->mbufs, of[0], of[b->samples / 4]);
	}
	free(ns);
	return 0;
}

static const char usage[] = "filter_bench: filters over bursts, a line of JSON for each loop\n"
			    "  -f EXPR   filter (udp port 53)\n"
			    "  -m N      mbufs, a multiple of 32 (4032)\n"
			    "  -n N      samples (1000)\n";

int main(int argc, char **argv)
{
	struct bench b = {.mbufs = 4032, .samples = 1000};
	const char *expression = "udp port 53";
	int o, ret;

	while ((o = getopt(argc, argv, "f:m:n:h")) != -1) {
		switch (o) {
		case 'f': expression = optarg; break;
		case 'm': b.mbufs = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'n': b.samples = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (!b.samples || !b.mbufs || b.mbufs % BURST) {
		fputs(usage, stderr);
		return 2;
	}
	ret = make_filter(expression);
	if (!ret)
		ret = make_packets(&b);
	if (!ret)
		ret = measure(&b);
	if (!ret && !b.passed)
		ret = -EIO;
	if (ret)
		fprintf(stderr, "filter_bench: %s\n", strerror(-ret));
	return ret != 0;
}
