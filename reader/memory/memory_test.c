/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a reader allocates for a probe, and probes with impossible requests. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/capture/capture.h"
#include "common/ipc.h"
#include "common/test_pages.h"
#include "memory.h"
#include "reader/test_peer.h"
#include "reader/tunables.h"

#define RINGS 3u

static const struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
static struct test_session session;
static struct test_peer peer;
static struct ringtap_capture *cap;
static struct rt_msg_layout layout; /* sent by the peer */
static struct rt_memory memory;
static char err[RT_TEXT_LEN];

static int set_up(void **state)
{
	test_session_make(&session, RINGS, TEST_RING);
	test_session_lay_out(&session, &layout);
	peer = (struct test_peer){.session = &session};
	test_peer_start(&peer, true);
	memory = RT_MEMORY_NONE;
	return ringtap_capture_create(&cap, NULL);
}

static int tear_down(void **state)
{
	test_available_end();
	ringtap_capture_close(cap);
	rt_memory_free(&memory);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

/* 0: any size. */
static int make(uint64_t most)
{
	return rt_memory_make(
		&memory, &layout, NULL, most ? most : RT_BUFFER_MAX, err, sizeof(err));
}

/* ---- what is made ---- */

static void test_memory_has_the_exact_size_and_is_populated(void **state)
{
	assert_int_equal(make(0), 0);
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(lseek(memory.fd[i], 0, SEEK_END), layout.bytes[i]);
		assert_int_equal(lseek(memory.fd[i], 0, SEEK_HOLE), layout.bytes[i]);
	}
}

/* The application has a descriptor, and could truncate the reader's mapping. */
static void test_size_cannot_be_changed_by_the_application(void **state)
{
	assert_int_equal(make(0), 0);
	for (int i = 0; i < RT_FD_COUNT; i++) {
		assert_int_equal(ftruncate(memory.fd[i], 0), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(ftruncate(memory.fd[i], (off_t)layout.bytes[i] + 4096), -1);
	}
}

static void test_tails_stay_writable_after_sealing(void **state)
{
	assert_int_equal(make(0), 0);
	for (int i = 0; i < RT_FD_COUNT; i++)
		assert_int_equal(
			fcntl(memory.fd[i], F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL), 0);
	rt_memory_close(&memory);
	memory.tails[RINGS - 1].tail = 77;
	assert_int_equal(memory.tails[RINGS - 1].tail, 77);
}

/* The policy is that of the file: it applies to other mappings. */
static void test_rings_prefer_the_node_of_their_thread(void **state)
{
	unsigned long mask[16] = {0};
	int mode = -1;
	void *p;

	layout.node[1] = 0;
	assert_int_equal(make(0), 0);
	p = mmap(NULL, TEST_RING, PROT_READ, MAP_SHARED, memory.fd[RT_FD_DATA], TEST_RING);
	assert_ptr_not_equal(p, MAP_FAILED);
	if (syscall(SYS_get_mempolicy, &mode, mask, 8 * sizeof(mask), p, 2 /* MPOL_F_ADDR */))
		skip();            /* a kernel without NUMA */
	assert_int_equal(mode, 1); /* MPOL_PREFERRED */
	assert_int_equal(mask[0], 1);
	munmap(p, TEST_RING);
}

static void test_missing_numa_nodes_are_no_error(void **state)
{
	layout.node[0] = 1023;
	layout.node[1] = INT32_MAX;
	layout.node[2] = INT32_MIN;
	assert_int_equal(make(0), 0);
}

/* ---- probes that lie ---- */

static void assert_impossible(void)
{
	assert_int_equal(make(0), -EBADMSG);
	assert_non_null(strstr(err, "impossible memory"));
	assert_int_equal(memory.fd[0], -1);
	test_session_lay_out(&session, &layout);
}

static void test_impossible_numbers_are_refused(void **state)
{
	layout.ring_count = 0;
	assert_impossible();
	layout.ring_count = RT_MAX_RINGS + 1;
	assert_impossible();
	layout.ring_count = UINT32_MAX;
	assert_impossible();
	layout.if_capacity = RT_MAX_IFS + 1;
	assert_impossible();
	layout.tap_capacity = RT_MAX_TAPS + 1;
	assert_impossible();
	layout.chunk_size = 0;
	assert_impossible();
	layout.chunk_size = RT_CHUNK_MIN / 2;
	assert_impossible();
	layout.chunk_size = RT_CHUNK_MIN + 4096;
	assert_impossible();
	layout.chunk_size = RT_CHUNK_MAX * 2;
	assert_impossible();
	layout.chunk_count = RT_CHUNKS_OF_RING * RINGS - 1;
	assert_impossible();
	layout.chunk_count = UINT32_MAX;
	assert_impossible();
	layout.order_count = layout.chunk_count;
	assert_impossible();
	layout.order_count *= 4;
	assert_impossible();
}

static void test_inconsistent_sizes_are_refused(void **state)
{
	static const uint64_t more[] = {4096, 1 << 20, 1ull << 40, UINT64_MAX - (4 << 20), 1};

	for (int i = 0; i < RT_FD_COUNT; i++) {
		for (unsigned k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
			if (i == RT_FD_SEGMENT && more[k] == 4096)
				continue; /* the probe may align tables */
			layout.bytes[i] += more[k];
			assert_impossible();
			layout.bytes[i] -= 8192;
			assert_impossible();
		}
		layout.bytes[i] = 0;
		assert_impossible();
	}
}

/* The probe may round up to a chunk, but not further. */
#define SNAP 128u
#define BITS 14u /* 3 MiB: huge pages */

static struct rt_msg_fates add_fates(void)
{
	struct rt_msg_fates f = {.bits = BITS, .stride = sizeof(struct rt_seg_fate) + SNAP};

	test_session_lay_out(&session, &layout);
	f.bytes = ((uint64_t)f.stride << f.bits) + RT_FATE_POOLS * sizeof(struct rt_seg_fate_pool);
	layout.bytes[RT_FD_SEGMENT] += (f.bytes + 4095) / 4096 * 4096;
	layout.filled = layout.bytes[RT_FD_SEGMENT];
	return f;
}

static int make_with(const struct rt_msg_fates *f)
{
	return rt_memory_make(&memory, &layout, f, RT_BUFFER_MAX, err, sizeof(err));
}

static void test_table_of_fates_is_made(void **state)
{
	struct rt_msg_fates f = add_fates();

	assert_int_equal(make_with(&f), 0);
	assert_int_equal(
		lseek(memory.fd[RT_FD_SEGMENT], 0, SEEK_HOLE), layout.bytes[RT_FD_SEGMENT]);
}

static void test_impossible_tables_of_fates_are_refused(void **state)
{
	const struct rt_msg_fates good = add_fates();
	const uint64_t segment = layout.bytes[RT_FD_SEGMENT];
	struct rt_msg_fates bad[] = {good, good, good, good, good, good, good};

	bad[0].bits = 0;
	bad[1].bits = RT_FATE_BITS_MAX + 1;
	bad[2].bits = UINT32_MAX;
	bad[3].stride = 0;
	bad[4].stride += 1;
	bad[5].stride = sizeof(struct rt_seg_fate) + RT_FATE_SNAP_MAX + 64;
	bad[6].bytes--;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(make_with(&bad[i]), -EBADMSG);
		assert_non_null(strstr(err, "impossible memory"));
	}
	assert_int_equal(make_with(NULL), -EBADMSG); /* a larger segment, and nothing for it */
	layout.bytes[RT_FD_SEGMENT] = segment - good.bytes;
	assert_int_equal(make_with(&good), -EBADMSG);
	layout.bytes[RT_FD_SEGMENT] = segment + (4 << 20);
	assert_int_equal(make_with(&good), -EBADMSG);
}

static void test_buffers_larger_than_requested_are_refused(void **state)
{
	assert_int_equal(make(RINGS * TEST_RING), 0);
	rt_memory_free(&memory);
	assert_int_equal(make(1), 0); /* each ring has the least */
	rt_memory_free(&memory);
	layout.chunk_count += 1;
	layout.bytes[RT_FD_DATA] += RT_CHUNK_MIN;
	assert_int_equal(make(RINGS * TEST_RING + 1), 0);
	rt_memory_free(&memory);
	assert_int_equal(make(RINGS * TEST_RING - 1), -EBADMSG);
	assert_int_equal(make(1), -EBADMSG);
}

/* Half of the available memory: the rest is for others. */
static void test_more_than_available_memory_is_refused(void **state)
{
	uint64_t need = layout.filled + layout.bytes[RT_FD_DATA] + layout.bytes[RT_FD_TAILS];

	assert_int_equal(need % 1024, 0);
	test_available(2 * need / 1024 - 1);
	assert_int_equal(make(0), -ENOMEM);
	assert_non_null(strstr(err, "not enough memory: the buffer needs"));
	assert_int_equal(memory.fd[0], -1);
	test_available(2 * need / 1024);
	assert_int_equal(make(0), 0);
}

static void test_buffer_is_a_quarter_of_the_available_memory_at_most(void **state)
{
	test_available(4000);
	assert_int_equal(rt_memory_most(), 1000 << 10);
	test_available(RT_BUFFER_MAX / 256 - 1);
	assert_int_equal(rt_memory_most(), RT_BUFFER_MAX - 256);
	test_available(RT_BUFFER_MAX);
	assert_int_equal(rt_memory_most(), RT_BUFFER_MAX);
}

static void test_limit_of_file_sizes(void **state)
{
	struct rlimit old, low;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){.rlim_cur = layout.bytes[RT_FD_DATA] - 1, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(make(0), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(err, "ulimit -f"));
	assert_int_equal(make(0), 0);
	rt_memory_free(&memory);
}

/* ---- the exchange ---- */

static bool send_layout(struct test_peer *p, int sock, uint16_t type)
{
	if (type != RT_MSG_OPEN)
		return test_peer_answer(p, sock, type);
	return rt_msg_send(sock, &layout.h, NULL, 0) == 0;
}

static bool hang_up_on_memory(struct test_peer *p, int sock, uint16_t type)
{
	return type != RT_MSG_MEMORY && test_peer_answer(p, sock, type);
}

static bool keep_the_memory(struct test_peer *p, int sock, uint16_t type)
{
	return type == RT_MSG_MEMORY || test_peer_answer(p, sock, type);
}

static bool refuse_the_memory(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_error m = {.code = -EINVAL, .text = "it has holes"};

	if (type != RT_MSG_MEMORY)
		return test_peer_answer(p, sock, type);
	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_msg_send(sock, &m.h, NULL, 0);
	return false;
}

static void assert_attach_fails(int code, const char *text)
{
	int before = dup(0), after;

	close(before);
	assert_int_equal(ringtap_capture_attach(cap, peer.dir, &all, 1, NULL), code);
	assert_non_null(strstr(ringtap_capture_error(cap), text));
	/* The peer closes its descriptors later, but they have lower numbers. */
	after = dup(0);
	close(after);
	assert_in_range(after, 0, before + 1);
}

static void test_layout_of_another_length_is_an_error(void **state)
{
	peer.answer = send_layout;
	layout.h.len = sizeof(layout) - 8;
	assert_attach_fails(-EPROTO, "invalid answer");
}

static void test_impossible_layout_ends_the_attempt(void **state)
{
	peer.answer = send_layout;
	layout.bytes[RT_FD_DATA] = 1ull << 50;
	assert_attach_fails(-EBADMSG, "impossible memory");
}

static void test_probe_that_dies_with_the_memory_is_an_error(void **state)
{
	peer.answer = hang_up_on_memory;
	assert_attach_fails(-ECONNRESET, "went away");
}

static void test_probe_that_never_uses_the_memory_times_out(void **state)
{
	int saved = rt_reader_limits.open_ms;

	rt_reader_limits.open_ms = 30;
	peer.answer = keep_the_memory;
	assert_attach_fails(-ETIMEDOUT, "does not answer");
	rt_reader_limits.open_ms = saved;
}

static void test_error_of_mapping_is_returned(void **state)
{
	peer.answer = refuse_the_memory;
	assert_attach_fails(-EINVAL, "it has holes");
}

#define with_peer(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_peer(test_memory_has_the_exact_size_and_is_populated),
		with_peer(test_size_cannot_be_changed_by_the_application),
		with_peer(test_tails_stay_writable_after_sealing),
		with_peer(test_rings_prefer_the_node_of_their_thread),
		with_peer(test_missing_numa_nodes_are_no_error),
		with_peer(test_impossible_numbers_are_refused),
		with_peer(test_inconsistent_sizes_are_refused),
		with_peer(test_table_of_fates_is_made),
		with_peer(test_impossible_tables_of_fates_are_refused),
		with_peer(test_buffers_larger_than_requested_are_refused),
		with_peer(test_more_than_available_memory_is_refused),
		with_peer(test_buffer_is_a_quarter_of_the_available_memory_at_most),
		with_peer(test_limit_of_file_sizes),
		with_peer(test_layout_of_another_length_is_an_error),
		with_peer(test_impossible_layout_ends_the_attempt),
		with_peer(test_probe_that_dies_with_the_memory_is_an_error),
		with_peer(test_probe_that_never_uses_the_memory_times_out),
		with_peer(test_error_of_mapping_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
