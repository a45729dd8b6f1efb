/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tests of the join: a file with ports, and records as it would have them. */
#ifndef RINGTAP_CLI_EXPLAIN_TEST_JOIN_H
#define RINGTAP_CLI_EXPLAIN_TEST_JOIN_H

#include <string.h>

#include "base/test_util.h"
#include "join.h"

#define MEMORY  (16u << 20)
#define TIMEOUT 1000u
#define NO_ID   0

/* Results for the packets, in this order. */
struct told {
	unsigned count;
	enum fate fate[16];
	uint64_t id[16], latency[16];
	bool reordered[16];
	uint32_t changes[16];
};

static inline void hear(void *ctx, const struct outcome *o)
{
	struct told *t = ctx;

	assert_true(t->count < 16);
	t->fate[t->count] = o->fate;
	t->id[t->count] = o->rx ? o->rx->id : o->tx->id;
	t->latency[t->count] = o->latency_ns;
	t->changes[t->count] = o->changes;
	t->reordered[t->count++] = o->reordered;
}

/* IPv4, UDP. */
struct frame {
	uint8_t at[64];
};

static inline struct frame frame(uint8_t flow, uint8_t ttl)
{
	struct frame f = {{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0,
		ttl, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, flow, 0, 53, 16, 0}};

	return f;
}

/* A join, and the file that its records would be of. */
struct test {
	struct join *j;
	struct records *records;
	struct told told;
	uint64_t number;
};

/* A file with nothing but its ports. */
static inline void put32(uint8_t **p, uint32_t v)
{
	memcpy(*p, &v, sizeof(v));
	*p += sizeof(v);
}

static inline size_t make_ports(uint8_t *file, unsigned ports)
{
	uint8_t *p = file;

	put32(&p, 0x0a0d0d0a);
	put32(&p, 28);
	put32(&p, 0x1a2b3c4d);
	put32(&p, 1);
	put32(&p, UINT32_MAX);
	put32(&p, UINT32_MAX);
	put32(&p, 28);
	for (unsigned i = 0; i < ports; i++) {
		put32(&p, 1);
		put32(&p, 20);
		put32(&p, 1);
		put32(&p, 0);
		put32(&p, 20);
	}
	return (size_t)(p - file);
}

static inline void begin(struct test *t, uint64_t memory)
{
	uint8_t file[256];
	struct window bytes;
	struct record r;

	*t = (struct test){.number = 0};
	assert_int_equal(records_new(&t->records), 0);
	window_memory(&bytes, file, make_ports(file, 3));
	records_start(t->records, &bytes);
	assert_int_equal(records_next(t->records, &r, 1), 0);
	assert_int_equal(records_port_count(t->records), 3);
	assert_int_equal(join_new(&t->j, TIMEOUT, memory), 0);
	t->j->tell = hear;
	t->j->ctx = &t->told;
}

static inline void end(struct test *t)
{
	join_free(t->j);
	records_free(t->records);
}

static inline void put(struct test *t, enum direction d, uint32_t port, uint32_t queue, uint64_t ns,
	uint64_t id, struct frame f)
{
	const struct record r = {.number = ++t->number,
		.ns = ns,
		.id = id,
		.port = port,
		.queue = queue,
		.direction = d,
		.caplen = sizeof(f.at),
		.length = sizeof(f.at),
		.data = f.at};

	join_records(t->j, &r, 1, t->records);
}

#define RX(t, ns, id) put(t, DIRECTION_RX, 0, 0, ns, id, frame(1, 64))
#define TX(t, ns, id) put(t, DIRECTION_TX, 1, 0, ns, id, frame(1, 63))

#endif
