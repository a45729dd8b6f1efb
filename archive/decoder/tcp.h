/* SPDX-License-Identifier: BSD-3-Clause */
/* Retransmissions and the time of the handshake, from a flow's TCP segments. */
#ifndef RINGTAP_ARCHIVE_DECODER_TCP_H
#define RINGTAP_ARCHIVE_DECODER_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "row.h"

#define TCP_HOLES 4

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_ACK = 16 };

/* Segments sent by one end. */
struct tcp_side {
	uint32_t next; /* behind the highest byte that was seen */
	uint32_t isn;
	struct {
		uint32_t from, to;
	} hole[TCP_HOLES]; /* not seen yet: what fills them is not a retransmission */
	uint32_t point;    /* point of capture: a packet that is recorded twice is not sent twice */
	uint8_t holes;
	bool begun, has_isn;
};

struct tcp {
	struct tcp_side side[2];
	int64_t syn_ns, rtt_ns; /* rtt_ns: -1: unknown */
	uint32_t syn_seq, syn_ack_seq;
	uint8_t state; /* state of the handshake */
	uint8_t opener;
	uint32_t retransmissions;
};

void tcp_begin(struct tcp *t);
/* A segment of the end 0 or 1, seen at this point of capture. */
void tcp_segment(struct tcp *t, const struct row *r, unsigned end, uint32_t point);

#endif
