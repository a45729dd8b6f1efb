/* SPDX-License-Identifier: BSD-3-Clause */
/* Random packets of all shapes against a second, simple encoder. Segments end where their memory
 * does: a sanitizer finds reads past them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/capture/epb.h"
#include "probe/capture/ids.h"
#include "probe/capture/readable.h"
#include "probe/test_eal.h"

#define RING     (1u << 20)
#define BURST    40u
#define SEGMENTS 6u
#define JUMBO    9728u
#define ROUNDS   3000

/* Input of the encoder for one packet. */
struct packet {
	uint64_t wire;
	bool hash;
	uint32_t rss, len; /* len: of the data that its segments hold */
	uint64_t id;       /* that its record has; 0: none */
	uint8_t tags[8], tag_len, data[JUMBO];
};

static struct test_ring t;
static struct packet packets[BURST];
static uint8_t expected[RING]; /* what the ring has to hold */
static uint64_t head;          /* position in expected */
static uint64_t released;      /* position in expected */
static uint64_t pending[2];
static struct rt_seg_count counts[2];
static uint8_t far[BURST * SEGMENTS][JUMBO]; /* external buffers */
static unsigned far_next;

static int set_up(void **state)
{
	char err[RT_TEXT_LEN];

	assert_int_equal(rt_ids_register(err), 0);
	test_ring_make(&t, RING);
	rt_readable_look(5000);
	head = released = 0;
	memset(pending, 0, sizeof(pending));
	memset(counts, 0, sizeof(counts));
	return 0;
}

static int tear_down(void **state)
{
	test_ring_free(&t);
	rt_readable_forget();
	rt_readable_forget();
	return 0;
}

static bool one_in(uint32_t n)
{
	return test_random() % n == 0;
}

/* ---- the encoder: docs/format.md, byte by byte ---- */

static void put(const void *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expected[head++ % RING] = ((const uint8_t *)bytes)[i];
}

static void put32(uint64_t v)
{
	uint32_t w = (uint32_t)v;

	put(&w, 4);
}

static void put16(uint16_t a, uint16_t b)
{
	put(&a, 2);
	put(&b, 2);
}

/* The frame as on the wire, up to cap bytes. False: the frame is shorter. */
static bool frame(const struct packet *p, uint8_t *out, uint32_t cap)
{
	uint32_t from = 0;

	for (uint32_t i = 0; i < cap; i++) {
		if (i >= 12 && i < 12u + p->tag_len)
			out[i] = p->tags[i - 12];
		else if (from < p->len)
			out[i] = p->data[from++];
		else
			return false;
	}
	return true;
}

static void encode(const struct packet *p, enum rt_direction dir, uint64_t ns)
{
	static const uint8_t zeros[4];
	static uint8_t bytes[JUMBO + 8];
	const struct rt_tap *tap = &t.tap[dir];
	uint64_t cap = RTE_MIN(p->wire, tap->snaplen);
	bool hash = p->hash && dir == RT_DIR_RX, id = tap->ids && p->id;
	uint32_t total = 28 + ((uint32_t)cap + 3) / 4 * 4 + 16 + hash * 12 + id * 12 +
			 (pending[dir] > 0) * 12 + 8;

	if (p->wire > UINT32_MAX || cap > sizeof(bytes) || !frame(p, bytes, (uint32_t)cap)) {
		counts[dir].lost[RT_LOSS_BAD_MBUF]++;
		pending[dir]++;
		return;
	}
	put32(6);
	put32(total);
	put32(tap->if_index);
	put32(ns >> 32);
	put32(ns);
	put32(cap);
	put32(p->wire);
	put(bytes, (uint32_t)cap);
	put(zeros, -cap % 4);
	put16(2, 4);
	put32(dir == RT_DIR_RX ? 1 : 2);
	put16(6, 4);
	put32(tap->queue);
	if (hash) {
		put16(3, 5);
		put("\x05", 1);
		put32(p->rss);
		put(zeros, 3);
	}
	if (id) {
		put16(5, 8);
		put32(p->id);
		put32(p->id >> 32 | tap->id_source >> 32);
	}
	if (pending[dir]) {
		put16(4, 8);
		put(&pending[dir], 8);
		pending[dir] = 0;
	}
	put32(0);
	put32(total);
	counts[dir].captured++;
	counts[dir].bytes += p->wire;
}

/* ---- random packets ---- */

static uint32_t random_size(void)
{
	static const uint32_t usual[] = {60, 64, 64, 128, 594, 1514, 1518};

	switch (test_random() % 8) {
	case 0: return test_random() % 40;
	case 1:
	case 2: return usual[test_random() % RTE_DIM(usual)];
	case 3: return one_in(4) ? test_random() % (JUMBO + 1) : 64;
	default: return test_random() % 2001;
	}
}

/* In its own buffer, which ends with the data, or in another. */
static struct rte_mbuf *make_segment(const uint8_t *data, uint32_t len)
{
	uint32_t room = test_random() % 200;
	bool external = one_in(10);
	struct rte_mbuf *m;

	if (posix_memalign((void **)&m, 64, sizeof(*m) + (external ? 0 : room + len)))
		abort();
	memset(m, 0, sizeof(*m));
	m->buf_addr = m + 1;
	m->data_off = (uint16_t)room;
	if (external) {
		m->buf_addr = far[far_next++ % RTE_DIM(far)];
		m->data_off = 0;
		/* Some drivers reset the flag. */
		m->ol_flags = one_in(2) ? RTE_MBUF_F_EXTERNAL : 0;
	}
	m->nb_segs = 1;
	m->data_len = (uint16_t)len;
	memcpy(rte_pktmbuf_mtod(m, void *), data, len);
	return m;
}

static struct rte_mbuf *make_chain(struct packet *p, unsigned segs)
{
	struct rte_mbuf *first = NULL, **link = &first;
	uint32_t at = 0;

	for (unsigned i = 1; i <= segs; i++) {
		uint32_t left = p->len - at, n = i == segs ? left : test_random() % (left + 1);

		if (i < segs && one_in(3))
			n = RTE_MIN(n, test_random() % 24);
		*link = make_segment(p->data + at, n);
		link = &(*link)->next;
		at += n;
	}
	first->nb_segs = (uint16_t)segs;
	first->pkt_len = p->len;
	return first;
}

/* Lengths and counts that do not fit together. */
static void spoil(struct packet *p, struct rte_mbuf *m)
{
	switch (test_random() % 4) {
	case 0: m->pkt_len += 1 + test_random() % 20; break;
	case 1: m->pkt_len -= RTE_MIN(m->pkt_len, test_random() % 20); break;
	case 2: m->pkt_len = UINT32_MAX - test_random() % 9; break;
	default:
		p->len = 0;
		m->nb_segs = (uint16_t)(test_random() % (m->nb_segs + 2u));
		for (unsigned segs = m->nb_segs; m && segs; m = m->next, segs--)
			p->len += m->data_len;
	}
}

static void put_tag(struct packet *p, unsigned type, uint16_t tci)
{
	uint8_t *tag = p->tags + p->tag_len;

	tag[0] = (uint8_t)(type >> 8);
	tag[1] = (uint8_t)type;
	tag[2] = (uint8_t)(tci >> 8);
	tag[3] = (uint8_t)tci;
	p->tag_len += 4;
}

static void make_tags(struct packet *p, struct rte_mbuf *m, enum rt_direction dir)
{
	bool outer = one_in(2), inner = one_in(2);

	if (dir == RT_DIR_RX)
		m->ol_flags |= (outer ? RTE_MBUF_F_RX_QINQ_STRIPPED : 0) |
			       (inner ? RTE_MBUF_F_RX_VLAN_STRIPPED : 0);
	else
		m->ol_flags |= (outer ? RTE_MBUF_F_TX_QINQ : 0) | (inner ? RTE_MBUF_F_TX_VLAN : 0);
	m->vlan_tci_outer = (uint16_t)test_random();
	m->vlan_tci = (uint16_t)test_random();
	if (m->pkt_len < 12)
		return;
	if (outer)
		put_tag(p, 0x88a8, m->vlan_tci_outer);
	/* To send with RTE_MBUF_F_TX_QINQ means two tags. */
	if (inner || (outer && dir == RT_DIR_TX))
		put_tag(p, 0x8100, m->vlan_tci);
}

static uint64_t mark(struct rte_mbuf *m)
{
	uint64_t id = ((uint64_t)test_random() << 32 | test_random()) & RT_ID_MASK;

	m->ol_flags |= rt_ids.flag;
	*RTE_MBUF_DYNFIELD(m, rt_ids.offset, uint64_t *) = id | (uint64_t)one_in(2) << 63;
	return id;
}

/* Where a first segment without an id may come from: the application, the port of the id, another
 * one. False: that of the next segment is not its packet's. */
static bool choose_port(struct rte_mbuf *m, uint64_t id)
{
	uint16_t port = id >> RT_ID_PORT_SHIFT & RT_ID_PORT_MASK;

	m->port = one_in(3) ? RTE_MBUF_PORT_INVALID : one_in(2) ? port : port ^ 1;
	return m->port != (port ^ 1);
}

/* Received packets have none if others hold them as well; that of a sent one may be in its second
 * segment. */
static void make_id(struct packet *p, struct rte_mbuf *m, enum rt_direction dir)
{
	rte_mbuf_refcnt_set(m, one_in(3) ? 2 : 1);
	p->id = 0;
	if (one_in(4))
		return;
	if (m->nb_segs > 1 && m->next && one_in(2)) {
		p->id = mark(m->next);
		if (!choose_port(m, p->id) || dir == RT_DIR_RX)
			p->id = 0;
		return;
	}
	p->id = mark(m);
	if (dir == RT_DIR_RX && rte_mbuf_refcnt_read(m) != 1)
		p->id = 0;
}

static struct rte_mbuf *make_packet(
	struct packet *p, enum rt_direction dir, uint32_t len, unsigned segs)
{
	struct rte_mbuf *m;

	p->tag_len = 0;
	p->len = len;
	for (uint32_t i = 0; i < len; i++)
		p->data[i] = (uint8_t)test_random();
	m = make_chain(p, segs);
	if (one_in(30))
		spoil(p, m);
	if (one_in(3))
		make_tags(p, m, dir);
	p->hash = one_in(2);
	p->rss = m->hash.rss = test_random();
	if (p->hash)
		m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	make_id(p, m, dir);
	p->wire = (uint64_t)m->pkt_len + p->tag_len;
	return m;
}

static void free_packet(struct rte_mbuf *m)
{
	while (m) {
		struct rte_mbuf *next = m->next;

		free(m);
		m = next;
	}
}

static uint32_t random_snaplen(void)
{
	static const uint32_t usual[] = {96, 128, 256, 1000, 1518, 65535};

	switch (test_random() % 3) {
	case 0: return 1 + test_random() % 70;
	case 1: return usual[test_random() % RTE_DIM(usual)];
	default: return rt_epb_longest(RT_CHUNK_MIN);
	}
}

static uint32_t word_at(uint64_t pos)
{
	uint32_t v;

	memcpy(&v, test_ring_at(&t, pos), sizeof(v));
	return v;
}

/* All that has not been released, so that nothing is written before the head. Ends of chunks are
 * not expected: they come where the next record may not fit. */
static void check_ring(void)
{
	uint64_t pos = t.shm.tails[0].tail, at = released;

	while (pos < t.ring.head) {
		const uint8_t *record = test_ring_at(&t, pos);
		uint32_t len, first;

		if (word_at(pos) == RT_CHUNK_END) {
			pos = (pos / t.shm.chunk_size + 1) * t.shm.chunk_size;
			continue;
		}
		len = word_at(pos + 4);
		assert_in_range(len, RT_EPB_MIN, RTE_MIN(t.ring.head - pos, head - at));
		first = (uint32_t)RTE_MIN(len, RING - at % RING);
		assert_memory_equal(record, expected + at % RING, first);
		assert_memory_equal(record + first, expected, len - first);
		pos += len;
		at += len;
	}
	assert_int_equal(pos, t.ring.head);
	assert_int_equal(at, head);
}

static void release(void)
{
	released = head;
	rt_store_release(&t.shm.tails[0].tail, t.ring.head);
}

static void check_counts(void)
{
	for (int dir = 0; dir < 2; dir++) {
		const struct rt_seg_count *c = &t.ring.counts[dir];

		assert_int_equal(c->captured, counts[dir].captured);
		assert_int_equal(c->bytes, counts[dir].bytes);
		assert_memory_equal(c->lost, counts[dir].lost, sizeof(c->lost));
		assert_int_equal(t.pending[dir], pending[dir]);
	}
}

/* Half of the bursts have packets of one size, or in one number of segments. */
static void push_burst(enum rt_direction dir, uint64_t ns)
{
	unsigned n = 1 + test_random() % BURST, segs = 1 + test_random() % SEGMENTS;
	bool one_size = one_in(4), one_shape = one_in(4), chains = one_in(2);
	uint32_t len = random_size();
	struct rte_mbuf *m[BURST];

	t.tap[dir].snaplen = random_snaplen();
	t.tap[dir].ids = one_in(2) ? RT_IDS_ON : 0;
	t.tap[dir].id_source = (uint64_t)(test_random() % 16) << RT_ID_SOURCE_SHIFT;
	t.ring.own_ahead = (uint8_t)(one_in(2) ? test_random() % (2 * RT_OWN_TRIAL) : 0);
	for (unsigned i = 0; i < n; i++) {
		uint32_t size = one_size ? len : random_size();
		unsigned parts = chains && one_in(2) ? 1 + test_random() % SEGMENTS : 1;

		m[i] = make_packet(&packets[i], dir, size, one_shape ? segs : parts);
		encode(&packets[i], dir, ns);
	}
	test_ring_push(&t, dir, m, n, ns);
	for (unsigned i = 0; i < n; i++)
		free_packet(m[i]);
}

static void test_random_packets_are_as_a_simple_encoder_makes_them(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		push_burst(one_in(3) ? RT_DIR_TX : RT_DIR_RX, (uint64_t)test_random() << 32 | i);
		check_ring();
		if (head - released > RING / 2)
			release();
	}
	check_counts();
	assert_true(head > 20 * RING);
	for (int dir = 0; dir < 2; dir++) {
		assert_true(counts[dir].captured > 10000);
		assert_true(counts[dir].lost[RT_LOSS_BAD_MBUF] > 100);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(
		test_random_packets_are_as_a_simple_encoder_makes_them, set_up, tear_down),
};

static int run(const char *group)
{
	return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}

int main(void)
{
	return test_run_both_copies(run);
}
