/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets with ids (epb_packetid), and what is known of them. A packet stays when it was
 * sent: a copy of it may have been, and its fate follows. Of bounded size: where there is no room,
 * those go first of which something is known, the oldest before others. */
#ifndef RINGTAP_ARCHIVE_DECODER_IDS_H
#define RINGTAP_ARCHIVE_DECODER_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"

struct id_entry {
	uint64_t id; /* 0: empty */
	int64_t ns;  /* time of the reception */
	uint32_t flow;
	bool sent;   /* also by a copy */
	bool judged; /* its fate has been read */
};

struct ids {
	struct id_entry *entry; /* NULL until the first */
	struct secret secret;
	uint64_t used;
};

void ids_close(struct ids *t);
/* All are forgotten. */
void ids_clear(struct ids *t);
/* gone: the entry that has made room, with the id 0 if none has. 0 or -ENOMEM. */
int ids_put(struct ids *t, uint64_t id, int64_t ns, uint32_t flow, struct id_entry *gone);
/* NULL: it is not there. */
struct id_entry *ids_find(const struct ids *t, uint64_t id);
/* The i-th place of all; NULL: behind the last one. Its id may be 0. */
const struct id_entry *ids_at(const struct ids *t, uint64_t i);

/* Neither sent nor judged. */
static inline bool id_waits(const struct id_entry *e)
{
	return e->id && !e->sent && !e->judged;
}

#endif
