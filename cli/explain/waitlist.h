/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received packets that may still be sent: a queue in the order of the file, and an index by id. It
 * grows up to a limit of memory; then, and after --timeout, the oldest leave.
 */
#ifndef RINGTAP_CLI_EXPLAIN_WAITLIST_H
#define RINGTAP_CLI_EXPLAIN_WAITLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "packet/flow_key.h"

/* The headers of a packet, without what all packets of its flow have. */
struct kept {
	uint8_t flags, vlans, tos, ttl;
	uint16_t tci[2];
	uint8_t dst_mac[6], src_mac[6];
};

/* As small as possible: there are as many as the application receives in --timeout. */
struct waiting {
	uint64_t id, ns, number;
	uint64_t since_ns; /* time of the file when it came; not below that of those before it */
	uint32_t flow;     /* index, or FLOW_NONE */
	uint32_t sequence; /* its place in the flow */
	uint32_t length;
	uint16_t port, queue;
	uint16_t tx_port, tx_queue; /* port and queue of the last sending */
	uint16_t application;
	uint16_t sent;     /* times, SENT_MAX: or more */
	uint8_t fate;      /* enum rt_fates_fate; 0: none is known */
	uint8_t why;       /* enum rt_fates_why */
	bool replaced : 1; /* its id came again: the index has the later packet */
	bool followed : 1; /* its file has fates */
	/* Its time is over, and its fate is still awaited; it was sent meanwhile. */
	bool late : 1, late_sent : 1;
	bool whole : 1; /* other is valid */
	union {
		struct kept kept;
		uint32_t other; /* all of its headers: number in others; modulo 2^32 */
	};
};
#define SENT_MAX UINT16_MAX

struct slot {
	uint32_t hash; /* 0: empty */
	uint32_t at;   /* place in the queue; modulo 2^32 */
};

struct waitlist {
	struct waiting **chunk; /* a place is in chunk[place / WAITLIST_CHUNK % chunks] */
	uint64_t chunks;        /* a power of two */
	uint64_t held;          /* chunks that have memory, with the spare one */
	struct waiting *spare;
	uint64_t first, end; /* places; they grow without end */
	struct slot *slots;
	uint64_t slot_count; /* a power of two */
	/* Headers of packets without a flow, and of those that are not IP. */
	struct headers *others;
	uint64_t other_room, other_first, other_end; /* as above */
	struct secret secret;
	uint64_t repeated; /* ids that came again */
};

/* 0 or -ENOMEM. Free with waitlist_free() in any case. */
int waitlist_init(struct waitlist *t);
void waitlist_free(struct waitlist *t);
uint64_t waitlist_bytes(const struct waitlist *t);

/* The oldest packet; NULL: there is none. */
struct waiting *waitlist_oldest(const struct waitlist *t);
/* The one that was added last; NULL: there is none. */
struct waiting *waitlist_newest(const struct waitlist *t);
/* Removes the oldest. */
void waitlist_leave(struct waitlist *t);
/* Whether waitlist_add() needs the oldest packet to leave first, as there is no more memory: bytes,
 * at most. If there is no packet there is room for one. */
bool waitlist_full(struct waitlist *t, uint64_t memory);
/* The oldest of one becomes the newest of another, which is not full. */
void waitlist_move(struct waitlist *to, struct waitlist *from);
/* Adds a packet; the caller fills in what is not an argument. */
struct waiting *waitlist_add(struct waitlist *t, uint16_t application, uint64_t id);
/* Loads what waitlist_add() and waitlist_find() of this id will need. */
void waitlist_prefetch(const struct waitlist *t, uint16_t application, uint64_t id);
/* After that: loads the packet, too. Returns the likely one; NULL: there is none. */
const struct waiting *waitlist_prefetch_packet(
	const struct waitlist *t, uint16_t application, uint64_t id);
/* NULL: no packet has this id. */
struct waiting *waitlist_find(const struct waitlist *t, uint16_t application, uint64_t id);

/* Keeps the headers of the newest packet. flow: the key of its flow, which stays; NULL: none. */
void waitlist_keep(struct waitlist *t, const struct headers *h, const struct flow_key *flow);
/* Outermost headers of a packet, without those of TCP. */
void waitlist_headers(const struct waitlist *t, const struct waiting *w,
	const struct flow_key *flow, struct headers *h);

#endif
