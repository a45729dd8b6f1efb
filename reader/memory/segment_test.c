/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "reader/test_session.h"

#define RINGS 3u

static struct test_session session;
static struct rt_segment segment;
static char why[256];

static int set_up(void **state)
{
	test_session_make(&session, RINGS, TEST_RING);
	memset(why, 0, sizeof(why));
	return 0;
}

static int tear_down(void **state)
{
	test_session_free(&session);
	return 0;
}

static int map(void)
{
	return rt_segment_map(&segment, session.fds, session.tails, 0, why, sizeof(why));
}

/* Mapping fails with a reason, and nothing stays mapped. */
static void assert_refused(int code)
{
	assert_int_equal(map(), code);
	assert_true(strlen(why) > 10);
	assert_null(segment.live);
	assert_null(segment.data_base);
}

static void test_valid_segment_is_mapped(void **state)
{
	session.data[5] = 99;
	session.data[2 * TEST_RING + 7] = 98;
	session.rings[1].lcore = 42;
	assert_int_equal(map(), 0);
	assert_int_equal(segment.h.ring_count, RINGS);
	assert_int_equal(segment.rings[1].lcore, 42);
	assert_string_equal(segment.ifs[1].name, "port1");
	assert_int_equal(segment.data[5], 99);
	assert_int_equal(segment.data[2 * TEST_RING + 7], 98);
	segment.tails[2].tail = 12;
	assert_int_equal(session.tails[2].tail, 12);
	rt_segment_unmap(&segment);
}

static void test_header_is_private_once_checked(void **state)
{
	assert_int_equal(map(), 0);
	session.h->ring_count = 60;
	session.h->tap_capacity = 16000;
	assert_int_equal(segment.h.ring_count, RINGS);
	assert_int_equal(segment.h.tap_capacity, TEST_TAPS);
	rt_segment_unmap(&segment);
}

static void test_live_counts_stay_within_their_tables(void **state)
{
	assert_int_equal(map(), 0);
	session.h->if_count = UINT32_MAX;
	session.h->tap_count = TEST_TAPS + 1;
	assert_int_equal(rt_segment_if_count(&segment), TEST_IFS);
	assert_int_equal(rt_segment_tap_count(&segment), TEST_TAPS);
	rt_segment_unmap(&segment);
}

static void test_every_byte_of_the_magic_counts(void **state)
{
	for (unsigned i = 0; i < sizeof(session.h->magic); i++) {
		session.h->magic[i] ^= 1;
		assert_refused(-EBADMSG);
		session.h->magic[i] ^= 1;
	}
}

static void test_other_version_has_an_error_of_its_own(void **state)
{
	session.h->version = RT_SEG_VERSION + 1;
	assert_refused(-EPROTOTYPE);
	session.h->version = RT_SEG_VERSION;
	session.h->header_size += 8;
	assert_refused(-EPROTOTYPE);
}

static void test_impossible_ring_counts_are_refused(void **state)
{
	static const uint32_t counts[] = {0, 100, RT_MAX_RINGS, RT_MAX_RINGS + 1, UINT32_MAX};
	static const uint32_t shares[] = {0, RINGS + 1, RT_MAX_RINGS, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		session.h->ring_count = counts[i];
		assert_refused(-EBADMSG);
	}
	session.h->ring_count = RINGS;
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		session.h->share_count = shares[i];
		assert_refused(-EBADMSG);
	}
}

static void test_impossible_chunks_are_refused(void **state)
{
	static const uint64_t sizes[] = {0, 1, 4096, RT_CHUNK_MIN / 2, RT_CHUNK_MIN + 4096,
		RT_CHUNK_MIN * 2, RT_CHUNK_MAX, RT_CHUNK_MAX * 2, 1ull << 63, UINT64_MAX};
	static const uint32_t counts[] = {0, 1, RT_CHUNKS_OF_RING * RINGS - 1,
		RT_CHUNKS_OF_RING * RINGS + 1, RT_BUFFER_MAX / RT_CHUNK_MIN, UINT32_MAX};
	uint32_t before = session.h->chunk_count, order = session.h->order_count;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		session.h->chunk_size = sizes[i];
		assert_refused(-EBADMSG);
	}
	session.h->chunk_size = RT_CHUNK_MIN;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		session.h->chunk_count = counts[i];
		assert_refused(-EBADMSG);
	}
	session.h->chunk_count = before;
	session.h->order_count = order / 2;
	assert_refused(-EBADMSG);
	session.h->order_count = order * 2;
	assert_refused(-EBADMSG);
	session.h->order_count = order + 1;
	assert_refused(-EBADMSG);
}

static void test_impossible_capacities_are_refused(void **state)
{
	static const uint32_t counts[] = {RT_MAX_TAPS, RT_MAX_TAPS + 1, 1u << 31, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		session.h->tap_capacity = counts[i];
		assert_refused(-EBADMSG);
		session.h->tap_capacity = TEST_TAPS;
		session.h->if_capacity = counts[i];
		assert_refused(-EBADMSG);
		session.h->if_capacity = TEST_IFS;
	}
}

static void test_segment_longer_than_its_memory_is_refused(void **state)
{
	session.h->segment_size++;
	assert_refused(-EBADMSG);
	session.h->segment_size = UINT64_MAX;
	assert_refused(-EBADMSG);
}

static void test_segment_shorter_than_its_tables_is_refused(void **state)
{
	session.h->segment_size = sizeof(*session.h);
	assert_refused(-EBADMSG);
	session.h->segment_size = 0;
	assert_refused(-EBADMSG);
}

/* Offsets in the header, at the end, beyond it, or whose sums overflow. */
static void check_offset(uint64_t *offset, uint64_t own_align)
{
	uint64_t good = *offset, size = session.h->segment_size;
	uint64_t bad[] = {0, sizeof(struct rt_seg_header) - own_align, good + 1,
		size - own_align + 1, size, size + own_align, 1ull << 40, (uint64_t)-64,
		UINT64_MAX};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*offset = bad[i];
		assert_refused(-EBADMSG);
	}
	*offset = good;
}

static void test_tables_outside_of_the_segment_are_refused(void **state)
{
	check_offset(&session.h->if_offset, 8);
	check_offset(&session.h->tap_offset, 4);
	check_offset(&session.h->ring_offset, 64);
	check_offset(&session.h->count_offset, 64);
}

/* Somewhere in the segment; nothing is read from it here. */
static void put_fates(void)
{
	session.h->fate_offset = RT_SEG_HEADER;
	session.h->fate_pool_offset = RT_SEG_HEADER;
	session.h->fate_bits = 3;
	session.h->fate_snap = 64;
	session.h->fate_stride = sizeof(struct rt_seg_fate) + 64;
}

static void test_tables_of_fates_must_fit(void **state)
{
	uint64_t size;

	test_session_free(&session); /* a larger one */
	test_session_make(&session, 10 * RINGS, TEST_RING);
	size = session.h->segment_size;
	put_fates();
	assert_int_equal(map(), 0);
	rt_segment_unmap(&segment);
	session.h->fate_offset = 0;
	assert_refused(-EBADMSG); /* the other fields are not 0 */
	for (uint64_t at = size - 64; at < size + 128; at += 64) {
		put_fates();
		session.h->fate_offset = at;
		assert_refused(-EBADMSG);
		put_fates();
		session.h->fate_pool_offset = at;
		assert_refused(-EBADMSG);
	}
	put_fates();
	session.h->fate_offset += 8;
	assert_refused(-EBADMSG);
	put_fates();
	session.h->fate_bits = RT_FATE_BITS_MAX;
	assert_refused(-EBADMSG);
	session.h->fate_bits = 64 + 3;
	assert_refused(-EBADMSG);
	put_fates();
	session.h->fate_stride = 64;
	assert_refused(-EBADMSG);
	put_fates();
	session.h->fate_snap = UINT32_MAX - 63;
	session.h->fate_stride = 0;
	assert_refused(-EBADMSG);
}

static void test_clock_outside_of_the_segment_is_refused(void **state)
{
	static const uint32_t bad[] = {0, 192, 257, 1u << 30, UINT32_MAX - 63, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		session.h->clock_offset = bad[i];
		assert_refused(-EBADMSG);
	}
}

/* All single bit errors of the whole header: refused or harmless, never a crash. */
static void test_flipped_bits_never_crash(void **state)
{
	uint8_t *bytes = (uint8_t *)session.h;
	unsigned refused = 0;

	for (unsigned bit = 0; bit < 8 * offsetof(struct rt_seg_header, pid); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (map() == 0) {
			volatile uint64_t sum = 0;

			sum += segment.data[segment.h.chunk_size * segment.h.chunk_count - 1];
			sum += segment.orders[segment.h.ring_count * segment.h.order_count - 1];
			sum += segment.rings[segment.h.ring_count - 1].head;
			for (uint32_t t = 0; t < segment.h.tap_capacity; t++)
				sum += segment.counts[segment.h.ring_count *
							      segment.h.tap_capacity -
						      1]
					       .bytes +
				       segment.orphans[t].bytes;
			sum += segment.clock->mult;
			rt_segment_unmap(&segment);
		} else {
			refused++;
		}
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_in_range(refused, 300, 8 * sizeof(*session.h));
}

/* Replaces one descriptor. */
static void use(enum rt_fd which, int fd)
{
	close(session.fds[which]);
	session.fds[which] = fd;
}

static void test_memory_that_could_shrink_is_refused(void **state)
{
	for (int which = 0; which < RT_FD_COUNT; which++) {
		int sealed = dup(session.fds[which]);

		use(which, test_memfd((uint64_t)lseek(sealed, 0, SEEK_END), F_SEAL_GROW));
		assert_refused(-EBADMSG);
		use(which, sealed);
	}
}

static void test_descriptors_without_memory_are_refused(void **state)
{
	for (int which = 0; which < RT_FD_COUNT; which++) {
		int sealed = dup(session.fds[which]);

		use(which, open("/dev/zero", O_RDWR | O_CLOEXEC));
		assert_refused(-EBADMSG);
		use(which, sealed);
	}
}

static void test_memory_that_is_too_short_is_refused(void **state)
{
	for (int which = 0; which < RT_FD_COUNT; which++) {
		int good = dup(session.fds[which]);

		use(which, test_memfd(64, F_SEAL_SHRINK));
		assert_refused(-EBADMSG);
		use(which, test_memfd(0, F_SEAL_SHRINK));
		assert_refused(-EBADMSG);
		use(which, good);
	}
}

#define with_session(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_session(test_valid_segment_is_mapped),
		with_session(test_header_is_private_once_checked),
		with_session(test_live_counts_stay_within_their_tables),
		with_session(test_every_byte_of_the_magic_counts),
		with_session(test_other_version_has_an_error_of_its_own),
		with_session(test_impossible_ring_counts_are_refused),
		with_session(test_impossible_chunks_are_refused),
		with_session(test_impossible_capacities_are_refused),
		with_session(test_segment_longer_than_its_memory_is_refused),
		with_session(test_segment_shorter_than_its_tables_is_refused),
		with_session(test_tables_outside_of_the_segment_are_refused),
		with_session(test_tables_of_fates_must_fit),
		with_session(test_clock_outside_of_the_segment_is_refused),
		with_session(test_flipped_bits_never_crash),
		with_session(test_memory_that_could_shrink_is_refused),
		with_session(test_descriptors_without_memory_are_refused),
		with_session(test_memory_that_is_too_short_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
