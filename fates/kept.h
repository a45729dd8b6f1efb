/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest events of fates, and how many of each queue had to go. One thread. */
#ifndef RINGTAP_FATES_KEPT_H
#define RINGTAP_FATES_KEPT_H

#include <stdint.h>

#include "common/pcapng.h"
#include "packet/keyed.h"

struct kept_fates {
	struct rt_fates_packet *events; /* event n at n modulo room */
	uint64_t room, count;
	uint64_t forgotten_ns;  /* the last one that had to go was noticed then; 0: none */
	struct keyed forgotten; /* by queue */
};

/* -ENOMEM. Free it in both cases. */
int kept_fates_init(struct kept_fates *k, uint64_t room);
void kept_fates_free(struct kept_fates *k);
void kept_fates_add(struct kept_fates *k, const struct rt_fates_packet *e);
/* The first one that is there. */
uint64_t kept_fates_first(const struct kept_fates *k);
/* Event n; it is there until room more are added. */
const struct rt_fates_packet *kept_fates_get(const struct kept_fates *k, uint64_t n);
uint64_t fate_noticed_ns(const struct rt_fates_packet *e);
/* Events of a queue that had to go and were noticed at from_ns or later; or in the same second as
 * from_ns, because they are counted by the second, of the last 64 seconds. 1 if there is no room to
 * count those of this queue: some may be missing. */
uint64_t kept_fates_forgotten(
	struct kept_fates *k, uint32_t interface, uint32_t queue, uint64_t from_ns);

#endif
