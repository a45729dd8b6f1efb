/* SPDX-License-Identifier: BSD-3-Clause */
/* Link types of packet sockets: LINKTYPE_… of pcap-linktype(7). */
#ifndef RINGTAP_HOST_LINK_H
#define RINGTAP_HOST_LINK_H

#include <stdbool.h>
#include <stdint.h>

#define LINK_ETHERNET 1
#define LINK_RAW      101 /* an IP header */
/* The link-layer header is left out; what the kernel says of it is in one of 16 or 20 bytes. */
#define LINK_SLL  113
#define LINK_SLL2 276

static inline bool link_is_cooked(uint16_t linktype)
{
	return linktype == LINK_SLL || linktype == LINK_SLL2;
}

#endif
