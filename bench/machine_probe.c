/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two CPUs are to each other, and what they have, at this moment: a virtual machine's CPUs
 * move between cores, and neighbours come and go. Prints one line of JSON within a second. Times
 * are medians of short samples, so that neither a preemption nor a lucky sample decides; see
 * usage[] for the keys.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/atomics.h"

#define SAMPLES    31u
#define ADDS       (1u << 17) /* additions in a sample: some 40 us */
#define WIDTH      8u         /* independent chains: more than any core adds at once */
#define ROUNDS     512u       /* round trips of a line in a sample */
#define HAND_BYTES (256u << 10)
#define HUGE_BYTES ((size_t)2 << 20)
#define PAGE       4096u
#define WALK_PAGES 16384u /* 64 MiB of 4 KiB pages: more than any TLB holds */
#define NEAR_BYTES ((size_t)8 << 20)
#define FAR_BYTES  ((size_t)64 << 20)

/* Work of the second thread meanwhile. */
enum task { TASK_NONE, TASK_ADD, TASK_PONG, TASK_READ, TASK_QUIT };

struct probe {
	int cpu[2];
	/* Each on a line of its own: the second thread spins on task. */
	_Alignas(RT_CACHE_LINE) uint32_t task;
	_Alignas(RT_CACHE_LINE) uint32_t idle;
	_Alignas(RT_CACHE_LINE) uint32_t ball;
	_Alignas(RT_CACHE_LINE) uint32_t turn; /* odd: turn of the reader of hand */
	uint8_t *hand;                         /* HAND_BYTES, from thread to thread */
	double read_ns[SAMPLES];               /* by the second thread, a line */
	double adds[2];                        /* a nanosecond, while both add */
	uint64_t sink;                         /* keeps reads from being optimised away */
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, SAMPLES, sizeof(*v), by_value);
	return v[SAMPLES / 2];
}

/* ---- the core ---- */

/* Additions of a register take one cycle each: adds a nanosecond are the frequency. (A constant
 * would not do: some cores add those while they rename registers.) */
static double chain(void)
{
	uint64_t x = 0, one = 1;
	double start = now_ns();

	__asm__ volatile("" : "+r"(one));
	for (unsigned i = 0; i < ADDS; i += 32) {
#pragma GCC unroll 32
		for (unsigned k = 0; k < 32; k++) {
			x += one;
			__asm__ volatile("" : "+r"(x));
		}
	}
	return ADDS / (now_ns() - start);
}

/* As many additions at once as the core can do: a thread on the core's other half takes some. */
static double wide(void)
{
	uint64_t x[WIDTH] = {0}, one = 1;
	double start = now_ns();

	__asm__ volatile("" : "+r"(one));
	for (unsigned i = 0; i < ADDS / 2; i += 8) {
#pragma GCC unroll 64
		for (unsigned k = 0; k < 8 * WIDTH; k++) {
			x[k % WIDTH] += one;
			__asm__ volatile("" : "+r"(x[k % WIDTH]));
		}
	}
	return ADDS / 2 * WIDTH / (now_ns() - start);
}

static double repeated(double (*sample)(void))
{
	double v[SAMPLES];

	for (unsigned i = 0; i < SAMPLES; i++)
		v[i] = sample();
	return median(v);
}

/* ---- two threads ---- */

static void pong(struct probe *p)
{
	/* Pairs with the release in ping(). */
	for (uint32_t i = 1; i < 2 * ROUNDS; i += 2) {
		while (rt_load_acquire(&p->ball) != i)
			;
		rt_store_release(&p->ball, i + 1);
	}
}

static void read_hand(struct probe *p)
{
	uint64_t sum = 0;

	for (unsigned s = 0; s < SAMPLES; s++) {
		double start;

		/* Pairs with the release in hand_over(). */
		while (rt_load_acquire(&p->turn) != 2 * s + 1)
			rt_pause();
		start = now_ns();
		for (unsigned i = 0; i < HAND_BYTES; i += RT_CACHE_LINE)
			sum += p->hand[i];
		p->read_ns[s] = (now_ns() - start) / (HAND_BYTES / RT_CACHE_LINE);
		rt_store_release(&p->turn, 2 * s + 2);
	}
	p->sink += sum;
}

static void *second(void *arg)
{
	struct probe *p = arg;
	uint32_t task;

	pin(p->cpu[1]);
	do {
		rt_store_release(&p->idle, 1);
		/* Pairs with the release in begin(). */
		while ((task = rt_load_acquire(&p->task)) == TASK_NONE)
			rt_pause();
		rt_store(&p->task, TASK_NONE);
		if (task == TASK_ADD)
			p->adds[1] = repeated(wide);
		else if (task == TASK_PONG)
			pong(p);
		else if (task == TASK_READ)
			read_hand(p);
	} while (task != TASK_QUIT);
	return NULL;
}

static void finish(const struct probe *p)
{
	/* Pairs with the release in second(). */
	while (!rt_load_acquire(&p->idle))
		rt_pause();
}

static void begin(struct probe *p, enum task task)
{
	finish(p);
	rt_store(&p->idle, 0);
	rt_store_release(&p->task, task);
}

/* Nanoseconds that a written line needs to the other CPU, one way. */
static double ping(struct probe *p)
{
	double v[SAMPLES];

	for (unsigned s = 0; s < SAMPLES; s++) {
		double start;

		rt_store(&p->ball, 0);
		begin(p, TASK_PONG);
		start = now_ns();
		for (uint32_t i = 0; i < 2 * ROUNDS; i += 2) {
			/* Pairs with the release in pong(). */
			rt_store_release(&p->ball, i + 1);
			while (rt_load_acquire(&p->ball) != i + 2)
				;
		}
		v[s] = (now_ns() - start) / (2 * ROUNDS);
	}
	return median(v);
}

/* The access pattern of capturing: one CPU writes memory that the other has just read. Nanoseconds
 * a line of either. */
static double hand_over(struct probe *p)
{
	double v[SAMPLES];

	rt_store(&p->turn, 0);
	begin(p, TASK_READ);
	for (unsigned s = 0; s < SAMPLES; s++) {
		double start = now_ns();

		for (unsigned i = 0; i < HAND_BYTES; i += RT_CACHE_LINE)
			memset(p->hand + i, (int)s, RT_CACHE_LINE);
		v[s] = (now_ns() - start) / (HAND_BYTES / RT_CACHE_LINE);
		/* Pairs with the acquire in read_hand(), and the other way round. */
		rt_store_release(&p->turn, 2 * s + 1);
		while (rt_load_acquire(&p->turn) != 2 * s + 2)
			rt_pause();
	}
	return median(v);
}

/* ---- memory ---- */

static uint8_t *allocate(size_t bytes, bool huge)
{
	uint8_t *p = aligned_alloc(HUGE_BYTES, bytes);

	if (!p)
		return NULL;
	madvise(p, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(p, 1, bytes);
	return p;
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % n);
}

/* Where the page or line of this number has its load: other lines of other pages, for all sets of
 * the caches. */
static uint8_t *place(uint8_t *at, size_t step, uint32_t number)
{
	return at + number * step + number * RT_CACHE_LINE % step;
}

/* A cycle through n places (Sattolo's). */
static void link_places(uint8_t *at, size_t step, uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t k = random_below(i), swap = order[i];

		order[i] = order[k];
		order[k] = swap;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *next = place(at, step, order[i + 1 == n ? 0 : i + 1]);

		memcpy(place(at, step, order[i]), &next, sizeof(next));
	}
}

/* Nanoseconds of a load that depends on the one before, from places in random order. */
static double chase(const void *p, uint32_t n)
{
	double v[SAMPLES];

	for (unsigned s = 0; s <= SAMPLES; s++) { /* the first time, all of it: the caches fill */
		uint32_t loads = s ? n / SAMPLES : n;
		double start = now_ns();

		for (uint32_t i = 0; i < loads; i++)
			p = *(void *const *)p;
		__asm__ volatile("" : "+r"(p));
		if (s)
			v[s - 1] = (now_ns() - start) / loads;
	}
	return median(v);
}

/* Negative: -errno. */
static double walk(size_t bytes, size_t step, bool huge)
{
	uint32_t n = (uint32_t)(bytes / step);
	uint8_t *at = allocate(bytes, huge);
	uint32_t *order = calloc(n, sizeof(*order));
	double ns = -ENOMEM;

	if (at && order) {
		link_places(at, step, order, n);
		ns = chase(place(at, step, 0), n);
	}
	free(order);
	free(at);
	return ns;
}

/* Gigabytes a second that one CPU reads or writes beyond its caches. */
static double stream(struct probe *p, uint8_t *at, bool writes)
{
	const size_t part = FAR_BYTES / SAMPLES / RT_CACHE_LINE * RT_CACHE_LINE;
	double v[SAMPLES];
	uint64_t sum = 0;

	for (unsigned s = 0; s < SAMPLES; s++, at += part) {
		double start = now_ns();

		if (writes)
			memset(at, (int)s, part);
		for (size_t i = 0; !writes && i < part; i += RT_CACHE_LINE)
			sum += *(const uint64_t *)(at + i);
		v[s] = (double)part / (now_ns() - start);
	}
	p->sink += sum;
	return median(v);
}

/* ---- all of it ---- */

/* Ticks of all CPUs that the hypervisor gave to others, and of all kinds. */
static void steal(double ticks[2])
{
	FILE *f = fopen("/proc/stat", "re");
	double v[8] = {0};

	ticks[0] = ticks[1] = 0;
	if (f && fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4],
			 &v[5], &v[6], &v[7]) == 8) {
		ticks[0] = v[7];
		for (unsigned i = 0; i < 8; i++)
			ticks[1] += v[i];
	}
	if (f)
		fclose(f);
}

static void measure_cores(struct probe *p)
{
	double ghz[2], alone[2];

	for (unsigned i = 0; i < 2; i++) {
		pin(p->cpu[!i]); /* the first one last: it stays there */
		ghz[!i] = repeated(chain);
		alone[!i] = repeated(wide);
	}
	begin(p, TASK_ADD);
	p->adds[0] = repeated(wide);
	finish(p);
	printf("\"ghz\": [%.2f, %.2f], \"adds_per_cycle\": [%.2f, %.2f], \"together\": %.2f, ",
		ghz[0], ghz[1], alone[0] / ghz[0], alone[1] / ghz[1],
		(p->adds[0] + p->adds[1]) / (alone[0] + alone[1]));
}

static void measure_sharing(struct probe *p)
{
	double line = ping(p), written = hand_over(p);

	finish(p);
	printf("\"line_ns\": %.1f, \"read_ns\": %.2f, \"write_ns\": %.2f, ", line,
		median(p->read_ns), written);
}

static int measure_memory(struct probe *p)
{
	uint8_t *far = allocate(FAR_BYTES, true);

	if (!far)
		return -ENOMEM;
	printf("\"tlb_4k_ns\": %.1f, \"tlb_2m_ns\": %.1f, \"l3_ns\": %.1f, ",
		walk((size_t)WALK_PAGES * PAGE, PAGE, false),
		walk((size_t)WALK_PAGES * PAGE, PAGE, true), walk(NEAR_BYTES, RT_CACHE_LINE, true));
	printf("\"memory_read_gbps\": %.1f, ", stream(p, far, false));
	printf("\"memory_write_gbps\": %.1f, ", stream(p, far, true));
	free(far);
	return 0;
}

static int measure(struct probe *p)
{
	double before[2], after[2], start = now_ns();
	pthread_t thread;
	int ret = pin(p->cpu[0]) ?: pin(p->cpu[1]);

	if (ret)
		return ret;
	ret = pthread_create(&thread, NULL, second, p);
	if (ret)
		return -ret;
	steal(before);
	printf("{");
	measure_cores(p);
	measure_sharing(p);
	ret = measure_memory(p);
	begin(p, TASK_QUIT);
	pthread_join(thread, NULL);
	steal(after);
	printf("\"steal\": %.3f, \"ms\": %.0f}\n",
		after[1] > before[1] ? (after[0] - before[0]) / (after[1] - before[1]) : 0,
		(now_ns() - start) * 1e-6);
	return ret;
}

static const char usage[] =
	"machine_probe [CPU CPU]: what two CPUs (0 and 1) have at this moment, as JSON\n"
	"  ghz                 of each: additions of one chain a nanosecond\n"
	"  adds_per_cycle      of each alone: less if something else runs on the core\n"
	"  together            additions of both at once, of those of each alone: below 0.8 they\n"
	"                      are halves of one core\n"
	"  line_ns             a written cache line to the other CPU, one way\n"
	"  read_ns, write_ns   a line of 256 KiB that the other CPU has just written or read\n"
	"  tlb_4k_ns, tlb_2m_ns  a load from one of 16384 4 KiB pages, or of as many in huge pages\n"
	"  l3_ns               a load from 8 MiB in huge pages\n"
	"  memory_..._gbps     64 MiB, read or written by one CPU\n"
	"  steal               part of the time that the hypervisor gave to others\n";

int main(int argc, char **argv)
{
	static struct probe p = {.cpu = {0, 1}};
	int ret;

	if (argc != 1 && argc != 3) {
		fputs(usage, argc == 2 && !strcmp(argv[1], "-h") ? stdout : stderr);
		return argc == 2 && !strcmp(argv[1], "-h") ? 0 : 2;
	}
	for (int i = 1; i < argc; i++)
		p.cpu[i - 1] = atoi(argv[i]);
	p.hand = allocate(HUGE_BYTES, true);
	ret = p.hand ? measure(&p) : -ENOMEM;
	if (ret)
		fprintf(stderr, "machine_probe: %s\n", strerror(-ret));
	return ret != 0;
}
