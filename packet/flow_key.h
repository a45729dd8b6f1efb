/* SPDX-License-Identifier: BSD-3-Clause */
/* The key that packets of a flow share, in one direction: outermost VLAN, addresses, protocol and
 * ports; MAC addresses and EtherType where a packet is not IP. */
#ifndef RINGTAP_PACKET_FLOW_KEY_H
#define RINGTAP_PACKET_FLOW_KEY_H

#include "common/hash.h"
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

/* In halves: a load of a whole word that was stored in parts waits for the stores. */
static inline uint64_t flow_word(const uint8_t *p)
{
	uint32_t low, high;

	memcpy(&low, p, sizeof(low));
	memcpy(&high, p + 4, sizeof(high));
	return low | (uint64_t)high << 32;
}

/* The parts of a key that are hashed, for a caller that has them in registers. */
struct flow_words {
	uint64_t src[2], dst[2], ports, rest;
};

static inline uint64_t flow_ports_word(
	uint16_t src_port, uint16_t dst_port, uint16_t type, uint16_t vlan)
{
	return src_port | (uint32_t)dst_port << 16 | (uint64_t)type << 32 | (uint64_t)vlan << 48;
}

static inline uint64_t flow_rest_word(
	uint16_t port, uint8_t protocol, uint8_t version, uint8_t flags)
{
	return port | (uint32_t)protocol << 16 | (uint32_t)version << 24 | (uint64_t)flags << 32;
}

static inline struct flow_words flow_words_of(const struct flow_key *k)
{
	return (struct flow_words){.src = {flow_word(k->src), flow_word(k->src + 8)},
		.dst = {flow_word(k->dst), flow_word(k->dst + 8)},
		.ports = flow_ports_word(k->src_port, k->dst_port, k->type, k->vlan),
		.rest = flow_rest_word(k->port, k->protocol, k->version, k->flags) |
			(uint64_t)k->zero[0] << 40 | (uint64_t)k->zero[1] << 48 |
			(uint64_t)k->zero[2] << 56};
}

/* Addresses side by side, not in turn: multiplications overlap. */
static inline uint32_t flow_words_hash(const struct secret *s, struct flow_words w)
{
	const uint64_t src = hash_number(s, w.src[0], w.src[1]),
		       dst = hash_number(s, w.dst[0], w.dst[1]);

	return hash_short(hash_number(s, src ^ w.rest, dst ^ w.ports));
}

static inline bool flow_key_equal(const struct flow_key *a, const struct flow_key *b)
{
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	uint64_t differ = 0;

	for (size_t i = 0; i < sizeof(*a); i += 8)
		differ |= flow_word(x + i) ^ flow_word(y + i);
	return !differ;
}

void flow_key_of(struct flow_key *k, uint16_t port, const struct headers *h);
/* "192.0.2.1:53 > 198.51.100.7:4242 UDP, VLAN 5". Returns buf. */
#define FLOW_TEXT HEADERS_TEXT
char *flow_text(const struct flow_key *k, char buf[FLOW_TEXT]);
/* "tcp", "udp", "47"; where it is not IP "0x0806". Returns buf. */
char *flow_protocol(const struct flow_key *k, char buf[16]);
/* An address without a port. Returns buf. */
char *flow_address(const struct flow_key *k, const uint8_t *address, char buf[ADDRESS_TEXT]);

#endif
