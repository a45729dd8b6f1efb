/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in all kinds of memory. Unreadable memory is really so: accessing it ends the test. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "epb.h"
#include "filter.h"
#include "readable.h"
#include "probe/test_eal.h"
#include "probe/hook/thread.h"

#define NS   1000000
#define ROOM (1u << 20) /* bytes; a separate mapping */

static struct test_ring t;
static struct test_record r;
static uint64_t now_ms = 5000;
static uint8_t *good; /* from malloc() */

static void look(uint64_t after_ms)
{
	now_ms += after_ms;
	rt_readable_look(now_ms);
}

/* The first packet of a ring takes the slow path, in any case. */
static int set_up(void **state)
{
	struct rte_mbuf *first;

	test_ring_make(&t, 1u << 20);
	look(0);
	first = test_frame(9, 60);
	test_ring_push(&t, RT_DIR_RX, &first, 1, NS);
	test_drop(first);
	assert_true(test_ring_next(&t, &r));
	test_ring_release(&t);
	t.ring.counts[0].captured = 0;
	return 0;
}

static int tear_down(void **state)
{
	test_ring_free(&t);
	rt_readable_forget();
	rt_readable_forget();
	return 0;
}

/* Bytes of a packet. The copy has a loop of its own for ordinary packets of at most 128. */
static uint32_t length = 200;

static uint8_t *map(int protection)
{
	uint8_t *p = mmap(NULL, ROOM, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void released(void *buffer, void *arg)
{
}

/* A packet whose data is at this address. */
static struct rte_mbuf *external(void *buffer)
{
	static struct rte_mbuf_ext_shared_info info[64];
	static unsigned next;
	struct rte_mbuf_ext_shared_info *i = &info[next++ % 64];
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());

	assert_non_null(m);
	i->free_cb = released;
	rte_mbuf_ext_refcnt_set(i, 1);
	rte_pktmbuf_attach_extbuf(m, buffer, RTE_BAD_IOVA, 4096, i);
	m->data_off = 0;
	m->data_len = m->pkt_len = length;
	return m;
}

static uint8_t *filled(uint8_t *p)
{
	for (uint32_t i = 0; i < length; i++)
		p[i] = test_byte(9, i);
	return p;
}

static uint64_t lost(void)
{
	return t.ring.counts[0].lost[RT_LOSS_UNREADABLE];
}

/* Adds its mapping to the table. */
static void meet(uint8_t *p)
{
	struct rte_mbuf *m = external(p);

	assert_false(rt_readable(m, 1));
	rte_pktmbuf_free(m);
	look(0);
}

static void push(struct rte_mbuf *m)
{
	test_ring_push(&t, RT_DIR_RX, &m, 1, NS);
	rte_pktmbuf_free(m);
}

static void assert_captured(uint32_t len)
{
	assert_true(test_ring_next(&t, &r));
	assert_int_equal(r.captured, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(r.data[i], test_byte(9, i));
	test_ring_release(&t);
}

static void test_external_buffers_are_captured(void **state)
{
	push(external(good));
	assert_captured(length);
	assert_int_equal(lost(), 0);
}

static void test_unreadable_packets_are_counted(void **state)
{
	uint8_t *p = map(PROT_NONE);
	struct rte_mbuf *m;

	meet(p);
	push(external(p));
	push(external(p + 4096));
	assert_false(test_ring_next(&t, &r));
	assert_int_equal(lost(), 2);
	m = test_frame(9, length);
	test_ring_push(&t, RT_DIR_RX, &m, 1, NS);
	assert_true(test_ring_next(&t, &r));
	assert_int_equal(r.dropped, 2);
	test_drop(m);
	assert_int_equal(t.ring.counts[0].captured, 1);
	munmap(p, ROOM);
}

/* Drivers that overwrite the flags of received packets (i40e) reset this one. */
static void test_unreadable_packets_without_the_flag(void **state)
{
	uint8_t *p = map(PROT_NONE);
	struct rte_mbuf *m = external(p), *n = external(good), *both[] = {m, n};

	meet(p);
	m->ol_flags = n->ol_flags = 0;
	test_ring_push(&t, RT_DIR_RX, both, 2, NS);
	m->ol_flags = n->ol_flags = RTE_MBUF_F_EXTERNAL;
	assert_captured(length);
	assert_int_equal(r.dropped, 1);
	assert_int_equal(lost(), 1);
	rte_pktmbuf_free_bulk(both, 2);
	munmap(p, ROOM);
}

/* The flag tells it from the mbuf's own buffer, where one would be as near. */
static void test_another_buffer_close_behind_its_mbuf(void **state)
{
	uint8_t *p = map(PROT_READ | PROT_WRITE);
	struct rte_mbuf *near = (struct rte_mbuf *)p, *far = external(good);

	*near = *far;
	near->buf_addr = p + 4096;
	assert_int_equal(mprotect(p + 4096, 4096, PROT_NONE), 0);
	look(1000);
	test_ring_push(&t, RT_DIR_RX, &near, 1, NS);
	assert_false(test_ring_next(&t, &r));
	assert_int_equal(lost(), 1);
	rte_pktmbuf_free(far);
	munmap(p, ROOM);
}

/* Header in the mbuf, payload in another buffer. */
static struct rte_mbuf *split(void *buffer)
{
	struct rte_mbuf *m = test_frame(9, 60), *rest = external(buffer);

	rest->pkt_len = 0;
	m->next = rest;
	m->nb_segs = 2;
	m->pkt_len = 60 + length;
	return m;
}

static void test_later_segments(void **state)
{
	uint8_t *p = map(PROT_NONE);

	push(split(p));
	assert_int_equal(lost(), 1);
	t.tap[0].snaplen = 60; /* excludes the payload */
	push(split(p));
	assert_captured(60);
	assert_int_equal(r.original, 60 + length);
	t.tap[0].snaplen = 61;
	push(split(p));
	assert_int_equal(lost(), 2);
	munmap(p, ROOM);
}

static void test_clones(void **state)
{
	uint8_t *p = map(PROT_NONE);
	struct rte_mbuf *own = test_frame(9, length), *far = external(p), *clone;

	look(1000);
	clone = rte_pktmbuf_clone(own, test_pool());
	push(clone);
	assert_captured(length);
	clone = rte_pktmbuf_clone(far, test_pool());
	push(clone);
	assert_int_equal(lost(), 1);
	test_drop(own);
	rte_pktmbuf_free(far);
	munmap(p, ROOM);
}

/* Mapped after the table was built; then made unreadable. */
static void test_table_is_updated(void **state)
{
	uint8_t *p = filled(map(PROT_READ | PROT_WRITE));

	assert_int_equal(mprotect(p + ROOM / 2, ROOM / 2, PROT_NONE), 0); /* merges with no other */
	push(external(p));
	assert_int_equal(lost(), 1);
	look(0); /* at once */
	push(external(p));
	assert_captured(length);
	assert_int_equal(mprotect(p, ROOM, PROT_NONE), 0);
	look(1000);
	push(external(p));
	assert_int_equal(lost(), 2);
	assert_int_equal(mprotect(p, ROOM, PROT_READ), 0);
	push(external(p));
	assert_int_equal(lost(), 3);
	look(1000);
	push(external(p));
	assert_captured(length);
	munmap(p, ROOM);
}

/* The mapping's permissions are not sufficient for device memory: a read is tried before. */
static void test_memory_of_devices_is_tested(void **state)
{
	struct io_uring_params params = {0};
	int fd = (int)syscall(__NR_io_uring_setup, 4, &params);
	size_t size = sysconf(_SC_PAGESIZE);
	struct iovec to, from;
	char byte;
	void *p;
	bool can;

	if (fd < 0)
		skip(); /* not allowed here */
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	assert_ptr_not_equal(p, MAP_FAILED);
	to = (struct iovec){&byte, 1};
	from = (struct iovec){p, 1};
	can = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
	push(external(p));
	assert_int_equal(lost(), 1);
	look(0);
	push(external(p));
	assert_int_equal(t.ring.counts[0].captured, can);
	assert_int_equal(lost(), can ? 1 : 2);
	munmap(p, size);
	close(fd);
}

static void test_across_the_end_of_a_mapping(void **state)
{
	uint8_t *p = map(PROT_READ | PROT_WRITE), *end = p + ROOM / 2;

	assert_int_equal(mprotect(end, ROOM / 2, PROT_NONE), 0);
	meet(p);
	push(external(filled(end - length)));
	assert_captured(length);
	push(external(end - length + 1));
	assert_int_equal(lost(), 1);
	munmap(p, ROOM);
}

static void test_unmapped_addresses(void **state)
{
	uint8_t *p = map(PROT_NONE);

	munmap(p, ROOM);
	for (unsigned i = 0; i < 10; i++) {
		push(external(p));
		look(i % 3 * 600);
	}
	push(external((void *)UINT64_C(0xffff800000001000)));
	push(external((void *)(uintptr_t)(UINTPTR_MAX - 100)));
	assert_int_equal(lost(), 12);
	assert_false(test_ring_next(&t, &r));
}

/* The first address is never found; the other one is, at the second update. */
static void test_unmapped_address_does_not_delay_others(void **state)
{
	void *none = (void *)UINT64_C(0xffff800000001000);
	uint8_t *p;

	push(external(none));
	look(0);
	push(external(none));
	p = filled(map(PROT_READ | PROT_WRITE));
	assert_int_equal(mprotect(p + ROOM / 2, ROOM / 2, PROT_NONE), 0); /* merges with no other */
	look(0);
	push(external(p));
	look(0);
	push(external(p));
	assert_captured(length);
	assert_int_equal(lost(), 3);
	munmap(p, ROOM);
}

/* nb_segs is less than the length of the chain: no more are checked, and none is read unchecked. */
static void test_segments_beyond_nb_segs_are_not_read(void **state)
{
	uint8_t *p = map(PROT_NONE);
	struct rte_mbuf *m = split(p);

	m->nb_segs = 1;
	test_ring_push(&t, RT_DIR_RX, &m, 1, NS);
	assert_int_equal(t.ring.counts[0].lost[RT_LOSS_BAD_MBUF], 1);
	assert_false(test_ring_next(&t, &r));
	m->nb_segs = 2;
	rte_pktmbuf_free(m);
	munmap(p, ROOM);
}

/* A seccomp filter as of service managers, here for one thread only. */
static void *update_without_readv(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = RTE_DIM(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return NULL;
	look(0);
	return arg;
}

static void test_ordinary_memory_needs_no_test(void **state)
{
	uint8_t *p = filled(map(PROT_READ | PROT_WRITE));
	pthread_t thread;
	void *looked;

	assert_int_equal(mprotect(p + ROOM / 2, ROOM / 2, PROT_NONE), 0);
	push(external(p));
	assert_int_equal(pthread_create(&thread, NULL, update_without_readv, p), 0);
	pthread_join(thread, &looked);
	if (!looked) {
		print_message("skipped: the kernel refuses filters of seccomp\n");
		skip();
	}
	push(external(p));
	assert_captured(length);
	munmap(p, ROOM);
}

static void test_nothing_is_read_without_a_table(void **state)
{
	rt_readable_forget();
	push(external(good));
	assert_int_equal(lost(), 1);
	rt_readable_forget();
	look(0);
	push(external(good));
	assert_captured(length);
}

/* ---- a table that is replaced while it is used ---- */

static struct rte_mbuf *can, *cannot;
static uint32_t stop, rounds, wrong;

static void *poll_on(void *arg)
{
	struct rt_thread *me = rt_thread_claim(UINT32_MAX);

	while (!rt_load(&stop)) {
		rt_thread_enter(me);
		if (!rt_readable(can, length) || rt_readable(cannot, length))
			rt_store(&wrong, 1);
		rt_thread_exit(me);
		rt_store(&rounds, rounds + 1);
	}
	return NULL;
}

static void test_table_is_replaced_while_threads_use_it(void **state)
{
	uint8_t *none = map(PROT_NONE);
	pthread_t thread;

	stop = 0;
	can = external(good);
	cannot = external(none);
	meet(none);
	assert_int_equal(pthread_create(&thread, NULL, poll_on, NULL), 0);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t before = rt_load(&rounds);
		uint8_t *p = map(i % 2 ? PROT_NONE : PROT_READ);

		while (rt_load(&rounds) == before)
			sched_yield();
		look(1000);
		munmap(p, ROOM);
	}
	rt_store(&stop, 1);
	pthread_join(thread, NULL);
	assert_false(wrong);
	rte_pktmbuf_free(can);
	rte_pktmbuf_free(cannot);
	munmap(none, ROOM);
}

/* ---- filters ---- */

static struct rt_filter *compile(const char *text)
{
	pcap_t *p = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program prog;
	struct rt_filter *f = NULL;

	assert_int_equal(pcap_compile(p, &prog, text, 1, 0), 0);
	assert_int_equal(
		rt_filter_create(&f, (const struct rt_insn *)prog.bf_insns, prog.bf_len), 0);
	pcap_freecode(&prog);
	pcap_close(p);
	return f;
}

static void assert_filtered(
	struct rt_filter *f, struct rte_mbuf *m, unsigned passed, unsigned not_seen)
{
	struct rte_mbuf *out;
	unsigned unreadable = 0;

	assert_int_equal(rt_filter_burst(f, RT_DIR_RX, &m, 1, &out, &unreadable), passed);
	assert_int_equal(unreadable, not_seen);
}

/* A filter that is compiled for bursts reads no more than it needs of packets without a tag. */
#ifdef __x86_64__
#define READS_NO_MORE true
#else
#define READS_NO_MORE false
#endif

static void test_filters_do_not_read_unreadable_memory(void **state)
{
	static const uint64_t tags[] = {0, RTE_MBUF_F_RX_VLAN_STRIPPED};
	uint8_t *p = map(PROT_NONE);
	struct rt_filter *here, *far;
	char text[100];

	snprintf(text, sizeof(text), "ether[0] = %u", test_byte(9, 0));
	here = compile(text);
	snprintf(text, sizeof(text), "ether[100] = %u or ether[100] = %u", test_byte(9, 100),
		test_byte(9, 96)); /* behind a tag */
	far = compile(text);
	for (unsigned i = 0; i < 2; i++) {
		struct rte_mbuf *none = external(p), *some = external(good), *parts = split(p);

		none->ol_flags |= tags[i];
		some->ol_flags |= tags[i];
		parts->ol_flags |= tags[i];
		assert_filtered(here, none, 0, 1);
		assert_filtered(far, none, 0, 1);
		assert_filtered(here, some, 1, 0);
		assert_filtered(far, some, 1, 0);
		assert_filtered(far, parts, 0, 1);
		/* Its first segment is all that is needed. */
		assert_filtered(here, parts, READS_NO_MORE && !tags[i], !READS_NO_MORE || tags[i]);
		none->ol_flags = tags[i];
		assert_filtered(here, none, 0, 1);
		none->ol_flags = RTE_MBUF_F_EXTERNAL;
		rte_pktmbuf_free(none);
		rte_pktmbuf_free(some);
		rte_pktmbuf_free(parts);
	}
	rt_filter_free(here);
	rt_filter_free(far);
	munmap(p, ROOM);
}

int main(void)
{
	int ret;

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest filters[] = {
		TEST(test_filters_do_not_read_unreadable_memory),
	};
	const struct CMUnitTest tests[] = {
		TEST(test_external_buffers_are_captured),
		TEST(test_unreadable_packets_are_counted),
		TEST(test_unreadable_packets_without_the_flag),
		TEST(test_another_buffer_close_behind_its_mbuf),
		TEST(test_later_segments),
		TEST(test_clones),
		TEST(test_table_is_updated),
		TEST(test_memory_of_devices_is_tested),
		TEST(test_across_the_end_of_a_mapping),
		TEST(test_unmapped_addresses),
		TEST(test_unmapped_address_does_not_delay_others),
		TEST(test_segments_beyond_nb_segs_are_not_read),
		TEST(test_ordinary_memory_needs_no_test),
		TEST(test_nothing_is_read_without_a_table),
		TEST(test_table_is_replaced_while_threads_use_it),
	};

	test_eal_start();
	rt_threads_init();
	good = filled(malloc(4096));
	ret = cmocka_run_group_tests_name("filters", filters, NULL, NULL);
	ret |= cmocka_run_group_tests_name("200 bytes", tests, NULL, NULL);
	length = 100;
	memset(good, 0, 4096);
	good = filled(good);
	return ret | cmocka_run_group_tests_name("100 bytes", tests, NULL, NULL);
}
