/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/bpf.h>
#include <rte_bpf.h>
#include <rte_malloc.h>

#include "epb.h"
#include "filter.h"
#include "filter_code.h"
#include "filter_loop.h"
#include "filter_run.h"
#include "readable.h"
#include "common/program.h"
#include "probe/tunables.h"

#define WORDS 16u /* words of scratch memory */

struct rt_filter {
	struct rt_loop loop;          /* run is NULL: there is none */
	uint64_t (*func)(void *mbuf); /* for what the loop leaves; NULL: it is interpreted */
	struct rte_bpf *bpf;          /* owner of func */
	struct rt_insn *program;
	struct rt_filter *tx; /* for packets that are sent; NULL: the same */
};

static_assert(sizeof(struct rt_insn) == sizeof(struct bpf_insn), "cBPF instruction");

/* A build of DPDK may lack the library. */
#pragma weak rte_bpf_convert
#pragma weak rte_bpf_load
#pragma weak rte_bpf_get_jit
#pragma weak rte_bpf_destroy

static struct rte_bpf *load(const struct rte_bpf_prm *converted)
{
	struct rte_bpf_prm prm = {.prog_arg = converted->prog_arg};
	struct ebpf_insn *insns = rt_code_mend(converted->ins, converted->nb_ins, &prm.nb_ins);
	struct rte_bpf *bpf = NULL;

	prm.ins = insns;
	if (insns && rt_code_steps(insns, prm.nb_ins) <= rt_probe_limits.filter_steps)
		bpf = rte_bpf_load(&prm); /* copies them */
	free(insns);
	return bpf;
}

/* Optional: interpreted, a packet that the loop leaves takes up to twice as long. */
static void compile(struct rt_filter *f, uint32_t count)
{
	struct bpf_program prog = {.bf_len = count, .bf_insns = (struct bpf_insn *)f->program};
	struct rte_bpf_prm *prm = rte_bpf_convert && rte_bpf_load ? rte_bpf_convert(&prog) : NULL;
	struct rte_bpf_jit jit = {0};

	if (!prm)
		return;
	f->bpf = load(prm);
	rte_free(prm);
	if (f->bpf && rte_bpf_get_jit(f->bpf, &jit) == 0)
		f->func = jit.func;
}

/* Scratch memory reads as 0 until something is stored. The stack's contents are undefined: zero
 * the words that are read before they are written. A is 0 at the start. Writes up to WORDS
 * instructions; returns their number. */
static uint32_t put_zeros(struct rt_insn *out, const struct rt_insn *insns, uint32_t count)
{
	uint32_t words = 0, n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t code = insns[i].code;

		if ((BPF_CLASS(code) == BPF_LD || BPF_CLASS(code) == BPF_LDX) &&
			BPF_MODE(code) == BPF_MEM)
			words |= 1u << insns[i].k;
	}
	for (uint32_t k = 0; k < WORDS; k++) {
		if (words & 1u << k)
			out[n++] = (struct rt_insn){.code = BPF_ST, .k = k};
	}
	return n;
}

/* For one direction; *differs: the other direction needs a program of its own. */
static int create(struct rt_filter **out, const struct rt_insn *insns, uint32_t count,
	enum rt_direction dir, bool *differs)
{
	struct rt_filter *f = calloc(1, sizeof(*f));
	uint32_t n;

	if (f)
		f->program = malloc((count + WORDS) * sizeof(*insns));
	if (!f || !f->program) {
		free(f);
		return -ENOMEM;
	}
	n = put_zeros(f->program, insns, count);
	memcpy(f->program + n, insns, count * sizeof(*insns));
	n += count;
	*differs = rt_program_set_direction(f->program, n, dir);
	/* Optional: without a loop a filter is only slower. */
	rt_loop_create(&f->loop, f->program, n);
	compile(f, n);
	*out = f;
	return 0;
}

int rt_filter_create(struct rt_filter **out, const struct rt_insn *insns, uint32_t count)
{
	struct rt_filter *f;
	bool differs = false;
	int ret;

	if (!rt_program_valid(insns, count))
		return -EINVAL;
	ret = create(&f, insns, count, RT_DIR_RX, &differs);
	if (!ret && differs && (ret = create(&f->tx, insns, count, RT_DIR_TX, &differs)))
		rt_filter_free(f);
	if (!ret)
		*out = f;
	return ret;
}

void rt_filter_free(struct rt_filter *f)
{
	if (!f)
		return;
	rt_filter_free(f->tx);
	rt_loop_destroy(&f->loop);
	if (f->bpf)
		rte_bpf_destroy(f->bpf);
	free(f->program);
	free(f);
}

static inline uint32_t run(const struct rt_filter *f, struct rte_mbuf *m)
{
	return f->func ? (uint32_t)f->func(m) : rt_filter_run(f->program, m);
}

/* Runs on a view of the frame: MAC addresses and tags in a segment of its own, the rest behind. */
static uint32_t run_tagged(
	const struct rt_filter *f, const struct rte_mbuf *m, uint64_t tags, unsigned tag_len)
{
	uint8_t macs[RT_MAC_BYTES], head[RT_MAC_BYTES + 8];
	struct rte_mbuf first = *m, rest;
	uint32_t skip = RT_MAC_BYTES;

	memcpy(head, rte_pktmbuf_read(m, 0, RT_MAC_BYTES, macs), RT_MAC_BYTES);
	memcpy(head + RT_MAC_BYTES, &tags, tag_len);
	first.buf_addr = head;
	first.data_off = 0;
	first.data_len = (uint16_t)(RT_MAC_BYTES + tag_len);
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

/* False: the segments hold less than pkt_len bytes. rte_bpf would read beyond their end. */
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

static uint32_t value_of(
	const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf *m, unsigned *unreadable)
{
	unsigned len = 0;
	uint64_t tags;

	if (rt_unlikely(!rt_readable(m, UINT32_MAX))) {
		++*unreadable;
		return 0;
	}
	/* The copy finds it broken, too, and counts it. */
	if (rt_unlikely(m->pkt_len != m->data_len) && !is_whole(m))
		return UINT32_MAX;
	if (rt_unlikely(m->ol_flags & rt_epb_tag_flags(dir)))
		len = rt_epb_vlan(m, dir, &tags);
	return len ? run_tagged(f, m, tags, len) : run(f, m);
}

uint32_t rt_filter_length(
	const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf *m, unsigned *unreadable)
{
	struct rte_mbuf *pass[2];
	struct rt_loop_burst b; /* memory stays as it is */

	if (dir == RT_DIR_TX && f->tx)
		f = f->tx;
	if (rt_unlikely(!f->loop.run))
		return value_of(f, dir, m, unreadable);
	b.pkts = &m;
	b.last = &m + 1;
	b.pass = pass;
	b.slow_flags = rt_epb_tag_flags(dir) | RTE_MBUF_F_EXTERNAL;
	f->loop.run(&b);
	if (rt_unlikely(b.pkts != b.last))
		return value_of(f, dir, m, unreadable);
	if (b.pass == pass)
		return 0;
	return f->loop.value ? f->loop.value : b.memory[RT_LOOP_VALUE];
}

unsigned rt_filter_burst(const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf **pkts,
	unsigned n, struct rte_mbuf **pass, unsigned *unreadable)
{
	struct rt_loop_burst b; /* memory stays as it is */

	if (dir == RT_DIR_TX && f->tx)
		f = f->tx;
	b.pkts = pkts;
	b.last = pkts + n;
	b.pass = pass;
	b.slow_flags = rt_epb_tag_flags(dir) | RTE_MBUF_F_EXTERNAL;
	for (;;) {
		if (rt_likely(f->loop.run != NULL))
			f->loop.run(&b);
		if (rt_likely(b.pkts == b.last))
			return (unsigned)(b.pass - pass);
		*b.pass = *b.pkts;
		b.pass += value_of(f, dir, *b.pkts++, unreadable) != 0;
	}
}
