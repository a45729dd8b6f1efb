/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes programs of classic BPF that find the headers of packets. X is where a header begins; put_
 * functions add instructions. */
#ifndef RINGTAP_PACKET_WALK_H
#define RINGTAP_PACKET_WALK_H

#include <stddef.h>

#include "common/proto.h"
#include "filter.h"

/* Scratch memory. */
enum { WALK_PROTOCOL, WALK_NEXT, WALK_FLAGS };

struct walk {
	struct ringtap_insn insns[RT_MAX_INSNS];
	uint32_t len;   /* more than RT_MAX_INSNS: it has no room */
	uint32_t value; /* returned for packets that end within a header, or are not IP */
};

/* Both return the place of the instruction. */
uint32_t put_jump(struct walk *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf);
uint32_t put(struct walk *p, uint16_t code, uint32_t k);
/* An unconditional jump, for land(). */
uint32_t put_ja(struct walk *p);
/* These jumps go to the next instruction. */
void land(struct walk *p, const uint32_t *list, unsigned count);
/* X grows by bytes. */
void put_step(struct walk *p, uint32_t bytes);
/* Returns the value if there are fewer bytes behind X: a load beyond the end would refuse the
 * packet. */
void put_need(struct walk *p, uint32_t bytes);
/* If A is one of the values goes on behind, else passes the next n instructions. */
void put_if(struct walk *p, const uint32_t *values, unsigned count, uint8_t n);
/* Skips Ethernet's header, tags and MPLS labels. Jumps at the header of IP, for each version: [0]
 * directly behind Ethernet, [1] below labels. */
void put_ethernet(struct walk *p, uint32_t ipv4[2], uint32_t ipv6[2]);
/* A jump for each version of the IP header. */
void put_by_version(struct walk *p, uint32_t *ipv4, uint32_t *ipv6);
/* The jumps, at most two each, land at headers of IP, which are passed. Then X is behind them, and
 * the protocol in WALK_PROTOCOL: 255 in a fragment without its header. */
void put_ip(struct walk *p, const uint32_t *ipv4, const uint32_t *ipv6, unsigned count);
/* Copies a program that returns constants. Those that let pass go on after it; refuses: the others,
 * too, and are listed there. Returns their number. */
unsigned put_filter(struct walk *p, const struct filter *f, uint32_t *refuses);
/* Replaces f by the program. 0, -ENOMEM, or -EINVAL with a sentence in err: it is too long. */
int walk_take(
	const struct walk *p, struct filter *f, const char *option, char *err, size_t err_len);

#endif
