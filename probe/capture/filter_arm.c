/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machine code of a filter's loop for aarch64. A leaf function: it changes only registers that
 * belong to the callee, and uses no stack.
 */
#include "filter_emit.h"
#include "readable.h"

#if defined(__aarch64__) && RT_LOOP_NATIVE

enum {
	STATE, /* struct rt_loop_burst; first argument */
	PKTS,
	PASS,
	LAST,
	SLOW_FLAGS,
	MBUF,
	DATA,
	DATA_LEN,
	A,
	X,
	T,  /* temporary */
	T2, /* another one */
	ZERO = 31,
};

/* Instructions without their registers. W: of 32 bits; the others are of 64. */
#define LDR         0xf9400000u
#define LDR_W       0xb9400000u
#define LDRH        0x79400000u
#define STR         0xf9000000u
#define STR_W       0xb9000000u
#define LDR_W_NEAR  0xb8400000u /* offset of 9 bits */
#define LDRH_NEAR   0x78400000u
#define LDRB_NEAR   0x38400000u
#define LDR_W_AT    0xb8606800u /* offset in a register */
#define LDRH_AT     0x78606800u
#define LDRB_AT     0x38606800u
#define ADD_CONST   0x91000000u
#define SUB_CONST   0xd1000000u
#define CMP_CONST_W 0x7100001fu
#define ADD         0x8b000000u
#define SUB         0xcb000000u
#define CMP         0xeb00001fu
#define CMP_W       0x6b00001fu
#define TST         0xea00001fu
#define TST_W       0x6a00001fu
#define ADD_W       0x0b000000u
#define SUB_W       0x4b000000u
#define AND_W       0x0a000000u
#define OR_W        0x2a000000u
#define XOR_W       0x4a000000u
#define MUL_W       0x1b007c00u
#define DIV_W       0x1ac00800u
#define MSUB_W      0x1b008000u
#define LSL_W       0x1ac02000u
#define LSR_W       0x1ac02400u
#define MOVZ_W      0x52800000u
#define MOVK_HIGH_W 0x72a00000u
#define REV_W       0x5ac00800u
#define REV16_W     0x5ac00400u
#define BITFIELD_W  0x53000000u
#define SELECT_W    0x1a800000u
#define B           0x14000000u
#define B_IF        0x54000000u
#define RETURN      0xd65f03c0u

#define FIELD(field)      offsetof(struct rt_loop_burst, field)
#define MBUF_FIELD(field) offsetof(struct rte_mbuf, field)
#define WORD(k)           (FIELD(memory) + 4 * (k))

static void put(struct rt_code *c, uint32_t insn)
{
	rt_code_put(c, &insn, 4);
}

/* to = from <op> by */
static void put_reg(struct rt_code *c, uint32_t op, unsigned to, unsigned from, unsigned by)
{
	put(c, op | by << 16 | from << 5 | to);
}

/* Compares, and sets no register. */
static void put_test(struct rt_code *c, uint32_t op, unsigned one, unsigned other)
{
	put(c, op | other << 16 | one << 5);
}

/* Load or store of a field; size: its bytes, of which the offset is a multiple. */
static void put_field(
	struct rt_code *c, uint32_t op, unsigned reg, unsigned base, size_t offset, size_t size)
{
	put(c, op | (uint32_t)(offset / size) << 10 | base << 5 | reg);
}

static void put_add(struct rt_code *c, uint32_t op, unsigned to, unsigned from, uint32_t k)
{
	put(c, op | k << 10 | from << 5 | to);
}

static void put_set(struct rt_code *c, unsigned reg, uint32_t k)
{
	put(c, MOVZ_W | (k & 0xffff) << 5 | reg);
	if (k >> 16)
		put(c, MOVK_HIGH_W | k >> 16 << 5 | reg);
}

static void put_move(struct rt_code *c, unsigned to, unsigned from)
{
	put_reg(c, OR_W, to, ZERO, from);
}

void rt_emit_jump(struct rt_code *c, uint32_t to)
{
	put(c, B | ((to - c->size) >> 2 & 0x3ffffff));
}

static const uint8_t conditions[] = {[RT_EQUAL] = 0,
	[RT_NOT_EQUAL] = 1,
	[RT_ABOVE] = 8,
	[RT_NOT_ABOVE] = 9,
	[RT_NOT_BELOW] = 2,
	[RT_BELOW] = 3};

void rt_emit_jump_if(struct rt_code *c, enum rt_when when, uint32_t to)
{
	put(c, B_IF | ((to - c->size) >> 2 & 0x7ffff) << 5 | conditions[when]);
}

static void put_compare_const(struct rt_code *c, unsigned reg, uint32_t k)
{
	if (k < 4096) {
		put(c, CMP_CONST_W | k << 10 | reg << 5);
	} else {
		put_set(c, T, k);
		put_test(c, CMP_W, reg, T);
	}
}

void rt_emit_enter(struct rt_code *c)
{
	put_field(c, LDR, PKTS, STATE, FIELD(pkts), 8);
	put_field(c, LDR, PASS, STATE, FIELD(pass), 8);
	put_field(c, LDR, LAST, STATE, FIELD(last), 8);
	put_field(c, LDR, SLOW_FLAGS, STATE, FIELD(slow_flags), 8);
	put_test(c, CMP, PKTS, LAST);
	rt_emit_jump_if(c, RT_EQUAL, c->leave);
	c->top = c->size;
	put_field(c, LDR, MBUF, PKTS, 0, 8);
	put_field(c, STR, MBUF, PASS, 0, 8);
	put_field(c, LDRH, DATA_LEN, MBUF, MBUF_FIELD(data_len), 2);
	put_compare_const(c, DATA_LEN, c->reach);
	rt_emit_jump_if(c, RT_BELOW, c->leave);
	if (c->reads_len) {
		put_field(c, LDR_W, T, MBUF, MBUF_FIELD(pkt_len), 4);
		put_test(c, CMP_W, DATA_LEN, T);
		rt_emit_jump_if(c, RT_NOT_EQUAL, c->leave);
	}
	put_field(c, LDR, T, MBUF, MBUF_FIELD(ol_flags), 8);
	put_test(c, TST, T, SLOW_FLAGS);
	rt_emit_jump_if(c, RT_NOT_EQUAL, c->leave);
	/* As rt_readable_own(). */
	put_field(c, LDR, DATA, MBUF, MBUF_FIELD(buf_addr), 8);
	put_reg(c, SUB, T2, DATA, MBUF);
	put_set(c, T, RT_READABLE_OWN_MAX);
	put_test(c, CMP, T2, T);
	rt_emit_jump_if(c, RT_ABOVE, c->leave);
	put_field(c, LDRH, T, MBUF, MBUF_FIELD(data_off), 2);
	put_reg(c, ADD, DATA, DATA, T);
	put_set(c, A, 0);
	put_set(c, X, 0);
}

void rt_emit_leave(struct rt_code *c)
{
	c->pass = c->size;
	put_add(c, ADD_CONST, PASS, PASS, sizeof(struct rte_mbuf *));
	c->next = c->size;
	put_add(c, ADD_CONST, PKTS, PKTS, sizeof(struct rte_mbuf *));
	put_test(c, CMP, PKTS, LAST);
	rt_emit_jump_if(c, RT_NOT_EQUAL, c->top);
	c->leave = c->size;
	put_field(c, STR, PKTS, STATE, FIELD(pkts), 8);
	put_field(c, STR, PASS, STATE, FIELD(pass), 8);
	put(c, RETURN);
}

static void put_big_endian(struct rt_code *c, uint32_t bytes)
{
	if (bytes > 1)
		put_reg(c, bytes == 2 ? REV16_W : REV_W, A, A, 0);
}

/* to = bytes of the packet from k on */
static void put_read(struct rt_code *c, unsigned to, uint32_t bytes, uint32_t k)
{
	if (k < 256) {
		put(c, (bytes == 1          ? LDRB_NEAR
			       : bytes == 2 ? LDRH_NEAR
					    : LDR_W_NEAR) |
				k << 12 | DATA << 5 | to);
		return;
	}
	put_set(c, T, k);
	put_reg(c, bytes == 1 ? LDRB_AT : bytes == 2 ? LDRH_AT : LDR_W_AT, to, DATA, T);
}

static void put_read_at(struct rt_code *c, uint32_t bytes, unsigned offset)
{
	put_reg(c, bytes == 1 ? LDRB_AT : bytes == 2 ? LDRH_AT : LDR_W_AT, A, DATA, offset);
	put_big_endian(c, bytes);
}

static void put_indirect(struct rt_code *c, const struct rt_insn *i)
{
	uint32_t bytes = rt_insn_bytes(i);

	if (c->reach_by_x) {
		put_add(c, ADD_CONST, T, X, i->k);
		put_read_at(c, bytes, T);
		return;
	}
	/* In 64 bits: the offset behind the bytes does not wrap around. */
	put_set(c, T, i->k + bytes);
	put_reg(c, ADD, T, T, X);
	put_test(c, CMP, T, DATA_LEN);
	rt_emit_jump_if(c, RT_ABOVE, c->leave);
	put_add(c, SUB_CONST, T, T, bytes);
	put_read_at(c, bytes, T);
}

static void put_header_len(struct rt_code *c, const struct rt_insn *i)
{
	put_read(c, X, 1, i->k);
	put(c, BITFIELD_W | 30u << 16 | 3u << 10 | X << 5 | X); /* 4 bits, 2 to the left */
	if (!c->reach_by_x)
		return;
	put_add(c, ADD_CONST, T, X, c->reach_by_x);
	put_test(c, CMP, T, DATA_LEN);
	rt_emit_jump_if(c, RT_ABOVE, c->leave);
}

bool rt_emit_load(struct rt_code *c, const struct rt_insn *i)
{
	unsigned to = BPF_CLASS(i->code) == BPF_LD ? A : X;

	switch (i->code) {
	case BPF_LD | BPF_W | BPF_ABS:
	case BPF_LD | BPF_H | BPF_ABS:
	case BPF_LD | BPF_B | BPF_ABS:
		put_read(c, A, rt_insn_bytes(i), i->k);
		put_big_endian(c, rt_insn_bytes(i));
		return true;
	case BPF_LD | BPF_W | BPF_IND:
	case BPF_LD | BPF_H | BPF_IND:
	case BPF_LD | BPF_B | BPF_IND: put_indirect(c, i); return true;
	case BPF_LDX | BPF_B | BPF_MSH: put_header_len(c, i); return true;
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN: put_move(c, to, DATA_LEN); return true;
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM: put_set(c, to, i->k); return true;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM: put_field(c, LDR_W, to, STATE, WORD(i->k), 4); return true;
	default: return false;
	}
}

static void put_divide(struct rt_code *c, const struct rt_insn *i, unsigned by)
{
	if (by == X) {
		put_compare_const(c, X, 0);
		rt_emit_jump_if(c, RT_EQUAL, c->next);
	}
	if (BPF_OP(i->code) == BPF_DIV) {
		put_reg(c, DIV_W, A, A, by);
		return;
	}
	put_reg(c, DIV_W, T2, A, by);
	put(c, MSUB_W | by << 16 | A << 10 | T2 << 5 | A);
}

/* The CPU takes the distance modulo 32; beyond, libpcap has 0. */
static void put_shift(struct rt_code *c, const struct rt_insn *i, unsigned by)
{
	put_reg(c, BPF_OP(i->code) == BPF_LSH ? LSL_W : LSR_W, A, A, by);
	put_compare_const(c, by, 32);
	put_reg(c, SELECT_W | (uint32_t)conditions[RT_BELOW] << 12, A, A, ZERO);
}

bool rt_emit_calculation(struct rt_code *c, const struct rt_insn *i)
{
	unsigned by = BPF_SRC(i->code) == BPF_X ? X : T;

	if (by == T)
		put_set(c, T, i->k);
	switch (BPF_OP(i->code)) {
	case BPF_ADD: put_reg(c, ADD_W, A, A, by); return true;
	case BPF_SUB: put_reg(c, SUB_W, A, A, by); return true;
	case BPF_AND: put_reg(c, AND_W, A, A, by); return true;
	case BPF_OR: put_reg(c, OR_W, A, A, by); return true;
	case BPF_XOR: put_reg(c, XOR_W, A, A, by); return true;
	case BPF_MUL: put_reg(c, MUL_W, A, A, by); return true;
	case BPF_NEG: put_reg(c, SUB_W, A, ZERO, A); return true;
	case BPF_DIV:
	case BPF_MOD: put_divide(c, i, by); return true;
	case BPF_LSH:
	case BPF_RSH: put_shift(c, i, by); return true;
	default: return false;
	}
}

void rt_emit_compare(struct rt_code *c, const struct rt_insn *i)
{
	bool bits = BPF_OP(i->code) == BPF_JSET;

	if (BPF_SRC(i->code) == BPF_X) {
		put_test(c, bits ? TST_W : CMP_W, A, X);
	} else if (bits) {
		put_set(c, T, i->k);
		put_test(c, TST_W, A, T);
	} else {
		put_compare_const(c, A, i->k);
	}
}

void rt_emit_store(struct rt_code *c, const struct rt_insn *i)
{
	put_field(c, STR_W, i->code == BPF_ST ? A : X, STATE, WORD(i->k), 4);
}

void rt_emit_move(struct rt_code *c, bool to_x)
{
	put_move(c, to_x ? X : A, to_x ? A : X);
}

#endif
