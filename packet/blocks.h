/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a pcapng file of this machine's byte order, block by block. Files come from outside:
 * everything is checked. */
#ifndef RINGTAP_PACKET_BLOCKS_H
#define RINGTAP_PACKET_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "common/record.h"

#define BLOCKS_MAX (RT_CHUNK_MAX + 4096) /* bytes of a block: the largest record with a comment */

struct block {
	uint32_t type, len;  /* bytes, also those of the lengths */
	const uint8_t *data; /* the whole block */
};

struct blocks {
	int fd;
	uint8_t *buf; /* BLOCKS_MAX bytes */
	size_t at, end;
};

/* fd stays the caller's. The caller closes b with blocks_close() in any case. 0 or -ENOMEM. */
int blocks_open(struct blocks *b, int fd);
void blocks_close(struct blocks *b);
/* The next block, which lives until the next call. 1; 0: the end of the file; -ENODATA: the file
 * ends within a block; -EBADMSG: this is not a block; -errno. */
int blocks_next(struct blocks *b, struct block *out);

/* The block at p, of which left bytes are there. As blocks_next(); 0: there is nothing. */
int block_read(const uint8_t *p, size_t left, struct block *out);
/* The packet of an Enhanced Packet Block. r->cap_len bytes lie at *data. -EBADMSG: it has none. */
int block_packet(const struct block *b, struct rt_record *r, const uint8_t **data);

#endif
