/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of packets, and its columns. */
#ifndef RINGTAP_ARCHIVE_DECODER_ROW_H
#define RINGTAP_ARCHIVE_DECODER_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of schema.py. */
enum column {
	COL_TIME,
	COL_INTERFACE,
	COL_QUEUE,
	COL_DIRECTION,
	COL_LENGTH,
	COL_CAPTURED,
	COL_VLAN,
	COL_ETHERTYPE,
	COL_SRC,
	COL_DST,
	COL_PROTOCOL,
	COL_SRC_PORT,
	COL_DST_PORT,
	COL_TCP_FLAGS,
	COL_TCP_SEQ,
	COL_IP_ID,
	COL_RSS_HASH,
	COL_FLOW_ID,
	COL_PACKET_ID,
	COL_DIGEST,
	COL_TUNNEL,
	COL_TUNNEL_ID,
	COL_INNER_SRC,
	COL_INNER_DST,
	COL_INNER_PROTOCOL,
	COL_INNER_SRC_PORT,
	COL_INNER_DST_PORT,
	COL_FILE_OFFSET,
	COLUMNS
};
#define HAS(column) (1u << (column))

enum { TUNNEL_VXLAN, TUNNEL_GRE, TUNNEL_GTPU };

/* Addresses and ports, of the outer or of the inner packet. Addresses as in the columns. */
struct ends {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port; /* 0: none */
	uint8_t protocol;
};

/* Fields that nearly all packets have are in the first two cache lines. */
struct row {
	uint32_t has; /* bits of the columns that are not null */
	uint32_t length, captured;
	uint32_t tcp_seq, ip_id, rss_hash, digest;
	uint16_t interface, queue;
	int64_t time_ns, file_offset, flow_id, packet_id;
	uint16_t vlan, ethertype;
	uint8_t direction; /* 0: rx; 1: tx */
	uint8_t tcp_flags;
	struct ends outer;
	/* For flows: what the segment occupies of the sequence, as the headers say. */
	uint32_t tcp_ack, tcp_len;
	bool tcp_whole;       /* these two are valid */
	uint64_t application; /* the interface's application: ids are its own */
	/* Valid with COL_TUNNEL only: not even zero without. */
	uint32_t tunnel_id;
	uint8_t tunnel;
	struct ends inner;
};
#define ROW_TUNNEL offsetof(struct row, tunnel_id) /* bytes before them */

#endif
