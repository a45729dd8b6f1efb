/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "changes.h"

const char *const change_names[CHANGES] = {"source MAC address", "destination MAC address",
	"VLAN tag added", "VLAN tag removed", "VLAN tag", "ethertype", "TTL, hop limit", "DSCP",
	"ECN", "IP protocol", "source address", "destination address", "source port",
	"destination port", "length"};
const char *const change_keys[CHANGES] = {"src_mac", "dst_mac", "vlan_added", "vlan_removed",
	"vlan", "ethertype", "ttl", "dscp", "ecn", "protocol", "src_address", "dst_address",
	"src_port", "dst_port", "length"};

static uint32_t bit(bool differs, enum change c)
{
	return (uint32_t)differs << c;
}

static uint32_t compare_vlans(const struct headers *a, const struct headers *b)
{
	if (a->vlans != b->vlans)
		return bit(b->vlans > a->vlans, CHANGE_VLAN_ADDED) |
		       bit(b->vlans < a->vlans, CHANGE_VLAN_REMOVED);
	return bit(a->tci[0] != b->tci[0] || a->tci[1] != b->tci[1], CHANGE_VLAN);
}

/* Addresses are compared only if both are of one version: else the type has changed. */
static uint32_t compare_ip(const struct headers *a, const struct headers *b)
{
	return bit((a->tos ^ b->tos) >> 2, CHANGE_DSCP) | bit((a->tos ^ b->tos) & 3, CHANGE_ECN) |
	       bit(a->ttl != b->ttl, CHANGE_TTL) |
	       bit(a->protocol != b->protocol, CHANGE_PROTOCOL) |
	       bit(memcmp(a->src, b->src, sizeof(a->src)), CHANGE_SRC) |
	       bit(memcmp(a->dst, b->dst, sizeof(a->dst)), CHANGE_DST);
}

uint32_t headers_compare(
	const struct headers *rx, uint32_t rx_length, const struct headers *tx, uint32_t tx_length)
{
	uint8_t both = rx->flags & tx->flags;
	uint32_t bits = bit(rx_length != tx_length, CHANGE_LENGTH);

	if (both & HAS_MAC)
		bits |= bit(memcmp(rx->src_mac, tx->src_mac, 6), CHANGE_SRC_MAC) |
			bit(memcmp(rx->dst_mac, tx->dst_mac, 6), CHANGE_DST_MAC);
	if (both & HAS_TYPE)
		bits |= compare_vlans(rx, tx) | bit(rx->type != tx->type, CHANGE_TYPE);
	if (both & HAS_IP && rx->version == tx->version)
		bits |= compare_ip(rx, tx);
	if (both & HAS_PORTS)
		bits |= bit(rx->src_port != tx->src_port, CHANGE_SRC_PORT) |
			bit(rx->dst_port != tx->dst_port, CHANGE_DST_PORT);
	return bits;
}

/* The value in one packet, as text. */
static void value_text(enum change c, const struct headers *h, uint32_t length, char buf[56])
{
	switch (c) {
	case CHANGE_SRC_MAC: mac_text(h->src_mac, buf); break;
	case CHANGE_DST_MAC: mac_text(h->dst_mac, buf); break;
	case CHANGE_VLAN_ADDED:
	case CHANGE_VLAN_REMOVED:
	case CHANGE_VLAN:
		if (h->vlans > 1)
			snprintf(buf, 56, "%u.%u", h->tci[0] & 4095, h->tci[1] & 4095);
		else
			snprintf(buf, 56, h->vlans ? "%u" : "none", h->tci[0] & 4095);
		/* Priority only where it is what may differ. */
		if (c == CHANGE_VLAN && h->vlans && h->tci[0] >> 12)
			snprintf(buf + strlen(buf), 16, " prio %u", h->tci[0] >> 13);
		break;
	case CHANGE_TYPE: snprintf(buf, 56, "0x%04x", h->type); break;
	case CHANGE_TTL: snprintf(buf, 56, "%u", h->ttl); break;
	case CHANGE_DSCP: snprintf(buf, 56, "%u", h->tos >> 2); break;
	case CHANGE_ECN: snprintf(buf, 56, "%u", h->tos & 3); break;
	case CHANGE_PROTOCOL: protocol_text(h->protocol, buf); break;
	case CHANGE_SRC: address_text(h->version, h->src, buf); break;
	case CHANGE_DST: address_text(h->version, h->dst, buf); break;
	case CHANGE_SRC_PORT: snprintf(buf, 56, "%u", h->src_port); break;
	case CHANGE_DST_PORT: snprintf(buf, 56, "%u", h->dst_port); break;
	default: snprintf(buf, 56, "%u", length);
	}
}

char *change_text(enum change c, const struct headers *rx, uint32_t rx_length,
	const struct headers *tx, uint32_t tx_length, char buf[CHANGE_TEXT])
{
	char from[56], to[56];

	value_text(c, rx, rx_length, from);
	value_text(c, tx, tx_length, to);
	snprintf(buf, CHANGE_TEXT, "%s > %s", from, to);
	return buf;
}
