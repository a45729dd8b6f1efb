/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>

#include <pcap/bpf.h>
#include <rte_bpf.h>

#include "filter_code.h"
#include "common/program.h"

/*
 * What rte_bpf_convert() and rte_bpf's JIT get wrong (DPDK 22.11; the first up to 26.03 at least),
 * seen in e2e/filters/test_filters.py:
 *  - LD IND of bytes and words adds A, not X, to the offset. Halfwords are right only because
 *    BPF_H happens to be the bit of BPF_X.
 *  - An offset near 2^32 passes rte_pktmbuf_read()'s check, whose sum wraps, and is then followed
 *    to where no packet is: `ether[len - 64:4]` of a short frame is a crash. Here such a load ends
 * the program with 0, as libpcap has it for all that lies outside of the packet.
 *  - A shift by X takes X modulo 32 (by the JIT; the interpreter leaves it to C). libpcap's gives 0
 *    from 32 on.
 *  - The JIT for x86 encodes `test` with an immediate of one byte, which does not exist: it runs
 *    into the bytes behind and crashes.
 */
#define REG_X   EBPF_REG_7 /* as rte_bpf_convert() assigns them */
#define REG_TMP EBPF_REG_8

static bool is_short_jset(const struct ebpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_JSET | BPF_K) && i->imm >= INT8_MIN && i->imm <= INT8_MAX;
}

static bool is_shift_by_x(const struct ebpf_insn *i)
{
	return i->code == (BPF_ALU | BPF_LSH | BPF_X) || i->code == (BPF_ALU | BPF_RSH | BPF_X);
}

static bool is_indirect(const struct ebpf_insn *i)
{
	return BPF_CLASS(i->code) == BPF_LD && BPF_MODE(i->code) == BPF_IND;
}

static struct ebpf_insn *put_short_jset(struct ebpf_insn *out, const struct ebpf_insn *in)
{
	*out++ = (struct ebpf_insn){
		.code = EBPF_ALU64 | EBPF_MOV | BPF_K, .dst_reg = REG_TMP, .imm = in->imm};
	*out = (struct ebpf_insn){
		.code = BPF_JMP | BPF_JSET | BPF_X, .dst_reg = in->dst_reg, .src_reg = REG_TMP};
	return out;
}

#define SHIFT_LEN 4

static struct ebpf_insn *put_shift(struct ebpf_insn *out, const struct ebpf_insn *in)
{
	out[0] = (struct ebpf_insn){
		.code = BPF_JMP | BPF_JGT | BPF_K, .dst_reg = REG_X, .off = 2, .imm = 31};
	out[1] = *in;
	out[2] = (struct ebpf_insn){.code = BPF_JMP | BPF_JA, .off = 1};
	out[3] = (struct ebpf_insn){.code = BPF_ALU | EBPF_MOV | BPF_K, .dst_reg = in->dst_reg};
	return &out[3];
}

/* Goes to the end if X is above RT_OFFSET_MAX. */
static struct ebpf_insn *put_limit(struct ebpf_insn *out, const struct ebpf_insn *end)
{
	*out = (struct ebpf_insn){.code = BPF_JMP | BPF_JGT | BPF_K,
		.dst_reg = REG_X,
		.off = (int16_t)(end - out - 1),
		.imm = RT_OFFSET_MAX};
	return out + 1;
}

static uint32_t mended_len(const struct ebpf_insn *i)
{
	if (is_shift_by_x(i))
		return SHIFT_LEN;
	return is_short_jset(i) || is_indirect(i) ? 2 : 1;
}

/* Returns the last one written, whose jump is that of the original. */
static struct ebpf_insn *mend_insn(
	struct ebpf_insn *out, const struct ebpf_insn *in, const struct ebpf_insn *end)
{
	if (is_short_jset(in))
		return put_short_jset(out, in);
	if (is_shift_by_x(in))
		return put_shift(out, in);
	if (is_indirect(in))
		out = put_limit(out, end);
	*out = *in;
	if (is_indirect(in))
		out->src_reg = REG_X;
	return out;
}

static void mend_all(
	const struct ebpf_insn *in, uint32_t n, const uint32_t *at, struct ebpf_insn *out)
{
	struct ebpf_insn *end = &out[at[n]];

	for (uint32_t i = 0; i < n; i++) {
		struct ebpf_insn *o = mend_insn(&out[at[i]], &in[i], end);

		if (BPF_CLASS(in[i].code) == BPF_JMP)
			o->off = (int16_t)(at[i + 1 + in[i].off] - at[i + 1]);
	}
	end[0] = (struct ebpf_insn){.code = BPF_ALU | EBPF_MOV | BPF_K, .dst_reg = EBPF_REG_0};
	end[1] = (struct ebpf_insn){.code = BPF_JMP | EBPF_EXIT};
}

struct ebpf_insn *rt_code_mend(const struct ebpf_insn *in, uint32_t n, uint32_t *count)
{
	uint32_t *at = calloc((size_t)n + 1, sizeof(*at)); /* place of each instruction */
	struct ebpf_insn *out = NULL;
	bool ends = false; /* DPDK refuses unreachable instructions */

	for (uint32_t i = 0; at && i < n; i++) {
		at[i + 1] = at[i] + mended_len(&in[i]);
		ends |= is_indirect(&in[i]);
	}
	if (at)
		out = calloc((size_t)at[n] + 2, sizeof(*out));
	if (out) {
		mend_all(in, n, at, out);
		*count = at[n] + (ends ? 2 : 0);
	}
	free(at);
	return out;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

uint64_t rt_code_steps(const struct ebpf_insn *insns, uint32_t n)
{
	uint64_t *from = calloc((size_t)n + 1, sizeof(*from)), total; /* by instruction */

	if (!from)
		return UINT64_MAX;
	for (uint32_t i = n; i-- > 0;) {
		const struct ebpf_insn *in = &insns[i];
		uint32_t op = BPF_CLASS(in->code) == BPF_JMP ? BPF_OP(in->code) : EBPF_CALL;
		uint64_t to = from[i + 1 + (op == EBPF_CALL || op == EBPF_EXIT ? 0 : in->off)];

		if (op == EBPF_EXIT)
			from[i] = 1;
		else if (op == EBPF_CALL || op == BPF_JA)
			from[i] = add(1, to);
		else
			from[i] = add(1, add(to, from[i + 1]));
	}
	total = from[0];
	free(from);
	return total;
}
