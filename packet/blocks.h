/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocks of a pcapng file (IETF draft-ietf-opsawg-pcapng) of either byte order, with several
 * sections. Files come from outside: everything is checked, and a damaged block is the end.
 */
#ifndef RINGTAP_PACKET_BLOCKS_H
#define RINGTAP_PACKET_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pcapng_read.h"
#include "window.h"

#define NO_QUEUE       UINT32_MAX
#define NO_COUNT       UINT64_MAX /* a counter that is not there */
#define INTERFACES_MAX 65535u     /* interfaces of a section */
#define TORN_TEXT      192

enum block_kind {
	BLOCK_END,
	BLOCK_OTHER,
	BLOCK_SECTION,
	BLOCK_INTERFACE,
	BLOCK_STATISTICS,
	BLOCK_PACKET,
	BLOCK_FATES
};

enum direction { DIRECTION_NONE, DIRECTION_RX, DIRECTION_TX };

struct block {
	uint64_t offset;      /* in the file */
	const uint8_t *bytes; /* the whole block; this and other pointers: until the next call */
	uint32_t len;
	uint32_t local; /* interface of the section; not of fates */
	/* Fields of a packet. */
	int64_t ns;         /* also that of statistics */
	uint64_t id;        /* epb_packetid; valid if has_id */
	uint64_t dropcount; /* lost before it */
	uint32_t captured, length;
	uint32_t queue; /* or NO_QUEUE */
	uint32_t hash;
	bool has_hash, has_id;
	uint8_t direction; /* enum direction */
	uint16_t linktype;
	const uint8_t *data;
};

struct block_interface {
	uint16_t linktype;
	uint8_t resolution; /* if_tsresol */
	uint32_t snaplen;
	int64_t offset_s; /* if_tsoffset */
};

/* Counters of an Interface Statistics Block; NO_COUNT where there is none. */
struct statistics {
	uint64_t time_ns, start_ns, end_ns, received, dropped, accepted, os_dropped, delivered;
};

/* A block of fates whose entries are complete; common/pcapng.h has them, in the file's byte order.
 */
struct block_fates {
	uint16_t kind; /* enum rt_fates_kind */
	uint32_t count;
	uint64_t ns;
	const uint8_t *entries;
};

struct blocks {
	struct window w;
	uint64_t next; /* offset of the next block */
	bool begun, swapped;
	struct block_interface *ifs; /* interfaces of the section */
	uint32_t count;
	int64_t last_ns;              /* time of the packet before */
	struct statistics statistics; /* BLOCK_STATISTICS only */
	struct block_fates fates;     /* valid for BLOCK_FATES */
	char torn[TORN_TEXT];         /* "": the file is good so far */
};

/* Zero it first, and open its window. */
void blocks_close(struct blocks *b);
/* A kind of enum block_kind; -errno: reading failed. BLOCK_END: with the reason in torn, the file
 * is damaged there. */
int blocks_next(struct blocks *b, struct block *out);
/* Whether the next block is in memory: pointers into the one before stay valid. */
bool blocks_ready(const struct blocks *b);
/* Goes on with another file. w: moves into b. */
void blocks_start(struct blocks *b, const struct window *w);
/* The same file from where from stands, on its own. 0 or -ENOMEM. Close it in any case. */
int blocks_fork(struct blocks *b, const struct blocks *from);
/* Ends reading before a block that cannot be used. Returns BLOCK_END. */
__attribute__((format(printf, 3, 4))) int blocks_refuse(
	struct blocks *b, uint64_t offset, const char *format, ...);

/* The options of a section, an interface, or statistics. */
struct rt_pcapng_options block_options(const struct block *b, enum block_kind kind);

#endif
