/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "common/hash.h"
#include "identity.h"

#define PAYLOAD     64u /* bytes of it in a digest */
#define DIGEST_HEAD 48u
#define DIGEST_MAX  (DIGEST_HEAD + 60 + PAYLOAD)

/* Not a secret: identifiers are the same on all hosts. */
static const struct secret fixed = {{UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd1b54a32d192ed03)}};

/* Words are little endian, whatever the machine. */
static uint64_t hash_little(uint64_t *w, size_t words)
{
	for (size_t i = 0; i < words; i++)
		w[i] = le64toh(w[i]);
	return hash_words(&fixed, w, words);
}

bool ends_turned(const struct ends *e)
{
	uint64_t a[2], b[2];

	memcpy(a, e->src, sizeof(a));
	memcpy(b, e->dst, sizeof(b));
	if (a[0] != b[0])
		return be64toh(a[0]) > be64toh(b[0]);
	if (a[1] != b[1])
		return be64toh(a[1]) > be64toh(b[1]);
	return e->src_port > e->dst_port;
}

int64_t flow_identity(const struct ends *e)
{
	bool turned = ends_turned(e);
	uint64_t w[5];
	uint16_t first = turned ? e->dst_port : e->src_port,
		 second = turned ? e->src_port : e->dst_port;

	memcpy(w, turned ? e->dst : e->src, 16);
	memcpy(w + 2, turned ? e->src : e->dst, 16);
	w[4] = htole64(first | (uint64_t)second << 16 | (uint64_t)e->protocol << 32);
	return (int64_t)hash_little(w, 5);
}

/* Bytes of the L4 header, and where its checksum is: at, size bytes of it. */
static size_t l4_header(const struct layer_ip *ip, size_t *at, size_t *size)
{
	*size = 2;
	switch (ip->protocol) {
	case IPPROTO_TCP:
		*at = 16;
		if (ip->captured > 12 && ip->p[12] >> 4 > 5)
			return (ip->p[12] >> 4) * 4u;
		return 20;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE: *at = 6; return 8;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6: *at = 2; return 8;
	case IPPROTO_SCTP:
		*at = 8;
		*size = 4;
		return 12;
	default: *size = 0; return 0;
	}
}

/* How many bytes of the payload a digest has. false: the header is cut off. */
static bool digest_bytes(const struct layer_ip *ip, size_t header, size_t *n)
{
	*n = header + PAYLOAD < ip->wire ? header + PAYLOAD : ip->wire;
	if (ip->captured >= *n)
		return true;
	if (ip->captured < header)
		return false;
	*n = header + ((ip->captured - header) & ~(size_t)15);
	return true;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

bool packet_digest(const struct ends *e, const struct layer_ip *ip, uint32_t *digest)
{
	uint64_t words[(DIGEST_MAX + 7) / 8];
	uint8_t *b = (uint8_t *)words;
	size_t checksum = 0, checksum_size = 0, header = 0, n;
	uint64_t h;

	if (!(ip->fragment & FRAGMENT_OFFSET))
		header = l4_header(ip, &checksum, &checksum_size);
	if (!digest_bytes(ip, header, &n))
		return false;
	memcpy(b, e->src, 16);
	memcpy(b + 16, e->dst, 16);
	put32(b + 32, ip->id);
	b[36] = (uint8_t)ip->fragment;
	b[37] = (uint8_t)(ip->fragment >> 8);
	b[38] = ip->protocol;
	b[39] = ip->version;
	put32(b + 40, ip->length);
	put32(b + 44, (uint32_t)n);
	words[(DIGEST_HEAD + n) / 8] = 0; /* padding; in bounds, as n is at most 124 */
	memcpy(b + DIGEST_HEAD, ip->p, n);
	if (checksum + checksum_size <= n)
		memset(b + DIGEST_HEAD + checksum, 0, checksum_size);
	h = hash_little(words, (DIGEST_HEAD + n + 7) / 8);
	*digest = (uint32_t)(h ^ h >> 32);
	return true;
}
