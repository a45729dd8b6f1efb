/* SPDX-License-Identifier: BSD-3-Clause */
/* Which flows packets belong to, in bounded memory. A flow is a 5-tuple in one direction, with its
 * VLAN; packets that are not IP go by their addresses and EtherType. */
#ifndef RINGTAP_PACKET_FLOWS_H
#define RINGTAP_PACKET_FLOWS_H

#include <stddef.h>
#include <stdint.h>

#define FLOW_NO_VLAN  0xffff
#define FLOW_TEXT_LEN 160

/* Compared byte by byte: make it of zeros. */
struct flow_key {
	uint8_t source[16], target[16];    /* IPv4: the first four; not IP: MAC addresses */
	uint16_t source_port, target_port; /* 0: none, or not the packet's first fragment */
	uint16_t ethertype;                /* after VLAN tags */
	uint16_t vlan;                     /* the outer id; FLOW_NO_VLAN: none */
	uint8_t protocol;                  /* of IP */
	uint8_t zero[3];
};

struct flow {
	struct flow_key key;
	uint64_t packets[2]; /* received (or of unknown direction), sent */
	uint64_t bytes;      /* on the wire, both directions */
};

struct flows;

/* max: flows at a time. The caller frees with flows_free(). NULL: no memory. */
struct flows *flows_new(size_t max);
void flows_free(struct flows *f);
/* Counts a packet of which caplen bytes are at data. */
void flows_add(struct flows *f, const uint8_t *data, uint32_t caplen, uint32_t length, int sent);

/* The same of a packet whose key is known. */
void flows_add_key(struct flows *f, const struct flow_key *k, uint32_t length, int sent);

enum flow_order { FLOWS_BY_PACKETS, FLOWS_BY_BYTES };
/* The largest flows, at most max, largest first. Returns how many. They live until the next call of
 * flows_add(). */
size_t flows_top(struct flows *f, enum flow_order order, const struct flow **out, size_t max);
/* Flows that are counted now. */
size_t flows_count(const struct flows *f);
/* When there were too many, the smallest were forgotten: a flow may have had this many more
 * packets. 0: all are counted exactly. */
uint64_t flows_error(const struct flows *f);

/* The key of a packet. */
void flow_key_of(struct flow_key *k, const uint8_t *data, uint32_t caplen);
/* "10.0.0.1:53 > 10.0.0.2:4711 udp vlan 12" */
char *flow_text(char buf[FLOW_TEXT_LEN], const struct flow_key *k);
/* "tcp", "udp", "47"; of what is not IP "0x0806". Static or buf. */
const char *flow_protocol(char buf[16], const struct flow_key *k);
/* An address without a port. */
char *flow_address(char buf[FLOW_TEXT_LEN], const struct flow_key *k, const uint8_t *address);

#endif
