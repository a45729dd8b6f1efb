/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "flow_rows.h"

/* In the order of schema.py. */
enum {
	COL_ID,
	COL_A,
	COL_B,
	COL_PROTO,
	COL_A_PORT,
	COL_B_PORT,
	COL_FIRST,
	COL_LAST,
	COL_PACKETS_AB,
	COL_PACKETS_BA,
	COL_BYTES_AB,
	COL_BYTES_BA,
	COL_FLAGS,
	COL_RETRANSMISSIONS,
	COL_RTT,
	COL_P50,
	COL_P99,
	COL_OFFERED,
	COL_NOT_OFFERED,
	COL_OPEN,
	COL_UNKNOWN,
	COL_UNSEEN,
	COL_STOPPED,
	FLOW_COLUMNS
};

static const struct column_kind columns[FLOW_COLUMNS] = {
	[COL_ID] = {"flow_id", "l", 8, false, 0, NULL},
	[COL_A] = {"src", "w:16", 16, false, 0, NULL},
	[COL_B] = {"dst", "w:16", 16, false, 0, NULL},
	[COL_PROTO] = {"protocol", "C", 1, false, 0, NULL},
	[COL_A_PORT] = {"src_port", "S", 2, false, 0, NULL},
	[COL_B_PORT] = {"dst_port", "S", 2, false, 0, NULL},
	[COL_FIRST] = {"first_ns", "l", 8, true, 0, NULL},
	[COL_LAST] = {"last_ns", "l", 8, true, 0, NULL},
	[COL_PACKETS_AB] = {"packets_ab", "l", 8, false, 0, NULL},
	[COL_PACKETS_BA] = {"packets_ba", "l", 8, false, 0, NULL},
	[COL_BYTES_AB] = {"bytes_ab", "l", 8, false, 0, NULL},
	[COL_BYTES_BA] = {"bytes_ba", "l", 8, false, 0, NULL},
	[COL_FLAGS] = {"tcp_flags", "C", 1, false, 0, NULL},
	[COL_RETRANSMISSIONS] = {"retransmissions", "l", 8, false, 0, NULL},
	[COL_RTT] = {"rtt_ns", "l", 8, false, 0, NULL},
	[COL_P50] = {"latency_p50_ns", "l", 8, false, 0, NULL},
	[COL_P99] = {"latency_p99_ns", "l", 8, false, 0, NULL},
	[COL_OFFERED] = {"offered", "l", 8, false, 0, NULL},
	[COL_NOT_OFFERED] = {"not_offered", "l", 8, false, 0, NULL},
	[COL_OPEN] = {"open", "l", 8, false, 0, NULL},
	[COL_UNKNOWN] = {"unknown", "l", 8, false, 0, NULL},
	[COL_UNSEEN] = {"unseen", "l", 8, false, 0, NULL},
	[COL_STOPPED] = {"port_stopped", "l", 8, false, 0, NULL},
};

const struct batch_kind flows_kind = {columns, FLOW_COLUMNS, FLOW_ROWS_MAX};

static void put64(struct batch *b, unsigned column, uint64_t v)
{
	((uint64_t *)b->column[column])[b->rows] = v;
}

static void put16(struct batch *b, unsigned column, uint16_t v)
{
	((uint16_t *)b->column[column])[b->rows] = v;
}

static void put_ends(struct batch *b, const struct flow_sum *s)
{
	memcpy(b->column[COL_A] + 16 * (size_t)b->rows, s->ends.src, 16);
	memcpy(b->column[COL_B] + 16 * (size_t)b->rows, s->ends.dst, 16);
	b->column[COL_PROTO][b->rows] = s->ends.protocol;
	put16(b, COL_A_PORT, s->ends.src_port);
	put16(b, COL_B_PORT, s->ends.dst_port);
}

/* As explain: a packet without an entry was offered if it is in the file as sent, and once all
 * entries have been read (docs/format.md); else it is open. Where the recorder has lost entries, or
 * there was no memory, it is unknown. received = offered + not_offered + open + unknown. */
static void put_fates(struct batch *b, const struct flow_sum *s, const struct fates *fates)
{
	uint64_t unknown = s->unknown + s->without_id + s->let_go;
	uint64_t rest = s->received - s->sent - s->not_offered - s->open - unknown;
	bool all = fates->ended && !fates->lost;

	put64(b, COL_OFFERED, s->sent + (all ? rest : 0));
	put64(b, COL_NOT_OFFERED, s->not_offered);
	put64(b, COL_OPEN, s->open + (fates->ended ? 0 : rest));
	put64(b, COL_UNKNOWN, unknown + (fates->ended && !all ? rest : 0));
	put64(b, COL_UNSEEN, s->unseen);
	put64(b, COL_STOPPED, s->stopped);
}

void flow_rows_put(struct batch *b, const struct flow *f, const struct fates *fates)
{
	const uint32_t no_ports = 1u << COL_A_PORT | 1u << COL_B_PORT;
	const uint32_t no_tcp = 1u << COL_FLAGS | 1u << COL_RETRANSMISSIONS;
	const uint32_t no_latency = 1u << COL_P50 | 1u << COL_P99;
	const uint32_t no_fates = 1u << COL_OFFERED | 1u << COL_NOT_OFFERED | 1u << COL_OPEN |
				  1u << COL_UNKNOWN | 1u << COL_UNSEEN | 1u << COL_STOPPED;
	const struct flow_sum *s = &f->sum;
	uint32_t has = (1u << FLOW_COLUMNS) - 1;

	put64(b, COL_ID, (uint64_t)s->id);
	put_ends(b, s);
	put64(b, COL_FIRST, (uint64_t)s->first_ns);
	put64(b, COL_LAST, (uint64_t)s->last_ns);
	put64(b, COL_PACKETS_AB, s->packets[0]);
	put64(b, COL_PACKETS_BA, s->packets[1]);
	put64(b, COL_BYTES_AB, s->bytes[0]);
	put64(b, COL_BYTES_BA, s->bytes[1]);
	b->column[COL_FLAGS][b->rows] = s->tcp_flags;
	put64(b, COL_RETRANSMISSIONS, s->retransmissions);
	put64(b, COL_RTT, s->rtt_ns < 0 ? 0 : (uint64_t)s->rtt_ns);
	put64(b, COL_P50, f->latency ? sketch_percentile(f->latency, 50) : 0);
	put64(b, COL_P99, f->latency ? sketch_percentile(f->latency, 99) : 0);
	put_fates(b, s, fates);
	has &= ~((s->has_ports ? 0 : no_ports) | (s->is_tcp ? 0 : no_tcp) |
		 (s->rtt_ns < 0 ? 1u << COL_RTT : 0) | (f->latency ? 0 : no_latency) |
		 (fates->present && s->received ? 0 : no_fates));
	batch_add(b, has);
}
