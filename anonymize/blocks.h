/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of an anonymous pcapng file. Blocks, and options of them, that are not listed in
 * docs/anonymize.md are left out, all texts with them. */
#ifndef RINGTAP_ANONYMIZE_BLOCKS_H
#define RINGTAP_ANONYMIZE_BLOCKS_H

#include "packet.h"
#include "packet/blocks.h"

/* Zero it, set names and payload, and for a file start its blocks. */
struct anonymizer {
	struct pseudonyms *names; /* may be of several */
	enum payload payload;
	struct blocks blocks; /* what is read */
};

void anonymizer_free(struct anonymizer *a);

#define ANONYMIZE_MORE 256u /* bytes that an anonymous block may be longer */

/* Writes block b, of a kind that blocks_next() has returned, to out, which has room for b->len +
 * ANONYMIZE_MORE bytes. Returns bytes; 0: it is left out. */
size_t anonymize_block(
	const struct anonymizer *a, enum block_kind kind, const struct block *b, uint8_t *out);

/* The same for whole blocks in memory, which follow those before, in host byte order. in must not
 * change meanwhile. out has room bytes: ANONYMIZE_MORE more than in suffice unless blocks lack the
 * end of their options. Returns bytes; -EBADMSG, also where they do not fit; -ENOMEM. */
ssize_t anonymize_blocks(
	struct anonymizer *a, const void *in, size_t len, uint8_t *out, size_t room);

#endif
