/* SPDX-License-Identifier: BSD-3-Clause */
/* The key that packets of a flow share, in one direction: outermost VLAN, addresses, protocol and
 * ports; MAC addresses and EtherType where a packet is not IP. */
#ifndef RINGTAP_PACKET_FLOW_KEY_H
#define RINGTAP_PACKET_FLOW_KEY_H

#include "headers.h"

#define FLOW_NO_VLAN 0xffff

/* Compared and hashed byte by byte: make it of zeros. */
struct flow_key {
	uint8_t src[16], dst[16];    /* IPv4: the first four; not IP: MAC addresses */
	uint16_t src_port, dst_port; /* 0: none, or not the packet's first fragment */
	uint16_t type;               /* EtherType, after VLAN tags */
	uint16_t vlan;               /* the outer id; FLOW_NO_VLAN: none */
	uint16_t port;               /* that has received it; 0 where flows are those of all */
	uint8_t protocol, version, flags;
	uint8_t zero[3]; /* to a multiple of 8 */
};

void flow_key_of(struct flow_key *k, uint16_t port, const struct headers *h);
/* "192.0.2.1:53 > 198.51.100.7:4242 UDP, VLAN 5". Returns buf. */
#define FLOW_TEXT HEADERS_TEXT
char *flow_text(const struct flow_key *k, char buf[FLOW_TEXT]);
/* "tcp", "udp", "47"; where it is not IP "0x0806". Returns buf. */
char *flow_protocol(const struct flow_key *k, char buf[16]);
/* An address without a port. Returns buf. */
char *flow_address(const struct flow_key *k, const uint8_t *address, char buf[ADDRESS_TEXT]);

#endif
