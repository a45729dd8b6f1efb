/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "rows.h"
#include "sorted.h"

static const char *const directions[] = {"rx", "tx"};
static const char *const tunnels[] = {
	[TUNNEL_VXLAN] = "vxlan", [TUNNEL_GRE] = "gre", [TUNNEL_GTPU] = "gtpu"};

static const struct column_kind columns[COLUMNS] = {
	[COL_TIME] = {"time_ns", "l", 8, true, 0, NULL},
	[COL_INTERFACE] = {"interface", "S", 2, true, 0, NULL},
	[COL_QUEUE] = {"queue", "S", 2, false, 0, NULL},
	[COL_DIRECTION] = {"direction", "c", 1, false, 2, directions},
	[COL_LENGTH] = {"length", "I", 4, true, 0, NULL},
	[COL_CAPTURED] = {"captured", "I", 4, true, 0, NULL},
	[COL_VLAN] = {"vlan", "S", 2, false, 0, NULL},
	[COL_ETHERTYPE] = {"ethertype", "S", 2, false, 0, NULL},
	[COL_SRC] = {"src", "w:16", 16, false, 0, NULL},
	[COL_DST] = {"dst", "w:16", 16, false, 0, NULL},
	[COL_PROTOCOL] = {"protocol", "C", 1, false, 0, NULL},
	[COL_SRC_PORT] = {"src_port", "S", 2, false, 0, NULL},
	[COL_DST_PORT] = {"dst_port", "S", 2, false, 0, NULL},
	[COL_TCP_FLAGS] = {"tcp_flags", "C", 1, false, 0, NULL},
	[COL_TCP_SEQ] = {"tcp_seq", "I", 4, false, 0, NULL},
	[COL_IP_ID] = {"ip_id", "I", 4, false, 0, NULL},
	[COL_RSS_HASH] = {"rss_hash", "I", 4, false, 0, NULL},
	[COL_FLOW_ID] = {"flow_id", "l", 8, false, 0, NULL},
	[COL_PACKET_ID] = {"packet_id", "l", 8, false, 0, NULL},
	[COL_DIGEST] = {"digest", "I", 4, false, 0, NULL},
	[COL_TUNNEL] = {"tunnel", "c", 1, false, 3, tunnels},
	[COL_TUNNEL_ID] = {"tunnel_id", "I", 4, false, 0, NULL},
	[COL_INNER_SRC] = {"inner_src", "w:16", 16, false, 0, NULL},
	[COL_INNER_DST] = {"inner_dst", "w:16", 16, false, 0, NULL},
	[COL_INNER_PROTOCOL] = {"inner_protocol", "C", 1, false, 0, NULL},
	[COL_INNER_SRC_PORT] = {"inner_src_port", "S", 2, false, 0, NULL},
	[COL_INNER_DST_PORT] = {"inner_dst_port", "S", 2, false, 0, NULL},
	[COL_FILE_OFFSET] = {"file_offset", "l", 8, true, 0, NULL},
};

const struct batch_kind packets_kind = {columns, COLUMNS, ROWS_MAX},
			sorted_kind = {columns, COLUMNS, SORTED_MAX};

#define PUT(column_number, value) \
	memcpy(b->column[column_number] + (size_t)at * sizeof(value), &(value), sizeof(value))

static void put_ends(struct batch *b, uint32_t at, const struct ends *e, bool inner)
{
	int shift = inner ? COL_INNER_SRC - COL_SRC : 0;

	PUT(COL_SRC + shift, e->src);
	PUT(COL_DST + shift, e->dst);
	PUT(COL_PROTOCOL + shift, e->protocol);
	PUT(COL_SRC_PORT + shift, e->src_port);
	PUT(COL_DST_PORT + shift, e->dst_port);
}

void rows_put(struct batch *b, const struct row *r)
{
	uint32_t at = b->rows;

	PUT(COL_TIME, r->time_ns);
	PUT(COL_INTERFACE, r->interface);
	PUT(COL_QUEUE, r->queue);
	PUT(COL_DIRECTION, r->direction);
	PUT(COL_LENGTH, r->length);
	PUT(COL_CAPTURED, r->captured);
	PUT(COL_VLAN, r->vlan);
	PUT(COL_ETHERTYPE, r->ethertype);
	put_ends(b, at, &r->outer, false);
	PUT(COL_TCP_FLAGS, r->tcp_flags);
	PUT(COL_TCP_SEQ, r->tcp_seq);
	PUT(COL_IP_ID, r->ip_id);
	PUT(COL_RSS_HASH, r->rss_hash);
	PUT(COL_FLOW_ID, r->flow_id);
	PUT(COL_PACKET_ID, r->packet_id);
	PUT(COL_DIGEST, r->digest);
	PUT(COL_FILE_OFFSET, r->file_offset);
	if (r->has & HAS(COL_TUNNEL)) {
		PUT(COL_TUNNEL, r->tunnel);
		PUT(COL_TUNNEL_ID, r->tunnel_id);
		put_ends(b, at, &r->inner, true);
	}
	batch_add(b, r->has);
}
