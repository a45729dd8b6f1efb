/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "flow_key.h"

static_assert(sizeof(struct flow_key) == 48, "hashed by words, so without gaps");

void flow_key_of(struct flow_key *k, uint16_t port, const struct headers *h)
{
	*k = (struct flow_key){.type = h->type,
		.vlan = h->vlans ? h->tci[0] & 4095 : FLOW_NO_VLAN,
		.port = port,
		.flags = h->flags};
	if (h->flags & HAS_IP) {
		k->version = h->version;
		k->protocol = h->protocol;
		memcpy(k->src, h->src, sizeof(k->src));
		memcpy(k->dst, h->dst, sizeof(k->dst));
		k->src_port = h->src_port;
		k->dst_port = h->dst_port;
	} else {
		k->flags &= HAS_MAC | HAS_TYPE;
		memcpy(k->src, h->src_mac, sizeof(h->src_mac));
		memcpy(k->dst, h->dst_mac, sizeof(h->dst_mac));
	}
}

char *flow_text(const struct flow_key *k, char buf[FLOW_TEXT])
{
	struct headers h = {.flags = k->flags,
		.type = k->type,
		.version = k->version,
		.protocol = k->protocol,
		.src_port = k->src_port,
		.dst_port = k->dst_port};
	bool ip = k->flags & HAS_IP;
	size_t len;

	memcpy(ip ? h.src : h.src_mac, k->src, ip ? 16 : 6);
	memcpy(ip ? h.dst : h.dst_mac, k->dst, ip ? 16 : 6);
	headers_text(&h, buf);
	len = strlen(buf);
	if (k->vlan != FLOW_NO_VLAN)
		snprintf(buf + len, FLOW_TEXT - len, ", VLAN %u", k->vlan);
	return buf;
}

char *flow_protocol(const struct flow_key *k, char buf[16])
{
	return k->flags & HAS_IP ? protocol_text(k->protocol, buf) : ethertype_text(k->type, buf);
}

char *flow_address(const struct flow_key *k, const uint8_t *address, char buf[ADDRESS_TEXT])
{
	return k->flags & HAS_IP ? address_text(k->version, address, buf) : mac_text(address, buf);
}
