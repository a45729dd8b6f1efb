/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/types.h>

#include <pcap/bpf.h>
#include <rte_byteorder.h>

#include "common/atomics.h"
#include "filter_run.h"

#define WORDS 16 /* words of scratch memory */

struct machine {
	uint32_t a, x, memory[WORDS];
};

/* False: it lies outside the packet, which ends the program with 0. */
static inline bool load(const struct rte_mbuf *m, uint64_t offset, uint16_t size, uint32_t *out)
{
	uint32_t bytes = size == BPF_W ? 4 : size == BPF_H ? 2 : 1;
	uint8_t copy[4];
	const uint8_t *p;

	if (rt_likely(offset + bytes <= m->data_len))
		p = rte_pktmbuf_mtod_offset(m, const uint8_t *, offset);
	else if (offset + bytes <= m->pkt_len)
		p = rte_pktmbuf_read(m, (uint32_t)offset, bytes, copy);
	else
		return false;
	if (bytes == 4) {
		memcpy(out, p, 4);
		*out = rte_be_to_cpu_32(*out);
	} else {
		*out = bytes == 1 ? p[0] : (uint32_t)p[0] << 8 | p[1];
	}
	return true;
}

static bool load_a(struct machine *s, const struct rt_insn *i, const struct rte_mbuf *m)
{
	switch (BPF_MODE(i->code)) {
	case BPF_ABS: return load(m, i->k, BPF_SIZE(i->code), &s->a);
	case BPF_IND: return load(m, (uint64_t)s->x + i->k, BPF_SIZE(i->code), &s->a);
	case BPF_LEN: s->a = m->pkt_len; return true;
	case BPF_IMM: s->a = i->k; return true;
	case BPF_MEM: s->a = s->memory[i->k]; return true;
	default: return false;
	}
}

static bool load_x(struct machine *s, const struct rt_insn *i, const struct rte_mbuf *m)
{
	switch (BPF_MODE(i->code)) {
	case BPF_MSH:
		if (!load(m, i->k, BPF_B, &s->x))
			return false;
		s->x = (s->x & 15) << 2;
		return true;
	case BPF_LEN: s->x = m->pkt_len; return true;
	case BPF_IMM: s->x = i->k; return true;
	case BPF_MEM: s->x = s->memory[i->k]; return true;
	default: return false;
	}
}

/* False: division by 0, which ends the program with 0. */
static bool calculate(struct machine *s, const struct rt_insn *i)
{
	uint32_t by = BPF_SRC(i->code) == BPF_X ? s->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_ADD: s->a += by; return true;
	case BPF_SUB: s->a -= by; return true;
	case BPF_MUL: s->a *= by; return true;
	case BPF_DIV: s->a = by ? s->a / by : 0; return by;
	case BPF_MOD: s->a = by ? s->a % by : 0; return by;
	case BPF_AND: s->a &= by; return true;
	case BPF_OR: s->a |= by; return true;
	case BPF_XOR: s->a ^= by; return true;
	case BPF_LSH: s->a = by < 32 ? s->a << by : 0; return true;
	case BPF_RSH: s->a = by < 32 ? s->a >> by : 0; return true;
	case BPF_NEG: s->a = 0u - s->a; return true;
	default: return false;
	}
}

/* How many instructions are skipped. */
static inline uint32_t jump(const struct machine *s, const struct rt_insn *i)
{
	uint32_t with = BPF_SRC(i->code) == BPF_X ? s->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_JEQ: return s->a == with ? i->jt : i->jf;
	case BPF_JGT: return s->a > with ? i->jt : i->jf;
	case BPF_JGE: return s->a >= with ? i->jt : i->jf;
	case BPF_JSET: return s->a & with ? i->jt : i->jf;
	default: return i->k; /* BPF_JA */
	}
}

uint32_t rt_filter_run(const struct rt_insn *program, const struct rte_mbuf *m)
{
	struct machine s = {0};

	for (const struct rt_insn *i = program;; i++) {
		bool go_on = true;

		/* Most instructions of all programs are these two. */
		if (i->code == (BPF_JMP | BPF_JEQ | BPF_K)) {
			i += s.a == i->k ? i->jt : i->jf;
			continue;
		}
		if (i->code == (BPF_LD | BPF_W | BPF_ABS)) {
			if (!load(m, i->k, BPF_W, &s.a))
				return 0;
			continue;
		}
		switch (BPF_CLASS(i->code)) {
		case BPF_LD: go_on = load_a(&s, i, m); break;
		case BPF_LDX: go_on = load_x(&s, i, m); break;
		case BPF_ST: s.memory[i->k] = s.a; break;
		case BPF_STX: s.memory[i->k] = s.x; break;
		case BPF_ALU: go_on = calculate(&s, i); break;
		case BPF_JMP: i += jump(&s, i); break;
		case BPF_RET: return BPF_RVAL(i->code) == BPF_A ? s.a : i->k;
		default: /* BPF_MISC */
			if (BPF_MISCOP(i->code) == BPF_TAX)
				s.x = s.a;
			else
				s.a = s.x;
		}
		if (!go_on)
			return 0;
	}
}
