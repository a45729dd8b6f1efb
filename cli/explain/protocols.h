/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets by port and protocol, such as those that were not sent, or not offered. */
#ifndef RINGTAP_CLI_EXPLAIN_PROTOCOLS_H
#define RINGTAP_CLI_EXPLAIN_PROTOCOLS_H

#include <stdbool.h>

#include "packet/headers.h"
#include "packet/keyed.h"
#include "waitlist.h"

struct protocol {
	uint16_t port;
	uint64_t count;
	uint64_t number, ns; /* the first packet's */
	uint32_t length;
	struct headers headers;
};

/* Counts a packet. k: of struct protocol. False: there is no room for another protocol. */
bool protocol_count(struct keyed *k, const struct waiting *w, const struct headers *h);

#endif
