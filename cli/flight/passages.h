/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with ids on their way through the application: how long each took, which were slow, and
 * which were not sent in the window. */
#ifndef RINGTAP_CLI_FLIGHT_PASSAGES_H
#define RINGTAP_CLI_FLIGHT_PASSAGES_H

#include "common/pcapng.h"
#include "packet/blocks.h"
#include "packet/headers.h"
#include "view.h"

struct passages;
struct ringtap_snapshot;

/* For a window. NULL: no memory. */
struct passages *passages_new(uint64_t from_ns, uint64_t to_ns);
void passages_free(struct passages *p);
/* In the order of the file; frame counts from 1. p may be NULL. */
void passages_add(
	struct passages *p, const struct block *b, const struct headers *h, uint64_t frame);
/* Fate of a packet that was not sent in the window. reason: as the application gave it, or "". */
void passages_fate(struct passages *p, const struct rt_fates_packet *e, const char *reason);
/* Adds the heat map and the tables; nothing where no packet has an id. */
void passages_view(const struct incident *i, const struct ringtap_snapshot *last, struct view *v,
	const struct lane_bars *bars);

#endif
