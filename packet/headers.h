/* SPDX-License-Identifier: BSD-3-Clause */
/* The outermost headers of a packet, as values and as text. */
#ifndef RINGTAP_PACKET_HEADERS_H
#define RINGTAP_PACKET_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Headers that could be read: a packet may be cut, or be another protocol. */
enum {
	HAS_MAC = 1,
	HAS_TYPE = 2,  /* ethertype, behind VLAN tags */
	HAS_IP = 4,    /* version, tos, ttl, protocol, addresses */
	HAS_PORTS = 8, /* ports of TCP, UDP, UDP-Lite, SCTP and DCCP; not in later fragments */
	HAS_ARP = 16,  /* addresses: sender's and target's */
};

struct headers {
	uint8_t flags;
	uint8_t vlans; /* tags; of the first two tci is read */
	uint8_t dst_mac[6], src_mac[6];
	uint16_t tci[2];
	uint16_t type; /* host byte order, as the following */
	uint8_t version, tos, ttl, protocol;
	uint16_t src_port, dst_port;
	uint8_t tcp_flags; /* TCP only; 0 where they are cut off, as the following */
	uint32_t tcp_seq;
	uint16_t tcp_payload;     /* bytes, also those that were cut off */
	uint8_t src[16], dst[16]; /* IPv4: the first 4 bytes */
	uint32_t ip_bytes;        /* length in the IP header, with the header; 0: unknown */
};

enum { LINKTYPE_ETHERNET = 1 };
/* Reads Ethernet frames; of other link types nothing. */
void headers_read(struct headers *h, uint16_t linktype, const uint8_t *data, size_t len);

/* The headers inside of all tunnels: VXLAN, GENEVE, GRE and IP in IP, at most TUNNELS_MAX of them,
 * one in the other. Returns how many there were. *vni: that of the last one that has any. */
#define TUNNELS_MAX 4u
unsigned headers_inner(
	struct headers *h, uint32_t *vni, uint16_t linktype, const uint8_t *data, size_t len);

#define HEADERS_TEXT 160
/* "192.0.2.1:53 > 198.51.100.7:4242 UDP". Returns buf. */
char *headers_text(const struct headers *h, char buf[HEADERS_TEXT]);
/* "IPv4 UDP", "ARP", "type 0x88cc". Returns buf. */
#define PROTOCOL_TEXT 32
char *headers_protocol(const struct headers *h, char buf[PROTOCOL_TEXT]);

/* Parts of these. All return buf. */
#define MAC_TEXT     18
#define ADDRESS_TEXT 46
char *mac_text(const uint8_t m[6], char buf[MAC_TEXT]);
char *address_text(uint8_t version, const uint8_t *a, char buf[ADDRESS_TEXT]);
char *protocol_text(uint8_t protocol, char buf[16]); /* "UDP", "proto 99" */
char *ethertype_text(uint16_t type, char buf[16]);   /* "ARP", "0x88b5" */

#endif
