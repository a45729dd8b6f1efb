/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes by an application in the headers of a packet between reception and sending. */
#ifndef RINGTAP_CLI_EXPLAIN_CHANGES_H
#define RINGTAP_CLI_EXPLAIN_CHANGES_H

#include <stdint.h>

#include "packet/headers.h"

/* Fields in which two packets differ. */
enum change {
	CHANGE_SRC_MAC,
	CHANGE_DST_MAC,
	CHANGE_VLAN_ADDED,
	CHANGE_VLAN_REMOVED,
	CHANGE_VLAN,
	CHANGE_TYPE,
	CHANGE_TTL,
	CHANGE_DSCP,
	CHANGE_ECN,
	CHANGE_PROTOCOL,
	CHANGE_SRC,
	CHANGE_DST,
	CHANGE_SRC_PORT,
	CHANGE_DST_PORT,
	CHANGE_LENGTH,
	CHANGES
};
extern const char *const change_names[CHANGES]; /* for people */
extern const char *const change_keys[CHANGES];  /* in JSON and CSV */

/* Bits of what differs between two packets, where both have it: 1 << enum change. */
uint32_t headers_compare(
	const struct headers *rx, uint32_t rx_length, const struct headers *tx, uint32_t tx_length);
/* "64 > 63". Returns buf. */
#define CHANGE_TEXT 128
char *change_text(enum change c, const struct headers *rx, uint32_t rx_length,
	const struct headers *tx, uint32_t tx_length, char buf[CHANGE_TEXT]);

#endif
