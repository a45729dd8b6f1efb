/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joins the records of a recording by their id: what became of each received packet, when, and how
 * it was changed. Streams: of a packet only its headers are kept, until its time is over.
 *
 *   received = sent + not_sent + open + let_go
 *   records of sent packets = sent + copies + made + unknown
 *
 * In a recording with fates (fates.h), packets that are not sent wait beyond the timeout, until
 * their fate is known.
 */
#ifndef RINGTAP_CLI_EXPLAIN_JOIN_H
#define RINGTAP_CLI_EXPLAIN_JOIN_H

#include "changes.h"
#include "fates.h"
#include "records.h"
#include "joined_flow.h"
#include "packet/keyed.h"
#include "packet/sizes.h"
#include "slices.h"
#include "packet/spread.h"
#include "waitlist.h"

enum fate {
	FATE_SENT,     /* for each sending */
	FATE_NOT_SENT, /* not within the timeout */
	FATE_OPEN,     /* not sent, and the file ends before the timeout */
	FATE_LET_GO,   /* not sent until there was no more memory for it */
	FATE_MADE,     /* sent without an id: the application made it */
	FATE_UNKNOWN,  /* sent with an id that was not received, or too long ago */
	/* In recordings with fates, instead of FATE_NOT_SENT. */
	FATE_OFFERED,     /* to a port; the file has no sending of it */
	FATE_NOT_OFFERED, /* also of a packet of which a copy was sent */
	FATE_UNDECIDED,
	FATE_LIKELY_OFFERED,
	FATES
};
extern const char *const fate_keys[FATES]; /* in CSV */

/* One line of the CSV. */
struct outcome {
	enum fate fate;
	const struct waiting *rx; /* NULL: MADE, UNKNOWN */
	const struct record *tx;  /* NULL: neither SENT nor MADE nor UNKNOWN */
	uint64_t noticed_ns;      /* when a fate was known; 0: it is none of the file's */
	const char *reason;  /* that the application gave; stays as long as the join; or NULL */
	uint64_t latency_ns; /* valid for SENT */
	uint32_t changes;    /* bits of enum change */
	bool reordered;
};

/* Latencies from a port or queue to another: first sendings and copies. */
struct ends {
	uint16_t rx_port, rx_queue, tx_port, tx_queue;
};
struct way {
	struct ends ends; /* queues are 0 in pairs of ports */
	uint64_t copies;  /* part of spread.count */
	struct spread spread;
};

struct changed {
	uint64_t count;
	uint64_t rx_number, tx_number; /* frames of the first */
	char text[CHANGE_TEXT];
};

#define TIMES_MAX 8 /* a packet was sent 1, 2 … times; the last entry: that often or more */

struct join {
	uint64_t timeout_ns;
	uint64_t memory;                                  /* bytes, at most */
	void (*tell)(void *ctx, const struct outcome *o); /* or NULL */
	void *ctx;

	uint64_t records, ids; /* ids: records with one */
	uint64_t received, sent, not_sent, open, let_go;
	uint64_t copies, made, unknown; /* copies: all sendings but the first of a packet */
	uint64_t again; /* copies sent by the port and queue of the sending before */
	uint64_t rx_no_id, no_direction;
	uint64_t reordered, reordered_flows;
	uint64_t unchanged; /* sendings */
	uint64_t negative;  /* sendings with a time stamp before that of the reception */
	uint64_t disorder;  /* records that are older than one before by more than 1 ms */
	uint64_t no_room;   /* sendings between queues, unsent packets of kinds, beyond KEYED_MAX */
	uint64_t first_ns, last_ns;
	/* The time of the record before was far from last_ns, which stays until the next record is
	 * near it; doubt_waits: it is the newest of the waitlist. */
	bool doubt, doubt_waits;
	uint64_t doubt_ns;
	uint64_t outliers; /* such records that no other one was near to */
	bool begins;       /* the next record is the first of a file; set by the caller */
	uint64_t times[TIMES_MAX + 1];        /* packets that were sent so often */
	uint64_t times_number[TIMES_MAX + 1]; /* frame of the first of them */
	struct changed changes[CHANGES];
	struct spread all, sizes[SIZES];
	struct keyed pairs, queues; /* struct way */
	struct keyed unsent;        /* struct protocol */
	struct waitlist waitlist;
	struct waitlist late; /* their time is over, their fates are awaited; not ordered by time */
	struct known_fates fates;
	struct flow_table flows; /* struct joined_flow */
	struct slices slices;
};

/* memory: bytes, at most. 0 or -ENOMEM. Free with join_free() in any case. */
int join_new(struct join **out, uint64_t timeout_ns, uint64_t memory);
void join_free(struct join *j);
/* Takes n records, at most JOIN_BATCH, of which blocks has the ports. */
#define JOIN_BATCH 32
void join_records(struct join *j, const struct record *r, int n, const struct records *records);
/* The end of the last file. */
void join_end(struct join *j);
/* Outermost headers of a packet as it was received, without those of TCP. */
void join_headers(const struct join *j, const struct waiting *w, struct headers *h);

#endif
