/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#include "common/array.h"
#include "frame.h"
#include "base/util.h"

#define PCAP_FRAMES_MAX 1000000
#define PCAP_BYTES_MAX  (1u << 30)

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v);
}

static uint8_t *put_mac(uint8_t *p, const uint8_t mac[6])
{
	memcpy(p, mac, 6);
	return p + 6;
}

/* RFC 826 */
static void build_arp(uint8_t *p, const struct fwd_config *c, const uint8_t src[6])
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, unknown[6];

	p = put_mac(put_mac(p, c->dst_mac_given ? c->dst_mac : broadcast), src);
	p = put16(p, 0x0806);
	p = put16(put16(p, 1), 0x0800); /* Ethernet, IPv4 */
	*p++ = 6;
	*p++ = 4;
	p = put16(p, 1); /* request */
	p = put32(put_mac(p, src), c->src_ip);
	put32(put_mac(p, unknown), c->dst_ip);
}

static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* RFC 791, RFC 768. The UDP checksum is zero, as IPv4 allows: each packet has another stamp. */
static void build_udp(uint8_t *p, const struct fwd_config *c, const uint8_t src[6], uint16_t len)
{
	static const uint8_t peer[6] = {0x02, 0, 0, 0, 0, 1};
	uint8_t *ip;

	p = put_mac(put_mac(p, c->dst_mac_given ? c->dst_mac : peer), src);
	ip = p = put16(p, 0x0800);
	p = put16(p, 0x4500);
	p = put16(p, len - 14u);
	p = put32(p, 0x4000);                /* do not fragment */
	p = put32(p, 64u << 24 | 17u << 16); /* hops, UDP, checksum */
	p = put32(put32(p, c->src_ip), c->dst_ip);
	put16(ip + 10, ip_checksum(ip));
	p = put16(put16(p, UDP_PORT), UDP_PORT);
	put16(p, len - 34u);
	for (uint16_t i = FRAME_MIN; i < len; i++)
		ip[i - 14] = (uint8_t)i;
}

static int build(struct frames *f, const struct fwd_config *c, const uint8_t src[6])
{
	f->count = c->size_count;
	f->stamped = true;
	f->at = calloc(f->count, sizeof(*f->at));
	f->data = calloc(f->count, FRAME_MAX);
	if (!f->at || !f->data)
		return -ENOMEM;
	for (unsigned i = 0; i < f->count; i++) {
		uint8_t *p = f->data + (size_t)i * FRAME_MAX;

		f->at[i] = (struct frame_at){.offset = i * FRAME_MAX, .len = c->sizes[i]};
		if (c->frame == FRAME_ARP)
			build_arp(p, c, src);
		else
			build_udp(p, c, src, c->sizes[i]);
	}
	return 0;
}

static int add(struct frames *f, const uint8_t *data, uint32_t len)
{
	uint32_t offset = f->count ? f->at[f->count - 1].offset + f->at[f->count - 1].len : 0;
	struct frame_at *at;

	offset = (offset + FRAME_ROOM - 1) / FRAME_ROOM * FRAME_ROOM;
	if (f->count == PCAP_FRAMES_MAX || offset + len + FRAME_ROOM > PCAP_BYTES_MAX)
		return -EFBIG;
	at = rt_array_add(f->at, f->count);
	if (!at)
		return -ENOMEM;
	memcpy(f->data + offset, data, len);
	*at = (struct frame_at){.offset = offset, .len = len};
	return 0;
}

/* When the frame that was added last is due: not before the one before. */
static int add_time(struct frames *f, const struct pcap_pkthdr *h, int64_t *first_ns)
{
	int64_t ns, since;
	unsigned last = f->count - 1; /* also the number of times */
	uint64_t before = last ? f->due_ns[last - 1] : 0, *due;

	/* Opened with nanoseconds. */
	if (__builtin_mul_overflow(h->ts.tv_sec, (int64_t)NS_PER_S, &ns) ||
		__builtin_add_overflow(ns, h->ts.tv_usec, &ns))
		return -EOVERFLOW;
	if (!last)
		*first_ns = ns;
	if (__builtin_sub_overflow(ns, *first_ns, &since))
		return -EOVERFLOW;
	due = rt_array_add(f->due_ns, last);
	if (!due)
		return -ENOMEM;
	*due = since > (int64_t)before ? (uint64_t)since : before;
	return 0;
}

static int load_all(struct frames *f, pcap_t *p, uint32_t len_max, bool timing)
{
	int64_t first_ns = 0;
	struct pcap_pkthdr *h;
	const uint8_t *data;
	int ret;

	if (pcap_datalink(p) != DLT_EN10MB)
		return -EPROTONOSUPPORT;
	/* Address space only: pages without frames are never touched. */
	f->data = malloc(PCAP_BYTES_MAX);
	if (!f->data)
		return -ENOMEM;
	while ((ret = pcap_next_ex(p, &h, &data)) == 1) {
		if (h->caplen > len_max)
			return -EMSGSIZE;
		if (h->caplen && (ret = add(f, data, h->caplen)))
			return ret;
		if (h->caplen && timing && (ret = add_time(f, h, &first_ns)))
			return ret;
	}
	if (ret != PCAP_ERROR_BREAK)
		return -EBADMSG;
	return f->count ? 0 : -ENODATA;
}

static int load(struct frames *f, const struct fwd_config *c)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p =
		pcap_open_offline_with_tstamp_precision(c->pcap, PCAP_TSTAMP_PRECISION_NANO, error);
	uint32_t len_max = c->plane == PLANE_DPDK
				   ? (c->buffer_size - HEADROOM) / FRAME_ROOM * FRAME_ROOM
				   : FRAME_MAX;
	int ret;

	if (!p)
		return message_fail(-EINVAL, "--replay: %s", error);
	ret = load_all(f, p, len_max, c->timing);
	if (ret == -EPROTONOSUPPORT)
		message_print(
			"--replay %s: the link type is not Ethernet; give another file", c->pcap);
	else if (ret == -EMSGSIZE)
		message_print(
			"--replay %s: a frame is longer than %u bytes; give a larger --mbuf-size",
			c->pcap, len_max);
	else if (ret == -ENODATA)
		message_print("--replay %s: the file has no frames; give another file", c->pcap);
	else if (ret == -EBADMSG)
		message_print("--replay %s: %s", c->pcap, pcap_geterr(p));
	else if (ret)
		message_print("--replay %s: %s", c->pcap, strerror(-ret));
	pcap_close(p);
	return ret;
}

int frames_make(struct frames *f, const struct fwd_config *c, const uint8_t src_mac[6])
{
	int ret;

	*f = (struct frames){0};
	if (c->pcap)
		ret = load(f, c);
	else if ((ret = build(f, c, src_mac)))
		message_print("cannot build the frames: %s", strerror(-ret));
	if (ret) {
		frames_free(f);
		return ret;
	}
	f->stamped &= c->memory != MEMORY_GPU;
	for (unsigned i = 0; i < f->count; i++)
		f->at[i].written = c->memory == MEMORY_GPU ? 0 : f->at[i].len;
	return 0;
}

void frames_free(struct frames *f)
{
	free(f->data);
	free(f->at);
	free(f->due_ns);
	*f = (struct frames){0};
}
