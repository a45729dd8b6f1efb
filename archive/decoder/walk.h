/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of a pcapng file, and what a part of the file needs to be a file of its own. */
#ifndef RINGTAP_ARCHIVE_DECODER_WALK_H
#define RINGTAP_ARCHIVE_DECODER_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "packet/blocks.h"

#define WALK_TEXT   256u        /* bytes of a text that are kept, with the final zero */
#define WALK_HEADER (64u << 20) /* bytes of a section's header and interfaces */
#define WALK_FAR    (1u << 20)  /* bytes */
#define INTERFACES  65535u      /* most in a part: columns have 16 bits */

struct iface {
	char *name, *description, *filter, *hardware, *os; /* NULL: the file has none */
	struct block_interface of;
	uint64_t speed;  /* bit/s; 0: unknown */
	uint32_t sample; /* one of N packets was recorded; 0: all */
	char *first;     /* the first bytes or packets of each flow were, by this rule; NULL: all */
	/* A hash of its name, see walk.c; 0: the interface is none of an application. */
	uint64_t application;
	struct statistics last;
	struct clock_report clock, report; /* its own, and that of the last statistics */
	uint64_t packets;                  /* its packets in this part */
	/* Packets that the capture lost: the sum of dropcounts of this section, and what statistics
	 * count beyond. Of a file that begins later than the capture, since the capture began. */
	uint64_t gaps;
	uint64_t all; /* packets in this section */
};

struct walk {
	struct blocks b;
	bool fates_begun;  /* in this section */
	struct iface *ifs; /* interfaces of the part: those of the section from base on */
	uint32_t count, base;
	uint8_t *header; /* blocks of this section: header, interfaces, begin of fates */
	size_t header_len, header_room;
	struct statistics before; /* BLOCK_STATISTICS: the interface's until now */
	char *hardware, *os, *application, *comment; /* texts of the section */
};

void walk_close(struct walk *w);
/* blocks_next() until a block that is of use; behind WALK_FAR bytes without one, BLOCK_OTHER. */
int walk_next(struct walk *w, struct block *f);
/* Reads on where from stands, of the same file and on its own: no texts, and no counters of parts.
 * 0 or -ENOMEM. Close it in any case. */
int walk_fork(struct walk *w, const struct walk *from);
/* Forgets the interfaces of the sections before, and counts packets again. */
void walk_part(struct walk *w);

static inline struct iface *walk_iface(const struct walk *w, uint32_t local)
{
	return &w->ifs[w->base + local];
}

#endif
