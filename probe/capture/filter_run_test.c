/* SPDX-License-Identifier: BSD-3-Clause */
/* Interpreted programs return what libpcap's interpreter returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "common/program.h"
#include "filter_run.h"
#include "probe/core/test_eal.h"

#define PROGRAM_LEN 60
#define FRAME_LEN   60

/* A random instruction. left: how many follow it. */
static struct rt_insn any_insn(uint32_t left)
{
	static const uint16_t codes[] = {BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_H | BPF_ABS,
		BPF_LD | BPF_B | BPF_ABS, BPF_LD | BPF_W | BPF_IND, BPF_LD | BPF_H | BPF_IND,
		BPF_LD | BPF_B | BPF_IND, BPF_LD | BPF_W | BPF_LEN, BPF_LD | BPF_IMM,
		BPF_LD | BPF_MEM, BPF_LDX | BPF_IMM, BPF_LDX | BPF_MEM, BPF_LDX | BPF_W | BPF_LEN,
		BPF_LDX | BPF_B | BPF_MSH, BPF_ST, BPF_STX, BPF_MISC | BPF_TAX, BPF_MISC | BPF_TXA,
		BPF_ALU | BPF_NEG, BPF_JMP | BPF_JA, BPF_RET | BPF_A};
	static const uint16_t operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_AND,
		BPF_OR, BPF_XOR, BPF_LSH, BPF_RSH};
	static const uint16_t tests[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	uint16_t by = test_random() % 2 ? BPF_X : BPF_K;
	struct rt_insn i = {.k = 1 + test_random() % 15};

	switch (test_random() % 3) {
	case 0: i.code = codes[test_random() % (sizeof(codes) / sizeof(*codes))]; break;
	case 1: i.code = (uint16_t)(BPF_ALU | by | operations[test_random() % 10]); break;
	default:
		i.code = (uint16_t)(BPF_JMP | by | tests[test_random() % 4]);
		i.jt = (uint8_t)(test_random() % RTE_MIN(left, 4u));
		i.jf = (uint8_t)(test_random() % RTE_MIN(left, 4u));
	}
	if (i.code == (BPF_JMP | BPF_JA))
		i.k = test_random() % RTE_MIN(left, 4u);
	else if (test_random() % 4 == 0 && BPF_CLASS(i.code) == BPF_LD &&
		 BPF_MODE(i.code) != BPF_MEM)
		i.k = test_random() % RT_OFFSET_MAX;
	return i;
}

/* libpcap's scratch memory is not initialized: the program fills it first. */
static void make_program(struct rt_insn prog[PROGRAM_LEN])
{
	for (uint32_t i = 0; i < PROGRAM_LEN - 1; i++)
		prog[i] = i < 16 ? (struct rt_insn){.code = BPF_ST, .k = i}
				 : any_insn(PROGRAM_LEN - 1 - i);
	prog[PROGRAM_LEN - 1] = (struct rt_insn){.code = BPF_RET | BPF_A};
}

static void test_any_program_as_with_libpcap(void **state)
{
	static const uint16_t tiny[] = {3, 0, 20, 1};
	unsigned passed = 0;

	for (unsigned n = 0; n < 50000; n++) {
		struct rte_mbuf *m = test_chain(0, FRAME_LEN, tiny, n % 2 ? 4 : 0);
		struct rt_insn prog[PROGRAM_LEN];
		uint8_t bytes[FRAME_LEN], *from = bytes;
		uint32_t expected;

		make_program(prog);
		assert_true(rt_program_valid(prog, PROGRAM_LEN));
		for (uint32_t i = 0; i < FRAME_LEN; i++)
			bytes[i] =
				(uint8_t)(test_random() % 3 ? test_random() % 20 : test_random());
		for (struct rte_mbuf *s = m; s; from += s->data_len, s = s->next)
			memcpy(rte_pktmbuf_mtod(s, void *), from, s->data_len);
		expected = bpf_filter((struct bpf_insn *)prog, bytes, FRAME_LEN, FRAME_LEN);
		passed += expected != 0;
		assert_int_equal(rt_filter_run(prog, m), expected);
		test_drop(m);
	}
	assert_in_range(passed, 5000, 45000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_program_as_with_libpcap),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
