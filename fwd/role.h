/* SPDX-License-Identifier: BSD-3-Clause */
/* A role: receives, sends or forwards packets of one or two ports, one burst per poll. */
#ifndef RINGTAP_FWD_ROLE_H
#define RINGTAP_FWD_ROLE_H

#include <stddef.h>

#include "common/atomics.h"
#include "frame.h"
#include "histogram.h"
#include "plane.h"
#include "rate.h"
#include "samples.h"
#include "sequence.h"
#include "trace.h"

/* Makes the packet a copy of frame i. Copies whole units of FRAME_ROOM without a call to memcpy():
 * both buffers have room for the last one. */
static inline void frame_fill(struct rte_mbuf *m, const struct frames *f, unsigned i)
{
	const uint8_t *from = f->data + f->at[i].offset;
	uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *);

	m->data_len = (uint16_t)f->at[i].len;
	m->pkt_len = f->at[i].len;
	for (uint32_t k = 0; k < f->at[i].written; k += FRAME_ROOM)
		memcpy(to + k, from + k, FRAME_ROOM);
}

/* Written by the role's thread only; the main thread reads them at any time with rt_load(). */
struct counters {
	uint64_t rx_empty;   /* polls that received nothing */
	uint64_t rx_nonzero; /* polls that received packets */
	uint64_t rx_packets;
	/* Forwarders: less rx_packets (modulo 2^64), so that the usual case, all packets sent at
	 * once, needs no update. role_read() adds rx_packets. */
	uint64_t tx_packets;
	uint64_t tx_dropped; /* freed because the port did not accept them */
	uint64_t tx_retried; /* further tries to send the same packets */
	uint64_t tx_errors;  /* packet planes: permanently rejected by the kernel */
	uint64_t tx_unsent;  /* held when the run ended */
	uint64_t tx_refused; /* generate: due, but the port did not accept them */
	uint64_t tx_nombuf;  /* generate: due, but the pool was empty */
	uint64_t tx_expired; /* generate: due in a stage that has ended */
	/* --sink-rate: ticks from asking for packets until they are freed; of polls that received
	 * some. What an idle thread pays for them does not show in its rate. */
	uint64_t rx_ticks;
} __attribute__((aligned(2 * RT_CACHE_LINE)));
static inline uint64_t rx_bursts(const struct counters *c)
{
	return c->rx_empty + c->rx_nonzero;
}

#define COUNTERS (offsetof(struct counters, rx_ticks) / sizeof(uint64_t) + 1)

/* Times measured by one forwarder, in TSC ticks. */
struct latency {
	uint64_t every, until;       /* bursts: interval; number until the next measured one */
	struct histogram rx_to_tx;   /* time from the reception of a packet to its transmission */
	struct histogram per_packet; /* time of receive and send / packets of the burst */
	uint64_t overhead;           /* cost of a measurement, included in each value */
};

struct generator {
	struct frames frames;
	struct rate_clock clock;
	/* with --timing: those of the file; those of the packets that are not sent yet, and how
	 * late they were, in ticks */
	struct rate_times times, sending;
	struct histogram late;
	uint64_t rate;          /* rate of the stage */
	uint64_t due_max;       /* packets of the stage */
	uint64_t settled;       /* packets of the stage that were counted: sent, refused, … */
	uint64_t end, late_end; /* ticks: end of the stage; end of sending what was due in it */
	uint64_t number;        /* next sequence number */
	uint64_t left;          /* packets to send until done */
	uint64_t max_backlog;   /* packets: largest backlog */
	struct {
		uint64_t start, last; /* ticks: start of the stage; its last burst */
	} sent[STAGES_MAX];
	unsigned stage, next_frame;
	uint16_t built; /* frames in held[] that are ready to be sent */
	uint8_t stream;
	bool first; /* generator of the process, which sets run.stage */
	bool done;
	/* with --rtt */
	uint64_t flying, timeouts; /* packets in flight; packets that timed out */
	uint64_t given_up;         /* lower sequence numbers have timed out */
	uint64_t last_sent;        /* ticks: last burst of all stages */
	uint64_t timeout;          /* ticks */
	struct histogram rtt;      /* ticks */
	struct sequence replies;
};

struct sink {
	struct sequence *streams[STAMP_STREAMS]; /* NULL: no packet received */
	struct rate_clock clock;
	/* --sink-rate, packets: allowed until now; allowed until the previous poll; received;
	 * maximum credit after an idle time */
	uint64_t due, due_before, taken, made_up;
	uint64_t unstamped; /* packets without a stamp */
	bool out_of_memory;
};

struct role {
	/* One cache line: all that a burst needs except the packets and the counters. */
	void (*poll)(struct role *r);
	struct link *from, *to;        /* NULL: none */
	struct latency *latency;       /* NULL: not measured */
	struct samples *samples;       /* NULL: not taken */
	uint16_t burst;                /* maximum packets */
	uint16_t held_first, held_end; /* in held[]: refused packets, to be retried */
	enum plane_id plane;
	uint64_t held_tries;
	const struct fwd_config *config;
	struct generator *generator;
	struct sink *sink;
	enum role_kind kind; /* never ROLE_FORWARD, which is made of two ROLE_ONEWAY */
	int cpu;
	struct rte_mbuf *held[BURST_MAX] __attribute__((aligned(RT_CACHE_LINE)));
	struct counters counters[STAGES_MAX];
} __attribute__((aligned(RT_CACHE_LINE)));

/* Shared by all roles; rarely written. */
struct run {
	bool stop;          /* ends all threads */
	unsigned stage;     /* stage of the first generator */
	uint64_t start_tsc; /* start of the generators */
	uint64_t hz;        /* ticks per second */
} __attribute__((aligned(RT_CACHE_LINE)));

extern struct run run;

static inline uint64_t run_ticks(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * run.hz / NS_PER_S);
}

static inline struct counters *role_counters(struct role *r)
{
	return &r->counters[rt_load(&run.stage)];
}

/* The role's thread is the only writer: no atomic read-modify-write is needed. */
#define count_add(field, n) rt_store(&(field), (field) + (n))

/* Corrects the counters after link_tx(), whose packets were all counted as sent. */
static inline void count_errors(struct counters *c, const enum plane_id plane, struct link *l)
{
	if (plane == PLANE_DPDK || rt_likely(!l->errors))
		return;
	count_add(c->tx_packets, -(uint64_t)l->errors);
	count_add(c->tx_errors, l->errors);
	trace_drop(l, l->errors, FWD_DROP_TX_ERROR);
	l->errors = 0;
}

/* Sends the packets of --tx-first. Called before the role's thread runs. 0, or -errno after
 * printing why. */
int forward_prime(struct role *r);
/* Allocate what the role needs. 0, or -errno after printing why. */
int forward_init(struct role *r);
/* number: index of the generator in the process. */
int generate_init(struct role *r, unsigned number);
int sink_init(struct role *r);
/* Starts the generator's first stage at run.start_tsc. */
void generate_start(struct role *r);
void role_free(struct role *r);
/* Frees and counts the packets that the role still holds. Its thread has ended. */
void role_stop(struct role *r);

#endif
