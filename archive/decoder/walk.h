/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocks of a pcapng file, of either byte order, with several sections. Unlike
 * cli/explain/records.c, which joins several files out of pipes, this keeps the offset of each
 * block, and what a part of the file needs to be a file of its own.
 */
#ifndef RINGTAP_ARCHIVE_WALK_H
#define RINGTAP_ARCHIVE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "window.h"

#define WALK_TEXT   256u        /* bytes of a text that are kept, with the final zero */
#define WALK_HEADER (64u << 20) /* bytes of a section's header and interfaces */
#define WALK_FAR    (1u << 20)  /* bytes */
#define WALK_NONE   UINT64_MAX  /* a counter that is not there */
#define NO_QUEUE    UINT32_MAX
#define INTERFACES  65535u /* of a part: columns have 16 bits */

/* Counters of the last Interface Statistics Block; WALK_NONE where there is none. */
struct statistics {
	uint64_t time_ns, start_ns, end_ns, received, dropped, accepted, os_dropped, delivered;
};

struct iface {
	char *name, *description, *filter, *hardware, *os; /* NULL: the file has none */
	uint16_t linktype;
	uint32_t snaplen;
	uint8_t resolution; /* if_tsresol */
	int64_t offset_s;   /* if_tsoffset */
	uint64_t speed;     /* bit/s; 0: unknown */
	/* A hash of its name, see walk.c; 0: the interface is none of an application. */
	uint64_t application;
	struct statistics last;
	struct clock_report clock, report; /* its own, and that of the last statistics */
	uint64_t packets;                  /* of it, in this part */
	/* Packets that the capture lost: the sum of dropcounts of this section, and what statistics
	 * count beyond. Of a file that begins later than the capture, since the capture began. */
	uint64_t gaps;
	uint64_t all; /* packets in this section */
};

enum found_kind {
	FOUND_END,
	FOUND_OTHER,
	FOUND_PACKET,
	FOUND_STATISTICS,
	FOUND_INTERFACE,
	FOUND_FATES
};

struct found {
	uint64_t offset; /* of the block, in the file */
	/* Fields of a packet. */
	int64_t ns;
	uint64_t id;        /* epb_packetid; valid if has_id */
	uint64_t dropcount; /* lost before it */
	uint32_t local;     /* interface of the section */
	uint32_t captured, length;
	uint32_t queue; /* or NO_QUEUE */
	uint32_t hash;
	bool has_hash, has_id;
	uint8_t direction; /* 0: unknown; 1: rx; 2: tx */
	uint16_t linktype;
	const uint8_t *data; /* valid until the next walk_next() */
	/* Fields of other blocks. body: behind type and length. In statistics, local is the
	 * interface, and before are its counters until now. */
	const uint8_t *body;
	uint32_t body_len;
	struct statistics before;
};

struct walk {
	struct window w;
	uint64_t next; /* offset of the next block */
	bool begun, swapped;
	bool fates_begun;  /* in this section */
	struct iface *ifs; /* of the part: those of the section from base on */
	uint32_t count, room, base;
	uint8_t *header; /* of this section: header, interfaces, begin of fates */
	size_t header_len, header_room;
	int64_t last_ns;                             /* of the packet before */
	char *hardware, *os, *application, *comment; /* of the section */
	char torn[160];                              /* "": the file is good so far */
};

void walk_close(struct walk *w);
/* The next block that is of use; behind WALK_FAR bytes without one, FOUND_OTHER. A kind of enum
 * found_kind; -errno: reading failed. A damaged block is the end, with its reason in torn. */
int walk_next(struct walk *w, struct found *f);
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
