/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by filter_loop.c and the encoders of instructions. */
#ifndef RINGTAP_PROBE_CAPTURE_FILTER_EMIT_H
#define RINGTAP_PROBE_CAPTURE_FILTER_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <sys/types.h>

#include <pcap/bpf.h>

#include "filter_loop.h"

/* Code is made twice: first to find out where everything is, then into memory. An instruction takes
 * the same room whatever the distances of its jumps are. */
struct rt_code {
	uint8_t *out;  /* NULL: first time */
	uint32_t size; /* bytes so far */
	const struct rt_insn *insns;
	uint32_t *at; /* place of each instruction */
	uint32_t *to; /* for each instruction, the one that a jump to it gets to, behind BPF_JA */
	/* For each: bytes that a packet needs in its first segment for what comes from here, up to
	 * the next BPF_JA. */
	uint32_t *need;
	/* Places: where a packet begins, where it has passed, where the next one is taken, and
	 * where the loop ends. */
	uint32_t top, pass, next, leave;
	uint32_t reach; /* need of the first one; loads by X with 0 for it */
	/* Behind the bytes that loads by X read, less X. 0: they check it themselves, as X may be
	 * anything; else it comes from headers' lengths only, and is checked there. */
	uint32_t reach_by_x;
	bool reads_len; /* it reads the packet's length */
	uint32_t value; /* as in struct rt_loop */
};

static inline void rt_code_put(struct rt_code *c, const void *bytes, uint32_t n)
{
	if (c->out)
		memcpy(c->out + c->size, bytes, n);
	c->size += n;
}

/* Bytes that a load reads of the packet. */
static inline uint32_t rt_insn_bytes(const struct rt_insn *i)
{
	return BPF_SIZE(i->code) == BPF_B ? 1 : BPF_SIZE(i->code) == BPF_H ? 2 : 4;
}

/* Conditions after a comparison, unsigned; the lowest bit inverts. */
enum rt_when { RT_EQUAL, RT_NOT_EQUAL, RT_ABOVE, RT_NOT_ABOVE, RT_NOT_BELOW, RT_BELOW };

/* Beginning and end of the loop; set top, and the three other places. */
void rt_emit_enter(struct rt_code *c);
void rt_emit_leave(struct rt_code *c);
/* Instructions of these kinds. False: there is no such instruction. */
bool rt_emit_load(struct rt_code *c, const struct rt_insn *i);
bool rt_emit_calculation(struct rt_code *c, const struct rt_insn *i);
void rt_emit_store(struct rt_code *c, const struct rt_insn *i);
void rt_emit_move(struct rt_code *c, bool to_x);
/* A jump in parts: compares A with X or k (JSET: finds out whether they have common bits; they are
 * RT_NOT_EQUAL then), and jumps to a place. */
void rt_emit_compare(struct rt_code *c, const struct rt_insn *i);
void rt_emit_jump_if(struct rt_code *c, enum rt_when when, uint32_t to);
void rt_emit_jump(struct rt_code *c, uint32_t to);
/* Leaves the loop, before this packet, if its first segment has fewer bytes. */
void rt_emit_need(struct rt_code *c, uint32_t bytes);

#ifdef __x86_64__
#define RT_LOOP_NATIVE 1
#else
#define RT_LOOP_NATIVE 0
#endif

#endif
