/* SPDX-License-Identifier: BSD-3-Clause */
/* A role: what one thread does with one port or from one to another, a burst at a time. */
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

/* Makes the packet a copy of frame i. Whole lines are copied, without a call: there is room in
 * both. */
static inline void frame_fill(struct rte_mbuf *m, const struct frames *f, unsigned i)
{
	const uint8_t *from = f->data + f->at[i].offset;
	uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *);

	m->data_len = (uint16_t)f->at[i].len;
	m->pkt_len = f->at[i].len;
	for (uint32_t k = 0; k < f->at[i].len; k += FRAME_ROOM)
		memcpy(to + k, from + k, FRAME_ROOM);
}

/* Written by the role's thread alone, read by the main thread at any time: rt_load(). */
struct counters {
	uint64_t rx_empty;   /* polls that received nothing */
	uint64_t rx_nonzero; /* … and polls that received packets */
	uint64_t rx_packets;
	/* While a forwarder runs, less rx_packets (modulo 2^64): what is sent at once, the usual
	 * case, costs no count. role_read() makes it whole. */
	uint64_t tx_packets;
	uint64_t tx_dropped;  /* freed because the port did not take them */
	uint64_t tx_retried;  /* further tries to send the same packets */
	uint64_t tx_errors;   /* packet planes: refused by the kernel for good */
	uint64_t tx_unsent;   /* still held when the run was stopped */
	uint64_t refused;     /* generate: due, but the port did not take them */
	uint64_t no_buffer;   /* generate: due, but the pool was empty */
	uint64_t not_reached; /* generate: due in a stage, but its time was over */
} __attribute__((aligned(2 * RT_CACHE_LINE)));
static inline uint64_t rx_bursts(const struct counters *c)
{
	return c->rx_empty + c->rx_nonzero;
}

#define COUNTERS (offsetof(struct counters, not_reached) / sizeof(uint64_t) + 1)

/* Times that one forwarder measured, in ticks of the TSC. */
struct latency {
	uint64_t every, until; /* bursts: one in so many; bursts until the next one */
	struct histogram
		through;       /* of each packet: from when it was received to when it was sent */
	struct histogram cost; /* per packet: receiving and sending a burst over its packets */
	uint64_t empty;        /* what measuring nothing takes: is in each time */
};

struct generator {
	struct frames frames;
	struct rate_clock clock;
	uint64_t rate;          /* of the stage */
	uint64_t due_max;       /* packets of the stage */
	uint64_t settled;       /* of those due in this stage: sent, refused, … */
	uint64_t end, late_end; /* ticks: of the stage, and of catching up */
	uint64_t number;        /* next sequence number */
	uint64_t left;          /* packets to send until done */
	uint64_t late_max;      /* packets: greatest backlog */
	struct {
		uint64_t start, last; /* ticks: of the stage, and of its last burst */
	} sent[STAGES_MAX];
	unsigned stage, next_frame;
	uint16_t built; /* of held[]: frames ready to be sent */
	uint8_t stream;
	bool first; /* of the process: others go by its stages */
	bool done;
	/* with --rtt */
	uint64_t flying, timeouts;
	uint64_t given_up;    /* numbers below it are not waited for any more */
	uint64_t last_sent;   /* ticks: of the last burst, in whatever stage */
	uint64_t timeout;     /* ticks */
	struct histogram rtt; /* ticks */
	struct sequence answers;
};

struct sink {
	struct sequence *streams[STAMP_STREAMS]; /* NULL: none seen */
	struct rate_clock clock;
	/* of --sink-rate, packets: that a wire could have taken by now, and by the poll before;
	 * that it has taken; that it makes up for after an idle time, at most */
	uint64_t due, due_before, taken, made_up;
	uint64_t foreign; /* packets without a stamp */
	bool out_of_memory;
};

struct role {
	/* One line: all that a burst needs but the packets and the counters. */
	void (*poll)(struct role *r);
	struct link *from, *to;        /* NULL where it has none */
	struct latency *latency;       /* NULL: not measured */
	struct samples *samples;       /* NULL: not taken */
	uint16_t burst;                /* packets at most */
	uint16_t held_first, held_end; /* refused packets that wait for another try */
	enum plane_id plane;
	uint64_t held_tries;
	const struct fwd_config *config;
	struct generator *generator;
	struct sink *sink;
	enum role_kind kind; /* no ROLE_FORWARD: it is two of ROLE_ONEWAY */
	int cpu;
	struct rte_mbuf *held[BURST_MAX] __attribute__((aligned(RT_CACHE_LINE)));
	struct counters counters[STAGES_MAX];
} __attribute__((aligned(RT_CACHE_LINE)));

/* What all roles share; written by few, seldom. */
struct run {
	bool stop;          /* all threads end */
	unsigned stage;     /* of the first generator */
	uint64_t start_tsc; /* when generators begin */
	uint64_t hz;        /* ticks per second */
} __attribute__((aligned(RT_CACHE_LINE)));

extern struct run run;

static inline struct counters *role_counters(struct role *r)
{
	return &r->counters[rt_load(&run.stage)];
}

/* Only the role's thread writes: no read-modify-write is needed. */
#define count_add(field, n) rt_store(&(field), (field) + (n))

/* After link_tx(), whose packets were all counted as sent. */
static inline void count_errors(struct counters *c, const enum plane_id plane, struct link *l)
{
	if (plane == PLANE_DPDK || rt_likely(!l->errors))
		return;
	count_add(c->tx_packets, -(uint64_t)l->errors);
	count_add(c->tx_errors, l->errors);
	trace_drop(l, l->errors, FWD_DROP_TX_ERROR);
	l->errors = 0;
}

/* Sends --tx-first. Before the role's thread runs. 0 or -errno after saying why. */
int forward_prime(struct role *r);
/* Prepare what the role needs. 0 or -errno after saying why. */
int forward_init(struct role *r);
/* number: of the generator in the process, from 0. */
int generate_init(struct role *r, unsigned number);
int sink_init(struct role *r);
/* Sets where the generator's time begins, when all is ready. */
void generate_start(struct role *r);
void role_free(struct role *r);
/* After its thread has ended: gives back what it holds. */
void role_stop(struct role *r);

#endif
