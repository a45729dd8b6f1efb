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

struct known_fates {
	bool present;      /* in some file */
	bool here;         /* in this file; the caller clears it when a file begins */
	bool ended;        /* the recording has its end */
	uint64_t began_ns; /* begin of the recording, which its files have in common */
	struct fate_row total;
	struct keyed rows;    /* struct fate_row */
	struct keyed refused; /* struct protocol */
	uint64_t sizes[SIZES];
	struct spread noticed; /* from the reception until it was noticed */
	uint64_t elsewhere;    /* fates of packets that are not in the file, or were let go */
	uint64_t no_room;
};

void known_init(struct known_fates *f);
void known_free(struct known_fates *f);
/* A packet was received. */
void known_receive(struct known_fates *f, const struct waiting *w);
/* Its fate, once for each packet. noticed_ns: when it was known, of KNOWN_NOT_OFFERED. */
void known_count(
	struct known_fates *f, const struct waiting *w, enum known known, uint64_t noticed_ns);

#endif
