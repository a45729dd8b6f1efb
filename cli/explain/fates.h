/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What became of received packets, of recordings that have it (`ringtap record --fates`):
 *
 *   received = offered + not offered + open + unknown + let go
 *
 * A packet without a fate in the file was offered, once the recorder says that no more follow.
 */
#ifndef RINGTAP_CLI_EXPLAIN_FATES_H
#define RINGTAP_CLI_EXPLAIN_FATES_H

#include <stdbool.h>

#include "common/pcapng.h"
#include "protocols.h"
#include "packet/sizes.h"
#include "packet/spread.h"
#include "waitlist.h"

enum known {
	KNOWN_OFFERED,
	KNOWN_NOT_OFFERED,
	KNOWN_OPEN, /* at the end of the recording, or of the file */
	KNOWN_UNKNOWN,
	KNOWN_LET_GO, /* there was no memory to wait for its fate */
	KNOWN
};

struct fate_row {
	uint16_t port, queue;
	uint64_t received;
	uint64_t likely, unseen, stopped; /* parts of KNOWN_UNKNOWN */
	uint64_t count[KNOWN];
};

#define FATE_SOURCES (1 << (64 - RT_FATES_SOURCE_SHIFT))

/* A reason of the application for packets that it did not offer. */
struct fate_reason {
	char text[sizeof(((struct rt_fates_reason *)0)->text)];
	uint64_t packets;
};

struct known_fates {
	bool present;      /* in some file */
	bool here;         /* in this file; the caller clears it when a file begins */
	bool ended;        /* the recording has its end */
	uint64_t began_ns; /* begin of the recording, which its files have in common */
	struct fate_row total;
	struct keyed rows;    /* struct fate_row */
	struct keyed refused; /* struct protocol */
	struct keyed reasons; /* struct fate_reason, by hash of the text */
	/* The hashes of the last texts by source and number; 0: none was given. */
	uint64_t reason_keys[FATE_SOURCES][256];
	uint64_t sizes[SIZES];
	struct spread noticed; /* from the reception until it was noticed */
	uint64_t elsewhere;    /* fates of packets that are not in the file, or were let go */
	uint64_t no_room;
};

void known_init(struct known_fates *f);
void known_free(struct known_fates *f);
/* A packet was received. */
void known_receive(struct known_fates *f, const struct waiting *w);
/* The text of a reason: len bytes of anything. */
void known_name_reason(
	struct known_fates *f, unsigned source, uint8_t number, const char *text, size_t len);
/* A packet with this id was not offered for that reason; 0: none. Returns its text, which stays
 * until known_free(), but may be told better later; NULL: there is none. */
const char *known_count_reason(struct known_fates *f, uint64_t id, uint8_t number);
/* Its fate, once for each packet: one of KNOWN_OFFERED, KNOWN_OPEN, KNOWN_UNKNOWN, KNOWN_LET_GO. */
void known_count(struct known_fates *f, const struct waiting *w, enum known known);
/* KNOWN_NOT_OFFERED, which was known at this time. h: the headers of the packet. */
void known_refuse(struct known_fates *f, const struct waiting *w, const struct headers *h,
	uint64_t noticed_ns);

#endif
