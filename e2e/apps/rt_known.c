/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application with known behaviour: the time of each packet in it, and the order of its
 * buffers. Commands and answers have the form of those of rt_play. Two ports, net_ring_a (0) and
 * net_ring_b (1); the program owns their other sides.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "rt_ports.h"
#include "rt_shape.h"

#define WORDS_MAX 16
#define BURST     32
#define BURST_MAX 64

static struct rte_mempool *plain_pool;

static void answer(int64_t rc)
{
	if (rc < 0)
		printf("error %s\n", strerror((int)-rc));
	else
		printf("ok %" PRId64 "\n", rc);
}

/* ---- time ---- */

/* Answers "ok TSC NS", both read at the same time. */
static void do_tsc(char **words)
{
	struct timespec ts;
	uint64_t before, after, tsc = 0, best = UINT64_MAX, ns = 0;

	for (int i = 0; i < 16; i++) {
		before = rte_rdtsc();
		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = rte_rdtsc();
		if (after - before >= best)
			continue;
		best = after - before;
		tsc = before + best / 2;
		ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	printf("ok %" PRIu64 " %" PRIu64 "\n", tsc, ns);
}

/* ---- latency ---- */

/* Processing of a burst before it is sent. */
enum manner {
	RECEIVED,  /* unchanged */
	MADE,      /* created by the application */
	CLONED,    /* clones of the received packets */
	HELD,      /* unchanged, but with a second reference */
	SENT_TWICE /* unchanged, and sent again without being received */
};

static unsigned receive(uint16_t port, struct rte_mbuf **pkts, unsigned n)
{
	struct rte_mbuf *made[BURST_MAX];

	if (rte_pktmbuf_alloc_bulk(plain_pool, made, n))
		return 0;
	for (unsigned i = 0; i < n; i++)
		rte_pktmbuf_append(made[i], 60);
	if (rte_ring_enqueue_bulk(port_rings[port].rx[0], (void **)made, n, NULL) != n)
		return 0;
	return rte_eth_rx_burst(port, 0, pkts, (uint16_t)n);
}

static unsigned make(struct rte_mbuf **pkts, unsigned n)
{
	if (rte_pktmbuf_alloc_bulk(plain_pool, pkts, n))
		return 0;
	for (unsigned i = 0; i < n; i++)
		rte_pktmbuf_append(pkts[i], 60);
	return n;
}

static bool prepare(struct rte_mbuf **pkts, unsigned n, enum manner how)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (how == HELD) {
			rte_pktmbuf_refcnt_update(m, 1);
		} else if (how == CLONED) {
			pkts[i] = rte_pktmbuf_clone(m, plain_pool);
			rte_pktmbuf_free(m); /* the clone references its buffer */
			if (!pkts[i])
				return false;
		}
	}
	return true;
}

/* Removes and frees sent packets. Returns their number. */
static unsigned drain(uint16_t port, enum manner how)
{
	struct rte_mbuf *sent[BURST_MAX];
	unsigned n = rte_ring_dequeue_burst(port_rings[port].tx[0], (void **)sent, BURST_MAX, NULL);

	for (unsigned i = 0; i < n; i++) {
		if (how == HELD)
			rte_pktmbuf_refcnt_update(sent[i], -1);
		rte_pktmbuf_free(sent[i]);
	}
	return n;
}

static unsigned send_again(uint16_t port)
{
	struct rte_mbuf *sent[BURST_MAX];
	unsigned n = rte_ring_dequeue_burst(port_rings[port].tx[0], (void **)sent, BURST_MAX, NULL);

	return rte_eth_tx_burst(port, 0, sent, (uint16_t)n);
}

/* Passes one burst on after at least delay ticks; writes the minimum and maximum of its time to
 * *f. */
static int pass(uint16_t from, uint16_t to, unsigned n, uint64_t delay, enum manner how, FILE *f)
{
	uint64_t rx_before, rx_after, tx_before, tx_after;
	struct rte_mbuf *pkts[BURST_MAX];
	unsigned got;

	rx_before = rte_rdtsc();
	got = how == MADE ? make(pkts, n) : receive(from, pkts, n);
	rx_after = rte_rdtsc();
	if (got != n || !prepare(pkts, n, how))
		return -ENOMEM;
	do {
		tx_before = rte_rdtsc();
	} while (tx_before - rx_after < delay);
	got = rte_eth_tx_burst(to, 0, pkts, (uint16_t)n);
	tx_after = rte_rdtsc();
	if (got != n || (how == SENT_TWICE && send_again(to) != n))
		return -EIO;
	if (f)
		fprintf(f, "%u %" PRIu64 " %" PRIu64 "\n", n, tx_before - rx_after,
			tx_after - rx_before);
	return drain(to, how) == n ? 0 : -EIO;
}

/* pass FROM TO delays=TICKS,TICKS,… [rounds= burst= how= log=FILE]: each delay in turn. */
static void do_pass(char **words)
{
	const char *delays = shape_text(words, "delays"), *path = shape_text(words, "log");
	int64_t rounds = shape_arg(words, "rounds", 1);
	unsigned burst = (unsigned)shape_arg(words, "burst", BURST);
	FILE *f = path ? fopen(path, "w") : NULL;
	int rc = (path && !f) || !delays || burst > BURST_MAX ? -EINVAL : 0;

	for (int64_t i = 0; i < rounds && !rc; i++) {
		char *end = (char *)(uintptr_t)delays;

		do {
			uint64_t delay = strtoull(end, &end, 10);

			rc = pass((uint16_t)atoi(words[1]), (uint16_t)atoi(words[2]), burst, delay,
				(enum manner)shape_arg(words, "how", RECEIVED), f);
		} while (*end++ == ',' && !rc);
	}
	if (f && fclose(f) && !rc)
		rc = -errno;
	answer(rc);
}

/* ---- memory ---- */

struct order {
	struct rte_mbuf **list;
	unsigned count;
};

static int by_address(const void *a, const void *b)
{
	const struct rte_mbuf *x = *(struct rte_mbuf *const *)a, *y = *(struct rte_mbuf *const *)b;

	return (x->buf_addr > y->buf_addr) - (x->buf_addr < y->buf_addr);
}

static void shuffle(struct order *o)
{
	uint64_t seed = 88172645463325252ull;

	for (unsigned i = o->count - 1; i > 0; i--) {
		struct rte_mbuf *m = o->list[i];
		unsigned k;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		k = (unsigned)(seed % (i + 1));
		o->list[i] = o->list[k];
		o->list[k] = m;
	}
}

/* 0, stride, 2 * stride, … 1, 1 + stride, … */
static int spread(struct order *o, unsigned stride)
{
	struct rte_mbuf **list = calloc(o->count, sizeof(*list));
	unsigned n = 0;

	if (!list)
		return -ENOMEM;
	for (unsigned first = 0; first < stride; first++)
		for (unsigned i = first; i < o->count; i += stride)
			list[n++] = o->list[i];
	free(o->list);
	o->list = list;
	return 0;
}

/* Allocates all buffers of a pool, in the order of their addresses, or in another. */
static int take_all(struct order *o, struct rte_mempool *pool, const char *how, unsigned stride)
{
	o->count = pool->size;
	o->list = calloc(o->count, sizeof(*o->list));
	if (!o->list || rte_mempool_get_bulk(pool, (void **)o->list, o->count))
		return -ENOMEM;
	for (unsigned i = 0; i < o->count; i++) {
		rte_pktmbuf_reset(o->list[i]);
		rte_mbuf_refcnt_set(o->list[i], 1);
		rte_pktmbuf_append(o->list[i], 60);
	}
	qsort(o->list, o->count, sizeof(*o->list), by_address);
	if (!strcmp(how, "shuffled"))
		shuffle(o);
	else if (!strcmp(how, "strided"))
		return spread(o, stride);
	return 0;
}

static int write_order(const struct order *o, const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -errno;
	for (unsigned i = 0; i < o->count; i++)
		fprintf(f, "%" PRIuPTR " %" PRIu64 "\n", (uintptr_t)o->list[i]->buf_addr,
			(uint64_t)rte_mbuf_data_iova(o->list[i]) - o->list[i]->data_off);
	return fclose(f) ? -errno : 0;
}

static bool command_waits(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* Receives the buffers in their order, cyclically, until the next command. */
static int circle(const struct order *o, uint16_t port)
{
	struct rte_mbuf *got[BURST];
	unsigned at = 0;

	for (uint64_t bursts = 0; bursts % 64 || !command_waits(); bursts++) {
		unsigned n = RTE_MIN((unsigned)BURST, o->count - at);

		if (rte_ring_enqueue_bulk(port_rings[port].rx[0], (void **)&o->list[at], n, NULL) !=
				n ||
			rte_eth_rx_burst(port, 0, got, BURST) != n)
			return -EIO;
		at = (at + n) % o->count;
	}
	return 0;
}

/* circle PORT POOL FILE how=in_order|shuffled|strided [stride=]: the order goes to FILE. */
static void do_circle(char **words)
{
	struct rte_mempool *pool = rte_mempool_lookup(words[2]);
	const char *how = shape_text(words, "how");
	struct order o = {0};
	int rc = pool && how ? take_all(&o, pool, how, (unsigned)shape_arg(words, "stride", 1))
			     : -ENOENT;

	if (!rc)
		rc = write_order(&o, words[3]);
	answer(rc);
	if (!rc && circle(&o, (uint16_t)atoi(words[1])))
		puts("error circling");
	if (o.list)
		rte_mempool_put_bulk(pool, (void **)o.list, o.count);
	free(o.list);
}

/* pool NAME [n= cache= room= ops= take=]: take N objects out of it. */
static void do_pool(char **words)
{
	static struct rte_mbuf *taken[1 << 16];
	unsigned take = (unsigned)shape_arg(words, "take", 0);
	struct rte_mempool *pool = rte_pktmbuf_pool_create_by_ops(words[1],
		(unsigned)shape_arg(words, "n", 1024), (unsigned)shape_arg(words, "cache", 0), 0,
		(uint16_t)shape_arg(words, "room", RTE_MBUF_DEFAULT_BUF_SIZE), SOCKET_ID_ANY,
		shape_text(words, "ops"));

	if (!pool)
		answer(-rte_errno);
	else if (take &&
		 (take > RTE_DIM(taken) || rte_mempool_get_bulk(pool, (void **)taken, take)))
		answer(-ENOMEM);
	else
		answer(pool->header_size + pool->elt_size + pool->trailer_size);
}

/* ---- */

static void do_callbacks(char **words)
{
	answer(port_callbacks((uint16_t)atoi(words[1])));
}

static const struct {
	const char *name;
	unsigned words; /* minimum, with the name */
	void (*run)(char **words);
} commands[] = {
	{"tsc", 1, do_tsc}, {"pass", 3, do_pass}, {"pool", 2, do_pool}, {"circle", 4, do_circle},
	{"callbacks", 2, do_callbacks}, /* PORT */
};

static void execute(char *line)
{
	char *words[WORDS_MAX + 1] = {0};
	unsigned n = 0;

	for (char *w = strtok(line, " \n"); w && n < WORDS_MAX; w = strtok(NULL, " \n"))
		words[n++] = w;
	for (unsigned i = 0; n && i < RTE_DIM(commands); i++) {
		if (strcmp(commands[i].name, words[0]) || n < commands[i].words)
			continue;
		commands[i].run(words);
		return;
	}
	puts("error no such command");
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	setlinebuf(stdout);
	/* Unbuffered, so that poll() in command_waits() does not miss buffered input. */
	setvbuf(stdin, NULL, _IONBF, 0);
	if (rte_eal_init(argc, argv) < 0 || port_make_ring("a", 1, 1) != 0 ||
		port_make_ring("b", 1, 1) != 1) {
		fputs("rt_known: EAL or its memory is not to be had\n", stderr);
		return 1;
	}
	plain_pool = rte_pktmbuf_pool_create(
		"plain", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!plain_pool)
		return 1;
	puts("ready");
	while (getline(&line, &size, stdin) > 0 && strcmp(line, "quit\n"))
		execute(line);
	free(line);
	return rte_eal_cleanup() ? 1 : 0;
}
