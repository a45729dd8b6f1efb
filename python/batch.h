/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of a run as rows of a table, for numpy: a call for thousands of packets. */
#ifndef RINGTAP_PYTHON_BATCH_H
#define RINGTAP_PYTHON_BATCH_H

#include <string.h>

#include <ringtap/reader.h>

/* The fields of ROW in _batches.py. */
struct batch_row {
	uint64_t time_ns, id, dropcount, offset; /* offset: of its bytes in the batch's data */
	uint32_t length, caplen, interface, queue, hash;
	uint8_t direction, has_hash, pad[2];
};

struct batch {
	struct batch_row *rows;
	uint32_t count, room;
	uint8_t *data; /* NULL: no bytes are copied */
	uint64_t used, size;
};

/* Reads packets until the run has no more (false), or the batch no room for any packet (true). */
static bool batch_fill(struct batch *b, struct ringtap_packets *it)
{
	const struct ringtap_packet *p;

	while (ringtap_packets_more(it)) {
		struct batch_row *row = &b->rows[b->count];

		if (b->count == b->room || (b->data && b->size - b->used < RINGTAP_SNAPLEN_MAX))
			return true;
		p = ringtap_packet_next(it);
		if (!p)
			return false;
		*row = (struct batch_row){.time_ns = p->ns,
			.id = p->id,
			.dropcount = p->dropcount,
			.offset = b->used,
			.length = p->length,
			.caplen = p->caplen,
			.interface = p->interface,
			.queue = p->queue,
			.hash = p->hash,
			.direction = p->direction,
			.has_hash = p->has_hash};
		if (b->data) {
			memcpy(b->data + b->used, p->data, p->caplen);
			b->used += p->caplen;
		}
		b->count++;
	}
	return false;
}

#endif
