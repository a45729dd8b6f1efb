/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flows of a part: an open-addressed table of limited size. When it is full, its flows are
 * written to an unnamed temporary file, sorted, and merged with the later ones at the end
 * (spill.h): memory does not grow with the number of flows.
 */
#ifndef RINGTAP_ARCHIVE_DECODER_FLOWS_H
#define RINGTAP_ARCHIVE_DECODER_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "ids.h"
#include "row.h"
#include "sketch.h"
#include "tcp.h"
#include "walk.h"

#define FLOWS_BYTES (256u << 20) /* bytes of their latencies */
#define NO_FLOW     UINT32_MAX
#define FLOW_RUNS   4096u /* in the temporary file */
#define FLOWS_AHEAD 32u   /* packets with flows on their way into the caches */
#ifndef FLOWS_MAX
#define FLOWS_MAX (1u << 20) /* in memory */
#endif
#ifndef FLOW_CHUNK
#define FLOW_CHUNK 4096u /* flows that are allocated at a time */
#endif

/* Counters of a flow; a is the sender of its first packet. */
struct flow_sum {
	struct ends ends; /* from a to b */
	int64_t id, first_ns, last_ns;
	uint64_t packets[2], bytes[2]; /* sent by a, sent by b */
	uint64_t retransmissions;
	int64_t rtt_ns; /* -1: unknown */
	/* Counters from ids and fates: packets received; of these without id; sent, if they have no
	 * fate in the file; of each fate; those that there was no memory for; and of the unknown
	 * ones, those with a reason. */
	uint64_t received, without_id, sent, not_offered, open, unknown, let_go;
	uint64_t unseen, stopped;
	uint8_t tcp_flags;
	bool has_ports, is_tcp;
};

struct flow {
	struct flow_sum sum;
	struct tcp *tcp; /* NULL: no TCP */
	struct sketch *latency;
};

/* Fates of all flows of a part. */
struct fates {
	bool present;   /* the recording has fates */
	bool ended;     /* and their end has been read */
	uint64_t begun; /* when the recording began, as its files say */
	uint64_t lost;  /* queues of which the recorder has lost some */
};

struct spill;

/* A packet that was offered, and the hash of its flow. */
struct waiting {
	struct row row;
	uint32_t hash;
};

struct flows {
	uint64_t *slot; /* hash << 32 | number of a flow + 1; 0: empty */
	uint32_t slots; /* a power of two */
	struct flow **chunk;
	struct tcp **tcp_chunk;
	uint32_t count, tcp_count;
	uint32_t max;   /* FLOWS_MAX; tests take less */
	uint64_t bytes; /* bytes of latencies */
	struct secret secret;
	struct ids ids;
	struct fates fates;
	uint64_t learned;    /* ids that were sent, or have a fate */
	struct spill *spill; /* NULL: all are in memory */
	struct waiting ahead[FLOWS_AHEAD];
	uint32_t offered, taken; /* numbers of packets; they wrap */
};

/* 0 or -ENOMEM. Close it in any case. */
int flows_open(struct flows *t);
void flows_close(struct flows *t);
/* Forgets all flows, but not those of the temporary file. */
void flows_empty(struct flows *t);
/* Another part begins; fates go on. */
void flows_clear(struct flows *t);
/* A packet with a flow_id; one that is sent with an id may have none. 0 or -errno. */
int flows_packet(struct flows *t, const struct row *r);
/* The same, some packets later: when its flow is in the caches. The table of a large recording is
 * not, and packets wait for it longer than they take otherwise. */
int flows_offer(struct flows *t, const struct row *r);
/* The same of packets without ids, flow by flow. flow: that of the packet before, which is tried
 * first, or NO_FLOW. */
int flows_follow(struct flows *t, const struct row *r, uint32_t *flow);
/* Begins to load the flows of packets that follow; NULL: none. far: at first, then near. */
void flows_ahead(const struct flows *t, const struct row *far, const struct row *near);
/* Takes all packets that were offered. Before fates, and before the flows are read. */
int flows_settle(struct flows *t);
/* A block of fates, of the section that the walk is in. */
void flows_fates(struct flows *t, const struct walk *w);
/* Takes fates of the part's packets from behind its end, until a packet that is later than this.
 * w reads on in the part's file, or from the beginning of a file that may be another recording's;
 * the end is where it cannot. 1: a later packet was read; 0: the end of the recording, as far as w
 * has it; -ENOMEM. */
int flows_later(struct flows *t, struct walk *w, int64_t until_ns);
/* Stops waiting for fates: writes the flows to the temporary file. */
void flows_let_go(struct flows *t);

static inline struct flow *flows_at(const struct flows *t, uint32_t i)
{
	return &t->chunk[i / FLOW_CHUNK][i % FLOW_CHUNK];
}

#endif
