/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that does with the packets of port 0 what applications do: it forwards, drops,
 * holds, clones, copies, multiplies, rewrites, splits and encapsulates them, passes them to another
 * thread, and makes packets of its own, by a plan that follows from a seed. It writes down what it
 * has offered to ports (rt_deeds.h). Commands have the form of those of rt_play:
 *   run N log=PREFIX [seed= infer= leave=]: N packets to each of two threads; infer: expect ids
 * also where it has reset flags; leave: pass some to another process. Logs are PREFIX0 and PREFIX1,
 * PREFIXfates, and PREFIXreasons: by number, which of two reasons it gave for what it dropped.
 * As a secondary process it takes such packets, frees half of them and passes the others back,
 * until its standard input ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>

#include "ringtap/reason.h"
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
	SPLIT, /* only the second segment of a chain */
	RESET, /* ol_flags */
	PASS,  /* to the other thread */
	MAKE,  /* nothing of it, but another packet */
	LEAVE, /* to another process */
	DEEDS
};

/* Between the processes, by threads of the first one. */
struct abroad {
	uint64_t freed[DEED_QUEUES]; /* by the secondary process; atomic */
};

struct worker {
	unsigned queue;
	uint64_t n, got, made, fed, random;
	struct rte_mbuf *out[2][OUT_MAX]; /* by port */
	struct deed notes[2][OUT_MAX];
	unsigned out_count[2];
	struct rte_mbuf *held[HELD_MAX];
	unsigned held_count;
	uint64_t left; /* packets that are, or were, in the other process */
	FILE *log;
	bool infer, leave;
	int error;
};

static struct worker workers[DEED_QUEUES];
static struct rte_ring *passed[DEED_QUEUES], *out_of[DEED_QUEUES], *back_to[DEED_QUEUES];
static struct abroad *abroad;
static struct rte_mempool *pool;
static uint8_t *fates;    /* enum deed_fate, by number */
static uint8_t *given;    /* reasons, by number; 0: none */
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

static void has_become(uint64_t number, enum deed_fate fate)
{
	if (fates[number])
		abort(); /* a plan has one end for each */
	fates[number] = (uint8_t)fate;
}

/* ---- deeds: without memory for one, the packet is forwarded ---- */

static void forward(struct worker *w, struct rte_mbuf *m)
{
	uint64_t number = rte_pktmbuf_mtod(m, struct deed_frame *)->number;

	has_become(number, DEED_OFFERED);
	send_packet(w, 1, m, number, 0, true, FORWARD);
}

/* One of three packets has no reason. */
static void drop(struct rte_mbuf *m)
{
	static const char *const reasons[] = {NULL, "acl", "no route"};
	uint64_t number = rte_pktmbuf_mtod(m, struct deed_frame *)->number;

	has_become(number, DEED_NOT_OFFERED);
	given[number] = number % 3;
	ringtap_reason(m, reasons[number % 3]);
	rte_pktmbuf_free(m);
}

static void make(struct worker *w)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (!m)
		return;
	fill(m, 1, w->made * DEED_QUEUES + w->queue);
	send_packet(w, 1, m, w->made++ * DEED_QUEUES + w->queue, 1, false, MAKE);
}

static void retype(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	struct rte_mbuf *own = rte_pktmbuf_alloc(pool);

	if (!own) {
		forward(w, m);
		return;
	}
	fill(own, 0, number);
	has_become(number, DEED_NOT_OFFERED);
	send_packet(w, 1, own, number, 0, false, RETYPE);
	rte_pktmbuf_free(m);
}

static void put_header(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	struct rte_mbuf *h = rte_pktmbuf_alloc(pool);

	if (!h) {
		forward(w, m);
		return;
	}
	fill(h, 0, number);
	h->next = m;
	h->nb_segs = (uint16_t)(m->nb_segs + 1);
	h->pkt_len += m->pkt_len;
	has_become(number, DEED_OFFERED);
	send_packet(w, 1, h, number, 0, true, HEADER);
}

static void split(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	struct rte_mbuf *rest = m->next;

	has_become(number, rest ? DEED_NOT_OFFERED : DEED_OFFERED);
	if (rest) {
		rest->nb_segs = 1;
		rest->pkt_len = rest->data_len;
		m->next = NULL;
		m->nb_segs = 1;
		rte_pktmbuf_free(m);
	}
	send_packet(w, 1, rest ? rest : m, number, 0, true, SPLIT);
}

static void send_clone(struct worker *w, struct rte_mbuf *m, uint64_t number, enum what what)
{
	struct rte_mbuf *c = what == COPY ? rte_pktmbuf_copy(m, pool, 0, UINT32_MAX)
					  : rte_pktmbuf_clone(m, pool);

	if (!c) {
		forward(w, m);
		return;
	}
	has_become(number, what == COPY ? DEED_NOT_OFFERED : DEED_OFFERED);
	send_packet(w, 1, c, number, 0, true, what);
	if (what == CLONE)
		send_packet(w, 1, m, number, 0, true, what);
	else
		rte_pktmbuf_free(m);
}

static bool is_freed_abroad(uint64_t number)
{
	return number / DEED_QUEUES % 2;
}

static void pass(struct worker *w, struct rte_mbuf *m, struct rte_ring *ring)
{
	uint64_t number = rte_pktmbuf_mtod(m, struct deed_frame *)->number;

	if (rte_ring_enqueue(ring, m)) {
		forward(w, m);
	} else if (ring == out_of[w->queue]) {
		w->left++;
		if (is_freed_abroad(number))
			has_become(number, DEED_NOT_OFFERED);
	}
}

static void send_twice(struct worker *w, struct rte_mbuf *m, uint64_t number)
{
	for (struct rte_mbuf *s = m; s; s = s->next)
		rte_mbuf_refcnt_update(s, 1);
	has_become(number, DEED_OFFERED);
	send_packet(w, 0, m, number, 0, true, TWICE);
	send_packet(w, 1, m, number, 0, true, TWICE);
}

static void treat(struct worker *w, struct rte_mbuf *m, enum what what)
{
	struct deed_frame *f = rte_pktmbuf_mtod(m, struct deed_frame *);
	uint64_t number = f->number;

	switch (what) {
	case DROP: drop(m); return;
	case HOLD: w->held[w->held_count++] = m; return;
	case CLONE:
	case CLONE_ONLY:
	case COPY: send_clone(w, m, number, what); return;
	case RETYPE: retype(w, m, number); return;
	case TWICE: send_twice(w, m, number); return;
	case HEADER: put_header(w, m, number); return;
	case SPLIT: split(w, m, number); return;
	case RESET:
		m->ol_flags = 0;
		has_become(number, DEED_UNKNOWN);
		/* In a chain the second segment has the id. */
		send_packet(w, 1, m, number, 0, w->infer || m->nb_segs > 1, what);
		return;
	case LEAVE: pass(w, m, out_of[w->queue]); return;
	case PASS: pass(w, m, passed[1 - w->queue]); return;
	case MAKE:
		drop(m);
		make(w);
		return;
	case REWRITE: memset(f->macs, 0xee, sizeof(f->macs)); break;
	default: break;
	}
	has_become(number, DEED_OFFERED);
	send_packet(w, 1, m, number, 0, true, what);
}

static enum what planned(struct worker *w)
{
	enum what what = draw(w) % (w->leave ? DEEDS : LEAVE);

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
			drop(m);
		else
			forward(w, m);
	}
}

/* ---- threads ---- */

static void forward_from(struct worker *w, struct rte_ring *ring)
{
	struct rte_mbuf *got[BURST];
	unsigned n = rte_ring_dequeue_burst(ring, (void **)got, BURST, NULL);

	if (ring == back_to[w->queue])
		w->left -= n;
	for (unsigned i = 0; i < n; i++)
		forward(w, got[i]);
}

static bool is_done(const struct worker *w)
{
	return w->got == w->n && !w->held_count &&
	       w->left == __atomic_load_n(&abroad->freed[w->queue], __ATOMIC_ACQUIRE);
}

static bool turn(struct worker *w)
{
	struct rte_mbuf *got[BURST];
	unsigned n;

	if (!feed(w))
		return false;
	n = rte_eth_rx_burst(0, (uint16_t)w->queue, got, BURST);
	w->got += n;
	for (unsigned i = 0; i < n; i++)
		treat(w, got[i], planned(w));
	let_go(w, w->got == w->n ? BURST : draw(w) % 4);
	forward_from(w, passed[w->queue]);
	forward_from(w, back_to[w->queue]);
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
			w->error = -EIO;
			ended = DEED_QUEUES;
		}
		if (!counted && (w->error || is_done(w))) {
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

static int write_bytes(const char *prefix, const char *name, const uint8_t *bytes, uint64_t n)
{
	char path[512];
	FILE *f;
	int rc;

	snprintf(path, sizeof(path), "%s%s", prefix, name);
	f = fopen(path, "wb");
	if (!f)
		return -errno;
	rc = fwrite(bytes, 1, n, f) == n ? 0 : -EIO;
	return fclose(f) ? -errno : rc;
}

static int run(uint64_t n, uint64_t seed, bool infer, bool leave, const char *prefix)
{
	int rc = prefix ? 0 : -EINVAL;

	finished = 0;
	free(fates);
	free(given);
	fates = calloc(n, DEED_QUEUES);
	given = calloc(n, DEED_QUEUES);
	if (!fates || !given)
		return -ENOMEM;
	memset(abroad, 0, sizeof(*abroad));
	for (unsigned q = 0; q < DEED_QUEUES && !rc; q++) {
		workers[q] = (struct worker){.queue = q,
			.n = n,
			.random = seed * DEED_QUEUES + q,
			.infer = infer,
			.leave = leave};
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
	if (!rc)
		rc = write_bytes(prefix, "fates", fates, n * DEED_QUEUES);
	return rc ? rc : write_bytes(prefix, "reasons", given, n * DEED_QUEUES);
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
		shape_arg(words, "infer", 0), shape_arg(words, "leave", 0),
		shape_text(words, "log"));
}

/* ---- the processes ---- */

/* Finds what the other process has made, or makes it. */
static struct rte_ring *ring_between(const char *name, unsigned queue)
{
	char text[RTE_RING_NAMESIZE];

	snprintf(text, sizeof(text), "%s%u", name, queue);
	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		return rte_ring_lookup(text);
	return rte_ring_create(text, 16384, SOCKET_ID_ANY, 0);
}

static bool make_ways(void)
{
	const struct rte_memzone *zone =
		rte_eal_process_type() == RTE_PROC_SECONDARY
			? rte_memzone_lookup("abroad")
			: rte_memzone_reserve("abroad", sizeof(*abroad), SOCKET_ID_ANY, 0);

	if (!zone)
		return false;
	abroad = zone->addr;
	for (unsigned q = 0; q < DEED_QUEUES; q++) {
		passed[q] = ring_between("passed", q);
		out_of[q] = ring_between("out-of", q);
		back_to[q] = ring_between("back-to", q);
		if (!passed[q] || !out_of[q] || !back_to[q])
			return false;
	}
	return true;
}

static void visit(unsigned queue)
{
	struct rte_mbuf *m = NULL;
	uint64_t number;

	while (!rte_ring_dequeue(out_of[queue], (void **)&m)) {
		number = rte_pktmbuf_mtod(m, struct deed_frame *)->number;
		if (is_freed_abroad(number)) {
			rte_pktmbuf_free(m);
			__atomic_fetch_add(&abroad->freed[queue], 1, __ATOMIC_RELEASE);
		} else if (rte_ring_enqueue(back_to[queue], m)) {
			abort();
		}
	}
}

static int visitor(void)
{
	struct pollfd ended = {.fd = STDIN_FILENO, .events = POLLIN};

	if (!make_ways())
		return 1;
	puts("ready");
	while (poll(&ended, 1, 0) == 0) {
		for (unsigned q = 0; q < DEED_QUEUES; q++)
			visit(q);
		sched_yield();
	}
	return rte_eal_cleanup() ? 1 : 0;
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	setlinebuf(stdout);
	if (rte_eal_init(argc, argv) < 0)
		return 1;
	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		return visitor();
	if (port_make_ring("a", DEED_QUEUES, DEED_QUEUES) != 0 ||
		port_make_ring("b", DEED_QUEUES, DEED_QUEUES) != 1) {
		fputs("rt_deeds: no memory for ports\n", stderr);
		return 1;
	}
	pool = rte_pktmbuf_pool_create(
		"packets", 16383, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!pool || !make_ways())
		return 1;
	puts("ready");
	while (getline(&line, &size, stdin) > 0 && strcmp(line, "quit\n")) {
		int rc = execute(line);

		printf(rc ? "error %s\n" : "ok 0\n", strerror(-rc));
	}
	free(line);
	return rte_eal_cleanup() ? 1 : 0;
}
