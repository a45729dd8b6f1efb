/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares the fates of packets with what rt_deeds has written down: counters by queue, and each
 * packet that was not offered, by its record or as one that is free in its pool.
 * usage: check_fates FOLDER PACKETS FATES
 * FOLDER: of the application at run time. Prints "armed"; a line on standard input says that the
 * application has finished, and written FATES. Until then it checks that no queue has more fates
 * than packets.
 * usage: check_fates FOLDER stops COUNT
 * Has N sessions, one after the other, of an application that goes on. Prints of each what is
 * received, noticed, open and free, and open and not free.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/ipc.h"
#include "reader/conn/conn.h"
#include "reader/memory/memory.h"
#include "reader/memory/segment.h"
#include "rt_deeds.h"

#define SNAP     64u
#define BUFFER   (64u << 20) /* bytes */
#define TURN_MS  1
#define LIVE_MOD 50u /* turns */

static struct ringtap_conn *conn;
static struct rt_memory memory = RT_MEMORY_NONE;
static struct rt_segment seg;
static uint64_t packets, *at; /* by ring */
static uint8_t *noticed;      /* by number */

static void die(const char *what, uint64_t a, uint64_t b)
{
	fprintf(stderr, "check_fates: %s: %" PRIu64 ", %" PRIu64 "\n", what, a, b);
	exit(1);
}

static void fail(const char *err)
{
	fprintf(stderr, "check_fates: %s\n", err);
	exit(1);
}

/* ---- the session ---- */

static void request(uint16_t type)
{
	struct rt_msg_header h;

	rt_msg_init(&h, type, sizeof(h));
	if (rt_msg_send(conn->fd, &h, NULL, 0))
		fail("the probe is gone");
}

static int expect(uint16_t type)
{
	char err[RT_TEXT_LEN];
	int len = rt_conn_expect(conn, type, NULL, 0, NULL, 60000, err, sizeof(err));

	if (len < 0)
		fail(err);
	return len;
}

static void open_session(const char *dir)
{
	struct {
		struct rt_msg_open open;
		struct rt_msg_target target;
	} m = {.open = {.ids = RT_IDS_ON | RT_IDS_FATES,
		       .target_count = 1,
		       .buffer_size = BUFFER,
		       .buffer_most = rt_memory_most()},
		.target = {.queue = RT_QUEUE_ALL,
			.directions = RT_TARGET_RX | RT_TARGET_TX,
			.snaplen = SNAP,
			.insn_first = RT_NO_FILTER}};
	struct {
		struct rt_msg_layout layout;
		struct rt_msg_fates fates;
	} l;
	struct rt_msg_header h;
	char err[RT_TEXT_LEN];

	if (ringtap_conn_open(&conn, dir, NULL, err, sizeof(err)))
		fail(err);
	rt_msg_init(&m.open.h, RT_MSG_OPEN_IDS, sizeof(m.open) + sizeof(m.target));
	if (rt_msg_send(conn->fd, &m.open.h, NULL, 0) || expect(RT_MSG_LAYOUT) != sizeof(l))
		fail("the session has no table of fates");
	memcpy(&l, &conn->msg, sizeof(l));
	if (rt_memory_make(&memory, &l.layout, &l.fates, BUFFER, err, sizeof(err)))
		fail(err);
	rt_msg_init(&h, RT_MSG_MEMORY, sizeof(h));
	if (rt_msg_send(conn->fd, &h, memory.fd, RT_FD_COUNT))
		fail("the probe is gone");
	expect(RT_MSG_OPENED);
	if (rt_segment_map(&seg, memory.fd, memory.tails, 0, err, sizeof(err)))
		fail(err);
	at = calloc(seg.h.ring_count, sizeof(*at));
	request(RT_MSG_START);
	expect(RT_MSG_STARTED);
}

static void close_session(void)
{
	free(at);
	rt_segment_unmap(&seg);
	rt_memory_free(&memory);
	ringtap_conn_close(conn);
}

/* ---- records and entries: each packet once ---- */

static void notice(const uint8_t *data, uint32_t cap, uint32_t len, uint32_t queue)
{
	struct deed_frame f;

	if (cap < DEED_LEN || (len != DEED_LEN && len != 2 * DEED_LEN))
		die("a packet of another size", cap, len);
	memcpy(&f, data, sizeof(f));
	if (f.made || f.number >= packets || f.number % DEED_QUEUES != queue)
		die("not a packet of this queue", f.number, queue);
	if (noticed[f.number]++)
		die("a packet was noticed twice", f.number, queue);
}

static uint32_t take_record(const uint8_t *p)
{
	uint32_t w[7], option[4];

	memcpy(w, p, sizeof(w));
	if (w[0] != RT_EPB_TYPE || w[2] != 0)
		die("not a record of port 0", w[0], w[2]);
	memcpy(option, p + RT_EPB_HEADER + (w[5] + 3) / 4 * 4, sizeof(option));
	/* The flags may also have the number of a reason. */
	if (option[0] != (4u << 16 | 2) ||
		(option[1] & ~(RT_REASON_MASK << RT_REASON_SHIFT)) != 1 ||
		option[2] != (4u << 16 | 6))
		die("not a received packet's options", option[0], option[1]);
	notice(p + RT_EPB_HEADER, w[5], w[6], option[3]);
	return w[1];
}

static void drain(void)
{
	const uint64_t size = seg.h.chunk_size;

	for (uint32_t r = rt_segment_ring_next(&seg, 0); r < seg.h.ring_count;
		r = rt_segment_ring_next(&seg, r + 1)) {
		uint64_t head = rt_load_acquire(&seg.rings[r].head);

		while (at[r] < head) {
			const uint32_t *order = &seg.orders[(size_t)r * seg.h.order_count];
			const uint8_t *p = seg.data +
					   order[at[r] / size % seg.h.order_count] * size +
					   at[r] % size;

			if (*(const uint32_t *)p == RT_CHUNK_END)
				at[r] = (at[r] / size + 1) * size;
			else
				at[r] += take_record(p);
		}
		rt_store_release(&seg.tails[r].tail, at[r]);
	}
}

static uint64_t take_free(uint64_t open[DEED_QUEUES])
{
	uint32_t walk = rt_load_acquire(&seg.live->fate_walk);
	uint64_t found = 0;

	for (uint64_t i = 0; i < 1ull << seg.h.fate_bits; i++) {
		const uint8_t *p =
			(const uint8_t *)seg.live + seg.h.fate_offset + i * seg.h.fate_stride;
		const struct rt_seg_fate *e = (const void *)p;

		if (e->state != RT_FATE_OPEN)
			continue;
		open[seg.taps[e->tap].queue]++;
		if (e->walk != walk)
			die("an open packet is not free", e->id, e->walk);
		notice(p + sizeof(*e), e->cap, e->len, seg.taps[e->tap].queue);
		found++;
	}
	return found;
}

/* ---- counters ---- */

static struct rt_seg_count sum(uint32_t tap)
{
	const struct rt_seg_count *row;
	struct rt_seg_count c = {0};

	for (uint32_t r = 0; (row = rt_segment_row(&seg, &r));) {
		const uint64_t *from = (const uint64_t *)&row[tap];

		/* Backwards: what a packet counts last is read first, its reception at the end. */
		for (size_t i = sizeof(c) / sizeof(uint64_t); i--;)
			((uint64_t *)&c)[i] += rt_load_acquire(&from[i]);
	}
	return c;
}

/* Rows are read one after the other, while packets go from thread to thread: two sums, the first of
 * fates, the second of packets. */
static void check_live(void)
{
	for (uint32_t t = 0; t < rt_segment_tap_count(&seg); t++) {
		struct rt_seg_count c = sum(t);
		uint64_t fates = c.offered + c.not_offered + c.unknown;
		uint64_t received = sum(t).received;

		if (fates > received)
			die("more fates than packets", fates, received);
	}
}

static uint8_t *read_fates(const char *path)
{
	uint8_t *fates = malloc(packets);
	FILE *f = fopen(path, "rb");

	if (!fates || !f || fread(fates, 1, packets, f) != packets)
		fail("cannot read the fates");
	fclose(f);
	return fates;
}

static void same(const char *what, uint64_t counted, uint64_t written)
{
	if (counted != written)
		die(what, counted, written);
}

static void check_queue(
	uint32_t queue, const struct rt_seg_count *c, const uint8_t *fates, uint64_t open)
{
	uint64_t n[DEED_UNKNOWN + 1] = {0};

	for (uint64_t i = queue; i < packets; i += DEED_QUEUES)
		n[fates[i]]++;
	same("packets without an end", n[DEED_OPEN], 0);
	same("received", c->received, packets / DEED_QUEUES);
	same("offered", c->offered, n[DEED_OFFERED]);
	same("unknown", c->unknown, n[DEED_UNKNOWN]);
	same("inferred", c->inferred, n[DEED_UNKNOWN]);
	same("not offered", c->not_offered + open, n[DEED_NOT_OFFERED]);
	same("records", c->captured, c->not_offered);
	same("seen", c->seen, c->captured);
	same("open", c->received - c->offered - c->unknown - c->not_offered, open);
}

static void check_end(const char *path)
{
	uint64_t open[DEED_QUEUES] = {0}, free_ones = take_free(open), rest = 0, not_offered = 0;
	const uint8_t *fates = read_fates(path);

	for (uint64_t i = 0; i < packets; i++) {
		if (noticed[i] != (fates[i] == DEED_NOT_OFFERED))
			die("another fate was written down", i, fates[i]);
	}
	for (uint32_t t = 0; t < rt_segment_tap_count(&seg); t++) {
		struct rt_seg_count c = sum(t);

		rest += c.rest_offered;
		not_offered += c.not_offered;
		if (seg.taps[t].direction == RT_DIR_RX && seg.taps[t].if_index == 0)
			check_queue(seg.taps[t].queue, &c, fates, open[seg.taps[t].queue]);
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", not_offered, free_ones, rest,
		seg.live->fate_walk);
}

/* ---- sessions under traffic ---- */

static void print_totals(void)
{
	uint64_t received = 0, known = 0, not_offered = 0, free_ones = 0;

	for (uint32_t t = 0; t < rt_segment_tap_count(&seg); t++) {
		struct rt_seg_count c = sum(t);

		received += c.received;
		known += c.offered + c.not_offered + c.unknown;
		not_offered += c.not_offered;
	}
	for (uint64_t i = 0; i < 1ull << seg.h.fate_bits; i++) {
		const struct rt_seg_fate *e =
			(const void *)((const uint8_t *)seg.live + seg.h.fate_offset +
				       i * seg.h.fate_stride);

		free_ones += e->state == RT_FATE_OPEN && e->walk == seg.live->fate_walk;
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", received, not_offered,
		free_ones, received - known - free_ones);
}

static bool some_received(void)
{
	for (uint32_t t = 0; t < rt_segment_tap_count(&seg); t++) {
		if (sum(t).received)
			return true;
	}
	return false;
}

static int run_stops(const char *dir, unsigned count)
{
	while (count--) {
		open_session(dir);
		while (!some_received())
			poll(NULL, 0, TURN_MS);
		request(RT_MSG_STOP);
		expect(RT_MSG_STOPPED);
		print_totals();
		close_session();
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pollfd finished = {.fd = STDIN_FILENO, .events = POLLIN};

	if (argc != 4)
		fail("usage: check_fates FOLDER PACKETS FATES");
	if (strcmp(argv[2], "stops") == 0)
		return run_stops(argv[1], (unsigned)atoi(argv[3]));
	packets = strtoull(argv[2], NULL, 0);
	noticed = calloc(packets, 1);
	if (!noticed)
		fail("not enough memory");
	open_session(argv[1]);
	setlinebuf(stdout);
	puts("armed");
	for (unsigned turn = 0; poll(&finished, 1, TURN_MS) == 0; turn++) {
		drain();
		if (turn % LIVE_MOD == 0)
			check_live();
	}
	request(RT_MSG_STOP);
	expect(RT_MSG_STOPPED);
	drain();
	check_end(argv[3]);
	return 0;
}
