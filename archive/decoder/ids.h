/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets with ids (epb_packetid) of which it is open when they are sent, and what becomes
 * of them. Of bounded size: the oldest are forgotten. */
#ifndef RINGTAP_ARCHIVE_IDS_H
#define RINGTAP_ARCHIVE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"

struct id_entry {
	uint64_t id; /* 0: empty */
	int64_t ns;  /* of the reception */
	uint32_t flow;
};

struct ids {
	struct id_entry *entry; /* NULL until the first */
	struct secret secret;
	uint64_t used, forgotten;
};

void ids_close(struct ids *t);
/* All are forgotten, and that some were forgotten before. */
void ids_clear(struct ids *t);
/* 0 or -ENOMEM. */
int ids_put(struct ids *t, uint64_t id, int64_t ns, uint32_t flow);
/* Takes the entry of this id out. false: it is not there. */
bool ids_take(struct ids *t, uint64_t id, struct id_entry *out);

#endif
