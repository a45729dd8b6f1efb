/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_plane.h"
#include "common/clock.h"

#define LENGTH 64

static struct buffer {
	struct rte_mbuf m;
	bool free;
	uint8_t data[RTE_ALIGN(FRAME_MAX, FRAME_ROOM)] __attribute__((aligned(RT_CACHE_LINE)));
} buffers[POOL];

struct rte_mbuf *incoming[POOL], *outgoing[POOL];
unsigned in_first, in_end, out_end, accepts, accepts_once, tx_calls, rx_calls;
unsigned rejects;

struct fwd_config config;
struct link from, to;
struct role r;

unsigned free_count(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < POOL; i++)
		n += buffers[i].free;
	return n;
}

static void fake_free(struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct buffer *b = (struct buffer *)m[i];

		assert_false(b->free);
		b->free = true;
	}
}

static uint16_t fake_alloc(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got = 0;

	(void)l;
	if (free_count() < n)
		return 0;
	for (unsigned i = 0; got < n; i++)
		if (buffers[i].free) {
			buffers[i].free = false;
			m[got++] = &buffers[i].m;
		}
	return got;
}

static uint16_t fake_rx(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got = 0;

	assert_ptr_equal(l, &from);
	rx_calls++;
	while (got < n && in_first < in_end)
		m[got++] = incoming[in_first++];
	return got;
}

static uint16_t fake_tx(struct link *l, struct rte_mbuf **m, uint16_t n)
{
	uint16_t sent = 0;

	tx_calls++;
	for (; sent < n && accepts && sent < accepts_once; sent++, accepts--)
		outgoing[out_end++] = m[sent];
	l->errors = (uint16_t)rejects;
	l->error = rejects ? 90 : 0;
	return sent;
}

static void fake_kick(struct link *l)
{
	(void)l;
}

static uint64_t fake_drain(struct link *l)
{
	(void)l;
	return 2;
}

const struct plane_ops packet_ops = {
	.rx = fake_rx, .tx = fake_tx, .alloc = fake_alloc, .free = fake_free};
const struct plane_ops mmap_ops = {.rx = fake_rx,
	.tx = fake_tx,
	.alloc = fake_alloc,
	.free = fake_free,
	.kick = fake_kick,
	.drain = fake_drain};

int setup(void **state)
{
	(void)state;
	config_init(&config);
	config.burst = 8;
	config.timeout_ns = 1000000000;
	memset(&r, 0, sizeof(r));
	memset(&from, 0, sizeof(from));
	memset(&to, 0, sizeof(to));
	memset(&run, 0, sizeof(run));
	run.hz = HZ;
	r.config = &config;
	r.plane = PLANE_PACKET;
	r.burst = 8;
	r.from = &from;
	r.to = &to;
	for (unsigned i = 0; i < POOL; i++) {
		buffers[i].free = true;
		buffers[i].m.buf_addr = buffers[i].data;
		buffers[i].m.data_off = 0;
	}
	in_first = in_end = out_end = tx_calls = rx_calls = rejects = 0;
	accepts = accepts_once = POOL;
	return 0;
}

int teardown(void **state)
{
	(void)state;
	if (r.generator)
		frames_free(&r.generator->frames);
	if (r.sink)
		for (unsigned i = 0; i < STAMP_STREAMS; i++)
			free(r.sink->streams[i]);
	free(r.generator);
	free(r.sink);
	free(r.latency);
	return 0;
}

void receives(unsigned first, unsigned n, uint8_t stream)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = NULL;
		struct stamp s = {.number = first + i, .stream = stream, .tsc = rt_tsc()};

		assert_int_equal(fake_alloc(&from, &m, 1), 1);
		m->data_len = LENGTH;
		m->pkt_len = LENGTH;
		memset(rte_pktmbuf_mtod(m, uint8_t *), (int)i + 1, LENGTH);
		memcpy(rte_pktmbuf_mtod(m, uint8_t *), "dstMACsrcMAC", 12);
		stamp_write(rte_pktmbuf_mtod(m, uint8_t *), &s);
		incoming[in_end++] = m;
	}
}

const uint8_t *sent_frame(unsigned i)
{
	assert_in_range(i, 0, out_end - 1);
	return rte_pktmbuf_mtod(outgoing[i], const uint8_t *);
}

uint64_t sent_number(unsigned i)
{
	struct stamp s = {0};

	assert_true(stamp_read(sent_frame(i), outgoing[i]->data_len, &s));
	return s.number;
}

void polls(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		r.poll(&r);
}

unsigned take_buffers(struct rte_mbuf **m, unsigned n)
{
	return fake_alloc(&to, m, (uint16_t)n);
}
