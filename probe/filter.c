/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/bpf.h>
#include <rte_bpf.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "epb.h"
#include "filter.h"
#include "program.h"

#define MAC_BYTES 12u

struct rt_filter {
	uint64_t (*func)(void *mbuf); /* NULL: no JIT on this machine */
	struct rte_bpf *bpf;
};

static_assert(sizeof(struct rt_insn) == sizeof(struct bpf_insn), "cBPF instruction");

/*
 * What rte_bpf_convert() and rte_bpf's JIT get wrong (DPDK 22.11; the first up to 26.03 at least),
 * seen in e2e/test_filters.py:
 *  - LD IND of bytes and words adds A, not X, to the offset. Halfwords are right only because
 *    BPF_H happens to be the bit of BPF_X.
 *  - An offset near 2^32 passes rte_pktmbuf_read()'s check, whose sum wraps, and is then followed
 *    to where no packet is: `ether[len - 64:4]` of a short frame is a crash. Here such a load ends
 * the program with 0, as libpcap has it for all that lies outside of the packet.
 *  - The JIT for x86 encodes `test` with an immediate of one byte, which does not exist: it runs
 *    into the bytes behind and crashes.
 */
#define REG_X   EBPF_REG_7 /* as rte_bpf_convert() assigns them */
#define REG_TMP EBPF_REG_8

static bool is_short_jset(const struct ebpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_JSET | BPF_K) && i->imm >= INT8_MIN && i->imm <= INT8_MAX;
}

static bool is_indirect(const struct ebpf_insn *i)
{
	return BPF_CLASS(i->code) == BPF_LD && BPF_MODE(i->code) == BPF_IND;
}

static uint32_t mended_len(const struct ebpf_insn *i)
{
	return is_short_jset(i) || is_indirect(i) ? 2 : 1;
}

/* Writes mended_len() instructions, the last of which stands for the original. Returns it. fail is
 * where the program returns 0. */
static struct ebpf_insn *mend_insn(
	struct ebpf_insn *out, const struct ebpf_insn *in, const struct ebpf_insn *fail)
{
	if (is_short_jset(in)) {
		*out++ = (struct ebpf_insn){
			.code = EBPF_ALU64 | EBPF_MOV | BPF_K, .dst_reg = REG_TMP, .imm = in->imm};
		*out = (struct ebpf_insn){.code = BPF_JMP | BPF_JSET | BPF_X,
			.dst_reg = in->dst_reg,
			.src_reg = REG_TMP};
		return out;
	}
	if (is_indirect(in)) {
		*out = (struct ebpf_insn){.code = BPF_JMP | BPF_JGT | BPF_K,
			.dst_reg = REG_X,
			.off = (int16_t)(fail - out - 1),
			.imm = RT_OFFSET_MAX};
		*++out = *in;
		out->src_reg = REG_X;
		return out;
	}
	*out = *in;
	return out;
}

/* A corrected copy of n instructions; *count becomes their number. The caller frees it. */
static struct ebpf_insn *mend(const struct ebpf_insn *in, uint32_t n, uint32_t *count)
{
	struct ebpf_insn *out = calloc(2 * (size_t)n + 2, sizeof(*out)), *fail;
	uint32_t *at = calloc((size_t)n + 1, sizeof(*at)); /* where each instruction goes */
	bool guarded = false;

	if (!out || !at) {
		free(out);
		free(at);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		at[i + 1] = at[i] + mended_len(&in[i]);
		guarded |= is_indirect(&in[i]);
	}
	fail = &out[at[n]];
	for (uint32_t i = 0; i < n; i++) {
		struct ebpf_insn *o = mend_insn(&out[at[i]], &in[i], fail);

		if (BPF_CLASS(in[i].code) == BPF_JMP)
			o->off = (int16_t)(at[i + 1 + in[i].off] - at[i + 1]);
	}
	fail[0] = (struct ebpf_insn){.code = BPF_ALU | EBPF_MOV | BPF_K, .dst_reg = EBPF_REG_0};
	fail[1] = (struct ebpf_insn){.code = BPF_JMP | EBPF_EXIT};
	*count = at[n] + (guarded ? 2 : 0);
	free(at);
	return out;
}

static struct rte_bpf *load(const struct rte_bpf_prm *converted)
{
	struct rte_bpf_prm prm = *converted;
	struct ebpf_insn *insns = mend(converted->ins, converted->nb_ins, &prm.nb_ins);
	struct rte_bpf *bpf;

	if (!insns) {
		rte_errno = ENOMEM;
		return NULL;
	}
	prm.ins = insns;
	bpf = rte_bpf_load(&prm); /* copies them */
	free(insns);
	return bpf;
}

int rt_filter_create(struct rt_filter **out, const struct rt_insn *insns, uint32_t count)
{
	struct bpf_program prog = {
		.bf_len = count, .bf_insns = (struct bpf_insn *)(uintptr_t)insns};
	struct rte_bpf_prm *prm;
	struct rte_bpf_jit jit = {0};
	struct rt_filter *f;

	if (!rt_program_valid(insns, count))
		return -EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	prm = rte_bpf_convert(&prog);
	if (prm) {
		f->bpf = load(prm);
		rte_free(prm);
	}
	if (!f->bpf) {
		free(f);
		return rte_errno == ENOTSUP ? -ENOTSUP : -EINVAL;
	}
	if (rte_bpf_get_jit(f->bpf, &jit) == 0)
		f->func = jit.func;
	*out = f;
	return 0;
}

void rt_filter_free(struct rt_filter *f)
{
	if (!f)
		return;
	rte_bpf_destroy(f->bpf);
	free(f);
}

static inline bool run(const struct rt_filter *f, struct rte_mbuf *m)
{
	return (f->func ? f->func(m) : rte_bpf_exec(f->bpf, m)) != 0;
}

/* Runs on a view of the frame: MAC addresses and tags in a segment of its own, the rest behind. */
static bool run_tagged(
	const struct rt_filter *f, const struct rte_mbuf *m, const uint8_t *tags, unsigned tag_len)
{
	uint8_t macs[MAC_BYTES], head[MAC_BYTES + 8];
	struct rte_mbuf first = *m, rest;
	uint32_t skip = MAC_BYTES;

	memcpy(head, rte_pktmbuf_read(m, 0, MAC_BYTES, macs), MAC_BYTES);
	memcpy(head + MAC_BYTES, tags, tag_len);
	first.buf_addr = head;
	first.data_off = 0;
	first.data_len = (uint16_t)(MAC_BYTES + tag_len);
	first.pkt_len = m->pkt_len + tag_len;
	for (; skip >= m->data_len && m->next; m = m->next)
		skip -= m->data_len;
	rest = *m;
	rest.data_off = (uint16_t)(m->data_off + skip);
	rest.data_len = (uint16_t)(m->data_len - skip);
	first.next = &rest;
	first.nb_segs = (uint16_t)(first.nb_segs + 1);
	return run(f, &first);
}

/* False: the segments hold less than pkt_len says. rte_bpf would run off their end. */
static bool is_whole(const struct rte_mbuf *m)
{
	uint32_t left = m->pkt_len, segs = m->nb_segs;

	for (; m && segs; m = m->next, segs--) {
		if (left <= m->data_len)
			return true;
		left -= m->data_len;
	}
	return false;
}

static bool passes(const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf *m)
{
	const uint64_t tagged = dir == RT_DIR_RX
					? RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED
					: RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_TX_QINQ;
	unsigned len = 0;
	uint8_t tags[8];

	/* The copy will find it broken, too, and count it. */
	if (rt_unlikely(m->pkt_len != m->data_len) && !is_whole(m))
		return true;
	if (rt_unlikely(m->ol_flags & tagged))
		len = rt_epb_vlan(m, dir, tags);
	return len ? run_tagged(f, m, tags, len) : run(f, m);
}

unsigned rt_filter_burst(const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf **pkts,
	unsigned n, struct rte_mbuf **pass)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++) {
		pass[k] = pkts[i];
		k += passes(f, dir, pkts[i]);
	}
	return k;
}
