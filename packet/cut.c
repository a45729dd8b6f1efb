/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "common/proto.h"
#include "cut.h"

#define TAGS_MAX       3 /* VLAN tags, MPLS labels and extension headers that are passed */
#define LABELS_MAX     8
#define EXTENSIONS_MAX 6

/* Scratch memory: a program of libpcap may use it, but is over when ours begins. */
enum { PROTOCOL, NEXT };

enum {
	IP_TCP = 6,
	IP_UDP = 17,
	IP_ROUTING = 43,
	IP_FRAGMENT = 44,
	IP_AH = 51,
	IP_ICMP6 = 58,
	IP_DESTINATION = 60,
	IP_SCTP = 132,
	IP_UDPLITE = 136
};

struct program {
	struct ringtap_insn insns[RT_MAX_INSNS];
	uint32_t len; /* more than RT_MAX_INSNS: it has no room */
};

static uint32_t put_jump(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->len < RT_MAX_INSNS)
		p->insns[p->len] = (struct ringtap_insn){.code = code, .jt = jt, .jf = jf, .k = k};
	return p->len++;
}

static uint32_t put(struct program *p, uint16_t code, uint32_t k)
{
	return put_jump(p, code, k, 0, 0);
}

/* The unconditional jumps in list go to the next instruction. */
static void land(struct program *p, const uint32_t *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i] < RT_MAX_INSNS)
			p->insns[list[i]].k = p->len - list[i] - 1;
}

/* X grows by bytes. */
static void put_step(struct program *p, uint32_t bytes)
{
	put(p, BPF_MISC | BPF_TXA, 0);
	put(p, BPF_ALU | BPF_ADD | BPF_K, bytes);
	put(p, BPF_MISC | BPF_TAX, 0);
}

/* A packet with fewer bytes behind X is captured whole: a load beyond its end would refuse
 * it. X may be beyond the end itself. */
static void put_need(struct program *p, uint32_t bytes)
{
	put(p, BPF_LD | BPF_W | BPF_LEN, 0);
	put_jump(p, BPF_JMP | BPF_JGE | BPF_X, 0, 1, 0);
	put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
	put(p, BPF_ALU | BPF_SUB | BPF_X, 0);
	put_jump(p, BPF_JMP | BPF_JGE | BPF_K, bytes, 1, 0);
	put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
}

/* Returns X and that number of bytes. */
static void put_return(struct program *p, uint32_t bytes)
{
	put(p, BPF_MISC | BPF_TXA, 0);
	put(p, BPF_ALU | BPF_ADD | BPF_K, bytes);
	put(p, BPF_RET | BPF_A, 0);
}

/* If A is one of the values goes on behind, else passes the next n instructions. */
static void put_if(struct program *p, const uint32_t *values, unsigned count, uint8_t n)
{
	for (unsigned i = 0; i < count; i++)
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - 1 - i),
			i == count - 1 ? n : 0);
}

#define RETURN_LEN 3 /* instructions of put_return() */

/* X is behind the headers of IP, and the number of the protocol in memory. */
static void put_transport(struct program *p, uint32_t beyond)
{
	static const uint32_t eight[] = {IP_UDP, IP_UDPLITE, 1 /* ICMP */, IP_ICMP6};

	put(p, BPF_LD | BPF_MEM, PROTOCOL);
	put_if(p, eight, 4, RETURN_LEN);
	put_return(p, 8 + beyond);
	put_if(p, &(const uint32_t){IP_SCTP}, 1, RETURN_LEN);
	put_return(p, 12 + beyond);
	put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, IP_TCP, RETURN_LEN, 0);
	put_return(p, beyond);
	put_need(p, 20);
	put(p, BPF_LD | BPF_B | BPF_IND, 12);
	put(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	put(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	put(p, BPF_ALU | BPF_ADD | BPF_K, beyond);
	put(p, BPF_RET | BPF_A, 0);
}

/* X is at the header. */
static void put_ipv4(struct program *p, uint32_t beyond)
{
	put_need(p, 20);
	put(p, BPF_LD | BPF_B | BPF_IND, 9);
	put(p, BPF_ST, PROTOCOL);
	put(p, BPF_LD | BPF_H | BPF_IND, 6);
	/* A fragment that is not the first has no transport header: no protocol has 255. */
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 0, 2);
	put(p, BPF_LD | BPF_IMM, 255);
	put(p, BPF_ST, PROTOCOL);
	put(p, BPF_LD | BPF_B | BPF_IND, 0);
	put(p, BPF_ALU | BPF_AND | BPF_K, 15);
	put(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	put(p, BPF_MISC | BPF_TAX, 0);
	put_transport(p, beyond);
}

/* An extension header of (length + more) << shift bytes. */
static uint32_t put_extension(struct program *p, uint32_t more, uint32_t shift)
{
	put_need(p, 8);
	put(p, BPF_LD | BPF_B | BPF_IND, 0);
	put(p, BPF_ST, PROTOCOL);
	put(p, BPF_LD | BPF_B | BPF_IND, 1);
	put(p, BPF_ALU | BPF_ADD | BPF_K, more);
	put(p, BPF_ALU | BPF_LSH | BPF_K, shift);
	put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	put(p, BPF_MISC | BPF_TAX, 0);
	return put(p, BPF_JMP | BPF_JA, 0);
}

#define EXTENSION_LEN 14 /* instructions of put_extension() */

static void put_ipv6(struct program *p, uint32_t beyond)
{
	static const uint32_t plain[] = {0 /* hop by hop */, IP_ROUTING, IP_DESTINATION};
	uint32_t out[EXTENSIONS_MAX];

	put_need(p, 40);
	put(p, BPF_LD | BPF_B | BPF_IND, 6);
	put(p, BPF_ST, PROTOCOL);
	put_step(p, 40);
	for (unsigned i = 0; i < EXTENSIONS_MAX; i++) {
		uint32_t next[3];

		put(p, BPF_LD | BPF_MEM, PROTOCOL);
		put_if(p, plain, 3, EXTENSION_LEN);
		next[0] = put_extension(p, 1, 3);
		put_if(p, &(const uint32_t){IP_AH}, 1, EXTENSION_LEN);
		next[1] = put_extension(p, 2, 2);
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, IP_FRAGMENT, 1, 0);
		out[i] = put(p, BPF_JMP | BPF_JA, 0);
		put_need(p, 8);
		put(p, BPF_LD | BPF_H | BPF_IND, 2);
		put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 0xfff8, 0, RETURN_LEN);
		put_return(p, 8 + beyond);
		put(p, BPF_LD | BPF_B | BPF_IND, 0);
		put(p, BPF_ST, PROTOCOL);
		put_step(p, 8);
		land(p, next, 2);
	}
	land(p, out, EXTENSIONS_MAX);
	put_transport(p, beyond);
}

/* X is at the first label. */
static void put_mpls(struct program *p)
{
	uint32_t bottom[LABELS_MAX];

	for (unsigned i = 0; i < LABELS_MAX; i++) {
		put_need(p, 5);
		put(p, BPF_LD | BPF_B | BPF_IND, 2);
		put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1);
		bottom[i] = put(p, BPF_JMP | BPF_JA, 0);
		put_step(p, 4);
	}
	put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
	land(p, bottom, LABELS_MAX);
	put_step(p, 4);
}

/* Goes to one of the jumps if the packet at X is IP, else captures it whole. */
static void put_by_version(struct program *p, uint32_t *ipv4, uint32_t *ipv6)
{
	put(p, BPF_LD | BPF_B | BPF_IND, 0);
	put(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	put_if(p, &(const uint32_t){4}, 1, 1);
	*ipv4 = put(p, BPF_JMP | BPF_JA, 0);
	put_if(p, &(const uint32_t){6}, 1, 1);
	*ipv6 = put(p, BPF_JMP | BPF_JA, 0);
	put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
}

/* Behind Ethernet's header and tags: jumps for each of the two versions. */
static void put_ethernet(struct program *p, uint32_t ipv4[2], uint32_t ipv6[2])
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
	put(p, BPF_ST, NEXT);
	put_step(p, 14);
	put(p, BPF_LD | BPF_MEM, NEXT);
	put_if(p, &(const uint32_t){0x0800}, 1, 1);
	ipv4[0] = put(p, BPF_JMP | BPF_JA, 0);
	put_if(p, &(const uint32_t){0x86dd}, 1, 1);
	ipv6[0] = put(p, BPF_JMP | BPF_JA, 0);
	put_if(p, mpls, 2, 1);
	put_jump(p, BPF_JMP | BPF_JA, 1, 0, 0);
	put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
	put_mpls(p);
	put_by_version(p, &ipv4[1], &ipv6[1]);
}

/* Returns the length of the headers and that number of bytes. */
static void put_headers(struct program *p, uint16_t linktype, uint32_t beyond)
{
	uint32_t ipv4[2], ipv6[2];
	unsigned n = linktype == RINGTAP_LINKTYPE_ETHERNET ? 2 : 1;

	put(p, BPF_LDX | BPF_IMM, 0);
	if (n == 2) {
		put_ethernet(p, ipv4, ipv6);
	} else {
		put_need(p, 1);
		put_by_version(p, ipv4, ipv6);
	}
	land(p, ipv4, n);
	put_ipv4(p, beyond);
	land(p, ipv6, n);
	put_ipv6(p, beyond);
}

/* A program of libpcap, which returns constants only. Those that let pass lead behind it; refuses:
 * the others, too, and are listed there, at most max. Returns their number. */
static unsigned put_filter(struct program *p, const struct filter *f, uint32_t *refuses)
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

static int put_cut(struct program *p, const struct cut *c, enum ringtap_tags tags,
	uint16_t linktype, char *err, size_t err_len)
{
	struct filter f;
	uint32_t *refuses;
	unsigned n = 0;
	int ret = filter_compile(&f, c->filter, tags, linktype, err, err_len);

	if (ret)
		return ret;
	refuses = malloc((f.len + 1) * sizeof(*refuses));
	if (refuses)
		n = put_filter(p, &f, refuses);
	else
		ret = -ENOMEM;
	if (c->headers)
		put_headers(p, linktype, c->bytes);
	else
		put(p, BPF_RET | BPF_K, c->bytes);
	land(p, refuses, n);
	free(refuses);
	filter_free(&f);
	return ret;
}

int cut_apply(struct filter *f, const struct cut *cuts, unsigned count, enum ringtap_tags tags,
	uint16_t linktype, char *err, size_t err_len)
{
	struct program *p = count ? calloc(1, sizeof(*p)) : NULL;
	int ret = count && !p ? -ENOMEM : 0;

	if (!p)
		return ret;
	put_filter(p, f, NULL);
	for (unsigned i = 0; i < count && !ret; i++)
		ret = put_cut(p, &cuts[i], tags, linktype, err, err_len);
	/* DPDK's verifier refuses instructions that nothing reaches. */
	if (cuts[count - 1].filter)
		put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
	if (!ret && p->len > RT_MAX_INSNS) {
		snprintf(err, err_len, "with its cuts it is longer than %d instructions",
			RT_MAX_INSNS);
		ret = -EINVAL;
	}
	if (!ret) {
		struct ringtap_insn *insns = realloc(f->insns, p->len * sizeof(*insns));

		if (insns) {
			memcpy(insns, p->insns, p->len * sizeof(*insns));
			*f = (struct filter){insns, p->len};
		} else {
			ret = -ENOMEM;
		}
	}
	free(p);
	return ret;
}

int cut_parse(struct cut *c, const char *text)
{
	char word[32];
	const char *colon = strchrnul(text, ':'), *number = word;
	uint64_t n = 0;

	*c = (struct cut){.filter = *colon ? colon + 1 : NULL};
	if (colon - text >= (ptrdiff_t)sizeof(word) || (c->filter && !*c->filter))
		return -EINVAL;
	memcpy(word, text, (size_t)(colon - text));
	word[colon - text] = 0;
	c->headers = !strncmp(word, "l4+", 3) || !strcmp(word, "headers");
	if (!strcmp(word, "headers"))
		return 0;
	if (c->headers)
		number += 3;
	if (parse_number(number, RINGTAP_SNAPLEN_MAX, &n) || (!n && !c->headers))
		return -EINVAL;
	c->bytes = (uint32_t)n;
	return 0;
}
