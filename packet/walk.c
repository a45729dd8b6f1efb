/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define TAGS_MAX       3 /* VLAN tags, MPLS labels and extension headers that are passed */
#define LABELS_MAX     8
#define EXTENSIONS_MAX 6

enum { IP_ROUTING = 43, IP_FRAGMENT = 44, IP_AH = 51, IP_DESTINATION = 60, IP_NONE = 255 };

uint32_t put_jump(struct walk *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->len < RT_MAX_INSNS)
		p->insns[p->len] = (struct ringtap_insn){.code = code, .jt = jt, .jf = jf, .k = k};
	return p->len++;
}

uint32_t put(struct walk *p, uint16_t code, uint32_t k)
{
	return put_jump(p, code, k, 0, 0);
}

uint32_t put_ja(struct walk *p)
{
	return put(p, BPF_JMP | BPF_JA, 0);
}

void land(struct walk *p, const uint32_t *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i] < RT_MAX_INSNS)
			p->insns[list[i]].k = p->len - list[i] - 1;
}

void put_step(struct walk *p, uint32_t bytes)
{
	put(p, BPF_MISC | BPF_TXA, 0);
	put(p, BPF_ALU | BPF_ADD | BPF_K, bytes);
	put(p, BPF_MISC | BPF_TAX, 0);
}

/* X may be beyond the end itself. */
void put_need(struct walk *p, uint32_t bytes)
{
	put(p, BPF_LD | BPF_W | BPF_LEN, 0);
	put_jump(p, BPF_JMP | BPF_JGE | BPF_X, 0, 1, 0);
	put(p, BPF_RET | BPF_K, p->value);
	put(p, BPF_ALU | BPF_SUB | BPF_X, 0);
	put_jump(p, BPF_JMP | BPF_JGE | BPF_K, bytes, 1, 0);
	put(p, BPF_RET | BPF_K, p->value);
}

void put_if(struct walk *p, const uint32_t *values, unsigned count, uint8_t n)
{
	for (unsigned i = 0; i < count; i++)
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - 1 - i),
			i == count - 1 ? n : 0);
}

/* X is at the header. Returns a jump behind it. */
static uint32_t put_ipv4(struct walk *p)
{
	put_need(p, 20);
	put(p, BPF_LD | BPF_B | BPF_IND, 9);
	put(p, BPF_ST, WALK_PROTOCOL);
	put(p, BPF_LD | BPF_H | BPF_IND, 6);
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 0, 2);
	put(p, BPF_LD | BPF_IMM, IP_NONE);
	put(p, BPF_ST, WALK_PROTOCOL);
	put(p, BPF_LD | BPF_B | BPF_IND, 0);
	put(p, BPF_ALU | BPF_AND | BPF_K, 15);
	put_jump(p, BPF_JMP | BPF_JGE | BPF_K, 5, 1, 0);
	put(p, BPF_RET | BPF_K, p->value);
	put(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	put(p, BPF_MISC | BPF_TAX, 0);
	return put_ja(p);
}

/* An extension header of (length + more) << shift bytes. */
static uint32_t put_extension(struct walk *p, uint32_t more, uint32_t shift)
{
	put_need(p, 8);
	put(p, BPF_LD | BPF_B | BPF_IND, 0);
	put(p, BPF_ST, WALK_PROTOCOL);
	put(p, BPF_LD | BPF_B | BPF_IND, 1);
	put(p, BPF_ALU | BPF_ADD | BPF_K, more);
	put(p, BPF_ALU | BPF_LSH | BPF_K, shift);
	put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	put(p, BPF_MISC | BPF_TAX, 0);
	return put(p, BPF_JMP | BPF_JA, 0);
}

#define EXTENSION_LEN 14 /* instructions of put_extension() */

static void put_ipv6(struct walk *p)
{
	static const uint32_t plain[] = {0 /* hop by hop */, IP_ROUTING, IP_DESTINATION};
	uint32_t out[2 * EXTENSIONS_MAX];

	put_need(p, 40);
	put(p, BPF_LD | BPF_B | BPF_IND, 6);
	put(p, BPF_ST, WALK_PROTOCOL);
	put_step(p, 40);
	for (unsigned i = 0; i < EXTENSIONS_MAX; i++) {
		uint32_t next[3];

		put(p, BPF_LD | BPF_MEM, WALK_PROTOCOL);
		put_if(p, plain, 3, EXTENSION_LEN);
		next[0] = put_extension(p, 1, 3);
		put_if(p, &(const uint32_t){IP_AH}, 1, EXTENSION_LEN);
		next[1] = put_extension(p, 2, 2);
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, IP_FRAGMENT, 1, 0);
		out[2 * i] = put_ja(p);
		put_need(p, 8);
		put(p, BPF_LD | BPF_B | BPF_IND, 0);
		put(p, BPF_ST, WALK_PROTOCOL);
		put(p, BPF_LD | BPF_H | BPF_IND, 2);
		put(p, BPF_ALU | BPF_AND | BPF_K, 0xfff8);
		put(p, BPF_ST, WALK_NEXT);
		put_step(p, 8);
		put(p, BPF_LD | BPF_MEM, WALK_NEXT);
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
		put(p, BPF_LD | BPF_IMM, IP_NONE);
		put(p, BPF_ST, WALK_PROTOCOL);
		out[2 * i + 1] = put_ja(p);
		land(p, next, 2);
	}
	land(p, out, 2 * EXTENSIONS_MAX);
}

void put_ip(struct walk *p, const uint32_t *ipv4, const uint32_t *ipv6, unsigned count)
{
	uint32_t out;

	land(p, ipv4, count);
	out = put_ipv4(p);
	land(p, ipv6, count);
	put_ipv6(p);
	land(p, &out, 1);
}

/* X is at the first label. */
static void put_mpls(struct walk *p)
{
	uint32_t bottom[LABELS_MAX];

	for (unsigned i = 0; i < LABELS_MAX; i++) {
		put_need(p, 5);
		put(p, BPF_LD | BPF_B | BPF_IND, 2);
		put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1);
		bottom[i] = put(p, BPF_JMP | BPF_JA, 0);
		put_step(p, 4);
	}
	put(p, BPF_RET | BPF_K, p->value);
	land(p, bottom, LABELS_MAX);
	put_step(p, 4);
}

void put_by_version(struct walk *p, uint32_t *ipv4, uint32_t *ipv6)
{
	put(p, BPF_LD | BPF_B | BPF_IND, 0);
	put(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	put_if(p, &(const uint32_t){4}, 1, 1);
	*ipv4 = put_ja(p);
	put_if(p, &(const uint32_t){6}, 1, 1);
	*ipv6 = put_ja(p);
	put(p, BPF_RET | BPF_K, p->value);
}

void put_ethernet(struct walk *p, uint32_t ipv4[2], uint32_t ipv6[2])
{
	static const uint32_t tpids[] = {0x8100, 0x88a8, 0x9100}, mpls[] = {0x8847, 0x8848};
	uint32_t types[TAGS_MAX];

	for (unsigned i = 0; i < TAGS_MAX; i++) {
		put_need(p, 14);
		put(p, BPF_LD | BPF_H | BPF_IND, 12);
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, tpids[0], 3, 0);
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, tpids[1], 2, 0);
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, tpids[2], 1, 0);
		types[i] = put(p, BPF_JMP | BPF_JA, 0);
		put_step(p, 4);
	}
	put_need(p, 14);
	put(p, BPF_LD | BPF_H | BPF_IND, 12);
	land(p, types, TAGS_MAX);
	put(p, BPF_ST, WALK_NEXT);
	put_step(p, 14);
	put(p, BPF_LD | BPF_MEM, WALK_NEXT);
	put_if(p, &(const uint32_t){0x0800}, 1, 1);
	ipv4[0] = put(p, BPF_JMP | BPF_JA, 0);
	put_if(p, &(const uint32_t){0x86dd}, 1, 1);
	ipv6[0] = put(p, BPF_JMP | BPF_JA, 0);
	put_if(p, mpls, 2, 1);
	put_jump(p, BPF_JMP | BPF_JA, 1, 0, 0);
	put(p, BPF_RET | BPF_K, p->value);
	put_mpls(p);
	put_by_version(p, &ipv4[1], &ipv6[1]);
}

unsigned put_filter(struct walk *p, const struct filter *f, uint32_t *refuses)
{
	const uint32_t begin = p->len;
	unsigned n = 0;

	for (uint32_t i = 0; i < f->len; i++) {
		const struct ringtap_insn *in = &f->insns[i];
		bool refused = in->code == (BPF_RET | BPF_K) && !in->k;

		if (in->code != (BPF_RET | BPF_K) || (refused && !refuses)) {
			put_jump(p, in->code, in->k, in->jt, in->jf);
			continue;
		}
		if (refused)
			refuses[n++] = p->len;
		put(p, BPF_JMP | BPF_JA, begin + f->len - p->len - 1);
	}
	return n;
}

int walk_take(const struct walk *p, struct filter *f, const char *option, char *err, size_t err_len)
{
	struct ringtap_insn *insns;

	if (p->len > RT_MAX_INSNS) {
		snprintf(err, err_len,
			"%s: the filter would be longer than %d instructions; make it simpler",
			option, RT_MAX_INSNS);
		return -EINVAL;
	}
	insns = realloc(f->insns, p->len * sizeof(*insns));
	if (!insns)
		return -ENOMEM;
	memcpy(insns, p->insns, p->len * sizeof(*insns));
	*f = (struct filter){insns, p->len};
	return 0;
}
