/* SPDX-License-Identifier: BSD-3-Clause */
/* The outermost headers of a packet: its flow, and what an application changes on the way. */
#ifndef RINGTAP_PACKET_HEADERS_H
#define RINGTAP_PACKET_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was there to be read: a packet may be cut, or be another protocol. */
enum {
	HAS_MAC = 1,
	HAS_TYPE = 2,  /* ethertype, behind VLAN tags */
	HAS_IP = 4,    /* version, tos, ttl, protocol, addresses */
	HAS_PORTS = 8, /* of TCP, UDP and SCTP; not in later fragments */
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
	uint8_t src[16], dst[16]; /* IPv4: the first 4 bytes */
};

/* Reads Ethernet frames; of other link types nothing. */
void headers_read(struct headers *h, uint16_t linktype, const uint8_t *data, size_t len);

#define HEADERS_TEXT 160
/* "192.0.2.1:53 > 198.51.100.7:4242 UDP". Returns buf. */
char *headers_text(const struct headers *h, char buf[HEADERS_TEXT]);
/* "IPv4 UDP", "ARP", "type 0x88cc". Returns buf. */
#define PROTOCOL_TEXT 32
char *headers_protocol(const struct headers *h, char buf[PROTOCOL_TEXT]);

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
