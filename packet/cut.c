/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "cut.h"
#include "inner.h"
#include "walk.h"

enum { IP_ICMP = 1, IP_TCP = 6, IP_UDP = 17, IP_ICMP6 = 58, IP_SCTP = 132, IP_UDPLITE = 136 };

#define RETURN_LEN 3 /* instructions of put_return() */

/* Returns X and that number of bytes. */
static void put_return(struct walk *p, uint32_t bytes)
{
	put(p, BPF_MISC | BPF_TXA, 0);
	put(p, BPF_ALU | BPF_ADD | BPF_K, bytes);
	put(p, BPF_RET | BPF_A, 0);
}

/* X is behind the headers of IP, and the number of the protocol in memory. */
static void put_transport(struct walk *p, uint32_t beyond)
{
	static const uint32_t eight[] = {IP_UDP, IP_UDPLITE, IP_ICMP, IP_ICMP6};

	put(p, BPF_LD | BPF_MEM, WALK_PROTOCOL);
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

/* Returns the length of the headers and that number of bytes. */
static void put_headers(struct walk *p, uint16_t linktype, uint32_t beyond)
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
	put_ip(p, ipv4, ipv6, n);
	put_transport(p, beyond);
}

static int put_cut(struct walk *p, const struct cut *c, bool inner, enum ringtap_tags tags,
	uint16_t linktype, char *err, size_t err_len)
{
	char why[256] = "not enough memory";
	struct filter f;
	uint32_t *refuses;
	unsigned n = 0;
	int ret = filter_compile_inner(&f, inner, c->filter, tags, linktype, why, sizeof(why));

	if (ret) {
		snprintf(err, err_len, "filter '%s' of --cut: %s", c->filter, why);
		return ret;
	}
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

int cut_apply(struct filter *f, const struct cut *cuts, unsigned count, bool inner,
	enum ringtap_tags tags, uint16_t linktype, char *err, size_t err_len)
{
	struct walk *p = count ? calloc(1, sizeof(*p)) : NULL;
	int ret = count && !p ? -ENOMEM : 0;

	if (!p)
		return ret;
	p->value = RINGTAP_SNAPLEN_MAX;
	put_filter(p, f, NULL);
	for (unsigned i = 0; i < count && !ret; i++)
		ret = put_cut(p, &cuts[i], inner, tags, linktype, err, err_len);
	/* DPDK's verifier refuses instructions that nothing reaches. */
	if (cuts[count - 1].filter)
		put(p, BPF_RET | BPF_K, RINGTAP_SNAPLEN_MAX);
	if (!ret)
		ret = walk_take(p, f, "--cut", err, err_len);
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
