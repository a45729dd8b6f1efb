/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "filter_emit.h"

#define REACH_MAX 2048u

#if RT_LOOP_NATIVE
static bool reads_by_x(const struct rt_insn *i)
{
	return BPF_CLASS(i->code) == BPF_LD && BPF_MODE(i->code) == BPF_IND;
}

static bool reads_header_len(const struct rt_insn *i)
{
	return BPF_CLASS(i->code) == BPF_LDX && BPF_MODE(i->code) == BPF_MSH;
}

static bool reads_at(const struct rt_insn *i)
{
	return (BPF_CLASS(i->code) == BPF_LD && BPF_MODE(i->code) == BPF_ABS) ||
	       reads_header_len(i);
}

static bool reads_len(const struct rt_insn *i)
{
	return i->code == (BPF_LD | BPF_W | BPF_LEN) || i->code == (BPF_LDX | BPF_W | BPF_LEN);
}

static bool sets_x(const struct rt_insn *i)
{
	return BPF_CLASS(i->code) == BPF_LDX || i->code == (BPF_MISC | BPF_TAX);
}

static bool is_ja(const struct rt_insn *i)
{
	return i->code == (BPF_JMP | BPF_JA);
}

/* Bytes that an instruction and those behind it need in the first segment, but for what is behind
 * an unconditional jump, which checks that itself: a program that is made of several, one for each
 * number of tags, does not need the bytes of the longest headers for all packets. */
static uint32_t need_at(const struct rt_code *c, uint32_t n)
{
	const struct rt_insn *i = &c->insns[n];
	uint32_t own = reads_at(i) ? i->k + rt_insn_bytes(i) : 0, behind;

	if (BPF_CLASS(i->code) == BPF_RET || is_ja(i))
		return 0;
	behind = BPF_CLASS(i->code) == BPF_JMP
			 ? RTE_MAX(c->need[n + 1 + i->jt], c->need[n + 1 + i->jf])
			 : c->need[n + 1];
	return RTE_MAX(own, behind);
}

/* False: the program may read too far. */
static bool find_needs(struct rt_code *c, uint32_t count)
{
	bool any_x = false;
	uint32_t most = 1;

	for (uint32_t n = count; n-- > 0;) {
		const struct rt_insn *i = &c->insns[n];
		uint32_t behind = i->k + rt_insn_bytes(i);

		c->need[n] = need_at(c, n);

		c->reads_len |= reads_len(i);
		any_x |= sets_x(i) && !reads_header_len(i);
		if (reads_by_x(i))
			c->reach_by_x = RTE_MAX(c->reach_by_x, behind);
		if (reads_at(i))
			most = RTE_MAX(most, behind);
	}
	c->reach = RTE_MAX(1u, c->need[0]);
	if (any_x || c->reach_by_x > REACH_MAX)
		c->reach_by_x = 0;
	c->reach = RTE_MAX(c->reach, c->reach_by_x);
	return RTE_MAX(c->reach, most) <= REACH_MAX;
}

/* Filters of libpcap return one value for all packets: only others have to store it. */
static void find_value(struct rt_code *c, uint32_t count)
{
	bool differ = false;

	for (uint32_t n = 0; n < count; n++) {
		const struct rt_insn *i = &c->insns[n];

		differ |= i->code == (BPF_RET | BPF_A);
		if (i->code != (BPF_RET | BPF_K) || !i->k)
			continue;
		differ |= c->value && c->value != i->k;
		c->value = i->k;
	}
	c->value = differ ? 0 : c->value;
}

/* The place of an instruction that is jumped to, or of what it does. */
static uint32_t place(const struct rt_code *c, uint32_t insn)
{
	uint32_t to = c->to[insn];
	const struct rt_insn *i = &c->insns[to];

	if (i->code == (BPF_RET | BPF_K))
		return !i->k ? c->next : c->value ? c->pass : c->at[to];
	return c->at[to];
}

/* From the end, as jumps go forward only: a chain of them is not followed once for each of its
 * members. */
static void find_targets(struct rt_code *c, uint32_t count)
{
	for (uint32_t n = count; n-- > 0;) {
		const struct rt_insn *i = &c->insns[n];
		bool plain = is_ja(i) && c->need[n + 1 + i->k] <= c->reach;

		c->to[n] = plain ? c->to[n + 1 + i->k] : n;
	}
}

static void put_return(struct rt_code *c, uint32_t insn)
{
	static const struct rt_insn with_zero = {.code = BPF_JMP | BPF_JEQ | BPF_K},
				    store = {.code = BPF_ST, .k = RT_LOOP_VALUE};
	const struct rt_insn *i = &c->insns[insn];

	if (i->code == (BPF_RET | BPF_K) && i->k && !c->value) {
		rt_emit_load(c, &(const struct rt_insn){.code = BPF_LD | BPF_IMM, .k = i->k});
		rt_emit_store(c, &store);
		rt_emit_jump(c, c->pass);
	} else if (i->code == (BPF_RET | BPF_A)) {
		rt_emit_store(c, &store);
		rt_emit_compare(c, &with_zero);
		rt_emit_jump_if(c, RT_EQUAL, c->next);
		rt_emit_jump(c, c->pass);
	} else {
		rt_emit_jump(c, place(c, insn));
	}
}

static bool put_branch(struct rt_code *c, uint32_t insn)
{
	const struct rt_insn *i = &c->insns[insn];
	enum rt_when when;

	switch (BPF_OP(i->code)) {
	case BPF_JEQ: when = RT_EQUAL; break;
	case BPF_JGT: when = RT_ABOVE; break;
	case BPF_JGE: when = RT_NOT_BELOW; break;
	case BPF_JSET: when = RT_NOT_EQUAL; break;
	case BPF_JA:
		if (is_ja(i) && c->need[insn + 1 + i->k] > c->reach)
			rt_emit_need(c, c->need[insn + 1 + i->k]);
		rt_emit_jump(c, place(c, is_ja(i) ? insn + 1 + i->k : insn));
		return is_ja(i);
	default: return false;
	}
	rt_emit_compare(c, i);
	if (i->jt)
		rt_emit_jump_if(c, when, place(c, insn + 1 + i->jt));
	if (i->jt && i->jf)
		rt_emit_jump(c, place(c, insn + 1 + i->jf));
	else if (i->jf)
		rt_emit_jump_if(c, when ^ 1, place(c, insn + 1 + i->jf));
	return true;
}

/* False: there is no such instruction. */
static bool put_insn(struct rt_code *c, uint32_t insn)
{
	const struct rt_insn *i = &c->insns[insn];

	if (i->code > UINT8_MAX)
		return false;
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
	case BPF_LDX: return rt_emit_load(c, i);
	case BPF_ALU: return i->code != (BPF_ALU | BPF_NEG | BPF_X) && rt_emit_calculation(c, i);
	case BPF_JMP: return put_branch(c, insn);
	case BPF_ST:
	case BPF_STX: rt_emit_store(c, i); return i->code == BPF_ST || i->code == BPF_STX;
	case BPF_RET:
		put_return(c, insn);
		return i->code == (BPF_RET | BPF_A) || i->code == (BPF_RET | BPF_K);
	default:
		rt_emit_move(c, i->code == (BPF_MISC | BPF_TAX));
		return i->code == (BPF_MISC | BPF_TAX) || i->code == (BPF_MISC | BPF_TXA);
	}
}

static bool emit(struct rt_code *c, uint32_t count)
{
	c->size = 0;
	rt_emit_enter(c);
	for (uint32_t i = 0; i < count; i++) {
		c->at[i] = c->size;
		if (!put_insn(c, i))
			return false;
	}
	rt_emit_leave(c);
	return true;
}

/* Into memory that is never writable and executable at the same time. */
static int map(struct rt_loop *l, struct rt_code *c, uint32_t count)
{
	size_t bytes = c->size;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	c->out = p;
	emit(c, count);
	if (mprotect(p, bytes, PROT_READ | PROT_EXEC)) {
		munmap(p, bytes);
		return -EACCES;
	}
	__builtin___clear_cache(p, (char *)p + bytes);
	*l = (struct rt_loop){
		.run = (rt_loop_fn)p, .bytes = bytes, .reach = c->reach, .value = c->value};
	return 0;
}

int rt_loop_create(struct rt_loop *l, const struct rt_insn *insns, uint32_t count)
{
	struct rt_code c = {.insns = insns,
		.at = calloc(count, sizeof(*c.at)),
		.to = calloc(count, sizeof(*c.to)),
		.need = calloc(count + 1, sizeof(*c.need))};
	int ret = -ENOMEM;

	*l = (struct rt_loop){0};
	if (c.at && c.to && c.need) {
		bool near = find_needs(&c, count);

		find_targets(&c, count);
		find_value(&c, count);
		ret = near && emit(&c, count) ? map(l, &c, count) : -ENOTSUP;
	}
	free(c.at);
	free(c.to);
	free(c.need);
	return ret;
}
#else
int rt_loop_create(struct rt_loop *l, const struct rt_insn *insns, uint32_t count)
{
	*l = (struct rt_loop){0};
	return -ENOTSUP;
}
#endif

void rt_loop_destroy(struct rt_loop *l)
{
	if (l->bytes)
		munmap((void *)l->run, l->bytes);
}
