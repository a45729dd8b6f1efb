/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets and fates of pcapng files. Several files are read as if they were one: ports of the same
 * application and name are one port. */
#ifndef RINGTAP_CLI_EXPLAIN_RECORDS_H
#define RINGTAP_CLI_EXPLAIN_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/blocks.h"

#ifndef PORTS_MAX       /* fuzzers have fewer */
#define PORTS_MAX 4096u /* ports of all files */
#endif
#define PORT_NAME 64 /* bytes, with the final zero */

/* A port of an application, as Interface Description Blocks name it. */
struct port {
	char name[PORT_NAME];
	char application[PORT_NAME]; /* "" where a file does not name it */
	uint16_t application_id;     /* equal for ports of one application */
	char shown[2 * PORT_NAME]; /* the name, as APP:PORT where there are several applications */
	uint16_t linktype;
	bool filtered, cut; /* recorded with a filter; with a snaplen below 65535 */
	uint32_t sample;    /* one of N packets is recorded; 0: all */
	bool first;         /* the first bytes or packets of each flow are */
	/* From the last Interface Statistics Block of a capture; NO_COUNT where there is none. */
	uint64_t lost, missed;
	uint64_t start; /* isb_starttime, as it stands there: tells captures apart */
	/* Counted from the records. */
	uint64_t received, sent, gaps; /* gaps: sum of epb_dropcount */
	uint64_t lost_before;          /* losses of captures before this one */
};

enum record_kind {
	RECORD_PACKET,
	RECORD_FATE,        /* what became of the packet with this id */
	RECORD_FATES_BEGIN, /* fates of this recording's packets follow, in this file or a later one
			     */
	RECORD_FATES_END,   /* no more of them follow */
	RECORD_REASON,      /* the text of a reason that the application gave */
	RECORD_END,         /* the recording on an interface ended at ns: isb_endtime */
};

struct record {
	enum record_kind kind;
	uint8_t fate;    /* enum rt_fates_fate, of RECORD_FATE; it has id, ns, port and queue. Of
			  * RECORD_REASON: the source */
	uint8_t why;     /* enum rt_fates_why, or number of a reason; also of RECORD_REASON */
	uint64_t number; /* frame number over all files, from 1, as Wireshark counts */
	uint64_t ns;     /* since the epoch */
	uint64_t id;     /* epb_packetid; 0: none */
	uint32_t port;   /* index */
	uint32_t queue;  /* or NO_QUEUE */
	enum direction direction;
	uint32_t caplen, length;
	const uint8_t *data; /* valid until the next call of records_next(); of RECORD_REASON: the
			      * text, caplen bytes of anything */
};

struct records;

/* 0 or -ENOMEM. Free with records_free() in any case. */
int records_new(struct records **out);
void records_free(struct records *b);
/* Goes on with another file; in becomes its own, which it closes. */
void records_start(struct records *b, const struct window *in);
/* How many packets were read, 1 to max; 0: the end of the file; -EBADMSG: the file is damaged, see
 * records_error(); -errno: it could not be read. Nothing more comes of a file after an error. */
int records_next(struct records *b, struct record *r, int max);
/* Instead of records_next(): the next block of the file, whole, at *p until the next call. Its
 * length; 0: the end; errors as above. *r: the packet that it is, or a record with the number 0. */
ssize_t records_block(struct records *b, const uint8_t **p, struct record *r);
/* The section is of the other byte order than this machine. */
bool records_swapped(const struct records *b);
/* Error in the file, and its place. */
const char *records_error(const struct records *b);

/* Fates that a recorder has lost. */
uint64_t records_fates_lost(const struct records *b);

uint32_t records_port_count(const struct records *b);
const struct port *records_port(const struct records *b, uint32_t i);

#endif
