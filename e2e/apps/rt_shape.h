/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with chosen bytes and mbuf shapes, and key=value arguments. */
#ifndef RINGTAP_E2E_APPS_RT_SHAPE_H
#define RINGTAP_E2E_APPS_RT_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct shape {
	uint32_t len;       /* bytes on the wire, without the tags kept in the mbuf */
	uint32_t seg;       /* bytes in each segment; 0: one segment */
	uint32_t seq;       /* number in the first frame; the next ones count up */
	int64_t vlan;       /* TCI kept in the mbuf; -1: none */
	int64_t qinq;       /* outer TCI kept in the mbuf; -1: none */
	int64_t hash;       /* RSS hash; -1: none */
	bool untrue_length; /* pkt_len is larger than the segments */
	int external;       /* data outside of the mbufs, see rt_external.h; if seg is not 0, that
			       of the first segment is not */
	bool no_flag;       /* RTE_MBUF_F_EXTERNAL is cleared while hooks read the packets */
	bool cut_chain;     /* nb_segs is larger than the chain */
	uint8_t *bytes;     /* exact contents, len of them; NULL: the numbered pattern */
};

/* The value of key=… in the words, or fallback. Numbers may be hexadecimal. */
int64_t shape_arg(char **words, const char *key, int64_t fallback);
const char *shape_text(char **words, const char *key);

/* Fills in *s from the words; the caller frees s->bytes. False: invalid hex digits. */
bool shape_parse(char **words, struct shape *s);

/* Creates the pools; call it once. False: no memory. */
bool shape_init(unsigned mbufs);

/* Builds packet number s->seq + i, as a driver would deliver it (rx) or as an application would
 * send it. NULL: no free mbuf. */
struct rte_mbuf *shape_build(const struct shape *s, uint32_t i, bool rx);

/* Clears RTE_MBUF_F_EXTERNAL if the shape requires it, or sets it again. */
void shape_flag(const struct shape *s, struct rte_mbuf *m, bool on);

/* A 64-byte frame of zeros, for the maximum rate. */
struct rte_mbuf *shape_plain(void);

#endif
