/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpcap's programs read at fixed places of a packet. Those for a packet inside of another one are
 * the same, with each load moved by where that begins, which a program before them finds out:
 *
 *   outer program; refused: find the first tunnel; inner program; refused: find the second; …
 *
 * Loads beyond the end refuse the packet, as anywhere.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/program.h"
#include "inner.h"
#include "walk.h"

#define DEPTH     2 /* tunnels */
#define EXITS_MAX 16
#define GTP_MAX   4 /* extension headers of GTP-U */

/* Scratch memory of moved programs; libpcap's begin at 0. */
enum { SAVED_A = 13, SAVED_X, BASE };

enum { IP_IN_IP = 4, IP_UDP = 17, IP6_IN_IP = 41, IP_GRE = 47 };
enum { PORT_GTP_U = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081 };
enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, TYPE_ETHERNET = 0x6558 };

/* Jumps where X is at a packet inside. */
struct exits {
	uint32_t ethernet[EXITS_MAX], ip[EXITS_MAX];
	unsigned ethernets, ips;
};

static void exit_ethernet(struct walk *p, struct exits *e)
{
	e->ethernet[e->ethernets++] = put_ja(p);
}

static void exit_ip(struct walk *p, struct exits *e)
{
	e->ip[e->ips++] = put_ja(p);
}

static void put_refuse(struct walk *p)
{
	put(p, BPF_RET | BPF_K, 0);
}

/* A is the type of the packet at X. */
static void put_by_type(struct walk *p, struct exits *e)
{
	static const uint32_t ip[] = {TYPE_IPV4, TYPE_IPV6};

	put_if(p, &(const uint32_t){TYPE_ETHERNET}, 1, 1);
	exit_ethernet(p, e);
	put_if(p, ip, 2, 1);
	exit_ip(p, e);
	put_refuse(p);
}

static void put_gre(struct walk *p, struct exits *e)
{
	static const uint32_t words[] = {
		0x8000 /* checksum */, 0x2000 /* key */, 0x1000 /* number */};

	put_need(p, 4);
	put(p, BPF_LD | BPF_H | BPF_IND, 2);
	put(p, BPF_ST, WALK_NEXT);
	put(p, BPF_LD | BPF_H | BPF_IND, 0);
	put(p, BPF_ST, WALK_FLAGS);
	/* Versions but 0, and the obsolete routing field (RFC 1701). */
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 0x4007, 0, 1);
	put_refuse(p);
	put_step(p, 4);
	for (unsigned i = 0; i < 3; i++) {
		put(p, BPF_LD | BPF_MEM, WALK_FLAGS);
		put_jump(p, BPF_JMP | BPF_JSET | BPF_K, words[i], 0, 3);
		put_step(p, 4);
	}
	put(p, BPF_LD | BPF_MEM, WALK_NEXT);
	put_by_type(p, e);
}

/* X is at the header of UDP, in these three. */
static void put_vxlan(struct walk *p, struct exits *e)
{
	put_need(p, 16);
	put(p, BPF_LD | BPF_B | BPF_IND, 8);
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 0x08, 1, 0); /* its VNI is valid */
	put_refuse(p);
	put_step(p, 16);
	exit_ethernet(p, e);
}

static void put_geneve(struct walk *p, struct exits *e)
{
	put_need(p, 16);
	put(p, BPF_LD | BPF_H | BPF_IND, 10);
	put(p, BPF_ST, WALK_NEXT);
	put(p, BPF_LD | BPF_B | BPF_IND, 8);
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 0xc0, 0, 1); /* version */
	put_refuse(p);
	put(p, BPF_ALU | BPF_AND | BPF_K, 0x3f);
	put(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	put(p, BPF_ALU | BPF_ADD | BPF_K, 16);
	put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	put(p, BPF_MISC | BPF_TAX, 0);
	put(p, BPF_LD | BPF_MEM, WALK_NEXT);
	put_by_type(p, e);
}

static void put_gtp(struct walk *p, struct exits *e)
{
	uint32_t done[GTP_MAX + 3];
	unsigned n = 0;

	put_need(p, 16);
	put(p, BPF_LD | BPF_B | BPF_IND, 9);
	put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, 255, 1, 0); /* a packet of a user */
	put_refuse(p);
	put(p, BPF_LD | BPF_B | BPF_IND, 8);
	put(p, BPF_ST, WALK_FLAGS);
	put(p, BPF_ALU | BPF_AND | BPF_K, 0xf0);
	put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, 0x30, 1, 0); /* version 1, not GTP' */
	put_refuse(p);
	put_step(p, 16);
	put(p, BPF_LD | BPF_MEM, WALK_FLAGS);
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 7, 1, 0);
	done[n++] = put_ja(p);
	/* Number, N-PDU and type of the next header are there if one of them is. */
	put_need(p, 4);
	put_step(p, 4);
	put(p, BPF_LD | BPF_MEM, WALK_FLAGS);
	put_jump(p, BPF_JMP | BPF_JSET | BPF_K, 4, 1, 0);
	done[n++] = put_ja(p);
	put(p, BPF_MISC | BPF_TXA, 0);
	put(p, BPF_ALU | BPF_SUB | BPF_K, 1);
	put(p, BPF_MISC | BPF_TAX, 0);
	/* X is at the type of the next header, which is the last byte of each. */
	for (unsigned i = 0; i <= GTP_MAX; i++) {
		put_need(p, 2);
		put(p, BPF_LD | BPF_B | BPF_IND, 0);
		put_if(p, &(const uint32_t){0}, 1, 1);
		done[n++] = put_ja(p);
		put(p, BPF_LD | BPF_B | BPF_IND, 1);
		put(p, BPF_ALU | BPF_LSH | BPF_K, 2);
		put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
		put(p, BPF_MISC | BPF_TAX, 0);
	}
	put_refuse(p);
	land(p, done + 2, n - 2);
	put_step(p, 1);
	land(p, done, 2);
	exit_ip(p, e);
}

/* From the header of Ethernet, or of IP, at X. */
static void put_tunnel(
	struct walk *p, struct exits *e, const uint32_t *at_ip, unsigned at_ips, bool ethernet)
{
	static const uint32_t in_ip[] = {IP_IN_IP, IP6_IN_IP};
	uint32_t ipv4[3], ipv6[3], labels[2], udp;
	unsigned n = 0;

	if (ethernet) {
		put_ethernet(p, ipv4, ipv6);
		labels[0] = ipv4[1];
		labels[1] = ipv6[1];
		land(p, labels, 2);
		exit_ip(p, e);
		n = 1;
	}
	/* DPDK's verifier refuses instructions that nothing reaches. */
	if (at_ips || !ethernet) {
		land(p, at_ip, at_ips);
		put_need(p, 1);
		put_by_version(p, &ipv4[n], &ipv6[n]);
		n++;
	}
	put_ip(p, ipv4, ipv6, n);
	put(p, BPF_LD | BPF_MEM, WALK_PROTOCOL);
	put_if(p, in_ip, 2, 1);
	exit_ip(p, e);
	put_if(p, &(const uint32_t){IP_UDP}, 1, 1);
	udp = put_ja(p);
	put_if(p, &(const uint32_t){IP_GRE}, 1, 1);
	put_jump(p, BPF_JMP | BPF_JA, 1, 0, 0);
	put_refuse(p);
	put_gre(p, e);
	land(p, &udp, 1);
	put_need(p, 8);
	put(p, BPF_LD | BPF_H | BPF_IND, 2);
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t ports[] = {PORT_VXLAN, PORT_GENEVE, PORT_GTP_U};
		static void (*const puts[])(struct walk *, struct exits *) = {
			put_vxlan, put_geneve, put_gtp};
		uint32_t other;

		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, ports[i], 1, 0);
		other = put_ja(p);
		puts[i](p, e);
		land(p, &other, 1);
	}
	put_refuse(p);
}

/* ---- moved programs ---- */

static void put_loaded(struct walk *p, const struct ringtap_insn *i)
{
	put(p, i->code, i->k);
}

/* Instructions that do what i does in a packet that begins at BASE. A load of a byte for X, and one
 * at X, need A. */
static void put_moved(struct walk *p, const struct ringtap_insn *i)
{
	const uint16_t size = BPF_SIZE(i->code);

	if (BPF_CLASS(i->code) == BPF_LD && BPF_MODE(i->code) == BPF_ABS && i->k <= RT_OFFSET_MAX) {
		put(p, BPF_STX, SAVED_X);
		put(p, BPF_LDX | BPF_MEM, BASE);
		put(p, BPF_LD | size | BPF_IND, i->k);
		put(p, BPF_LDX | BPF_MEM, SAVED_X);
	} else if (BPF_CLASS(i->code) == BPF_LD && BPF_MODE(i->code) == BPF_IND) {
		put(p, BPF_STX, SAVED_X);
		put(p, BPF_LD | BPF_MEM, BASE);
		put(p, BPF_ALU | BPF_ADD | BPF_X, 0);
		put(p, BPF_MISC | BPF_TAX, 0);
		put(p, BPF_LD | size | BPF_IND, i->k);
		put(p, BPF_LDX | BPF_MEM, SAVED_X);
	} else if (BPF_CLASS(i->code) == BPF_LDX && BPF_MODE(i->code) == BPF_MSH) {
		put(p, BPF_ST, SAVED_A);
		put(p, BPF_LDX | BPF_MEM, BASE);
		put(p, BPF_LD | BPF_B | BPF_IND, i->k);
		put(p, BPF_ALU | BPF_AND | BPF_K, 15);
		put(p, BPF_ALU | BPF_LSH | BPF_K, 2);
		put(p, BPF_MISC | BPF_TAX, 0);
		put(p, BPF_LD | BPF_MEM, SAVED_A);
	} else if (i->code == (BPF_LD | BPF_W | BPF_LEN)) {
		put(p, BPF_STX, SAVED_X);
		put(p, BPF_LDX | BPF_MEM, BASE);
		put_loaded(p, i);
		put(p, BPF_ALU | BPF_SUB | BPF_X, 0);
		put(p, BPF_LDX | BPF_MEM, SAVED_X);
	} else {
		put_loaded(p, i);
	}
}

/* Whether a program can be moved: it uses no scratch memory that this needs. */
static bool is_movable(const struct filter *f)
{
	for (uint32_t i = 0; i < f->len; i++) {
		const struct ringtap_insn *in = &f->insns[i];
		const uint16_t class = BPF_CLASS(in->code);
		const bool memory = class == BPF_ST || class == BPF_STX ||
				    (class <= BPF_LDX && BPF_MODE(in->code) == BPF_MEM);

		if ((memory && in->k >= SAVED_A) || in->code == (BPF_LDX | BPF_W | BPF_LEN))
			return false;
	}
	return true;
}

/* Puts a program for the packet at X. Returns jumps of where it refuses: its number, in refuses,
 * which has room for f->len. -ENOMEM */
static int put_program(struct walk *p, const struct filter *f, uint32_t *refuses)
{
	struct jump {
		uint32_t at, to; /* in p, and in f */
	} *jumps = malloc((2 * f->len + 1) * sizeof(*jumps));
	uint32_t *places = malloc((f->len + 1) * sizeof(*places));
	int count = places && jumps ? 0 : -ENOMEM;
	unsigned n = 0;

	put(p, BPF_STX, BASE);
	for (uint32_t k = 0; k < f->len && count >= 0; k++) {
		const struct ringtap_insn *i = &f->insns[k];

		places[k] = p->len;
		if (i->code == (BPF_RET | BPF_K) && !i->k) {
			refuses[count++] = put_ja(p);
		} else if (i->code == (BPF_JMP | BPF_JA)) {
			jumps[n++] = (struct jump){put_ja(p), k + 1 + i->k};
		} else if (BPF_CLASS(i->code) == BPF_JMP) {
			put_jump(p, i->code, i->k, 0, 1);
			jumps[n++] = (struct jump){put_ja(p), k + 1 + i->jt};
			jumps[n++] = (struct jump){put_ja(p), k + 1 + i->jf};
		} else {
			put_moved(p, i);
		}
	}
	for (unsigned i = 0; i < n && count >= 0; i++)
		if (jumps[i].at < RT_MAX_INSNS)
			p->insns[jumps[i].at].k = places[jumps[i].to] - jumps[i].at - 1;
	free(places);
	free(jumps);
	return count;
}

/* X of the packet again. */
static void put_back(struct walk *p)
{
	put(p, BPF_LDX | BPF_MEM, BASE);
}

/* One tunnel, and the program for each kind of packet in it. Leads behind it, with jumps to where
 * the packet is IP, if there is another one to find. */
static int put_level(struct walk *p, const struct filter *ethernet, const struct filter *ip,
	uint32_t *at_ip, unsigned *at_ips, bool from_ethernet, uint32_t *refuses)
{
	struct exits e = {.ethernets = 0};
	int n;

	put_tunnel(p, &e, at_ip, *at_ips, from_ethernet);
	land(p, e.ip, e.ips);
	n = ip->len ? put_program(p, ip, refuses) : 0;
	if (n < 0)
		return n;
	if (!ip->len)
		put(p, BPF_STX, BASE);
	land(p, refuses, (unsigned)n);
	put_back(p);
	at_ip[0] = put_ja(p);
	*at_ips = 1;
	land(p, e.ethernet, e.ethernets);
	n = put_program(p, ethernet, refuses);
	if (n < 0)
		return n;
	land(p, refuses, (unsigned)n);
	put_back(p);
	return 0;
}

static int put_all(struct walk *p, const struct filter *f, const struct filter *ethernet,
	const struct filter *ip, bool from_ethernet, uint32_t *refuses)
{
	unsigned n = 0, at_ips = 0;
	uint32_t at_ip[1];
	int ret = 0;

	/* Both ends of the program lead behind it: those that refuse go on. */
	for (uint32_t i = 0; i < f->len; i++) {
		const struct ringtap_insn *in = &f->insns[i];

		if (in->code == (BPF_RET | BPF_K) && !in->k)
			refuses[n++] = put_ja(p);
		else
			put_jump(p, in->code, in->k, in->jt, in->jf);
	}
	land(p, refuses, n);
	put(p, BPF_LDX | BPF_IMM, 0);
	for (unsigned i = 0; i < DEPTH && !ret; i++) {
		ret = put_level(p, ethernet, ip, at_ip, &at_ips, from_ethernet, refuses);
		from_ethernet = true;
	}
	land(p, at_ip, at_ips);
	put_refuse(p);
	return ret;
}

static int join(struct filter *f, const struct filter *ethernet, const struct filter *ip,
	bool from_ethernet, char *err, size_t err_len)
{
	const size_t most = f->len > ethernet->len ? f->len : ethernet->len;
	uint32_t *refuses = malloc(((most > ip->len ? most : ip->len) + 1) * sizeof(*refuses));
	struct walk *p = calloc(1, sizeof(*p));
	int ret = p && refuses ? put_all(p, f, ethernet, ip, from_ethernet, refuses) : -ENOMEM;

	if (!ret)
		ret = walk_take(p, f, "--inner", err, err_len);
	free(refuses);
	free(p);
	return ret;
}

static int add(struct filter *f, const char *expression, enum ringtap_tags tags, uint16_t linktype,
	char *err, size_t err_len)
{
	struct filter ethernet, ip;
	char other[256];
	int ret = filter_compile(
		&ethernet, expression, tags, RINGTAP_LINKTYPE_ETHERNET, err, err_len);

	if (ret || !f->len)
		return ret;
	/* An expression about Ethernet's addresses is not for packets of IP. */
	ret = filter_compile(
		&ip, expression, RINGTAP_TAGS_AS_IS, RINGTAP_LINKTYPE_RAW, other, sizeof(other));
	if (ret == -EINVAL) {
		ip = (struct filter){.len = 0};
		ret = 0;
	}
	if (!ret && (!is_movable(&ethernet) || !is_movable(&ip))) {
		snprintf(err, err_len, "it is too complex to apply to tunnels");
		ret = -EINVAL;
	}
	if (!ret)
		ret = join(f, &ethernet, &ip, linktype == RINGTAP_LINKTYPE_ETHERNET, err, err_len);
	filter_free(&ethernet);
	filter_free(&ip);
	return ret;
}

int filter_compile_inner(struct filter *f, bool inner, const char *expression,
	enum ringtap_tags tags, uint16_t linktype, char *err, size_t err_len)
{
	int ret = filter_compile(f, expression, tags, linktype, err, err_len);

	if (!ret && inner)
		ret = add(f, expression, tags, linktype, err, err_len);
	if (ret)
		filter_free(f);
	return ret;
}
