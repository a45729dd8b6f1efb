/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

/* Codes of classic BPF, as in <pcap/bpf.h>, of which a reader's request consists. */
#define CLASS(code) ((code)&0x07)
#define MODE(code)  ((code)&0xe0)
#define OP(code)    ((code)&0xf0)
#define SIZE(code)  ((code)&0x18)
#define BY_X(code)  ((code)&0x08)
#define ABS         0x20
#define IND         0x40
#define MEM         0x60
#define LEN         0x80
#define MSH         0xa0
#define SIZE_BYTE   0x10
#define DIV         0x30
#define MOD         0x90
#define LSH         0x60
#define RSH         0x70
#define NEG         0x80
#define XOR         0xa0
#define JA          0x00
#define JSET        0x40
#define RET_A       0x10
#define TXA         0x80
#define OUTGOING    4   /* PACKET_OUTGOING of <linux/if_packet.h>; 0: PACKET_HOST */
#define WORDS       16u /* words of scratch memory */

enum { LD, LDX, ST, STX, ALU, JMP, RET, MISC };

/* Size, mode, operation and operand together. */
static bool is_known(uint16_t code)
{
	if (code > UINT8_MAX)
		return false;
	switch (CLASS(code)) {
	case LD:
		if (MODE(code) == ABS || MODE(code) == IND)
			return SIZE(code) <= SIZE_BYTE;
		return code == LD || code == (LD | MEM) || code == (LD | LEN);
	case LDX:
		return code == LDX || code == (LDX | MEM) || code == (LDX | LEN) ||
		       code == (LDX | MSH | SIZE_BYTE);
	case ALU: return OP(code) <= XOR && code != (ALU | NEG | 0x08);
	case JMP: return OP(code) <= JSET && code != (JMP | JA | 0x08);
	case RET: return code == RET || code == (RET | RET_A);
	case MISC: return code == MISC || code == (MISC | TXA);
	default: return code == CLASS(code); /* ST, STX */
	}
}

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
		if (!is_known(insns[i].code) || !insn_valid(&insns[i], count - i - 1))
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
