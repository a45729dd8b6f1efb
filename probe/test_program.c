/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/types.h>

#include <pcap/bpf.h>

#include "common/program.h"
#include "test_eal.h"
#include "test_program.h"

static bool takes_any_k(const struct rt_insn *i)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
	case BPF_LDX: return BPF_MODE(i->code) == BPF_IMM;
	case BPF_ALU: return BPF_OP(i->code) != BPF_LSH && BPF_OP(i->code) != BPF_RSH;
	default: return BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_JA;
	}
}

/* Where an encoder has another form, or a sign is extended. */
static uint32_t any_edge(void)
{
	static const uint32_t edges[] = {0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0x7fff, 0x8000,
		0xffff, 0x10000, 0x10001, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, 0x80000001,
		0xffff0000, 0xfffffffe, 0xffffffff};

	return edges[test_random() % (sizeof(edges) / sizeof(*edges))];
}

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
	uint32_t jump = left < 4 ? left : 4;

	switch (test_random() % 3) {
	case 0: i.code = codes[test_random() % (sizeof(codes) / sizeof(*codes))]; break;
	case 1: i.code = (uint16_t)(BPF_ALU | by | operations[test_random() % 10]); break;
	default:
		i.code = (uint16_t)(BPF_JMP | by | tests[test_random() % 4]);
		i.jt = (uint8_t)(test_random() % jump);
		i.jf = (uint8_t)(test_random() % jump);
	}
	if (i.code == (BPF_JMP | BPF_JA))
		i.k = test_random() % jump;
	else if (test_random() % 4 == 0 && BPF_CLASS(i.code) == BPF_LD &&
		 BPF_MODE(i.code) != BPF_MEM)
		i.k = test_random() % RT_OFFSET_MAX;
	if (test_random() % 4 == 0 && takes_any_k(&i))
		i.k = any_edge();
	return i;
}

void test_program(struct rt_insn prog[TEST_PROGRAM_LEN])
{
	for (uint32_t i = 0; i < TEST_PROGRAM_LEN - 1; i++)
		prog[i] = i < 16 ? (struct rt_insn){.code = BPF_ST, .k = i}
				 : any_insn(TEST_PROGRAM_LEN - 1 - i);
	prog[TEST_PROGRAM_LEN - 1] = (struct rt_insn){.code = BPF_RET | BPF_A};
}
