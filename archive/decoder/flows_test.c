/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP's states, percentiles, ids, the table of flows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/pcapng.h"
#include "flows.h"
#include "ids.h"
#include "sketch.h"
#include "spill.h"
#include "tcp.h"

static bool no_memory;

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_realloc(void *p, size_t n)
{
	return no_memory ? NULL : __real_realloc(p, n);
}

static void segment(
	struct tcp *t, unsigned end, uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len)
{
	static int64_t now;

	tcp_segment(t,
		&(struct row){.time_ns = now += 100,
			.tcp_flags = flags,
			.tcp_seq = seq,
			.tcp_ack = ack,
			.tcp_len = len,
			.tcp_whole = true},
		end, 0);
}

static void what_fills_a_hole_is_no_retransmission(void **state)
{
	struct tcp t;

	tcp_begin(&t);
	segment(&t, 0, TCP_ACK, UINT32_MAX - 9, 0, 10); /* up to the wrap */
	segment(&t, 0, TCP_ACK, 10, 0, 10);             /* 0 to 9 are missing */
	assert_int_equal(t.side[0].holes, 1);
	segment(&t, 0, TCP_ACK, 3, 0, 4); /* splits the hole */
	assert_int_equal(t.side[0].holes, 2);
	assert_int_equal(t.retransmissions, 0);
	segment(&t, 0, TCP_ACK, 3, 0, 4);
	assert_int_equal(t.retransmissions, 1);
	segment(&t, 0, TCP_ACK, 0, 0, 10);
	assert_int_equal(t.side[0].holes, 0);
	assert_int_equal(t.retransmissions, 1);
	segment(&t, 0, TCP_ACK, 15, 0, 10); /* in part new */
	assert_int_equal(t.retransmissions, 1);
	segment(&t, 0, TCP_ACK, 24, 0, 1); /* keeps the connection */
	assert_int_equal(t.retransmissions, 1);
}

static void holes_without_room_are_forgotten(void **state)
{
	struct tcp t;

	tcp_begin(&t);
	for (uint32_t i = 0; i < 10; i++)
		segment(&t, 0, TCP_ACK, 100 * i, 0, 50);
	assert_int_equal(t.side[0].holes, TCP_HOLES);
	segment(&t, 0, TCP_ACK, 850, 0, 50);
	assert_int_equal(t.retransmissions, 0);
	segment(&t, 0, TCP_ACK, 50, 0, 50);
	assert_int_equal(t.retransmissions, 1);
}

static void the_handshake_gives_the_round_trip(void **state)
{
	struct tcp t;

	tcp_begin(&t);
	segment(&t, 0, TCP_SYN, 7, 0, 0);
	segment(&t, 0, TCP_SYN, 7, 0, 0); /* again: the time is from the last */
	segment(&t, 1, TCP_SYN | TCP_ACK, 50, 8, 0);
	segment(&t, 0, TCP_ACK, 8, 50, 0); /* not of the SYN and ACK */
	assert_int_equal(t.rtt_ns, -1);
	segment(&t, 0, TCP_ACK, 8, 51, 0);
	assert_int_equal(t.rtt_ns, 300);
	assert_int_equal(t.retransmissions, 1);
}

static void percentiles_are_off_by_a_bucket_at_most(void **state)
{
	struct sketch *s = NULL;
	uint64_t bytes = 0;

	for (uint64_t i = 1; i <= 10000; i++)
		assert_int_equal(sketch_add(&s, (i * 7919) % 10000 * 1000, &bytes), 0);
	assert_in_range(sketch_percentile(s, 50), 4999000 * 0.984, 4999000 * 1.016);
	assert_in_range(sketch_percentile(s, 99), 9899000 * 0.984, 9899000 * 1.016);
	assert_in_range(bytes, 1000, 20000);
	sketch_free(s);
}

static void of_ids_without_room_those_go_first_that_were_sent(void **state)
{
	struct ids t = {0};
	struct id_entry gone, *e;
	uint64_t found = 0, lost = 0, n = 6 << 20, sent = n / 4;

	assert_null(ids_find(&t, 1));
	for (uint64_t i = 1; i <= n; i++) {
		assert_int_equal(ids_put(&t, i, (int64_t)i, (uint32_t)i, &gone), 0);
		lost += gone.id != 0;
		assert_true(!id_waits(&gone) || i > sent);
		e = ids_find(&t, i);
		assert_true(e && e->ns == (int64_t)i && e->flow == i);
		e->sent = i <= sent;
	}
	assert_int_equal(t.used + lost, n);
	for (uint64_t i = 1; i <= n; i++)
		found += ids_find(&t, i) != NULL;
	assert_int_equal(found, t.used);
	ids_close(&t);
}

/* Two packets; a copy of the first one was sent; then a fate for it. */
static void the_fate_counts_and_not_a_copy(void **state)
{
	struct iface ifs[1] = {{0}};
	struct walk w = {.ifs = ifs, .count = 1};
	struct rt_fates_packet fate = {.id = 1, .fate = RT_FATES_NOT_OFFERED};
	struct flows t;
	const struct flow_sum *s;

	w.b.fates = (struct block_fates){
		.kind = RT_FATES_PACKETS, .count = 1, .entries = (const uint8_t *)&fate};
	assert_int_equal(flows_open(&t), 0);
	for (uint64_t i = 0; i < 4; i++) {
		struct row r = {.flow_id = 1,
			.packet_id = 1 + (int64_t)(i & 1),
			.direction = i == 2,
			.time_ns = (int64_t)i,
			.has = HAS(COL_PACKET_ID) | HAS(COL_DIRECTION) | HAS(COL_FLOW_ID)};

		if (r.direction)
			r.has &= ~HAS(COL_FLOW_ID); /* its headers cannot be read */
		if (i < 3)
			assert_int_equal(flows_packet(&t, &r), 0);
	}
	s = &flows_at(&t, 0)->sum;
	assert_int_equal(s->received, 2);
	assert_int_equal(s->sent, 1);
	assert_int_equal(sketch_percentile(flows_at(&t, 0)->latency, 50), 2);
	flows_fates(&t, &w);
	flows_fates(&t, &w);
	assert_int_equal(s->sent, 0);
	assert_int_equal(s->not_offered, 1);
	flows_let_go(&t);
	assert_int_equal(s->let_go, 1);
	flows_close(&t);
}

static void receive(struct flows *t, int64_t id)
{
	struct row r = {.flow_id = 1,
		.packet_id = id,
		.has = HAS(COL_PACKET_ID) | HAS(COL_DIRECTION) | HAS(COL_FLOW_ID)};

	assert_int_equal(flows_packet(t, &r), 0);
}

static void judge(struct flows *t, uint64_t id, uint8_t fate, uint8_t why)
{
	struct iface ifs[1] = {{0}};
	struct walk w = {.ifs = ifs, .count = 1};
	struct rt_fates_packet entry = {.id = id, .fate = fate, .why = why};

	w.b.fates = (struct block_fates){
		.kind = RT_FATES_PACKETS, .count = 1, .entries = (const uint8_t *)&entry};
	flows_fates(t, &w);
}

/* Also of a flow in two pieces. Reasons of other fates, and those of later versions, are none. */
static void reasons_of_unknown_packets_count(void **state)
{
	static const uint8_t fates[][2] = {{RT_FATES_UNKNOWN, RT_FATES_WHY_UNSEEN},
		{RT_FATES_UNKNOWN, RT_FATES_WHY_STOPPED}, {RT_FATES_UNKNOWN, RT_FATES_WHY_STOPPED},
		{RT_FATES_UNKNOWN, RT_FATES_WHY_OTHER}, {RT_FATES_UNKNOWN, 77},
		{RT_FATES_INFERRED, RT_FATES_WHY_UNSEEN}, {RT_FATES_OPEN, RT_FATES_WHY_STOPPED},
		{RT_FATES_NOT_OFFERED, RT_FATES_WHY_STOPPED}};
	struct flows t;
	struct flow_reader *r;
	const struct flow *f;
	int64_t id = 0;

	assert_int_equal(flows_open(&t), 0);
	for (unsigned piece = 0; piece < 2; piece++) {
		for (unsigned i = 0; i < sizeof(fates) / sizeof(*fates); i++) {
			receive(&t, ++id);
			judge(&t, (uint64_t)id, fates[i][0], fates[i][1]);
		}
		assert_int_equal(flows_at(&t, 0)->sum.unseen, 1);
		assert_int_equal(flows_at(&t, 0)->sum.stopped, 2);
		assert_int_equal(flows_at(&t, 0)->sum.unknown, 6);
		assert_int_equal(spill_flows(&t), 0);
	}
	assert_int_equal(flow_reader_open(&r, &t), 0);
	assert_int_equal(flow_reader_next(r, &f), 1);
	assert_int_equal(f->sum.unseen, 2);
	assert_int_equal(f->sum.stopped, 4);
	flow_reader_close(r);
	flows_close(&t);
}

/* A packet of flow 1 that is received and sent again. */
static void forward(struct flows *t, uint64_t latency)
{
	static int64_t id;
	struct row r = {.flow_id = 1,
		.packet_id = ++id,
		.has = HAS(COL_PACKET_ID) | HAS(COL_DIRECTION) | HAS(COL_FLOW_ID)};

	assert_int_equal(flows_packet(t, &r), 0);
	r.direction = 1;
	r.time_ns = (int64_t)latency;
	assert_int_equal(flows_packet(t, &r), 0);
}

static void latencies_that_do_not_fit_into_memory_are_freed_once(void **state)
{
	struct flows t;
	struct flow_reader *r;
	const struct flow *f;

	assert_int_equal(flows_open(&t), 0);
	for (uint64_t i = 0; i < 4; i++) /* as many as a sketch has room for at first */
		forward(&t, 1000 << i);
	assert_int_equal(spill_flows(&t), 0);
	forward(&t, 1000000);
	assert_int_equal(flow_reader_open(&r, &t), 0);
	no_memory = true;
	assert_int_equal(flow_reader_next(r, &f), -ENOMEM);
	no_memory = false;
	flow_reader_close(r);
	flows_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fills_a_hole_is_no_retransmission),
		cmocka_unit_test(holes_without_room_are_forgotten),
		cmocka_unit_test(the_handshake_gives_the_round_trip),
		cmocka_unit_test(percentiles_are_off_by_a_bucket_at_most),
		cmocka_unit_test(of_ids_without_room_those_go_first_that_were_sent),
		cmocka_unit_test(the_fate_counts_and_not_a_copy),
		cmocka_unit_test(reasons_of_unknown_packets_count),
		cmocka_unit_test(latencies_that_do_not_fit_into_memory_are_freed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
