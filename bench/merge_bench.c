/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast libringtap merges: rings full of bursts with interleaved times, read through the public
 * interface by one thread. Excludes what a reader does with the packets; with -f, it counts their
 * flows as `ringtap flows` does.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_probe.h"
#include "flows/ledger.h"
#include "ringtap/reader.h"

#define TRAILER  24u /* flags, queue, end of options, length */
#define RUNS_MAX 64u

struct options {
	uint32_t rings;
	uint32_t frame; /* bytes */
	uint32_t burst; /* packets of one time */
	uint64_t total; /* bytes of all rings together */
	uint64_t step;  /* bytes of all rings that become visible at a time; 0: all */
	unsigned repeat;
	uint32_t flows; /* counted; 0: the packets are not read */
};

static struct ledger ledger; /* in all repetitions: the first one finds new flows */
static struct ringtap_packets *walk;

struct load {
	uint64_t burst_bytes, chunk_bursts, chunk_size;
	uint64_t bursts; /* bursts of each ring */
	uint64_t start_ns;
	uint64_t packets; /* packets of all rings */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Burst b of ring r, so that all bursts of all rings take turns. */
static uint64_t burst_ns(const struct options *o, const struct load *l, uint64_t b, uint32_t r)
{
	return l->start_ns + (b * o->rings + r) * 100;
}

/* UDP of a random flow. */
static void put_udp(uint8_t *frame, uint32_t flows)
{
	static const uint8_t head[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0,
		0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 192, 0, 2, 1, 4, 0, 0, 53};
	static uint64_t state = 1;
	uint32_t flow;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	flow = (uint32_t)((state >> 32) * flows >> 32);
	memcpy(frame, head, sizeof(head));
	memcpy(frame + 27, &flow, 3);
}

static void put_block(uint8_t *dst, uint32_t frame, uint64_t ns)
{
	uint32_t padded = (frame + 3) & ~3u, total = RT_EPB_HEADER + padded + TRAILER;
	struct rt_epb epb = {.type = RT_EPB_TYPE,
		.total_len = total,
		.ts_high = (uint32_t)(ns >> 32),
		.ts_low = (uint32_t)ns,
		.cap_len = frame,
		.orig_len = frame};
	uint32_t trailer[] = {2 | 4 << 16, 1, 6 | 4 << 16, 0, 0, total};
	memcpy(dst, &epb, sizeof(epb));
	memset(dst + RT_EPB_HEADER, 0x5a, padded);
	memcpy(dst + RT_EPB_HEADER + padded, trailer, sizeof(trailer));
}

/* Where burst b begins in its ring. */
static uint64_t position(const struct load *l, uint64_t b)
{
	return b / l->chunk_bursts * l->chunk_size + b % l->chunk_bursts * l->burst_bytes;
}

static void fill_ring(const struct options *o, uint8_t *data, const struct load *l, uint32_t ring)
{
	uint64_t block = l->burst_bytes / o->burst;

	for (uint64_t b = 0; b < l->bursts; b++) {
		uint8_t *at = data + position(l, b);

		for (uint32_t i = 0; i < o->burst; i++, at += block) {
			put_block(at, o->frame, burst_ns(o, l, b, ring));
			if (o->flows)
				put_udp(at + RT_EPB_HEADER, o->flows);
		}
		memset(at, RT_CHUNK_END, 4); /* unless a burst follows */
	}
}

static void fill(const struct options *o, struct fake_probe *p, struct load *l)
{
	uint64_t block = RT_EPB_HEADER + ((o->frame + 3) & ~3u) + TRAILER;
	l->burst_bytes = o->burst * block;
	l->chunk_size = p->chunk_size;
	l->chunk_bursts = (p->chunk_size - RT_CHUNK_GUARD) / l->burst_bytes;
	l->bursts = p->ring_size / p->chunk_size * l->chunk_bursts;
	l->packets = l->bursts * o->burst * o->rings;
	l->start_ns = now_ns(CLOCK_REALTIME) - 60000000000u;
	for (uint32_t r = 0; r < o->rings; r++)
		fill_ring(o, p->data + r * p->ring_size, l, r);
}

static void publish(
	const struct options *o, struct fake_probe *p, const struct load *l, uint64_t bursts)
{
	for (uint32_t r = 0; r < o->rings; r++)
		fake_probe_publish(p, r, position(l, bursts - 1) + l->burst_bytes,
			burst_ns(o, l, bursts - 1, r));
}

/* As flows/live.c does. Packets wait over runs until the batch is full. */
static void count_run(const struct ringtap_run *run, bool last)
{
	static const uint16_t types[LEDGER_BATCH] = {[0 ... LEDGER_BATCH - 1] = LINKTYPE_ETHERNET};
	static struct ringtap_packet batch[LEDGER_BATCH];
	static unsigned n;
	const struct ringtap_packet *p;
	bool counted[LEDGER_BATCH];

	ringtap_packets_start(walk, run);
	while ((p = ringtap_packet_next(walk))) {
		batch[n++] = *p;
		if (n == LEDGER_BATCH) {
			ledger_add_batch(&ledger, batch, types, n, counted);
			n = 0;
		}
	}
	if (!last)
		return;
	ledger_add_batch(&ledger, batch, types, n, counted);
	n = 0;
}

/* Takes what is visible. Packets, or -errno. */
static int64_t take(struct ringtap_capture *cap, uint64_t *last_ns, uint64_t *disorder)
{
	struct ringtap_run runs[RUNS_MAX];
	int64_t packets = 0;
	int n;
	while ((n = ringtap_capture_next(cap, runs, RUNS_MAX, 0)) > 0) {
		for (int i = 0; i < n; i++) {
			packets += (int64_t)runs[i].packets;
			*disorder += runs[i].first_ns < *last_ns;
			*last_ns = runs[i].last_ns;
			if (walk)
				count_run(&runs[i], i == n - 1);
		}
		ringtap_capture_release(cap);
	}
	return n < 0 ? n : packets;
}

/* Packets per second of cpu time, or a negative errno. */
static double drain(const struct options *o, struct fake_probe *p, const struct load *l,
	struct ringtap_capture *cap)
{
	uint64_t step = o->step == 0 ? l->bursts : o->step / o->rings / l->burst_bytes + 1;
	uint64_t visible = 0, packets = 0, last_ns = 0, disorder = 0;
	uint64_t start = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (packets < l->packets) {
		if (visible < l->bursts) {
			visible = visible + step < l->bursts ? visible + step : l->bursts;
			publish(o, p, l, visible);
		}
		int64_t n = take(cap, &last_ns, &disorder);
		if (n < 0)
			return (double)n;
		packets += (uint64_t)n;
		if (now_ns(CLOCK_MONOTONIC) - start > 20000000000u)
			return -ETIMEDOUT;
	}
	/* Sleeps of the library while no packets arrive are not its cost. */
	double seconds = (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e-9;
	if (disorder != 0)
		fprintf(stderr, "merge_bench: %llu runs out of order\n",
			(unsigned long long)disorder);
	return (double)packets / seconds;
}

static double attach_and_drain(const struct options *o, struct fake_probe *p, struct load *l)
{
	struct ringtap_target target = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	struct ringtap_capture *cap;
	int err = ringtap_capture_create(&cap, NULL);
	if (err != 0)
		return err;
	double rate = ringtap_capture_attach(cap, p->dir, &target, 1, NULL);
	if (rate == 0) {
		fill(o, p, l);
		rate = drain(o, p, l, cap);
	}
	if (rate < 0)
		fprintf(stderr, "merge_bench: %s\n", ringtap_capture_error(cap));
	ringtap_capture_close(cap);
	return rate;
}

static double run_once(const struct options *o)
{
	struct fake_probe p;
	struct load l;
	int err = fake_probe_start(&p, o->rings, o->total / o->rings);
	if (err != 0)
		return err;
	double rate = attach_and_drain(o, &p, &l);
	fake_probe_stop(&p);
	return rate;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int run(const struct options *o)
{
	double *rate = calloc(o->repeat, sizeof(*rate));
	if (rate == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < o->repeat; i++) {
		rate[i] = run_once(o);
		if (rate[i] < 0)
			return (int)rate[i];
	}
	qsort(rate, o->repeat, sizeof(*rate), by_value);
	printf("{\"rings\": %u, \"frame\": %u, \"burst\": %u, \"step\": %llu, \"flows\": %u, \"repeat\": %u, "
	       "\"mpps_median\": %.2f, \"mpps_min\": %.2f, \"mpps_max\": %.2f}\n",
		o->rings, o->frame, o->burst, (unsigned long long)o->step, o->flows, o->repeat,
		rate[o->repeat / 2] * 1e-6, rate[0] * 1e-6, rate[o->repeat - 1] * 1e-6);
	free(rate);
	return 0;
}

static const char usage[] =
	"merge_bench: merging rate of libringtap, as one line of JSON\n"
	"  -r N      rings, a power of two (4)\n"
	"  -l BYTES  frame length (64)\n"
	"  -b N      packets in a burst, which share their time (32)\n"
	"  -s BYTES  of all rings become visible at a time, 0 for all (1048576)\n"
	"  -t MB     of packets in all rings together (64)\n"
	"  -n N      repetitions (5)\n"
	"  -f N      count N flows, as ringtap flows does (0: only merge)\n";

static void parse(struct options *o, int argc, char **argv)
{
	int c;
	while ((c = getopt(argc, argv, "r:l:b:s:t:n:f:h")) != -1) {
		unsigned long v = optarg != NULL ? strtoul(optarg, NULL, 0) : 0;
		switch (c) {
		case 'r': o->rings = (uint32_t)v; break;
		case 'l': o->frame = (uint32_t)v; break;
		case 'b': o->burst = (uint32_t)v; break;
		case 's': o->step = v; break;
		case 't': o->total = v << 20; break;
		case 'n': o->repeat = (unsigned)v; break;
		case 'f': o->flows = (uint32_t)v; break;
		case 'h': fputs(usage, stdout); exit(0);
		default: fputs(usage, stderr); exit(2);
		}
	}
}

static bool valid(const struct options *o)
{
	return o->rings > 0 && o->rings <= RT_MAX_RINGS && (o->rings & (o->rings - 1)) == 0 &&
	       o->frame > 0 && o->frame <= 9728 && o->burst > 0 && o->burst <= 64 &&
	       (!o->flows || o->frame >= 60) && o->repeat > 0 && (o->total & (o->total - 1)) == 0 &&
	       o->total / o->rings >= 1 << 20;
}

int main(int argc, char **argv)
{
	struct options o = {.rings = 4,
		.frame = 64,
		.burst = 32,
		.total = 64 << 20,
		.step = 1 << 20,
		.repeat = 5};
	parse(&o, argc, argv);
	if (!valid(&o)) {
		fputs("merge_bench: rings and MB must be powers of two, with 1 MB for each ring\n",
			stderr);
		return 2;
	}
	int err = 0;
	if (o.flows) {
		err = ledger_init(&ledger, LEDGER_5_TUPLE, 1u << 21, false);
		err = err ? err : ringtap_packets_create(&walk);
		if (!err)
			ringtap_packets_fields(walk, RINGTAP_FIELDS_ALL);
	}
	err = err ? err : run(&o);
	ringtap_packets_free(walk);
	ledger_free(&ledger);
	if (err != 0)
		fprintf(stderr, "merge_bench: %s\n", strerror(-err));
	return err != 0;
}
