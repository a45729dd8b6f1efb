/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts packets by flow, host or another thing they have in common, in bounded memory. */
#ifndef RINGTAP_FLOWS_LEDGER_H
#define RINGTAP_FLOWS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate.h"
#include "packet/flow_table.h"
#include "packet/spread.h"
#include "ringtap/reader.h"

/* The key that packets of an entry share; the order of LEDGER_VIEWS. */
enum ledger_view {
	LEDGER_5_TUPLE,
	LEDGER_HOST,
	LEDGER_PAIR,
	LEDGER_PORT,
	LEDGER_PROTOCOL,
	LEDGER_VLAN,
	LEDGER_VNI,
	LEDGER_INNER,
	LEDGER_DSCP,
	LEDGER_MAC,
	LEDGER_QUEUE,
	LEDGER_THREAD
};
#define LEDGER_VIEWS "5-tuple|host|pair|port|protocol|vlan|vni|inner|dscp|mac|queue|thread"

/* That polled or sent a packet. */
struct ledger_thread {
	uint32_t lcore; /* RINGTAP_NO_INDEX: no EAL thread, or unknown */
	uint32_t tid;   /* in the application's PID namespace; 0: unknown */
};

#define LEDGER_BITS    2
#define LEDGER_BUCKETS RT_LOG_BUCKETS(LEDGER_BITS, LATENCY_MAX_BITS)

struct ledger_place {
	uint32_t interface; /* and 1 is added; 0: unknown */
	uint32_t queue;
};

/* Latencies of a flow. Entries have them only in a ledger with ids. */
struct ledger_latency {
	uint64_t min, max; /* ns */
	uint32_t count;
	uint32_t bucket[LEDGER_BUCKETS];
	/* The key of the last packet that was sent as another flow; type and flags 0: none. */
	struct flow_key became;
};

/* All counts are of packets that were taken: one of N of a sample. Two lines of the cache have what
 * each received packet changes. */
struct ledger_flow {
	struct flow_key key;
	uint64_t packets, bytes; /* received, and sent without being received before */
	double squares;          /* sum of the squares of the packets' bytes */
	uint64_t first_ns, last_ns;
	uint64_t recent_packets, recent_bytes; /* since the mark of that number */
	double recent_squares;
	uint32_t mark;
	bool forwarded; /* sent is not 0 */
	/* Where the last packet that was sent after it was received came in and went out; else
	 * where the last one did. */
	struct ledger_place in;
	struct ledger_place out;
	uint64_t own;         /* part of packets: only sent, as the application made them */
	uint64_t sent;        /* sendings of received packets */
	uint64_t not_offered; /* received, and not given to any port */
	uint32_t syn, syn_ack, rst;
	/* Reason of the packets not offered, as ringtap_capture_reason() has it: that of the first
	 * one, and whether another has another one. */
	uint8_t reason;
	bool more_reasons;
};

/* Behind each entry. */
static inline struct ledger_latency *ledger_latency(const struct ledger_flow *f)
{
	return (struct ledger_latency *)(uintptr_t)(f + 1);
}

/* Counts of an entry since it was reported. Entries have it, behind latencies, only
 * in a ledger with reports. */
struct ledger_unreported {
	uint64_t packets, ip_bytes; /* IP: without the headers before it, and padding */
	uint64_t frame_bytes;
	uint64_t first_ns;
	uint8_t tcp_flags, tos; /* all packets' flags, the first one's TOS */
};

/* Segments of TCP, in the order in which they came. Entries have it, behind latencies, only in a
 * ledger with segments. */
#define LEDGER_HOLES 4u
struct ledger_segments {
	uint32_t next; /* sequence number behind the highest one */
	bool known;
	uint8_t newest; /* hole */
	struct {
		uint32_t from, to;
	} holes[LEDGER_HOLES]; /* in what came; from == to: none */
	uint64_t again;        /* segments with bytes that had come before */
	uint64_t late;         /* that filled a hole */
};

struct ledger_join; /* receptions that may be sent */

struct ledger {
	struct flow_table table;
	enum ledger_view view;
	bool ids;
	uint32_t mark;
	struct ledger_flow all; /* sums of all packets, also of evicted entries */
	uint64_t fresh;         /* entries that were added since the mark */
	uint64_t evicted;       /* entries */
	uint64_t error;         /* an entry may have had this many more packets before */
	struct ledger_join *join;
	struct ledger_thread thread;       /* the packets that are added next are its */
	size_t unreported_at, segments_at; /* offsets in an entry; 0: none has it */
	/* Before an entry is forgotten; NULL: nobody has to know. */
	void (*forgotten)(void *ctx, const struct ledger_flow *f);
	void *ctx;
};

/* most: entries at a time. 0 or -ENOMEM. Free with ledger_free() in any case. */
int ledger_init(struct ledger *t, enum ledger_view view, uint32_t most, bool ids);
void ledger_free(struct ledger *t);
/* Gives entries their struct ledger_unreported: before the first packet. 0 or -ENOMEM. */
int ledger_report(struct ledger *t);
/* The same of struct ledger_segments: of all packets of 5-tuples. */
int ledger_follow(struct ledger *t);
/* A packet that was received and not given to any port. */
void ledger_not_offered(struct ledger *t, const struct ringtap_packet *p, uint16_t linktype);
/* False: the packet has been counted when it was received. */
bool ledger_add(struct ledger *t, const struct ringtap_packet *p, uint16_t linktype);
/* Several in turn, at most LEDGER_BATCH, which is faster; counted[] is what ledger_add() returns.
 */
#define LEDGER_BATCH 32u
void ledger_add_batch(struct ledger *t, const struct ringtap_packet *p, const uint16_t *linktypes,
	unsigned n, bool *counted);
/* Does a packet count in the entry of this key? One that is sent by another name does not. */
bool ledger_belongs(const struct ledger *t, const struct ringtap_packet *p, uint16_t linktype,
	const struct flow_key *key);
/* The next interval begins. */
void ledger_mark(struct ledger *t);

enum ledger_order { LEDGER_BY_PACKETS, LEDGER_BY_BYTES, LEDGER_BY_LATENCY };
#define LEDGER_ORDERS "packets|bytes|latency"
/* The largest entries of the interval (all: of the whole time), at most max, largest first. Returns
 * how many. They live until the next call of ledger_add(). */
unsigned ledger_top(const struct ledger *t, enum ledger_order order, bool all,
	const struct ledger_flow **out, unsigned max);

static inline struct ledger_unreported *ledger_unreported(
	const struct ledger *t, const struct ledger_flow *f)
{
	return (struct ledger_unreported *)((uintptr_t)f + t->unreported_at);
}

static inline struct ledger_segments *ledger_segments_of(
	const struct ledger *t, const struct ledger_flow *f)
{
	return (struct ledger_segments *)((uintptr_t)f + t->segments_at);
}

/* Packets of the interval; 0 where the entry had none. */
static inline uint64_t ledger_recent(const struct ledger *t, const struct ledger_flow *f)
{
	return f->mark == t->mark ? f->recent_packets : 0;
}

/* SYN without an answer from the other side, of 5-tuples. */
uint64_t ledger_unanswered(const struct ledger *t, const struct ledger_flow *f);
/* ns; NAN: no packet was joined. */
double ledger_quantile(const struct ledger_flow *f, double share);
/* The same of one of `every` packets, with its bound. */
struct estimate ledger_quantile_of(const struct ledger_flow *f, uint32_t every, double share);

#endif
