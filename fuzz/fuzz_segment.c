/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session's memory as a lying probe might make it. The input is a list of writes over an honest
 * session, so that the fuzzer need not find out how to make one:
 *    1 byte   where: 0 segment, 1 data, 2 tails, 3 publishes what follows as a ring's head
 *    3 bytes  offset
 *    1 byte   length
 *    n bytes  what is written
 * Then it is mapped, read and merged to its end, as after the death of the application. Where the
 * first byte is 128 or more, it is a session with fates.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reader/capture/capture.h"
#include "reader/test_session.h"
#include "use_fates.h"

#define RINGS   2u
#define RUN_MAX 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_some(struct test_session *s)
{
	for (uint32_t i = 0; i < 8; i++)
		test_put(s, i % RINGS, 1700000000000000000ull + i, i % 2, 20 + i);
	for (uint32_t i = 0; i < RINGS; i++)
		test_publish(s, i, 1700000000000000000ull + 8);
}

static void overwrite(
	struct test_session *s, unsigned where, uint32_t offset, const uint8_t *src, uint32_t n)
{
	uint8_t *base[] = {(uint8_t *)s->h, s->data, (uint8_t *)s->tails, (uint8_t *)s->rings};
	uint64_t room[] = {lseek(s->fds[0], 0, SEEK_END), RINGS * TEST_RING, 4096, RINGS * 128};

	offset %= room[where];
	if (n > room[where] - offset)
		n = (uint32_t)(room[where] - offset);
	memcpy(base[where] + offset, src, n);
}

static void apply(struct test_session *s, const uint8_t *p, size_t left)
{
	while (left >= 5) {
		uint32_t offset = p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16, n = p[4];

		if (n > left - 5)
			n = (uint32_t)left - 5;
		overwrite(s, p[0] % 4, offset, p + 5, n);
		p += 5 + n;
		left -= 5 + n;
	}
}

static void use_packets(const struct ringtap_run *run, enum ringtap_fields fields)
{
	const uint8_t *begin = run->records, *end = begin + run->bytes;
	const struct ringtap_packet *p;
	struct ringtap_packets *it;
	unsigned n = 0;

	if (ringtap_packets_create(&it))
		abort();
	ringtap_packets_start(it, run);
	ringtap_packets_fields(it, fields);
	while ((p = ringtap_packet_next(it))) {
		if (p->data < begin || p->data > end || p->caplen > (size_t)(end - p->data) ||
			p->caplen > p->length || p->interface >= run->interface_count)
			abort();
		if (fields == RINGTAP_FIELDS_ALL && p->direction > RINGTAP_TX)
			abort();
		if (++n == 3) /* packets read ahead are read again */
			ringtap_packets_fields(it, RINGTAP_FIELDS_ALL - fields);
		if (n == 3)
			ringtap_packets_fields(it, fields);
	}
	if (n > run->packets || (n < run->packets && !ringtap_packets_error(it)))
		abort();
	ringtap_packets_free(it);
}

/* Everything that a program may do with a run. */
static void use_run(const struct ringtap_run *run)
{
	uint8_t *copy = malloc(run->bytes);
	struct ringtap_run rest = *run, half;

	use_packets(run, RINGTAP_FIELDS_BASIC);
	use_packets(run, RINGTAP_FIELDS_ALL);
	/* A copy is refused where a trailing length is wrong: merging does not check them. */
	if (!ringtap_run_pcapng(run, copy, run->bytes) && !run->interfaces)
		abort();
	ringtap_run_take(&rest, run->packets / 2, run->bytes / 2, &half);
	if (half.bytes + rest.bytes != run->bytes || half.packets + rest.packets != run->packets ||
		half.bytes > run->bytes / 2)
		abort();
	use_packets(&half, RINGTAP_FIELDS_ALL);
	use_packets(&rest, RINGTAP_FIELDS_ALL);
	free(copy);
}

static void use_info(const struct ringtap_capture *cap)
{
	struct ringtap_interface port = {.size = sizeof(port)};
	struct ringtap_stats stats = {.size = sizeof(stats)};
	struct ringtap_ring ring = {.size = sizeof(ring)};
	struct ringtap_tap tap = {.size = sizeof(tap)};

	for (unsigned i = 0; ringtap_capture_interface(cap, i, &port) == 0; i++) {
		if (strlen(port.name) >= RINGTAP_NAME_LEN)
			abort();
	}
	for (unsigned i = 0; i < ringtap_capture_tap_count(cap); i++)
		(void)ringtap_capture_tap(cap, i, &tap);
	for (unsigned i = 0; ringtap_capture_ring(cap, i, &ring) == 0; i++) {
		if (ring.used > ring.buffer_size)
			abort();
	}
	ringtap_capture_stats(cap, &stats);
}

static void read_to_the_end(struct ringtap_capture *cap)
{
	struct ringtap_run runs[RUN_MAX];
	uint64_t last = 0;
	int n;

	while ((n = ringtap_capture_next(cap, runs, RUN_MAX, 0)) > 0) {
		for (int i = 0; i < n; i++) {
			if (runs[i].last_ns < last || !runs[i].packets)
				abort();
			last = runs[i].last_ns;
			use_run(&runs[i]);
		}
		use_info(cap);
		ringtap_capture_release(cap);
	}
	use_info(cap);
	use_fates(cap);
	if (n == 0)
		abort(); /* the application is dead: there is an end */
}

/* As ringtap_capture_attach() leaves it, when the application has died since. */
static void capture(struct rt_segment *seg, struct ringtap_conn *conn)
{
	uint32_t ids[RT_MAX_IFS] = {0};
	struct rt_source source = {
		.conn = conn, .seg = *seg, .if_ids = ids, .dead = true, .started = true};
	struct rt_in ins[RT_MAX_RINGS];
	struct ringtap_capture cap = {.sources = &source,
		.source_count = 1,
		.ins = ins,
		.in_room = seg->h.ring_count,
		.batch_bytes = seg->h.chunk_size / 4,
		.nap_max_ns = 1000,
		.wake_fd = -1};

	read_to_the_end(&cap);
	free(cap.ifs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ringtap_conn conn = {.fd = -1};
	struct test_session s;
	struct rt_segment seg;
	char err[RT_TEXT_LEN] = "";

	if (size && data[0] >= 128) {
		test_session_make_fates(&s, RINGS, TEST_RING);
		put_fates(&s);
	} else {
		test_session_make(&s, RINGS, TEST_RING);
	}
	put_some(&s);
	apply(&s, data, size);
	if (rt_segment_map(&seg, s.fds, s.tails, 0, err, sizeof(err)) == 0) {
		capture(&seg, &conn);
		rt_segment_unmap(&seg);
	} else if (!err[0]) {
		abort();
	}
	test_session_free(&s);
	return 0;
}
