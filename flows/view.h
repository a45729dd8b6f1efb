/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the entries of a ledger. */
#ifndef RINGTAP_FLOWS_VIEW_H
#define RINGTAP_FLOWS_VIEW_H

#include "fates/session.h"
#include "ledger.h"

#define LEDGER_TEXT (FLOW_TEXT + RINGTAP_NAME_LEN)
/* "192.0.2.1:53 > 198.51.100.7:4242 UDP, VNI 7", "TCP 443", "VLAN 5". Returns buf. */
char *ledger_text(const struct ledger *t, const struct flow_key *k, const struct fates_session *s,
	char buf[LEDGER_TEXT]);
/* "p0, queue 1"; "" where it is not known. Returns buf. */
char *ledger_place_text(
	const struct ledger_place *p, const struct fates_session *s, char buf[LEDGER_TEXT]);
/* Writes the addresses with which the entry's packets were sent. False: the same ones. */
bool ledger_became(const struct ledger *t, const struct ledger_flow *f, char buf[LEDGER_TEXT]);
/* The VNI of an entry of tunnels; false: it has none. */
bool ledger_vni(const struct ledger *t, const struct flow_key *k, uint32_t *vni);
/* The thread of an entry; false: it has none. */
bool ledger_thread(const struct ledger *t, const struct flow_key *k, struct ledger_thread *thread);
/* The expression of libpcap that matches the packets of an entry and, with tags as they are, hardly
 * any other; the caller frees it. NULL: there is none, as of a queue or the inside of a tunnel. */
char *ledger_expression(const struct ledger *t, const struct flow_key *k);

#endif
