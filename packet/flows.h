/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of packets, in bounded memory. */
#ifndef RINGTAP_PACKET_FLOWS_H
#define RINGTAP_PACKET_FLOWS_H

#include "flow_key.h"

struct flow {
	struct flow_key key;
	uint64_t packets[2]; /* received (or of unknown direction), sent */
	uint64_t bytes;      /* on the wire, both directions */
};

struct flows;

/* max: flows at a time. The caller frees with flows_free(). NULL: no memory. */
struct flows *flows_new(uint32_t max);
void flows_free(struct flows *f);
/* Counts a packet. */
void flows_add(struct flows *f, const struct headers *h, uint32_t length, int sent);

enum flow_order { FLOWS_BY_PACKETS, FLOWS_BY_BYTES };
/* The largest flows, at most max, largest first. Returns how many. They live until the next call of
 * flows_add(). */
size_t flows_top(struct flows *f, enum flow_order order, const struct flow **out, size_t max);
/* Flows that are counted now. */
size_t flows_count(const struct flows *f);
/* When there were too many, the smallest were forgotten: a flow may have had this many more
 * packets. 0: all are counted exactly. */
uint64_t flows_error(const struct flows *f);

#endif
