/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest packets of one entry of a ledger, as text, with the command that records them. */
#ifndef RINGTAP_FLOWS_DETAIL_H
#define RINGTAP_FLOWS_DETAIL_H

#include "fates/session.h"
#include "ledger.h"

#define DETAIL_PACKETS 64u
#define DETAIL_BYTES   256u
struct flows_detail {
	bool open;
	struct flow_key key;
	uint64_t count; /* packets since it was opened */
	struct detail_packet {
		struct ringtap_packet p; /* its data are bytes */
		uint16_t linktype;
		uint8_t bytes[DETAIL_BYTES];
	} packets[DETAIL_PACKETS];
};

/* NULL closes it. */
void flows_detail_open(struct flows_detail *d, const struct flow_key *key);
/* Keeps a packet that counts in the entry. */
void flows_detail_take(struct flows_detail *d, const struct ledger *t,
	const struct ringtap_packet *p, uint16_t linktype);
void flows_detail_text(const struct flows_detail *d, const struct ledger *t,
	const struct fates_session *s, bool sample, FILE *f);

/* The command that records the packets of an entry, for a shell; the caller frees it. NULL: no
 * filter of libpcap matches them. */
char *flows_record(const struct ledger *t, const struct fates_session *s, const struct flow_key *k);

#endif
