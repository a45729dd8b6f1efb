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
#include "packet/headers.h"

struct waiting {
	uint64_t id, ns, number;
	uint64_t since_ns; /* time of the file when it came; not below that of those before it */
	uint32_t flow;     /* index, or FLOW_NONE */
	uint32_t sequence; /* its place in the flow */
	uint32_t length;
	uint32_t sent; /* times */
	uint32_t hash;
	uint16_t port, queue;
	uint16_t tx_port, tx_queue; /* port and queue of the last sending */
	uint16_t application;
	bool replaced; /* its id came again: the index has the later packet */
	struct headers headers;
	uint8_t fate;  /* enum rt_fates_fate; 0: none is known */
	uint8_t why;   /* enum rt_fates_why */
	bool followed; /* its file has fates */
	/* Its time is over, and its fate is still awaited; it was sent meanwhile. */
	bool late, late_sent;
};

struct slot {
	uint32_t hash; /* 0: empty */
	uint32_t at;   /* place in the queue; modulo 2^32 */
};

struct waitlist {
	struct waiting *queue;     /* a place p is at p & (room - 1) */
	uint64_t room, first, end; /* room: a power of two; places grow without end */
	uint64_t room_max;
	struct slot *slots; /* twice as many as room */
	struct secret secret;
	uint64_t repeated; /* ids that came again */
};

/* memory: bytes, at most. 0 or -ENOMEM. Free with waitlist_free() in any case. */
int waitlist_init(struct waitlist *t, uint64_t memory);
void waitlist_free(struct waitlist *t);

/* The oldest packet; NULL: there is none. */
struct waiting *waitlist_oldest(struct waitlist *t);
/* The one that was added last; NULL: there is none. */
struct waiting *waitlist_newest(struct waitlist *t);
/* Removes the oldest. */
void waitlist_leave(struct waitlist *t);
/* Whether waitlist_add() needs the oldest packet to leave first: there is no more memory. */
bool waitlist_full(struct waitlist *t);
/* The oldest of one becomes the newest of another, which is not full. */
void waitlist_move(struct waitlist *to, struct waitlist *from);
/* Another, new one gets half of the memory that this one may use, unless it uses more already. */
void waitlist_share(struct waitlist *t, struct waitlist *with);
/* Adds a packet; the caller fills in what is not an argument. */
struct waiting *waitlist_add(struct waitlist *t, uint16_t application, uint64_t id);
/* Loads what waitlist_add() and waitlist_find() of this id will need. */
void waitlist_prefetch(const struct waitlist *t, uint16_t application, uint64_t id);
/* NULL: no packet has this id. */
struct waiting *waitlist_find(struct waitlist *t, uint16_t application, uint64_t id);

#endif
