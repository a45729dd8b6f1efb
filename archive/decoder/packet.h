/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a packet: the columns that come from its bytes. */
#ifndef RINGTAP_ARCHIVE_DECODER_PACKET_H
#define RINGTAP_ARCHIVE_DECODER_PACKET_H

#include <stddef.h>

#include "row.h"

/* Fills the row's columns from vlan to inner_dst_port but for rss_hash and packet_id; those that
 * the packet has not, or that were not captured, are not in has. len: captured bytes; wire: those
 * that there were. */
void packet_read(struct row *r, uint16_t linktype, const uint8_t *data, size_t len, size_t wire,
	bool digest);

#endif
