/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that does with the packets of port 0 what applications do: it forwards, drops,
 * holds, clones, copies, multiplies, rewrites, splits and encapsulates them, passes them to another
 * thread, and makes packets of its own, by a plan that follows from a seed. It writes down what it
 * has offered to ports (rt_deeds.h). Commands have the form of those of rt_play:
 *   run N log=PREFIX [seed= infer=]: N packets to each of two threads; infer: expect ids also where
 *   it has reset flags. Logs are PREFIX0 and PREFIX1.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "rt_deeds.h"
#include "rt_ports.h"
#include "rt_shape.h"

#define WORDS_MAX 16
#define BURST     32
#define OUT_MAX   (BURST * 8)
#define HELD_MAX  512

enum what {
	FORWARD,
	DROP,
	HOLD,
	CLONE,      /* a clone, and the packet behind it */
	CLONE_ONLY, /* the original is freed first */
	COPY,       /* rte_pktmbuf_copy() */
	RETYPE,     /* the bytes in an mbuf of the application */
	TWICE,      /* one mbuf to both ports */
	HEADER,     /* an mbuf before the packet */
	REWRITE,
	SPLIT, /* of a chain only the second segment */
	RESET, /* ol_flags */
	PASS,  /* to the other thread */
	MAKE,  /* nothing of it, but another packet */
	DEEDS
};

struct worker {
	unsigned queue;
	uint64_t n, got, made, fed, random;
	struct rte_mbuf *out[2][OUT_MAX]; /* by port */
	struct deed notes[2][OUT_MAX];
	unsigned out_count[2];
	struct rte_mbuf *held[HELD_MAX];
	unsigned held_count;
	FILE *log;
	bool infer;
	int error;
};

static struct worker workers[DEED_QUEUES];
static struct rte_ring *passed[DEED_QUEUES];
static struct rte_mempool *pool;
static unsigned finished; /* threads that pass nothing on any more; atomic */

static uint32_t draw(struct worker *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->random >> 33);
}

/* ---- packets ---- */

static void fill(struct rte_mbuf *m, uint8_t made, uint64_t number)
{
	struct deed_frame f = {.macs = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2},
		.type = {DEED_TYPE >> 8, DEED_TYPE & 0xff},
		.made = made,
		.number = number};
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	memset(p, 0, DEED_LEN);
	memcpy(p, &f, sizeof(f));
	m->data_len = m->pkt_len = DEED_LEN;
}

/* As a driver does it: what is not set is of the mbuf's last use. */
static struct rte_mbuf *arrived(uint64_t number)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(pool);

	if (!m)
		return NULL;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->nb_segs = 1;
	m->next = NULL;
	m->port = 0;
	m->ol_flags = 0;
	fill(m, 0, number);
	return m;
}

/* Every eighth packet has two segments. */
static bool feed(struct worker *w)
{
	for (unsigned i = 0; i < BURST && w->fed < w->n; i++) {
		uint64_t number = w->fed * DEED_QUEUES + w->queue;
		struct rte_mbuf *m = arrived(number), *second = NULL;

		if (m && w->fed % 8 == 7)
			second = arrived(number);
		if (!m || (w->fed % 8 == 7 && !second)) {
			rte_pktmbuf_free(m);
			return true; /* all are held or in rings: later */
		}
		if (second) {
			/* Drivers set only those of the first: any dynamic ones. */
			second->ol_flags = (draw(w) & 0x1ffffull) << 23;
			m->next = second;
			m->nb_segs = 2;
			m->pkt_len = 2 * DEED_LEN;
		}
		if (rte_ring_enqueue(port_rings[0].rx[w->queue], m))
			return false;
		w->fed++;
	}
	return true;
}

static void send_packet(struct worker *w, unsigned port, struct rte_mbuf *m, uint64_t number,
	uint8_t made, bool has_id, enum what what)
{
	unsigned i = w->out_count[port]++;

	w->out[port][i] = m;
	w->notes[port][i] =
		(struct deed){number, (uint8_t)port, (uint8_t)w->queue, made, has_id, what};
}

static bool flush(struct worker *w)
{
	for (unsigned port = 0; port < 2; port++) {
		unsigned n = w->out_count[port];

		if (rte_eth_tx_burst(port, (uint16_t)w->queue, w->out[port], (uint16_t)n) != n ||
			fwrite(w->notes[port], sizeof(struct deed), n, w->log) != n)
			return false;
		w->out_count[port] = 0;
	}
	return true;
}

/* As drivers free what they have sent. */
static void drain(const struct worker *w)
{
	struct rte_mbuf *m;

	for (unsigned port = 0; port < 2; port++) {
		while (!rte_ring_dequeue(port_rings[port].tx[w->queue], (void **)&m))
			rte_pktmbuf_free(m);
	}
}

/* ---- deeds ---- */

static bool make(struct worker *w)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (!m)
		return false;
	fill(m, 1, w->made * DEED_QUEUES + w->queue);
	send_packet(w, 1, m, w->made++ * DEED_QUEUES + w->queue, 1, false, MAKE);
	return true;
}

static bool retype(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	struct rte_mbuf *own = rte_pktmbuf_alloc(pool);

	if (own) {
		fill(own, 0, number);
		send_packet(w, 1, own, number, 0, false, RETYPE);
	}
	rte_pktmbuf_free(m);
	return own;
}

static bool put_header(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	struct rte_mbuf *h = rte_pktmbuf_alloc(pool);

	if (!h) {
		rte_pktmbuf_free(m);
		return false;
	}
	fill(h, 0, number);
	h->next = m;
	h->nb_segs = (uint16_t)(m->nb_segs + 1);
	h->pkt_len += m->pkt_len;
	send_packet(w, 1, h, number, 0, true, HEADER);
	return true;
}

static void split(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	struct rte_mbuf *rest = m->next;

	if (rest) {
		rest->nb_segs = 1;
		rest->pkt_len = rest->data_len;
		m->next = NULL;
		m->nb_segs = 1;
		rte_pktmbuf_free(m);
	}
	send_packet(w, 1, rest ? rest : m, number, 0, true, SPLIT);
}

static bool send_clone(struct worker *w, struct rte_mbuf *m, uint64_t number, enum what what)
{
	struct rte_mbuf *c = what == COPY ? rte_pktmbuf_copy(m, pool, 0, UINT32_MAX)
					  : rte_pktmbuf_clone(m, pool);

	if (c)
		send_packet(w, 1, c, number, 0, true, what);
	if (what == CLONE)
		send_packet(w, 1, m, number, 0, true, what);
	else
		rte_pktmbuf_free(m);
	return c;
}

/* False: no memory. */
static bool treat(struct worker *w, struct rte_mbuf *m, enum what what)
{
	struct deed_frame *f = rte_pktmbuf_mtod(m, struct deed_frame *);
	uint64_t number = f->number;

	switch (what) {
	case DROP: rte_pktmbuf_free(m); return true;
	case HOLD: w->held[w->held_count++] = m; return true;
	case CLONE:
	case CLONE_ONLY:
	case COPY: return send_clone(w, m, number, what);
	case RETYPE: return retype(w, m, number);
	case TWICE:
		for (struct rte_mbuf *s = m; s; s = s->next)
			rte_mbuf_refcnt_update(s, 1);
		send_packet(w, 0, m, number, 0, true, what);
		break;
	case HEADER: return put_header(w, m, number);
	case REWRITE: memset(f->macs, 0xee, sizeof(f->macs)); break;
	case SPLIT: split(w, m, number); return true;
	case RESET:
		m->ol_flags = 0;
		/* In a chain the second segment has the id. */
		send_packet(w, 1, m, number, 0, w->infer || m->nb_segs > 1, what);
		return true;
	case PASS: return rte_ring_enqueue(passed[1 - w->queue], m) == 0;
	case MAKE: rte_pktmbuf_free(m); return make(w);
	default: break;
	}
	send_packet(w, 1, m, number, 0, true, what);
	return true;
}

static enum what planned(struct worker *w)
{
	enum what what = draw(w) % DEEDS;

	return what == HOLD && w->held_count == HELD_MAX ? FORWARD : what;
}

/* Some of those that are held, in any order: half of them are sent. */
static void let_go(struct worker *w, unsigned n)
{
	for (; n && w->held_count; n--) {
		unsigned i = draw(w) % w->held_count;
		struct rte_mbuf *m = w->held[i];

		w->held[i] = w->held[--w->held_count];
		if (draw(w) % 2)
			rte_pktmbuf_free(m);
		else
			treat(w, m, FORWARD);
	}
}

/* ---- threads ---- */

static bool turn(struct worker *w)
{
	struct rte_mbuf *got[BURST];
	unsigned n;

	if (!feed(w))
		return false;
	n = rte_eth_rx_burst(0, (uint16_t)w->queue, got, BURST);
	w->got += n;
	for (unsigned i = 0; i < n; i++) {
		if (!treat(w, got[i], planned(w)))
			return false;
	}
	let_go(w, w->got == w->n ? BURST : draw(w) % 4);
	n = rte_ring_dequeue_burst(passed[w->queue], (void **)got, BURST, NULL);
	for (unsigned i = 0; i < n; i++)
		treat(w, got[i], FORWARD);
	if (!flush(w))
		return false;
	drain(w);
	return true;
}

static int work(void *arg)
{
	struct worker *w = arg;
	bool counted = false;

	for (;;) {
		/* Before the ring is looked at: nothing comes behind the other's end. */
		unsigned ended = __atomic_load_n(&finished, __ATOMIC_ACQUIRE);

		if (!turn(w)) {
			w->error = -ENOMEM;
			ended = DEED_QUEUES;
		}
		if (!counted && (w->error || (w->got == w->n && !w->held_count))) {
			counted = true;
			__atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
		}
		if (ended == DEED_QUEUES && rte_ring_empty(passed[w->queue]))
			return 0;
		if (w->got == w->n)
			sched_yield();
	}
}

static int open_log(struct worker *w, const char *prefix)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%u", prefix, w->queue);
	w->log = fopen(path, "wb");
	return w->log ? 0 : -errno;
}

static int run(uint64_t n, uint64_t seed, bool infer, const char *prefix)
{
	int rc = prefix ? 0 : -EINVAL;

	finished = 0;
	for (unsigned q = 0; q < DEED_QUEUES && !rc; q++) {
		workers[q] = (struct worker){
			.queue = q, .n = n, .random = seed * DEED_QUEUES + q, .infer = infer};
		rc = open_log(&workers[q], prefix);
	}
	if (!rc)
		rc = rte_eal_remote_launch(work, &workers[1], rte_get_next_lcore(-1, 1, 0));
	if (rc)
		return rc;
	work(&workers[0]);
	rte_eal_mp_wait_lcore();
	for (unsigned q = 0; q < DEED_QUEUES; q++) {
		if (fclose(workers[q].log))
			rc = -errno;
		rc = workers[q].error ? workers[q].error : rc;
	}
	return rc;
}

static int execute(char *line)
{
	char *words[WORDS_MAX + 1] = {0};
	unsigned n = 0;

	for (char *w = strtok(line, " \n"); w && n < WORDS_MAX; w = strtok(NULL, " \n"))
		words[n++] = w;
	if (n < 2 || strcmp(words[0], "run"))
		return -EINVAL;
	return run(strtoull(words[1], NULL, 0), (uint64_t)shape_arg(words, "seed", 1),
		shape_arg(words, "infer", 0), shape_text(words, "log"));
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	setlinebuf(stdout);
	if (rte_eal_init(argc, argv) < 0 || port_make_ring("a", DEED_QUEUES, DEED_QUEUES) != 0 ||
		port_make_ring("b", DEED_QUEUES, DEED_QUEUES) != 1) {
		fputs("rt_deeds: EAL or its memory is not to be had\n", stderr);
		return 1;
	}
	pool = rte_pktmbuf_pool_create(
		"packets", 16383, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	for (unsigned q = 0; q < DEED_QUEUES; q++)
		passed[q] = rte_ring_create(q ? "to-1" : "to-0", 8192, SOCKET_ID_ANY, 0);
	if (!pool || !passed[0] || !passed[1])
		return 1;
	puts("ready");
	while (getline(&line, &size, stdin) > 0 && strcmp(line, "quit\n")) {
		int rc = execute(line);

		printf(rc ? "error %s\n" : "ok 0\n", strerror(-rc));
	}
	free(line);
	return rte_eal_cleanup() ? 1 : 0;
}
