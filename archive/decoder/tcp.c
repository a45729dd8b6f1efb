/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "tcp.h"

enum { HANDSHAKE_NONE, HANDSHAKE_SYN, HANDSHAKE_SYN_ACK, HANDSHAKE_DONE };

#define FAR (1 << 30) /* a sequence number that is farther away is of another connection */

void tcp_begin(struct tcp *t)
{
	*t = (struct tcp){.rtt_ns = -1};
}

static int32_t distance(uint32_t from, uint32_t to)
{
	return (int32_t)(to - from);
}

/* ---- handshake ---- */

/* The time from the last SYN to the ACK of the SYN and ACK: both ends' shares of the path. */
static void handshake(struct tcp *t, const struct row *r, unsigned end)
{
	uint8_t flags = r->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST);

	if (flags == TCP_SYN) {
		t->state = HANDSHAKE_SYN;
		t->opener = (uint8_t)end;
		t->syn_ns = r->time_ns;
		t->syn_seq = r->tcp_seq;
	} else if (flags == (TCP_SYN | TCP_ACK)) {
		if (t->state != HANDSHAKE_SYN || end == t->opener || r->tcp_ack != t->syn_seq + 1)
			return;
		t->state = HANDSHAKE_SYN_ACK;
		t->syn_ack_seq = r->tcp_seq;
	} else if (flags == TCP_ACK && t->state == HANDSHAKE_SYN_ACK && end == t->opener &&
		   r->tcp_seq == t->syn_seq + 1 && r->tcp_ack == t->syn_ack_seq + 1) {
		t->state = HANDSHAKE_DONE;
		if (t->rtt_ns < 0 && r->time_ns >= t->syn_ns)
			t->rtt_ns = r->time_ns - t->syn_ns;
	}
}

/* ---- sequence ---- */

static void forget_hole(struct tcp_side *s, unsigned i)
{
	memmove(&s->hole[i], &s->hole[i + 1], (s->holes - i - 1u) * sizeof(s->hole[0]));
	s->holes--;
}

/* Without room the oldest is forgotten: what fills it then counts as a retransmission. */
static void add_hole(struct tcp_side *s, uint32_t from, uint32_t to)
{
	if (s->holes == TCP_HOLES)
		forget_hole(s, 0);
	s->hole[s->holes].from = from;
	s->hole[s->holes++].to = to;
}

/* Takes what the segment has out of the holes. Whether there was any of it. */
static bool fill_holes(struct tcp_side *s, uint32_t from, uint32_t to)
{
	bool filled = false;

	for (unsigned i = s->holes; i-- > 0;) {
		uint32_t begin = s->hole[i].from, end = s->hole[i].to;

		if (distance(begin, to) <= 0 || distance(from, end) <= 0)
			continue;
		filled = true;
		forget_hole(s, i);
		if (distance(begin, from) > 0)
			add_hole(s, begin, from);
		if (distance(to, end) > 0)
			add_hole(s, to, end);
	}
	return filled;
}

/* Whether the segment repeats what was seen. */
static bool advance(struct tcp_side *s, uint32_t from, uint32_t to)
{
	int32_t ahead = distance(s->next, from), behind = distance(to, s->next);

	if (ahead > FAR || ahead < -FAR) {
		s->holes = 0;
		s->next = to;
		return false;
	}
	if (ahead > 0)
		add_hole(s, s->next, from);
	if (behind >= 0)
		return !fill_holes(s, from, to);
	if (ahead < 0)
		fill_holes(s, from, s->next);
	s->next = to;
	return false;
}

static void sequence(struct tcp *t, struct tcp_side *s, const struct row *r)
{
	bool syn = r->tcp_flags & TCP_SYN, fin = r->tcp_flags & TCP_FIN;
	uint32_t len = r->tcp_len + syn + fin, to = r->tcp_seq + len;

	if (!len || r->tcp_flags & TCP_RST)
		return;
	if (!s->begun || (syn && (!s->has_isn || s->isn != r->tcp_seq))) {
		s->begun = true;
		s->has_isn = syn;
		s->isn = r->tcp_seq;
		s->holes = 0;
		s->next = to;
		return;
	}
	if (r->tcp_len == 1 && len == 1 && r->tcp_seq == s->next - 1) /* keeps the connection */
		return;
	t->retransmissions += advance(s, r->tcp_seq, to);
}

void tcp_segment(struct tcp *t, const struct row *r, unsigned end, uint32_t point)
{
	struct tcp_side *s = &t->side[end];

	if (!r->tcp_whole)
		return;
	if (!s->point)
		s->point = point + 1;
	if (s->point != point + 1)
		return;
	handshake(t, r, end);
	sequence(t, s, r);
}
