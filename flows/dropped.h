/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that an application receives and gives to no port, for a ledger: a capture of its own
 * beside that of all packets. */
#ifndef RINGTAP_FLOWS_DROPPED_H
#define RINGTAP_FLOWS_DROPPED_H

#include "capture.h"
#include "fates/groups.h"
#include "ledger.h"

struct dropped {
	const struct fates_session *s; /* whose application and ports it is */
	struct ringtap_capture *cap;   /* NULL: there is none */
	struct ringtap_packets *walk;
	uint64_t reasons[REASONS]; /* packets by number: ringtap_capture_reason() */
	uint64_t lost; /* packets not offered that could not be read: their flows are not known */
};

/* Attaches and starts: before the other capture. 0, or -errno after printing why. Free with
 * dropped_free() in any case. */
int dropped_begin(struct dropped *d, const struct fates_session *s, const struct flows_request *r);
void dropped_free(struct dropped *d);
/* Counts those that were noticed since. final: also those whose mbufs are free now; the other
 * capture has ended before. */
void dropped_take(struct dropped *d, struct ledger *t, bool final);

#endif
