/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of a filter decides as libpcap's interpreter, and leaves to its caller the packets that
 * it cannot decide, and no others. filter_test.c compares whole filters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "common/program.h"
#include "ringtap/open.h"
#include "filter_loop.h"
#include "packet/cut.h"
#include "packet/inner.h"
#include "probe/test_eal.h"
#include "probe/test_program.h"

#define BURST     32u
#define ROOM      256u
#define FRAME_LEN 60u

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM];
};

static struct packet *packets;
static struct rte_mbuf *pkts[BURST];

/* The data ends at the end of a page, behind which nothing can be read. */
static struct rte_mbuf *make_last(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(munmap(p + page, page), 0);
	return &((struct packet *)(p + page) - 1)->mbuf;
}

static int make_packets(void **state)
{
	packets = aligned_alloc(64, BURST * sizeof(*packets));
	for (uint32_t i = 0; packets && i < BURST; i++)
		pkts[i] = &packets[i].mbuf;
	pkts[BURST - 1] = make_last();
	return packets ? 0 : -1;
}

static void fill(struct rte_mbuf *m, uint32_t len)
{
	memset(m, 0, sizeof(*m));
	m->buf_addr = m + 1;
	m->buf_len = ROOM;
	m->data_off = (uint16_t)(ROOM - len);
	m->nb_segs = m->refcnt = 1;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	for (uint32_t i = 0; i < len; i++)
		rte_pktmbuf_mtod(m, uint8_t *)[i] =
			(uint8_t)(test_random() % 3 ? test_random() % 20 : test_random());
}

static bool expected(const struct rt_insn *program, const struct rte_mbuf *m)
{
	return bpf_filter((const struct bpf_insn *)program, rte_pktmbuf_mtod(m, uint8_t *),
		       m->pkt_len, m->data_len) != 0;
}

/* Runs the loop over all packets, takes libpcap's decision where it leaves one, and compares with
 * libpcap. Returns the number of packets that it left. */
static unsigned run(const struct rt_loop *l, const struct rt_insn *program, unsigned *passed)
{
	struct rte_mbuf *pass[BURST];
	struct rt_loop_burst b = {.pkts = pkts,
		.last = pkts + BURST,
		.pass = pass,
		.slow_flags = RTE_MBUF_F_EXTERNAL};
	unsigned left = 0, k = 0;

	memset(b.memory, 0x5a, sizeof(b.memory));
	for (;;) {
		l->run(&b);
		if (b.pkts == b.last)
			break;
		*b.pass = *b.pkts;
		b.pass += expected(program, *b.pkts++);
		left++;
	}
	for (unsigned i = 0; i < BURST; i++) {
		if (expected(program, pkts[i]))
			assert_ptr_equal(pass[k++], pkts[i]);
	}
	assert_int_equal(b.pass - pass, k);
	*passed += k;
	return left;
}

static void test_any_program_as_with_libpcap(void **state)
{
	unsigned passed = 0, left = 0, compiled = 0;

	for (unsigned n = 0; n < 20000; n++) {
		struct rt_insn prog[TEST_PROGRAM_LEN];
		struct rt_loop l;

		test_program(prog);
		assert_true(rt_program_valid(prog, TEST_PROGRAM_LEN));
		for (unsigned i = 0; i < BURST; i++)
			fill(pkts[i], i % 4 ? FRAME_LEN : 1 + test_random() % ROOM);
		if (rt_loop_create(&l, prog, TEST_PROGRAM_LEN) == 0) {
			/* endbr64: processors may check where calls by pointers arrive. */
			assert_memory_equal((void *)(uintptr_t)l.run, "\xf3\x0f\x1e\xfa", 4);
			left += run(&l, prog, &passed);
			compiled++;
		}
		rt_loop_destroy(&l);
	}
	assert_in_range(compiled, 4000, 20000);
	assert_in_range(passed, compiled * BURST / 10, compiled * BURST * 9 / 10);
	assert_in_range(left, compiled, compiled * BURST * 3 / 4);
}

typedef int compile_fn(
	pcap_t *p, struct bpf_program *prog, const char *text, int optimize, bpf_u_int32 mask);

static struct rt_loop compile_by(compile_fn *fn, const char *text, struct bpf_program *prog)
{
	pcap_t *p = pcap_open_dead(DLT_EN10MB, 262144);
	struct rt_loop l;

	if (fn(p, prog, text, 1, 0xffffff00))
		fail_msg("%s: %s", text, pcap_geterr(p));
	pcap_close(p);
	if (rt_loop_create(&l, (const struct rt_insn *)prog->bf_insns, prog->bf_len))
		fail_msg("%s: has no loop", text);
	return l;
}

static struct rt_loop compile(const char *text, struct bpf_program *prog)
{
	return compile_by(pcap_compile, text, prog);
}

static int compile_any(
	pcap_t *p, struct bpf_program *prog, const char *text, int optimize, bpf_u_int32 mask)
{
	return ringtap_filter_compile(
		pcap_compile, RINGTAP_TAGS_ANY, p, prog, text, optimize, mask);
}

/* The headers behind tags need more bytes, and a frame
 * without tags does not. */
static void test_filters_of_any_tags_decide_short_frames(void **state)
{
	static const char *const expressions[] = {"arp", "udp port 53", "tcp port 80 or 443",
		"ip6 host ff02::1", "tcp[tcpflags] & tcp-syn != 0",
		"not (tcp port 80) and not arp"};
	unsigned passed = 0, tagged = 0;

	for (size_t e = 0; e < sizeof(expressions) / sizeof(expressions[0]); e++) {
		struct bpf_program prog;
		struct rt_loop l = compile_by(compile_any, expressions[e], &prog);

		for (unsigned round = 0; round < 100; round++) {
			for (unsigned i = 0; i < BURST; i++) {
				static const uint8_t types[] = {0x08, 0x00, 0x86, 0xdd, 0x08, 0x06};
				uint8_t *p;

				fill(pkts[i], round % 2 ? 60 : 64 + 4 * (i % 3));
				p = rte_pktmbuf_mtod(pkts[i], uint8_t *);
				memcpy(p + 12, types + 2 * (i % 3), 2);
				if (round % 2 == 0 && i % 5 == 0)
					memcpy(p + 12, "\x81\0\0\5\x08\0", 6);
				p[14] = 0x45;
				p[18] = 0x45;
			}
			/* A frame of 60 bytes without tags is never left to others. */
			if (round % 2)
				assert_int_equal(
					run(&l, (const struct rt_insn *)prog.bf_insns, &passed), 0);
			else
				run(&l, (const struct rt_insn *)prog.bf_insns, &tagged);
		}
		rt_loop_destroy(&l);
		pcap_freecode(&prog);
	}
	assert_true(passed > 100 && tagged > 100);
}

static void test_common_filters_decide_short_frames(void **state)
{
	static const char *const expressions[] = {"arp", "tcp", "udp port 53", "tcp port 80 or 443",
		"host 10.0.0.1", "ip6 host ff02::1", "portrange 1-1023", "vlan 5 and ip",
		"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "ether host 00:11:22:33:44:55",
		"ip[8] < 5", "icmp[icmptype] = icmp-echo", "not (tcp port 80) and not arp",
		"less 100", "ether[len - 4:4] = 0"};

	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		struct bpf_program prog;
		struct rt_loop l = compile(expressions[i], &prog);

		if (l.reach > 60)
			fail_msg("%s needs %u bytes", expressions[i], l.reach);
		rt_loop_destroy(&l);
		pcap_freecode(&prog);
	}
}

/* `udp port 53`; which packets it leaves, by the length of the IPv4 header and of the frame. */
static void test_headers_with_options(void **state)
{
	struct bpf_program prog;
	struct rt_loop l = compile("udp port 53", &prog);
	unsigned passed = 0;

	for (unsigned words = 0; words < 16; words++) {
		for (unsigned i = 0; i < BURST; i++) {
			uint8_t *p;

			fill(pkts[i], 58 + i);
			p = rte_pktmbuf_mtod(pkts[i], uint8_t *);
			memcpy(p + 12, "\x08\x00", 2);
			p[14] = (uint8_t)(0x40 | words);
			memset(p + 20, 0, 2);
			p[23] = 17;
			if (i % 2)
				memcpy(p + (16 + 4 * words < 58 ? 16 + 4 * words : 16), "\0\x35",
					2);
		}
		assert_int_equal(run(&l, (const struct rt_insn *)prog.bf_insns, &passed),
			4 * words + 18 > 58 ? 4 * words + 18 - 58 : 0);
	}
	assert_in_range(passed, 100, 400);
	rt_loop_destroy(&l);
	pcap_freecode(&prog);
}

/* Headers of IP with options or extensions, perhaps behind tags or labels and in tunnels: p is at
 * that of Ethernet. */
static void put_headers(uint8_t *p, const uint8_t *end, unsigned tunnels)
{
	static const uint8_t protocols[] = {6, 17, 17, 17, 132, 60, 44, 51, 47};
	static const char *const ports[] = {"\x12\xb5" /* VXLAN */, "\x17\xc1", "\x08\x68"};
	const bool six = test_random() % 2;

	if (p + 28 > end)
		return;
	for (p += 12; test_random() % 3 == 0 && p + 60 < end; p += 4)
		memcpy(p, "\x81\0\0\5", 4);
	memcpy(p, six ? "\x86\xdd" : "\x08\0", 2);
	if (test_random() % 8 == 0 && p + 60 < end) {
		memcpy(p, "\x88\x47\0\0\1\0", 6);
		p += 4;
	}
	p += 2;
	if (p + (six ? 52 : 32) > end)
		return;
	p[0] = (uint8_t)(six ? 0x60 : 0x45 + test_random() % 2);
	p[six ? 6 : 9] = protocols[test_random() % sizeof(protocols)];
	if (!six && test_random() % 4)
		memset(p + 6, 0, 2);
	p += six ? 40 : 20;
	memcpy(p + 2, ports[test_random() % 3], 2);
	p[8] = 8; /* VXLAN's flag */
	if (tunnels)
		put_headers(p + 16, end, tunnels - 1);
}

static uint32_t value_of(const struct rt_loop *l, struct rte_mbuf *m)
{
	struct rte_mbuf *pass[2];
	struct rt_loop_burst b = {.pkts = &m, .last = &m + 1, .pass = pass};

	memset(b.memory, 0x5a, sizeof(b.memory));
	l->run(&b);
	if (b.pkts != b.last || b.pass == pass)
		return 0;
	return l->value ? l->value : b.memory[RT_LOOP_VALUE];
}

/* values: packets that the loop refuses or leaves to others, and those with a value. */
static void check_made(const char *expression, bool inner, const char *cut, unsigned values[2])
{
	char err[256] = "";
	struct cut c = {0};
	struct filter f;
	struct rt_loop l;
	unsigned passed = 0, left = 0;

	if (filter_compile_inner(&f, inner, expression, RINGTAP_TAGS_ANY, 1, err, sizeof(err)) ||
		(cut && (cut_parse(&c, cut) || cut_apply(&f, &c, 1, inner && !expression,
						       RINGTAP_TAGS_ANY, 1, err, sizeof(err)))))
		fail_msg("%s, %s: %s", expression, cut, err);
	assert_int_equal(rt_loop_create(&l, (const struct rt_insn *)f.insns, f.len), 0);
	for (unsigned round = 0; round < 500; round++) {
		for (unsigned i = 0; i < BURST; i++) {
			fill(pkts[i], 60 + test_random() % (ROOM - 60));
			put_headers(rte_pktmbuf_mtod(pkts[i], uint8_t *),
				(uint8_t *)(pkts[i] + 1) + ROOM, test_random() % 3);
		}
		left += run(&l, (const struct rt_insn *)f.insns, &passed);
		for (unsigned i = 0; i < BURST; i++) {
			uint32_t value = value_of(&l, pkts[i]);

			if (value)
				assert_int_equal(
					value, bpf_filter((const struct bpf_insn *)f.insns,
						       rte_pktmbuf_mtod(pkts[i], uint8_t *),
						       pkts[i]->pkt_len, pkts[i]->data_len));
			values[value != 0]++;
		}
	}
	assert_in_range(left, 0, 500 * BURST / 4);
	rt_loop_destroy(&l);
	filter_free(&f);
}

static void test_programs_of_tunnels_and_cuts(void **state)
{
	static const char *const expressions[] = {NULL, "udp", "port 2152", "ip6 and not udp"};
	static const char *const cuts[] = {NULL, "headers", "l4+7", "headers:udp", "40:ip6"};

	for (size_t i = 0; i < 4 * 5 * 2; i++) {
		const char *expression = expressions[i % 4], *cut = cuts[i / 4 % 5];
		unsigned values[2] = {0};

		if (!expression && !cut)
			continue;
		check_made(expression, i / 20, cut, values);
		if (values[1] < 300 || (expression && values[0] < 300))
			fail_msg("%s, %s: %u, %u", expression, cut, values[0], values[1]);
	}
}

static unsigned left_of(const struct rt_loop *l)
{
	struct rte_mbuf *pass[1];
	struct rt_loop_burst b = {
		.pkts = pkts, .last = pkts + 1, .pass = pass, .slow_flags = 1ull << 40 | 1};

	l->run(&b);
	return (unsigned)(b.last - b.pkts);
}

static void test_odd_packets_are_left(void **state)
{
	struct bpf_program prog, lengths;
	struct rt_loop l = compile("ether[59] = 1", &prog), len = compile("less 100", &lengths);
	struct rte_mbuf *m = pkts[0];

	fill(m, 60);
	assert_int_equal(left_of(&l), 0);
	m->ol_flags = ~(1ull << 40 | 1);
	assert_int_equal(left_of(&l), 0);
	m->ol_flags = 1ull << 40;
	assert_int_equal(left_of(&l), 1);
	m->ol_flags = 1;
	assert_int_equal(left_of(&l), 1);
	fill(m, 59);
	assert_int_equal(left_of(&l), 1);
	fill(m, 60);
	m->buf_addr = (uint8_t *)m + sizeof(*m) + UINT16_MAX + 1;
	assert_int_equal(left_of(&l), 1);
	m->buf_addr = (uint8_t *)m - 1;
	assert_int_equal(left_of(&l), 1);
	fill(m, 60);
	assert_int_equal(left_of(&len), 0);
	m->pkt_len = 100;
	assert_int_equal(left_of(&l), 0);
	assert_int_equal(left_of(&len), 1);
	rt_loop_destroy(&l);
	rt_loop_destroy(&len);
	pcap_freecode(&prog);
	pcap_freecode(&lengths);
}

static void test_no_packets(void **state)
{
	struct bpf_program prog;
	struct rt_loop l = compile("arp", &prog);
	struct rt_loop_burst b = {0};

	l.run(&b);
	assert_null(b.pkts);
	rt_loop_destroy(&l);
	pcap_freecode(&prog);
}

static void test_what_has_no_loop(void **state)
{
	static const struct rt_insn bad[] = {{.code = 0xffff}, {.code = 0x22}, {.code = 0x0e},
		{.code = 0x0d}, {.code = 0x8c}, {.code = 0x115}, {.code = 0xf4, .k = 1},
		{.code = 0xf5}, {.code = 0x17}, {.code = BPF_LD | BPF_B | BPF_ABS, .k = 2048},
		{.code = BPF_LD | BPF_W | BPF_ABS, .k = 2045},
		{.code = BPF_LD | BPF_W | BPF_ABS, .k = RT_OFFSET_MAX}};
	struct rt_insn far = {.code = BPF_LD | BPF_W | BPF_ABS, .k = 2044};
	struct rt_loop l;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rt_insn prog[2] = {bad[i], {.code = BPF_RET | BPF_K, .k = 1}};

		if (rt_loop_create(&l, prog, 2) != -ENOTSUP)
			fail_msg("program %zu has a loop", i);
		rt_loop_destroy(&l);
	}
	assert_int_equal(
		rt_loop_create(&l, (struct rt_insn[]){far, {.code = BPF_RET | BPF_A}}, 2), 0);
	assert_int_equal(l.reach, 2048);
	rt_loop_destroy(&l);
}

/* One of two chains of jumps leads to each end. */
static void test_a_chain_of_jumps(void **state)
{
	struct rt_insn *prog = calloc(RT_MAX_INSNS, sizeof(*prog));
	unsigned passed = 0;
	struct rt_loop l;

	for (uint32_t i = 0; i < BURST; i++)
		fill(pkts[i], FRAME_LEN);
	prog[0] = (struct rt_insn){.code = BPF_LD | BPF_B | BPF_ABS, .k = 7};
	prog[1] = (struct rt_insn){.code = BPF_JMP | BPF_JGT | BPF_K, .k = 9, .jt = 1};
	for (uint32_t i = 2; i < RT_MAX_INSNS - 2; i++)
		prog[i] = (struct rt_insn){.code = BPF_JMP | BPF_JA, .k = 1};
	prog[RT_MAX_INSNS - 2] = (struct rt_insn){.code = BPF_RET | BPF_K};
	prog[RT_MAX_INSNS - 1] = (struct rt_insn){.code = BPF_RET | BPF_K, .k = 1};
	assert_true(rt_program_valid(prog, RT_MAX_INSNS));
	assert_int_equal(rt_loop_create(&l, prog, RT_MAX_INSNS), 0);
	assert_int_equal(run(&l, prog, &passed), 0);
	assert_in_range(passed, 1, BURST - 1);
	rt_loop_destroy(&l);
	free(prog);
}

/* rt_program_valid() leaves nothing to rte_bpf, which an application may lack. */
static void test_valid_instructions_are_those_of_the_loop(void **state)
{
	unsigned valid = 0;

	for (uint32_t code = 0; code <= UINT16_MAX; code++) {
		const struct rt_insn prog[] = {{.code = (uint16_t)code, .k = 1},
			{.code = BPF_RET | BPF_K, .k = 1}, {.code = BPF_RET | BPF_K}};
		struct rt_loop l = {0};

		if (rt_program_valid(prog, 3) != (rt_loop_create(&l, prog, 3) == 0))
			fail_msg("instruction %#x", code);
		valid += l.run != NULL;
		rt_loop_destroy(&l);
	}
	assert_int_equal(valid, 49);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_program_as_with_libpcap),
		cmocka_unit_test(test_filters_of_any_tags_decide_short_frames),
		cmocka_unit_test(test_common_filters_decide_short_frames),
		cmocka_unit_test(test_headers_with_options),
		cmocka_unit_test(test_programs_of_tunnels_and_cuts),
		cmocka_unit_test(test_odd_packets_are_left),
		cmocka_unit_test(test_no_packets),
		cmocka_unit_test(test_what_has_no_loop),
		cmocka_unit_test(test_valid_instructions_are_those_of_the_loop),
		cmocka_unit_test(test_a_chain_of_jumps),
	};

#ifndef __x86_64__
	return 77;
#endif
	return cmocka_run_group_tests(tests, make_packets, NULL);
}
