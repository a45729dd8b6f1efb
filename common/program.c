/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

/* Codes of classic BPF, as in <pcap/bpf.h>, of which a reader's request consists. */
#define CLASS(code) ((code)&0x07)
#define MODE(code)  ((code)&0xe0)
#define OP(code)    ((code)&0xf0)
#define BY_X(code)  ((code)&0x08)
#define ABS         0x20
#define IND         0x40
#define MEM         0x60
#define MSH         0xa0
#define DIV         0x30
#define MOD         0x90
#define LSH         0x60
#define RSH         0x70
#define JA          0x00
#define OUTGOING    4   /* PACKET_OUTGOING of <linux/if_packet.h>; 0: PACKET_HOST */
#define WORDS       16u /* of scratch memory */

enum { LD, LDX, ST, STX, ALU, JMP, RET, MISC };

static bool alu_valid(const struct rt_insn *i)
{
	if (BY_X(i->code))
		return true;
	switch (OP(i->code)) {
	case DIV:
	case MOD: return i->k != 0;
	case LSH:
	case RSH: return i->k < 32;
	default: return true;
	}
}

static bool reads_packet(const struct rt_insn *i)
{
	return MODE(i->code) == ABS || MODE(i->code) == IND || MODE(i->code) == MSH;
}

/* left: number of instructions after this one. */
static bool insn_valid(const struct rt_insn *i, uint32_t left)
{
	switch (CLASS(i->code)) {
	case LD:
	case LDX:
		if (MODE(i->code) == MEM)
			return i->k < WORDS;
		return !reads_packet(i) || i->k <= RT_OFFSET_MAX || rt_insn_loads_direction(i);
	case ST:
	case STX: return i->k < WORDS;
	case ALU: return alu_valid(i);
	case JMP: return OP(i->code) == JA ? i->k < left : i->jt < left && i->jf < left;
	default: return true;
	}
}

bool rt_program_valid(const struct rt_insn *insns, uint32_t count)
{
	if (!count || count > RT_MAX_INSNS || CLASS(insns[count - 1].code) != RET)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!insn_valid(&insns[i], count - i - 1))
			return false;
	}
	return true;
}

bool rt_program_set_direction(struct rt_insn *insns, uint32_t count, enum rt_direction dir)
{
	bool any = false;

	for (uint32_t i = 0; i < count; i++) {
		if (!rt_insn_loads_direction(&insns[i]))
			continue;
		insns[i] = (struct rt_insn){.k = dir == RT_DIR_TX ? OUTGOING : 0}; /* LD | IMM */
		any = true;
	}
	return any;
}
