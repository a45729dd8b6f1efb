/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "rt_external.h"
#include "rt_shape.h"

#define SMALL_ROOM  2048
#define LARGE_ROOM  16384
#define LARGE_MBUFS 511

static struct rte_mempool *small_pool, *large_pool;

const char *shape_text(char **words, const char *key)
{
	size_t len = strlen(key);

	for (; *words; words++)
		if (!strncmp(*words, key, len) && (*words)[len] == '=')
			return *words + len + 1;
	return NULL;
}

int64_t shape_arg(char **words, const char *key, int64_t fallback)
{
	const char *text = shape_text(words, key);

	return text ? strtoll(text, NULL, 0) : fallback;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint8_t *unhex(const char *text, uint32_t *len)
{
	size_t n = strlen(text) / 2;
	uint8_t *out = malloc(n + 1);

	for (size_t i = 0; out && i < n; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			free(out);
			return NULL;
		}
		out[i] = (uint8_t)(high << 4 | low);
	}
	*len = n;
	return out;
}

bool shape_parse(char **words, struct shape *s)
{
	const char *hex = shape_text(words, "hex");

	*s = (struct shape){
		.len = shape_arg(words, "len", 64),
		.seg = shape_arg(words, "seg", 0),
		.seq = shape_arg(words, "seq", 0),
		.vlan = shape_arg(words, "vlan", -1),
		.qinq = shape_arg(words, "qinq", -1),
		.hash = shape_arg(words, "hash", -1),
		.untrue_length = shape_arg(words, "untrue", 0),
		.cut_chain = shape_arg(words, "cut", 0),
		.external = external_kind(shape_text(words, "external")),
		.no_flag = shape_arg(words, "noflag", 0),
	};
	if (hex)
		s->bytes = unhex(hex, &s->len);
	return (!hex || s->bytes) && s->external != -1;
}

bool shape_init(unsigned mbufs)
{
	/* More threads than CPUs use it: with the default, each waits for those that began before,
	 * and spins where they are preempted, one time slice after the other, without end. */
	small_pool = rte_pktmbuf_pool_create_by_ops("small", mbufs, 256, 0,
		RTE_PKTMBUF_HEADROOM + SMALL_ROOM, SOCKET_ID_ANY, "ring_mt_rts");
	large_pool = rte_pktmbuf_pool_create(
		"large", LARGE_MBUFS, 0, 0, RTE_PKTMBUF_HEADROOM + LARGE_ROOM, SOCKET_ID_ANY);
	return small_pool && large_pool;
}

/* The same pattern as frame() in e2e/harness/pcap.py. */
static void pattern(uint8_t *dst, uint32_t len, uint32_t seq)
{
	static const uint8_t head[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
	uint32_t be = rte_cpu_to_be_32(seq), start = sizeof(head) + sizeof(be);
	uint8_t first[sizeof(head) + sizeof(be)];

	memcpy(first, head, sizeof(head));
	memcpy(first + sizeof(head), &be, sizeof(be));
	memcpy(dst, first, RTE_MIN(len, start));
	for (uint32_t i = start; i < len; i++)
		dst[i] = (uint8_t)((i - start) * 7 + seq);
}

void shape_flag(const struct shape *s, struct rte_mbuf *m, bool on)
{
	for (; s->no_flag && m; m = m->next) {
		if ((uintptr_t)m->buf_addr - (uintptr_t)m > 65536)
			m->ol_flags = on ? RTE_MBUF_F_EXTERNAL : 0;
	}
}

static struct rte_mbuf *chain(const uint8_t *bytes, uint32_t len, uint32_t seg, int external)
{
	struct rte_mbuf *first = NULL, *last = NULL;
	uint32_t at = 0;

	do {
		uint32_t part = seg ? RTE_MIN(seg, len - at) : len;
		struct rte_mempool *pool = part > SMALL_ROOM ? large_pool : small_pool;
		int kind = seg && !at ? EXTERNAL_NO : external;
		struct rte_mbuf *m =
			kind == EXTERNAL_NO ? rte_pktmbuf_alloc(pool) : external_alloc(kind, pool);
		char *to;

		if (!m) {
			rte_pktmbuf_free(first);
			return NULL;
		}
		to = rte_pktmbuf_append(m, part);
		if (external_writable(kind))
			memcpy(to, bytes + at, part);
		at += part;
		if (!first) {
			first = m;
		} else {
			last->next = m;
			first->nb_segs++;
			first->pkt_len += part;
		}
		last = m;
	} while (at < len);
	return first;
}

static void offloads(struct rte_mbuf *m, const struct shape *s, bool rx)
{
	if (s->vlan >= 0) {
		m->vlan_tci = s->vlan;
		m->ol_flags |=
			rx ? RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED : RTE_MBUF_F_TX_VLAN;
	}
	if (s->qinq >= 0) {
		m->vlan_tci_outer = s->qinq;
		m->ol_flags |= rx ? RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED |
					       RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED
				  : RTE_MBUF_F_TX_QINQ;
	}
	if (s->hash >= 0) {
		m->hash.rss = s->hash;
		m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	}
}

struct rte_mbuf *shape_build(const struct shape *s, uint32_t i, bool rx)
{
	uint8_t *bytes = s->bytes ? s->bytes : malloc(s->len + 1);
	struct rte_mbuf *m;

	if (!bytes)
		return NULL;
	if (!s->bytes)
		pattern(bytes, s->len, s->seq + i);
	m = chain(bytes, s->len, s->seg, s->external);
	if (!s->bytes)
		free(bytes);
	if (!m)
		return NULL;
	offloads(m, s, rx);
	if (s->untrue_length)
		m->pkt_len += 1000;
	if (s->cut_chain)
		m->nb_segs++;
	return m;
}

struct rte_mbuf *shape_plain(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(small_pool);

	if (m)
		m->data_len = m->pkt_len = 64;
	return m;
}
