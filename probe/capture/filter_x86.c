/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machine code of a filter's loop for x86-64. A leaf function: it changes only registers that
 * belong to the callee, and uses no stack. rdi  struct rt_loop_burst    rsi  its pkts    r9  its
 * pass r11  the mbuf    r10  its data    eax  A    ecx  X    edx, r8  temporary
 */
#include "filter_emit.h"
#include "readable.h"

#ifdef __x86_64__

enum { AX, CX, DX, BX, SP, BP, SI, DI, R8, R9, R10, R11 };

/* Operations, as the bytes of their opcodes, the first one highest. */
enum {
	ADD = 0x01,
	OR = 0x09,
	AND = 0x21,
	SUB = 0x29,
	XOR = 0x31,
	CMP = 0x39,
	CMP_TO = 0x3b, /* register with memory */
	TEST = 0x85,
	STORE = 0x89,
	LOAD = 0x8b,
	LOAD8 = 0x0fb6,
	LOAD16 = 0x0fb7,
	MULTIPLY = 0x0faf,
	ADDRESS = 0x8d,
};

#define ENDBR64 0xf30f1efau

#define BURST(field) (int32_t) offsetof(struct rt_loop_burst, field)
#define MBUF(field)  (int32_t) offsetof(struct rte_mbuf, field)
#define WORD(k)      (BURST(memory) + 4 * (int32_t)(k))

static void put8(struct rt_code *c, uint32_t v)
{
	rt_code_put(c, &(uint8_t){(uint8_t)v}, 1);
}

static void put32(struct rt_code *c, uint32_t v)
{
	rt_code_put(c, &v, 4);
}

/* Up to four bytes, the highest one that is not 0 first. */
static void put_bytes(struct rt_code *c, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8) {
		if (v >> shift)
			put8(c, v >> shift);
	}
}

/* wide: 64 bits. The last two bytes name registers. */
static void put_op(struct rt_code *c, uint32_t op, bool wide, unsigned reg, unsigned base)
{
	uint32_t rex = 0x40 | (uint32_t)wide << 3 | (reg >> 3) << 2 | base >> 3;

	if (rex != 0x40)
		put8(c, rex);
	put_bytes(c, op);
}

/* An operation on a register and another one. */
static void put_reg(struct rt_code *c, uint32_t op, bool wide, unsigned reg, unsigned other)
{
	put_op(c, op, wide, reg, other);
	put8(c, 0xc0 | (reg & 7) << 3 | (other & 7));
}

/* An operation on a register and memory. */
static void put_mem(
	struct rt_code *c, uint32_t op, bool wide, unsigned reg, unsigned base, int32_t offset)
{
	bool near = offset >= INT8_MIN && offset <= INT8_MAX;

	put_op(c, op, wide, reg, base);
	put8(c, (near ? 0x40u : 0x80u) | (reg & 7) << 3 | (base & 7));
	if (near)
		put8(c, (uint32_t)offset);
	else
		put32(c, (uint32_t)offset);
}

/* An operation on eax (short form of its opcode) or another register and a constant. */
static void put_const(struct rt_code *c, uint32_t op, unsigned reg, uint32_t k)
{
	if (reg == AX) {
		put8(c, op + 4);
	} else {
		put8(c, 0x81);
		put8(c, 0xc0 | (op & 0x38) | reg);
	}
	put32(c, k);
}

static void put_set(struct rt_code *c, unsigned reg, uint32_t k)
{
	put_op(c, 0, false, 0, reg);
	put8(c, 0xb8 | (reg & 7));
	put32(c, k);
}

void rt_emit_jump(struct rt_code *c, uint32_t to)
{
	put8(c, 0xe9);
	put32(c, to - (c->size + 4));
}

void rt_emit_jump_if(struct rt_code *c, enum rt_when when, uint32_t to)
{
	static const uint8_t opcodes[] = {[RT_EQUAL] = 0x84,
		[RT_NOT_EQUAL] = 0x85,
		[RT_ABOVE] = 0x87,
		[RT_NOT_ABOVE] = 0x86,
		[RT_NOT_BELOW] = 0x83,
		[RT_BELOW] = 0x82};

	put8(c, 0x0f);
	put8(c, opcodes[when]);
	put32(c, to - (c->size + 4));
}

void rt_emit_need(struct rt_code *c, uint32_t bytes)
{
	put_mem(c, LOAD16, false, DX, R11, MBUF(data_len));
	put_const(c, CMP, DX, bytes);
	rt_emit_jump_if(c, RT_BELOW, c->leave);
}

void rt_emit_enter(struct rt_code *c)
{
	put_bytes(c, ENDBR64); /* it is called by a pointer */
	put_mem(c, LOAD, true, SI, DI, BURST(pkts));
	put_mem(c, LOAD, true, R9, DI, BURST(pass));
	put_mem(c, CMP_TO, true, SI, DI, BURST(last));
	rt_emit_jump_if(c, RT_EQUAL, c->leave);
	c->top = c->size;
	put_mem(c, LOAD, true, R11, SI, 0);
	put_mem(c, STORE, true, R11, R9, 0);
	rt_emit_need(c, c->reach);
	if (c->reads_len) {
		put_mem(c, CMP_TO, false, DX, R11, MBUF(pkt_len));
		rt_emit_jump_if(c, RT_NOT_EQUAL, c->leave);
	}
	put_mem(c, LOAD, true, DX, DI, BURST(slow_flags));
	put_mem(c, TEST, true, DX, R11, MBUF(ol_flags));
	rt_emit_jump_if(c, RT_NOT_EQUAL, c->leave);
	/* As rt_readable_own(). */
	put_mem(c, LOAD, true, R10, R11, MBUF(buf_addr));
	put_reg(c, LOAD, true, DX, R10);
	put_reg(c, SUB, true, R11, DX);
	put8(c, 0x48); /* 64 bits */
	put_const(c, CMP, DX, RT_READABLE_OWN_MAX);
	rt_emit_jump_if(c, RT_ABOVE, c->leave);
	put_mem(c, LOAD16, false, DX, R11, MBUF(data_off));
	put_reg(c, ADD, true, DX, R10);
	put_reg(c, XOR, false, AX, AX);
	put_reg(c, XOR, false, CX, CX);
}

void rt_emit_leave(struct rt_code *c)
{
	c->pass = c->size;
	put_mem(c, ADDRESS, true, R9, R9, sizeof(struct rte_mbuf *));
	c->next = c->size;
	put_mem(c, ADDRESS, true, SI, SI, sizeof(struct rte_mbuf *));
	put_mem(c, CMP_TO, true, SI, DI, BURST(last));
	rt_emit_jump_if(c, RT_NOT_EQUAL, c->top);
	c->leave = c->size;
	put_mem(c, STORE, true, SI, DI, BURST(pkts));
	put_mem(c, STORE, true, R9, DI, BURST(pass));
	put8(c, 0xc3);
}

static void put_big_endian(struct rt_code *c, uint32_t bytes)
{
	if (bytes == 2)
		put_bytes(c, 0x66c1c008); /* rol ax, 8 */
	else if (bytes == 4)
		put_bytes(c, 0x0fc8); /* bswap eax */
}

static uint32_t load_op(uint32_t bytes)
{
	return bytes == 1 ? LOAD8 : bytes == 2 ? LOAD16 : LOAD;
}

static void put_absolute(struct rt_code *c, const struct rt_insn *i)
{
	uint32_t bytes = rt_insn_bytes(i);

	put_mem(c, load_op(bytes), false, AX, R10, (int32_t)i->k);
	put_big_endian(c, bytes);
}

/* Loads A from the packet's byte at another register and a constant. */
static void put_indexed(struct rt_code *c, uint32_t bytes, unsigned index, int32_t offset)
{
	put_op(c, load_op(bytes), false, AX, R10);
	put8(c, 0x84);
	put8(c, index << 3 | (R10 & 7));
	put32(c, (uint32_t)offset);
	put_big_endian(c, bytes);
}

static void put_indirect(struct rt_code *c, const struct rt_insn *i)
{
	uint32_t bytes = rt_insn_bytes(i);

	if (c->reach_by_x) {
		put_indexed(c, bytes, CX, (int32_t)i->k);
		return;
	}
	/* In 64 bits: the offset behind the bytes does not wrap around. */
	put_mem(c, ADDRESS, true, DX, CX, (int32_t)(i->k + bytes));
	put_mem(c, LOAD16, false, AX, R11, MBUF(data_len));
	put_reg(c, CMP, true, AX, DX);
	rt_emit_jump_if(c, RT_ABOVE, c->leave);
	put_indexed(c, bytes, DX, -(int32_t)bytes);
}

static void put_header_len(struct rt_code *c, const struct rt_insn *i)
{
	put_mem(c, LOAD8, false, CX, R10, (int32_t)i->k);
	put_bytes(c, 0x83e10f); /* and ecx, 15 */
	put_bytes(c, 0xc1e102); /* shl ecx, 2 */
	if (!c->reach_by_x)
		return;
	put_mem(c, ADDRESS, false, DX, CX, (int32_t)c->reach_by_x);
	put8(c, 0x66); /* 16 bits */
	put_mem(c, CMP_TO, false, DX, R11, MBUF(data_len));
	rt_emit_jump_if(c, RT_ABOVE, c->leave);
}

bool rt_emit_load(struct rt_code *c, const struct rt_insn *i)
{
	unsigned to = BPF_CLASS(i->code) == BPF_LD ? AX : CX;

	switch (i->code) {
	case BPF_LD | BPF_W | BPF_ABS:
	case BPF_LD | BPF_H | BPF_ABS:
	case BPF_LD | BPF_B | BPF_ABS: put_absolute(c, i); return true;
	case BPF_LD | BPF_W | BPF_IND:
	case BPF_LD | BPF_H | BPF_IND:
	case BPF_LD | BPF_B | BPF_IND: put_indirect(c, i); return true;
	case BPF_LDX | BPF_B | BPF_MSH: put_header_len(c, i); return true;
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN:
		put_mem(c, LOAD, false, to, R11, MBUF(pkt_len));
		return true;
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM: put_set(c, to, i->k); return true;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM: put_mem(c, LOAD, false, to, DI, WORD(i->k)); return true;
	default: return false;
	}
}

static void put_divide(struct rt_code *c, const struct rt_insn *i)
{
	bool by_x = BPF_SRC(i->code) == BPF_X;

	if (by_x) {
		put_reg(c, TEST, false, CX, CX);
		rt_emit_jump_if(c, RT_EQUAL, c->next);
	} else {
		put_set(c, R8, i->k);
	}
	put_reg(c, XOR, false, DX, DX);
	put_reg(c, 0xf7, false, 6, by_x ? CX : R8); /* div */
	if (BPF_OP(i->code) == BPF_MOD)
		put_reg(c, LOAD, false, AX, DX);
}

/* The CPU takes the distance modulo 32; beyond, libpcap has 0. */
static void put_shift(struct rt_code *c, const struct rt_insn *i)
{
	unsigned digit = BPF_OP(i->code) == BPF_LSH ? 4 : 5;

	if (BPF_SRC(i->code) == BPF_K) {
		put_reg(c, 0xc1, false, digit, AX);
		put8(c, i->k);
		return;
	}
	put_reg(c, 0xd3, false, digit, AX);
	put_const(c, CMP, CX, 32);
	put_reg(c, 0x19, false, DX, DX); /* sbb: all ones if X is below 32, else 0 */
	put_reg(c, AND, false, DX, AX);
}

static void put_multiply(struct rt_code *c, const struct rt_insn *i)
{
	if (BPF_SRC(i->code) == BPF_X) {
		put_reg(c, MULTIPLY, false, AX, CX);
	} else {
		put_reg(c, 0x69, false, AX, AX);
		put32(c, i->k);
	}
}

bool rt_emit_calculation(struct rt_code *c, const struct rt_insn *i)
{
	uint32_t op;

	switch (BPF_OP(i->code)) {
	case BPF_ADD: op = ADD; break;
	case BPF_SUB: op = SUB; break;
	case BPF_AND: op = AND; break;
	case BPF_OR: op = OR; break;
	case BPF_XOR: op = XOR; break;
	case BPF_MUL: put_multiply(c, i); return true;
	case BPF_DIV:
	case BPF_MOD: put_divide(c, i); return true;
	case BPF_LSH:
	case BPF_RSH: put_shift(c, i); return true;
	case BPF_NEG: put_reg(c, 0xf7, false, 3, AX); return true;
	default: return false;
	}
	if (BPF_SRC(i->code) == BPF_X)
		put_reg(c, op, false, CX, AX);
	else
		put_const(c, op, AX, i->k);
	return true;
}

void rt_emit_compare(struct rt_code *c, const struct rt_insn *i)
{
	bool bits = BPF_OP(i->code) == BPF_JSET;

	if (BPF_SRC(i->code) == BPF_X) {
		put_reg(c, bits ? TEST : CMP, false, CX, AX);
	} else if (bits) {
		put8(c, 0xa9); /* test eax */
		put32(c, i->k);
	} else {
		put_const(c, CMP, AX, i->k);
	}
}

void rt_emit_store(struct rt_code *c, const struct rt_insn *i)
{
	put_mem(c, STORE, false, i->code == BPF_ST ? AX : CX, DI, WORD(i->k));
}

void rt_emit_move(struct rt_code *c, bool to_x)
{
	put_reg(c, LOAD, false, to_x ? CX : AX, to_x ? AX : CX);
}

#endif
