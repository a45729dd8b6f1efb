/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's memory as a probe writes it, for tests that fill or corrupt it. */
#ifndef RINGTAP_READER_TEST_SESSION_H
#define RINGTAP_READER_TEST_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto.h"
#include "common/segment.h"

#define TEST_IFS   4
#define TEST_TAPS  4
#define TEST_FATES 64 /* entries of the table of fates; a power of two */
#define TEST_SNAP  64 /* bytes of each packet in it */
#define TEST_RING  ((uint64_t)RT_CHUNKS_OF_RING * RT_CHUNK_MIN) /* bytes; the smallest ring */

struct test_session {
	int fds[RT_FD_COUNT];
	struct rt_seg_header *h;
	struct rt_seg_clock *clock;
	struct rt_seg_if *ifs;
	struct rt_seg_tap *taps;
	struct rt_seg_ring *rings;
	struct rt_seg_count *counts;
	struct rt_seg_tail *tails;
	uint32_t *orders;
	uint8_t *data;
	uint8_t *fates;                 /* TEST_FATES entries, each with its bytes */
	struct rt_seg_fate_pool *pools; /* pools of fates */
	uint64_t data_size, there;      /* bytes: of all chunks; of those that have memory */
	uint64_t ring_size;             /* bytes of chunks that each ring has, in rotation */
	uint64_t pos[RT_MAX_RINGS];     /* written, published or not */
};

/* Aborts where memory is missing. Interfaces: two. The clock is that of this machine. ring_size: a
 * multiple of RT_CHUNK_MIN, which chunks have. */
void test_session_make(struct test_session *s, uint32_t rings, uint64_t ring_size);
void test_session_free(struct test_session *s);

/* The same with fates: of no packet. */
void test_session_make_fates(struct test_session *s, uint32_t rings, uint64_t ring_size);

/* Entry i of the table of fates; its bytes follow it. */
struct rt_seg_fate *test_fate(const struct test_session *s, uint32_t i);

/* The layout that a probe requests for such a session. */
void test_session_lay_out(const struct test_session *s, struct rt_msg_layout *out);

/* Moves the session into memory that the reader has allocated with this layout, or the first part
 * of its chunks. Its addresses do not change; fds stay the caller's. */
void test_session_move(struct test_session *s, const int fds[RT_FD_COUNT]);
/* Moves the chunks that follow. False: not all of the memory is populated. */
bool test_session_grow(struct test_session *s, int fd);

/* A memfd of size bytes with these seals. The caller closes it. */
int test_memfd(uint64_t size, int seals);

/* Appends a record of a packet of len bytes, in the next chunk if it does not fit. Returns its
 * position. */
uint64_t test_put(
	struct test_session *s, uint32_t ring, uint64_t ns, uint32_t if_index, uint32_t len);

/* Overwrites 32 bits at a position of a ring. */
void test_spoil(struct test_session *s, uint32_t ring, uint64_t pos, uint32_t value);

/* Publishes the appended records, with this time of the last burst. */
void test_publish(struct test_session *s, uint32_t ring, uint64_t last_ns);

/* The current time of the session's clock. */
uint64_t test_now(const struct test_session *s);

#endif
