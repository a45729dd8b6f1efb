/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters that mean packets with VLAN tags as well: `tcp port 80` of libpcap matches none of them.
 */
#ifndef RINGTAP_COMMON_TAGS_H
#define RINGTAP_COMMON_TAGS_H

#include <pcap/pcap.h>

/* Compiles an expression, as pcap_compile() by the function that is given. The program decides by
 * the tags of a packet: without, with one, and with two (TPIDs 0x8100, 0x88a8, 0x9100) it applies
 * the expression behind them. An expression that says "vlan", or tests a TPID itself, is compiled
 * as it is, and so is one whose program would be longer than 4096 instructions. For Ethernet:
 * a frame that is shorter than its header matches nothing. The caller frees by pcap_freecode().
 * Returns what pcap_compile() does for the expression. */
int rt_tags_compile(__typeof__(pcap_compile) *compile, pcap_t *p, struct bpf_program *out,
	const char *expression, int optimize, bpf_u_int32 mask);

#endif
